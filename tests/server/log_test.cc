#include "server/log.h"

#include "gmock/gmock.h"
#include "tests/support/status_matchers.h"

namespace linnet::server {
namespace {

TEST(LogTest, ALineIsAnEventWithKeysAndValues) {
  EXPECT_EQ(FormatLogLine("call", {{"method", "Translate"}, {"segments", 3}, {"seconds", 0.5}}),
            "call method=Translate segments=3 seconds=0.5");
}

TEST(LogTest, ValuesThatWouldBreakTheLineAreQuoted) {
  EXPECT_EQ(
      FormatLogLine(
          "e",
          {{"a", "two words"}, {"b", "line\nbreak"}, {"c", "say \"x\""}, {"d", ""}, {"e", "k=v"}}),
      "e a=\"two words\" b=\"line\\nbreak\" c=\"say \\\"x\\\"\" d=\"\" e=\"k=v\"");
}

TEST(LogTest, AnEventInJsonIsAnObjectWhateverItsValues) {
  EXPECT_EQ(FormatJsonFields("call", {{"method", "Translate"}, {"why", "say \"x\"\n"}, {"n", 3}}),
            "\"event\":\"call\",\"method\":\"Translate\",\"why\":\"say \\\"x\\\"\\n\",\"n\":\"3\"");
  EXPECT_EQ(FormatJsonFields("e", {{"bad", "\xff"}}), "\"event\":\"e\",\"bad\":\"\xef\xbf\xbd\"");
}

TEST(LogTest, AnUnknownFormatIsRefused) {
  EXPECT_THAT(SetLogFormat("xml"), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(LogTest, AnUnknownLevelIsRefusedWithTheList) {
  EXPECT_THAT(SetLogLevel("loud"), StatusIs(absl::StatusCode::kInvalidArgument,
                                            ::testing::HasSubstr("debug, info, warning, error")));
  EXPECT_THAT(SetLogLevel("info"), IsOk());
}

}  // namespace
}  // namespace linnet::server
