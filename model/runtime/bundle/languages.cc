#include "model/runtime/bundle/languages.h"

#include <unicode/locid.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <set>
#include <tuple>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/status_macros.h"

namespace linnet::model {
namespace {

using linnet::v1::BundleManifest;
using linnet::v1::LanguageTokens;

// Far above every model: all pairs of 100 languages are 9900.
constexpr int kMaxPairs = 1 << 14;
constexpr int kMaxTokensPerField = 8;
// Longer lists of pairs are shortened.
constexpr size_t kMaxSummaryBytes = 200;

template <typename... Parts>
absl::Status BadLanguages(const Parts&... parts) {
  return absl::FailedPreconditionError(absl::StrCat(parts...));
}

absl::string_view Primary(absl::string_view tag) { return tag.substr(0, tag.find('-')); }

// True if a model for the language `offered` may answer a request for `asked`.
bool Serves(absl::string_view offered, absl::string_view asked) {
  return asked.empty() || absl::EqualsIgnoreCase(offered, asked) ||
         absl::EqualsIgnoreCase(offered, Primary(asked));
}

void AddOnce(const std::string& tag, std::vector<std::string>& tags) {
  if (std::find(tags.begin(), tags.end(), tag) == tags.end()) tags.push_back(tag);
}

std::string NameOf(const LanguageTokens& pair) {
  return absl::StrCat("\"", pair.source_language_code(), "\" to \"", pair.target_language_code(),
                      "\"");
}

absl::Status CheckIds(const LanguageTokens& pair, const BundleManifest& manifest) {
  const linnet::v1::Vocabulary& vocabulary = manifest.vocabulary();
  const int source_size =
      vocabulary.has_source_size() ? vocabulary.source_size() : vocabulary.size();
  for (const auto& [field, ids, size] :
       {std::tuple("before_source_ids", &pair.before_source_ids(), source_size),
        std::tuple("after_source_ids", &pair.after_source_ids(), source_size),
        std::tuple("forced_target_ids", &pair.forced_target_ids(), vocabulary.size())}) {
    if (ids->size() > kMaxTokensPerField) {
      return BadLanguages("languages has ", ids->size(), " ", field, " for ", NameOf(pair),
                          ", at most ", kMaxTokensPerField, " are read");
    }
    for (int id : *ids) {
      if (id < 0 || id >= size || id == vocabulary.eos_id() || id == vocabulary.pad_id() ||
          id == vocabulary.unk_id()) {
        return BadLanguages("languages has ", field, " with ", id, " for ", NameOf(pair),
                            ", it must be between 0 and ", size - 1, ", and neither the end token ",
                            vocabulary.eos_id(), ", padding ", vocabulary.pad_id(),
                            " nor the unknown token ", vocabulary.unk_id());
      }
    }
  }
  const int around = pair.before_source_ids_size() + pair.after_source_ids_size();
  // A text has at least one token and the end token.
  if (around + 2 > manifest.limits().max_source_tokens()) {
    return BadLanguages("languages has ", around, " ids around a source for ", NameOf(pair),
                        ", which leaves no room for a text in limits.max_source_tokens ",
                        manifest.limits().max_source_tokens());
  }
  return absl::OkStatus();
}

absl::Status CheckPair(const LanguageTokens& pair, const BundleManifest& manifest) {
  for (const auto& [field, code] :
       {std::pair("source_language_code", pair.source_language_code()),
        std::pair("target_language_code", pair.target_language_code())}) {
    if (!IsLanguageCode(code)) {
      return BadLanguages("languages has ", field, " \"", code,
                          "\", which is no BCP-47 code such as \"de\" or \"pt-BR\"");
    }
  }
  if (manifest.task() == linnet::v1::TASK_SUMMARIZE &&
      pair.source_language_code() != pair.target_language_code()) {
    return BadLanguages("languages has ", NameOf(pair),
                        ", a summary is in the language of its text");
  }
  return CheckIds(pair, manifest);
}

absl::Status CheckControlIds(const BundleManifest& manifest) {
  const linnet::v1::Vocabulary& vocabulary = manifest.vocabulary();
  const int size = std::max(vocabulary.size(), vocabulary.source_size());
  for (int id : manifest.control_ids()) {
    if (id < 0 || id >= size || id == vocabulary.unk_id()) {
      return BadLanguages("control_ids has ", id, ", it must be between 0 and ", size - 1,
                          ", and not the unknown token ", vocabulary.unk_id());
    }
  }
  return absl::OkStatus();
}

}  // namespace

LanguagePairs::LanguagePairs(const BundleManifest& manifest) {
  const auto is_own = [&](const LanguageTokens& pair) {
    return absl::EqualsIgnoreCase(pair.source_language_code(), manifest.source_language_code()) &&
           absl::EqualsIgnoreCase(pair.target_language_code(), manifest.target_language_code());
  };
  if (manifest.languages().empty()) {
    LanguageTokens& pair = pairs_.emplace_back();
    pair.set_source_language_code(manifest.source_language_code());
    pair.set_target_language_code(manifest.target_language_code());
  }
  std::copy_if(manifest.languages().begin(), manifest.languages().end(), std::back_inserter(pairs_),
               is_own);
  std::copy_if(manifest.languages().begin(), manifest.languages().end(), std::back_inserter(pairs_),
               std::not_fn(is_own));
  for (int i = 0; i < std::ssize(pairs_); ++i) {
    const std::string source = absl::AsciiStrToLower(pairs_[i].source_language_code());
    const std::string target = absl::AsciiStrToLower(pairs_[i].target_language_code());
    for (const auto& tags :
         {std::pair(source, target), std::pair(source, std::string()),
          std::pair(std::string(), target), std::pair<std::string, std::string>()})
      numbers_.emplace(tags, i);  // the first stays
  }
}

const LanguageTokens* LanguagePairs::Exact(absl::string_view source,
                                           absl::string_view target) const {
  const auto found = numbers_.find({absl::AsciiStrToLower(source), absl::AsciiStrToLower(target)});
  return found == numbers_.end() ? nullptr : &pairs_[found->second];
}

const LanguageTokens* LanguagePairs::Find(absl::string_view source,
                                          absl::string_view target) const {
  for (absl::string_view from : {source, Primary(source)}) {
    for (absl::string_view to : {target, Primary(target)}) {
      if (const LanguageTokens* pair = Exact(from, to); pair != nullptr) return pair;
    }
  }
  return nullptr;
}

std::vector<std::string> LanguagePairs::Sources(absl::string_view target) const {
  std::vector<std::string> tags;
  for (const LanguageTokens& pair : pairs_) {
    if (Serves(pair.target_language_code(), target)) AddOnce(pair.source_language_code(), tags);
  }
  return tags;
}

std::vector<std::string> LanguagePairs::Targets(absl::string_view source) const {
  std::vector<std::string> tags;
  for (const LanguageTokens& pair : pairs_) {
    if (Serves(pair.source_language_code(), source)) AddOnce(pair.target_language_code(), tags);
  }
  return tags;
}

std::string LanguagePairs::Summary() const {
  std::vector<std::string> parts;
  size_t bytes = 0;
  for (const std::string& source : Sources("")) {
    std::vector<std::string> targets;
    for (const LanguageTokens& pair : pairs_) {
      if (pair.source_language_code() == source) targets.push_back(pair.target_language_code());
    }
    parts.push_back(absl::StrCat(source, " to ", absl::StrJoin(targets, "/")));
    bytes += parts.back().size();
    if (bytes > kMaxSummaryBytes)
      return absl::StrCat(absl::StrJoin(Sources(""), "/"), " to ", absl::StrJoin(Targets(""), "/"));
  }
  return absl::StrJoin(parts, ", ");
}

std::string LanguagePairs::Languages() const { return absl::StrJoin(Sources(""), "/"); }

int LanguagePairs::max_forced_tokens() const {
  int max = 0;
  for (const LanguageTokens& pair : pairs_) max = std::max(max, pair.forced_target_ids_size());
  return max;
}

int LanguagePairs::max_source_tokens() const {
  int max = 0;
  for (const LanguageTokens& pair : pairs_)
    max = std::max(max, pair.before_source_ids_size() + pair.after_source_ids_size());
  return max;
}

absl::Status CheckLanguages(const BundleManifest& manifest) {
  RETURN_IF_ERROR(CheckControlIds(manifest));
  if (manifest.languages_size() > kMaxPairs) {
    return BadLanguages("languages has ", manifest.languages_size(), " pairs, at most ", kMaxPairs,
                        " are read: leave out languages");
  }
  std::set<std::pair<std::string, std::string>> seen;
  for (const LanguageTokens& pair : manifest.languages()) {
    RETURN_IF_ERROR(CheckPair(pair, manifest));
    if (!seen.emplace(absl::AsciiStrToLower(pair.source_language_code()),
                      absl::AsciiStrToLower(pair.target_language_code()))
             .second)
      return BadLanguages("languages has ", NameOf(pair), " twice");
  }
  const LanguagePairs pairs(manifest);
  if (pairs.Exact(manifest.source_language_code(), manifest.target_language_code()) == nullptr) {
    return BadLanguages("languages does not have the manifest's own pair, \"",
                        manifest.source_language_code(), "\" to \"",
                        manifest.target_language_code(), "\"");
  }
  if (manifest.languages_size() > 1 &&
      manifest.word_tokenizer() == linnet::v1::WORD_TOKENIZER_MOSES) {
    return BadLanguages(
        "languages has ", manifest.languages_size(),
        " pairs, and WORD_TOKENIZER_MOSES has the rules of one: leave one of them out");
  }
  for (const linnet::v1::GoldenExample& example : manifest.golden_examples()) {
    if (example.source_language_code().empty() && example.target_language_code().empty()) continue;
    if (pairs.Exact(example.source_language_code(), example.target_language_code()) == nullptr) {
      return BadLanguages("golden_examples has one for \"", example.source_language_code(),
                          "\" to \"", example.target_language_code(), "\", the model has ",
                          pairs.Summary());
    }
  }
  return absl::OkStatus();
}

std::vector<TokenId> SourceControlIds(const BundleManifest& manifest) {
  std::set<TokenId> ids(manifest.control_ids().begin(), manifest.control_ids().end());
  for (const LanguageTokens& pair : manifest.languages()) {
    ids.insert(pair.before_source_ids().begin(), pair.before_source_ids().end());
    ids.insert(pair.after_source_ids().begin(), pair.after_source_ids().end());
  }
  return {ids.begin(), ids.end()};
}

std::vector<TokenId> TargetControlIds(const BundleManifest& manifest) {
  std::set<TokenId> ids(manifest.control_ids().begin(), manifest.control_ids().end());
  for (const LanguageTokens& pair : manifest.languages())
    ids.insert(pair.forced_target_ids().begin(), pair.forced_target_ids().end());
  return {ids.begin(), ids.end()};
}

bool IsLanguageCode(const std::string& code) {
  UErrorCode error = U_ZERO_ERROR;
  const icu::Locale locale = icu::Locale::forLanguageTag(code, error);
  if (U_FAILURE(error) || locale.isBogus()) return false;
  const std::string language = locale.getLanguage();
  return language.size() == 2 || language.size() == 3;
}

}  // namespace linnet::model
