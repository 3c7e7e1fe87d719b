#pragma once

#include <filesystem>
#include <string>

#include "absl/status/statusor.h"
#include "linnet/v1/bundle.pb.h"
#include "model/runtime/search/search.h"

namespace linnet::model {

// The bytes of a manifest.json. FailedPreconditionError with the file, if there are too many.
absl::StatusOr<std::string> ReadManifestBytes(const std::filesystem::path& file);
// Reads those of `file` and checks all that they say, without a look at the files that they name.
// FailedPreconditionError with the file, the field, its value and what it must be.
absl::StatusOr<linnet::v1::BundleManifest> ReadManifest(const std::filesystem::path& file,
                                                        const std::string& json);

// The search of a request that asks for nothing, for a source of that many tokens (eos included):
// max_target_ratio makes the cap depend on it.
SearchOptions DefaultOptions(const linnet::v1::BundleManifest& manifest, int source_tokens);

}  // namespace linnet::model
