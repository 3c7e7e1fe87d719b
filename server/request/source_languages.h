#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "linnet/v1/text_service.pb.h"
#include "server/markup/elements.h"
#include "server/request/language_detector.h"
#include "server/request/text_request.h"

namespace linnet::server {

// The texts of a request that are in one language.
struct LanguageGroup {
  std::string language;         // one of the choices, or another that was reliably detected
  std::vector<TextItem> items;  // in the order of the request
};

// The texts of a request by their languages.
struct TextLanguages {
  std::vector<LanguageGroup> groups;  // in the order of their first texts
  std::vector<TextItem> unchanged;    // in the target language
  // The language that all texts share, if they share one and it was detected.
  std::optional<linnet::v1::DetectedLanguage> shared;
};

// Detects the language of each text of a request among `choices`, the source languages that could
// be served, and the target language (empty: none), in steps. A text that is too short to tell is
// taken to be in the language of most of the others, or of all texts read together, or in the only
// choice. The plain text of a fragment with markup is read. The texts must outlive it. One thread
// at a time may call it.
class LanguageDetection {
 public:
  // `field` is the request's name for its source language, for the error: LANGUAGE_UNKNOWN.
  LanguageDetection(std::vector<TextItem> items, const std::optional<MarkupOptions>& markup,
                    std::vector<std::string> choices, std::string target_language,
                    absl::string_view field);

  // Reads texts of about that many bytes.
  void Step(int64_t bytes);
  bool done() const { return next_ == items_.size(); }
  int64_t texts() const { return std::ssize(items_); }
  // The texts by their languages; all have been read.
  absl::StatusOr<TextLanguages> Take();

 private:
  absl::string_view TextOf(size_t item) const;
  std::string MainLanguage() const;
  std::string AllTexts() const;

  std::vector<TextItem> items_;
  const std::optional<MarkupOptions> markup_;
  const std::vector<std::string> choices_;
  const std::string target_language_;
  const std::string field_;
  const std::vector<std::string> candidates_;
  const LanguageChooser chooser_;
  std::vector<std::string> plain_texts_;  // of the starts of fragments
  size_t next_ = 0;                       // item
};

}  // namespace linnet::server
