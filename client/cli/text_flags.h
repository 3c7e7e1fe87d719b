// The flags that the commands about texts share.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/cli_flags.h"
#include "linnet/v1/text_service.pb.h"

namespace linnet::client {

// Adds --json with the help text `description`.
void AddJson(CLI::App* command, Flags* flags, const char* description);
// Adds --on-error: a refused text ends the run or leaves its answer empty.
void AddOnError(CLI::App* command, Flags* flags);
// Adds the flags for input and output. If `lines`, a line is a text by default. `lists` returns
// whether an answer may take several lines.
void AddTexts(CLI::App* command, Flags* flags, bool lines, std::function<bool()> lists);
// Adds --glossary: a file of terms.
void AddGlossary(CLI::App* command, v1::TranslateRequest* request);
// Adds --scores. Call it after AddTexts.
void AddScores(CLI::App* command, Flags* flags);
// Adds the flags that `translate`, `summarize` and `score` share.
template <typename Request>
void AddRequest(CLI::App* command, Flags* flags, Request* request);
// Adds a flag whose value is one of a few words.
template <typename Value>
void AddChoice(CLI::App* command, const char* flag,
               const std::vector<std::pair<std::string, Value>>& choices,
               std::function<void(Value)> set, const char* about) {
  std::vector<std::string> words;
  for (const auto& [word, value] : choices) words.push_back(word);
  const auto choose = [=](const std::string& text) {
    for (const auto& [word, value] : choices) {
      if (word == text) return set(value);
    }
    throw CLI::ValidationError(
        flag, absl::StrCat("\"", text, "\" is none of ", absl::StrJoin(words, ", ")));
  };
  command->add_option_function<std::string>(flag, choose, about)
      ->type_name(absl::StrJoin(words, "|"));
}

}  // namespace linnet::client
