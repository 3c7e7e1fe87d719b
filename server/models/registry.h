#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace linnet::server {

// A bundle in the registry that is to be served.
struct RegisteredModel {
  std::filesystem::path path = {};
  // Name of the version's folder, such as "2"; empty for a model without versions.
  std::string version = {};
  std::vector<std::string> labels = {};  // "canary", "stable", sorted
  bool by_default = true;                // selected by requests that name no version
  // Why it cannot be loaded: a folder that cannot be read, or a link that leads nowhere.
  absl::Status status = absl::OkStatus();
};

// Lists the bundles to be served in a folder of models (the registry), sorted by path. Each folder
// in it is a bundle or a model with versions. In a model with versions, each folder is a bundle and
// each symbolic link to one of them is a label. Names with a leading dot are ignored: bundles are
// written there before they are renamed.
//
//   en-summary/manifest.json
//   en-de/1/manifest.json
//   en-de/2/manifest.json
//   en-de/stable -> 1
//   en-de/canary -> 2
//
// Versions with a label are served; without labels, only the latest version (numbers in numeric
// order, other names in alphabetical order). The default is `stable`, else the latest served
// version. A link is replaced atomically (ln -sfn), so no half-written state can be read. The root
// itself may be a bundle.
//
// Folders that cannot be read are listed with their errors, as are labels that point to no version:
// they count as versions that do not load, so that no other one silently takes their place.
// NOT_FOUND if there are no bundles, or the root cannot be read.
absl::StatusOr<std::vector<RegisteredModel>> ReadRegistry(const std::filesystem::path& root);

}  // namespace linnet::server
