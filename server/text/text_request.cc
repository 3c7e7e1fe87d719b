#include "server/text/text_request.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "model/runtime/segmenter.h"
#include "server/errors.h"
#include "server/text/language_detector.h"

namespace linnet::server {
namespace {

using google::protobuf::FieldDescriptor;
using linnet::v1::DecodingOptions;

std::string Item(absl::string_view field, int index) {
  return absl::StrCat(field, "[", index, "]");
}

// Options of the request that are set, in an order in which each can be checked against those
// before it.
constexpr int kOptionOrder[] = {
    DecodingOptions::kTopKFieldNumber,
    DecodingOptions::kTopPFieldNumber,
    DecodingOptions::kSeedFieldNumber,  // sampling or not: how n_best and beam_size hang together
    DecodingOptions::kBeamSizeFieldNumber,
    DecodingOptions::kNBestFieldNumber,
    DecodingOptions::kLengthPenaltyFieldNumber,
    DecodingOptions::kUnknownPenaltyFieldNumber,
    DecodingOptions::kTemperatureFieldNumber,
    DecodingOptions::kNormalizeScoresFieldNumber,
    DecodingOptions::kMaxTargetTokensFieldNumber,
    DecodingOptions::kMinTargetTokensFieldNumber,
    DecodingOptions::kNoRepeatNgramSizeFieldNumber};

// Sets the options one by one, so that the first that model::CheckOptions refuses is the one to
// name. `paths` says what the request calls an option, where that is not options.<name>.
absl::Status CheckDecodingOptions(const DecodingOptions& options, const ServedModel& model,
                                  const std::map<int, std::string>& paths) {
  const google::protobuf::Reflection& reflection = *options.GetReflection();
  DecodingOptions so_far;
  for (int number : kOptionOrder) {
    const FieldDescriptor* field = DecodingOptions::descriptor()->FindFieldByNumber(number);
    if (!reflection.HasField(options, field)) continue;
    const std::string path =
        paths.contains(number) ? paths.at(number) : absl::StrCat("options.", field->name());
    switch (field->cpp_type()) {
      case FieldDescriptor::CPPTYPE_FLOAT:
        reflection.SetFloat(&so_far, field, reflection.GetFloat(options, field));
        break;
      case FieldDescriptor::CPPTYPE_BOOL:
        reflection.SetBool(&so_far, field, reflection.GetBool(options, field));
        break;
      case FieldDescriptor::CPPTYPE_UINT64:
        reflection.SetUInt64(&so_far, field, reflection.GetUInt64(options, field));
        break;
      default:
        reflection.SetInt32(&so_far, field, reflection.GetInt32(options, field));
    }
    const model::SearchOptions merged =
        MergeOptions(model.bundle, so_far, model.bundle.manifest.limits().max_source_tokens());
    if (auto status = model::CheckOptions(merged, model.scheduler->engine_info().limits);
        !status.ok()) {
      absl::string_view message = status.message();
      absl::ConsumePrefix(&message, field->name() + " ");  // the path says it, and better
      return BadField(path, Reason::kBadOption, message);
    }
  }
  return absl::OkStatus();
}

using Labels = google::protobuf::Map<std::string, std::string>;

absl::Status CheckLabels(const Labels& labels) {
  constexpr int kMostLabels = 16;
  constexpr size_t kLongest = 63;
  auto plain = [](absl::string_view word) {
    return word.size() <= kLongest && std::all_of(word.begin(), word.end(), [](char c) {
             return absl::ascii_islower(c) || absl::ascii_isdigit(c) || c == '_' || c == '-';
           });
  };
  if (labels.size() > kMostLabels) {
    return BadField(
        "labels", Reason::kBadLabel,
        absl::StrCat("holds ", labels.size(), " labels, at most ", kMostLabels, " are taken"));
  }
  for (const auto& [key, value] : labels) {
    if (!key.empty() && plain(key) && plain(value)) continue;
    // What it says stays out of the message: it may be anything.
    return BadField("labels", Reason::kBadLabel,
                    absl::StrCat("keys and values are 1 to ", kLongest,
                                 " lower-case letters, digits, '_' and '-'; values may be empty"));
  }
  return absl::OkStatus();
}

absl::Status CheckMimeType(absl::string_view mime_type) {
  if (mime_type.empty() || absl::EqualsIgnoreCase(mime_type, "text/plain")) return absl::OkStatus();
  return BadField("mime_type", Reason::kUnsupportedFormat,
                  absl::StrCat("\"", absl::CHexEscape(mime_type.substr(0, 80)),
                               "\" is not supported: send text/plain"));
}

absl::Status CheckPriority(linnet::v1::Priority priority, std::optional<Priority>& checked) {
  switch (priority) {
    case linnet::v1::PRIORITY_UNSPECIFIED:
      return absl::OkStatus();
    case linnet::v1::PRIORITY_BATCH:
      checked = Priority::kBatch;
      return absl::OkStatus();
    case linnet::v1::PRIORITY_NORMAL:
      checked = Priority::kNormal;
      return absl::OkStatus();
    case linnet::v1::PRIORITY_INTERACTIVE:
      checked = Priority::kInteractive;
      return absl::OkStatus();
    default:
      return BadField("priority", Reason::kBadSetting,
                      absl::StrCat("is ", priority, ", which this server does not know"));
  }
}

absl::Status CheckText(const std::string& path, const std::string& text) {
  if (const int byte = model::FirstInvalidUtf8(text); byte >= 0) {
    return BadField(path, Reason::kInvalidUtf8,
                    absl::StrCat("text must be UTF-8, byte ", byte, " is not"),
                    {{"byte", absl::StrCat(byte)}});
  }
  if (absl::StripAsciiWhitespace(text).empty()) {
    return BadField(path, Reason::kEmpty,
                    text.empty() ? "text is empty" : "text is nothing but white space");
  }
  return absl::OkStatus();
}

// At least one text, none empty, all UTF-8, no more of them than go into one call. `field` holds
// them.
absl::Status CheckItems(absl::string_view field, const std::vector<TextItem>& items,
                        const TextLimits& limits, int64_t& text_bytes) {
  if (items.empty()) return BadField(field, Reason::kEmpty, "at least one text is needed");
  if (std::ssize(items) > limits.max_contents) {
    return BadField(
        field, Reason::kTooManyTexts,
        absl::StrCat("holds ", items.size(), " texts, at most ", limits.max_contents,
                     " go into one call: send the rest in another"),
        {{"texts", absl::StrCat(items.size())}, {"maxTexts", absl::StrCat(limits.max_contents)}});
  }
  text_bytes = 0;
  for (const TextItem& item : items) {
    text_bytes += std::ssize(*item.text);
    if (item.target != nullptr) text_bytes += std::ssize(*item.target);
  }
  if (text_bytes > limits.max_text_bytes) {
    return BadField(
        field, Reason::kTextTooLarge,
        absl::StrCat("holds ", text_bytes, " bytes of text, at most ", limits.max_text_bytes,
                     " go into one call: send the rest in another"),
        {{"bytes", absl::StrCat(text_bytes)}, {"maxBytes", absl::StrCat(limits.max_text_bytes)}});
  }
  for (const TextItem& item : items) {
    if (auto status = CheckText(item.path, *item.text); !status.ok()) return status;
    if (item.target == nullptr) continue;
    if (auto status = CheckText(item.target_path, *item.target); !status.ok()) return status;
  }
  return absl::OkStatus();
}

std::vector<TextItem> ItemsOf(const google::protobuf::RepeatedPtrField<std::string>& contents) {
  std::vector<TextItem> items;
  for (int i = 0; i < contents.size(); ++i)
    items.push_back({.path = Item("contents", i), .text = &contents[i]});
  return items;
}

std::vector<TextItem> ItemsOf(
    const google::protobuf::RepeatedPtrField<linnet::v1::ScorePair>& pairs) {
  std::vector<TextItem> items;
  for (int i = 0; i < pairs.size(); ++i) {
    items.push_back({.path = Item("pairs", i) + ".source_text",
                     .text = &pairs[i].source_text(),
                     .target_path = Item("pairs", i) + ".target_text",
                     .target = &pairs[i].target_text()});
  }
  return items;
}

// The language of texts that a request leaves to us. They are in one language, so that all of them
// together say which.
absl::StatusOr<linnet::v1::DetectedLanguage> DetectLanguageOf(const std::vector<TextItem>& items,
                                                              absl::string_view field) {
  constexpr size_t kBytesEnough = 4096;
  std::string sample;
  for (const TextItem& item : items) {
    absl::StrAppend(&sample, *item.text, "\n");
    if (sample.size() >= kBytesEnough) break;
  }
  const LanguageGuess guess = DetectLanguage(sample);
  if (!guess.known()) {
    return BadField(field, Reason::kLanguageUnknown,
                    "is not set, and the text does not say it clearly enough: set it, or name a "
                    "model");
  }
  linnet::v1::DetectedLanguage detected;
  detected.set_language_code(guess.languages.front().code);
  detected.set_confidence(guess.languages.front().share);
  return detected;
}

// What a request says, under the names that its method has for it.
struct Asked {
  linnet::v1::Task task;
  absl::string_view items_field = "contents";
  absl::string_view model;
  absl::string_view source_language;
  absl::string_view source_field;  // what the request calls it
  absl::string_view target_language;
  DecodingOptions options;
  std::map<int, std::string> paths = {};  // of options that are set elsewhere
};

// What the requests have in common. Without `items` a language that is to be detected is not, and
// the model stays unknown.
template <typename Request>
absl::StatusOr<TextRequest> Check(const Request& request,
                                  std::optional<std::vector<TextItem>> items, const Asked& asked,
                                  const Catalog& catalog, const TextLimits& limits) {
  TextRequest checked;
  if (items.has_value()) {
    checked.items = *std::move(items);
    if (auto status = CheckItems(asked.items_field, checked.items, limits, checked.text_bytes);
        !status.ok())
      return status;
  }
  if (auto status = CheckLabels(request.labels()); !status.ok()) return status;
  if (auto status = CheckPriority(request.priority(), checked.priority); !status.ok())
    return status;
  std::string source_language(asked.source_language);
  if (source_language.empty() && asked.model.empty()) {
    if (checked.items.empty()) return checked;
    auto detected = DetectLanguageOf(checked.items, asked.source_field);
    if (!detected.ok()) return detected.status();
    source_language = detected->language_code();
    checked.detected = *std::move(detected);
  }
  const absl::StatusOr<std::shared_ptr<ServedModel>> model = catalog.Find(
      asked.task, asked.model, source_language, asked.target_language, asked.source_field);
  if (absl::IsNotFound(model.status()) && checked.detected.has_value()) {
    return NoSuchModel(
        source_language,
        absl::StrCat(asked.source_field, " is not set and the text seems to be in \"",
                     source_language, "\": ", model.status().message()));
  }
  if (!model.ok()) return model.status();
  if (auto status = CheckDecodingOptions(asked.options, **model, asked.paths); !status.ok())
    return status;
  checked.model = *model;
  checked.language_code = (*model)->bundle.manifest.source_language_code();
  checked.options = asked.options;
  checked.word_scores = request.word_scores();
  return checked;
}

absl::StatusOr<TextRequest> CheckTranslate(const linnet::v1::TranslateRequest& request,
                                           std::optional<std::vector<TextItem>> items,
                                           const Catalog& catalog, const TextLimits& limits) {
  if (auto status = CheckMimeType(request.mime_type()); !status.ok()) return status;
  if (request.target_language_code().empty())
    return BadField("target_language_code", Reason::kMissing, "is required");
  auto checked = Check(request, std::move(items),
                       {.task = linnet::v1::TASK_TRANSLATE,
                        .model = request.model(),
                        .source_language = request.source_language_code(),
                        .source_field = "source_language_code",
                        .target_language = request.target_language_code(),
                        .options = request.options()},
                       catalog, limits);
  if (checked.ok()) checked->split = true;
  return checked;
}

absl::StatusOr<TextRequest> CheckSummarize(const linnet::v1::SummarizeRequest& request,
                                           std::optional<std::vector<TextItem>> items,
                                           const Catalog& catalog, const TextLimits& limits) {
  Asked asked = {.task = linnet::v1::TASK_SUMMARIZE,
                 .model = request.model(),
                 .source_language = request.language_code(),
                 .source_field = "language_code",
                 .target_language = "",
                 .options = request.options()};
  auto twice = [](absl::string_view field, absl::string_view option) {
    return BadField(field, Reason::kSetTwice,
                    absl::StrCat("says the same as options.", option, ": set one of them"));
  };
  if (request.has_min_summary_tokens()) {
    if (asked.options.has_min_target_tokens())
      return twice("min_summary_tokens", "min_target_tokens");
    asked.options.set_min_target_tokens(request.min_summary_tokens());
    asked.paths[DecodingOptions::kMinTargetTokensFieldNumber] = "min_summary_tokens";
  }
  if (request.has_max_summary_tokens()) {
    if (asked.options.has_max_target_tokens())
      return twice("max_summary_tokens", "max_target_tokens");
    asked.options.set_max_target_tokens(request.max_summary_tokens());
    asked.paths[DecodingOptions::kMaxTargetTokensFieldNumber] = "max_summary_tokens";
  }
  if (!linnet::v1::LongInput_IsValid(request.long_input())) {
    return BadField("long_input", Reason::kBadSetting,
                    absl::StrCat("is ", request.long_input(), ", which this server does not know"));
  }
  auto checked = Check(request, std::move(items), asked, catalog, limits);
  if (checked.ok() && request.long_input() != linnet::v1::LONG_INPUT_UNSPECIFIED)
    checked->long_input = request.long_input();
  return checked;
}

}  // namespace

absl::Status CheckContents(const google::protobuf::RepeatedPtrField<std::string>& contents,
                           const TextLimits& limits, int64_t& text_bytes) {
  return CheckItems("contents", ItemsOf(contents), limits, text_bytes);
}

absl::StatusOr<TextRequest> CheckRequest(const linnet::v1::TranslateRequest& request,
                                         const Catalog& catalog, const TextLimits& limits) {
  return CheckTranslate(request, ItemsOf(request.contents()), catalog, limits);
}

absl::StatusOr<TextRequest> CheckRequest(const linnet::v1::SummarizeRequest& request,
                                         const Catalog& catalog, const TextLimits& limits) {
  return CheckSummarize(request, ItemsOf(request.contents()), catalog, limits);
}

absl::StatusOr<TextRequest> CheckRequest(const linnet::v1::ScoreRequest& request,
                                         const Catalog& catalog, const TextLimits& limits) {
  Asked asked = {.task = linnet::v1::TASK_TRANSLATE,
                 .items_field = "pairs",
                 .model = request.model(),
                 .source_language = request.source_language_code(),
                 .source_field = "source_language_code",
                 .target_language = request.target_language_code(),
                 .options = {}};
  if (!request.model().empty()) {
    // A summary may be scored as well as a translation.
    const auto model = catalog.Named(request.model());
    if (!model.ok()) return model.status();
    asked.task = (*model)->bundle.manifest.task();
  } else if (request.source_language_code().empty() || request.target_language_code().empty()) {
    return BadField(
        request.source_language_code().empty() ? asked.source_field : "target_language_code",
        Reason::kMissing, "is required where no model is named");
  }
  const linnet::v1::ScoringOptions& options = request.options();
  if (options.has_length_penalty()) asked.options.set_length_penalty(options.length_penalty());
  if (options.has_unknown_penalty()) asked.options.set_unknown_penalty(options.unknown_penalty());
  if (options.has_normalize_scores())
    asked.options.set_normalize_scores(options.normalize_scores());
  if (options.has_temperature()) asked.options.set_temperature(options.temperature());
  return Check(request, ItemsOf(request.pairs()), asked, catalog, limits);
}

absl::Status CheckSettings(const linnet::v1::TranslateRequest& request, const Catalog& catalog,
                           const TextLimits& limits) {
  return CheckTranslate(request, std::nullopt, catalog, limits).status();
}

absl::Status CheckSettings(const linnet::v1::SummarizeRequest& request, const Catalog& catalog,
                           const TextLimits& limits) {
  return CheckSummarize(request, std::nullopt, catalog, limits).status();
}

model::SearchOptions MergeOptions(const model::Bundle& bundle, const DecodingOptions& options,
                                  int source_tokens) {
  model::SearchOptions merged = bundle.default_options(source_tokens);
  if (options.has_beam_size()) merged.beam_size = options.beam_size();
  if (options.has_length_penalty()) merged.length_penalty = options.length_penalty();
  if (options.has_unknown_penalty()) merged.unknown_penalty = options.unknown_penalty();
  if (options.has_no_repeat_ngram_size())
    merged.no_repeat_ngram_size = options.no_repeat_ngram_size();
  if (options.has_n_best()) merged.n_best = options.n_best();
  if (options.has_normalize_scores()) merged.normalize_scores = options.normalize_scores();
  if (options.has_temperature()) merged.temperature = options.temperature();
  if (options.has_top_k()) merged.top_k = options.top_k();
  if (options.has_top_p()) merged.top_p = options.top_p();
  if (options.has_seed()) merged.seed = options.seed();
  // The model's beam is for searching. Who samples draws what he asks for.
  if (merged.sampling() && !options.has_beam_size()) merged.beam_size = merged.n_best;
  if (options.has_min_target_tokens()) {
    merged.min_target_tokens = options.min_target_tokens();
    merged.max_target_tokens =
        std::max(merged.max_target_tokens,
                 std::min(merged.min_target_tokens, bundle.manifest.limits().max_target_tokens()));
  }
  if (options.has_max_target_tokens()) {
    merged.max_target_tokens = options.max_target_tokens();
    if (!options.has_min_target_tokens()) {
      merged.min_target_tokens = std::min(merged.min_target_tokens, merged.max_target_tokens);
    }
  }
  return merged;
}

}  // namespace linnet::server
