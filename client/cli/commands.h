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
  std::vector<std::string> arguments;
  size_t first_argument = 1;  // its number, for messages
  std::vector<std::string> files;
  bool lines = false;
  Form form = Form::kText;
  CallOptions call;
};

// `request` has everything but the contents. Without a source language and a model, the language is
// that of the one model that fits; several are an error that lists them.
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

// Write the error and give the exit status that goes with it: of a call, of this side, of standard
// output.
int Fail(const absl::Status& status, const std::string& note, const Environment& environment);
int FailLocally(const absl::Status& status, const Environment& environment);
int FailToWrite(const Environment& environment);

}  // namespace linnet::client
