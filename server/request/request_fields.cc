#include "server/request/request_fields.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "model/runtime/text/segmenter.h"
#include "proto/status_macros.h"
#include "server/base/errors.h"

namespace linnet::server {

absl::Status CheckLabels(const Labels& labels) {
  constexpr int kMaxLabels = 16;
  constexpr size_t kMaxLabelBytes = 63;
  auto plain = [](absl::string_view word) {
    return word.size() <= kMaxLabelBytes && std::all_of(word.begin(), word.end(), [](char c) {
             return absl::ascii_islower(c) || absl::ascii_isdigit(c) || c == '_' || c == '-';
           });
  };
  if (labels.size() > kMaxLabels) {
    return BadField(
        "labels", Reason::kBadLabel,
        absl::StrCat("holds ", labels.size(), " labels, at most ", kMaxLabels, " are accepted"));
  }
  for (const auto& [key, value] : labels) {
    if (!key.empty() && plain(key) && plain(value)) continue;
    // The label stays out of the message: it may be anything.
    return BadField("labels", Reason::kBadLabel,
                    absl::StrCat("keys and values are 1 to ", kMaxLabelBytes,
                                 " lower-case letters, digits, '_' and '-'; values may be empty"));
  }
  return absl::OkStatus();
}

namespace {

// The names of elements in a field of MarkupOptions.
absl::StatusOr<std::vector<std::string>> CheckNames(
    absl::string_view field, const google::protobuf::RepeatedPtrField<std::string>& names) {
  constexpr int kMaxNames = 64;
  constexpr size_t kMaxNameBytes = 64;
  const std::string path = absl::StrCat("markup.", field);
  if (names.size() > kMaxNames) {
    return BadField(
        path, Reason::kBadSetting,
        absl::StrCat("holds ", names.size(), " names, at most ", kMaxNames, " are accepted"));
  }
  for (int i = 0; i < names.size(); ++i) {
    const std::string& name = names[i];
    if (!name.empty() && name.size() <= kMaxNameBytes &&
        name.find_first_of(" \t\n\f\r<>/") == std::string::npos)
      continue;
    return BadField(
        absl::StrCat(path, "[", i, "]"), Reason::kBadSetting,
        absl::StrCat("\"", absl::CHexEscape(name.substr(0, kMaxNameBytes)),
                     "\" is no name of an element: write 1 to ", kMaxNameBytes,
                     " bytes without white space, \"<\", \">\" and \"/\", as \"code\""));
  }
  return std::vector<std::string>(names.begin(), names.end());
}

}  // namespace

absl::StatusOr<std::optional<MarkupOptions>> CheckMarkup(
    const linnet::v1::TranslateRequest& request) {
  const std::string& type = request.mime_type();
  const bool html = absl::EqualsIgnoreCase(type, "text/html");
  if (!html && !absl::EqualsIgnoreCase(type, "application/xml")) {
    if (!type.empty() && !absl::EqualsIgnoreCase(type, "text/plain")) {
      return BadField(
          "mime_type", Reason::kUnsupportedFormat,
          absl::StrCat("\"", absl::CHexEscape(type.substr(0, 80)),
                       "\" is not supported: send text/plain, text/html or application/xml"));
    }
    if (!request.has_markup()) return std::nullopt;
    return BadField("markup", Reason::kBadSetting,
                    "is set, and the texts are plain: set mime_type to text/html or "
                    "application/xml, or leave it out");
  }
  const linnet::v1::MarkupOptions& asked = request.markup();
  MarkupOptions options;
  options.syntax = html ? MarkupSyntax::kHtml : MarkupSyntax::kXml;
  options.attributes = asked.attributes();
  ASSIGN_OR_RETURN(options.ignore_tags, CheckNames("ignore_tags", asked.ignore_tags()));
  ASSIGN_OR_RETURN(options.splitting_tags, CheckNames("splitting_tags", asked.splitting_tags()));
  ASSIGN_OR_RETURN(options.non_splitting_tags,
                   CheckNames("non_splitting_tags", asked.non_splitting_tags()));
  return options;
}

absl::Status UnknownValue(absl::string_view field, int value) {
  return BadField(field, Reason::kBadSetting,
                  absl::StrCat("is ", value, ", which this server does not know"));
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
      return UnknownValue("priority", priority);
  }
}

absl::Status CheckText(const std::string& path, const std::string& text) {
  if (const int byte = model::FirstInvalidUtf8(text); byte >= 0) {
    return BadField(path, Reason::kInvalidUtf8,
                    absl::StrCat("text must be UTF-8, byte ", byte, " is not"),
                    {{"byte", absl::StrCat(byte)}});
  }
  if (model::IsBlank(text)) {
    return BadField(path, Reason::kEmpty,
                    text.empty() ? "text is empty" : "text is only white space");
  }
  return absl::OkStatus();
}

absl::Status CheckCount(absl::string_view field, int texts, const TextLimits& limits) {
  if (texts == 0) return BadField(field, Reason::kEmpty, "at least one text is needed");
  if (texts <= limits.max_contents) return absl::OkStatus();
  return BadField(
      field, Reason::kTooManyTexts,
      absl::StrCat("holds ", texts, " texts, at most ", limits.max_contents,
                   " go into one call: send the rest in another"),
      {{"texts", absl::StrCat(texts)}, {"maxTexts", absl::StrCat(limits.max_contents)}});
}

absl::Status CheckItems(absl::string_view field, const std::vector<TextItem>& items,
                        const TextLimits& limits, int64_t& text_bytes) {
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
    RETURN_IF_ERROR(CheckText(item.path, *item.text));
    if (item.target == nullptr) continue;
    RETURN_IF_ERROR(CheckText(item.target_path, *item.target));
  }
  return absl::OkStatus();
}

}  // namespace linnet::server
