// `linnet shell`: answers the typed lines one by one.
#pragma once

#include <string>

#include "client/cli/cli.h"
#include "client/library/client.h"

namespace linnet::client {

// The source of the shell's lines: a terminal with an editor, or a pipe.
class LineReader {
 public:
  enum class Got { kLine, kInterrupt, kEnd };
  virtual ~LineReader() = default;
  // Reads a line. kInterrupt: the user typed Ctrl-C to discard the line.
  virtual Got Read(const std::string& prompt, std::string* line) = 0;
};

// Answers lines until their end. `request` has the languages and options; without a target language
// lines are summarised. A line that begins with a colon is a command.
int RunShell(Client& client, const v1::TranslateRequest& request, LineReader& lines,
             const Environment& environment);

// Runs the shell on the terminal, if there is one; keeps its lines in a file if `history`.
int Shell(Client& client, const v1::TranslateRequest& request, bool history,
          const Environment& environment);

}  // namespace linnet::client
