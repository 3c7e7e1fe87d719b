#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "linnet/v1/text_service.pb.h"
#include "server/base/caller.h"
#include "server/models/catalog.h"
#include "server/text/language_detector.h"

namespace linnet::server {

// How much one call may bring. All of it follows from the memory that all calls together are given.
struct TextLimits {
  // Sets what follows from it.
  void FollowFrom(int64_t request_memory);

  int max_contents = 16384;
  int64_t max_text_bytes = int64_t{1} << 20;  // of all contents together
  int max_segments = 16384;                   // of all contents together
  int max_lines_under_way = 64;               // of one document
  // From the arrival of a call, or of a document's line: for those without a deadline, and at most.
  absl::Duration default_deadline = absl::InfiniteDuration();
  absl::Duration max_deadline = absl::InfiniteDuration();
  LanguageCheck language_check = LanguageCheck::kWarn;  // of what is translated or summarised
};

// A text of a request, and what the request calls it. Borrowed from the request.
struct TextItem {
  std::string path;  // "contents[3]"
  const std::string* text = nullptr;
  // Where a target is scored: "pairs[3].target_text".
  std::string target_path = {};
  const std::string* target = nullptr;
};

// What Translate, Summarize and Score come down to: a request that was checked in everything that
// can be told before tokenising.
struct TextRequest {
  std::shared_ptr<ServedModel> model;
  std::vector<TextItem> items;
  std::string language_code;  // of the source, as the model has it
  linnet::v1::DecodingOptions options;
  bool split = false;  // into segments; otherwise each text is one source
  linnet::v1::LongInput long_input = linnet::v1::LONG_INPUT_REJECT;  // unless it is split
  LanguageCheck language_check = LanguageCheck::kOff;
  bool word_scores = false;
  bool alignments = false;
  const linnet::v1::Glossary* glossary = nullptr;  // borrowed from the request; only if it has one
  std::optional<Priority> priority;                // if the request says it
  int64_t text_bytes = 0;
  // Only if the language was detected.
  std::optional<linnet::v1::DetectedLanguage> detected;
};

// INVALID_ARGUMENT or UNIMPLEMENTED with the path of the field, or NOT_FOUND for models and
// languages.
absl::StatusOr<TextRequest> CheckRequest(const linnet::v1::TranslateRequest& request,
                                         const Catalog& catalog, const TextLimits& limits);
absl::StatusOr<TextRequest> CheckRequest(const linnet::v1::SummarizeRequest& request,
                                         const Catalog& catalog, const TextLimits& limits);
absl::StatusOr<TextRequest> CheckRequest(const linnet::v1::ScoreRequest& request,
                                         const Catalog& catalog, const TextLimits& limits);
// The same without texts: what can be told of a document before its first line.
absl::Status CheckSettings(const linnet::v1::TranslateRequest& request, const Catalog& catalog,
                           const TextLimits& limits);
absl::Status CheckSettings(const linnet::v1::SummarizeRequest& request, const Catalog& catalog,
                           const TextLimits& limits);

// At least one text, none empty, all UTF-8, no more of them than go into one call. Counts their
// bytes.
absl::Status CheckContents(const google::protobuf::RepeatedPtrField<std::string>& contents,
                           const TextLimits& limits, int64_t& text_bytes);

}  // namespace linnet::server
