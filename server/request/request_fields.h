#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "linnet/v1/text_service.pb.h"
#include "server/base/caller.h"
#include "server/request/text_request.h"

namespace linnet::server {

// Checks of the fields that requests have in common. They return INVALID_ARGUMENT or UNIMPLEMENTED
// with the path of the field.

using Labels = google::protobuf::Map<std::string, std::string>;
absl::Status CheckLabels(const Labels& labels);
// The error of a value of an enum that a newer client may know.
absl::Status UnknownValue(absl::string_view field, int value);
// How the texts are read; none if they are plain.
absl::StatusOr<std::optional<MarkupOptions>> CheckMarkup(
    const linnet::v1::TranslateRequest& request);
// Unspecified leaves `checked` unchanged.
absl::Status CheckPriority(linnet::v1::Priority priority, std::optional<Priority>& checked);
// Checks that the text is valid UTF-8 and not only white space.
absl::Status CheckText(const std::string& path, const std::string& text);
// Checks that there is at least one text, and no more than a call may have. `field` is the field
// that holds them.
absl::Status CheckCount(absl::string_view field, int texts, const TextLimits& limits);
// Checks that no text is empty, all are UTF-8, and all of them together fit into one call.
absl::Status CheckItems(absl::string_view field, const std::vector<TextItem>& items,
                        const TextLimits& limits, int64_t& text_bytes);

}  // namespace linnet::server
