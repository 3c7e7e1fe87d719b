// Objects of JSON, one a line, of which a command reads one member and to which it adds others.
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace linnet::client {

// The string `text_key` of an object. INVALID_ARGUMENT if `record` is no object, which names the
// byte or the lone surrogate, has no such string, or has a member `result_key` already.
absl::StatusOr<std::string> TextOfRecord(const std::string& record, const std::string& text_key,
                                         const std::string& result_key);

// `text` as JSON.
std::string JsonString(const std::string& text);

// `record`, which TextOfRecord has accepted, with one more member at its end; not a byte of the
// rest changes. `json` is the member's value.
std::string WithMember(const std::string& record, const std::string& key, const std::string& json);

// Any record with a member "error" at its end, or in place of the one that it has; an object with
// that member alone, where `record` is none.
std::string WithError(const std::string& record, const std::string& json);

}  // namespace linnet::client
