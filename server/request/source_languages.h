#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "linnet/v1/text_service.pb.h"
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

// Detects the language of each text among `choices`, the source languages that could be served, and
// the target language (empty: none). A text that is too short to tell is taken to be in the
// language of most of the others, or of all texts read together, or in the only choice. `field` is
// the request's name for its source language, for the error: LANGUAGE_UNKNOWN.
absl::StatusOr<TextLanguages> DetectLanguages(std::vector<TextItem> items,
                                              const std::vector<std::string>& choices,
                                              const std::string& target_language,
                                              absl::string_view field);

}  // namespace linnet::server
