#include "server/models/bundle_reader.h"

#include <set>
#include <string>

#include "absl/base/thread_annotations.h"
#include "model/runtime/bundle/signature.h"
#include "proto/status_macros.h"
#include "server/base/mutex.h"
#include "server/models/bounded_read.h"

namespace linnet::server {
namespace {

struct BundlesInReading {
  Mutex mu;
  std::set<std::string> paths ABSL_GUARDED_BY(mu);
};

// Never destroyed: a thread that was left behind may use it while the process ends.
BundlesInReading& InReading() {
  static BundlesInReading& bundles = *new BundlesInReading;
  return bundles;
}

}  // namespace

bool BeginReading(const std::string& bundle) {
  BundlesInReading& bundles = InReading();
  MutexLock lock(bundles.mu);
  return bundles.paths.insert(bundle).second;
}

void EndReading(const std::string& bundle) {
  BundlesInReading& bundles = InReading();
  MutexLock lock(bundles.mu);
  bundles.paths.erase(bundle);
}

absl::StatusOr<model::Bundle> ReadBundleWithin(absl::Duration limit,
                                               const std::filesystem::path& bundle,
                                               const std::filesystem::path& keys) {
  return ReadWithin<absl::StatusOr<model::Bundle>>(
      limit, bundle.string(), [bundle, keys]() -> absl::StatusOr<model::Bundle> {
        if (keys.empty()) return model::ReadBundle(bundle);
        ASSIGN_OR_RETURN(const model::BundleKeys read, model::BundleKeys::Read(keys));
        return model::ReadBundle(bundle, &read);
      });
}

absl::StatusOr<bool> IsUnchangedWithin(absl::Duration limit, const model::Bundle& before) {
  return ReadWithin<absl::StatusOr<bool>>(
      limit, before.path.string(), [before]() -> absl::StatusOr<bool> {
        const absl::StatusOr<std::string> manifest = model::ManifestSha256(before.path);
        if (!manifest.ok() || *manifest != before.manifest_sha256) return false;
        RETURN_IF_ERROR(model::CheckFiles(before));
        return true;
      });
}

}  // namespace linnet::server
