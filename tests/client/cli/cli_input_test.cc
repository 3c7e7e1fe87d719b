// Tests of the input: files, standard input, lines, blank and invalid texts.
#include <algorithm>
#include <atomic>
#include <fstream>
#include <functional>
#include <ios>
#include <memory>
#include <streambuf>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "tests/client/cli/cli_fixture.h"

namespace linnet::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Le;
using ::testing::SizeIs;

using CliInputTest = CliFolderTest;

TEST_F(CliInputTest, DocumentIsOneTextWithItsWhiteSpace) {
  EXPECT_EQ(Translate({"--document"}, "  One.\n\n\tTwo.  \n"), kExitOk);
  EXPECT_THAT(Sent(), ElementsAre("  One.\n\n\tTwo.  "));
  EXPECT_EQ(out_, "[de]   One.\n\n\tTwo.  \n");
  EXPECT_THAT(err_, IsEmpty());
}

TEST_F(CliInputTest, SkipsByteOrderMarkAtStartOfFile) {
  const std::string mark = "\uFEFF";
  EXPECT_EQ(Translate({}, mark + "One.\r\nTwo.\r\n"), kExitOk);
  EXPECT_EQ(out_, "[de] One.\r\n[de] Two.\r\n");
  EXPECT_EQ(Translate({"--file", File("a", mark + "One.\n"), "--file", File("b", mark + "Two.\n")}),
            kExitOk);
  EXPECT_EQ(out_, "[de] One.\n[de] Two.\n");
  EXPECT_EQ(Translate({"--document"}, mark + "One.\nTwo.\n"), kExitOk);
  EXPECT_EQ(out_, "[de] One.\nTwo.\n");
  EXPECT_EQ(Translate({"--jsonl"}, mark + "{\"text\": \"One.\"}\n"), kExitOk);
  EXPECT_EQ(out_, "{\"text\": \"One.\", \"translation\": \"[de] One.\"}\n");
  EXPECT_EQ(Translate({}, mark), kExitOk) << "a file with only a mark is empty";
  EXPECT_EQ(out_, "");
  EXPECT_EQ(Translate({}, "One.\n" + mark + "Two.\n"), kExitOk);
  EXPECT_EQ(out_, "[de] One.\n[de] " + mark + "Two.\n")
      << "a mark inside a file is part of the text";
}

TEST_F(CliInputTest, OutputEndsWithNewlineEvenIfInputDoesNot) {
  EXPECT_EQ(Translate({}, "One."), kExitOk);
  EXPECT_EQ(out_, "[de] One.\n");
  EXPECT_EQ(Translate({}, "One.\r\n"), kExitOk);
  EXPECT_EQ(out_, "[de] One.\r\n");
}

TEST_F(CliInputTest, AnswersLinesInOrderAndDoesNotSendBlankOnes) {
  EXPECT_EQ(Translate({}, "One.\n\n  \t\nTwo.\r\n\r\nThree."), kExitOk);
  EXPECT_THAT(Sent(), ElementsAre("One.", "Two.", "Three."));
  EXPECT_EQ(out_, "[de] One.\n\n  \t\n[de] Two.\r\n\r\n[de] Three.\n");
}

TEST_F(CliInputTest, DoesNotSendLinesOfUnicodeWhiteSpace) {
  // A server answers EMPTY to each of them.
  const std::string blank = "\u00A0\n\u3000 \u2003\r\n\u0085\n\u2028\n\uFEFF\u3000\n";
  EXPECT_EQ(Translate({}, "One.\n" + blank + "Two.\n"), kExitOk) << err_;
  EXPECT_THAT(Sent(), ElementsAre("One.", "Two."));
  EXPECT_EQ(out_, "[de] One.\n" + blank + "[de] Two.\n");
  EXPECT_EQ(Translate({"--jsonl"}, "{\"text\": \"\u3000\"}\n"), kExitOk) << err_;
  EXPECT_EQ(out_, "{\"text\": \"\u3000\", \"translation\": \"\u3000\"}\n");
  EXPECT_THAT(Sent(), SizeIs(2));
}

TEST_F(CliInputTest, SendsLinesThatOnlyLookBlank) {
  // A zero width space is no white space to a server, nor is a second byte order mark.
  EXPECT_EQ(Translate({}, "\u200B\n \uFEFF\n"), kExitOk) << err_;
  EXPECT_THAT(Sent(), ElementsAre("\u200B", " \uFEFF"));
}

TEST_F(CliInputTest, ManyLinesKeepOrderInBoundedRequests) {
  std::string input, expected;
  for (int line = 0; line < 1000; ++line) {
    absl::StrAppend(&input, line % 7 == 0 ? "" : absl::StrCat("line ", line), "\n");
    absl::StrAppend(&expected, line % 7 == 0 ? "" : absl::StrCat("[de] line ", line), "\n");
  }
  EXPECT_EQ(Translate({"--lines"}, input), kExitOk);
  EXPECT_EQ(out_, expected);
  EXPECT_EQ(server_.translate_requests().size(), 16u);  // 1000 lines, 64 per request
  for (const auto& request : server_.translate_requests()) {
    EXPECT_LE(request.contents_size(), 64);
  }
}

TEST_F(CliInputTest, LongLinesMakeShortRequests) {
  const std::string line = std::string(50 << 10, 'x') + "\n";
  EXPECT_EQ(Translate({"--lines"}, line + line + line + line), kExitOk);
  EXPECT_THAT(server_.translate_requests(), SizeIs(2));
}

TEST_F(CliInputTest, BlankInputNeedsNoCall) {
  EXPECT_EQ(Translate({}, ""), kExitOk);
  EXPECT_EQ(out_, "");
  EXPECT_EQ(Translate({}, " \n\n"), kExitOk);
  EXPECT_EQ(out_, " \n\n");
  EXPECT_EQ(Translate({"--lines"}, ""), kExitOk);
  EXPECT_EQ(out_, "");
  EXPECT_THAT(Sent(), IsEmpty());
}

TEST_F(CliInputTest, JsonKeepsBlankLines) {
  EXPECT_EQ(Translate({"--lines", "--json"}, "\na\n"), kExitOk);
  EXPECT_EQ(std::count(out_.begin(), out_.end(), '\n'), 2);
  EXPECT_THAT(out_, ::testing::StartsWith("{\"translations\":[{\"text\":\"\""));
}

TEST_F(CliInputTest, AnswerToALineIsOneLine) {
  server_.on_translate = [](auto&, const auto& request, v1::TranslateResponse& response) {
    for (int i = 0; i < request.contents_size(); ++i) {
      response.add_translations()->set_text("two\nlines");
    }
    return grpc::Status::OK;
  };
  EXPECT_EQ(Translate({"--lines"}, "a\nb\n"), kExitOk);
  EXPECT_EQ(out_, "two lines\ntwo lines\n");
  EXPECT_EQ(Translate({"--document"}, "a\nb\n"), kExitOk);
  EXPECT_EQ(out_, "two\nlines\n");
}

TEST_F(CliInputTest, LimitsNotesAboutAnswers) {
  server_.on_translate = [](auto&, const auto& request, v1::TranslateResponse& response) {
    for (int i = 0; i < request.contents_size(); ++i) {
      response.add_translations()->set_finish_reason(v1::FINISH_REASON_LENGTH);
    }
    return grpc::Status::OK;
  };
  std::string lines;
  for (int line = 0; line < 500; ++line) lines += "text\n";
  EXPECT_EQ(Translate({}, lines), kExitOk);
  EXPECT_EQ(std::count(err_.begin(), err_.end(), '\n'), 21);
  EXPECT_THAT(err_, ::testing::EndsWith(
                        "of standard input: the answer was cut at the limit of "
                        "target tokens\nlinnet: 20 of 500 notes about answers are listed\n"));
}

TEST_F(CliInputTest, AnswersFilesInOrder) {
  const std::string first = File("first", "One.\nTwo.\n");
  const std::string second = File("second", "Three.");
  EXPECT_EQ(Translate({"--document", "--file", first, "--file", "-", "--file", second}, "Input.\n"),
            kExitOk);
  EXPECT_THAT(Sent(), ElementsAre("One.\nTwo.", "Input.", "Three."));
  EXPECT_EQ(out_, "[de] One.\nTwo.\n[de] Input.\n[de] Three.\n");
  EXPECT_EQ(Translate({"--lines", "--file", first, "--file", second}), kExitOk);
  EXPECT_EQ(out_, "[de] One.\n[de] Two.\n[de] Three.\n");
}

TEST_F(CliInputTest, EmptyFilesAddNothing) {
  const std::string empty = File("empty", "");
  EXPECT_EQ(Translate({"--file", empty, "--file", File("full", "x")}), kExitOk);
  EXPECT_EQ(out_, "[de] x\n");
}

TEST_F(CliInputTest, UnreadableFileIsNamedWithCause) {
  const std::string missing = folder_.path() / "missing";
  EXPECT_EQ(Translate({"--file", missing}), kExitLocal);
  EXPECT_EQ(err_, "linnet: cannot read \"" + missing + "\": No such file or directory\n");
  EXPECT_EQ(Translate({"--file", folder_.path()}), kExitLocal);
  EXPECT_THAT(err_, HasSubstr("Is a directory"));
  EXPECT_THAT(out_, IsEmpty());
}

TEST_F(CliInputTest, RefusesInvalidUtf8WithItsPosition) {
  EXPECT_EQ(Translate({"fine", "caf\xE9"}), kExitLocal);
  EXPECT_EQ(err_,
            "linnet: argument 2 is not UTF-8: byte 0xe9 at offset 3\n"
            "  1 text was answered before\n");
  EXPECT_EQ(Translate({"--document"}, "abc\n\xFF\n"), kExitLocal);
  EXPECT_EQ(err_, "linnet: standard input is not UTF-8: byte 0xff at offset 4\n");
}

TEST_F(CliInputTest, AnswersLinesBeforeAnInvalidOne) {
  EXPECT_EQ(Translate({"--lines"}, "one\ntwo\nthr\xC3\nfour\n"), kExitLocal);
  EXPECT_EQ(out_, "[de] one\n[de] two\n");
  EXPECT_EQ(err_,
            "linnet: line 3 of standard input is not UTF-8: byte 0xc3 at offset 3\n"
            "  2 texts were answered before\n"
            "  with --on-error skip the run continues after it\n");
}

TEST_F(CliInputTest, AnswersLinesBeforeARefusedOne) {
  server_.on_translate = [](auto&, const v1::TranslateRequest& request,
                            v1::TranslateResponse& response) {
    for (const std::string& content : request.contents()) {
      if (content == "bad") {
        return ServerError(grpc::StatusCode::INVALID_ARGUMENT, "too long", "TOO_LONG",
                           "contents[6]");
      }
      response.add_translations()->set_text(content);
    }
    return grpc::Status::OK;
  };
  std::string input, expected;
  for (int line = 1; line <= 64; ++line) absl::StrAppend(&expected, "good ", line, "\n");
  for (int line = 65; line <= 70; ++line) absl::StrAppend(&input, "good ", line, "\n");
  EXPECT_EQ(Translate({"--lines"}, expected + input + "bad\nmore\n"), kExitCode + 3);
  EXPECT_EQ(out_, expected + input);
  EXPECT_THAT(err_, HasSubstr("\n  contents[6] is line 71 of standard input\n"
                              "  70 texts were answered before\n"
                              "  with --on-error skip the run continues after it\n"));
}

TEST_F(CliInputTest, RetriesOnceAloneWhenOwnRequestsKeepServerBusy) {
  std::atomic<int> refusals = 0;
  server_.on_translate = [&](grpc::ServerContext& context, const v1::TranslateRequest& request,
                             v1::TranslateResponse& response) {
    if (request.contents(0) == "line 64" && refusals++ == 0) {
      context.AddTrailingMetadata("grpc-retry-pushback-ms", "-1");  // forbids a retry by the client
      return ServerError(grpc::StatusCode::RESOURCE_EXHAUSTED, "busy", "BUSY");
    }
    for (const auto& content : request.contents()) response.add_translations()->set_text(content);
    return grpc::Status::OK;
  };
  std::string lines;
  for (int line = 0; line < 192; ++line) absl::StrAppend(&lines, "line ", line, "\n");
  EXPECT_EQ(Translate({"--lines"}, lines), kExitOk) << err_;
  EXPECT_EQ(out_, lines);
  EXPECT_EQ(refusals, 2);  // refused once, then accepted
}

// A stream buffer that returns chunks one by one, like a pipe, and calls `before` in between.
class Pipe : public std::streambuf {
 public:
  Pipe(std::vector<std::string> chunks, std::function<void(size_t)> before)
      : chunks_(std::move(chunks)), before_(std::move(before)) {}

 protected:
  int_type underflow() override {
    before_(next_);
    if (next_ == chunks_.size()) return traits_type::eof();
    std::string& chunk = chunks_[next_++];
    setg(chunk.data(), chunk.data(), chunk.data() + chunk.size());
    return traits_type::to_int_type(chunk[0]);
  }
  // The base's showmanyc returns 0: no bytes are known to be available beyond the chunk.

 private:
  std::vector<std::string> chunks_;
  size_t next_ = 0;
  std::function<void(size_t)> before_;
};

TEST_F(CliInputTest, AnswersALineBeforeWaitingForTheNext) {
  std::vector<size_t> sent_before;
  Pipe pipe({"one\n", "two\nthree\n", "four"},
            [&](size_t) { sent_before.push_back(Sent().size()); });
  std::istream in(&pipe);
  EXPECT_EQ(Run({"translate", "--from", "en", "--to", "de", "--lines"}, in), kExitOk);
  EXPECT_EQ(out_, "[de] one\n[de] two\n[de] three\n[de] four\n");
  EXPECT_THAT(sent_before, ElementsAre(0, 1, 3, 3));
}

TEST_F(CliInputTest, AnswersALineBeforeWaitingForTheRestOfTheNext) {
  std::vector<size_t> sent_before;
  Pipe pipe({"one\ntw", "o\n", "three\nfo", "u", "r"},
            [&](size_t) { sent_before.push_back(Sent().size()); });
  std::istream in(&pipe);
  EXPECT_EQ(Run({"translate", "--from", "en", "--to", "de", "--lines"}, in), kExitOk);
  EXPECT_EQ(out_, "[de] one\n[de] two\n[de] three\n[de] four\n");
  EXPECT_THAT(sent_before, ElementsAre(0, 1, 2, 3, 3, 3));
}

TEST_F(CliInputTest, StopWhileReadingEndsTheCommand) {
  Pipe pipe({"one\n"}, [&](size_t next) {
    if (next == 1) stop_.request_stop();
  });
  std::istream in(&pipe);
  EXPECT_EQ(Run({"translate", "--from", "en", "--to", "de", "--lines"}, in), kExitCode + 1);
  EXPECT_EQ(out_, "[de] one\n");
  EXPECT_EQ(err_, "linnet: CANCELLED: cancelled\n  1 text was answered before\n");
}

TEST_F(CliInputTest, StopWithinALineLeavesItToTheNextRun) {
  Pipe pipe({"{\"text\": \"o"}, [&](size_t next) {
    if (next == 1) stop_.request_stop();
  });
  std::istream in(&pipe);
  EXPECT_EQ(Run({"translate", "--from", "en", "--to", "de", "--jsonl"}, in), kExitCode + 1);
  EXPECT_THAT(out_, IsEmpty()) << "an incomplete line is not an error";
}

// Throws what std::filebuf throws when a disk or a network file system fails.
void FailToRead() {
  throw std::ios_base::failure("read", std::make_error_code(std::errc::io_error));
}

TEST_F(CliInputTest, ReadErrorEndsARunAfterTheAnswersBefore) {
  const auto fail_after_first = [](size_t next) {
    if (next == 1) FailToRead();
  };
  Pipe pipe({"one\ntwo\nthr"}, fail_after_first);
  std::istream in(&pipe);
  EXPECT_EQ(Run({"translate", "--from", "en", "--to", "de"}, in), kExitLocal);
  EXPECT_EQ(out_, "[de] one\n[de] two\n") << "the third line may be incomplete";
  EXPECT_EQ(err_,
            "linnet: cannot read standard input: Input/output error\n"
            "  2 texts were answered before\n");
  Pipe document({"one\ntwo\nthr"}, fail_after_first);
  std::istream whole(&document);
  EXPECT_EQ(Run({"translate", "--from", "en", "--to", "de", "--document"}, whole), kExitLocal);
  EXPECT_EQ(out_, "") << "a text that was read in part is not sent";
  EXPECT_EQ(err_, "linnet: cannot read standard input: Input/output error\n");
}

TEST_F(CliInputTest, TellsATerminalThatItReads) {
  in_is_terminal_ = true;
  EXPECT_EQ(Translate({}, "x\n"), kExitOk);
  EXPECT_THAT(err_, HasSubstr("Ctrl-D"));
  EXPECT_EQ(Translate({"x"}), kExitOk);
  EXPECT_THAT(err_, IsEmpty());
}

TEST_F(CliInputTest, SummarizeReadsInputLikeTranslate) {
  EXPECT_EQ(Run({"summarize", "--language", "en"}, "One.\n\nTwo.\n"), kExitOk);
  EXPECT_EQ(out_, "[sum] One.\n\nTwo.\n");
  EXPECT_EQ(Run({"summarize", "--language", "en", "--lines"}, "One.\n\nTwo.\n"), kExitOk);
  EXPECT_EQ(out_, "[sum] One.\n\n[sum] Two.\n");
}

}  // namespace
}  // namespace linnet::client
