// Tests the executable: pipes, signals and the environment, which only main.cc handles.
#include <signal.h>

#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "client/cli/cli.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/fake_server.h"
#include "tests/client/process.h"
#include "tests/support/places.h"

namespace linnet::client {
namespace {

class ProcessTest : public ::testing::Test {
 protected:
  const std::vector<std::string> kTranslate = {"translate", "--from", "en",
                                               "--to",      "de",     "--lines"};
  absl::Notification arrived_, released_;
  FakeServer server_;
};

TEST_F(ProcessTest, ReadsItsServerFromTheEnvironment) {
  Process process(ProgramDir() / "linnet", {"health"}, server_.address());
  EXPECT_EQ(process.Read(), "SERVING\n");
  EXPECT_EQ(process.Wait(), kExitOk);
}

TEST_F(ProcessTest, AnswersALineWhileThePipeIsOpen) {
  Process process(ProgramDir() / "linnet", kTranslate, server_.address());
  process.Write("one\n");
  EXPECT_EQ(process.Read(), "[de] one\n");
  process.Write("two\n");
  EXPECT_EQ(process.Read(), "[de] two\n");
  process.CloseInput();
  EXPECT_EQ(process.Read(), "");
  EXPECT_EQ(process.Wait(), kExitOk);
}

TEST_F(ProcessTest, StandardInputThatCannotBeReadIsAnError) {
  for (const std::string form : {"--lines", "--document"}) {
    const std::string command = "exec \"$0\" translate --from en --to de " + form + " 2>&1 < /";
    Process process("/bin/sh", {"-c", command, ProgramDir() / "linnet"}, server_.address());
    EXPECT_EQ(process.ReadAll(), "linnet: cannot read standard input: Is a directory\n");
    EXPECT_EQ(process.Wait(), kExitLocal);
  }
}

TEST_F(ProcessTest, NotesToAClosedStandardErrorEndNothing) {
  server_.on_translate = [](auto&, const v1::TranslateRequest& request,
                            v1::TranslateResponse& response) {
    response.add_translations()->set_text(request.contents(0));
    response.mutable_translations(0)->set_finish_reason(v1::FINISH_REASON_LENGTH);  // a note
    return grpc::Status::OK;
  };
  Process process("/bin/sh",
                  {"-c", "exec \"$0\" translate --from en --to de 2>&-", ProgramDir() / "linnet"},
                  server_.address());
  for (const std::string line : {"one\n", "two\n", "three\n"}) {
    process.Write(line);
    EXPECT_EQ(process.Read(), line);
  }
  process.CloseInput();
  EXPECT_EQ(process.Wait(), kExitOk);
}

TEST_F(ProcessTest, ClosedStandardInputAndOutputAreErrors) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"--lines 2>&1 <&-", "linnet: cannot read standard input: Bad file descriptor\n"},
      {"one 2>&1 >&-", "linnet: cannot write the output: Bad file descriptor\n"},
  };
  for (const auto& [end, message] : cases) {
    Process process(
        "/bin/sh",
        {"-c", "exec \"$0\" translate --from en --to de " + end, ProgramDir() / "linnet"},
        server_.address());
    EXPECT_EQ(process.ReadAll(), message);
    EXPECT_EQ(process.Wait(), kExitLocal);
  }
  Process process(
      "/bin/sh", {"-c", "exec \"$0\" translate --from en --to de one <&-", ProgramDir() / "linnet"},
      server_.address());
  EXPECT_EQ(process.Read(), "[de] one\n") << "nothing is read here";
  EXPECT_EQ(process.Wait(), kExitOk);
}

TEST_F(ProcessTest, InterruptEndsReading) {
  Process process(ProgramDir() / "linnet", kTranslate, server_.address());
  process.Write("one\n");
  EXPECT_EQ(process.Read(), "[de] one\n");
  process.Signal(SIGINT);
  EXPECT_EQ(process.Wait(), kExitCode + 1);
}

TEST_F(ProcessTest, TerminationEndsReading) {
  Process process(ProgramDir() / "linnet", kTranslate, server_.address());
  process.Write("one\n");
  EXPECT_EQ(process.Read(), "[de] one\n");
  process.Signal(SIGTERM);
  EXPECT_EQ(process.Wait(), kExitCode + 1);
}

TEST_F(ProcessTest, InterruptCancelsTheCallInFlight) {
  server_.on_translate = [this](grpc::ServerContext& context, const auto&, auto&) {
    arrived_.Notify();
    while (!context.IsCancelled()) absl::SleepFor(absl::Milliseconds(1));
    released_.Notify();
    return grpc::Status::OK;
  };
  Process process(ProgramDir() / "linnet", kTranslate, server_.address());
  process.Write("one\n");
  arrived_.WaitForNotification();
  process.Signal(SIGINT);
  EXPECT_EQ(process.Wait(), kExitCode + 1);
  EXPECT_TRUE(released_.WaitForNotificationWithTimeout(absl::Seconds(20)));
}

TEST_F(ProcessTest, MemoryDoesNotGrowWithFileSize) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "AddressSanitizer keeps freed memory for a while";
#endif
  server_.on_translate = [](auto&, const v1::TranslateRequest& request,
                            v1::TranslateResponse& response) {
    for (int i = 0; i < request.contents_size(); ++i) response.add_translations()->set_text("ja");
    return grpc::Status::OK;
  };
  const std::string line = std::string(2047, 'x') + "\n";
  std::vector<int64_t> max;
  for (const int64_t lines : {8 << 10, 64 << 10}) {  // 16 MB and 128 MB
    Process process(ProgramDir() / "linnet", kTranslate, server_.address());
    std::thread writer([&] {
      for (int64_t i = 0; i < lines; ++i) process.Write(line);
      process.CloseInput();
    });
    int64_t bytes = 0;
    for (std::string read = process.Read(); !read.empty(); read = process.Read()) {
      bytes += read.size();
    }
    writer.join();
    EXPECT_EQ(process.Wait(), kExitOk);
    EXPECT_EQ(bytes, 3 * lines);
    max.push_back(process.max_bytes());
  }
  // The allocator keeps a varying number of MB for each of gRPC's threads.
  EXPECT_LT(max[1], max[0] + (24 << 20));
}

}  // namespace
}  // namespace linnet::client
