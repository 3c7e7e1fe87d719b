// JSON Lines: a command reads one member of each object and adds others.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace linnet::client {

// Returns the string member `text_key`. INVALID_ARGUMENT if `record` is not an object (the message
// names the byte or the lone surrogate), has no such string or already has one of `answer_keys`.
absl::StatusOr<std::string> TextOfRecord(const std::string& record, const std::string& text_key,
                                         const std::vector<std::string>& answer_keys);

// `text` as JSON.
std::string JsonString(const std::string& text);

// Adds a member with the value `json` at the end of `record`, which TextOfRecord has accepted. All
// other bytes stay as they are.
std::string WithMember(const std::string& record, const std::string& key, const std::string& json);

// Adds a member "error" at the end of `record`, or replaces the one that it has. If `record` is not
// an object, returns an object with that member alone.
std::string WithError(const std::string& record, const std::string& json);

}  // namespace linnet::client
