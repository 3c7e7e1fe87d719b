#pragma once

#include <filesystem>
#include <string>

#include "absl/status/statusor.h"
#include "linnet/v1/bundle.pb.h"
#include "model/runtime/search/search_options.h"

namespace linnet::model {

// Reads the bytes of a manifest.json. Returns FailedPreconditionError if the file is too large.
absl::StatusOr<std::string> ReadManifestBytes(const std::filesystem::path& file);
// Parses `json`, the bytes of `file`, and checks all fields, but not the files that it lists.
// Returns FailedPreconditionError with the file, the field, its value and its allowed values.
absl::StatusOr<linnet::v1::BundleManifest> ReadManifest(const std::filesystem::path& file,
                                                        const std::string& json);

// The search options of a request that sets none, for a source of that many tokens (eos included),
// on which the max target length depends by max_target_ratio.
SearchOptions DefaultOptions(const linnet::v1::BundleManifest& manifest, int source_tokens);
// Their max_target_tokens.
int DefaultMaxTargetTokens(const linnet::v1::BundleManifest& manifest, int source_tokens);

}  // namespace linnet::model
