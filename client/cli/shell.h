// `linnet shell`: what is typed is answered, line by line.
#pragma once

#include <string>

#include "client/cli/cli.h"
#include "client/library/client.h"

namespace linnet::client {

// Where its lines come from: a terminal with an editor, or a pipe.
class LineReader {
 public:
  enum class Got { kLine, kInterrupt, kEnd };
  virtual ~LineReader() = default;
  // kInterrupt: somebody has typed Ctrl-C, and does not mean what he had typed before.
  virtual Got Read(const std::string& prompt, std::string* line) = 0;
};

// Until the end of the lines. `request` says what is translated to what; without a target language
// lines are summarised. A line that begins with a colon is a command.
int RunShell(Client& client, const v1::TranslateRequest& request, LineReader& lines,
             const Environment& environment);

// The same with the terminal, if there is one; its lines are kept in a file if `history`.
int Shell(Client& client, const v1::TranslateRequest& request, bool history,
          const Environment& environment);

}  // namespace linnet::client
