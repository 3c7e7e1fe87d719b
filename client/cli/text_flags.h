// The flags that commands about texts have in common.
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

// --json, as `description` says.
void AddJson(CLI::App* command, Flags* flags, const char* description);
// --on-error: a text that is refused ends the run or leaves its place empty.
void AddOnError(CLI::App* command, Flags* flags);
// The texts and where the answers go. `lines`: a line is a text unless something else is said.
// `lists` tells whether an answer may take several lines.
void AddTexts(CLI::App* command, Flags* flags, bool lines, std::function<bool()> lists);
// --glossary: a file of terms.
void AddGlossary(CLI::App* command, v1::TranslateRequest* request);
// --scores, beside the flags of AddTexts.
void AddScores(CLI::App* command, Flags* flags);
// Flags that `translate`, `summarize` and `score` have in common.
template <typename Request>
void AddRequest(CLI::App* command, Flags* flags, Request* request);
// Flags of the search; `options` gives the message they go to, made when the first is set.
void AddDecoding(CLI::App* command, std::function<v1::DecodingOptions*()> options);

// A flag whose value is one of a few words.
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
