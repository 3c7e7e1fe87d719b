#include "server/models/catalog.h"

#include <atomic>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "server/schedule/engine_memory.h"
#include "tests/server/text/text_fixture.h"
#include "tests/support/waited_sink.h"

namespace linnet::server {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Key;
using ::testing::Not;

struct CatalogTest : ::testing::Test {
  CatalogTest() { TextFixture::WriteBundles(root); }
  absl::StatusOr<std::unique_ptr<Catalog>> Load() {
    return Catalog::Load(
        root, [](const model::Bundle&) { return std::make_unique<test::EchoEngine>(); }, {},
        metrics);
  }

  const test::TemporaryFolder folder;
  const std::filesystem::path root = folder.path();
  Metrics metrics;
};

TEST_F(CatalogTest, ListsModelsByNameWithAllDefaults) {
  auto catalog = Load();
  ASSERT_THAT(catalog, IsOk());
  ASSERT_EQ((*catalog)->List().size(), 2);
  const linnet::v1::Model model = (*catalog)->List()[0];
  EXPECT_EQ(model.name(), "en-de");
  EXPECT_EQ(model.task(), linnet::v1::TASK_TRANSLATE);
  EXPECT_EQ(model.device(), "echo");
  EXPECT_EQ(model.sha256().size(), 64);
  EXPECT_EQ(model.limits().max_source_tokens(), 64);
  const auto& options = model.default_options();
  for (int i = 0; i < options.GetDescriptor()->field_count(); ++i) {
    const auto* field = options.GetDescriptor()->field(i);
    const bool drawn_per_request = field->name() == "seed";
    EXPECT_NE(options.GetReflection()->HasField(options, field), drawn_per_request)
        << field->name();
  }
}

TEST_F(CatalogTest, LoadingCountsGoldenExamplesInTheMetrics) {
  auto catalog = Load();
  ASSERT_THAT(catalog, IsOk());
  EXPECT_THAT(
      metrics.Text(),
      AllOf(HasSubstr("linnet_model_info{compute=\"none\",device=\"echo\",model=\"en-de\""),
            Not(HasSubstr("linnet_sequences_total{model=\"en-de\",outcome=\"finished\"} 0\n"))));
}

TEST_F(CatalogTest, WarmUpMakesStepsOfFewAndOfAllRows) {
  std::map<std::string, std::set<int>> rows;
  std::map<std::string, int> finished;
  Mutex mu;
  {
    auto catalog = Catalog::Load(
        root, [](const model::Bundle&) { return std::make_unique<test::EchoEngine>(); }, {},
        metrics,
        [&](const std::string& model, const StepReport& report, absl::Duration) {
          MutexLock lock(mu);
          if (report.stepped) rows[model].insert(report.rows);
          finished[model] += report.finished;
          EXPECT_EQ(report.rows_limit, 64);
        });
    ASSERT_THAT(catalog, IsOk());
  }
  // With golden examples and without.
  for (const char* model : {"en-de", "en-summary"}) {
    EXPECT_THAT(rows[model], Contains(2));
    EXPECT_THAT(rows[model], Contains(64));
    EXPECT_GE(finished[model], 1 + 32);
  }
}

TEST_F(CatalogTest, EngineLoadedOnDemandIsWarmedUpBeforeItsFirstCall) {
  EngineMemory memory(0);
  std::map<std::string, std::set<int>> rows;
  Mutex mu;
  auto catalog = Catalog::Load(
      root, [](const model::Bundle&) { return std::make_unique<test::EchoEngine>(); }, {}, metrics,
      [&](const std::string& model, const StepReport& report, absl::Duration) {
        MutexLock lock(mu);
        if (report.stepped) rows[model].insert(report.rows);
      },
      0, {}, {}, nullptr,
      {.memory = &memory, .info = [](const model::Bundle&) { return test::EchoEngine().info(); }});
  ASSERT_THAT(catalog, IsOk());
  // With golden examples and without.
  for (const char* name : {"en-de", "en-summary"}) {
    const auto model = (*catalog)->Named(name);
    ASSERT_THAT(model, IsOk());
    test::Waited waited;
    std::vector<std::unique_ptr<Sequence>> one;
    one.push_back(test::Say({5}, waited));
    ASSERT_THAT((*model)->scheduler->Submit(one), IsOk());
    EXPECT_THAT(waited.status(), IsOk());
    MutexLock lock(mu);
    EXPECT_THAT(rows[name], Contains(2));
    EXPECT_THAT(rows[name], Contains(64));
  }
}

TEST_F(CatalogTest, ServesAModelWithADifferingGoldenExample) {
  auto manifest = test::TinyManifest("en-de", linnet::v1::TASK_TRANSLATE, "en", "de");
  auto& golden = *manifest.add_golden_examples();
  golden.set_source_text("The dog runs.");
  golden.set_target_text("Der Hund läuft.");  // not the answer of an echo engine
  test::WriteBundle(root / "en-de", manifest);
  EXPECT_THAT(Load(), IsOk());
}

TEST_F(CatalogTest, RoundingExplainsOtherAnswersToHalfOfTheGoldenExamples) {
  auto manifest = test::TinyManifest("en-de", linnet::v1::TASK_TRANSLATE, "en", "de");
  const auto add = [&](const char* source, const char* target) {
    auto& golden = *manifest.add_golden_examples();
    golden.set_source_text(source);
    golden.set_target_text(target);
  };
  add("The dog runs.", "Der Hund läuft.");
  add("one", "one");  // the answer of an echo engine
  struct Case {
    const char* compute;
    bool half;
    int different, unexplained;
  };
  for (const auto& [compute, half, different, unexplained] :
       {Case{"float32", true, 1, 1}, Case{"int8", true, 1, 0}, Case{"int8", false, 2, 2}}) {
    if (!half) add("two", "zwei");
    test::WriteBundle(root / "en-de", manifest);
    test::EchoEngine::Options options;
    options.compute_type = compute;
    const auto catalog = Catalog::Load(
        root, [&](const model::Bundle&) { return std::make_unique<test::EchoEngine>(options); }, {},
        metrics);
    ASSERT_THAT(catalog, IsOk());
    const auto model = (*catalog)->Named("en-de");
    ASSERT_THAT(model, IsOk());
    EXPECT_EQ((*model)->golden.different, different);
    EXPECT_EQ((*model)->golden.unexplained, unexplained) << compute;
  }
}

TEST_F(CatalogTest, MissingFolderIsNotFound) {
  EXPECT_THAT(Catalog::Load(root / "nowhere", nullptr, {}, metrics),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("nowhere")));
}

TEST_F(CatalogTest, ServesOtherBundlesBesideADamagedOne) {
  std::ofstream(root / "en-de" / "model.pt") << "flip";
  auto catalog = Load();
  ASSERT_THAT(catalog, IsOk());
  ASSERT_EQ((*catalog)->List().size(), 1);
  EXPECT_EQ((*catalog)->List()[0].name(), "en-summary");
  EXPECT_THAT((*catalog)->not_loaded(), ElementsAre(Key("en-de")));
  EXPECT_EQ((*catalog)->Named("en-de").status().code(), absl::StatusCode::kNotFound);
  TextFixture::WriteBundles(root);  // intact again
  EXPECT_TRUE((*catalog)->Reload().ok());
  EXPECT_THAT((*catalog)->not_loaded(), IsEmpty());
  EXPECT_THAT((*catalog)->Named("en-de"), IsOk());
}

TEST_F(CatalogTest, ReturnsEveryErrorIfNothingCanBeLoaded) {
  for (const char* name : {"en-de", "en-summary"})
    std::ofstream(root / name / "model.pt") << "flip";
  EXPECT_THAT(Load(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("2 of 2 bundles in " + root.string() + " cannot be loaded"),
                             HasSubstr("\n  en-de: "), HasSubstr("en-de/model.pt"),
                             HasSubstr("\n  en-summary: "), HasSubstr("en-summary/model.pt"))));
}

TEST_F(CatalogTest, TellsWhichBundlesAreMissingAndWhy) {
  {
    const auto catalog = Load();
    ASSERT_THAT(catalog, IsOk());
    EXPECT_THAT((*catalog)->MissingError(), IsOk());
  }
  std::ofstream(root / "en-de" / "manifest.json") << "{";
  std::filesystem::create_directories(root / "versions" / "1");
  std::filesystem::create_symlink("2", root / "versions" / "stable");
  const auto catalog = Load();
  ASSERT_THAT(catalog, IsOk());
  EXPECT_THAT((*catalog)->not_loaded(), ElementsAre(Key("en-de"), Key("versions/stable")));
  EXPECT_THAT((*catalog)->MissingError(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("2 of 3 bundles in "), HasSubstr("\n  en-de: "),
                             HasSubstr("is not a manifest"), HasSubstr("\n  versions/stable: "),
                             HasSubstr("which is no version in"))));
}

TEST_F(CatalogTest, RemovedBundleIsNoLongerNotLoaded) {
  std::ofstream(root / "en-de" / "model.pt") << "flip";
  auto catalog = Load();
  ASSERT_THAT(catalog, IsOk());
  EXPECT_FALSE((*catalog)->Reload("en-summary").outcomes.empty());
  EXPECT_THAT((*catalog)->not_loaded(), ElementsAre(Key("en-de")))
      << "it was not part of the reload";
  std::filesystem::remove_all(root / "en-de");
  (*catalog)->Reload();
  EXPECT_THAT((*catalog)->not_loaded(), IsEmpty());
}

TEST_F(CatalogTest, RejectsASecondBundleOfTheSameName) {
  test::WriteBundle(root / "other",
                    test::TinyManifest("en-de", linnet::v1::TASK_TRANSLATE, "en", "fr"));
  auto catalog = Load();
  ASSERT_THAT(catalog, IsOk());
  EXPECT_THAT((*catalog)->not_loaded(), ElementsAre(Key("other")));
  const ReloadReport report = (*catalog)->Reload();
  ASSERT_EQ(report.outcomes.size(), 3);
  EXPECT_THAT(report.outcomes[2].status,
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("other"), HasSubstr("both named \"en-de\""))));
}

// A reload reads the folders in the order of the alphabet.
TEST_F(CatalogTest, ASecondBundleOfTheSameNameNeverReplacesTheServedOne) {
  auto catalog = Load();
  ASSERT_THAT(catalog, IsOk());
  const auto served = *(*catalog)->Named("en-de");
  test::WriteBundle(root / "backup",
                    test::TinyManifest("en-de", linnet::v1::TASK_TRANSLATE, "en", "fr"));
  for (const bool changed : {false, true}) {
    if (changed) {
      auto manifest = test::TinyManifest("en-de", linnet::v1::TASK_TRANSLATE, "en", "de");
      manifest.set_version("changed");
      test::WriteBundle(root / "en-de", std::move(manifest));
    }
    const ReloadReport report = (*catalog)->Reload();
    ASSERT_EQ(report.outcomes.size(), 3);
    EXPECT_EQ(report.outcomes[0].folder, "backup");
    EXPECT_THAT(report.outcomes[0].status,
                StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("both named \"en-de\"")));
    EXPECT_THAT(report.outcomes[1].status, IsOk());
    const auto now = *(*catalog)->Named("en-de");
    EXPECT_EQ(now == served, !changed);
    EXPECT_EQ(now->bundle.manifest.target_language_code(), "de");
    EXPECT_EQ((*catalog)->models().size(), 2);
  }
}

TEST_F(CatalogTest, ARefusedBundleLeavesNoTraceInMetricsAndEstimates) {
  std::atomic<int> steps = 0;
  auto catalog = Catalog::Load(
      root, [](const model::Bundle&) { return std::make_unique<test::EchoEngine>(); }, {}, metrics,
      [&](const std::string&, const StepReport&, absl::Duration) { ++steps; });
  ASSERT_THAT(catalog, IsOk());
  for (const auto& model : (*catalog)->models()) {  // until the last step was observed
    while (!model->scheduler->idle_since().has_value()) absl::SleepFor(absl::Milliseconds(1));
  }
  const int before = steps;
  test::WriteBundle(root / "other",
                    test::TinyManifest("en-de", linnet::v1::TASK_TRANSLATE, "en", "fr"));
  auto wrong = test::TinyManifest("wrong", linnet::v1::TASK_TRANSLATE, "en", "fr");
  auto& golden = *wrong.add_golden_examples();
  golden.set_source_text("The dog runs.");
  golden.set_target_text("The dog sleeps.");
  test::WriteBundle(root / "wrong", std::move(wrong));
  const ReloadReport report = (*catalog)->Reload();
  ASSERT_EQ(report.outcomes.size(), 4);
  for (int refused : {2, 3}) {
    EXPECT_THAT(report.outcomes[refused].status, StatusIs(absl::StatusCode::kFailedPrecondition));
  }
  EXPECT_EQ(steps, before);
  EXPECT_THAT(metrics.Text(), Not(HasSubstr("model=\"wrong\"")));
}

// en-summary has no golden examples, which would have shown it.
TEST_F(CatalogTest, ReloadRefusesABundleWhoseEngineCannotDecode) {
  std::atomic<bool> broken = false;
  auto catalog = Catalog::Load(
      root,
      [&](const model::Bundle&) {
        test::EchoEngine::Options options;
        if (broken) options.failing_step = 1;
        return std::make_unique<test::EchoEngine>(options);
      },
      {}, metrics);
  ASSERT_THAT(catalog, IsOk());
  const auto before = (*catalog)->Named("en-summary");
  ASSERT_THAT(before, IsOk());
  broken = true;
  auto next = test::TinyManifest("en-summary", linnet::v1::TASK_SUMMARIZE, "en", "en");
  next.set_version("2");
  test::WriteBundle(root / "en-summary", std::move(next));
  const ReloadReport report = (*catalog)->Reload();
  ASSERT_EQ(report.outcomes.size(), 2);
  EXPECT_THAT(report.outcomes[1].status, StatusIs(absl::StatusCode::kFailedPrecondition,
                                                  HasSubstr("cannot decode: the engine")));
  const auto after = (*catalog)->Named("en-summary");
  ASSERT_THAT(after, IsOk());
  EXPECT_EQ(*after, *before) << "the previous version is served on";
}

TEST_F(CatalogTest, AMissingModelNamesOnlyAsManyOthersAsFit) {
  for (int i = 0; i < 200; ++i) {
    const std::string name = absl::StrCat("opus-mt-en-to-many-", i);
    const std::string target = {'q', static_cast<char>('a' + i / 26),
                                static_cast<char>('a' + i % 26)};
    test::WriteBundle(root / name,
                      test::TinyManifest(name, linnet::v1::TASK_TRANSLATE, "en", target));
  }
  auto catalog = Load();
  ASSERT_THAT(catalog, IsOk());
  const absl::Status missing = (*catalog)->Named("none").status();
  EXPECT_THAT(missing, StatusIs(absl::StatusCode::kNotFound, HasSubstr("more (ListModels")));
  EXPECT_LT(missing.message().size(), 1200);
  const absl::Status pair =
      (*catalog)->Find(linnet::v1::TASK_TRANSLATE, "", "sv", "fi", "source").status();
  EXPECT_THAT(pair, StatusIs(absl::StatusCode::kNotFound, HasSubstr("more (ListModels")));
  EXPECT_LT(pair.message().size(), 1200);
}

TEST_F(CatalogTest, ABundleMayTakeTheNameThatAnotherOneGaveUp) {
  auto catalog = Load();
  ASSERT_THAT(catalog, IsOk());
  test::WriteBundle(root / "en-de",
                    test::TinyManifest("renamed", linnet::v1::TASK_TRANSLATE, "en", "de"));
  test::WriteBundle(root / "later",
                    test::TinyManifest("en-de", linnet::v1::TASK_TRANSLATE, "en", "fr"));
  const ReloadReport report = (*catalog)->Reload();
  EXPECT_TRUE(report.ok());
  EXPECT_EQ((*(*catalog)->Named("en-de"))->path, root / "later");
  EXPECT_EQ((*(*catalog)->Named("renamed"))->path, root / "en-de");
}

TEST_F(CatalogTest, LoadFailsIfTheEngineCannotBeBuilt) {
  auto catalog = Catalog::Load(
      root,
      [](const model::Bundle&) -> absl::StatusOr<std::unique_ptr<model::Engine>> {
        return absl::FailedPreconditionError("device cuda was asked for, this machine has none");
      },
      {}, metrics);
  EXPECT_THAT(catalog, StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("device cuda")));
  EXPECT_THAT(metrics.Text(), Not(HasSubstr("linnet_engine_restarts_total{")));
}

TEST_F(CatalogTest, WholeTagMatchesBeforePrimarySubtag) {
  test::WriteBundle(root / "en-pt",
                    test::TinyManifest("en-pt", linnet::v1::TASK_TRANSLATE, "en", "pt"));
  test::WriteBundle(root / "en-ptbr",
                    test::TinyManifest("en-ptbr", linnet::v1::TASK_TRANSLATE, "en", "pt-BR"));
  auto catalog = Load();
  ASSERT_THAT(catalog, IsOk());
  auto find = [&](const char* target) {
    auto found =
        (*catalog)->Find(linnet::v1::TASK_TRANSLATE, "", "en", target, "source_language_code");
    return found.ok() ? found->model->name() : std::string(found.status().message());
  };
  EXPECT_EQ(find("pt-br"), "en-ptbr");
  EXPECT_EQ(find("pt-PT"), "en-pt");
  EXPECT_EQ(find("pt"), "en-pt");
}

}  // namespace
}  // namespace linnet::server
