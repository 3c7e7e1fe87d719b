// The flags of `linnet` and its commands.
#pragma once

#include <optional>
#include <string>

#include "CLI/CLI.hpp"
#include "client/cli/bench.h"
#include "client/cli/commands.h"
#include "client/library/client.h"
#include "linnet/v1/text_service.pb.h"

namespace linnet::client {

// All that can be said on the command line. CLI11 writes into it.
struct Flags {
  ClientOptions client;
  TextOptions texts;
  bool lines = false, document = false, json_lines = false;  // of the input
  bool json = false;
  std::optional<bool> skip_refused;  // --on-error
  v1::TranslateRequest translate;
  v1::SummarizeRequest summarize;
  v1::ScoreRequest score;
  std::string model;    // of `models` and `reload`
  std::string service;  // of `health`
  std::string shell;    // of `completion`
  BenchOptions bench;
  bool no_history = false;  // of `shell`
};

struct Commands {
  CLI::App* translate;
  CLI::App* summarize;
  CLI::App* score;
  CLI::App* detect;
  CLI::App* models;
  CLI::App* health;
  CLI::App* reload;
  CLI::App* bench;
  CLI::App* shell;
  CLI::App* completion;
  CLI::App* man_page;  // not listed: for whoever makes packages
};

// `flags` must outlive the parsing.
Commands AddCommands(CLI::App* app, Flags* flags);

}  // namespace linnet::client
