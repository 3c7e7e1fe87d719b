// Tests of refused texts: the run ends there, or leaves their answers empty and continues.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/cord.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/cli/text/error_attribution.h"
#include "gmock/gmock.h"
#include "google/rpc/error_details.pb.h"
#include "nlohmann/json.hpp"
#include "tests/client/cli/cli_fixture.h"

namespace linnet::client {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

// Makes the server refuse a request that contains a text with "bad" in it, naming the first one
// like Linnet's server, and answer other requests.
class CliRefusedTest : public CliFolderTest {
 protected:
  CliRefusedTest() {
    server_.on_translate = [](auto&, const v1::TranslateRequest& request,
                              v1::TranslateResponse& response) {
      for (int i = 0; i < request.contents_size(); ++i) {
        if (absl::StrContains(request.contents(i), "bad")) {
          const std::string field = absl::StrCat("contents[", i, "]");
          return ServerError(grpc::StatusCode::INVALID_ARGUMENT,
                             field + ": text has 900 tokens, at most 256", "TEXT_TOO_LONG", field);
        }
        response.add_translations()->set_text("[de] " + request.contents(i));
      }
      return grpc::Status::OK;
    };
  }
};

TEST_F(CliRefusedTest, RefusedJsonObjectGetsErrorAndRunContinues) {
  EXPECT_EQ(Translate({"--jsonl"},
                      "{\"id\": 1, \"text\": \"one\"}\n"
                      "{ \"id\": 2.50, \"text\": \"bad two\" }\r\n"
                      "no object\n"
                      "{\"id\": 4}\n"
                      "\n"
                      "{\"text\": \"caf\xE9\"}\n"
                      "{}\n"
                      "{\"id\": 8, \"text\": \"eight\"}\n"),
            kExitRefused);
  EXPECT_EQ(out_,
            "{\"id\": 1, \"text\": \"one\", \"translation\": \"[de] one\"}\n"
            "{ \"id\": 2.50, \"text\": \"bad two\" , \"error\": {\"code\": \"INVALID_ARGUMENT\", "
            "\"reason\": \"TEXT_TOO_LONG\", \"message\": \"text has 900 tokens, at most 256\"}}\r\n"
            "{\"error\": {\"code\": \"INVALID_ARGUMENT\", \"message\": \"line 3 of standard input "
            "is not an object of JSON (see byte 2)\"}}\n"
            "{\"id\": 4, \"error\": {\"code\": \"INVALID_ARGUMENT\", \"message\": \"line 4 of "
            "standard input has no string \\\"text\\\"\"}}\n"
            "\n"
            "{\"error\": {\"code\": \"INVALID_ARGUMENT\", \"message\": \"line 6 of standard input "
            "is not UTF-8: byte 0xe9 at offset 13\"}}\n"
            "{\"error\": {\"code\": \"INVALID_ARGUMENT\", \"message\": \"line 7 of standard input "
            "has no string \\\"text\\\"\"}}\n"
            "{\"id\": 8, \"text\": \"eight\", \"translation\": \"[de] eight\"}\n");
  EXPECT_THAT(
      err_,
      StartsWith("linnet: line 2 of standard input: text has 900 tokens, at most 256"
                 "\nlinnet: line 3 of standard input is not an object of JSON (see byte 2)\n"));
  EXPECT_THAT(err_, EndsWith("linnet: 5 of 7 texts were refused: there is an \"error\" in place of "
                             "each answer\n"));
}

TEST_F(CliRefusedTest, NewErrorReplacesOlderOne) {
  EXPECT_EQ(Translate({"--jsonl"}, "{\"text\": \"bad\", \"error\": {\"code\": 5}, \"id\": 7}\n"),
            kExitRefused);
  const auto object = nlohmann::ordered_json::parse(out_);
  EXPECT_EQ(object["error"]["reason"], "TEXT_TOO_LONG");
  EXPECT_EQ(object["id"], 7);
  EXPECT_EQ(object.size(), 3);
}

TEST_F(CliRefusedTest, PlainRunEndsAtRefusedLineWithHint) {
  EXPECT_EQ(Translate({}, "one\ntwo\nbad three\nfour\n"), kExitCode + 3);
  EXPECT_EQ(out_, "[de] one\n[de] two\n");
  EXPECT_EQ(err_,
            "linnet: INVALID_ARGUMENT: contents[2]: text has 900 tokens, at most 256\n"
            "  field contents[2]\n"
            "  reason TEXT_TOO_LONG limit=9\n"
            "  contents[2] is line 3 of standard input\n"
            "  2 texts were answered before\n"
            "  with --on-error skip the run continues after it\n");
  EXPECT_EQ(Translate({"-o", Path("out")}, "one\nbad\n"), kExitCode + 3);
  EXPECT_THAT(err_,
              EndsWith("the same command with --resume --on-error skip continues after it\n"));
  EXPECT_EQ(Translate({"-o", Path("out"), "--resume", "--on-error", "skip"}, "one\nbad\nthree\n"),
            kExitRefused);
  EXPECT_EQ(Content("out"), "[de] one\n\n[de] three\n");
}

TEST_F(CliRefusedTest, SkippedLinesLeaveEmptyLines) {
  EXPECT_EQ(Translate({"--on-error", "skip"}, "bad\none\n\nca\xE9\r\nbad\ntwo"), kExitRefused);
  EXPECT_EQ(out_, "\n[de] one\n\n\r\n\n[de] two\n");
  EXPECT_EQ(err_,
            "linnet: line 1 of standard input: text has 900 tokens, at most 256\n"
            "linnet: line 4 of standard input is not UTF-8: byte 0xe9 at offset 2\n"
            "linnet: line 5 of standard input: text has 900 tokens, at most 256\n"
            "linnet: 3 of 5 texts were refused: the place of each answer is empty\n");
  EXPECT_EQ(Translate({"--on-error", "skip", "--json"}, "bad\none\n"), kExitRefused);
  EXPECT_THAT(out_, StartsWith("{\"error\": {\"code\": \"INVALID_ARGUMENT\""));
  EXPECT_EQ(std::count(out_.begin(), out_.end(), '\n'), 2);
  EXPECT_EQ(Run({"score", "--from", "en", "--to", "de", "--on-error", "skip"},
                "A dog.\tEin Hund.\nno pair\nYes.\tJa.\n"),
            kExitRefused);
  EXPECT_EQ(out_, "-9.0000\tEin Hund.\n\n-3.0000\tJa.\n");
}

TEST_F(CliRefusedTest, ReportsOnlyTheFirstRefusedLines) {
  std::string input;
  for (int line = 0; line < 300; ++line) input += line % 2 == 0 ? "bad\n" : "good\n";
  EXPECT_EQ(Translate({"--on-error", "skip"}, input), kExitRefused);
  std::string expected;
  for (int line = 0; line < 150; ++line) expected += "\n[de] good\n";
  EXPECT_EQ(out_, expected);
  EXPECT_THAT(err_, AllOf(HasSubstr("line 39 of"), Not(HasSubstr("line 41 of")),
                          HasSubstr("linnet: 20 of 150 refused texts are listed\n"),
                          EndsWith("150 of 300 texts were refused: the place of each answer is "
                                   "empty\n")));
}

TEST_F(CliRefusedTest, QuietRunReportsOnlyTheirNumber) {
  server_.on_translate = [](auto&, const v1::TranslateRequest& request,
                            v1::TranslateResponse& response) {
    for (const std::string& content : request.contents()) {
      v1::Translation& answer = *response.add_translations();
      answer.set_text(content);
      answer.add_warnings()->set_message("in another language");
    }
    return grpc::Status::OK;
  };
  std::string input = "caf\xE9\n";
  for (int line = 0; line < 25; ++line) input += "good\n";
  err_is_terminal_ = true;
  EXPECT_EQ(Translate({"--on-error", "skip"}, input), kExitRefused);
  EXPECT_THAT(err_, AllOf(HasSubstr("line 2 of standard input: in another language\n"),
                          HasSubstr("line 1 of standard input is not UTF-8"),
                          HasSubstr("linnet: 20 of 25 notes about answers are listed\n")));
  for (const char* flag : {"--quiet", "-q"}) {
    EXPECT_EQ(Translate({"--on-error", "skip", flag}, input), kExitRefused);
    EXPECT_EQ(err_, "linnet: 1 of 26 texts was refused: the place of each answer is empty\n");
  }
}

TEST_F(CliRefusedTest, ResumesAfterAnyByteOfAnInterruptedRun) {
  const std::string input =
      "{\"text\": \"one\"}\n{\"text\": \"bad\"}\nno object\n\n{\"text\": \"two\"}\n";
  ASSERT_EQ(Translate({"--jsonl", "-o", Path("whole")}, input), kExitRefused);
  const std::string whole = Content("whole");
  for (size_t size = 0; size <= whole.size(); size += 3) {
    File("out", whole.substr(0, size));
    const int lines = std::count(whole.begin(), whole.begin() + size, '\n');
    const int exit = Translate({"--jsonl", "-o", Path("out"), "--resume", "--force"}, input);
    ASSERT_EQ(exit, lines < 3 ? kExitRefused : kExitOk) << err_;
    ASSERT_EQ(Content("out"), whole) << "after " << size << " bytes";
  }
}

TEST_F(CliRefusedTest, ErrorNotCausedByATextEndsTheRun) {
  std::vector<std::pair<grpc::Status, int>> cases = {
      {ServerError(grpc::StatusCode::INVALID_ARGUMENT, "beam_size is 99", "BAD_OPTION",
                   "options.beam_size"),
       3},
      {ServerError(grpc::StatusCode::NOT_FOUND, "no model", "MODEL_NOT_FOUND"), 5},
      {ServerError(grpc::StatusCode::INTERNAL, "engine failed", "INTERNAL"), 13},
      {ServerError(grpc::StatusCode::DEADLINE_EXCEEDED, "too late", "DEADLINE_EXCEEDED"), 4},
  };
  for (const auto& [status, code] : cases) {
    server_.on_translate = [&, status = status](auto&, const auto&, auto&) { return status; };
    EXPECT_EQ(Translate({"--jsonl", "-o", Path("out")}, "{\"text\": \"one\"}\n"), kExitCode + code);
    EXPECT_THAT(Content("out"), IsEmpty());
    EXPECT_THAT(err_, Not(HasSubstr("--resume"))) << "there is nothing to continue after";
  }
}

TEST_F(CliRefusedTest, SplitsRequestsThatAreTooLarge) {
  server_.on_translate = [](auto&, const v1::TranslateRequest& request,
                            v1::TranslateResponse& response) {
    if (request.contents_size() > 5) {
      return ServerError(grpc::StatusCode::INVALID_ARGUMENT, "contents: at most 5 texts",
                         "TOO_MANY_TEXTS", "contents");
    }
    size_t bytes = 0;
    for (const std::string& content : request.contents()) bytes += content.size();
    if (bytes > 1000) {
      return ServerError(grpc::StatusCode::INVALID_ARGUMENT, "contents: at most 1000 bytes",
                         "TEXT_TOO_LARGE", "contents");
    }
    for (const std::string& content : request.contents()) {
      response.add_translations()->set_text(content);
    }
    return grpc::Status::OK;
  };
  std::string input;
  for (int line = 0; line < 130; ++line) absl::StrAppend(&input, line % 7 ? "line" : "", "\n");
  EXPECT_EQ(Translate({}, input), kExitOk) << err_;
  EXPECT_EQ(out_, input);
  const std::string large(2000, 'x');
  EXPECT_EQ(Translate({"--on-error", "skip"}, "one\n" + large + "\nthree\n"), kExitRefused);
  EXPECT_EQ(out_, "one\n\nthree\n");
  EXPECT_THAT(err_, StartsWith("linnet: line 2 of standard input: at most 1000 bytes\n"));
}

TEST(ErrorAttributionTest, AttributesOnlyErrorsThatNameText) {
  const auto status = [](absl::StatusCode code, const std::string& reason,
                         const std::string& field) {
    absl::Status status(code, "no");
    google::rpc::ErrorInfo info;
    info.set_reason(reason);
    status.SetPayload("type.googleapis.com/google.rpc.ErrorInfo",
                      absl::Cord(info.SerializeAsString()));
    google::rpc::BadRequest bad;
    bad.add_field_violations()->set_field(field);
    status.SetPayload("type.googleapis.com/google.rpc.BadRequest",
                      absl::Cord(bad.SerializeAsString()));
    return status;
  };
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
  const ErrorAttribution third =
      AttributeToTexts(status(kInvalid, "EMPTY", "pairs[2].target_text"), "pairs", 3);
  EXPECT_EQ(third.fault, Fault::kOneText);
  EXPECT_EQ(third.text, 2);
  for (const char* field : {"contents[3]", "contents", "contents[]", "contents[x]", "pairs[0]",
                            "glossary.contents[0]", "options.beam_size", ""}) {
    EXPECT_EQ(AttributeToTexts(status(kInvalid, "EMPTY", field), "contents", 3).fault,
              Fault::kNoText)
        << field;
  }
  EXPECT_EQ(
      AttributeToTexts(status(absl::StatusCode::kInternal, "", "contents[0]"), "contents", 1).fault,
      Fault::kNoText);
  for (const char* reason : {"TOO_MANY_TEXTS", "TEXT_TOO_LARGE", "CALL_TOO_LARGE"}) {
    EXPECT_EQ(AttributeToTexts(status(kInvalid, reason, "contents"), "contents", 2).fault,
              Fault::kTooMuchTogether);
    EXPECT_EQ(AttributeToTexts(status(kInvalid, reason, "contents"), "contents", 1).fault,
              Fault::kOneText);
  }
  EXPECT_EQ(AttributeToTexts(status(kInvalid, "MESSAGE_TOO_LARGE", ""), "contents", 2).fault,
            Fault::kTooMuchTogether);
  EXPECT_EQ(AttributeToTexts(absl::ResourceExhaustedError("busy"), "contents", 2).fault,
            Fault::kNoText);
}

}  // namespace
}  // namespace linnet::client
