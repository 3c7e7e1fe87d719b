// Reloads of the registry while models are served.
#include <filesystem>
#include <fstream>
#include <functional>
#include <stdexcept>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/base/errors.h"
#include "tests/server/text/text_fixture.h"
#include "tests/support/waited_sink.h"

namespace linnet::server {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;
using What = ReloadReport::Outcome::What;

linnet::v1::BundleManifest EnDe(const std::string& version) {
  auto manifest = test::TinyManifest("en-de", linnet::v1::TASK_TRANSLATE, "en", "de");
  manifest.set_version(version);
  auto& golden = *manifest.add_golden_examples();
  golden.set_source_text("The dog runs.");
  golden.set_target_text("The dog runs.");  // the answer of an echo engine
  return manifest;
}

struct ReloadTest : ::testing::Test {
  ReloadTest() {
    test::WriteBundle(root / "en-de" / "1", EnDe("one"));
    test::WriteBundle(root / "en-summary",
                      test::TinyManifest("en-summary", linnet::v1::TASK_SUMMARIZE, "en", "en"));
  }
  void Load(int64_t max_bytes = 0) {
    auto loaded = Catalog::Load(
        root,
        [this](const model::Bundle& bundle) -> absl::StatusOr<std::unique_ptr<model::Engine>> {
          if (bundle.manifest.version() == refused) return absl::InternalError("no memory");
          if (bundle.manifest.version() == "one") on_build();
          test::EchoEngine::Options options = engine;
          options.limits = kTinyLimits;
          return std::make_unique<test::EchoEngine>(options);
        },
        {}, metrics, nullptr, max_bytes,
        {.stall_timeout = absl::Hours(1), .supervisor = &supervisor});
    ASSERT_THAT(loaded, IsOk());
    catalog = *std::move(loaded);
  }
  void SweepUntilUnloaded(const std::string& version) {
    do {
      catalog->Sweep();
    } while (absl::StrContains(metrics.Text(), absl::StrCat("version=\"", version, "\"")));
  }
  // Lets the model say something; `waited` is told how that ended.
  static absl::Status Submit(ServedModel& model, test::Waited& waited) {
    std::vector<std::unique_ptr<Sequence>> one;
    one.push_back(test::Say({5, 6}, waited));
    one.front()->input.options.max_target_tokens = 10;
    return model.scheduler->Submit(one);
  }
  // The version that serves a request with this name, or the reason of the error.
  std::string Version(const std::string& name) {
    const auto model = catalog->Named(name);
    return model.ok() ? (*model)->bundle.manifest.version() : ErrorReason(model.status());
  }

  static std::vector<std::string> Outcomes(const ReloadReport& report) {
    std::vector<std::string> outcomes;
    for (const auto& outcome : report.outcomes) {
      constexpr const char* kNames[] = {"loaded", "unchanged", "failed", "removed"};
      outcomes.push_back(absl::StrCat(outcome.folder, " ", kNames[static_cast<int>(outcome.what)]));
    }
    return outcomes;
  }

  const test::TemporaryFolder folder;
  const fs::path root = folder.path();
  test::EchoEngine::Options engine;
  std::function<void()> on_build = [] {};  // called before an engine of the first version is built
  std::string refused = "none";
  Supervisor supervisor{[] {}};
  Metrics metrics;
  std::unique_ptr<Catalog> catalog;
};

TEST_F(ReloadTest, DoesNotReloadUnchangedBundles) {
  Load();
  const auto before = catalog->models();
  const ReloadReport report = catalog->Reload();
  EXPECT_TRUE(report.ok());
  for (const auto& outcome : report.outcomes) EXPECT_NE(outcome.what, What::kLoaded);
  EXPECT_EQ(catalog->models(), before);
}

TEST_F(ReloadTest, NewVersionReplacesTheOldOne) {
  Load();
  test::WriteBundle(root / "en-de" / "2", EnDe("two"));
  EXPECT_TRUE(catalog->Reload().ok());
  EXPECT_EQ(Version("en-de"), "two");
  EXPECT_EQ(Version("en-de@2"), "two");
  EXPECT_EQ(Version("en-de@1"), "MODEL_NOT_FOUND");
  EXPECT_THAT(metrics.Text(), HasSubstr("model=\"en-de@2\""));
  SweepUntilUnloaded("one");
}

TEST_F(ReloadTest, ReloadsABundleReplacedInPlace) {
  Load();
  auto summary = test::TinyManifest("en-summary", linnet::v1::TASK_SUMMARIZE, "en", "en");
  summary.set_version("next");
  test::WriteBundle(root / "en-summary", summary);
  EXPECT_TRUE(catalog->Reload().ok());
  EXPECT_EQ(Version("en-summary"), "next");
}

TEST_F(ReloadTest, KeepsAModelWhoseFolderCannotBeRead) {
  Load();
  fs::rename(root / "en-summary", root / ".en-summary");
  fs::create_directory_symlink("en-summary", root / "en-summary");
  fs::rename(root / "en-de", root / ".en-de");
  fs::create_directory_symlink("en-de", root / "en-de");
  const ReloadReport report = catalog->Reload();
  EXPECT_THAT(Outcomes(report), ElementsAre("en-de failed", "en-summary failed"));
  EXPECT_EQ(Version("en-de"), "one");
  EXPECT_EQ(Version("en-de@1"), "one");
  EXPECT_THAT(catalog->Named("en-summary"), IsOk());
  EXPECT_THAT(catalog->not_loaded(), ElementsAre());
}

TEST_F(ReloadTest, LabelThatPointsToNoVersionStaysWhereItWas) {
  test::WriteBundle(root / "en-de" / "2", EnDe("two"));
  fs::create_directory_symlink("1", root / "en-de" / "stable");
  fs::create_directory_symlink("2", root / "en-de" / "canary");
  Load();
  fs::remove(root / "en-de" / "stable");
  fs::create_directory_symlink("3", root / "en-de" / "stable");
  for (int i = 0; i < 2; ++i) {
    const ReloadReport report = catalog->Reload();
    EXPECT_FALSE(report.ok());
    EXPECT_THAT(Outcomes(report),
                ElementsAre("en-de/2 unchanged", "en-de/stable failed", "en-summary unchanged"));
    EXPECT_EQ(Version("en-de"), "one");
    EXPECT_EQ(Version("en-de@stable"), "one");
    EXPECT_EQ(Version("en-de@canary"), "two");
  }
  fs::remove(root / "en-de" / "stable");
  fs::create_directory_symlink("2", root / "en-de" / "stable");
  EXPECT_TRUE(catalog->Reload().ok());
  EXPECT_EQ(Version("en-de"), "two");
  EXPECT_EQ(Version("en-de@1"), "MODEL_NOT_FOUND");
}

TEST_F(ReloadTest, MovesLabelsWithoutLoading) {
  test::WriteBundle(root / "en-de" / "2", EnDe("two"));
  fs::create_directory_symlink("1", root / "en-de" / "stable");
  fs::create_directory_symlink("2", root / "en-de" / "canary");
  Load();
  EXPECT_EQ(Version("en-de"), "one");
  EXPECT_EQ(Version("en-de@canary"), "two");
  std::vector<std::string> names;
  for (const auto& model : catalog->List()) names.push_back(model.name());
  EXPECT_THAT(names, UnorderedElementsAre("en-de", "en-de@2", "en-summary"));
  fs::remove(root / "en-de" / "stable");
  fs::create_directory_symlink("2", root / "en-de" / "stable");
  const ReloadReport report = catalog->Reload();
  for (const auto& outcome : report.outcomes) EXPECT_NE(outcome.what, What::kLoaded);
  EXPECT_EQ(Version("en-de"), "two");
  EXPECT_EQ(Version("en-de@1"), "MODEL_NOT_FOUND") << "its label was removed";
}

TEST_F(ReloadTest, FailedVersionLeavesTheOldOneServing) {
  Load();
  refused = "two";
  test::WriteBundle(root / "en-de" / "2", EnDe("two"));
  const ReloadReport report = catalog->Reload();
  EXPECT_FALSE(report.ok());
  ASSERT_EQ(report.outcomes.size(), 2);
  EXPECT_THAT(report.outcomes[0].status,
              StatusIs(absl::StatusCode::kInternal, HasSubstr("memory")));
  EXPECT_EQ(Version("en-de"), "one");
  refused = "none";
  EXPECT_TRUE(catalog->Reload().ok()) << "the reload can be repeated";
  EXPECT_EQ(Version("en-de"), "two");
}

TEST_F(ReloadTest, ReplacementOfAFailedVersionKeepsAllNames) {
  test::WriteBundle(root / "en-de" / "2", EnDe("two"));
  fs::create_directory_symlink("2", root / "en-de" / "stable");
  Load();
  refused = "one";
  fs::remove(root / "en-de" / "stable");
  fs::create_directory_symlink("1", root / "en-de" / "stable");
  fs::create_directory_symlink("2", root / "en-de" / "canary");
  EXPECT_FALSE(catalog->Reload().ok());
  EXPECT_EQ(Version("en-de"), "two");
  EXPECT_EQ(Version("en-de@canary"), "two");
  std::vector<std::string> names;
  for (const auto& model : catalog->List()) names.push_back(model.name());
  EXPECT_THAT(names, UnorderedElementsAre("en-de", "en-summary"));
}

TEST_F(ReloadTest, LabelOfAFailedVersionStaysWithItsOldVersion) {
  test::WriteBundle(root / "en-de" / "2", EnDe("two"));
  fs::create_directory_symlink("1", root / "en-de" / "stable");
  fs::create_directory_symlink("2", root / "en-de" / "canary");
  Load();
  refused = "three";
  test::WriteBundle(root / "en-de" / "3", EnDe("three"));
  fs::remove(root / "en-de" / "canary");
  fs::create_directory_symlink("3", root / "en-de" / "canary");
  fs::create_directory_symlink("3", root / "en-de" / "nightly");
  for (int i = 0; i < 2; ++i) {  // a second reload does not change the result
    const ReloadReport report = catalog->Reload();
    EXPECT_EQ(Version("en-de@canary"), "two");
    EXPECT_EQ(Version("en-de@2"), "two");
    EXPECT_EQ(Version("en-de"), "one");
    EXPECT_EQ(Version("en-de@nightly"), "MODEL_NOT_FOUND") << "no version had that label";
    EXPECT_EQ(Version("en-de@3"), "MODEL_NOT_FOUND");
    const auto failed = std::find_if(report.outcomes.begin(), report.outcomes.end(),
                                     [](const auto& each) { return each.folder == "en-de/3"; });
    ASSERT_NE(failed, report.outcomes.end());
    EXPECT_EQ(failed->what, What::kFailed);
    EXPECT_EQ(failed->model, "en-de@2") << "it is served in place of the failed one";
    EXPECT_EQ(failed->model_version, "two");
    for (const auto& outcome : report.outcomes) EXPECT_NE(outcome.what, What::kRemoved);
  }
  refused = "none";
  EXPECT_TRUE(catalog->Reload().ok());
  EXPECT_EQ(Version("en-de@canary"), "three");
  EXPECT_EQ(Version("en-de@nightly"), "three");
  EXPECT_EQ(Version("en-de@2"), "MODEL_NOT_FOUND");
  EXPECT_EQ(Version("en-de"), "one");
}

TEST_F(ReloadTest, BundleDamagedInPlaceStaysServed) {
  Load();
  std::ofstream(root / "en-summary" / "manifest.json") << "{";
  EXPECT_FALSE(catalog->Reload().ok());
  EXPECT_EQ(Version("en-summary"), "test");
}

TEST_F(ReloadTest, RejectsAVersionWithDifferingGoldenExamples) {
  Load();
  auto bad = EnDe("two");
  bad.mutable_golden_examples(0)->set_target_text("Der Hund läuft.");
  test::WriteBundle(root / "en-de" / "2", bad);
  const ReloadReport report = catalog->Reload();
  EXPECT_THAT(report.outcomes[0].status,
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("1 of its 1 golden")));
  EXPECT_EQ(Version("en-de"), "one");
}

TEST_F(ReloadTest, MissingRegistryChangesNothing) {
  Load();
  fs::rename(root / "en-de", root / "en-de-away");
  fs::rename(root / "en-de-away", root.parent_path() / (root.filename().string() + "-away"));
  fs::remove_all(root / "en-summary");
  EXPECT_FALSE(catalog->Reload().ok());
  EXPECT_EQ(Version("en-de"), "one");
  fs::remove_all(root.parent_path() / (root.filename().string() + "-away"));
}

TEST_F(ReloadTest, LimitsTheBytesOfAllModelsInMemory) {
  Load();
  const int64_t held = catalog->models()[0]->bytes + catalog->models()[1]->bytes;
  catalog.reset();
  Load(held + 1000);
  test::WriteBundle(root / "en-de" / "2", EnDe("two"));
  const ReloadReport report = catalog->Reload();
  EXPECT_THAT(report.outcomes[0].status,
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("--max-model-bytes")));
  EXPECT_EQ(Version("en-de"), "one");
  // Bundles beyond the limit at the start are not served.
  catalog.reset();
  Load(held - 1);
  EXPECT_THAT(catalog->not_loaded(), ElementsAre(::testing::Key("en-summary")));
}

TEST_F(ReloadTest, CallsFinishWithTheVersionTheyStartedWith) {
  test::Notification go_on;
  std::atomic<bool> hold = false;
  std::atomic<int> held = 0;
  engine.on_step = [&] {
    if (!hold) return;
    ++held;
    go_on.Pass();
  };
  Load();
  TextPool pool(2);
  Admission admission({}, metrics);
  TextCalls calls(*catalog, admission, pool, metrics);
  auto translate = [&](linnet::v1::TranslateResponse& response, test::Notification& done) {
    static const auto request = ToGerman({"The dog runs."});
    calls.Translate(request, response, {.arrived = absl::Now()}, [&](const absl::Status& status) {
      EXPECT_THAT(status, IsOk());
      done.Open();
    });
  };
  linnet::v1::TranslateResponse old_one, new_one;
  test::Notification old_done, new_done;
  hold = true;
  translate(old_one, old_done);
  while (held == 0) absl::SleepFor(absl::Milliseconds(1));
  hold = false;
  test::WriteBundle(root / "en-de" / "2", EnDe("two"));
  EXPECT_TRUE(catalog->Reload().ok());
  catalog->Sweep();
  EXPECT_THAT(metrics.Text(), HasSubstr("version=\"one\"")) << "it is still in memory";
  translate(new_one, new_done);
  new_done.Pass();
  EXPECT_EQ(new_one.model_version(), "two");
  go_on.Open();
  old_done.Pass();
  EXPECT_EQ(old_one.model_version(), "one");
  SweepUntilUnloaded("one");
}

TEST_F(ReloadTest, RejectsAVersionThatStallsInGoldenExamples) {
  Load();
  test::Notification inside, go_on;
  engine.on_step = [&] {
    inside.Open();
    go_on.Pass();
  };
  test::WriteBundle(root / "en-de" / "2", EnDe("two"));
  ReloadReport report;
  std::thread reload([&] { report = catalog->Reload(); });
  inside.Pass();
  supervisor.Tick(After(MonotonicNow(), absl::Hours(2)));
  EXPECT_TRUE(supervisor.failure().has_value()) << "the process ends";
  EXPECT_EQ(Version("en-de"), "one");
  go_on.Open();
  reload.join();
  EXPECT_FALSE(report.ok());
  EXPECT_EQ(Version("en-de"), "one");
}

TEST_F(ReloadTest, ReplacedVersionThatStallsBlocksNothing) {
  test::Notification inside, go_on;
  std::atomic<bool> armed = false;
  engine.on_step = [&] {
    if (!armed.exchange(false)) return;
    inside.Open();
    go_on.Pass();
  };
  Load();
  const std::weak_ptr<ServedModel> old = *catalog->Named("en-de");
  test::Waited waited;
  armed = true;
  ASSERT_THAT(Submit(*old.lock(), waited), IsOk());
  inside.Pass();
  test::WriteBundle(root / "en-de" / "2", EnDe("two"));
  ASSERT_TRUE(catalog->Reload().ok());
  supervisor.Tick(After(MonotonicNow(), absl::Hours(2)));
  EXPECT_EQ(waited.status().code(), absl::StatusCode::kInternal);
  EXPECT_TRUE(supervisor.failure().has_value());
  catalog->Sweep();
  EXPECT_FALSE(old.expired()) << "its thread cannot be joined yet";
  go_on.Open();
  catalog.reset();
}

TEST_F(ReloadTest, ReplacedVersionThatIsBeingRebuiltBlocksNothing) {
  test::Notification inside, go_on;
  std::atomic<bool> breaks = false;
  engine.on_step = [&] {
    if (breaks.exchange(false)) throw std::runtime_error("a kernel failed");
  };
  Load();
  const std::weak_ptr<ServedModel> old = *catalog->Named("en-de");
  on_build = [&] {
    inside.Open();
    go_on.Pass();
  };
  test::Waited waited;
  breaks = true;
  ASSERT_THAT(Submit(*old.lock(), waited), IsOk());
  inside.Pass();
  test::WriteBundle(root / "en-de" / "2", EnDe("two"));
  ASSERT_TRUE(catalog->Reload().ok());
  catalog->Sweep();
  EXPECT_FALSE(old.expired()) << "its engine is being built";
  EXPECT_FALSE(catalog->Stop(MonotonicNow())) << "and that cannot be interrupted";
  EXPECT_EQ(Version("en-de"), "two");
  go_on.Open();
  SweepUntilUnloaded("one");
  EXPECT_TRUE(old.expired());
}

}  // namespace
}  // namespace linnet::server
