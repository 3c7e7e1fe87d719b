// The executable itself: pipes, signals and the environment, which main.cc alone knows.
#include <signal.h>

#include <string>
#include <vector>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "client/cli/cli.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/process.h"
#include "tests/client/puppet_server.h"

namespace linnet::client {
namespace {

class ProcessTest : public ::testing::Test {
 protected:
  const std::vector<std::string> kLines = {"translate", "--from", "en", "--to", "de", "--lines"};
  absl::Notification arrived_, released_;
  PuppetServer server_;
};

TEST_F(ProcessTest, ReadsItsServerFromTheEnvironment) {
  Process process(LINNET_EXECUTABLE, {"health"}, server_.address());
  EXPECT_EQ(process.Read(), "SERVING\n");
  EXPECT_EQ(process.Wait(), kExitOk);
}

TEST_F(ProcessTest, AnswersALineWhileThePipeIsOpen) {
  Process process(LINNET_EXECUTABLE, kLines, server_.address());
  process.Write("one\n");
  EXPECT_EQ(process.Read(), "[de] one\n");
  process.Write("two\n");
  EXPECT_EQ(process.Read(), "[de] two\n");
  process.CloseInput();
  EXPECT_EQ(process.Read(), "");
  EXPECT_EQ(process.Wait(), kExitOk);
}

TEST_F(ProcessTest, AnInterruptEndsReading) {
  Process process(LINNET_EXECUTABLE, kLines, server_.address());
  process.Write("one\n");
  EXPECT_EQ(process.Read(), "[de] one\n");
  process.Signal(SIGINT);
  EXPECT_EQ(process.Wait(), kExitCode + 1);
}

TEST_F(ProcessTest, AnInterruptCancelsTheCallUnderWay) {
  server_.on_translate = [this](grpc::ServerContext& context, const auto&, auto&) {
    arrived_.Notify();
    while (!context.IsCancelled()) absl::SleepFor(absl::Milliseconds(1));
    released_.Notify();
    return grpc::Status::OK;
  };
  Process process(LINNET_EXECUTABLE, kLines, server_.address());
  process.Write("one\n");
  arrived_.WaitForNotification();
  process.Signal(SIGINT);
  EXPECT_EQ(process.Wait(), kExitCode + 1);
  EXPECT_TRUE(released_.WaitForNotificationWithTimeout(absl::Seconds(20)));
}

}  // namespace
}  // namespace linnet::client
