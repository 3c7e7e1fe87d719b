#include "client/command/text/text_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ios>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/command/text/file_format.h"
#include "client/command/text/input_buffer.h"
#include "client/command/text/json_lines.h"
#include "client/command/text/white_space.h"
#include "client/library/utf8.h"
#include "proto/status_macros.h"

namespace linnet::client {
namespace {

enum class Found { kLineEnd, kEnd, kTooLong };

// std::getline with a bound: a longer line is dropped. The line end is not part of `text`. Adds the
// number of bytes read to `bytes`.
Found ReadLine(std::istream& in, size_t max_bytes, std::string* text, int64_t* bytes) {
  std::streambuf& buffer = *in.rdbuf();
  bool too_long = false;
  for (int byte = buffer.sbumpc(); byte != EOF; byte = buffer.sbumpc()) {
    ++*bytes;
    if (byte == '\n') return too_long ? Found::kTooLong : Found::kLineEnd;
    too_long = too_long || text->size() == max_bytes;
    if (!too_long) text->push_back(static_cast<char>(byte));
  }
  in.setstate(std::ios::eofbit);
  return too_long ? Found::kTooLong : Found::kEnd;
}

Found ReadAll(std::istream& in, size_t max_bytes, std::string* text, int64_t* bytes) {
  char chunk[1 << 16];
  bool too_long = false;
  for (std::streamsize read = 1; read > 0 && !too_long;) {
    read = in.rdbuf()->sgetn(chunk, sizeof chunk);
    *bytes += read;
    text->append(chunk, read);
    too_long = text->size() > max_bytes;
  }
  in.setstate(std::ios::eofbit);  // of a text that is too long, the rest is not read
  return too_long ? Found::kTooLong : Found::kEnd;
}

// Calls one of these two, and returns a read error as a status. A stream buffer reports it by an
// exception with the errno (input_buffer.h).
absl::StatusOr<Found> CheckedRead(decltype(ReadLine) read, std::istream& in, std::string* text,
                                  int64_t* bytes) {
  try {
    return read(in, TextSource::kMaxTextBytes, text, bytes);
  } catch (const std::ios_base::failure& error) {
    return absl::InvalidArgumentError(error.code().message());
  }
}

// The size of a regular file; nothing of a pipe, a device, or a file that is not there.
std::optional<int64_t> RegularSize(const std::string& file) {
  struct stat found = {};
  if (stat(file.c_str(), &found) != 0 || !S_ISREG(found.st_mode)) return std::nullopt;
  return found.st_size;
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

class TextSource::File {
 public:
  // Opening a named pipe does not wait for a writer: reading does, and a stop ends that.
  File(const std::string& path, int stop_event)
      : descriptor_(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)),
        buffer_(descriptor_, stop_event),
        stream_(&buffer_) {}
  ~File() {
    if (descriptor_ >= 0) close(descriptor_);
  }

  bool is_open() const { return descriptor_ >= 0; }
  std::istream& stream() { return stream_; }

 private:
  const int descriptor_;
  InputBuffer buffer_;
  std::istream stream_;
};

bool IsBlank(const Text& text) { return IsWhiteSpace(text.content); }

TextSource::TextSource(Input input, std::istream& in, int stop_event)
    : input_([&input] {
        if (input.files.empty() && input.arguments.empty()) input.files = {"-"};
        return std::move(input);
      }()),
      standard_input_(in),
      stop_event_(stop_event),
      answer_keys_([this] {
        std::vector<std::string> keys = input_.more_keys;
        keys.insert(keys.begin(), input_.result_key);
        return keys;
      }()) {}

TextSource::~TextSource() = default;

absl::StatusOr<std::optional<Text>> TextSource::NextRaw() {
  if (next_argument_ < input_.arguments.size()) {
    const size_t index = next_argument_++;
    return Text{absl::StrCat("argument ", input_.first_argument + index), input_.arguments[index],
                "\n", "", ""};
  }
  while (open_ != nullptr || next_file_ < input_.files.size()) {
    if (open_ == nullptr) {
      RETURN_IF_ERROR(Open(input_.files[next_file_++]));
    }
    absl::StatusOr<std::optional<Text>> read = Read();
    if (!read.ok() || read->has_value()) return read;
    open_ = nullptr;
  }
  return std::nullopt;
}

absl::StatusOr<std::optional<Text>> TextSource::Next() {
  absl::StatusOr<std::optional<Text>> next = NextRaw();
  if (!next.ok() || !next->has_value()) return next;
  Text& text = **next;
  text.problem.Update(CheckUtf8(text.name, text.content));
  if (input_.shape != Shape::kJsonLines || IsBlank(text)) return next;
  text.record = std::exchange(text.content, "");
  text.key = input_.result_key;
  if (!text.problem.ok()) return next;
  absl::StatusOr<std::string> content = TextOfRecord(text.record, input_.text_key, answer_keys_);
  if (content.ok()) {
    text.content = *std::move(content);
  } else {
    text.problem =
        absl::InvalidArgumentError(absl::StrCat(text.name, " ", content.status().message()));
  }
  return next;
}

absl::Status TextSource::Skip(int64_t texts, const Checkpoint& known) {
  for (int64_t skipped = 0; skipped < texts; ++skipped) {
    ASSIGN_OR_RETURN(const std::optional<Text> text, NextRaw());
    if (text.has_value()) {
      if (skipped + 1 != known.texts || text->digest == known.digest) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("the output was made from another input: of the first ", known.texts,
                       " lines some differ from those that were answered; --force continues all "
                       "the same"));
    }
    return absl::InvalidArgumentError(absl::StrCat("the output has ", texts,
                                                   " lines and the input only ", skipped,
                                                   ": it was not made from this input"));
  }
  return absl::OkStatus();
}

int64_t TextSource::TotalBytes(int64_t in_bytes) const {
  int64_t total = 0;
  for (const std::string& file : input_.files) {
    const int64_t bytes = file == "-" ? in_bytes : RegularSize(file).value_or(0);
    if (bytes == 0) return 0;
    total += bytes;
  }
  return total;
}

bool TextSource::Ready() {
  if (open_ == nullptr || regular_ || blank_.has_value()) return true;
  std::streambuf& buffer = *open_->rdbuf();
  if (input_.shape == Shape::kWhole || input_.shape == Shape::kParagraphs)
    return buffer.in_avail() > 0;
  try {
    while (begun_.size() < kMaxTextBytes) {
      if (buffer.in_avail() <= 0) return false;
      if (buffer.sgetc() == '\n') return true;
      begun_.push_back(static_cast<char>(buffer.sbumpc()));
    }
  } catch (const std::ios_base::failure&) {  // Next meets it again, and reports it
  }
  return true;
}

absl::Status TextSource::Open(const std::string& file) {
  lines_read_ = 0;
  at_start_ = true;
  start_.clear();
  if (file == "-") {
    open_ = &standard_input_;
    regular_ = false;
    name_ = "standard input";
    return absl::OkStatus();
  }
  file_ = std::make_unique<File>(file, stop_event_);
  if (!file_->is_open()) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot read \"", file, "\": ", std::strerror(errno)));
  }
  regular_ = RegularSize(file).has_value();
  open_ = &file_->stream();
  name_ = file;
  return absl::OkStatus();
}

void TextSource::SkipByteOrderMark(std::string* content) {
  if (std::exchange(at_start_, false) && absl::StartsWith(*content, kByteOrderMark)) {
    content->erase(0, kByteOrderMark.size());
  }
}

absl::Status TextSource::CheckFormat(absl::string_view text) {
  if (!input_.plain_text || start_.size() >= kFormatBytes) return absl::OkStatus();
  start_.append(text.data(), std::min(text.size(), kFormatBytes));
  const std::optional<absl::string_view> format = FormatOfContent(start_);
  if (!format.has_value()) return absl::OkStatus();
  foreign_ = true;
  const absl::string_view quote = open_ == &standard_input_ ? "" : "\"";
  return UnsupportedFormat(absl::StrCat(quote, name_, quote), *format);
}

absl::Status TextSource::CannotRead(const absl::Status& status) const {
  const absl::string_view quote = open_ == &standard_input_ ? "" : "\"";
  return absl::InvalidArgumentError(
      absl::StrCat("cannot read ", quote, name_, quote, ": ", status.message()));
}

absl::Status TextSource::ReadParagraph(Text* text) {
  while (text->content.size() < kMaxParagraphBytes) {
    std::string line;
    const absl::StatusOr<Found> read = CheckedRead(ReadLine, *open_, &line, &bytes_read_);
    if (!read.ok()) return CannotRead(read.status());
    if (*read == Found::kEnd && line.empty()) break;
    if (*read == Found::kLineEnd) line.push_back('\n');
    if (IsWhiteSpace(line)) {
      blank_ = std::move(line);
      break;
    }
    ++text->lines;
    text->content += line;
    if (*read == Found::kTooLong) {
      return absl::InvalidArgumentError(
          absl::StrCat(name_, " has a line that is longer than ", kMaxTextBytes, " bytes"));
    }
    if (*read == Found::kEnd) break;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::optional<Text>> TextSource::Read() {
  if (open_->eof() && !blank_.has_value()) return std::nullopt;
  Text text{name_, std::exchange(begun_, ""), "\n", "", ""};
  bytes_read_ += std::ssize(text.content);
  const bool lines = input_.shape != Shape::kWhole;
  Found found = Found::kLineEnd;
  if (blank_.has_value()) {
    text.content = *std::exchange(blank_, std::nullopt);
  } else {
    const absl::StatusOr<Found> read =
        CheckedRead(lines ? ReadLine : ReadAll, *open_, &text.content, &bytes_read_);
    if (!read.ok()) return CannotRead(read.status());
    found = *read;
    SkipByteOrderMark(&text.content);
    if (lines && found == Found::kEnd && text.content.empty()) return std::nullopt;
    if (lines && found == Found::kLineEnd) text.content.push_back('\n');
  }
  if (!lines && text.content.empty()) return std::nullopt;
  const bool goes_on =
      input_.shape == Shape::kParagraphs && found == Found::kLineEnd && !IsWhiteSpace(text.content);
  if (goes_on) RETURN_IF_ERROR(ReadParagraph(&text));
  RETURN_IF_ERROR(CheckFormat(text.content));
  if (lines) {
    text.name = text.lines == 1 ? absl::StrCat("line ", lines_read_ + 1, " of ", name_)
                                : absl::StrCat("lines ", lines_read_ + 1, " to ",
                                               lines_read_ + text.lines, " of ", name_);
    lines_read_ += text.lines;
  }
  if (found == Found::kTooLong) {
    text.content.clear();
    text.problem = absl::InvalidArgumentError(
        absl::StrCat(text.name, " is longer than ", kMaxTextBytes, " bytes",
                     lines ? "" : ": --lines sends it in parts"));
  }
  text.end = bytes_read_;
  SplitEnding(&text);
  // Hash "\n" for any line end: a last line without one may have been extended by a later write.
  digest_ = Digest(Digest(digest_, text.content), "\n");
  text.digest = digest_;
  return text;
}

}  // namespace linnet::client
