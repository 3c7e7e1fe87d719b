#pragma once

#include <filesystem>

#include "absl/status/statusor.h"
#include "linnet/v1/bundle.pb.h"
#include "model/runtime/search.h"

namespace linnet::model {

// Reads a manifest.json and checks all that it says, without a look at the files that it names.
// FailedPreconditionError with the file, the field, its value and what it must be.
absl::StatusOr<linnet::v1::BundleManifest> ReadManifest(const std::filesystem::path& file);

// The search of a request that asks for nothing, for a source of that many tokens (eos included):
// max_target_ratio makes the cap depend on it.
SearchOptions DefaultOptions(const linnet::v1::BundleManifest& manifest, int source_tokens);

}  // namespace linnet::model
