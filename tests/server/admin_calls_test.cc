#include "server/admin/admin_calls.h"

#include <sys/stat.h>

#include <atomic>
#include <deque>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/base/errors.h"
#include "server/base/log.h"
#include "tests/server/text/text_fixture.h"

namespace linnet::server {
namespace {

namespace fs = std::filesystem;
namespace v1 = linnet::v1;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

v1::BundleManifest EnDe(const std::string& version) {
  auto manifest = test::TinyManifest("en-de", v1::TASK_TRANSLATE, "en", "de");
  manifest.set_version(version);
  return manifest;
}

struct AdminCallsTest : ::testing::Test {
  // Calls a method and waits for the answer.
  template <typename Request, typename Response>
  absl::Status Call(void (AdminCalls::*method)(const Request&, Response&, AdminCalls::Done),
                    const Request& request, Response& response) {
    absl::Status result;
    int answers = 0;
    test::Notification done;
    (admin.*method)(request, response, [&](absl::Status status) {
      result = std::move(status);
      ++answers;
      done.Open();
    });
    done.Pass();
    EXPECT_EQ(answers, 1);
    return result;
  }
  absl::Status Reload(const std::string& model = "") {
    reload.Clear();
    v1::ReloadRequest request;
    request.set_model(model);
    return Call(&AdminCalls::Reload, request, reload);
  }
  // Formats each model of the response as "FOLDER OUTCOME MODEL VERSION".
  std::vector<std::string> Outcomes() const {
    std::vector<std::string> lines;
    for (const v1::ModelReload& model : reload.models()) {
      lines.push_back(absl::StrCat(model.folder(), " ",
                                   v1::ReloadOutcome_Name(model.outcome()).substr(15), " ",
                                   model.model(), " ", model.model_version()));
    }
    return lines;
  }
  std::string Version(const std::string& name) {
    const auto model = fixture.catalog->Named(name);
    return model.ok() ? (*model)->bundle.manifest.version() : ErrorReason(model.status());
  }
  v1::GetBatchResponse Batch(const std::string& model, int max = 0) {
    v1::GetBatchRequest request;
    request.set_model(model);
    request.set_max_sequences(max);
    v1::GetBatchResponse response;
    EXPECT_THAT(Call(&AdminCalls::GetBatch, request, response), IsOk());
    return response;
  }

  // Engines whose steps wait while `hold` is set.
  test::Notification go_on;
  std::atomic<bool> hold = false;
  std::atomic<int> held = 0;
  TextFixture fixture{{.rows = 8, .on_step = [this] {
                         if (!hold) return;
                         ++held;
                         go_on.Pass();
                       }}};
  const fs::path root = fixture.folder.path();
  Reloader reloader{*fixture.catalog, fixture.metrics};
  AdminCalls admin{*fixture.catalog, reloader};
  v1::ReloadResponse reload;
};

TEST_F(AdminCallsTest, ReloadReportsOutcomeOfEachBundle) {
  ASSERT_THAT(Reload(), IsOk());
  EXPECT_THAT(Outcomes(),
              ElementsAre("en-de UNCHANGED en-de test", "en-summary UNCHANGED en-summary test"));
  test::WriteBundle(root / "en-de", EnDe("next"));
  test::WriteBundle(root / "en-fr" / "1",
                    test::TinyManifest("en-fr", v1::TASK_TRANSLATE, "en", "fr"));
  fs::remove_all(root / "en-summary");
  ASSERT_THAT(Reload(), IsOk());
  EXPECT_THAT(Outcomes(), ElementsAre("en-de LOADED en-de next", "en-fr/1 LOADED en-fr test",
                                      "en-summary REMOVED en-summary test"));
  EXPECT_EQ(Version("en-summary"), "MODEL_NOT_FOUND");
  EXPECT_THAT(fixture.metrics.Text(), HasSubstr("linnet_model_reloads_total{result=\"ok\"} 2\n"));
}

TEST_F(AdminCallsTest, StopAnswersTheRunningReload) {
  hold = true;  // the reload waits for the first step of the new engine
  test::WriteBundle(root / "en-fr", test::TinyManifest("en-fr", v1::TASK_TRANSLATE, "en", "fr"));
  v1::ReloadResponse response;
  std::atomic<int> unavailable = 0;
  admin.Reload({}, response, [&](const absl::Status& status) {
    unavailable += ErrorReason(status) == "SHUTTING_DOWN" ? 1 : 0;
  });
  while (held == 0) std::this_thread::yield();
  reloader.Stop();
  EXPECT_EQ(unavailable, 1);
  EXPECT_FALSE(reloader.WaitUntilIdle(MonotonicNow()));
  go_on.Open();
  EXPECT_TRUE(reloader.WaitUntilIdle(MonotonicTime::max()));
}

TEST_F(AdminCallsTest, FilesThatAreNotRegularFailTheirBundleAlone) {
  for (const char* file : {"manifest.json", "model.pt", "tiny.spm"}) {
    fs::rename(root / "en-de" / file, root / "kept");
    ASSERT_EQ(mkfifo((root / "en-de" / file).c_str(), 0600), 0);
    ASSERT_THAT(Reload(), IsOk()) << "nobody writes to it";
    EXPECT_THAT(Outcomes(),
                ElementsAre("en-de FAILED en-de test", "en-summary UNCHANGED en-summary test"));
    EXPECT_THAT(reload.models(0).error().message(), HasSubstr("not a regular file")) << file;
    fs::rename(root / "kept", root / "en-de" / file);
  }
  ASSERT_THAT(Reload(), IsOk());
  EXPECT_EQ(reload.models(0).outcome(), v1::RELOAD_OUTCOME_UNCHANGED) << "restored";
}

TEST_F(AdminCallsTest, ReportsDamagedBundleAndKeepsServingIt) {
  for (const char* file : {"model.pt", "tiny.spm"}) {
    fs::copy_file(root / "en-de" / file, root / "kept", fs::copy_options::overwrite_existing);
    std::ofstream(root / "en-de" / file, std::ios::app) << "x";
    ASSERT_THAT(Reload(), IsOk());
    EXPECT_THAT(Outcomes(),
                ElementsAre("en-de FAILED en-de test", "en-summary UNCHANGED en-summary test"));
    EXPECT_THAT(reload.models(0).error().message(), HasSubstr(file));
    EXPECT_EQ(Version("en-de"), "test");
    fs::remove(root / "en-de" / file);
    ASSERT_THAT(Reload(), IsOk());
    EXPECT_EQ(reload.models(0).outcome(), v1::RELOAD_OUTCOME_FAILED) << "a file that is gone";
    fs::rename(root / "kept", root / "en-de" / file);
    ASSERT_THAT(Reload(), IsOk());
    EXPECT_EQ(reload.models(0).outcome(), v1::RELOAD_OUTCOME_UNCHANGED) << "restored";
  }
}

TEST_F(AdminCallsTest, FailedBundleReportsErrorAndServedVersion) {
  test::WriteBundle(root / "en-fr" / "1",
                    test::TinyManifest("en-fr", v1::TASK_TRANSLATE, "en", "fr"));
  ASSERT_THAT(Reload(), IsOk());
  std::ofstream(root / "en-de" / "manifest.json") << "{";
  test::WriteBundle(root / "en-fr" / "2",
                    test::TinyManifest("en-fr", v1::TASK_TRANSLATE, "en", "fr"));
  std::ofstream(root / "en-fr" / "2" / "model.pt") << "flip";
  test::WriteBundle(root / "new", test::TinyManifest("new", v1::TASK_TRANSLATE, "en", "fr"));
  std::ofstream(root / "new" / "model.pt") << "flip";
  ASSERT_THAT(Reload(), IsOk()) << "it is told model by model";
  EXPECT_THAT(Outcomes(), ElementsAre("en-de FAILED en-de test", "en-fr/2 FAILED en-fr test",
                                      "en-summary UNCHANGED en-summary test", "new FAILED  "));
  EXPECT_THAT(reload.models(1).error().message(), HasSubstr("model.pt"));
  EXPECT_EQ(reload.models(1).error().code(),
            static_cast<int>(absl::StatusCode::kFailedPrecondition));
  EXPECT_EQ(reload.models(1).error().details_size(), 1);
  EXPECT_FALSE(reload.models(2).has_error());
  EXPECT_THAT(fixture.metrics.Text(),
              HasSubstr("linnet_model_reloads_total{result=\"failed\"} 1\n"));
}

TEST_F(AdminCallsTest, ReloadsOneModelOnly) {
  test::WriteBundle(root / "en-de", EnDe("next"));
  auto summary = test::TinyManifest("en-summary", v1::TASK_SUMMARIZE, "en", "en");
  summary.set_version("next");
  test::WriteBundle(root / "en-summary", summary);
  ASSERT_THAT(Reload("en-de"), IsOk());
  EXPECT_THAT(Outcomes(), ElementsAre("en-de LOADED en-de next"));
  EXPECT_EQ(Version("en-summary"), "test");
  // A model that is not served yet is named by its folder, and so is one that was removed from
  // there.
  test::WriteBundle(root / "french", test::TinyManifest("en-fr", v1::TASK_TRANSLATE, "en", "fr"));
  ASSERT_THAT(Reload("french"), IsOk());
  EXPECT_THAT(Outcomes(), ElementsAre("french LOADED en-fr test"));
  fs::remove_all(root / "french");
  ASSERT_THAT(Reload("en-fr"), IsOk());
  EXPECT_THAT(Outcomes(), ElementsAre("french REMOVED en-fr test"));
  EXPECT_EQ(Version("en-summary"), "test");
}

TEST_F(AdminCallsTest, UnknownModelIsNotFoundAndNotCounted) {
  for (const std::string name : {"babel", "..", "en-de/..", "/", "en-de@1"}) {
    const absl::Status status = Reload(name);
    EXPECT_EQ(ErrorReason(status), "MODEL_NOT_FOUND") << name;
    EXPECT_THAT(status.message(), HasSubstr("en-de, en-summary"));
  }
  EXPECT_THAT(fixture.metrics.Text(),
              HasSubstr("linnet_model_reloads_total{result=\"failed\"} 0\n"));
}

TEST_F(AdminCallsTest, UnreadableFolderChangesNothing) {
  fs::remove_all(root / "en-de");
  fs::remove_all(root / "en-summary");
  EXPECT_EQ(ErrorReason(Reload()), "REGISTRY_UNREADABLE");
  EXPECT_EQ(Version("en-de"), "test");
}

TEST_F(AdminCallsTest, RequestsDuringReloadShareTheNextOne) {
  // The first reload blocks in its golden example.
  auto manifest = EnDe("next");
  auto& golden = *manifest.add_golden_examples();
  golden.set_source_text("The dog runs.");
  golden.set_target_text("The dog runs.");
  test::WriteBundle(root / "en-de", manifest);
  std::atomic<int> made = 0, answered = 0;
  test::Notification all;
  constexpr int kAskers = 20;
  hold = true;
  ASSERT_THAT(reloader.Ask("", [&](const ReloadReport&) { ++made; }), IsOk());
  while (held == 0) absl::SleepFor(absl::Milliseconds(1));
  for (int i = 0; i < kAskers; ++i) {
    ASSERT_THAT(reloader.Ask("",
                             [&](const ReloadReport& report) {
                               EXPECT_EQ(made, 1);
                               EXPECT_TRUE(report.ok());
                               if (++answered == kAskers) all.Open();
                             }),
                IsOk());
  }
  hold = false;
  go_on.Open();
  all.Pass();
  EXPECT_THAT(fixture.metrics.Text(), HasSubstr("linnet_model_reloads_total{result=\"ok\"} 2\n"));
}

TEST_F(AdminCallsTest, NoReloadStartsAfterStop) {
  reloader.Stop();
  EXPECT_EQ(ErrorReason(Reload()), "SHUTTING_DOWN");
  v1::ReloadRequest request;
  request.set_no_wait(true);
  v1::ReloadResponse response;
  EXPECT_EQ(ErrorReason(Call(&AdminCalls::Reload, request, response)), "SHUTTING_DOWN");
}

TEST_F(AdminCallsTest, NoWaitReturnsAtOnceAndReloads) {
  test::WriteBundle(root / "en-de", EnDe("next"));
  v1::ReloadRequest request;
  request.set_no_wait(true);
  v1::ReloadResponse response;
  ASSERT_THAT(Call(&AdminCalls::Reload, request, response), IsOk());
  EXPECT_EQ(response.ByteSizeLong(), 0);
  while (Version("en-de") != "next") absl::SleepFor(absl::Milliseconds(1));
}

TEST_F(AdminCallsTest, BatchShowsRunningAndWaitingSequences) {
  EXPECT_THAT(Batch("en-de").models(0).sequences(), IsEmpty());
  v1::TranslateResponse first, second;
  test::Notification first_done, second_done;
  std::deque<v1::TranslateRequest> requests;
  auto translate = [&](const std::string& text, const std::string& client, absl::Time deadline,
                       v1::TranslateResponse& response, test::Notification& done) {
    v1::TranslateRequest& request = requests.emplace_back(ToGerman({text}));
    request.mutable_options()->set_beam_size(5);
    fixture.calls->Translate(
        request, response,
        {.arrived = absl::Now(),
         .deadline = deadline,
         .caller = {.client = client, .priority = Priority::kBatch, .request_id = client + "-1"}},
        [&](const absl::Status& status) {
          EXPECT_THAT(status, IsOk());
          done.Open();
        });
  };
  hold = true;
  translate("The dog runs.", "one", absl::InfiniteFuture(), first, first_done);
  while (held == 0) absl::SleepFor(absl::Milliseconds(1));
  translate("A bird sings.", "two", absl::Now() + absl::Hours(1), second, second_done);
  // The snapshot is taken between two steps: the second step runs after it.
  v1::GetBatchRequest which;
  which.set_model("en-de");
  v1::GetBatchResponse batch;
  test::Notification shown;
  admin.GetBatch(which, batch, [&](const absl::Status& status) {
    EXPECT_THAT(status, IsOk());
    shown.Open();
  });
  hold = false;
  go_on.Open();
  shown.Pass();
  ASSERT_EQ(batch.models_size(), 1);
  const v1::ModelBatch& model = batch.models(0);
  EXPECT_EQ(model.model(), "en-de");
  EXPECT_EQ(model.engine_state(), v1::ENGINE_STATE_UP);
  EXPECT_EQ(model.rows(), 8);
  EXPECT_EQ(model.rows_in_use(), 5);
  EXPECT_EQ(model.running(), 1);
  ASSERT_GE(model.sequences_size(), 1);
  const v1::BatchSequence& running = model.sequences(0);
  EXPECT_EQ(running.client(), "one");
  EXPECT_EQ(running.request_id(), "one-1");
  EXPECT_EQ(running.priority(), v1::PRIORITY_BATCH);
  EXPECT_EQ(running.phase(), v1::SEQUENCE_PHASE_RUNNING);
  EXPECT_EQ(running.rows(), 5);
  EXPECT_EQ(running.steps(), 1);
  EXPECT_GT(running.source_tokens(), 1);
  EXPECT_GT(running.max_target_tokens(), 1);
  EXPECT_TRUE(running.has_running_for());
  EXPECT_FALSE(running.has_time_left());
  first_done.Pass();
  second_done.Pass();
}

TEST_F(AdminCallsTest, BatchesAreSortedAndUnknownModelIsRefused) {
  const v1::GetBatchResponse all = Batch("");
  ASSERT_EQ(all.models_size(), 2);
  EXPECT_EQ(all.models(0).model(), "en-de");
  EXPECT_EQ(all.models(1).model(), "en-summary");
  v1::GetBatchRequest request;
  v1::GetBatchResponse response;
  request.set_model("babel");
  EXPECT_EQ(ErrorReason(Call(&AdminCalls::GetBatch, request, response)), "MODEL_NOT_FOUND");
  request.clear_model();
  for (int max : {-1, 10'001}) {
    request.set_max_sequences(max);
    EXPECT_EQ(ErrorReason(Call(&AdminCalls::GetBatch, request, response)), "BAD_SETTING");
  }
}

TEST_F(AdminCallsTest, BatchReportsStalledEngineCall) {
  v1::TranslateResponse response;
  test::Notification done;
  const v1::TranslateRequest request = ToGerman({"The dog runs."});
  hold = true;
  fixture.calls->Translate(request, response, {.arrived = absl::Now()},
                           [&](const absl::Status&) { done.Open(); });
  while (held == 0) absl::SleepFor(absl::Milliseconds(1));
  v1::GetBatchRequest which;
  which.set_model("en-de");
  v1::GetBatchResponse batch;
  test::Notification shown;
  admin.GetBatch(which, batch, [&](const absl::Status&) { shown.Open(); });
  const auto model = *fixture.catalog->Named("en-de");
  model->scheduler->Maintain(After(MonotonicNow(), absl::Seconds(3)));
  shown.Pass();
  EXPECT_GE(batch.models(0).in_call_for().seconds(), 2);
  EXPECT_THAT(batch.models(0).sequences(), IsEmpty());
  go_on.Open();
  done.Pass();
}

TEST_F(AdminCallsTest, LogLevelChangesAndResets) {
  v1::SetLogLevelRequest request;
  v1::SetLogLevelResponse response;
  request.set_level(v1::LOG_LEVEL_ERROR);
  ASSERT_THAT(admin.SetLogLevel(request, response), IsOk());
  EXPECT_EQ(response.level(), v1::LOG_LEVEL_ERROR);
  EXPECT_EQ(CurrentLogLevel(), LogLevel::kError);
  request.clear_level();
  ASSERT_THAT(admin.SetLogLevel(request, response), IsOk());
  EXPECT_EQ(response.previous_level(), v1::LOG_LEVEL_ERROR);
  EXPECT_EQ(response.level(), v1::LOG_LEVEL_INFO);
  request.set_level(static_cast<v1::LogLevel>(9));
  EXPECT_EQ(ErrorReason(admin.SetLogLevel(request, response)), "BAD_SETTING");
  EXPECT_EQ(CurrentLogLevel(), LogLevel::kInfo);
}

}  // namespace
}  // namespace linnet::server
