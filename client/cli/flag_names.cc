#include "client/cli/flag_names.h"

#include <array>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace linnet::client {
namespace {

struct FlagName {
  absl::string_view field, flag;
};

// Fields of several words; they are replaced anywhere in a text.
constexpr std::array kAnywhere = {
    FlagName{"source_language_code", "--from"},
    FlagName{"target_language_code", "--to"},
    FlagName{"language_code", "--language"},
    FlagName{"long_input", "--long-input"},
    FlagName{"word_scores", "--word-scores"},
    FlagName{"beam_size", "--beam"},
    FlagName{"length_penalty", "--length-penalty"},
    FlagName{"min_target_tokens", "--min-target-tokens"},
    FlagName{"max_target_tokens", "--max-target-tokens"},
    FlagName{"n_best", "--n-best"},
    FlagName{"no_repeat_ngram_size", "--no-repeat-ngram-size"},
    FlagName{"top_k", "--top-k"},
    FlagName{"top_p", "--top-p"},
    FlagName{"unknown_penalty", "--unknown-penalty"},
    FlagName{"normalize_scores", "--normalize-scores"},
};

// Fields of one word, which may also be an ordinary word; they are replaced only in the position of
// a field name.
constexpr std::array kNamed = {
    FlagName{"alignments", "--alignments"},
    FlagName{"glossary", "--glossary"},
    FlagName{"labels", "--label"},
    FlagName{"model", "--model"},
    FlagName{"priority", "--priority"},
    FlagName{"seed", "--seed"},
    FlagName{"temperature", "--temperature"},
};

bool InName(char c) { return absl::ascii_isalnum(c) || c == '_'; }

// True if `name` occurs in `text` at `at` as a whole word.
bool IsNameAt(absl::string_view text, size_t at, absl::string_view name) {
  if (!absl::StartsWith(text.substr(at), name)) return false;
  const size_t end = at + name.size();
  return end == text.size() || !InName(text[end]);
}

absl::string_view FlagAt(absl::string_view text, size_t at, absl::string_view* field) {
  for (const FlagName& name : kAnywhere) {
    if (IsNameAt(text, at, name.field)) return *field = name.field, name.flag;
  }
  // "INVALID_ARGUMENT: model: …", "field model", "options.seed"
  const absl::string_view before = text.substr(0, at);
  const bool behind_option = absl::EndsWith(before, "options.");
  const bool behind_code = absl::EndsWith(before, ": ") || before.empty();
  for (const FlagName& name : kNamed) {
    if (!IsNameAt(text, at, name.field)) continue;
    const bool as_field = behind_code && absl::StartsWith(text.substr(at + name.field.size()), ":");
    if (behind_option || as_field || absl::EndsWith(before, "\n  field ")) {
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
    for (const absl::string_view prefix : {"options.", "request.", "settings.", "field "}) {
      if (absl::EndsWith(text, prefix)) text.resize(text.size() - prefix.size());
    }
    absl::StrAppend(&text, flag);
    at += field.size();
  }
  return text;
}

}  // namespace linnet::client
