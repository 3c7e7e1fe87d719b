// Tests the command's flags, output and exit statuses.
#include "client/cli/cli.h"

#include <cerrno>
#include <map>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "google/protobuf/util/json_util.h"
#include "proto/decoding_flags.h"
#include "tests/client/cli/cli_fixture.h"

namespace linnet::client {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;

const std::vector<std::string> kToGerman = {"translate", "--from", "en", "--to", "de"};

std::vector<std::string> ToGerman(const std::vector<std::string>& more) {
  std::vector<std::string> arguments = kToGerman;
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

TEST_F(CliTest, TranslatesArgumentsLineByLine) {
  EXPECT_EQ(Run(ToGerman({"A dog runs.", "A bird sings."})), kExitOk);
  EXPECT_EQ(out_, "[de] A dog runs.\n[de] A bird sings.\n");
  EXPECT_THAT(err_, IsEmpty());
  ASSERT_THAT(server_.translate_requests(), SizeIs(1));
  EXPECT_EQ(server_.translate_requests()[0].source_language_code(), "en");
  EXPECT_FALSE(server_.translate_requests()[0].has_options());
}

TEST_F(CliTest, TextsNamedLikeCommandsAreTexts) {
  EXPECT_EQ(Run(ToGerman({"models", "health"})), kExitOk);
  EXPECT_EQ(out_, "[de] models\n[de] health\n");
  EXPECT_EQ(Run(ToGerman({"--", "--help"})), kExitOk);
  EXPECT_EQ(out_, "[de] --help\n");
}

TEST_F(CliTest, TextsWithTheSyntaxOfListsAreSentUnchanged) {
  const std::vector<std::string> texts = {"[a, b]", "[]", "[[x]]", "++", "[a", "{}", "%%", ""};
  for (const std::vector<std::string>& before : {std::vector<std::string>{}, {"--"}}) {
    std::vector<std::string> arguments = ToGerman(before);
    arguments.insert(arguments.end(), texts.begin(), texts.end());
    EXPECT_EQ(Run(arguments, "not read"), kExitOk) << err_;
    EXPECT_EQ(out_, "[de] [a, b]\n[de] []\n[de] [[x]]\n[de] ++\n[de] [a\n[de] {}\n[de] %%\n\n");
    for (const std::string& text : texts) {
      arguments = ToGerman(before);
      arguments.push_back(text);
      EXPECT_EQ(Run(arguments, "not read"), kExitOk) << err_;
      EXPECT_EQ(out_, text.empty() ? "\n" : "[de] " + text + "\n");
    }
  }
  EXPECT_EQ(Run({"score", "--to", "de", "--model", "m", "[a, b]", "[]", "++"}), kExitOk) << err_;
  ASSERT_EQ(server_.score_requests().back().pairs_size(), 2);
  EXPECT_EQ(server_.score_requests().back().pairs(0).source_text(), "[a, b]");
  EXPECT_EQ(server_.score_requests().back().pairs(0).target_text(), "[]");
  EXPECT_EQ(server_.score_requests().back().pairs(1).target_text(), "++");
  EXPECT_EQ(Run({"detect", "[a, b]", "++"}), kExitOk) << err_;
  EXPECT_THAT(out_, AllOf(HasSubstr("\t[a, b]\n"), HasSubstr("\t++\n")));
  EXPECT_EQ(Run({"bench", "--from", "en", "--to", "de", "--duration", "200ms", "--concurrency", "1",
                 "[a, b]"}),
            kExitOk)
      << err_;
  EXPECT_EQ(Sent().back(), "[a, b]");
}

TEST_F(CliTest, ValuesWithTheSyntaxOfListsAreUnchanged) {
  EXPECT_EQ(Run(ToGerman({"--model", "[m]", "--label", "[a=1,b]", "--label", "c=[2]",
                          "--request-id", "++", "--glossary=[g]", "x"})),
            kExitUsage);
  EXPECT_THAT(err_, HasSubstr("\"[g]\""));
  EXPECT_EQ(Run(ToGerman({"--model", "[m]", "--label", "[a=1,b]", "--label", "c=[2]", "x"})),
            kExitOk)
      << err_;
  const v1::TranslateRequest request = server_.translate_requests().back();
  EXPECT_EQ(request.model(), "[m]");
  EXPECT_EQ(request.labels_size(), 2);
  EXPECT_EQ(request.labels().at("[a"), "1,b]");
  EXPECT_EQ(request.labels().at("c"), "[2]");
  EXPECT_EQ(Run({"models", "x", "[y]"}), kExitUsage);
  EXPECT_EQ(err_,
            "linnet models: The following argument was not expected: [y]\n"
            "try 'linnet models --help'\n");
}

TEST_F(CliTest, SummarizesArguments) {
  EXPECT_EQ(Run({"summarize", "--language", "en", "--max-target-tokens", "9", "Long."}), kExitOk);
  EXPECT_EQ(out_, "[sum] Long.\n");
  ASSERT_THAT(server_.summarize_requests(), SizeIs(1));
  EXPECT_EQ(server_.summarize_requests()[0].language_code(), "en");
  EXPECT_EQ(server_.summarize_requests()[0].options().max_target_tokens(), 9);
}

TEST_F(CliTest, EveryDecodingFlagSetsOnlyItsField) {
  using google::protobuf::FieldDescriptor;
  const std::map<FieldDescriptor::CppType, std::string> values = {
      {FieldDescriptor::CPPTYPE_INT32, "4"},
      {FieldDescriptor::CPPTYPE_FLOAT, "0.75"},
      {FieldDescriptor::CPPTYPE_BOOL, "false"},
      {FieldDescriptor::CPPTYPE_UINT64, "18446744073709551615"}};
  for (const DecodingFlag& flag : DecodingFlags()) {
    const std::string& value = values.at(flag.field->cpp_type());
    EXPECT_EQ(Run(ToGerman({flag.names.back(), value, "x"})), kExitOk) << err_;
    v1::TranslateRequest expected;
    ASSERT_TRUE(google::protobuf::util::JsonStringToMessage(
                    absl::StrCat(R"({"contents": ["x"], "source_language_code": "en",
                                     "target_language_code": "de", "options": {")",
                                 flag.field->name(), R"(": ")", value, "\"}}"),
                    &expected)
                    .ok());
    EXPECT_EQ(server_.translate_requests().back().ShortDebugString(), expected.ShortDebugString());
  }
}

TEST_F(CliTest, BeamSizeIsAnotherNameOfBeam) {
  EXPECT_EQ(Run(ToGerman({"--beam-size", "4", "x"})), kExitOk) << err_;
  EXPECT_EQ(server_.translate_requests().at(0).options().beam_size(), 4);
}

TEST_F(CliTest, SendsZeroFlagsButNotUnsetOnes) {
  EXPECT_EQ(Run(ToGerman({"--unknown-penalty", "0", "x"})), kExitOk);
  const v1::DecodingOptions options = server_.translate_requests().at(0).options();
  EXPECT_TRUE(options.has_unknown_penalty());
  EXPECT_FALSE(options.has_beam_size());
}

TEST_F(CliTest, ServerChoosesTheSourceLanguage) {
  // Also where only one fits: a text may be in the target language already.
  *server_.models.add_models() = ModelOf("en-de", v1::TASK_TRANSLATE, "en", "de");
  *server_.models.add_models() = ModelOf("en-summary", v1::TASK_SUMMARIZE, "en", "en");
  EXPECT_EQ(Run({"translate", "--to", "DE", "A dog."}), kExitOk) << err_;
  EXPECT_EQ(server_.translate_requests()[0].source_language_code(), "");
  EXPECT_EQ(Run({"translate", "--to", "zh_TW", "A dog."}), kExitOk) << err_;
  EXPECT_EQ(server_.translate_requests()[1].target_language_code(), "zh_TW")
      << "the server reads it";
  EXPECT_EQ(Run({"summarize", "A dog."}), kExitOk) << err_;
  EXPECT_EQ(server_.summarize_requests()[0].language_code(), "");
}

TEST_F(CliTest, RegionalTagsSelectTheModelOfTheirLanguage) {
  *server_.models.add_models() = ModelOf("en-de", v1::TASK_TRANSLATE, "en", "de");
  *server_.models.add_models() = ModelOf("fr-pt", v1::TASK_TRANSLATE, "fr", "pt-BR");
  for (const char* german : {"de-CH", "de_AT", "DE_de.UTF-8"}) {
    EXPECT_EQ(Run({"score", "--to", german, "A dog.", "Ein Hund."}), kExitOk) << err_;
    EXPECT_EQ(server_.score_requests().back().source_language_code(), "en") << german;
    EXPECT_EQ(server_.score_requests().back().target_language_code(), german);
  }
  EXPECT_EQ(Run({"score", "--to", "PT", "Un chien.", "Um cão."}), kExitOk) << err_;
  EXPECT_EQ(server_.score_requests().back().source_language_code(), "fr");
  EXPECT_EQ(Run({"score", "--to", "d", "A dog.", "Ein Hund."}), kExitOk) << err_;
  EXPECT_EQ(server_.score_requests().back().source_language_code(), "") << "the server refuses it";
}

TEST_F(CliTest, ServerChoosesTheSourceLanguageOfTranslations) {
  *server_.models.add_models() = ModelOf("de-en", v1::TASK_TRANSLATE, "de", "en-GB");
  *server_.models.add_models() = ModelOf("en-fr", v1::TASK_TRANSLATE, "en", "fr");
  const auto source_of = [this](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"translate", "Ein Hund."};
    arguments.insert(arguments.end(), more.begin(), more.end());
    EXPECT_EQ(Run(arguments), kExitOk) << err_;
    return server_.translate_requests().back().source_language_code();
  };
  // It detects each text among the languages that it could translate.
  EXPECT_EQ(source_of({"--to", "fr"}), "") << "German goes through English";
  EXPECT_EQ(source_of({"--to", "fr", "--direct-only"}), "");
  EXPECT_EQ(source_of({"--to", "en"}), "");
  EXPECT_EQ(Run({"score", "--to", "fr", "A dog.", "Un chien."}), kExitOk) << err_;
  EXPECT_EQ(server_.score_requests().back().source_language_code(), "en");
}

TEST_F(CliTest, JsonIsOneResponsePerTextAndLine) {
  EXPECT_EQ(Run(ToGerman({"--json", "Ein \"Satz\".\nZwei.", "b"})), kExitOk);
  std::istringstream lines(out_);
  std::vector<v1::TranslateResponse> responses;
  for (std::string line; std::getline(lines, line);) {
    ASSERT_TRUE(google::protobuf::util::JsonStringToMessage(line, &responses.emplace_back()).ok())
        << line;
  }
  ASSERT_THAT(responses, SizeIs(2));
  ASSERT_EQ(responses[0].translations_size(), 1);
  EXPECT_EQ(responses[0].translations(0).text(), "[de] Ein \"Satz\".\nZwei.");
  EXPECT_EQ(responses[1].translations(0).text(), "[de] b");
  EXPECT_EQ(responses[1].model(), "fake");
  EXPECT_THAT(out_, HasSubstr("\"finish_reason\":\"FINISH_REASON_STOP\""));
}

TEST_F(CliTest, ListsHypothesesBelowTheirSegment) {
  server_.on_translate = [](auto&, const auto&, v1::TranslateResponse& response) {
    v1::Translation& translation = *response.add_translations();
    translation.set_text("Ja. Nein.");
    const auto segment = [&](int begin, int end, std::vector<std::string> texts) {
      v1::Segment& added = *translation.add_segments();
      added.set_source_begin(begin);
      added.set_source_end(end);
      float score = -0.25;
      for (const std::string& text : texts) {
        added.add_hypotheses()->set_text(text);
        added.mutable_hypotheses(added.hypotheses_size() - 1)->set_score(score *= 2);
      }
    };
    segment(0, 4, {"Ja.", "Jawohl."});
    segment(5, 999, {"Nein.", "Nö."});  // an offset beyond the text is clamped
    return grpc::Status::OK;
  };
  EXPECT_EQ(Run(ToGerman({"--n-best", "2", "Yes. No."})), kExitOk);
  EXPECT_EQ(out_,
            "Yes.\n"
            "   1   -0.5000  Ja.\n"
            "   2   -1.0000  Jawohl.\n"
            "No.\n"
            "   1   -0.5000  Nein.\n"
            "   2   -1.0000  Nö.\n");
}

TEST_F(CliTest, ReportsAnswerCutAtTheLimit) {
  server_.on_translate = [](auto&, const auto&, v1::TranslateResponse& response) {
    response.add_translations()->set_text("whole");
    response.add_translations()->set_text("cut");
    response.mutable_translations(1)->set_finish_reason(v1::FINISH_REASON_LENGTH);
    return grpc::Status::OK;
  };
  EXPECT_EQ(Run(ToGerman({"a", "b"})), kExitOk);
  EXPECT_EQ(out_, "whole\ncut\n");
  EXPECT_EQ(err_, "linnet: argument 2: the answer was cut at the limit of target tokens\n");
}

TEST_F(CliTest, ServerErrorsShowCodeAndText) {
  server_.on_translate = [](auto&, const auto& request, v1::TranslateResponse& response) {
    response.add_translations()->set_text("Ja.");
    if (request.contents_size() == 1) return grpc::Status::OK;
    return ServerError(grpc::StatusCode::INVALID_ARGUMENT, "text has 900 tokens", "SOURCE_TOO_LONG",
                       "contents[1]");
  };
  EXPECT_EQ(Run(ToGerman({"a", "b", "c"})), kExitCode + 3);
  EXPECT_EQ(err_,
            "linnet: INVALID_ARGUMENT: text has 900 tokens\n"
            "  field contents[1]\n"
            "  reason SOURCE_TOO_LONG limit=9\n"
            "  contents[1] is argument 2\n"
            "  1 text was answered before\n");
  EXPECT_EQ(out_, "Ja.\n");
}

TEST_F(CliTest, ErrorsWithoutATextNameNone) {
  server_.on_translate = [](auto&, const auto&, auto&) {
    return ServerError(grpc::StatusCode::INVALID_ARGUMENT, "beam_size is 99, at most 16",
                       "BEAM_SIZE_OUT_OF_RANGE", "options.beam_size");
  };
  EXPECT_EQ(Run(ToGerman({"--beam", "99", "a"})), kExitCode + 3);
  EXPECT_EQ(err_,
            "linnet: INVALID_ARGUMENT: --beam is 99, at most 16\n"
            "  --beam\n"
            "  reason BEAM_SIZE_OUT_OF_RANGE limit=9\n");
  const ClosedPort closed;
  server_name_ = closed.address();
  EXPECT_EQ(Run(ToGerman({"a"})), kExitCode + 14);
  EXPECT_THAT(err_, AllOf(StartsWith("linnet: UNAVAILABLE: cannot reach " + closed.address()),
                          Not(HasSubstr("argument"))));
}

TEST_F(CliTest, FlagOverridesEnvironmentOverridesDefault) {
  const ClosedPort closed;
  server_name_ = closed.address();
  EXPECT_EQ(Run({"health", "--server", server_.address()}), kExitOk) << err_;
  EXPECT_EQ(Run({"health"}), kExitCode + 14);
  EXPECT_THAT(err_, StartsWith("linnet: UNAVAILABLE: cannot reach " + closed.address()));
  EXPECT_EQ(Run({"health", "--help"}), kExitOk);
  EXPECT_THAT(out_, HasSubstr(closed.address()));
  server_name_ = "";
  EXPECT_EQ(Run({"health", "--help"}), kExitOk);
  EXPECT_THAT(out_, HasSubstr("127.0.0.1:50051"));
}

TEST_F(CliTest, HealthExitsZeroOnlyWhileServing) {
  EXPECT_EQ(Run({"health"}), kExitOk);
  EXPECT_EQ(out_, "SERVING\n");
  server_.SetServing("", false);
  EXPECT_EQ(Run({"health"}), kExitCode + 14);
  EXPECT_THAT(out_, IsEmpty());
  EXPECT_THAT(err_, HasSubstr("the server says NOT_SERVING"));
  EXPECT_EQ(Run({"health", "no.such.Service"}), kExitCode + 5);
}

TEST_F(CliTest, ListsModelsAsTableOrJsonLines) {
  *server_.models.add_models() = ModelOf("en-de", v1::TASK_TRANSLATE, "en", "de");
  *server_.models.add_models() = ModelOf("en-summary", v1::TASK_SUMMARIZE, "en", "en");
  server_.models.mutable_models(0)->set_shortlist(true);
  server_.models.mutable_models(1)->set_provisional(true);
  EXPECT_EQ(Run({"models"}), kExitOk);
  EXPECT_EQ(
      out_,
      "NAME        TASK       LANGUAGES  VERSION          SIZE   TOKENS   RUNS ON\n"
      "en-de       translate  en to de   7                10.5M  256/200  cpu float32, shortlist\n"
      "en-summary  summarize  en         7 (provisional)  10.5M  256/200  cpu float32\n");
  EXPECT_EQ(Run({"models", "--json"}), kExitOk);
  EXPECT_THAT(out_, MatchesRegex("\\{\"name\":\"en-de\".*\\}\n\\{\"name\":\"en-summary\".*\\}\n"));
}

TEST_F(CliTest, WrongUsageExitsTwoWithExplanation) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{}, "subcommand is required"},
      {{"fly"}, "no command \"fly\""},
      {{"translate", "text"}, "--to is required"},
      {ToGerman({"--beam", "five", "x"}), "--beam: \"five\" is no whole number"},
      {ToGerman({"--n-best", "2.5", "x"}), "--n-best: \"2.5\" is no whole number"},
      {ToGerman({"--temperature", "hot", "x"}), "--temperature: \"hot\" is no number"},
      {ToGerman({"--seed", "-1", "x"}), "--seed: \"-1\" is no whole number from 0 on"},
      {ToGerman({"--normalize-scores", "maybe", "x"}), "\"maybe\" is no choice of true and false"},
      {ToGerman({"--bean", "5", "x"}), "--bean"},
      {ToGerman({"--file", "f", "x"}), "not by both"},
      {ToGerman({"--lines", "x"}), "not by both"},
      {ToGerman({"--document", "--lines"}), "excludes"},
      {ToGerman({"--resume"}), "--output"},
      {ToGerman({"--resume", "-o", "f", "--document"}), "--resume counts lines"},
      {ToGerman({"--resume", "-o", "f", "--n-best", "2"}), "--resume counts lines"},
      {ToGerman({"--scores", "--json", "x"}), "excludes"},
      {ToGerman({"--on-error", "ignore", "x"}), "\"ignore\" is none of stop, skip"},
      {{"completion", "tcsh"}, "\"tcsh\" is none of bash, zsh, fish"},
      {ToGerman({"--timeout", "soon", "x"}), "\"soon\" is no duration"},
      {ToGerman({"--timeout", "0", "x"}), "timeout is 0"},
      {ToGerman({"--wait", "long", "x"}), "\"long\" is no duration"},
      {ToGerman({"--wait", "-1s", "x"}), "wait is -1s"},
      {ToGerman({"--server", "nowhere", "x"}), "server \"nowhere\" is not HOST:PORT"},
      {{"models", "x", "y"}, "y"},
  };
  for (const auto& [arguments, message] : cases) {
    EXPECT_EQ(Run(arguments), kExitUsage) << message;
    EXPECT_THAT(err_, AllOf(StartsWith("linnet"), HasSubstr(message)));
    EXPECT_THAT(out_, IsEmpty());
  }
  EXPECT_THAT(server_.translate_requests(), IsEmpty());
}

TEST_F(CliTest, WritesHelpToStandardOutput) {
  EXPECT_EQ(Run({"--help"}), kExitOk);
  EXPECT_THAT(out_, AllOf(HasSubstr("translate"), HasSubstr("Examples:"),
                          HasSubstr("LINNET_SERVER"), HasSubstr("Exit status")));
  EXPECT_EQ(Run({"translate", "--help"}), kExitOk);
  EXPECT_THAT(out_, AllOf(HasSubstr("Decoding"), HasSubstr("--length-penalty"),
                          HasSubstr("Connection"), HasSubstr("--lines")));
  EXPECT_THAT(err_, IsEmpty());
  EXPECT_EQ(Run({"--version"}), kExitOk);
  EXPECT_THAT(out_, MatchesRegex("linnet [0-9]+\\.[0-9]+\\.[0-9]+\n"));
}

TEST_F(CliTest, TimeoutReachesTheCall) {
  server_.on_translate = [&](auto&, const auto&, auto&) {
    answered_.WaitForNotification();
    return grpc::Status::OK;
  };
  EXPECT_EQ(Run(ToGerman({"--timeout", "150ms", "x"})), kExitCode + 4);
  answered_.Notify();
  EXPECT_THAT(err_, HasSubstr("within 150ms"));
}

TEST_F(CliTest, StopEndsTheCallInFlight) {
  server_.on_translate = [&](grpc::ServerContext& context, const auto&, auto&) {
    arrived_.Notify();
    while (!context.IsCancelled()) absl::SleepFor(absl::Milliseconds(1));
    return grpc::Status::OK;
  };
  std::thread stopper([&] {
    arrived_.WaitForNotification();
    stop_.request_stop();
  });
  EXPECT_EQ(Run(ToGerman({"x"})), kExitCode + 1);
  stopper.join();
  EXPECT_THAT(err_, StartsWith("linnet: CANCELLED: cancelled"));
}

TEST_F(CliTest, UnwritableOutputIsAnError) {
  std::istringstream in;
  std::ostringstream err;
  std::ostream closed(nullptr);
  const Environment environment = {in,    closed, err, {{"LINNET_SERVER", server_.address()}},
                                   false, {}};
  errno = ENOSPC;  // as a failed write leaves it
  EXPECT_EQ(RunCli(ToGerman({"x"}), environment), kExitLocal);
  EXPECT_THAT(err.str(), StartsWith("linnet: cannot write the output"));
}

}  // namespace
}  // namespace linnet::client
