// The commands of `linnet`. Each writes its errors and returns the exit status.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "client/cli/cli.h"
#include "client/cli/text/print.h"
#include "client/command/source_language.h"
#include "client/library/client.h"
#include "linnet/v1/text_service.pb.h"

namespace linnet::client {

// The input of a command about texts and the form of its output.
struct TextOptions {
  Input input;
  Form form = Form::kText;
  std::string output;         // a file; empty: standard output
  bool resumable = false;     // the output has one line for each text
  bool resume = false;        // append after the whole lines of the output
  bool force = false;         // write the output even if it holds other work
  bool skip_refused = false;  // leave the answer of a refused text empty and continue
  bool quiet = false;         // write errors alone: no progress, and no notes about answers
  // The run ends if a server that is too busy has answered nothing for so long.
  absl::Duration busy_timeout = absl::ZeroDuration();
  CallOptions call;
};

// `request` has everything but the contents.
int Translate(Client& client, const TextOptions& options, v1::TranslateRequest request,
              const Environment& environment);
int Summarize(Client& client, const TextOptions& options, v1::SummarizeRequest request,
              const Environment& environment);
// Arguments are a source and its targets; a line of a file or of standard input is a source, a tab
// and a target.
int Score(Client& client, TextOptions options, v1::ScoreRequest request,
          const Environment& environment);
int DetectLanguage(Client& client, const TextOptions& options, const Environment& environment);
int GetModel(Client& client, const std::string& name, Form form, const Environment& environment);
int ListModels(Client& client, Form form, const Environment& environment);
int Health(Client& client, const std::string& service, const Environment& environment);
// Makes the server read a model's folder again, or all of them without a name. Writes a line for
// each; kExitLocal if one failed.
int Reload(Client& client, const std::string& model, Form form, const Environment& environment);

// Write an error and return its exit status. Fail is for failed calls, FailLocally for errors of
// this side, FailToWrite for the output; it is silent on EPIPE, since the reader has closed the
// pipe on purpose.
int Fail(const absl::Status& status, const std::string& note, const Environment& environment);
int FailLocally(const absl::Status& status, const Environment& environment);
int FailToWrite(int cause, const Environment& environment);  // `cause` is an errno

}  // namespace linnet::client
