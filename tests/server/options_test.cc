#include "server/options.h"

#include "gmock/gmock.h"
#include "tests/support/status_matchers.h"

namespace linnet::server {
namespace {

using ::testing::HasSubstr;

ParsedOptions Parse(std::vector<const char*> flags) {
  flags.insert(flags.begin(), "linnet-server");
  return ParseOptions(static_cast<int>(flags.size()), flags.data());
}

TEST(OptionsTest, DefaultsServeTheLocalMachineAlone) {
  const ParsedOptions parsed = Parse({"--models", "some/bundles"});
  ASSERT_TRUE(parsed.run);
  EXPECT_EQ(parsed.options.models, "some/bundles");
  EXPECT_EQ(parsed.options.listen, "127.0.0.1:50051");
  EXPECT_EQ(parsed.options.metrics_listen, "127.0.0.1:9464");
  EXPECT_EQ(parsed.options.device, "cpu");
  EXPECT_EQ(parsed.options.compute, "auto");
}

TEST(OptionsTest, EveryFlagArrives) {
  const ParsedOptions parsed = Parse({"--models=m",
                                      "--listen=0.0.0.0:0",
                                      "--metrics-listen=[::1]:9",
                                      "--device=cuda",
                                      "--compute=bfloat16",
                                      "--threads=3",
                                      "--max-model-bytes=5000",
                                      "--rows=7",
                                      "--memory-tokens=99",
                                      "--max-encode-tokens=55",
                                      "--admit-wait-steps=6",
                                      "--encode-call-steps=1.5",
                                      "--encode-call-tokens=70",
                                      "--max-admitted-tokens=1234",
                                      "--max-admitted-bytes=9000",
                                      "--max-call-rows-ratio=0.5",
                                      "--overload-interval=3",
                                      "--overload-wait=0.5",
                                      "--max-contents=4",
                                      "--max-text-bytes=77",
                                      "--text-threads=1",
                                      "--drain-timeout=1.5",
                                      "--lame-duck=2.5",
                                      "--engine-patience=7",
                                      "--log-level=error"});
  ASSERT_TRUE(parsed.run) << parsed.text;
  const Options& options = parsed.options;
  EXPECT_EQ(options.listen, "0.0.0.0:0");
  EXPECT_EQ(options.metrics_listen, "[::1]:9");
  EXPECT_EQ(options.device, "cuda");
  EXPECT_EQ(options.compute, "bfloat16");
  EXPECT_EQ(options.threads, 3);
  EXPECT_EQ(options.max_model_bytes, 5000);
  EXPECT_EQ(options.rows, 7);
  EXPECT_EQ(options.memory_tokens, 99);
  EXPECT_EQ(options.batcher.max_encode_tokens, 55);
  EXPECT_EQ(options.batcher.admit.max_wait_steps, 6);
  EXPECT_EQ(options.batcher.admit.encode_call_steps, 1.5f);
  EXPECT_EQ(options.batcher.admit.encode_call_tokens, 70);
  EXPECT_EQ(options.admission.max_tokens, 1234);
  EXPECT_EQ(options.admission.max_bytes, 9000);
  EXPECT_EQ(options.batcher.max_call_rows_ratio, 0.5);
  EXPECT_EQ(options.batcher.shed.interval, absl::Seconds(3));
  EXPECT_EQ(options.batcher.shed.most_wait, absl::Milliseconds(500));
  EXPECT_EQ(options.text.max_contents, 4);
  EXPECT_EQ(options.text.max_text_bytes, 77);
  EXPECT_EQ(options.text_threads, 1);
  EXPECT_EQ(options.lame_duck, absl::Milliseconds(2500));
  EXPECT_EQ(options.drain_timeout, absl::Milliseconds(1500));
  EXPECT_EQ(options.engine_patience, absl::Seconds(7));
  EXPECT_EQ(options.log_level, "error");
}

TEST(OptionsTest, HelpAndVersionAreNoErrors) {
  EXPECT_THAT(Parse({"--help"}).text, HasSubstr("--metrics-listen"));
  EXPECT_EQ(Parse({"--help"}).exit_status, 0);
  EXPECT_EQ(Parse({"--version"}).exit_status, 0);
  EXPECT_FALSE(Parse({"--version"}).run);
}

struct BadFlag {
  std::vector<const char*> flags;
  const char* says;
};
class BadFlagTest : public ::testing::TestWithParam<BadFlag> {};

TEST_P(BadFlagTest, IsRefusedWithStatusTwo) {
  const ParsedOptions parsed = Parse(GetParam().flags);
  EXPECT_FALSE(parsed.run);
  EXPECT_EQ(parsed.exit_status, 2);
  EXPECT_THAT(parsed.text, HasSubstr(GetParam().says));
}

INSTANTIATE_TEST_SUITE_P(
    All, BadFlagTest,
    ::testing::Values(BadFlag{{}, "--models"}, BadFlag{{"--models=m", "--colour=red"}, "--colour"},
                      BadFlag{{"--models=m", "--listen=here"}, "no HOST:PORT"},
                      BadFlag{{"--models=m", "--listen=127.0.0.1:99999"}, "65535"},
                      BadFlag{{"--models=m", "--listen=:80"}, "no HOST:PORT"},
                      BadFlag{{"--models=m", "--metrics-listen=::1:80"}, "[::1]:0"},
                      BadFlag{{"--models=m", "--rows=0"}, "--rows"},
                      BadFlag{{"--models=m", "--threads=-1"}, "--threads"},
                      BadFlag{{"--models=m", "--rows=many"}, "--rows"},
                      BadFlag{{"--models=m", "--drain-timeout=-1"}, "--drain-timeout"},
                      BadFlag{{"--models=m", "--log-level=loud"}, "warning"}));

TEST(OptionsTest, ThePortThatWasPickedTakesThePlaceOfZero) {
  EXPECT_EQ(WithPort("127.0.0.1:0", 4711), "127.0.0.1:4711");
  EXPECT_EQ(WithPort("[::1]:0", 80), "[::1]:80");
}

}  // namespace
}  // namespace linnet::server
