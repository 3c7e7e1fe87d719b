#include "server/request/request_models.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/status_macros.h"
#include "server/base/errors.h"
#include "server/request/decoding_options.h"
#include "server/request/glossary.h"
#include "server/request/summary_length.h"

namespace linnet::server {
namespace {

using linnet::v1::DecodingOptions;

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
  second.protects = first.protects;
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
absl::StatusOr<TextRequest> CheckModel(const Asked& asked, const std::string& source_language,
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
  checked.protects = asked.protects;
  checked.model = model;
  checked.languages = found->languages;
  checked.language_code = found->languages->source_language_code();
  checked.list_hypotheses = asked.options.has_n_best();
  checked.word_scores = asked.word_scores;
  checked.alignments = asked.alignments;
  // Sampled answers are kept only on request.
  const auto use_cache = [&asked](const ResolvedOptions& options) {
    return asked.use_cache.value_or(!options.sampling());
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
absl::StatusOr<TextRequest> CheckLanguages(const Asked& asked, TextRequest checked,
                                           TextLanguages languages, const Catalog& catalog) {
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
    ASSIGN_OR_RETURN(part,
                     CheckModel(asked, group.language, detected_in, std::move(part), catalog));
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

}  // namespace

absl::StatusOr<TextRequest> FindModels(const Asked& asked,
                                       std::optional<std::vector<TextItem>> items,
                                       const Catalog& catalog, const TextLimits& limits,
                                       std::unique_ptr<LanguageDetection>* later) {
  TextRequest checked;
  checked.max_segments = limits.max_segments;
  if (items.has_value()) {
    checked.items = *std::move(items);
    RETURN_IF_ERROR(CheckItems(asked.items_field, checked.items, limits, checked.text_bytes));
  }
  RETURN_IF_ERROR(CheckLabels(*asked.labels));
  RETURN_IF_ERROR(CheckPriority(asked.priority, checked.priority));
  if (!asked.source_language.empty()) {
    return CheckModel(asked, asked.source_language, /*detected_in=*/"", std::move(checked),
                      catalog);
  }
  ASSIGN_OR_RETURN(const auto choices,
                   catalog.SourceLanguages(asked.task, asked.model, asked.target_language,
                                           /*with_pivots=*/!asked.direct_only));
  // A named model that reads one language needs no detection.
  if (!asked.model.empty() && choices.size() <= 1)
    return CheckModel(asked, "", /*detected_in=*/"", std::move(checked), catalog);
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
  return CheckLanguages(asked, std::move(checked), std::move(languages), catalog);
}

}  // namespace linnet::server
