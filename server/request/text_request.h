#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "linnet/v1/text_service.pb.h"
#include "server/base/caller.h"
#include "server/markup/elements.h"
#include "server/models/catalog.h"
#include "server/request/decoding_options.h"
#include "server/request/language_detector.h"
#include "server/request/protected_patterns.h"

namespace linnet::server {

// Limits on one call. They are derived from the memory of all calls together.
struct TextLimits {
  // Sets the limits that depend on the memory for requests, in bytes.
  void DeriveFrom(int64_t request_memory);

  int max_contents = 16384;
  int64_t max_text_bytes = int64_t{1} << 20;  // of all contents together
  int max_segments = 16384;                   // of all contents together
  int max_inflight_lines = 64;                // of one document
  // Counted from the arrival of a call or of a document's line: the deadline of calls without one,
  // and the max deadline.
  absl::Duration default_deadline = absl::InfiniteDuration();
  absl::Duration max_deadline = absl::InfiniteDuration();
  LanguageCheck language_check = LanguageCheck::kWarn;  // of translations and summaries
};

// A text of a request with its field path. Borrowed from the request.
struct TextItem {
  std::string path;  // "contents[3]"
  const std::string* text = nullptr;
  // Set if a target is scored: "pairs[3].target_text".
  std::string target_path = {};
  const std::string* target = nullptr;
  int index = 0;  // in the request
  // Set if the language of the text was detected.
  std::optional<linnet::v1::DetectedLanguage> detected = std::nullopt;

  int64_t bytes() const {
    return std::ssize(*text) + (target == nullptr ? 0 : std::ssize(*target));
  }
};

// The common form of Translate, Summarize and Score requests. It has passed all checks that need no
// tokenising.
struct TextRequest {
  std::shared_ptr<ServedModel> model;
  std::vector<TextItem> items;
  const linnet::v1::LanguageTokens* languages = nullptr;  // pair and style, owned by the model
  std::string language_code;                              // of the source, as the model has it
  ResolvedOptions options;
  bool list_hypotheses = false;         // n_best is set
  bool split = false;                   // into segments; otherwise each text is one source
  bool join_lines = false;              // of each paragraph, before the text is split
  std::optional<MarkupOptions> markup;  // the texts are fragments of HTML or XML
  // What a translation does not change; null if nothing is protected.
  std::shared_ptr<const ProtectedPatterns> protects = nullptr;
  linnet::v1::LongInput long_input = linnet::v1::LONG_INPUT_REJECT;  // if not split
  std::optional<linnet::v1::SummaryLength> length;  // the requested length of a summary
  LanguageCheck language_check = LanguageCheck::kOff;
  // What the answer to the only text begins with, byte for byte; borrowed from the request. Empty:
  // anything.
  absl::string_view target_prefix = {};
  bool word_scores = false;
  bool alignments = false;
  bool use_cache = true;
  const linnet::v1::Glossary* glossary = nullptr;  // borrowed from the request; null if it has none
  std::optional<Priority> priority;                // if the request sets it
  int64_t text_bytes = 0;
  int max_segments = std::numeric_limits<int>::max();  // of all texts
  // Only if the language was detected and is that of all texts of the call.
  std::optional<linnet::v1::DetectedLanguage> detected;
  // The requests for the other languages, if the texts of a call are in several. Each has its own
  // items and model.
  std::vector<TextRequest> others = {};
  // Texts that are already in the target language. Without any other, there is no model.
  std::vector<TextItem> unchanged = {};
  // Set if `model` translates into a third language: the request for the model that reads its
  // translations, without its items.
  std::shared_ptr<const TextRequest> second = nullptr;
  // A text has no segments if the model reads none of its characters. Otherwise that is an error.
  bool may_be_empty = false;
};

class LanguageDetection;

// INVALID_ARGUMENT or UNIMPLEMENTED with the path of the field, or NOT_FOUND for models and
// languages. If `later` is not null and the languages of the texts have to be detected, sets it and
// fails: call it again with the detection, when that is done.
absl::StatusOr<TextRequest> CheckRequest(const linnet::v1::TranslateRequest& request,
                                         const Catalog& catalog, const TextLimits& limits,
                                         std::unique_ptr<LanguageDetection>* later = nullptr);
absl::StatusOr<TextRequest> CheckRequest(const linnet::v1::SummarizeRequest& request,
                                         const Catalog& catalog, const TextLimits& limits,
                                         std::unique_ptr<LanguageDetection>* later = nullptr);
absl::StatusOr<TextRequest> CheckRequest(const linnet::v1::ScoreRequest& request,
                                         const Catalog& catalog, const TextLimits& limits,
                                         std::unique_ptr<LanguageDetection>* later = nullptr);
// The same for the settings of a document, before its first line.
absl::Status CheckSettings(const linnet::v1::TranslateRequest& request, const Catalog& catalog,
                           const TextLimits& limits);
absl::Status CheckSettings(const linnet::v1::SummarizeRequest& request, const Catalog& catalog,
                           const TextLimits& limits);

// Checks that there is at least one text, none is empty, all are UTF-8, and all of them fit into
// one call. Counts their bytes.
absl::Status CheckContents(const google::protobuf::RepeatedPtrField<std::string>& contents,
                           const TextLimits& limits, int64_t& text_bytes);

}  // namespace linnet::server
