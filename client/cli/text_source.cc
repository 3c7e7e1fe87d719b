#include "client/cli/text_source.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "client/library/utf8.h"

namespace linnet::client {
namespace {

enum class Found { kLineEnd, kEnd, kTooLong };

// std::getline with a bound. The line end is not part of `text`.
Found ReadLine(std::istream& in, size_t max_bytes, std::string* text) {
  std::streambuf& buffer = *in.rdbuf();
  for (int byte = buffer.sbumpc(); byte != EOF; byte = buffer.sbumpc()) {
    if (byte == '\n') return Found::kLineEnd;
    if (text->size() == max_bytes) return Found::kTooLong;
    text->push_back(static_cast<char>(byte));
  }
  in.setstate(std::ios::eofbit);
  return Found::kEnd;
}

Found ReadAll(std::istream& in, size_t max_bytes, std::string* text) {
  char chunk[1 << 16];
  while (in.read(chunk, sizeof chunk), in.gcount() > 0) {
    text->append(chunk, in.gcount());
    if (text->size() > max_bytes) return Found::kTooLong;
  }
  return Found::kEnd;
}

// Moves the last line end from the content to the ending.
void SplitEnding(Text* text) {
  const std::string& content = text->content;
  size_t end = content.size();
  if (end == 0 || content[end - 1] != '\n') return;
  --end;
  if (end > 0 && content[end - 1] == '\r') --end;
  text->ending = content.substr(end);
  text->content.resize(end);
}

}  // namespace

bool IsBlank(const Text& text) {
  return std::all_of(text.content.begin(), text.content.end(), absl::ascii_isspace);
}

TextSource::TextSource(std::vector<std::string> arguments, std::vector<std::string> files,
                       bool lines, std::istream& in, size_t first_argument)
    : arguments_(std::move(arguments)),
      files_(files.empty() && arguments_.empty() ? std::vector<std::string>{"-"}
                                                 : std::move(files)),
      lines_(lines),
      standard_input_(in),
      first_argument_(first_argument) {}

absl::StatusOr<std::optional<Text>> TextSource::Next() {
  std::optional<Text> text;
  if (next_argument_ < arguments_.size()) {
    const size_t index = next_argument_++;
    text = Text{absl::StrCat("argument ", first_argument_ + index), arguments_[index], "\n"};
  }
  while (!text.has_value() && (open_ != nullptr || next_file_ < files_.size())) {
    if (open_ == nullptr) {
      if (absl::Status status = Open(files_[next_file_++]); !status.ok()) return status;
    }
    absl::StatusOr<std::optional<Text>> read = Read();
    if (!read.ok()) return read;
    text = *std::move(read);
    if (!text.has_value()) open_ = nullptr;
  }
  if (!text.has_value()) return std::nullopt;
  if (absl::Status status = CheckUtf8(text->name, text->content); !status.ok()) return status;
  return text;
}

bool TextSource::ready() const {
  return open_ != &standard_input_ || standard_input_.rdbuf()->in_avail() > 0;
}

absl::Status TextSource::Open(const std::string& file) {
  lines_read_ = 0;
  if (file == "-") {
    open_ = &standard_input_;
    name_ = "standard input";
    return absl::OkStatus();
  }
  file_ = std::ifstream(file, std::ios::binary);
  // A folder opens, and fails when it is read.
  if (!file_.is_open() || (file_.peek() == EOF && !file_.eof())) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot read \"", file, "\": ", std::strerror(errno)));
  }
  file_.clear();  // of the eofbit of an empty file
  open_ = &file_;
  name_ = file;
  return absl::OkStatus();
}

absl::StatusOr<std::optional<Text>> TextSource::Read() {
  if (open_->eof()) return std::nullopt;
  Text text{name_, "", "\n"};
  Found found;
  if (lines_) {
    found = ReadLine(*open_, kMaxTextBytes, &text.content);
    if (found == Found::kEnd && text.content.empty()) return std::nullopt;
    text.name = absl::StrCat("line ", ++lines_read_, " of ", name_);
    if (found == Found::kLineEnd) text.content.push_back('\n');
  } else {
    found = ReadAll(*open_, kMaxTextBytes, &text.content);
    if (text.content.empty()) return std::nullopt;
  }
  if (found == Found::kTooLong) {
    return absl::InvalidArgumentError(absl::StrCat(text.name, " is longer than ", kMaxTextBytes,
                                                   " bytes",
                                                   lines_ ? "" : ": --lines sends it in parts"));
  }
  SplitEnding(&text);
  return text;
}

}  // namespace linnet::client
