// The flags of `linnet` and its commands.
#pragma once

#include <string>

#include "CLI/CLI.hpp"
#include "client/cli/commands.h"
#include "client/library/client.h"
#include "linnet/v1/text_service.pb.h"

namespace linnet::client {

// All that can be said on the command line. CLI11 writes into it.
struct Flags {
  ClientOptions client;
  TextOptions texts;
  v1::TranslateRequest translate;
  v1::SummarizeRequest summarize;
  v1::ScoreRequest score;
  std::string model;    // of `models`
  std::string service;  // of `health`
};

struct Commands {
  CLI::App* translate;
  CLI::App* summarize;
  CLI::App* score;
  CLI::App* detect;
  CLI::App* models;
  CLI::App* health;
};

// `flags` must outlive the parsing.
Commands AddCommands(CLI::App* app, Flags* flags);

}  // namespace linnet::client
