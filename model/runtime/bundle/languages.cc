#include "model/runtime/bundle/languages.h"

#include <unicode/locid.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "proto/status_macros.h"

namespace linnet::model {
namespace {

using linnet::v1::BundleManifest;
using linnet::v1::LanguageTokens;
using linnet::v1::SummaryStyle;

// Far above every model: all pairs of 100 languages are 9900.
constexpr int kMaxPairs = 1 << 14;
constexpr int kMaxTokensPerField = 8;
constexpr absl::string_view kStylePrefix = "SUMMARY_STYLE_";
// Longer lists of pairs are shortened.
constexpr size_t kMaxSummaryBytes = 200;

template <typename... Parts>
absl::Status BadLanguages(const Parts&... parts) {
  return absl::FailedPreconditionError(absl::StrCat(parts...));
}

absl::string_view Primary(absl::string_view tag) { return tag.substr(0, tag.find('-')); }

// The tags that may stand for a language, each with its distance.
std::vector<std::pair<std::string, int>> TagsFor(
    absl::string_view asked, const std::vector<std::pair<std::string, LanguageParts>>& served) {
  if (asked.empty()) return {{"", 0}};
  std::vector<std::pair<std::string, int>> found;
  const LanguageParts parts(asked);
  for (const auto& [tag, offered] : served) {
    if (absl::EqualsIgnoreCase(tag, asked)) {
      found.emplace_back(tag, 0);
    } else if (const auto distance = LanguageDistance(offered, parts); distance.has_value()) {
      // Another way to write the same code is still not that code.
      found.emplace_back(tag, std::max(*distance, 1));
    }
  }
  return found;
}

// True if a model for the language `offered` may answer a request for `asked`.
bool Serves(const std::string& offered, absl::string_view asked,
            const std::vector<std::pair<std::string, int>>& tags) {
  return asked.empty() || std::any_of(tags.begin(), tags.end(),
                                      [&](const auto& tag) { return tag.first == offered; });
}

template <typename T>
void AddOnce(const T& value, std::vector<T>& values) {
  if (std::find(values.begin(), values.end(), value) == values.end()) values.push_back(value);
}

// The tags of a pair in lower case.
std::pair<std::string, std::string> LanguageTags(const LanguageTokens& pair) {
  return {absl::AsciiStrToLower(pair.source_language_code()),
          absl::AsciiStrToLower(pair.target_language_code())};
}

bool SamePair(const LanguageTokens& a, const LanguageTokens& b) {
  return absl::EqualsIgnoreCase(a.source_language_code(), b.source_language_code()) &&
         absl::EqualsIgnoreCase(a.target_language_code(), b.target_language_code());
}

std::vector<SummaryStyle> AllStyles() {
  std::vector<SummaryStyle> styles;
  const auto& names = *linnet::v1::SummaryStyle_descriptor();
  for (int i = 0; i < names.value_count(); ++i) {
    const auto style = static_cast<SummaryStyle>(names.value(i)->number());
    if (style != linnet::v1::SUMMARY_STYLE_UNSPECIFIED) styles.push_back(style);
  }
  return styles;
}

// As the manifest has it.
std::string NameOf(SummaryStyle style) {
  return linnet::v1::SummaryStyle_IsValid(style) ? linnet::v1::SummaryStyle_Name(style)
                                                 : absl::StrCat(static_cast<int>(style));
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

absl::Status CheckStyle(const LanguageTokens& pair, const BundleManifest& manifest) {
  if (pair.style() == linnet::v1::SUMMARY_STYLE_UNSPECIFIED) return absl::OkStatus();
  if (!linnet::v1::SummaryStyle_IsValid(pair.style())) {
    return BadLanguages("languages has style ", NameOf(pair.style()), " for ", NameOf(pair),
                        ", known are ",
                        absl::StrJoin(AllStyles(), ", ", [](std::string* out, SummaryStyle style) {
                          absl::StrAppend(out, NameOf(style));
                        }));
  }
  if (manifest.task() != linnet::v1::TASK_SUMMARIZE) {
    return BadLanguages("languages has style ", NameOf(pair.style()), " for ", NameOf(pair),
                        ", only a model with TASK_SUMMARIZE has styles: leave it out");
  }
  return absl::OkStatus();
}

// Checks that the entries of each pair differ in style.
absl::Status CheckEntries(const BundleManifest& manifest) {
  std::map<std::pair<std::string, std::string>, std::vector<SummaryStyle>> styles;  // by tags
  for (const LanguageTokens& pair : manifest.languages()) {
    std::vector<SummaryStyle>& seen = styles[LanguageTags(pair)];
    const bool unset = pair.style() == linnet::v1::SUMMARY_STYLE_UNSPECIFIED;
    if (std::find(seen.begin(), seen.end(), pair.style()) != seen.end()) {
      return BadLanguages("languages has ", NameOf(pair), " twice",
                          unset ? "" : absl::StrCat(" with style ", NameOf(pair.style())),
                          ": leave one of them out");
    }
    if (!seen.empty() && (unset || seen.front() == linnet::v1::SUMMARY_STYLE_UNSPECIFIED)) {
      return BadLanguages("languages has ", NameOf(pair), " with style ",
                          NameOf(unset ? seen.front() : pair.style()),
                          " and without a style: set the style of every entry, or of none");
    }
    seen.push_back(pair.style());
  }
  return absl::OkStatus();
}

absl::Status CheckGoldenExample(const linnet::v1::GoldenExample& example,
                                const LanguagePairs& pairs) {
  const bool own = example.source_language_code().empty() && example.target_language_code().empty();
  const LanguageTokens* const pair =
      own ? &pairs.own()
          : pairs.Exact(example.source_language_code(), example.target_language_code());
  if (pair == nullptr) {
    return BadLanguages("golden_examples has one for \"", example.source_language_code(),
                        "\" to \"", example.target_language_code(), "\", the model has ",
                        pairs.Summary());
  }
  if (pairs.WithStyle(*pair, example.style()) == nullptr) {
    return BadLanguages("golden_examples has one with style ", NameOf(example.style()), " for ",
                        NameOf(*pair), ", whose styles are ", StyleNames(pairs.Styles(*pair)),
                        ": change it or leave it out");
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
  RETURN_IF_ERROR(CheckStyle(pair, manifest));
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
    const auto [source, target] = LanguageTags(pairs_[i]);
    for (const auto& tags :
         {std::pair(source, target), std::pair(source, std::string()),
          std::pair(std::string(), target), std::pair<std::string, std::string>()})
      numbers_.emplace(tags, i);  // the first stays
    AddTag(pairs_[i].source_language_code(), sources_);
    AddTag(pairs_[i].target_language_code(), targets_);
  }
}

void LanguagePairs::AddTag(const std::string& tag, Tags& tags) {
  const auto same = [&](const auto& each) { return each.first == tag; };
  if (std::none_of(tags.begin(), tags.end(), same)) tags.emplace_back(tag, LanguageParts(tag));
}

const LanguageTokens* LanguagePairs::Exact(absl::string_view source,
                                           absl::string_view target) const {
  const auto found = numbers_.find({absl::AsciiStrToLower(source), absl::AsciiStrToLower(target)});
  return found == numbers_.end() ? nullptr : &pairs_[found->second];
}

LanguagePairs::Match LanguagePairs::Nearest(absl::string_view source,
                                            absl::string_view target) const {
  if (const LanguageTokens* pair = Exact(source, target); pair != nullptr) return {pair, 0};
  Match nearest;
  const auto targets = TagsFor(target, targets_);
  for (const auto& [from, from_distance] : TagsFor(source, sources_)) {
    for (const auto& [to, to_distance] : targets) {
      const LanguageTokens* const pair = Exact(from, to);
      if (pair == nullptr) continue;
      const int distance = from_distance + to_distance;
      // If two are equally near, the one that stands first is taken.
      if (nearest.pair == nullptr || distance < nearest.distance ||
          (distance == nearest.distance && pair < nearest.pair))
        nearest = {pair, distance};
    }
  }
  return nearest;
}

const LanguageTokens* LanguagePairs::WithStyle(const LanguageTokens& pair,
                                               SummaryStyle style) const {
  const auto found = std::find_if(pairs_.begin(), pairs_.end(), [&](const LanguageTokens& each) {
    return SamePair(each, pair) &&
           (style == linnet::v1::SUMMARY_STYLE_UNSPECIFIED || each.style() == style);
  });
  return found == pairs_.end() ? nullptr : &*found;
}

std::vector<SummaryStyle> LanguagePairs::Styles() const {
  std::vector<SummaryStyle> styles;
  for (const LanguageTokens& each : pairs_) {
    if (each.style() != linnet::v1::SUMMARY_STYLE_UNSPECIFIED) AddOnce(each.style(), styles);
  }
  return styles;
}

std::vector<SummaryStyle> LanguagePairs::Styles(const LanguageTokens& pair) const {
  std::vector<SummaryStyle> styles;
  for (const LanguageTokens& each : pairs_) {
    if (SamePair(each, pair) && each.style() != linnet::v1::SUMMARY_STYLE_UNSPECIFIED)
      styles.push_back(each.style());
  }
  return styles;
}

std::vector<std::string> LanguagePairs::Sources(absl::string_view target) const {
  std::vector<std::string> tags;
  const auto targets = TagsFor(target, targets_);
  for (const LanguageTokens& pair : pairs_) {
    if (Serves(pair.target_language_code(), target, targets))
      AddOnce(pair.source_language_code(), tags);
  }
  return tags;
}

std::vector<std::string> LanguagePairs::Targets(absl::string_view source) const {
  std::vector<std::string> tags;
  const auto sources = TagsFor(source, sources_);
  for (const LanguageTokens& pair : pairs_) {
    if (Serves(pair.source_language_code(), source, sources))
      AddOnce(pair.target_language_code(), tags);
  }
  return tags;
}

std::string PairSummary(const std::vector<LanguageTokens>& pairs) {
  std::vector<std::string> sources, targets, parts;
  for (const LanguageTokens& pair : pairs) {
    AddOnce(pair.source_language_code(), sources);
    AddOnce(pair.target_language_code(), targets);
  }
  size_t bytes = 0;
  for (const std::string& source : sources) {
    std::vector<std::string> of_source;
    for (const LanguageTokens& pair : pairs) {
      if (pair.source_language_code() == source) AddOnce(pair.target_language_code(), of_source);
    }
    parts.push_back(absl::StrCat(source, " to ", absl::StrJoin(of_source, "/")));
    bytes += parts.back().size();
    if (bytes > kMaxSummaryBytes)
      return absl::StrCat(absl::StrJoin(sources, "/"), " to ", absl::StrJoin(targets, "/"));
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
  for (const LanguageTokens& pair : manifest.languages()) {
    RETURN_IF_ERROR(CheckPair(pair, manifest));
  }
  RETURN_IF_ERROR(CheckEntries(manifest));
  const LanguagePairs pairs(manifest);
  if (pairs.Exact(manifest.source_language_code(), manifest.target_language_code()) == nullptr) {
    return BadLanguages("languages does not have the manifest's own pair, \"",
                        manifest.source_language_code(), "\" to \"",
                        manifest.target_language_code(), "\"");
  }
  const bool one_pair = std::all_of(
      manifest.languages().begin(), manifest.languages().end(),
      [&](const LanguageTokens& pair) { return SamePair(pair, manifest.languages(0)); });
  if (!one_pair && manifest.word_tokenizer() == linnet::v1::WORD_TOKENIZER_MOSES) {
    return BadLanguages(
        "languages has ", manifest.languages_size(),
        " pairs, and WORD_TOKENIZER_MOSES has the rules of one: leave one of them out");
  }
  for (const linnet::v1::GoldenExample& example : manifest.golden_examples()) {
    RETURN_IF_ERROR(CheckGoldenExample(example, pairs));
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

std::string StyleName(SummaryStyle style) {
  return absl::AsciiStrToLower(
      absl::StripPrefix(linnet::v1::SummaryStyle_Name(style), kStylePrefix));
}

std::string StyleNames(const std::vector<SummaryStyle>& styles) {
  if (styles.empty()) return "none";
  return absl::StrJoin(styles, ", ", [](std::string* out, SummaryStyle style) {
    absl::StrAppend(out, StyleName(style));
  });
}

std::optional<SummaryStyle> StyleNamed(absl::string_view name) {
  for (SummaryStyle style : AllStyles()) {
    if (StyleName(style) == name) return style;
  }
  return std::nullopt;
}

bool IsUnspacedLanguage(absl::string_view code) {
  const std::string primary = absl::AsciiStrToLower(Primary(code));
  for (absl::string_view unspaced : {"zh", "yue", "ja", "th", "lo", "km", "my"}) {
    if (primary == unspaced) return true;
  }
  return false;
}

bool IsLanguageCode(const std::string& code) {
  UErrorCode error = U_ZERO_ERROR;
  const icu::Locale locale = icu::Locale::forLanguageTag(code, error);
  if (U_FAILURE(error) || locale.isBogus()) return false;
  const std::string language = locale.getLanguage();
  return language.size() == 2 || language.size() == 3;
}

}  // namespace linnet::model
