#pragma once

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <istream>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/cli/resume_record.h"

namespace linnet::client {

struct Text {
  std::string name;     // for messages: "argument 2", "notes.txt", "line 7 of standard input"
  std::string content;  // without its last line end; UTF-8
  std::string ending;   // that line end, or "\n": goes behind the answer
  std::string record;   // the object of JSON that it stood in
  std::string key;      // of that, the member that the answer becomes
  int64_t end = 0;      // bytes of the input up to its end
  uint64_t digest = 0;  // of the input up to its end
  absl::Status problem = absl::OkStatus();  // why it cannot be sent; those behind it may be fine
};

// True if there is nothing to translate: such a text is its own answer and is not sent.
bool IsBlank(const Text& text);

enum class Shape {
  kWhole,      // a file is a text
  kLines,      // a line is one
  kJsonLines,  // a line is an object of JSON, whose "text" is one
};

// What to work on: arguments, or else files ("-" is standard input), or else standard input. An
// argument is a text whatever the shape.
struct Input {
  std::vector<std::string> arguments;
  size_t first_argument = 1;  // its number, for messages
  std::vector<std::string> files;
  Shape shape = Shape::kWhole;
  // Of objects: the member that is the text, and the one that the answer becomes, which they may
  // not have yet.
  std::string text_key = "text";
  std::string result_key;
};

// Texts, read when they are asked for.
class TextSource {
 public:
  static constexpr size_t kMaxTextBytes = 64 << 20;

  // `in` is standard input and must live as long.
  TextSource(Input input, std::istream& in);

  // The next text, nothing at the end, or INVALID_ARGUMENT if there is a file that cannot be read.
  // One that is too long, not UTF-8 or no object of JSON has a problem.
  absl::StatusOr<std::optional<Text>> Next();

  // Passes over texts, of which only the ends are looked at. INVALID_ARGUMENT if there are fewer,
  // or if they are not those of `known`, which may be fewer.
  absl::Status Skip(int64_t texts, const Checkpoint& known);

  // False if Next may have to wait for somebody to write. Then is the time to answer what came so
  // far.
  bool ready() const;

  int64_t bytes_read() const { return bytes_read_; }
  // Of all files together; 0 if one of them has no size. `in_bytes`: of standard input.
  int64_t TotalBytes(int64_t in_bytes) const;

 private:
  absl::Status Open(const std::string& file);
  absl::StatusOr<std::optional<Text>> Read();
  absl::StatusOr<std::optional<Text>> NextRaw();
  // A byte order mark is no part of the first text of a file.
  void SkipByteOrderMark(std::string* content);

  const Input input_;
  std::istream& standard_input_;

  size_t next_argument_ = 0;
  size_t next_file_ = 0;
  std::ifstream file_;
  std::istream* open_ = nullptr;  // file_ or standard_input_
  std::string name_;              // of what is open
  bool at_start_ = false;         // of it
  size_t lines_read_ = 0;
  int64_t bytes_read_ = 0;
  uint64_t digest_ = kEmptyDigest;
};

}  // namespace linnet::client
