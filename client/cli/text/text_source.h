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
#include "client/cli/text/resume_record.h"

namespace linnet::client {

// A text of the input.
struct Text {
  std::string name;     // for messages: "argument 2", "notes.txt", "line 7 of standard input"
  std::string content;  // without its last line end; UTF-8
  std::string ending;   // that line end, or "\n"; written after the answer
  std::string record;   // the JSON object that contains the text, if any
  std::string key;      // the member of `record` that the answer becomes
  int64_t end = 0;      // bytes of the input up to the text's end
  uint64_t digest = 0;  // digest of the input up to the text's end
  absl::Status problem = absl::OkStatus();  // why it cannot be sent; later texts may be fine
};

// True if the text is only white space: it is its own answer and is not sent, because a server
// would refuse it.
bool IsBlank(const Text& text);

enum class Shape {
  kWhole,      // a file is a text
  kLines,      // a line is a text
  kJsonLines,  // a line is a JSON object whose "text" is a text
};

// The input of a command: arguments, or else files ("-" is standard input), or else standard input.
// An argument is always one text.
struct Input {
  std::vector<std::string> arguments;
  size_t first_argument = 1;  // the number of the first argument, for messages
  std::vector<std::string> files;
  Shape shape = Shape::kWhole;
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

  int64_t bytes_read() const { return bytes_read_; }
  // The size of all files together; 0 if one of them has none. `in_bytes` is that of standard
  // input.
  int64_t TotalBytes(int64_t in_bytes) const;

 private:
  class File;

  absl::Status Open(const std::string& file);
  absl::StatusOr<std::optional<Text>> Read();
  absl::StatusOr<std::optional<Text>> NextRaw();
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
  uint64_t digest_ = kEmptyDigest;
};

}  // namespace linnet::client
