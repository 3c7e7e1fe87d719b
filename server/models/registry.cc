#include "server/models/registry.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace linnet::server {
namespace {

namespace fs = std::filesystem;

constexpr char kManifest[] = "manifest.json";

bool IsBundle(const fs::path& path) {
  std::error_code ignored;  // an unreadable folder counts as one without a manifest
  return fs::exists(path / kManifest, ignored);
}

// Returns all entries whose name has no leading dot.
std::vector<fs::path> Entries(const fs::path& folder) {
  std::vector<fs::path> entries;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    if (!entry->path().filename().string().starts_with('.')) entries.push_back(entry->path());
  }
  std::sort(entries.begin(), entries.end());
  return entries;
}

// Numbers come before other names: compared with these as text they would have no order.
bool Earlier(const std::string& a, const std::string& b) {
  int64_t x, y;
  const bool number = absl::SimpleAtoi(a, &x), other = absl::SimpleAtoi(b, &y);
  if (number != other) return number;
  return number && x != y ? x < y : a < b;
}

void AddVersions(const fs::path& folder, std::vector<RegisteredModel>& found) {
  std::map<fs::path, RegisteredModel> versions;  // by canonical path
  std::vector<fs::path> links;
  std::error_code ignored;
  for (const fs::path& entry : Entries(folder)) {
    if (!IsBundle(entry)) continue;
    if (fs::is_symlink(entry, ignored)) {
      links.push_back(entry);
    } else {
      versions[fs::canonical(entry, ignored)] = {.path = entry,
                                                 .version = entry.filename().string()};
    }
  }
  for (const fs::path& link : links) {
    const auto version = versions.find(fs::canonical(link, ignored));
    if (version != versions.end()) version->second.labels.push_back(link.filename().string());
  }
  std::vector<RegisteredModel> served;
  for (auto& [path, version] : versions) {
    version.by_default = false;
    if (!version.labels.empty()) served.push_back(version);
  }
  if (served.empty()) {
    for (auto& [path, version] : versions) served.push_back(version);
  }
  if (served.empty()) return;
  std::sort(served.begin(), served.end(),
            [](const auto& a, const auto& b) { return Earlier(a.version, b.version); });
  const bool labelled = !served.back().labels.empty();
  if (!labelled) served.erase(served.begin(), served.end() - 1);
  auto stable = std::find_if(served.begin(), served.end(), [](const RegisteredModel& model) {
    return std::count(model.labels.begin(), model.labels.end(), "stable") > 0;
  });
  (stable == served.end() ? served.back() : *stable).by_default = true;
  found.insert(found.end(), served.begin(), served.end());
}

}  // namespace

absl::StatusOr<std::vector<RegisteredModel>> ReadRegistry(const fs::path& root) {
  if (IsBundle(root)) return std::vector<RegisteredModel>{{.path = root}};
  std::error_code error;
  if (fs::directory_iterator(root, error); error) {  // missing, not a folder, or not readable
    return absl::NotFoundError(
        absl::StrCat("no bundles in ", root.string(), ": ", error.message()));
  }
  std::vector<RegisteredModel> found;
  for (const fs::path& entry : Entries(root)) {
    if (IsBundle(entry)) {
      found.push_back({.path = entry});
    } else if (fs::is_directory(entry, error)) {
      AddVersions(entry, found);
    }
  }
  if (found.empty()) {
    return absl::NotFoundError(
        absl::StrCat("no bundles in ", root.string(), ": no folder in it has a ", kManifest));
  }
  return found;
}

}  // namespace linnet::server
