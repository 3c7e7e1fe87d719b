// Tests of output files, glossaries, scores and the progress bar.
#include <filesystem>
#include <string>
#include <vector>

#include "client/cli/text/progress.h"
#include "gmock/gmock.h"
#include "tests/client/cli/cli_fixture.h"

namespace linnet::client {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

using CliFilesTest = CliFolderTest;

TEST_F(CliFilesTest, WritesAnswersToOutputFile) {
  File("out", "what was there before\n");
  EXPECT_EQ(Translate({"-o", Path("out")}, "one\n\ntwo"), kExitOk) << err_;
  EXPECT_EQ(Content("out"), "[de] one\n\n[de] two\n");
  EXPECT_THAT(out_, IsEmpty());
  EXPECT_EQ(Translate({"--output", Path("no/such/folder")}, "one"), kExitLocal);
  EXPECT_THAT(err_, HasSubstr("No such file or directory"));
}

TEST_F(CliFilesTest, RefusesOutputFileThatIsAnInput) {
  const std::string path = File("both", "one\n");
  std::filesystem::create_symlink(path, Path("link"));
  for (const std::string& output : {path, Path("link")}) {
    EXPECT_EQ(Translate({"--file", path, "-o", output}), kExitLocal);
    EXPECT_THAT(err_, HasSubstr("is input and output"));
  }
  EXPECT_EQ(Content("both"), "one\n");
}

TEST_F(CliFilesTest, ReadsGlossaryFile) {
  const std::string terms =
      File("terms.tsv", "\uFEFFbeam search\tStrahlsuche\r\nLinnet\r\n\r\nlazy dog\tfauler Hund");
  EXPECT_EQ(Translate({"--glossary", terms, "One."}), kExitOk) << err_;
  const v1::Glossary glossary = server_.translate_requests().back().glossary();
  ASSERT_EQ(glossary.entries_size(), 3);
  EXPECT_EQ(glossary.entries(0).source_text(), "beam search");
  EXPECT_EQ(glossary.entries(0).target_text(), "Strahlsuche");
  EXPECT_EQ(glossary.entries(1).source_text(), "Linnet");
  EXPECT_EQ(glossary.entries(1).target_text(), "");
  EXPECT_EQ(glossary.entries(2).target_text(), "fauler Hund");
  EXPECT_EQ(Translate({"One."}), kExitOk);
  EXPECT_FALSE(server_.translate_requests().back().has_glossary());
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {"a\tb\tc\n", "line 1 of "},
      {"a\tb\n\tb\n", "is not a term, a tab and what becomes of it"},
      {"a\tb\n\na\tc\n", "has the term of line 1 of "},
      {"caf\xE9\n", "is not UTF-8"},
      {"\n", "has no term in it"},
      {"dog,Hund\n\"cat\",Katze\n", "seems to be CSV: each line has a \",\" and none has a tab"},
      {"dog;Hund\n\n", "has a \";\" and none has a tab; write a tab between a term"},
  };
  for (const char* kept : {"Acme, Inc.\nDog,Cat\n", "dog,Hund\nLinnet\n", "a,b\tc\n", ";\n"})
    EXPECT_EQ(Translate({"--glossary", File("kept.tsv", kept), "One."}), kExitOk) << err_;
  for (const auto& [content, message] : wrong) {
    EXPECT_EQ(Translate({"--glossary", File("wrong.tsv", content), "One."}), kExitUsage);
    EXPECT_THAT(err_, AllOf(HasSubstr("--glossary"), HasSubstr(message)));
  }
  EXPECT_EQ(Translate({"--glossary", "-", "One."}), kExitUsage);
  EXPECT_THAT(err_, HasSubstr("not read from standard input"));
  EXPECT_EQ(Translate({"--glossary", Path("none"), "One."}), kExitUsage);
  EXPECT_THAT(err_, HasSubstr("No such file"));
}

TEST_F(CliFilesTest, ReportsGlossaryTermsThatWereNotApplied) {
  server_.on_translate = [](auto&, const auto&, v1::TranslateResponse& response) {
    response.add_translations()->set_text("Ja.");
    v1::Segment& segment = *response.mutable_translations(0)->add_segments();
    segment.add_glossary_terms()->set_met(true);
    segment.add_glossary_terms()->set_met(false);
    return grpc::Status::OK;
  };
  EXPECT_EQ(Translate({"Yes."}), kExitOk);
  EXPECT_THAT(err_, HasSubstr("argument 1: 1 term of the glossary could not be applied"));
}

TEST_F(CliFilesTest, PrintsScoresBeforeAndAlignmentsBelowAnswers) {
  server_.on_translate = [](auto&, const v1::TranslateRequest& request,
                            v1::TranslateResponse& response) {
    EXPECT_EQ(request.alignments(), request.contents(0) == "Good morning.");
    v1::Translation& answer = *response.add_translations();
    answer.set_text("Größe, ja.");
    for (float score : {-0.25f, -1.5f}) answer.add_segments()->set_score(score);
    if (!request.alignments()) return grpc::Status::OK;
    const auto link = [&answer](int sb, int se, int tb, int te, float weight) {
      v1::WordAlignment& added = *answer.mutable_segments(0)->add_word_alignments();
      added.set_source_begin(sb);
      added.set_source_end(se);
      added.set_target_begin(tb);
      added.set_target_end(te);
      added.set_weight(weight);
    };
    link(0, 4, 0, 8, 0.75);
    link(5, 13, 0, 8, 0.2);
    link(5, 999, 9, 12, 1);  // an offset beyond the text is clamped
    return grpc::Status::OK;
  };
  EXPECT_EQ(Translate({"--scores", "Size, yes."}), kExitOk);
  EXPECT_EQ(out_, "-1.5000\tGröße, ja.\n");
  EXPECT_EQ(Translate({"--alignments", "Good morning."}), kExitOk);
  EXPECT_EQ(out_,
            "Größe, ja.\n"
            "  Größe,  Good 75%, morning. 20%\n"
            "  ja.     morning. 100%\n");
}

TEST_F(CliFilesTest, ProgressShowsShareRateAndTimeLeft) {
  const Advance half = {
      .lines = 640, .bytes = 500, .total_bytes = 1000, .elapsed = absl::Seconds(10)};
  EXPECT_EQ(ProgressText(half, 60, false),
            " 50% ━━━━━━━━━━━━━────────────── 640 lines, 64/s, 0:10 left");
  EXPECT_THAT(ProgressText(half, 60, true), AllOf(HasSubstr("\x1b["), HasSubstr("640 lines")));
  EXPECT_EQ(ProgressText(half, 30, false), " 50% 640 lines, 64/s, 0:10 le");
  EXPECT_EQ(ProgressText({.lines = 1, .elapsed = absl::Seconds(2)}, 80, true),
            "1 line, 0.5/s, 0:02");
  EXPECT_EQ(ClockText(absl::Seconds(3723)), "1:02:03");
  EXPECT_EQ(ProgressText(half, 0, true), "");
  const Advance resumed = {.lines = 64,
                           .bytes = 500,
                           .first_byte = 400,
                           .total_bytes = 1000,
                           .elapsed = absl::Seconds(1)};
  EXPECT_THAT(ProgressText(resumed, 60, false), AllOf(StartsWith(" 50% "), HasSubstr("0:05 left")));
}

TEST_F(CliFilesTest, ProgressIsRedrawnAtIntervalsAndClearedAtEnd) {
  std::ostringstream out;
  const absl::Time start = absl::FromUnixSeconds(0);
  {
    Progress progress(out, true, 80, false);
    progress.Update({.lines = 1, .elapsed = absl::Seconds(1)}, start);
    progress.Update({.lines = 2, .elapsed = absl::Seconds(1)}, start + absl::Milliseconds(100));
    progress.Update({.lines = 3, .elapsed = absl::Seconds(1)}, start + absl::Milliseconds(200));
    progress.Finish({.lines = 90, .elapsed = absl::Seconds(60)});
  }
  EXPECT_EQ(out.str(),
            "\r\x1b[K1 line, 1.0/s, 0:01\r\x1b[K3 lines, 3.0/s, 0:01"
            "\r\x1b[Klinnet: 90 lines in 1:00, 1.5/s\n");
}

TEST_F(CliFilesTest, ProgressNeedsATerminalWithoutAnswers) {
  const std::string input = File("in", "one\ntwo\n");
  EXPECT_EQ(Translate({"--file", input, "-o", Path("out")}), kExitOk);
  EXPECT_THAT(err_, IsEmpty()) << "no progress bar in a log file";
  err_is_terminal_ = true;
  EXPECT_EQ(Translate({"--file", input, "-o", Path("out")}), kExitOk);
  EXPECT_THAT(err_,
              AllOf(StartsWith("\r\x1b[K100% "), HasSubstr("\x1b[36m"), HasSubstr("2 lines")));
  variables_["NO_COLOR"] = "1";
  EXPECT_EQ(Translate({"--file", input, "-o", Path("out")}), kExitOk);
  EXPECT_THAT(err_, AllOf(HasSubstr("100% "), Not(HasSubstr("\x1b[36m"))));
  out_is_terminal_ = true;
  EXPECT_EQ(Translate({"--file", input}), kExitOk);
  EXPECT_THAT(err_, IsEmpty());
  EXPECT_EQ(Translate({"--file", input, "-o", Path("out")}), kExitOk);
  EXPECT_THAT(err_, HasSubstr("100% "));
  variables_["TERM"] = "dumb";
  EXPECT_EQ(Translate({"--file", input, "-o", Path("out")}), kExitOk);
  EXPECT_THAT(err_, IsEmpty());
}

}  // namespace
}  // namespace linnet::client
