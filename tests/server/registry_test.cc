#include "server/models/registry.h"

#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temporary_folder.h"

namespace linnet::server {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct RegistryTest : ::testing::Test {
  void Bundle(const std::string& path) {
    fs::create_directories(root / path);
    std::ofstream(root / path / "manifest.json") << "{}";
  }
  void Link(const std::string& link, const std::string& to) {
    fs::create_directory_symlink(to, root / link);
  }
  // "PATH VERSION LABEL,LABEL*"; the star marks the default.
  std::vector<std::string> Read() {
    const auto models = ReadRegistry(root);
    EXPECT_THAT(models, IsOk());
    std::vector<std::string> found;
    for (const RegisteredModel& model : *models) {
      found.push_back(absl::StrCat(model.path.lexically_relative(root).string(), " ", model.version,
                                   " ", absl::StrJoin(model.labels, ","),
                                   model.by_default ? "*" : ""));
    }
    return found;
  }

  const test::TemporaryFolder folder;
  const fs::path root = folder.path();
};

TEST_F(RegistryTest, PlainBundleHasNoVersion) {
  Bundle("b");
  Bundle("a");
  EXPECT_THAT(Read(), ElementsAre("a  *", "b  *"));
}

TEST_F(RegistryTest, ServesTheLatestVersionWithoutLabels) {
  for (const char* version : {"2", "10", "9"}) Bundle(absl::StrCat("a/", version));
  EXPECT_THAT(Read(), ElementsAre("a/10 10 *"));
}

// As text "10" comes before "1a", and "1a" before "9": numbers among them would have no order.
TEST_F(RegistryTest, NumbersComeBeforeOtherVersions) {
  for (const char* version : {"9", "10", "1a"}) Bundle(absl::StrCat("a/", version));
  for (const char* version : {"09", "9"}) Bundle(absl::StrCat("b/", version));
  EXPECT_THAT(Read(), ElementsAre("a/1a 1a *", "b/9 9 *"));
}

TEST_F(RegistryTest, ServesLabelledVersionsAndStableIsTheDefault) {
  for (const char* version : {"1", "2", "3"}) Bundle(absl::StrCat("a/", version));
  Link("a/stable", "1");
  Link("a/canary", "2");
  EXPECT_THAT(Read(), ElementsAre("a/1 1 stable*", "a/2 2 canary"));
}

TEST_F(RegistryTest, LatestServedVersionIsTheDefaultWithoutStable) {
  for (const char* version : {"1", "2", "3"}) Bundle(absl::StrCat("a/", version));
  Link("a/old", "1");
  Link("a/canary", "2");
  EXPECT_THAT(Read(), ElementsAre("a/1 1 old", "a/2 2 canary*"));
}

TEST_F(RegistryTest, LabelThatPointsToNoVersionIsAnErrorAndHoldsItsPlace) {
  for (const char* version : {"1", "2"}) Bundle(absl::StrCat("a/", version));
  Bundle("elsewhere");
  Link("a/canary", "2");
  Link("a/next", "../elsewhere");
  Link("a/stable", "7");
  EXPECT_THAT(Read(),
              ElementsAre("a/next  next", "a/stable  stable*", "a/2 2 canary", "elsewhere  *"));
  const auto models = ReadRegistry(root);
  EXPECT_THAT((*models)[1].status,
              StatusIs(absl::StatusCode::kNotFound,
                       HasSubstr("label \"stable\" points to \"7\", which is no version in ")));
  EXPECT_THAT((*models)[0].status, StatusIs(absl::StatusCode::kNotFound, HasSubstr("elsewhere")));
  EXPECT_THAT((*models)[2].status, IsOk());
}

TEST_F(RegistryTest, WithoutAValidLabelNoOtherVersionIsServed) {
  Bundle("a/1");
  Link("a/canary", "7");
  EXPECT_THAT(Read(), ElementsAre("a/canary  canary*"));
}

TEST_F(RegistryTest, WhatCannotBeReadIsListedWithItsError) {
  Bundle("a");
  Link("loop", "loop");  // as a folder of another user, which root could read
  Link("gone", "nowhere");
  Bundle("b/1");
  Link("b/loop", "loop");
  fs::create_directories(root / "lost+found");
  Link("lost+found/manifest.json", "manifest.json");
  EXPECT_THAT(Read(), ElementsAre("a  *", "b/loop  loop*", "gone  *", "loop  *"));
  const auto models = ReadRegistry(root);
  EXPECT_THAT((*models)[2].status,
              StatusIs(absl::StatusCode::kNotFound,
                       HasSubstr("is a link to nowhere, which does not exist")));
  EXPECT_THAT((*models)[3].status,
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("cannot read")));
}

TEST_F(RegistryTest, BundleThatIsBeingWrittenIsIgnored) {
  Bundle("a");
  Bundle(".a.k2x9");
  Bundle("b/1");
  Bundle("b/.2.k2x9");
  EXPECT_THAT(Read(), ElementsAre("a  *", "b/1 1 *"));
}

TEST_F(RegistryTest, VersionMayHaveSeveralLabels) {
  Bundle("a/1");
  Link("a/stable", "1");
  Link("a/canary", "1");
  EXPECT_THAT(Read(), ElementsAre("a/1 1 canary,stable*"));
}

TEST_F(RegistryTest, FolderWithoutBundlesIsNotFound) {
  fs::create_directories(root / "a" / "1");
  EXPECT_THAT(ReadRegistry(root),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("manifest.json")));
  EXPECT_THAT(ReadRegistry(root / "none"), StatusIs(absl::StatusCode::kNotFound));
}

}  // namespace
}  // namespace linnet::server
