#include "client/command/text/resume_record.h"

#include <fcntl.h>
#include <unistd.h>

#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "proto/read_file.h"

namespace linnet::client {
namespace {

constexpr absl::string_view kHeader = "linnet-resume-3";
constexpr absl::string_view kFormerHeader = "linnet-resume-2";  // without the bytes
constexpr absl::string_view kOldHeader = "linnet-resume-1";     // nor the refused texts

constexpr int64_t kMaxBytes = 4096;  // one line of five words

std::string RecordPath(const std::string& output) { return output + ".resume"; }

}  // namespace

uint64_t Digest(uint64_t seed, absl::string_view bytes) {
  for (const char byte : bytes) {
    seed = (seed ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
  }
  return seed;
}

std::optional<ResumeRecord::Content> ResumeRecord::Read(const std::string& output) {
  const std::string text = ReadFile(RecordPath(output), kMaxBytes).value_or("");
  const std::vector<absl::string_view> words =
      absl::StrSplit(text, absl::ByAnyChar(" \n"), absl::SkipEmpty());
  Content content;
  const bool old = words.size() == 4 && words[0] == kOldHeader;
  const bool former = words.size() == 5 && words[0] == kFormerHeader;
  if (!(old || former || (words.size() == 6 && words[0] == kHeader)) ||
      !absl::SimpleHexAtoi(words[1], &content.settings) ||
      !absl::SimpleAtoi(words[2], &content.done.texts) ||
      !absl::SimpleHexAtoi(words[3], &content.done.digest) ||
      !(old || absl::SimpleAtoi(words[4], &content.done.refused)) ||
      !(old || former || absl::SimpleAtoi(words[5], &content.done.bytes))) {
    return std::nullopt;
  }
  return content;
}

ResumeRecord::ResumeRecord(const std::string& output, uint64_t settings)
    : path_(RecordPath(output)), settings_(settings) {}

ResumeRecord::~ResumeRecord() {
  if (file_ >= 0 && texts_ == 0) Remove();
  if (file_ >= 0) close(file_);
}

void ResumeRecord::Write(const Checkpoint& done) {
  if (file_ < 0) {
    file_ = open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666);
  }
  texts_ = done.texts;
  // The text has a fixed size, so that one write replaces the whole former text.
  const std::string text = absl::StrFormat("%s %016x %020d %016x %020d %020d\n", kHeader, settings_,
                                           done.texts, done.digest, done.refused, done.bytes);
  if (file_ >= 0 && pwrite(file_, text.data(), text.size(), 0) < 0) Remove();
}

void ResumeRecord::Remove() {
  unlink(path_.c_str());
  if (file_ >= 0) close(file_);
  file_ = -1;
}

}  // namespace linnet::client
