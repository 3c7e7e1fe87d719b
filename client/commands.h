// The four commands of `linnet`. Each returns its exit status and has written what went wrong.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "client/cli.h"
#include "client/client.h"
#include "client/print.h"
#include "linnet/v1/text_service.pb.h"

namespace linnet::client {

// What to work on, and how to answer.
struct TextOptions {
  std::vector<std::string> arguments;
  std::vector<std::string> files;
  bool lines = false;
  Form form = Form::kText;
};

// `request` has everything but the contents. Without a source language and a model, the language is
// that of the one model that fits; several are an error that lists them.
int Translate(Client& client, const TextOptions& options, v1::TranslateRequest request,
              const Environment& environment);
int Summarize(Client& client, const TextOptions& options, v1::SummarizeRequest request,
              const Environment& environment);
int ListModels(Client& client, Form form, const Environment& environment);
int Health(Client& client, const std::string& service, const Environment& environment);

}  // namespace linnet::client
