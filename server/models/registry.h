#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace linnet::server {

// A bundle that the folder of models says is to be served.
struct RegisteredModel {
  std::filesystem::path path = {};
  // Of a model with versions its folder's name, "2"; empty for a bundle that is its only version.
  std::string version = {};
  std::vector<std::string> labels = {};  // "canary", "stable", sorted
  bool by_default = true;                // meant by whoever names no version
};

// What is to be served of a folder of models, by path. Each folder in it is a bundle, or a model
// with versions: then each folder in that is a bundle, and each symbolic link to one of them is a
// label.
//
//   en-summary/manifest.json
//   en-de/1/manifest.json
//   en-de/2/manifest.json
//   en-de/stable -> 1
//   en-de/canary -> 2
//
// Versions with a label are served, and if there are no labels the latest one (2 before 10; by name
// where they are no numbers). Meant by default is `stable`, else the latest that is served. A link
// can be changed in one step (ln -sfn), so that there is nothing half written to be read. The
// folder itself may be a bundle. NOT_FOUND if there are no bundles.
absl::StatusOr<std::vector<RegisteredModel>> ReadRegistry(const std::filesystem::path& root);

}  // namespace linnet::server
