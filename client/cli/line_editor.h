#pragma once

#include <memory>
#include <string>

#include "client/cli/shell.h"

namespace linnet::client {

// Lines of the terminal on standard input, edited with libedit: in emacs' way, or what ~/.editrc
// says. While a line is edited, Ctrl-C is a key like others.
class LineEditor final : public LineReader {
 public:
  // `history`: the file of the lines of before, for its owner alone; empty: they are forgotten.
  // `stop_event` becomes readable when nobody shall be waited for; -1: never.
  LineEditor(const std::string& history, int stop_event);
  ~LineEditor() override;
  Got Read(const std::string& prompt, std::string* line) override;

 private:
  class Impl;  // keeps libedit out of this header
  std::unique_ptr<Impl> impl_;
};

}  // namespace linnet::client
