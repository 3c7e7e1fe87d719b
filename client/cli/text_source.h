#pragma once

#include <cstddef>
#include <fstream>
#include <istream>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace linnet::client {

struct Text {
  std::string name;     // for messages: "argument 2", "notes.txt", "line 7 of standard input"
  std::string content;  // without its last line end; UTF-8
  std::string ending;   // that line end, or "\n": goes behind the answer
};

// True if there is nothing to translate: such a text is its own answer and is not sent.
bool IsBlank(const Text& text);

// What a command works on: its arguments, or else files ("-" is standard input), or else standard
// input. A text is an argument, or a whole file, or with `lines` each line of one. Texts are read
// when they are asked for.
class TextSource {
 public:
  static constexpr size_t kMaxTextBytes = 64 << 20;

  // `in` is standard input and must live as long; `first_argument` is the number of the first one,
  // in their names.
  TextSource(std::vector<std::string> arguments, std::vector<std::string> files, bool lines,
             std::istream& in, size_t first_argument = 1);

  // The next text, nothing at the end, or INVALID_ARGUMENT if it cannot be read, is too long or is
  // not UTF-8.
  absl::StatusOr<std::optional<Text>> Next();

  // False if Next may have to wait for somebody to write. Then is the time to answer what came so
  // far.
  bool ready() const;

 private:
  absl::Status Open(const std::string& file);
  absl::StatusOr<std::optional<Text>> Read();

  const std::vector<std::string> arguments_;
  const std::vector<std::string> files_;
  const bool lines_;
  std::istream& standard_input_;
  const size_t first_argument_;

  size_t next_argument_ = 0;
  size_t next_file_ = 0;
  std::ifstream file_;
  std::istream* open_ = nullptr;  // file_ or standard_input_
  std::string name_;              // of what is open
  size_t lines_read_ = 0;
};

}  // namespace linnet::client
