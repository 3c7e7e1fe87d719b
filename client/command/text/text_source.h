#pragma once

#include <cstddef>
#include <cstdint>
#include <istream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/command/text/resume_record.h"

namespace linnet::client {

// A text of the input.
struct Text {
  // For messages: "argument 2", "notes.txt", "line 7 of standard input", "lines 7 to 9 of
  // notes.txt".
  std::string name;
  std::string content;                      // without its last line end; UTF-8
  std::string ending;                       // that line end, or "\n"; written after the answer
  std::string record;                       // the JSON object that contains the text, if any
  std::string key;                          // the member of `record` that the answer becomes
  int64_t lines = 1;                        // of the input
  int64_t end = 0;                          // bytes of the input up to the text's end
  uint64_t digest = 0;                      // digest of the input up to the text's end
  absl::Status problem = absl::OkStatus();  // why it cannot be sent; later texts may be fine
};

// True if the text is only white space: it is its own answer and is not sent, because a server
// would refuse it.
bool IsBlank(const Text& text);

enum class Shape {
  kWhole,  // a file is a text
  kLines,  // a line is a text
  // The lines between two blank lines are a text, and so is each blank line. After
  // kMaxParagraphBytes a text ends with the line.
  kParagraphs,
  kJsonLines,  // a line is a JSON object whose "text" is a text
};

// The input of a command: arguments, or else files ("-" is standard input), or else standard input.
// An argument is always one text.
struct Input {
  std::vector<std::string> arguments;
  size_t first_argument = 1;  // the number of the first argument, for messages
  std::vector<std::string> files;
  Shape shape = Shape::kWhole;
  bool plain_text = false;  // files and standard input of another format are refused
  // For kJsonLines: the member that is the text, the member that the answer becomes, and others
  // that are written with it. The objects must not have any but the first yet.
  std::string text_key = "text";
  std::string result_key;
  std::vector<std::string> more_keys;
};

// Reads the texts of an Input one by one, on demand. Not thread-safe.
class TextSource {
 public:
  static constexpr size_t kMaxTextBytes = 64 << 20;
  static constexpr size_t kMaxParagraphBytes = 64 << 10;

  // `in` is standard input and must outlive this. Reading a file ends when the descriptor
  // `stop_event` becomes readable, as when nobody writes to a named pipe; -1: never.
  TextSource(Input input, std::istream& in, int stop_event = -1);
  ~TextSource();

  // Returns the next text, nullopt at the end, or INVALID_ARGUMENT if a file or standard input
  // cannot be read, or not to its end. A text that is too long, not UTF-8 or not a JSON object has
  // a `problem`.
  absl::StatusOr<std::optional<Text>> Next();

  // Skips texts without parsing them. INVALID_ARGUMENT if the input has fewer, or if they differ
  // from those of `known`, which may cover fewer texts.
  absl::Status Skip(int64_t texts, const Checkpoint& known);

  // False if Next may block. Then the texts read so far should be sent. Reads what has arrived of
  // the next line: a part of it is no reason to hold back the lines before.
  bool Ready();

  // True if Next has failed because the input is of another format than plain text.
  bool is_foreign() const { return foreign_; }
  int64_t bytes_read() const { return bytes_read_; }
  // The size of all files together; 0 if one of them has none. `in_bytes` is that of standard
  // input.
  int64_t TotalBytes(int64_t in_bytes) const;

 private:
  class File;

  absl::Status Open(const std::string& file);
  absl::StatusOr<std::optional<Text>> Read();
  absl::StatusOr<std::optional<Text>> NextRaw();
  // Reads the lines behind the first one of a paragraph.
  absl::Status ReadParagraph(Text* text);
  // An error if what was read of the open file is of another format than plain text.
  absl::Status CheckFormat(absl::string_view text);
  absl::Status CannotRead(const absl::Status& status) const;
  // Removes a byte order mark from the first text of a file.
  void SkipByteOrderMark(std::string* content);

  const Input input_;
  std::istream& standard_input_;
  const int stop_event_;
  const std::vector<std::string> answer_keys_;  // the members that an object must not have

  size_t next_argument_ = 0;
  size_t next_file_ = 0;
  std::unique_ptr<File> file_;
  bool regular_ = false;          // a file whose next line never has to be waited for
  std::istream* open_ = nullptr;  // that of file_, or standard_input_
  std::string name_;              // of the open file
  bool at_start_ = false;         // true before the first read of the open file
  size_t lines_read_ = 0;
  int64_t bytes_read_ = 0;
  std::string begun_;  // what Ready has read of the next line
  // The blank line behind a paragraph, which was read with it.
  std::optional<std::string> blank_;
  std::string start_;  // of the open file, for its format
  bool foreign_ = false;
  uint64_t digest_ = kEmptyDigest;
};

}  // namespace linnet::client
