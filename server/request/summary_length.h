#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "linnet/v1/text_service.pb.h"
#include "model/runtime/search/target_length.h"
#include "server/models/served_model.h"

namespace linnet::server {

// Checks a requested length, and sets the bounds on target tokens that the request leaves open:
// room for the length in place of the model's defaults. BAD_SETTING with the path of the field.
absl::Status ApplySummaryLength(const linnet::v1::SummaryLength& length, const ServedModel& model,
                                const std::string& language_code,
                                linnet::v1::DecodingOptions& options);

// The rule of one of the chunks of a text, which share the length evenly. BAD_SETTING if there are
// more chunks than words or sentences.
absl::StatusOr<std::shared_ptr<const model::TargetLength>> LengthOfChunk(
    const linnet::v1::SummaryLength& length, const ServedModel& model,
    const std::string& language_code, int chunk, int chunks);

// The rule of a summary without a requested length: a title and a sentence end with their first
// sentence, and no summary ends behind an abbreviation. Null where the tokens do not tell where
// words and sentences begin.
std::shared_ptr<const model::TargetLength> LengthOfStyle(linnet::v1::SummaryStyle style,
                                                         const ServedModel& model,
                                                         const std::string& language_code);

}  // namespace linnet::server
