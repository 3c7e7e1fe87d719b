// The health of a server with a fake engine, as seen over the network.
#include <atomic>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>

#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "linnet/v1/text_service.grpc.pb.h"
#include "server/rpc/server.h"
#include "tests/support/echo_engine.h"
#include "tests/support/notification.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tiny_bundle.h"

namespace linnet::server {
namespace {

using grpc::health::v1::Health;
using linnet::v1::TextService;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr char kAll[] = "";
constexpr char kService[] = "linnet.v1.TextService";
constexpr char kLiveness[] = "liveness";
constexpr char kTranslator[] = "model/en-de";
constexpr char kSummarizer[] = "model/en-summary";

class ServerHealthTest : public ::testing::Test {
 protected:
  ServerHealthTest() {
    test::WriteBundle(folder_.path() / "en-de",
                      test::TinyManifest("en-de", linnet::v1::TASK_TRANSLATE, "en", "de"));
    test::WriteBundle(folder_.path() / "en-summary",
                      test::TinyManifest("en-summary", linnet::v1::TASK_SUMMARIZE, "en", "en"));
    options_.models = folder_.path();
    options_.listen = options_.metrics_listen = "127.0.0.1:0";
  }

  // The translator's engines call `on_step` at each step. Creating one fails if `refused`.
  void Start() {
    auto server = TryStart();
    ASSERT_THAT(server, IsOk());
    server_ = *std::move(server);
    channel_ = grpc::CreateChannel(server_->grpc_address(), grpc::InsecureChannelCredentials());
  }

  absl::StatusOr<std::unique_ptr<Server>> TryStart() {
    return Server::Start(
        options_,
        [this](const model::Bundle& bundle) -> absl::StatusOr<std::unique_ptr<model::Engine>> {
          test::EchoEngine::Options engine;
          engine.limits = {.max_beam_size = 8, .max_target_tokens = 80, .max_source_tokens = 64};
          if (bundle.manifest.name() == "en-de") {
            if (refused) return absl::InternalError("no device");
            engine.on_step = [this] { on_step(); };
            engine.device_lost = [this] { return lost.load(); };
          }
          return std::make_unique<test::EchoEngine>(engine);
        },
        /*info=*/nullptr, [this] { ++ends; });
  }

  bool Serving(const std::string& name) {
    grpc::ClientContext context;
    grpc::health::v1::HealthCheckRequest request;
    grpc::health::v1::HealthCheckResponse response;
    request.set_service(name);
    const grpc::Status status = Health::NewStub(channel_)->Check(&context, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    const auto named = context.GetServerTrailingMetadata().find("linnet-not-serving");
    not_serving_ = named == context.GetServerTrailingMetadata().end()
                       ? ""
                       : std::string(named->second.data(), named->second.size());
    return response.status() == grpc::health::v1::HealthCheckResponse::SERVING;
  }
  void Until(const std::string& name, bool serving) {
    while (Serving(name) != serving) absl::SleepFor(absl::Milliseconds(5));
  }
  grpc::StatusCode Translate() {
    grpc::ClientContext context;
    linnet::v1::TranslateRequest request;
    linnet::v1::TranslateResponse response;
    request.add_contents("The dog runs.");
    request.set_source_language_code("en");
    request.set_target_language_code("de");
    return TextService::NewStub(channel_)->Translate(&context, request, &response).error_code();
  }
  void ExpectAllServing() {
    for (const char* name : {kAll, kService, kLiveness, kTranslator, kSummarizer})
      EXPECT_TRUE(Serving(name)) << name;
    EXPECT_EQ(Translate(), grpc::StatusCode::OK);
  }

  Options options_;
  std::function<void()> on_step = [] {};
  std::atomic<bool> refused = false;
  std::atomic<bool> lost = false;  // the translator's engines lose their device in a step
  std::atomic<int> ends = 0;       // number of calls that would have ended the process
  const test::TemporaryFolder folder_;
  std::unique_ptr<Server> server_;
  std::shared_ptr<grpc::Channel> channel_;
  std::string not_serving_;  // models named by the last health check
};

TEST_F(ServerHealthTest, DownEngineMakesOnlyItsModelNotServing) {
  std::atomic<bool> fails = false;
  on_step = [&] {
    if (fails) throw std::runtime_error("a kernel failed");
  };
  Start();
  ExpectAllServing();
  fails = refused = true;
  EXPECT_EQ(Translate(), grpc::StatusCode::INTERNAL);
  Until(kTranslator, false);
  EXPECT_TRUE(Serving(kSummarizer)) << "the other one works";
  EXPECT_TRUE(Serving(kAll));
  EXPECT_EQ(not_serving_, "en-de");
  EXPECT_TRUE(Serving(kService));
  EXPECT_TRUE(Serving(kLiveness)) << "it will be made again: no reason to be killed";
  EXPECT_EQ(Translate(), grpc::StatusCode::UNAVAILABLE);
  fails = refused = false;
  Until(kTranslator, true);
  ExpectAllServing();
  EXPECT_EQ(not_serving_, "");
}

TEST_F(ServerHealthTest, AMissingModelFailsTheStartUnlessAllowed) {
  refused = true;
  EXPECT_THAT(TryStart(), StatusIs(absl::StatusCode::kInternal,
                                   AllOf(HasSubstr("1 of 2 bundles in "), HasSubstr("\n  en-de: "),
                                         HasSubstr("no device"),
                                         HasSubstr("\nrepair or remove them, or set "
                                                   "--allow-missing true to serve the "
                                                   "others without them"))));
  options_.allow_missing = true;
  Start();
  EXPECT_THAT(server_->Missing(), ElementsAre("en-de"));
  // Without any model there is nothing to serve, and the flag is no way out.
  std::filesystem::remove_all(folder_.path() / "en-summary");
  EXPECT_THAT(TryStart(), StatusIs(absl::StatusCode::kInternal,
                                   AllOf(HasSubstr("1 of 1 bundle in "), HasSubstr("no device"),
                                         Not(HasSubstr("allow-missing")))));
}

TEST_F(ServerHealthTest, NothingIsMissingWhereAllIsLoaded) {
  Start();
  EXPECT_THAT(server_->Missing(), IsEmpty());
}

TEST_F(ServerHealthTest, UnloadableModelIsNotServing) {
  refused = true;
  options_.allow_missing = true;
  Start();
  EXPECT_FALSE(Serving(kTranslator));
  EXPECT_TRUE(Serving(kSummarizer));
  EXPECT_TRUE(Serving(kAll));
  EXPECT_EQ(not_serving_, "en-de");
  EXPECT_EQ(Translate(), grpc::StatusCode::NOT_FOUND);
  refused = false;
  server_->ReloadSoon();
  Until(kTranslator, true);
  ExpectAllServing();
}

// gRPC aborts the process on a trailer with other bytes, and clients refuse one of many.
TEST_F(ServerHealthTest, NamesOfUnloadableModelsFitATrailer) {
  const auto damaged = [&](const std::string& name) {
    std::filesystem::create_directory(folder_.path() / name);
    std::ofstream(folder_.path() / name / "manifest.json") << "{}";
  };
  damaged("b\u00fcndel\n");
  options_.allow_missing = true;
  Start();
  EXPECT_TRUE(Serving(kAll));
  EXPECT_EQ(not_serving_, "b\\xc3\\xbcndel\\n");
  for (int i = 0; i < 30; ++i) damaged(std::string(200, 'x') + std::to_string(i));
  server_->ReloadSoon();
  while (Serving(kAll) && not_serving_.size() < 1000) absl::SleepFor(absl::Milliseconds(5));
  EXPECT_LT(not_serving_.size(), 2000);
}

TEST_F(ServerHealthTest, ServerIsNotServingWithoutModels) {
  std::filesystem::remove_all(folder_.path() / "en-summary");
  std::atomic<bool> fails = false;
  on_step = [&] {
    if (fails) throw std::runtime_error("a kernel failed");
  };
  Start();
  fails = refused = true;
  EXPECT_EQ(Translate(), grpc::StatusCode::INTERNAL);
  Until(kService, false);
  EXPECT_FALSE(Serving(kAll));
  EXPECT_TRUE(Serving(kLiveness));
  fails = refused = false;
  Until(kService, true);
}

TEST_F(ServerHealthTest, StalledEngineEndsLiveness) {
  test::Notification go_on;
  std::atomic<bool> stalls = false;
  on_step = [&] {
    if (stalls) go_on.Pass();
  };
  options_.engine_stall_timeout = absl::Milliseconds(300);
  Start();
  ExpectAllServing();
  EXPECT_FALSE(server_->failure().has_value());
  stalls = true;
  EXPECT_EQ(Translate(), grpc::StatusCode::INTERNAL) << "not to be retried: it may be the cause";
  Until(kLiveness, false);
  EXPECT_FALSE(Serving(kTranslator));
  EXPECT_EQ(Translate(), grpc::StatusCode::UNAVAILABLE);
  ASSERT_TRUE(server_->failure().has_value());
  EXPECT_EQ(server_->failure()->model, "en-de");
  EXPECT_EQ(server_->failure()->request_ids.size(), 1);
  server_->Drain(absl::ZeroDuration(), absl::Seconds(10));  // does not wait for that engine
  EXPECT_EQ(ends, 0) << "it was not needed";
  go_on.Open();
  server_.reset();  // joins the thread that waited for `go_on`
}

TEST_F(ServerHealthTest, LostDeviceEndsLiveness) {
  Start();
  ExpectAllServing();
  lost = true;
  EXPECT_EQ(Translate(), grpc::StatusCode::INTERNAL);
  Until(kLiveness, false);
  EXPECT_TRUE(server_->failure().has_value());
}

}  // namespace
}  // namespace linnet::server
