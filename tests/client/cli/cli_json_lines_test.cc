// Tests of JSON Lines, read and written.
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "nlohmann/json.hpp"
#include "tests/client/cli/cli_fixture.h"

namespace linnet::client {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

using CliJsonLinesTest = CliFolderTest;

TEST_F(CliJsonLinesTest, JsonObjectsKeepTheirBytesAndGetTheAnswer) {
  const std::string odd =
      R"({ "id": 12345678901234567890, "x": 1.50, "text": "A \"dog\".\nTwo." })";
  EXPECT_EQ(
      Translate({"--jsonl"}, odd + "\n\n{\"text\":\" \"}\r\n{\"text\":\"caf\\u00e9\",\"é\":[]}\n"),
      kExitOk)
      << err_;
  EXPECT_EQ(
      out_,
      R"({ "id": 12345678901234567890, "x": 1.50, "text": "A \"dog\".\nTwo." , "translation": "[de] A \"dog\".\nTwo."})"
      "\n\n{\"text\":\" \", \"translation\": \" \"}\r\n"
      "{\"text\":\"caf\\u00e9\",\"é\":[], \"translation\": \"[de] café\"}\n");
  EXPECT_THAT(Sent(), testing::ElementsAre("A \"dog\".\nTwo.", "café"));
  EXPECT_EQ(Run({"summarize", "--language", "en", "--jsonl"}, "{\"text\": \"Long.\"}\n"), kExitOk);
  EXPECT_EQ(out_, "{\"text\": \"Long.\", \"summary\": \"[sum] Long.\"}\n");
  EXPECT_EQ(Run({"detect", "--jsonl"}, "{\"text\": \"Hund\"}\n"), kExitOk);
  const auto detected = nlohmann::json::parse(out_);
  EXPECT_EQ(detected["languages"][0]["language_code"], "de");
  EXPECT_EQ(detected["reliable"], true);
}

TEST_F(CliJsonLinesTest, RefusesInvalidJsonLinesByName) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"{\"text\": \"a\"}\nplain\n", "line 2 of standard input is not an object of JSON"},
      {"[\"text\"]\n", "is not an object"},
      {"{\"text\": 5}\n", "has no string \"text\""},
      {"{\"txt\": \"a\"}\n", "has no string \"text\""},
      {"{\"text\": \"a\", \"translation\": \"b\"}\n", "has a \"translation\" already"},
      {"{\"text\": \"a\\ud800\"}\n",
       "line 1 of standard input has the lone surrogate \\ud800 at byte 11"},
      {"{\"text\": \"\\\\\\ud83d\\ude00\\uDE00\"}\n", "lone surrogate \\uDE00 at byte 24"},
      {"{\"text\": \"a\xED\xA0\xBD\"}\n", "byte 0xed at offset 11 is the lone surrogate U+D83D"},
      {"{\"text\": 1,,}\n", "is not an object of JSON (see byte 12)"},
      {"{\"text\": \"caf\xE9\"}\n", "is not UTF-8"},
      {"{\"text\": \"a\", \"n\": 1e400}\n", "has a number that is too large"},
      {"{\"text\": \"a\", \"n\": " + std::string(300, '[') + std::string(300, ']') + "}\n",
       "is nested more than 256 deep"},
  };
  for (const auto& [input, message] : cases) {
    EXPECT_EQ(Translate({"--jsonl", "--on-error", "stop"}, input), kExitLocal) << input;
    EXPECT_THAT(err_, HasSubstr(message));
  }
}

TEST_F(CliJsonLinesTest, JsonLinesBesideOneThatCannotBeReadAreAnswered) {
  const std::string deep = std::string(200000, '[') + std::string(200000, ']');
  for (const std::string& bad : {std::string("{\"text\": \"b\", \"n\": 1e400}"),
                                 "{\"error\": 1, \"text\": \"b\", \"n\": " + deep + "}"}) {
    EXPECT_EQ(Translate({"--jsonl", "--on-error", "skip"},
                        "{\"text\": \"a\"}\n" + bad + "\n{\"text\": \"c\"}\n"),
              kExitRefused);
    EXPECT_THAT(
        out_, AllOf(HasSubstr("\"[de] a\""), HasSubstr("\"[de] c\""), HasSubstr("\n{\"error\": ")));
  }
}

TEST_F(CliJsonLinesTest, JsonMemberNamesAreConfigurable) {
  const std::vector<std::string> names = {"--jsonl", "--text-field", "body", "--answer-field",
                                          "body_de"};
  EXPECT_EQ(Translate(names, "{\"body\": \"One.\", \"text\": 5, \"translation\": null}\n"),
            kExitOk);
  EXPECT_EQ(
      out_,
      "{\"body\": \"One.\", \"text\": 5, \"translation\": null, \"body_de\": \"[de] One.\"}\n");
  EXPECT_EQ(Translate(names, "{\"text\": \"One.\"}\n"), kExitRefused);
  EXPECT_THAT(err_, HasSubstr("has no string \"body\""));
  EXPECT_EQ(Translate(names, "{\"body\": \"One.\", \"body_de\": \"Eins.\"}\n"), kExitRefused);
  EXPECT_THAT(err_, HasSubstr("has a \"body_de\" already"));
  EXPECT_EQ(Run({"detect", "--jsonl", "--answer-field", "in"}, "{\"text\": \"Hund\"}\n"), kExitOk);
  EXPECT_EQ(nlohmann::json::parse(out_)["in"][0]["language_code"], "de");
  for (const char* flag : {"--text-field", "--answer-field"}) {
    EXPECT_EQ(Translate({flag, "x"}, "One.\n"), kExitUsage) << "needs --jsonl";
  }
}

TEST_F(CliJsonLinesTest, NoMemberOfAnObjectIsWrittenTwice) {
  const std::string segments = "{\"text\": \"One.\", \"segments\": 5}\n";
  EXPECT_EQ(Translate({"--jsonl", "--word-scores"}, segments), kExitRefused);
  EXPECT_THAT(err_, HasSubstr("has a \"segments\" already, and the answer would be a second one"));
  EXPECT_EQ(nlohmann::json::parse(out_)["segments"], 5);
  EXPECT_EQ(Translate({"--jsonl"}, segments), kExitOk) << "this answer has no segments";
  EXPECT_EQ(Translate({"--jsonl", "--json", "--n-best", "2"}, segments), kExitOk)
      << "these are within the answer";
  const std::string reliable = "{\"text\": \"Hund\", \"reliable\": 5}\n";
  EXPECT_EQ(Run({"detect", "--jsonl"}, reliable), kExitRefused);
  EXPECT_THAT(err_, HasSubstr("has a \"reliable\" already"));
  EXPECT_EQ(Run({"detect", "--jsonl", "--answer-field", "reliable"}, ""), kExitUsage);
  EXPECT_EQ(Translate({"--jsonl", "--n-best", "2", "--answer-field", "segments"}), kExitUsage);
  EXPECT_THAT(err_, HasSubstr("another member \"segments\""));
}

TEST_F(CliJsonLinesTest, JsonObjectGetsWholeResponseOnRequest) {
  EXPECT_EQ(Translate({"--jsonl", "--json"}, "{\"id\": 1, \"text\": \"One.\"}\n\n{\"id\": 2}\n"),
            kExitRefused);
  const size_t end = out_.find('\n');
  const auto object = nlohmann::json::parse(out_.substr(0, end));
  EXPECT_EQ(object["id"], 1);
  EXPECT_EQ(object["translation"]["text"], "[de] One.");
  EXPECT_EQ(object["translation"]["segments"][0]["source_end"], 4);
  EXPECT_EQ(object["translation"]["finish_reason"], "FINISH_REASON_STOP");
  EXPECT_EQ(out_[end + 1], '\n') << "an empty line is kept";
  EXPECT_EQ(nlohmann::json::parse(out_.substr(end + 2))["error"]["code"], "INVALID_ARGUMENT");
}

TEST_F(CliJsonLinesTest, JsonObjectGetsRequestedSegments) {
  server_.on_translate = [](auto&, const auto&, v1::TranslateResponse& response) {
    response.add_translations()->set_text("Ja.");
    response.mutable_translations(0)->add_segments()->add_hypotheses()->set_text("Ja.");
    return grpc::Status::OK;
  };
  EXPECT_EQ(Translate({"--jsonl", "--n-best", "1"}, "{\"text\": \"Yes.\"}\n"), kExitOk) << err_;
  const auto object = nlohmann::json::parse(out_);
  EXPECT_EQ(object["segments"][0]["hypotheses"][0]["text"], "Ja.");
}

}  // namespace
}  // namespace linnet::client
