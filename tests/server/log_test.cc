#include "server/base/log.h"

#include <fcntl.h>
#include <unistd.h>

#include <string>

#include "gmock/gmock.h"
#include "server/base/line_writer.h"
#include "tests/support/status_matchers.h"

namespace linnet::server {
namespace {

TEST(LogTest, FormatsEventKeysAndValues) {
  EXPECT_EQ(FormatLogLine("call", {{"method", "Translate"}, {"segments", 3}, {"seconds", 0.5}}),
            "call method=Translate segments=3 seconds=0.5");
}

TEST(LogTest, QuotesValuesWithBlanksOrQuotes) {
  EXPECT_EQ(
      FormatLogLine(
          "e",
          {{"a", "two words"}, {"b", "line\nbreak"}, {"c", "say \"x\""}, {"d", ""}, {"e", "k=v"}}),
      "e a=\"two words\" b=\"line\\nbreak\" c=\"say \\\"x\\\"\" d=\"\" e=\"k=v\"");
}

TEST(LogTest, LineIsUtf8ForAnyValues) {
  EXPECT_EQ(FormatLogLine("e", {{"a", "h\xfftp"}, {"b", "\xff \x1b"}, {"c", "gr\u00fcn"}}),
            "e a=\"h\xef\xbf\xbdtp\" b=\"\xef\xbf\xbd \\u001b\" c=\"gr\u00fcn\"");
}

TEST(LogTest, JsonLineIsAnObjectForAnyValues) {
  EXPECT_EQ(FormatJsonFields("call", {{"method", "Translate"}, {"why", "say \"x\"\n"}, {"n", 3}}),
            "\"event\":\"call\",\"method\":\"Translate\",\"why\":\"say \\\"x\\\"\\n\",\"n\":\"3\"");
  EXPECT_EQ(FormatJsonFields("e", {{"bad", "\xff"}}), "\"event\":\"e\",\"bad\":\"\xef\xbf\xbd\"");
}

TEST(LogTest, RejectsUnknownFormat) {
  EXPECT_THAT(SetLogFormat("xml"), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(LogTest, RejectsUnknownLevelAndListsLevels) {
  EXPECT_THAT(SetLogLevel("loud"), StatusIs(absl::StatusCode::kInvalidArgument,
                                            ::testing::HasSubstr("debug, info, warning, error")));
  EXPECT_THAT(SetLogLevel("info"), IsOk());
}

// A pipe of two pages that is read only by Read. It takes a line while one page is free.
class Pipe {
 public:
  Pipe() {
    EXPECT_EQ(pipe2(ends_, O_CLOEXEC), 0);
    EXPECT_GE(fcntl(ends_[1], F_SETPIPE_SZ, 8192), 0);
  }
  ~Pipe() {
    close(ends_[0]);
    close(ends_[1]);
  }
  int writer() const { return ends_[1]; }
  // Reads its content, which must not be empty.
  std::string Read() {
    std::string text(1 << 16, '\0');
    text.resize(std::max<ssize_t>(0, read(ends_[0], text.data(), text.size())));
    return text;
  }

 private:
  int ends_[2];
};

TEST(LineWriterTest, DropsLinesOfAnUnreadPipeWithoutBlocking) {
  Pipe pipe;
  LineWriter writer(pipe.writer());
  const std::string line(99, 'x');
  int written = 0;
  while (writer.Write(line + "\n")) ++written;
  EXPECT_GT(written, 0);
  EXPECT_FALSE(writer.Write("more\n"));
  EXPECT_EQ(pipe.Read().size(), 100 * written) << "whole lines";
  EXPECT_TRUE(writer.Write("again\n"));
  EXPECT_EQ(pipe.Read(), "again\n");
}

TEST(LineWriterTest, StartsOnANewLineAfterACutOffLine) {
  Pipe pipe;
  LineWriter writer(pipe.writer());
  EXPECT_FALSE(writer.Write(std::string(10'000, 'x') + "\n")) << "more than the pipe holds";
  EXPECT_FALSE(writer.Write("more\n"));
  EXPECT_EQ(pipe.Read(), std::string(8192, 'x'));
  EXPECT_TRUE(writer.Write("again\n"));
  EXPECT_EQ(pipe.Read(), "\nagain\n");
}

TEST(LineWriterTest, ReportsALineThatCannotBeWrittenAsLost) {
  const int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
  EXPECT_FALSE(LineWriter(full).Write("line\n"));
  close(full);
  EXPECT_FALSE(LineWriter(full).Write("line\n")) << "it is closed";
}

TEST(LogTest, CountsLostLinesAndLogsThemLater) {
  Pipe pipe;
  const int error = dup(STDERR_FILENO);
  dup2(pipe.writer(), STDERR_FILENO);
  const int64_t before = LostLogLines();
  while (LostLogLines() < before + 3) Log(LogLevel::kError, "event", {});
  const std::string first = pipe.Read();
  Log(LogLevel::kError, "event", {{"number", 4}});
  const std::string then = pipe.Read();
  dup2(error, STDERR_FILENO);
  close(error);
  EXPECT_THAT(first, ::testing::EndsWith(" event\n"));
  EXPECT_THAT(then, ::testing::ContainsRegex("log_lines_lost lines=3\n.* event number=4\n"));
}

}  // namespace
}  // namespace linnet::server
