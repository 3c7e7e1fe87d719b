#include "model/torch/border.h"

#include <c10/core/InferenceMode.h>
#include <c10/util/Exception.h>
#include <torch/csrc/jit/runtime/graph_executor.h>

#include <new>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace linnet::model {
namespace {

// TorchScript wraps what a module raised in a listing of the code; the reason is the last line that
// says something.
std::string Reason(const std::string& text) {
  if (text.find("TorchScript") == std::string::npos) return text.substr(0, text.find('\n'));
  const std::vector<std::string> lines = absl::StrSplit(text, '\n', absl::SkipWhitespace());
  return lines.empty() ? text : std::string(absl::StripAsciiWhitespace(lines.back()));
}

}  // namespace

absl::Status StatusOfException(const std::string& doing, const std::exception& exception) {
  const auto* error = dynamic_cast<const c10::Error*>(&exception);
  const std::string text = error != nullptr ? error->what_without_backtrace() : exception.what();
  const std::string message = absl::StrCat(doing, ": ", Reason(text));
  if (dynamic_cast<const c10::OutOfMemoryError*>(&exception) != nullptr ||
      dynamic_cast<const std::bad_alloc*>(&exception) != nullptr) {
    return absl::ResourceExhaustedError(message);
  }
  return absl::InternalError(message);
}

absl::Status AtTheBorder(const std::string& doing, absl::Status (*call)(void* body), void* body) {
  try {
    c10::InferenceMode inference;
    torch::jit::GraphOptimizerEnabledGuard interpret(false);
    return call(body);
  } catch (const std::exception& exception) {
    return StatusOfException(doing, exception);
  }
}

}  // namespace linnet::model
