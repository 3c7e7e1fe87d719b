#include "server/request/text_request.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "model/runtime/bundle/language_code.h"
#include "model/runtime/search/search_options.h"
#include "proto/status_macros.h"
#include "server/base/errors.h"
#include "server/request/decoding_options.h"
#include "server/request/glossary.h"
#include "server/request/request_fields.h"
#include "server/request/source_languages.h"
#include "server/request/summary_length.h"

namespace linnet::server {
namespace {

using linnet::v1::DecodingOptions;

constexpr absl::string_view kTargetPrefix = "target_prefix";
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

// The settings of a request, with the field names of its method.
struct Asked {
  linnet::v1::Task task;
  absl::string_view items_field = "contents";
  absl::string_view model;
  std::string source_language;     // canonical, if it is a language code
  absl::string_view source_field;  // name of the field
  std::string target_language;     // as source_language
  DecodingOptions options;
  bool keeps_target = false;  // a text that is in the target language already is not translated
  std::map<std::string, std::string> paths = {};  // of options that are set in other fields
  const linnet::v1::Glossary* glossary = nullptr;
  const linnet::v1::SummaryLength* length = nullptr;
  bool direct_only = true;  // two models never answer together
  std::optional<MarkupOptions> markup = std::nullopt;
  absl::string_view target_prefix = {};
};

// Checks that the settings make sense for a translation through a third language.
absl::Status CheckPivot(const Asked& asked, absl::string_view source_language,
                        absl::string_view language) {
  const auto message = [&](absl::string_view what) {
    return absl::StrCat(what,
                        " cannot be carried through a third language, and no model translates ",
                        source_language, " to ", asked.target_language, " directly, only through ",
                        language, ": leave it out");
  };
  if (asked.options.has_n_best())
    return BadField("options.n_best", Reason::kBadOption, message("an n-best list"));
  if (asked.glossary != nullptr)
    return BadField("glossary", Reason::kBadGlossary, message("a glossary"));
  if (!asked.target_prefix.empty())
    return BadField(kTargetPrefix, Reason::kBadSetting, message("the start of an answer"));
  return absl::OkStatus();
}

// A language code of a request in its canonical form; one that is none is refused by the catalog.
std::string Canonical(const std::string& code) {
  return model::CanonicalLanguage(code).value_or(code);
}

// The error of a model that was not found, for a language that was detected in the text of this
// name.
absl::Status WithDetected(const absl::Status& status, const Asked& asked,
                          absl::string_view source_language, absl::string_view detected_in) {
  const std::string seen = absl::StrCat(asked.source_field, " is not set and ", detected_in,
                                        " seems to be in \"", source_language, "\"");
  if (absl::IsNotFound(status))
    return NoSuchModel(source_language, absl::StrCat(seen, ": ", status.message()));
  return WithMore(absl::StrCat(" (", seen, ")"), status);
}

// The request for the model that reads the translations of the first one.
TextRequest MakeSecond(const TextRequest& first, const Catalog::Found& found,
                       ResolvedOptions options, bool use_cache) {
  TextRequest second;
  second.model = found.model;
  second.languages = found.languages;
  second.language_code = found.languages->source_language_code();
  second.options = std::move(options);
  second.split = true;
  second.word_scores = first.word_scores;
  second.alignments = first.alignments;
  second.use_cache = use_cache;
  second.detected = first.detected;
  second.may_be_empty = true;
  return second;
}

// Finds the model for a source language and checks the options that depend on it. `detected_in` is
// the name of a text in which the language was detected; it is empty if the request has the
// language. `checked` has what the texts of a request have in common, and those that are in this
// language.
template <typename Request>
absl::StatusOr<TextRequest> CheckModel(const Request& request, const Asked& asked,
                                       const std::string& source_language,
                                       absl::string_view detected_in, TextRequest checked,
                                       const Catalog& catalog) {
  absl::StatusOr<Catalog::Found> found = catalog.Find(asked.task, asked.model, source_language,
                                                      asked.target_language, asked.source_field);
  std::optional<Catalog::Pivot> pivot;
  if (absl::IsNotFound(found.status()) && asked.model.empty() && !asked.direct_only) {
    pivot = catalog.FindPivot(source_language, asked.target_language);
    if (pivot.has_value()) found = pivot->first;
  }
  if (!detected_in.empty() && !found.ok())
    return WithDetected(found.status(), asked, source_language, detected_in);
  RETURN_IF_ERROR(found.status());
  const std::shared_ptr<ServedModel>& model = found->model;
  DecodingOptions options = asked.options;
  ResolvedOptions second_options;
  if (pivot.has_value()) {
    RETURN_IF_ERROR(CheckPivot(asked, source_language, found->languages->target_language_code()));
    ASSIGN_OR_RETURN(second_options, ResolveOptions(options, *pivot->second.model, asked.paths));
    options.clear_min_target_tokens();
    options.clear_max_target_tokens();
  }
  ASSIGN_OR_RETURN(checked.options, ResolveOptions(options, *model, asked.paths));
  if (asked.length != nullptr) {
    RETURN_IF_ERROR(ApplySummaryLength(*asked.length, *model,
                                       found->languages->source_language_code(), options));
    checked.options = ResolvedOptions(model->bundle, options);
    checked.length = *asked.length;
  }
  if (asked.glossary != nullptr) {
    RETURN_IF_ERROR(CheckGlossary(*asked.glossary));
    checked.glossary = asked.glossary;
  }
  checked.model = model;
  checked.languages = found->languages;
  checked.language_code = found->languages->source_language_code();
  checked.list_hypotheses = asked.options.has_n_best();
  checked.word_scores = request.word_scores();
  checked.alignments = request.alignments();
  // Sampled answers are kept only on request.
  const auto use_cache = [&request](const ResolvedOptions& options) {
    return request.has_use_cache() ? request.use_cache() : !options.sampling();
  };
  checked.use_cache = use_cache(checked.options);
  if (pivot.has_value()) {
    const bool kept = use_cache(second_options);
    checked.second = std::make_shared<const TextRequest>(
        MakeSecond(checked, pivot->second, std::move(second_options), kept));
  }
  return checked;
}

// The request for the texts of each language, of which the first has the others.
template <typename Request>
absl::StatusOr<TextRequest> CheckLanguages(const Request& request, const Asked& asked,
                                           TextRequest checked, TextLanguages languages,
                                           const Catalog& catalog) {
  checked.detected = languages.shared;
  const bool is_alone = checked.items.size() == 1;
  checked.items.clear();
  std::vector<TextRequest> groups;
  for (LanguageGroup& group : languages.groups) {
    TextRequest part;
    part.priority = checked.priority;
    part.detected = checked.detected;
    part.max_segments = checked.max_segments;
    part.items = std::move(group.items);
    for (const TextItem& item : part.items) part.text_bytes += item.bytes();
    std::string detected_in;
    const auto named = std::find_if(part.items.begin(), part.items.end(),
                                    [](const TextItem& item) { return item.detected.has_value(); });
    if (named != part.items.end()) detected_in = is_alone ? "the text" : named->path;
    ASSIGN_OR_RETURN(
        part, CheckModel(request, asked, group.language, detected_in, std::move(part), catalog));
    groups.push_back(std::move(part));
  }
  if (!groups.empty()) {
    checked = std::move(groups.front());
    groups.erase(groups.begin());
    checked.others = std::move(groups);
  }
  checked.unchanged = std::move(languages.unchanged);
  return checked;
}

// Checks what the requests have in common. Without `items` the language is not detected, and the
// model may stay unknown.
template <typename Request>
absl::StatusOr<TextRequest> Check(const Request& request,
                                  std::optional<std::vector<TextItem>> items, const Asked& asked,
                                  const Catalog& catalog, const TextLimits& limits,
                                  std::unique_ptr<LanguageDetection>* later = nullptr) {
  TextRequest checked;
  checked.max_segments = limits.max_segments;
  if (items.has_value()) {
    checked.items = *std::move(items);
    RETURN_IF_ERROR(CheckItems(asked.items_field, checked.items, limits, checked.text_bytes));
  }
  RETURN_IF_ERROR(CheckLabels(request.labels()));
  RETURN_IF_ERROR(CheckPriority(request.priority(), checked.priority));
  if (!asked.source_language.empty()) {
    return CheckModel(request, asked, asked.source_language, /*detected_in=*/"", std::move(checked),
                      catalog);
  }
  ASSIGN_OR_RETURN(const auto choices,
                   catalog.SourceLanguages(asked.task, asked.model, asked.target_language,
                                           /*with_pivots=*/!asked.direct_only));
  // A named model that reads one language needs no detection.
  if (!asked.model.empty() && choices.size() <= 1)
    return CheckModel(request, asked, "", /*detected_in=*/"", std::move(checked), catalog);
  if (checked.items.empty()) return checked;
  // A score compares two texts, so a source in the target language is scored as it is.
  const std::string target = asked.keeps_target ? asked.target_language : "";
  std::unique_ptr<LanguageDetection> detection = later == nullptr ? nullptr : std::move(*later);
  if (detection == nullptr) {
    detection = std::make_unique<LanguageDetection>(checked.items, asked.markup, choices, target,
                                                    asked.source_field);
    if (later != nullptr) {
      *later = std::move(detection);
      return absl::UnavailableError("the languages of its texts are to be detected first");
    }
    detection->Step(std::numeric_limits<int64_t>::max());
  }
  ASSIGN_OR_RETURN(TextLanguages languages, detection->Take());
  return CheckLanguages(request, asked, std::move(checked), std::move(languages), catalog);
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
  ASSIGN_OR_RETURN(const std::optional<MarkupOptions> markup, CheckMarkup(request));
  ASSIGN_OR_RETURN(const std::shared_ptr<const ProtectedPatterns> protects,
                   ProtectedPatterns::Make(request.protected_patterns()));
  RETURN_IF_ERROR(
      CheckTargetPrefix(request, items.has_value() ? static_cast<int>(items->size()) : -1));
  if (request.target_language_code().empty())
    return BadField("target_language_code", Reason::kMissing, "is required");
  if (!linnet::v1::LineBreaks_IsValid(request.line_breaks()))
    return UnknownValue("line_breaks", request.line_breaks());
  auto checked =
      Check(request, std::move(items),
            {.task = linnet::v1::TASK_TRANSLATE,
             .model = request.model(),
             .source_language = Canonical(request.source_language_code()),
             .source_field = "source_language_code",
             .target_language = Canonical(request.target_language_code()),
             .options = request.options(),
             .keeps_target = true,
             .glossary = request.glossary().entries().empty() ? nullptr : &request.glossary(),
             .direct_only = request.direct_only(),
             .markup = markup,
             .target_prefix = request.target_prefix()},
            catalog, limits, later);
  if (!checked.ok()) return checked;
  if (!request.target_prefix().empty() && !checked->unchanged.empty()) {
    return BadField(kTargetPrefix, Reason::kBadSetting,
                    "is set for a text that seems to be in the target language already, and comes "
                    "back unchanged: set source_language_code, or leave it out");
  }
  RETURN_IF_ERROR(ForEachLanguage(*checked, [&](TextRequest& each) -> absl::Status {
    each.split = true;
    each.target_prefix = request.target_prefix();
    each.markup = markup;
    each.protects = protects;
    if (each.second != nullptr) {
      auto second = std::make_shared<TextRequest>(*each.second);
      second->protects = protects;
      each.second = std::move(second);
    }
    // The lines of a fragment are joined already: each block is one.
    each.join_lines =
        !markup.has_value() && request.line_breaks() == linnet::v1::LINE_BREAKS_JOIN_PARAGRAPHS;
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
  Asked asked = {.task = linnet::v1::TASK_SUMMARIZE,
                 .model = request.model(),
                 .source_language = Canonical(request.language_code()),
                 .source_field = "language_code",
                 .target_language = "",
                 .options = request.options(),
                 .length = request.has_length() ? &request.length() : nullptr};
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
  ASSIGN_OR_RETURN(auto checked, Check(request, std::move(items), asked, catalog, limits, later));
  const auto protects = std::make_shared<const ProtectedPatterns>();
  // The settings of a document may come before its language is known, and so its model.
  RETURN_IF_ERROR(ForEachLanguage(checked, [&](TextRequest& each) -> absl::Status {
    each.language_check = limits.language_check;
    each.protects = protects;
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
  Asked asked = {.task = linnet::v1::TASK_TRANSLATE,
                 .items_field = "pairs",
                 .model = request.model(),
                 .source_language = Canonical(request.source_language_code()),
                 .source_field = "source_language_code",
                 .target_language = Canonical(request.target_language_code()),
                 .options = {}};
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
  ASSIGN_OR_RETURN(auto checked, Check(request, std::move(items), asked, catalog, limits, later));
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
