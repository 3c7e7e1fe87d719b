// Tests of --resume, and of outputs that must not be overwritten by mistake.
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "tests/client/cli/cli_fixture.h"

namespace linnet::client {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class CliResumeTest : public CliFolderTest {
 protected:
  // The lines "line 0" to "line COUNT-1".
  static std::string Lines(int count) {
    std::string input;
    for (int line = 0; line < count; ++line) absl::StrAppend(&input, "line ", line, "\n");
    return input;
  }
  // Runs into "out" and fails after the first 64 lines.
  void RunThatFails(const std::string& input, std::vector<std::string> more = {}) {
    server_.on_translate = [](auto&, const v1::TranslateRequest& request,
                              v1::TranslateResponse& response) {
      if (request.contents(0) == "line 64") {
        return ServerError(grpc::StatusCode::INTERNAL, "engine failed", "ENGINE_FAILED");
      }
      for (const auto& content : request.contents()) {
        response.add_translations()->set_text("[de] " + content);
      }
      return grpc::Status::OK;
    };
    more.insert(more.end(), {"-o", Path("out")});
    EXPECT_EQ(Translate(more, input), kExitCode + 13);
    server_.on_translate = nullptr;
  }
};

TEST_F(CliResumeTest, ResumesAfterAnyByteOfAnInterruptedRun) {
  const std::string input = "one\n\ntwo\r\nthree\n";
  ASSERT_EQ(Translate({"-o", Path("whole")}, input), kExitOk);
  const std::string whole = Content("whole");
  for (size_t size = 0; size <= whole.size(); ++size) {
    File("out", whole.substr(0, size));
    ASSERT_EQ(Translate({"-o", Path("out"), "--resume", "--force"}, input), kExitOk) << err_;
    ASSERT_EQ(Content("out"), whole) << "after " << size << " bytes";
  }
  std::filesystem::remove(Path("out"));
  EXPECT_EQ(Translate({"-o", Path("out"), "--resume"}, input), kExitOk) << "a first run";
  EXPECT_EQ(Content("out"), whole);
}

TEST_F(CliResumeTest, DoesNotResendAnsweredLines) {
  File("out", "[de] one\n[de] two\n[de] thr");
  EXPECT_EQ(Translate({"-o", Path("out"), "--resume", "--force", "--file", File("a", "one\ntwo\n"),
                       "--file", File("b", "three\nfour\n")}),
            kExitOk);
  EXPECT_THAT(Sent(), testing::ElementsAre("three", "four"));
  EXPECT_EQ(Content("out"), "[de] one\n[de] two\n[de] three\n[de] four\n");
}

TEST_F(CliResumeTest, RefusesToResumeOutputOfAnotherInput) {
  File("out", "1\n2\n3\n");
  EXPECT_EQ(Translate({"-o", Path("out"), "--resume"}, "one\ntwo\n"), kExitLocal);
  EXPECT_THAT(err_, HasSubstr("has 3 lines and the input only 2"));
  EXPECT_EQ(Content("out"), "1\n2\n3\n");
  EXPECT_EQ(Translate({"-o", folder_.path(), "--resume"}, "one\n"), kExitLocal);
  EXPECT_THAT(err_, HasSubstr("is not a file"));
}

TEST_F(CliResumeTest, ErrorTellsHowToResume) {
  server_.on_translate = [](auto&, const v1::TranslateRequest& request,
                            v1::TranslateResponse& response) {
    if (request.contents(0) == "line 64") {
      return ServerError(grpc::StatusCode::INTERNAL, "engine failed", "ENGINE_FAILED");
    }
    for (const auto& content : request.contents()) response.add_translations()->set_text(content);
    return grpc::Status::OK;
  };
  std::string input;
  for (int line = 0; line < 100; ++line) absl::StrAppend(&input, "line ", line, "\n");
  EXPECT_EQ(Translate({"-o", Path("out")}, input), kExitCode + 13);
  EXPECT_THAT(err_, HasSubstr("64 texts were answered before\n  the same command with --resume"));
  server_.on_translate = nullptr;
  EXPECT_EQ(Translate({"-o", Path("out"), "--resume"}, input), kExitOk);
  EXPECT_THAT(Content("out"), AllOf(HasSubstr("line 63\n[de] line 64\n"), HasSubstr("line 99\n")));
}

TEST_F(CliResumeTest, RecordExistsOnlyWhileOutputIsUnfinished) {
  RunThatFails(Lines(100));
  EXPECT_TRUE(std::filesystem::exists(Path("out.resume")));
  EXPECT_EQ(Translate({"-o", Path("out"), "--resume"}, Lines(100)), kExitOk) << err_;
  EXPECT_FALSE(std::filesystem::exists(Path("out.resume")));
  const std::string whole = Content("out");
  EXPECT_EQ(std::count(whole.begin(), whole.end(), '\n'), 100);
  EXPECT_EQ(Translate({"-o", Path("out"), "--resume"}, Lines(100)), kExitOk) << "nothing to do";
  EXPECT_EQ(Content("out"), whole);
  EXPECT_EQ(Translate({"-o", Path("out"), "--resume"}, Lines(101)), kExitLocal);
  EXPECT_THAT(err_, HasSubstr("no record beside it says of which input"));
  EXPECT_EQ(Translate({"-o", Path("out"), "--resume", "--force"}, Lines(101)), kExitOk);
  EXPECT_EQ(Content("out"), whole + "[de] line 100\n");
}

TEST_F(CliResumeTest, DetectsChangesOfAnsweredLines) {
  const std::string input = Lines(100);
  RunThatFails(input);
  const std::string answered = Content("out"), record = Content("out.resume");
  const size_t done = input.find("line 64");
  for (size_t at = 0; at < input.size(); at += 7) {
    if (input[at] == '\n') continue;
    std::string other = input;
    other[at] = 'x';
    const int exit = Translate({"-o", Path("out"), "--resume"}, other);
    ASSERT_EQ(exit, at < done ? kExitLocal : kExitOk) << at << err_;
    if (at < done) {
      ASSERT_THAT(err_, HasSubstr("made from another input"));
      ASSERT_EQ(Content("out"), answered);
      ASSERT_EQ(Content("out.resume"), record);
    }
    File("out", answered);
    File("out.resume", record);
  }
}

TEST_F(CliResumeTest, RefusedTextsOfAnEarlierRunCount) {
  std::string input = Lines(100);
  input.replace(input.find("line 5\n"), 6, "\xff");
  RunThatFails(input, {"--on-error", "skip"});
  const std::string answered = Content("out"), record = Content("out.resume");
  const std::vector<std::string> resume = {"-o", Path("out"), "--resume", "--on-error", "skip"};
  EXPECT_EQ(Translate(resume, input), kExitRefused);
  EXPECT_EQ(err_,
            "linnet: 1 of the 64 texts of an earlier run was refused: the place of each answer is "
            "empty\n");

  File("out", answered);
  File("out.resume", record);
  RunThatFails(input, {"--resume", "--on-error", "skip"});  // it does not answer anything
  input.replace(input.find("line 77\n"), 7, "\xff");
  EXPECT_EQ(Translate(resume, input), kExitRefused);
  EXPECT_THAT(err_, AllOf(HasSubstr("linnet: 1 of the 64 texts of an earlier run was refused: "),
                          HasSubstr("linnet: 1 of 36 texts was refused: ")));

  File("out", answered);
  const std::vector<std::string> words = absl::StrSplit(record, ' ');
  File("out.resume",
       absl::StrCat("linnet-resume-1 ", words[1], " ", words[2], " ", words[3], "\n"));
  EXPECT_EQ(Translate(resume, Lines(100)), kExitLocal);
  EXPECT_THAT(err_, HasSubstr("made from another input")) << "an old record is read";
  EXPECT_EQ(Translate(resume, input), kExitRefused);
  EXPECT_THAT(err_, Not(HasSubstr("earlier run"))) << "it does not count refused texts";
}

TEST_F(CliResumeTest, DetectsOptionsThatChangeAnswers) {
  RunThatFails(Lines(100));
  for (const std::vector<std::string>& other :
       {std::vector<std::string>{"--to", "fr"}, {"--beam", "2"}, {"--model", "m"}, {"--json"}}) {
    std::vector<std::string> more = {"-o", Path("out"), "--resume"};
    more.insert(more.end(), other.begin(), other.end());
    EXPECT_EQ(Translate(more, Lines(100)), kExitLocal) << other[0];
    EXPECT_THAT(err_, HasSubstr("begun with other languages, options or another form"));
  }
  EXPECT_EQ(Translate({"-o", Path("out"), "--resume", "--priority", "batch", "--label", "a=b",
                       "--use-cache", "false", "--request-id", "x", "--on-error", "skip"},
                      Lines(100)),
            kExitOk)
      << err_;
}

TEST_F(CliResumeTest, RefusesToResumeOutputThatLostLines) {
  RunThatFails(Lines(100));
  File("out", "[de] line 0\n");
  EXPECT_EQ(Translate({"-o", Path("out"), "--resume"}, Lines(100)), kExitLocal);
  EXPECT_THAT(err_, HasSubstr("had 64 lines and has 1 now"));
  EXPECT_EQ(Content("out"), "[de] line 0\n");
}

TEST_F(CliResumeTest, RefusesToOverwriteUnfinishedOutput) {
  RunThatFails(Lines(100));
  const std::string answered = Content("out");
  EXPECT_EQ(Translate({"-o", Path("out")}, Lines(100)), kExitLocal);
  EXPECT_THAT(err_, AllOf(HasSubstr("64 lines of an unfinished run"), HasSubstr("--resume"),
                          HasSubstr("--force")));
  EXPECT_EQ(Content("out"), answered);
  EXPECT_EQ(Translate({"-o", Path("out"), "--force"}, "one\n"), kExitOk);
  EXPECT_EQ(Content("out"), "[de] one\n");
  EXPECT_FALSE(std::filesystem::exists(Path("out.resume")));
}

TEST_F(CliResumeTest, RefusesToOverwriteFileLongerThanInput) {
  const std::string input = File("in", "one\ntwo");
  File("out", "1\n2\n3\n");
  EXPECT_EQ(Translate({"--file", input, "-o", Path("out")}), kExitLocal);
  EXPECT_THAT(err_, HasSubstr("has 3 lines and the input only 2: --force"));
  EXPECT_EQ(Content("out"), "1\n2\n3\n");
  EXPECT_EQ(Translate({"--file", input, "-o", Path("out"), "--force"}), kExitOk);
  EXPECT_EQ(Content("out"), "[de] one\n[de] two\n");
  EXPECT_EQ(Translate({"--file", input, "-o", Path("out")}), kExitOk)
      << "an output of the same length may be overwritten";
}

TEST_F(CliResumeTest, RefusedResumeLeavesFileUnchanged) {
  File("out", "1\n2\n3\nhalf");
  EXPECT_EQ(Translate({"-o", Path("out"), "--resume"}, Lines(10)), kExitLocal);
  EXPECT_EQ(Content("out"), "1\n2\n3\nhalf");
}

TEST_F(CliResumeTest, WritesNoRecordForDevices) {
  EXPECT_EQ(Translate({"-o", "/dev/null"}, Lines(10)), kExitOk) << err_;
  EXPECT_FALSE(std::filesystem::exists("/dev/null.resume"));
}

}  // namespace
}  // namespace linnet::client
