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

// The parsed command line. CLI11 writes into it.
struct Flags {
  ClientOptions client;
  TextOptions texts;
  bool lines = false, document = false, json_lines = false;  // the shape of the input
  bool json = false;
  std::optional<bool> skip_refused;  // --on-error
  v1::TranslateRequest translate;
  v1::SummarizeRequest summarize;
  v1::ScoreRequest score;
  std::string model;    // for `models` and `reload`
  std::string service;  // for `health`
  std::string shell;    // for `completion`
  BenchOptions bench;

  bool has_markup() const {
    return !translate.mime_type().empty() && translate.mime_type() != "text/plain";
  }
  // The input is one text unless other flags say so.
  bool reads_whole() const { return has_markup() || !translate.target_prefix().empty(); }
  bool joins_lines() const { return translate.line_breaks() == v1::LINE_BREAKS_JOIN_PARAGRAPHS; }
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
  CLI::App* completion;
  CLI::App* man_page;  // hidden: the build of the packages calls it
};

// `flags` must outlive the parsing.
Commands AddCommands(CLI::App* app, Flags* flags);

}  // namespace linnet::client
