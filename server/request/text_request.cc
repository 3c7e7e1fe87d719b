#include "server/request/text_request.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "model/runtime/bundle/language_code.h"
#include "proto/status_macros.h"
#include "server/base/errors.h"
#include "server/request/request_fields.h"
#include "server/request/request_models.h"

namespace linnet::server {
namespace {

constexpr size_t kMaxTargetPrefixBytes = 16 << 10;

std::string Item(absl::string_view field, int index) {
  return absl::StrCat(field, "[", index, "]");
}

// The texts of a request. Their number is checked before there is an item for each.
absl::StatusOr<std::vector<TextItem>> MakeItems(
    const google::protobuf::RepeatedPtrField<std::string>& contents, const TextLimits& limits) {
  RETURN_IF_ERROR(CheckCount("contents", contents.size(), limits));
  std::vector<TextItem> items;
  for (int i = 0; i < contents.size(); ++i)
    items.push_back({.path = Item("contents", i), .text = &contents[i], .index = i});
  return items;
}

absl::StatusOr<std::vector<TextItem>> MakeItems(
    const google::protobuf::RepeatedPtrField<linnet::v1::ScorePair>& pairs,
    const TextLimits& limits) {
  RETURN_IF_ERROR(CheckCount("pairs", pairs.size(), limits));
  std::vector<TextItem> items;
  for (int i = 0; i < pairs.size(); ++i) {
    items.push_back({.path = Item("pairs", i) + ".source_text",
                     .text = &pairs[i].source_text(),
                     .target_path = Item("pairs", i) + ".target_text",
                     .target = &pairs[i].target_text(),
                     .index = i});
  }
  return items;
}

// A language code of a request in its canonical form; one that is none is refused by the catalog.
std::string Canonical(const std::string& code) {
  return model::CanonicalLanguage(code).value_or(code);
}

// The fields that all methods have.
template <typename Request>
Asked AskedBy(const Request& request) {
  Asked asked;
  asked.model = request.model();
  asked.labels = &request.labels();
  asked.priority = request.priority();
  asked.word_scores = request.word_scores();
  asked.alignments = request.alignments();
  if (request.has_use_cache()) asked.use_cache = request.use_cache();
  return asked;
}

// Applies `apply` to the request for each language.
template <typename Apply>
absl::Status ForEachLanguage(TextRequest& checked, const Apply& apply) {
  if (checked.model == nullptr) return absl::OkStatus();
  RETURN_IF_ERROR(apply(checked));
  for (TextRequest& other : checked.others) RETURN_IF_ERROR(apply(other));
  return absl::OkStatus();
}

// `texts`: of the request; -1 for the settings of a document.
absl::Status CheckTargetPrefix(const linnet::v1::TranslateRequest& request, int texts) {
  const std::string& prefix = request.target_prefix();
  if (prefix.empty()) return absl::OkStatus();
  RETURN_IF_ERROR(CheckText(std::string(kTargetPrefix), prefix));
  if (prefix.size() > kMaxTargetPrefixBytes) {
    return BadField(kTargetPrefix, Reason::kTextTooLong,
                    absl::StrCat("has ", prefix.size(), " bytes, at most ", kMaxTargetPrefixBytes,
                                 " are taken: send the rest of the text in another call"));
  }
  const auto alone = [](absl::string_view what) {
    return BadField(kTargetPrefix, Reason::kBadSetting,
                    absl::StrCat("begins the translation of one text, and ", what,
                                 ": send the text alone, with Translate"));
  };
  if (texts < 0) return alone("is set for all lines of a document");
  if (texts > 1) return alone(absl::StrCat("is set for ", texts, " texts"));
  if (!request.mime_type().empty() && request.mime_type() != "text/plain") {
    return BadField(kTargetPrefix, Reason::kBadSetting,
                    absl::StrCat("begins a plain text, and mime_type is ", request.mime_type(),
                                 ": leave one of them out"));
  }
  return absl::OkStatus();
}

absl::StatusOr<TextRequest> CheckTranslate(const linnet::v1::TranslateRequest& request,
                                           std::optional<std::vector<TextItem>> items,
                                           const Catalog& catalog, const TextLimits& limits,
                                           std::unique_ptr<LanguageDetection>* later = nullptr) {
  Asked asked = AskedBy(request);
  ASSIGN_OR_RETURN(asked.markup, CheckMarkup(request));
  ASSIGN_OR_RETURN(asked.protects, ProtectedPatterns::Make(request.protected_patterns()));
  RETURN_IF_ERROR(
      CheckTargetPrefix(request, items.has_value() ? static_cast<int>(items->size()) : -1));
  if (request.target_language_code().empty())
    return BadField("target_language_code", Reason::kMissing, "is required");
  if (!linnet::v1::LineBreaks_IsValid(request.line_breaks()))
    return UnknownValue("line_breaks", request.line_breaks());
  asked.task = linnet::v1::TASK_TRANSLATE;
  asked.source_language = Canonical(request.source_language_code());
  asked.source_field = "source_language_code";
  asked.target_language = Canonical(request.target_language_code());
  asked.options = request.options();
  asked.keeps_target = true;
  if (!request.glossary().entries().empty()) asked.glossary = &request.glossary();
  asked.direct_only = request.direct_only();
  asked.target_prefix = request.target_prefix();
  ASSIGN_OR_RETURN(auto checked, FindModels(asked, std::move(items), catalog, limits, later));
  if (!request.target_prefix().empty() && !checked.unchanged.empty()) {
    return BadField(kTargetPrefix, Reason::kBadSetting,
                    "is set for a text that seems to be in the target language already, and comes "
                    "back unchanged: set source_language_code, or leave it out");
  }
  RETURN_IF_ERROR(ForEachLanguage(checked, [&](TextRequest& each) -> absl::Status {
    each.split = true;
    each.target_prefix = request.target_prefix();
    each.markup = asked.markup;
    // The lines of a fragment are joined already: each block is one.
    each.join_lines = !asked.markup.has_value() &&
                      request.line_breaks() == linnet::v1::LINE_BREAKS_JOIN_PARAGRAPHS;
    each.language_check = limits.language_check;
    return absl::OkStatus();
  }));
  return checked;
}

absl::Status CheckStyle(linnet::v1::SummaryStyle style) {
  return linnet::v1::SummaryStyle_IsValid(style) ? absl::OkStatus() : UnknownValue("style", style);
}

// Chooses the entry of a language with the requested style.
absl::Status ApplyStyle(linnet::v1::SummaryStyle style, TextRequest& checked) {
  const model::LanguagePairs& languages = checked.model->languages;
  const linnet::v1::LanguageTokens* const styled = languages.WithStyle(*checked.languages, style);
  if (styled == nullptr) {
    const std::vector<linnet::v1::SummaryStyle> styles = languages.Styles(*checked.languages);
    const std::string name = checked.model->name();
    return BadField(
        "style", Reason::kBadSetting,
        absl::StrCat("is ", model::StyleName(style),
                     styles.empty()
                         ? absl::StrCat(", model \"", name, "\" has no styles: leave it unset")
                         : absl::StrCat(", model \"", name, "\" has ", model::StyleNames(styles),
                                        ": set one of these, or none")));
  }
  checked.languages = styled;
  return absl::OkStatus();
}

absl::StatusOr<TextRequest> CheckSummarize(const linnet::v1::SummarizeRequest& request,
                                           std::optional<std::vector<TextItem>> items,
                                           const Catalog& catalog, const TextLimits& limits,
                                           std::unique_ptr<LanguageDetection>* later = nullptr) {
  Asked asked = AskedBy(request);
  asked.task = linnet::v1::TASK_SUMMARIZE;
  asked.source_language = Canonical(request.language_code());
  asked.source_field = "language_code";
  asked.options = request.options();
  asked.protects = std::make_shared<const ProtectedPatterns>();
  if (request.has_length()) asked.length = &request.length();
  auto twice = [](absl::string_view field, absl::string_view option) {
    return BadField(field, Reason::kSetTwice,
                    absl::StrCat("is the same setting as options.", option, ": set one of them"));
  };
  if (request.has_min_summary_tokens()) {
    if (asked.options.has_min_target_tokens())
      return twice("min_summary_tokens", "min_target_tokens");
    asked.options.set_min_target_tokens(request.min_summary_tokens());
    asked.paths["min_target_tokens"] = "min_summary_tokens";
  }
  if (request.has_max_summary_tokens()) {
    if (asked.options.has_max_target_tokens())
      return twice("max_summary_tokens", "max_target_tokens");
    asked.options.set_max_target_tokens(request.max_summary_tokens());
    asked.paths["max_target_tokens"] = "max_summary_tokens";
  }
  if (!linnet::v1::LongInput_IsValid(request.long_input()))
    return UnknownValue("long_input", request.long_input());
  RETURN_IF_ERROR(CheckStyle(request.style()));
  ASSIGN_OR_RETURN(auto checked, FindModels(asked, std::move(items), catalog, limits, later));
  // The settings of a document may come before its language is known, and so its model.
  RETURN_IF_ERROR(ForEachLanguage(checked, [&](TextRequest& each) -> absl::Status {
    each.language_check = limits.language_check;
    if (request.long_input() != linnet::v1::LONG_INPUT_UNSPECIFIED)
      each.long_input = request.long_input();
    return ApplyStyle(request.style(), each);
  }));
  return checked;
}

}  // namespace

void TextLimits::DeriveFrom(int64_t request_memory) {
  // A text is stored several times, with its tokens and its translation; a segment of any length
  // takes some kilobytes, and a line of a document is a call of its own.
  const auto of = [&](int64_t bytes, int64_t max) {
    return static_cast<int>(std::clamp<int64_t>(request_memory / bytes, 1, max));
  };
  max_contents = max_segments = of(16 << 10, 1 << 20);
  max_text_bytes = std::clamp<int64_t>(request_memory / 256, 1, 1 << 30);
  max_inflight_lines = of(4 << 20, 1 << 16);
}

absl::Status CheckContents(const google::protobuf::RepeatedPtrField<std::string>& contents,
                           const TextLimits& limits, int64_t& text_bytes) {
  ASSIGN_OR_RETURN(const std::vector<TextItem> items, MakeItems(contents, limits));
  return CheckItems("contents", items, limits, text_bytes);
}

absl::StatusOr<TextRequest> CheckRequest(const linnet::v1::TranslateRequest& request,
                                         const Catalog& catalog, const TextLimits& limits,
                                         std::unique_ptr<LanguageDetection>* later) {
  ASSIGN_OR_RETURN(std::vector<TextItem> items, MakeItems(request.contents(), limits));
  return CheckTranslate(request, std::move(items), catalog, limits, later);
}

absl::StatusOr<TextRequest> CheckRequest(const linnet::v1::SummarizeRequest& request,
                                         const Catalog& catalog, const TextLimits& limits,
                                         std::unique_ptr<LanguageDetection>* later) {
  ASSIGN_OR_RETURN(std::vector<TextItem> items, MakeItems(request.contents(), limits));
  return CheckSummarize(request, std::move(items), catalog, limits, later);
}

absl::StatusOr<TextRequest> CheckRequest(const linnet::v1::ScoreRequest& request,
                                         const Catalog& catalog, const TextLimits& limits,
                                         std::unique_ptr<LanguageDetection>* later) {
  Asked asked = AskedBy(request);
  asked.task = linnet::v1::TASK_TRANSLATE;
  asked.items_field = "pairs";
  asked.source_language = Canonical(request.source_language_code());
  asked.source_field = "source_language_code";
  asked.target_language = Canonical(request.target_language_code());
  if (!request.model().empty()) {
    // The model may be of any task: summaries can be scored too.
    ASSIGN_OR_RETURN(const auto model, catalog.Named(request.model()));
    asked.task = model->bundle.manifest.task();
  } else if (request.target_language_code().empty()) {
    return BadField("target_language_code", Reason::kMissing,
                    "is required where no model is named");
  }
  const linnet::v1::ScoringOptions& options = request.options();
  if (options.has_length_penalty()) asked.options.set_length_penalty(options.length_penalty());
  if (options.has_unknown_penalty()) asked.options.set_unknown_penalty(options.unknown_penalty());
  if (options.has_normalize_scores())
    asked.options.set_normalize_scores(options.normalize_scores());
  if (options.has_temperature()) asked.options.set_temperature(options.temperature());
  RETURN_IF_ERROR(CheckStyle(request.style()));
  ASSIGN_OR_RETURN(std::vector<TextItem> items, MakeItems(request.pairs(), limits));
  ASSIGN_OR_RETURN(auto checked, FindModels(asked, std::move(items), catalog, limits, later));
  if (!checked.others.empty()) {
    return BadField("source_language_code", Reason::kLanguageUnknown,
                    "is not set, and the source texts seem to be in several languages: set it, or "
                    "score each language in a call of its own");
  }
  RETURN_IF_ERROR(ApplyStyle(request.style(), checked));
  return checked;
}

absl::Status CheckSettings(const linnet::v1::TranslateRequest& request, const Catalog& catalog,
                           const TextLimits& limits) {
  return CheckTranslate(request, std::nullopt, catalog, limits).status();
}

absl::Status CheckSettings(const linnet::v1::SummarizeRequest& request, const Catalog& catalog,
                           const TextLimits& limits) {
  return CheckSummarize(request, std::nullopt, catalog, limits).status();
}

}  // namespace linnet::server
