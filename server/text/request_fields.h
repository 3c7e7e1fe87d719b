#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "linnet/v1/text_service.pb.h"
#include "server/base/caller.h"
#include "server/text/text_request.h"

namespace linnet::server {

// The fields that requests have in common, each checked for itself: INVALID_ARGUMENT or
// UNIMPLEMENTED with the path of the field.

using Labels = google::protobuf::Map<std::string, std::string>;
absl::Status CheckLabels(const Labels& labels);
absl::Status CheckMimeType(absl::string_view mime_type);
// Unspecified leaves `checked` as it is.
absl::Status CheckPriority(linnet::v1::Priority priority, std::optional<Priority>& checked);
// Valid UTF-8, and not nothing but white space.
absl::Status CheckText(const std::string& path, const std::string& text);
// At least one text, none empty, all UTF-8, no more of them than go into one call. `field` holds
// them.
absl::Status CheckItems(absl::string_view field, const std::vector<TextItem>& items,
                        const TextLimits& limits, int64_t& text_bytes);

}  // namespace linnet::server
