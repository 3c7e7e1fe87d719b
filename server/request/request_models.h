#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "linnet/v1/text_service.pb.h"
#include "server/markup/elements.h"
#include "server/models/catalog.h"
#include "server/request/protected_patterns.h"
#include "server/request/request_fields.h"
#include "server/request/source_languages.h"
#include "server/request/text_request.h"

namespace linnet::server {

// What a request asks for, and the names of the fields of its method. It points into the request.
struct Asked {
  linnet::v1::Task task = linnet::v1::TASK_UNSPECIFIED;
  absl::string_view items_field = "contents";
  absl::string_view model;
  std::string source_language;     // canonical, if it is a language code
  absl::string_view source_field;  // name of the field
  std::string target_language;     // as source_language
  linnet::v1::DecodingOptions options;
  std::map<std::string, std::string> paths;  // of options that are set in other fields
  const Labels* labels = nullptr;
  linnet::v1::Priority priority = linnet::v1::PRIORITY_UNSPECIFIED;
  bool word_scores = false;
  bool alignments = false;
  std::optional<bool> use_cache;
  bool keeps_target = false;  // a text that is in the target language already is not translated
  const linnet::v1::Glossary* glossary = nullptr;
  const linnet::v1::SummaryLength* length = nullptr;
  bool direct_only = true;  // two models never answer together
  std::optional<MarkupOptions> markup;
  std::shared_ptr<const ProtectedPatterns> protects;
  absl::string_view target_prefix;
};

constexpr absl::string_view kTargetPrefix = "target_prefix";

// Checks what all methods have in common, detects the languages of the texts, unless the request
// names one, and finds the model for each. Without `items`, as for the settings of a document, no
// language is detected, and the model may stay unknown. Errors and `later` as in CheckRequest.
absl::StatusOr<TextRequest> FindModels(const Asked& asked,
                                       std::optional<std::vector<TextItem>> items,
                                       const Catalog& catalog, const TextLimits& limits,
                                       std::unique_ptr<LanguageDetection>* later);

}  // namespace linnet::server
