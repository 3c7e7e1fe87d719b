// The commands of `linnet`. Each returns its exit status and has written what went wrong.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "client/cli/cli.h"
#include "client/cli/print.h"
#include "client/library/client.h"
#include "linnet/v1/text_service.pb.h"

namespace linnet::client {

// What to work on, and how to answer.
struct TextOptions {
  Input input;
  Form form = Form::kText;
  std::string output;         // a file; empty: standard output
  bool resumable = false;     // it has a line for each text
  bool resume = false;        // of the file: behind the lines that it has
  bool force = false;         // whatever it holds
  bool skip_refused = false;  // keeps the place of a text that is refused for itself, and goes on
  CallOptions call;
};

// `request` has everything but the contents.
int Translate(Client& client, const TextOptions& options, v1::TranslateRequest request,
              const Environment& environment);
int Summarize(Client& client, const TextOptions& options, v1::SummarizeRequest request,
              const Environment& environment);
// Arguments are a source and its targets; a line of a file or of standard input is a source, a tab
// and a target. The language as above.
int Score(Client& client, TextOptions options, v1::ScoreRequest request,
          const Environment& environment);
int DetectLanguage(Client& client, const TextOptions& options, const Environment& environment);
int GetModel(Client& client, const std::string& name, Form form, const Environment& environment);
int ListModels(Client& client, Form form, const Environment& environment);
int Health(Client& client, const std::string& service, const Environment& environment);
// Reads a model's folder again, or all of them without a name. A line for each; kExitLocal if one
// failed.
int Reload(Client& client, const std::string& model, Form form, const Environment& environment);

// Fills in the source language of a request that leaves it, and the model, open: that of the one
// model that fits. Of several the server chooses by the texts.
absl::Status SetLanguage(Client& client, const CallOptions& call, v1::TranslateRequest& request);
absl::Status SetLanguage(Client& client, const CallOptions& call, v1::SummarizeRequest& request);
absl::Status SetLanguage(Client& client, const CallOptions& call, v1::ScoreRequest& request);

// Write the error and give the exit status that goes with it: of a call, of this side, of the
// output. Whoever closed a pipe that we write to has had enough and is told nothing.
int Fail(const absl::Status& status, const std::string& note, const Environment& environment);
int FailLocally(const absl::Status& status, const Environment& environment);
int FailToWrite(int cause, const Environment& environment);  // `cause` is an errno

}  // namespace linnet::client
