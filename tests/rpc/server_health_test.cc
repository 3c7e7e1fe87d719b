// What a server with a puppet for an engine says of its health to those who ask over the network.
#include <atomic>
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
#include "tests/support/status_matchers.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tiny_bundle.h"
#include "tests/support/turnstile.h"

namespace linnet::server {
namespace {

using grpc::health::v1::Health;
using linnet::v1::TextService;

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

  // The translator's engines do `on_step` at each step, and are made unless `refused`.
  void Start() {
    auto server = Server::Start(
        options_,
        [this](const model::Bundle& bundle) -> absl::StatusOr<std::unique_ptr<model::Engine>> {
          test::EchoEngine::Options engine;
          engine.limits = {.max_beam_size = 8, .max_target_tokens = 80, .max_source_tokens = 64};
          if (bundle.manifest.name() == "en-de") {
            if (refused) return absl::InternalError("no device");
            engine.on_step = [this] { on_step(); };
          }
          return std::make_unique<test::EchoEngine>(engine);
        });
    ASSERT_THAT(server, IsOk());
    server_ = *std::move(server);
    channel_ = grpc::CreateChannel(server_->grpc_address(), grpc::InsecureChannelCredentials());
  }

  bool Serving(const std::string& name) {
    grpc::ClientContext context;
    grpc::health::v1::HealthCheckRequest request;
    grpc::health::v1::HealthCheckResponse response;
    request.set_service(name);
    const grpc::Status status = Health::NewStub(channel_)->Check(&context, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
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
  const test::TemporaryFolder folder_;
  std::unique_ptr<Server> server_;
  std::shared_ptr<grpc::Channel> channel_;
};

TEST_F(ServerHealthTest, WhileAnEngineIsDownItsModelAndTheWholeAreNotReadyAndTheServerLives) {
  std::atomic<bool> fails = false;
  on_step = [&] {
    if (fails) throw std::runtime_error("a kernel failed");
  };
  Start();
  ExpectAllServing();
  fails = refused = true;
  EXPECT_EQ(Translate(), grpc::StatusCode::INTERNAL);
  Until(kService, false);
  EXPECT_FALSE(Serving(kAll));
  EXPECT_FALSE(Serving(kTranslator));
  EXPECT_TRUE(Serving(kSummarizer)) << "the other one works";
  EXPECT_TRUE(Serving(kLiveness)) << "it will be made again: no reason to be killed";
  EXPECT_EQ(Translate(), grpc::StatusCode::UNAVAILABLE);
  fails = refused = false;
  Until(kService, true);
  ExpectAllServing();
}

TEST_F(ServerHealthTest, AnEngineThatIsStuckAndMayNotBeReplacedIsTheEndOfLivenessUntilItReturns) {
  test::Turnstile go_on;
  std::atomic<bool> stuck = false;
  on_step = [&] {
    if (stuck) go_on.Pass();
  };
  options_.engine_patience = absl::Milliseconds(300);
  options_.max_abandoned_engines = 0;
  Start();
  ExpectAllServing();
  stuck = true;
  EXPECT_EQ(Translate(), grpc::StatusCode::UNAVAILABLE) << "who was in there is told";
  Until(kLiveness, false);
  EXPECT_FALSE(Serving(kTranslator));
  EXPECT_FALSE(Serving(kAll));
  EXPECT_TRUE(Serving(kSummarizer));
  stuck = false;
  go_on.Open();
  Until(kLiveness, true);
  Until(kService, true);
  ExpectAllServing();
}

TEST_F(ServerHealthTest, AnEngineThatIsReplacedCostsReadinessForAMomentAndLivenessNothing) {
  test::Turnstile go_on;
  std::atomic<int> stuck = 0;
  on_step = [&] {
    if (stuck.exchange(0) == 1) go_on.Pass();
  };
  options_.engine_patience = absl::Milliseconds(300);
  options_.max_abandoned_engines = 1;
  Start();
  stuck = 1;
  EXPECT_EQ(Translate(), grpc::StatusCode::UNAVAILABLE);
  while (Translate() != grpc::StatusCode::OK) absl::SleepFor(absl::Milliseconds(5));
  Until(kService, true);
  ExpectAllServing();
  EXPECT_TRUE(server_->stuck()) << "the one that was left behind has not returned";
  go_on.Open();
  while (server_->stuck()) absl::SleepFor(absl::Milliseconds(5));
}

}  // namespace
}  // namespace linnet::server
