#include "server/models/registry.h"

#include <algorithm>
#include <map>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "proto/status_macros.h"

namespace linnet::server {
namespace {

namespace fs = std::filesystem;

constexpr char kManifest[] = "manifest.json";

// Made by file systems in their root, for root alone.
constexpr char kLostAndFound[] = "lost+found";

// Returns true if there is a bundle at `path`, and an error if that cannot be told.
absl::StatusOr<bool> IsBundle(const fs::path& path) {
  std::error_code error;
  const fs::file_type type = fs::status(path / kManifest, error).type();
  if (type == fs::file_type::not_found) {
    if (!fs::is_symlink(path, error) || fs::exists(path, error)) return false;
    return absl::NotFoundError(absl::StrCat(path.string(), " is a link to ",
                                            fs::read_symlink(path, error).string(),
                                            ", which does not exist"));
  }
  if (!error) return true;
  return absl::UnavailableError(absl::StrCat("cannot read ", path.string(), ": ", error.message()));
}

// Returns all entries whose name has no leading dot, sorted.
absl::StatusOr<std::vector<fs::path>> Entries(const fs::path& folder) {
  std::vector<fs::path> entries;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (!name.starts_with('.') && name != kLostAndFound) entries.push_back(entry->path());
  }
  if (error) {
    return absl::NotFoundError(
        absl::StrCat("no bundles in ", folder.string(), ": ", error.message()));
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

// A label that points to none of the versions of `folder`.
RegisteredModel BrokenLabel(const fs::path& folder, const fs::path& link) {
  std::error_code ignored;
  const std::string label = link.filename().string();
  return {.path = link,
          .labels = {label},
          .by_default = false,
          .status = absl::NotFoundError(absl::StrCat(
              "label \"", label, "\" points to \"", fs::read_symlink(link, ignored).string(),
              "\", which is no version in ", folder.string(), ": link it to one, or remove it"))};
}

void AddVersions(const fs::path& folder, std::vector<RegisteredModel>& found) {
  const auto entries = Entries(folder);
  if (!entries.ok()) return found.push_back({.path = folder, .status = entries.status()});
  std::map<fs::path, RegisteredModel> versions;  // by canonical path
  std::vector<fs::path> links;
  std::error_code ignored;
  for (const fs::path& entry : *entries) {
    if (fs::is_symlink(entry, ignored)) {
      links.push_back(entry);
      continue;
    }
    const auto is_bundle = IsBundle(entry);
    if (is_bundle.ok() && !*is_bundle) continue;
    versions[fs::weakly_canonical(entry, ignored)] = {.path = entry,
                                                      .version = entry.filename().string(),
                                                      .by_default = false,
                                                      .status = is_bundle.status()};
  }
  std::vector<RegisteredModel> broken;
  for (const fs::path& link : links) {
    const auto version = versions.find(fs::weakly_canonical(link, ignored));
    if (version != versions.end()) {
      version->second.labels.push_back(link.filename().string());
    } else {
      broken.push_back(BrokenLabel(folder, link));
    }
  }
  std::vector<RegisteredModel> served;
  for (auto& [path, version] : versions) {
    if (!version.labels.empty()) served.push_back(version);
  }
  if (served.empty() && broken.empty()) {
    for (auto& [path, version] : versions) served.push_back(version);
  }
  std::sort(served.begin(), served.end(),
            [](const auto& a, const auto& b) { return Earlier(a.version, b.version); });
  if (!served.empty() && served.back().labels.empty())
    served.erase(served.begin(), served.end() - 1);
  served.insert(served.begin(), broken.begin(), broken.end());
  if (served.empty()) return;
  const auto stable = std::find_if(served.begin(), served.end(), [](const RegisteredModel& model) {
    return std::count(model.labels.begin(), model.labels.end(), "stable") > 0;
  });
  (stable == served.end() ? served.back() : *stable).by_default = true;
  found.insert(found.end(), served.begin(), served.end());
}

}  // namespace

absl::StatusOr<std::vector<RegisteredModel>> ReadRegistry(const fs::path& root) {
  if (const auto is_bundle = IsBundle(root); is_bundle.ok() && *is_bundle)
    return std::vector<RegisteredModel>{{.path = root}};
  ASSIGN_OR_RETURN(const std::vector<fs::path> entries, Entries(root));
  std::vector<RegisteredModel> found;
  for (const fs::path& entry : entries) {
    std::error_code ignored;
    if (const auto is_bundle = IsBundle(entry); !is_bundle.ok() || *is_bundle) {
      found.push_back({.path = entry, .status = is_bundle.status()});
    } else if (fs::is_directory(entry, ignored)) {
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
