#pragma once

#include <filesystem>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "model/runtime/bundle/bundle.h"

namespace linnet::server {

// Reads a bundle (model::ReadBundle) and checks its signature if `keys` names a file of BundleKeys.
// A bundle whose file system hangs fails by itself, after `limit`: see ReadWithin. Thread-safe.
absl::StatusOr<model::Bundle> ReadBundleWithin(absl::Duration limit,
                                               const std::filesystem::path& bundle,
                                               const std::filesystem::path& keys);

// On the same terms: returns true if the manifest of a bundle is still the one that was read
// before, and its files are intact; false if there is another manifest, or none.
// FAILED_PRECONDITION if a file is damaged.
absl::StatusOr<bool> IsUnchangedWithin(absl::Duration limit, const model::Bundle& before);

}  // namespace linnet::server
