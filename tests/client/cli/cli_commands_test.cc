// Tests `linnet score`, `detect` and `models NAME`, and the flags that requests share.
#include "absl/strings/str_replace.h"
#include "client/cli/cli.h"
#include "gmock/gmock.h"
#include "tests/client/cli/cli_fixture.h"

namespace linnet::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const std::vector<std::string> kScore = {"score", "--from", "en", "--to", "de"};

TEST_F(CliTest, ScoresEachTargetOfASource) {
  std::vector<std::string> arguments = kScore;
  arguments.insert(arguments.end(), {"A dog.", "Ein Hund.", "Ja."});
  EXPECT_EQ(Run(arguments), kExitOk) << err_;
  EXPECT_EQ(out_, "-9.0000\tEin Hund.\n-3.0000\tJa.\n");
  ASSERT_THAT(server_.score_requests(), SizeIs(1));
  EXPECT_EQ(server_.score_requests()[0].pairs(1).source_text(), "A dog.");
  EXPECT_EQ(server_.score_requests()[0].source_language_code(), "en");
}

TEST_F(CliTest, ScoresLinesInOrderAndNamesInvalidPairs) {
  EXPECT_EQ(Run(kScore, "A dog.\tEin Hund.\n\nYes.\tJa.\n"), kExitOk) << err_;
  EXPECT_EQ(out_, "-9.0000\tEin Hund.\n\n-3.0000\tJa.\n");
  EXPECT_EQ(Run(kScore, "A dog.\tEin Hund.\nYes. Ja.\n"), kExitLocal);
  EXPECT_EQ(out_, "-9.0000\tEin Hund.\n");
  EXPECT_THAT(err_, HasSubstr("line 2 of standard input is not a source, one tab and a target\n"));
  EXPECT_EQ(Run(kScore, "a\tb\tc\n"), kExitLocal);
  EXPECT_THAT(err_, HasSubstr("line 1 of standard input is not a source, one tab"));
}

TEST_F(CliTest, ErrorsOfAPairNameItsTarget) {
  server_.on_score = [](auto&, const auto& request, v1::ScoreResponse& response) {
    response.add_scores();
    if (request.pairs_size() == 1) return grpc::Status::OK;
    return ServerError(grpc::StatusCode::INVALID_ARGUMENT, "is empty", "EMPTY_TEXT",
                       "pairs[1].target_text");
  };
  std::vector<std::string> arguments = kScore;
  arguments.insert(arguments.end(), {"A dog.", "Ein Hund.", ""});
  EXPECT_EQ(Run(arguments), kExitCode + 3);
  EXPECT_THAT(err_, HasSubstr("pairs[1] is argument 3"));
}

TEST_F(CliTest, DetectListsLanguagesWithTheirShare) {
  server_.on_detect = [](auto&, const auto& request, v1::DetectLanguageResponse& response) {
    for (const std::string& content : request.contents()) {
      v1::LanguageDetection& detection = *response.add_detections();
      if (content == "123") continue;
      detection.set_reliable(content.size() > 5);
      detection.add_languages()->set_language_code("de");
      detection.mutable_languages(0)->set_confidence(0.875);
    }
    return grpc::Status::OK;
  };
  EXPECT_EQ(Run({"detect", "Der Hund.", "Ja", "123", "Zwei\nZeilen."}), kExitOk) << err_;
  EXPECT_EQ(out_,
            "de\t0.88\tDer Hund.\n"
            "de?\t0.88\tJa\n"
            "und\t0.00\t123\n"
            "de\t0.88\targument 4\n");
  EXPECT_EQ(Run({"detect"}, "Der Hund.\nJa\n"), kExitOk) << "a line is a text, as for translate";
  EXPECT_EQ(out_, "de\t0.88\tDer Hund.\nde?\t0.88\tJa\n");
  EXPECT_EQ(Run({"detect", "--document"}, "Der Hund.\nJa\n"), kExitOk);
  EXPECT_EQ(out_, "de\t0.88\tstandard input\n");
  EXPECT_EQ(Run({"detect", "--lines", "--json"}, "Der Hund.\n"), kExitOk);
  EXPECT_THAT(out_, HasSubstr("\"language_code\":\"de\""));
}

TEST_F(CliTest, ReloadNamesTheAddressOfAdministrators) {
  EXPECT_EQ(Run({"reload"}), kExitCode + 12);
  EXPECT_EQ(err_, "linnet: UNIMPLEMENTED: " + server_.address() +
                      " takes no calls of administrators: use the address for them (linnet-server "
                      "--admin-listen), or a token with the right to administer\n");
}

TEST_F(CliTest, ShowsOneModelInDetail) {
  v1::Model& model = *server_.models.add_models();
  model = ModelOf("en-de", v1::TASK_TRANSLATE, "en", "de");
  model.set_max_beam_size(32);
  model.set_sha256("abc");
  model.mutable_default_options()->set_beam_size(5);
  model.mutable_default_options()->set_length_penalty(1);
  EXPECT_EQ(Run({"models", "en-de"}), kExitOk) << err_;
  EXPECT_EQ(out_,
            "name            en-de\n"
            "task            translate\n"
            "languages       en to de\n"
            "version         7\n"
            "parameters      10.5M\n"
            "source tokens   at most 256\n"
            "target tokens   at most 200\n"
            "beam size       at most 32\n"
            "runs on         cpu float32\n"
            "sha256          abc\n"
            "defaults\n"
            "  beam_size             5\n"
            "  length_penalty        1\n");
  EXPECT_EQ(Run({"models", "--json", "en-de"}), kExitOk);
  EXPECT_THAT(out_, HasSubstr("\"name\":\"en-de\""));
  EXPECT_EQ(Run({"models", "babel"}), kExitCode + 5);
  EXPECT_THAT(err_, HasSubstr("no model \"babel\""));
}

TEST_F(CliTest, ListsEveryPairOfAModel) {
  v1::Model& model = *server_.models.add_models();
  model = ModelOf("opus-en-gmw", v1::TASK_TRANSLATE, "en", "de");
  const auto add = [&](const char* source, const std::string& target) {
    model.add_language_pairs()->set_source_language_code(source);
    model.mutable_language_pairs()->rbegin()->set_target_language_code(target);
  };
  add("en", "de");
  add("en", "nl");
  add("de", "en");
  EXPECT_EQ(Run({"models"}), kExitOk) << err_;
  EXPECT_THAT(out_, HasSubstr("opus-en-gmw  translate  en to de/nl, de to en  7 "));
  EXPECT_EQ(Run({"translate", "--to", "de", "A dog."}), kExitOk) << err_;
  EXPECT_EQ(server_.translate_requests().back().source_language_code(), "");
  for (char letter = 'a'; letter <= 'z'; ++letter) add("en", std::string("x") + letter);
  EXPECT_EQ(Run({"models"}), kExitOk);
  EXPECT_THAT(out_, HasSubstr("translate  29 pairs   7 "));
  EXPECT_EQ(Run({"models", "opus-en-gmw"}), kExitOk);
  EXPECT_THAT(out_, HasSubstr("languages       en to de/nl/xa/xb/"));
}

TEST_F(CliTest, ListsAPairWithTheModelThatServesIt) {
  for (const char* name : {"de-en", "de-en-small", "en-de", "en-de@2"}) {
    const std::string from(name, 2), to(name + 3, 2);
    *server_.models.add_models() = ModelOf(name, v1::TASK_TRANSLATE, from, to);
  }
  *server_.models.add_models() = ModelOf("many", v1::TASK_TRANSLATE, "en", "de");
  v1::Model& many = *server_.models.mutable_models()->rbegin();
  for (const char* target : {"de", "fr"}) {
    many.add_language_pairs()->set_source_language_code("en");
    many.mutable_language_pairs()->rbegin()->set_target_language_code(target);
  }
  // The task is another one.
  *server_.models.add_models() = ModelOf("short", v1::TASK_SUMMARIZE, "en", "en");
  *server_.models.add_models() = ModelOf("shorter", v1::TASK_SUMMARIZE, "en", "en");
  EXPECT_EQ(Run({"models"}), kExitOk) << err_;
  std::string table = out_;
  while (absl::StrReplaceAll({{"   ", "  "}}, &table) > 0) continue;
  for (const char* line :
       {"\nde-en  translate  de to en  7", "\nde-en-small  translate  by name only  7",
        "\nen-de  translate  en to de  7", "\nen-de@2  translate  by name only  7",
        "\nmany  translate  en to fr, others by name only  7", "\nshort  summarize  en  7",
        "\nshorter  summarize  by name only  7"})
    EXPECT_THAT(table, HasSubstr(line));
  EXPECT_EQ(Run({"models", "de-en-small"}), kExitOk) << err_;
  EXPECT_THAT(out_, HasSubstr("languages       de to en\n"));
}

TEST_F(CliTest, ListsTheStylesOfASummariser) {
  v1::Model& model = *server_.models.add_models();
  model = ModelOf("titles", v1::TASK_SUMMARIZE, "en", "en");
  model.add_summary_styles(v1::SUMMARY_STYLE_TITLE);
  model.add_summary_styles(v1::SUMMARY_STYLE_PARAGRAPH);
  EXPECT_EQ(Run({"models"}), kExitOk) << err_;
  EXPECT_THAT(out_, HasSubstr("summarize  en (title/paragraph)  7 "));
  EXPECT_EQ(Run({"models", "titles"}), kExitOk) << err_;
  EXPECT_THAT(out_, HasSubstr("languages       en\n"
                              "styles          title/paragraph\n"));
}

TEST_F(CliTest, StyleIsOneOfThree) {
  EXPECT_EQ(Run({"summarize", "--language", "en", "--style", "sentence", "Long."}), kExitOk)
      << err_;
  EXPECT_EQ(server_.summarize_requests().back().style(), v1::SUMMARY_STYLE_SENTENCE);
  EXPECT_EQ(Run({"summarize", "--language", "en", "Long."}), kExitOk) << err_;
  EXPECT_EQ(server_.summarize_requests().back().style(), v1::SUMMARY_STYLE_UNSPECIFIED);
  EXPECT_EQ(Run({"summarize", "--language", "en", "--style", "poem", "Long."}), kExitUsage);
  EXPECT_THAT(err_, HasSubstr("--style: \"poem\" is none of title, sentence, paragraph"));
}

TEST_F(CliTest, ListsWordsWithConfidenceBelowAnswer) {
  server_.on_translate = [](auto&, const v1::TranslateRequest& request,
                            v1::TranslateResponse& response) {
    EXPECT_TRUE(request.word_scores());
    response.add_translations()->set_text("Ja. Nö.");
    v1::Segment& segment = *response.mutable_translations(0)->add_segments();
    const auto word = [&segment](int begin, int end, float score) {
      v1::Word& added = *segment.add_words();
      added.set_target_begin(begin);
      added.set_target_end(end);
      added.set_score(score);
    };
    word(0, 3, 0);
    word(4, 99, -0.6931472);  // an offset beyond the text is clamped
    return grpc::Status::OK;
  };
  EXPECT_EQ(Run({"translate", "--from", "en", "--to", "de", "--word-scores", "Yes. No."}), kExitOk);
  EXPECT_EQ(out_,
            "Ja. Nö.\n"
            "  Ja. 100%  Nö. 50%\n");
}

TEST_F(CliTest, RequestFlagsSetTheirFields) {
  EXPECT_EQ(Run({"summarize", "--language", "en", "--long-input", "chunk", "--priority", "batch",
                 "--label", "team=news", "--label", "empty=", "--request-id", "order-17", "Long."}),
            kExitOk)
      << err_;
  ASSERT_THAT(server_.summarize_requests(), SizeIs(1));
  const v1::SummarizeRequest request = server_.summarize_requests()[0];
  EXPECT_EQ(request.long_input(), v1::LONG_INPUT_CHUNK);
  EXPECT_EQ(request.priority(), v1::PRIORITY_BATCH);
  EXPECT_EQ(request.labels().at("team"), "news");
  EXPECT_EQ(request.labels().at("empty"), "");
  EXPECT_THAT(server_.request_ids(), ElementsAre("order-17"));
}

TEST_F(CliTest, ReportsTruncatedText) {
  server_.on_summarize = [](auto&, const auto&, v1::SummarizeResponse& response) {
    v1::Summary& summary = *response.add_summaries();
    summary.set_text("Short.");
    summary.set_truncated(true);
    summary.add_segments()->set_source_end(17);
    return grpc::Status::OK;
  };
  EXPECT_EQ(Run({"summarize", "--language", "en", "--long-input", "truncate", "Long."}), kExitOk);
  EXPECT_EQ(out_, "Short.\n");
  EXPECT_EQ(err_, "linnet: argument 1: only the first 17 bytes were read\n");
}

TEST_F(CliTest, ExplainsWrongUsageOfRequestFlags) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"score", "a", "b"}, "--to or --model is required"},
      {{"score", "--to", "de", "a"}, "a source without a target"},
      {{"score", "--to", "de", "--file", "f", "a", "b"}, "not by both"},
      {{"summarize", "--long-input", "cut", "x"},
       "--long-input: \"cut\" is none of reject, chunk, truncate"},
      {{"summarize", "--priority", "high", "x"}, "\"high\" is none of batch, normal, interactive"},
      {{"summarize", "--label", "x", "y"}, "\"x\" is not KEY=VALUE"},
  };
  for (const auto& [arguments, message] : cases) {
    EXPECT_EQ(Run(arguments), kExitUsage) << message;
    EXPECT_THAT(err_, HasSubstr(message));
    EXPECT_THAT(out_, IsEmpty());
  }
  EXPECT_EQ(Run({"detect", "--request-id", "two words", "x"}), kExitCode + 3);
  EXPECT_THAT(err_, HasSubstr("128 visible ASCII characters"));
}

}  // namespace
}  // namespace linnet::client
