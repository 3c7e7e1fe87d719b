#pragma once

#include <memory>
#include <string>

#include "client/cli/shell.h"

namespace linnet::client {

// Reads lines from the terminal on standard input, edited with libedit: with emacs' keys, or as
// ~/.editrc says. While a line is edited, Ctrl-C is read as a key and raises no signal.
class LineEditor final : public LineReader {
 public:
  // `history` is the file of earlier lines, readable by its owner alone; empty: none is kept.
  // Reading ends when the descriptor `stop_event` becomes readable; -1: there is none.
  LineEditor(const std::string& history, int stop_event);
  ~LineEditor() override;
  Got Read(const std::string& prompt, std::string* line) override;

 private:
  class Impl;  // keeps libedit out of this header
  std::unique_ptr<Impl> impl_;
};

}  // namespace linnet::client
