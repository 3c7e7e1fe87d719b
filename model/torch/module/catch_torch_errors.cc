#include "model/torch/module/catch_torch_errors.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <iterator>
#include <new>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "model/runtime/engine.h"

namespace linnet::model {
namespace {

// The text between two others, or empty.
absl::string_view Between(absl::string_view text, absl::string_view before,
                          absl::string_view after) {
  const size_t found = text.find(before);
  if (found == absl::string_view::npos) return "";
  text.remove_prefix(found + before.size());
  return text.substr(0, text.find(after));
}

// The reason why TorchScript cannot compile a module of another version of Linnet, or empty.
std::string ReasonOfOtherVersion(absl::string_view text) {
  constexpr absl::string_view kRemedy =
      " wrote the bundle; install that version, or export the model again with this one";
  if (const auto name = Between(text, "Unknown builtin op: ", ".\n"); !name.empty()) {
    return absl::StrCat("the model uses the operator ", name,
                        ", which this version of Linnet does not have: a newer version", kRemedy);
  }
  if (!absl::StrContains(text, "Expected at most") &&
      !absl::StrContains(text, "Arguments for call"))
    return "";
  const auto name = Between(text, "linnet::", "(");
  if (name.empty()) return "";
  return absl::StrCat("the model calls the operator linnet::", name,
                      " with arguments that this version of Linnet does not take: another version",
                      kRemedy);
}

// TorchScript wraps the error of a module in a listing of its code. The reason is the line after
// it that names the type of the error, or else the last line that is not empty.
std::string Reason(const std::string& text) {
  if (std::string other = ReasonOfOtherVersion(text); !other.empty()) return other;
  if (text.find("TorchScript") == std::string::npos) return text.substr(0, text.find('\n'));
  if (const size_t begin = text.rfind("RuntimeError: "); begin != std::string::npos)
    return text.substr(begin, text.find('\n', begin) - begin);
  const std::vector<std::string> lines = absl::StrSplit(text, '\n', absl::SkipWhitespace());
  return lines.empty() ? text : std::string(absl::StripAsciiWhitespace(lines.back()));
}

// c10::OutOfMemoryError begins so. TorchScript keeps the text of an exception but not its type.
constexpr absl::string_view kOutOfMemory[] = {"CUDA out of memory", "DefaultCPUAllocator"};

// True for errors after which the CUDA context is unusable: every later call fails with the same
// one. They are recognised by the text of cudaGetErrorString, which PyTorch includes.
bool LosesTheDevice(absl::string_view text) {
  constexpr absl::string_view kSticky[] = {
      "device-side assert triggered",
      "an illegal memory access was encountered",
      "an illegal instruction was encountered",
      "misaligned address",
      "operation not supported on global/shared address space",
      "invalid program counter",
      "hardware stack error",
      "unspecified launch failure",
      "the launch timed out and was terminated",
      "uncorrectable ECC error encountered",
      "uncorrectable NVLink error detected",
      "context is destroyed",
  };
  return absl::StrContains(text, "CUDA") &&
         std::any_of(std::begin(kSticky), std::end(kSticky),
                     [&](absl::string_view error) { return absl::StrContains(text, error); });
}

}  // namespace

absl::Status StatusOfException(const std::string& doing, const std::exception& exception) {
  const auto* error = dynamic_cast<const c10::Error*>(&exception);
  const std::string text = error != nullptr ? error->what_without_backtrace() : exception.what();
  const std::string message = absl::StrCat(doing, ": ", Reason(text));
  if (dynamic_cast<const c10::OutOfMemoryError*>(&exception) != nullptr ||
      dynamic_cast<const std::bad_alloc*>(&exception) != nullptr ||
      std::any_of(std::begin(kOutOfMemory), std::end(kOutOfMemory),
                  [&](absl::string_view error) { return absl::StrContains(text, error); })) {
    return absl::ResourceExhaustedError(message);
  }
  const absl::Status status = absl::InternalError(message);
  return LosesTheDevice(text) ? DeviceLost(status) : status;
}

absl::Status CatchTorchErrors(const std::string& doing, absl::Status (*call)(void* body),
                              void* body) {
  try {
    const ThreadModes modes;
    return call(body);
  } catch (const std::exception& exception) {
    return StatusOfException(doing, exception);
  }
}

}  // namespace linnet::model
