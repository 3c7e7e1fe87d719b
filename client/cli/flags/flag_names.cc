#include "client/cli/flags/flag_names.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "proto/decoding_flags.h"

namespace linnet::client {
namespace {

// The messages and the word before a field in an error; where both are, the word comes first.
constexpr absl::string_view kMessages[] = {"options.", "request.", "settings."};
constexpr absl::string_view kField = "field ";

struct FlagName {
  absl::string_view field, flag;
};

const std::vector<FlagName>& Names() {
  static const auto& names = *[] {
    auto* all = new std::vector<FlagName>{
        {"source_language_code", "--from"},
        {"target_language_code", "--to"},
        {"language_code", "--language"},
        {"line_breaks", "--line-breaks"},
        {"long_input", "--long-input"},
        {"mime_type", "--mime-type"},
        {"protected_patterns", "--protected-pattern"},
        {"target_prefix", "--target-prefix"},
        {"markup.ignore_tags", "--ignore-tag"},
        {"markup.splitting_tags", "--splitting-tag"},
        {"markup.non_splitting_tags", "--non-splitting-tag"},
        {"style", "--style"},
        {"length.words", "--summary-words"},
        {"length.sentences", "--summary-sentences"},
        {"length", "--summary-words"},
        {"word_scores", "--word-scores"},
        {"alignments", "--alignments"},
        {"direct_only", "--direct-only"},
        {"use_cache", "--use-cache"},
        {"glossary", "--glossary"},
        {"labels", "--label"},
        {"model", "--model"},
        {"priority", "--priority"},
    };
    for (const DecodingFlag& flag : DecodingFlags())
      all->push_back({flag.field->name(), flag.names.front()});
    return all;
  }();
  return names;
}

bool InName(char c) { return absl::ascii_isalnum(c) || c == '_'; }

// True if `name` occurs in `text` at `at` as a whole word.
bool IsNameAt(absl::string_view text, size_t at, absl::string_view name) {
  if (!absl::StartsWith(text.substr(at), name)) return false;
  const size_t end = at + name.size();
  return end == text.size() || !InName(text[end]);
}

absl::string_view FlagAt(absl::string_view text, size_t at, absl::string_view* field) {
  // "INVALID_ARGUMENT: model: …", "field model", "options.seed", "request.model: …"
  const absl::string_view before = text.substr(0, at);
  const bool behind_message =
      std::any_of(std::begin(kMessages), std::end(kMessages),
                  [&](absl::string_view message) { return absl::EndsWith(before, message); });
  const bool behind_code = absl::EndsWith(before, ": ") || before.empty();
  for (const FlagName& name : Names()) {
    if (!IsNameAt(text, at, name.field)) continue;
    // A field of one word may also be an ordinary word.
    const bool several_words = name.field.find_first_of("_.") != absl::string_view::npos;
    const bool as_field = behind_code && absl::StartsWith(text.substr(at + name.field.size()), ":");
    if (several_words || behind_message || as_field || absl::EndsWith(before, "\n  field ")) {
      return *field = name.field, name.flag;
    }
  }
  return "";
}

}  // namespace

std::string InFlags(const std::string& error) {
  std::string text;
  for (size_t at = 0; at < error.size();) {
    absl::string_view field;
    const bool begins = at == 0 || !InName(error[at - 1]);
    const absl::string_view flag = begins ? FlagAt(error, at, &field) : "";
    if (flag.empty()) {
      text += error[at++];
      continue;
    }
    for (const absl::string_view message : kMessages) {
      if (absl::EndsWith(text, message)) text.resize(text.size() - message.size());
    }
    if (absl::EndsWith(text, kField)) text.resize(text.size() - kField.size());
    absl::StrAppend(&text, flag);
    at += field.size();
  }
  return text;
}

}  // namespace linnet::client
