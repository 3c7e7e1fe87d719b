#include "server/text/text_call.h"

#include <string>
#include <thread>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "server/errors.h"
#include "tests/server/text_fixture.h"

namespace linnet::server {
namespace {

using linnet::v1::SummarizeResponse;
using linnet::v1::TranslateRequest;
using linnet::v1::TranslateResponse;
using ::testing::HasSubstr;

TEST(TextCallTest, WhiteSpaceBetweenSegmentsIsKeptByteForByte) {
  TextHouse house;
  const std::string text = "\n  The dog runs.  A bird sings.\n\n\tPlease open the window. \n";
  TranslateResponse response;
  ASSERT_THAT(house.Call(&TextCalls::Translate, ToGerman({text}), response), IsOk());
  ASSERT_EQ(response.translations_size(), 1);
  EXPECT_EQ(response.translations(0).text(), text);
  EXPECT_EQ(response.translations(0).segments_size(), 3);
  EXPECT_EQ(response.model(), "en-de");
  EXPECT_EQ(response.model_version(), "test");
}

TEST(TextCallTest, RangesSayWhichBytesBecameWhich) {
  TextHouse house;
  const std::string text = " Please open the window.  She writes — a letter.";
  TranslateResponse response;
  ASSERT_THAT(house.Call(&TextCalls::Translate, ToGerman({text}), response), IsOk());
  const auto& translation = response.translations(0);
  ASSERT_EQ(translation.segments_size(), 2);
  std::vector<std::string> sources, targets;
  for (const auto& segment : translation.segments()) {
    sources.push_back(
        text.substr(segment.source_begin(), segment.source_end() - segment.source_begin()));
    targets.push_back(translation.text().substr(segment.target_begin(),
                                                segment.target_end() - segment.target_begin()));
    EXPECT_EQ(segment.finish_reason(), linnet::v1::FINISH_REASON_STOP);
  }
  EXPECT_THAT(sources, ::testing::ElementsAre("Please open the window.", "She writes — a letter."));
  EXPECT_EQ(targets, sources) << "an echo";
}

TEST(TextCallTest, TranslationsAreInTheOrderOfTheContents) {
  TextHouse house;
  std::vector<std::string> texts;
  for (int i = 0; i < 40; ++i)
    texts.push_back(absl::StrCat(std::string(i % 7, 'a'), " number ", i));
  TranslateResponse response;
  ASSERT_THAT(house.Call(&TextCalls::Translate, ToGerman(texts), response), IsOk());
  ASSERT_EQ(response.translations_size(), 40);
  for (int i = 0; i < 40; ++i) EXPECT_EQ(response.translations(i).text(), texts[i]);
}

TEST(TextCallTest, ALongSentenceIsDecodedInPartsAndNothingIsLost) {
  TextHouse house;
  std::string text = "The dog runs";
  for (int i = 0; i < 30; ++i) text += ", the bird sings in the garden";
  TranslateResponse response;
  ASSERT_THAT(house.Call(&TextCalls::Translate, ToGerman({text}), response), IsOk());
  EXPECT_EQ(response.translations(0).text(), text);
  EXPECT_GT(response.translations(0).segments_size(), 1);
  for (const auto& segment : response.translations(0).segments())
    EXPECT_TRUE(segment.part_of_sentence());
}

TEST(TextCallTest, ASummaryReadsTheWholeTextAsOneSource) {
  TextHouse house;
  const std::string text = "The dog runs. A bird sings.";
  SummarizeResponse response;
  ASSERT_THAT(house.Call(&TextCalls::Summarize, SummaryOf(text), response), IsOk());
  ASSERT_EQ(response.summaries(0).segments_size(), 1);
  EXPECT_EQ(response.summaries(0).text(), text);
  EXPECT_EQ(response.summaries(0).segments(0).source_end(), text.size());
  EXPECT_EQ(response.summaries(0).segments(0).target_end(), text.size());
}

TEST(TextCallTest, ASummaryOfWhatTheModelCannotReadAtOnceIsRefusedWithBothNumbers) {
  TextHouse house;
  std::string text;
  for (int i = 0; i < 60; ++i) text += "the garden ";
  SummarizeResponse response;
  const absl::Status status = house.Call(&TextCalls::Summarize, SummaryOf(text), response);
  EXPECT_THAT(status,
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("contents[0]: text has ")));
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("reads at most 64")));
  EXPECT_EQ(response.summaries_size(), 0);
}

// Sixty sentences of about five tokens, where the model reads 64.
std::string LongText() {
  std::string text;
  for (int i = 0; i < 60; ++i) absl::StrAppend(&text, "The dog runs ", i, ".  ");
  return text;
}

TEST(TextCallTest, ALongTextIsSummarisedInChunksThatCoverItInOrder) {
  TextHouse house;
  const std::string text = LongText();
  auto request = SummaryOf(text);
  request.set_long_input(linnet::v1::LONG_INPUT_CHUNK);
  SummarizeResponse response;
  ASSERT_THAT(house.Call(&TextCalls::Summarize, request, response), IsOk());
  const auto& summary = response.summaries(0);
  EXPECT_FALSE(summary.truncated());
  ASSERT_GT(summary.segments_size(), 3);
  std::string said;
  int read = 0, shortest = 1 << 20, longest = 0;
  for (const auto& segment : summary.segments()) {
    // Between chunks lies white space alone, and each begins with a sentence.
    EXPECT_EQ(absl::StripAsciiWhitespace(text.substr(read, segment.source_begin() - read)), "");
    EXPECT_THAT(text.substr(segment.source_begin()), ::testing::StartsWith("The dog"));
    const std::string chunk =
        text.substr(segment.source_begin(), segment.source_end() - segment.source_begin());
    EXPECT_EQ(summary.text().substr(segment.target_begin(),
                                    segment.target_end() - segment.target_begin()),
              chunk)
        << "an echo";
    absl::StrAppend(&said, said.empty() ? "" : " ", chunk);
    shortest = std::min(shortest, static_cast<int>(chunk.size()));
    longest = std::max(longest, static_cast<int>(chunk.size()));
    read = segment.source_end();
  }
  EXPECT_EQ(absl::StripAsciiWhitespace(text.substr(read)), "");
  EXPECT_EQ(summary.text(), said);
  EXPECT_GT(2 * shortest, longest) << "of about equal length";
}

TEST(TextCallTest, ALongTextIsTruncatedOnlyOnRequestAndSaysHowFarItWasRead) {
  TextHouse house;
  auto request = SummaryOf(LongText());
  request.set_long_input(linnet::v1::LONG_INPUT_TRUNCATE);
  request.add_contents("The dog runs.");
  SummarizeResponse response;
  ASSERT_THAT(house.Call(&TextCalls::Summarize, request, response), IsOk());
  EXPECT_TRUE(response.summaries(0).truncated());
  ASSERT_EQ(response.summaries(0).segments_size(), 1);
  EXPECT_EQ(response.summaries(0).text(),
            request.contents(0).substr(0, response.summaries(0).segments(0).source_end()));
  EXPECT_GT(response.summaries(0).usage().source_tokens(), 64 / 2);
  EXPECT_FALSE(response.summaries(1).truncated());
  EXPECT_EQ(response.summaries(1).text(), "The dog runs.");
}

TEST(TextCallTest, AShortTextIsOneChunkWhateverIsAskedOfLongOnes) {
  TextHouse house;
  for (auto way : {linnet::v1::LONG_INPUT_CHUNK, linnet::v1::LONG_INPUT_TRUNCATE,
                   linnet::v1::LONG_INPUT_REJECT, linnet::v1::LONG_INPUT_UNSPECIFIED}) {
    auto request = SummaryOf(" The dog runs. A bird sings. ");
    request.set_long_input(way);
    SummarizeResponse response;
    ASSERT_THAT(house.Call(&TextCalls::Summarize, request, response), IsOk());
    EXPECT_EQ(response.summaries(0).segments_size(), 1);
    EXPECT_FALSE(response.summaries(0).truncated());
  }
}

TEST(TextCallTest, WordsCoverTheTextAndCarryTheMeanOfTheirTokens) {
  TextHouse house;
  TranslateRequest request = ToGerman({"  The dog — größer 日本 runs. \n A bird sings."});
  TranslateResponse plain, asked;
  ASSERT_THAT(house.Call(&TextCalls::Translate, request, plain), IsOk());
  EXPECT_EQ(plain.translations(0).segments(0).words_size(), 0);
  request.set_word_scores(true);
  ASSERT_THAT(house.Call(&TextCalls::Translate, request, asked), IsOk());
  const auto& translation = asked.translations(0);
  std::vector<std::string> words;
  for (const auto& segment : translation.segments()) {
    for (const auto& word : segment.words()) {
      EXPECT_GE(word.target_begin(), segment.target_begin());
      EXPECT_LE(word.target_end(), segment.target_end());
      words.push_back(
          translation.text().substr(word.target_begin(), word.target_end() - word.target_begin()));
      EXPECT_FLOAT_EQ(word.score(), -0.5f) << "what the echo says of each token";
    }
  }
  EXPECT_THAT(words, ::testing::ElementsAre("The", "dog", "—", "größer", "日本", "runs.", "A",
                                            "bird", "sings."));
}

TEST(TextCallTest, ADetectedLanguageIsInTheAnswer) {
  TextHouse house;
  TranslateRequest request = ToGerman({"The dog runs across the street."});
  TranslateResponse said, detected;
  ASSERT_THAT(house.Call(&TextCalls::Translate, request, said), IsOk());
  EXPECT_FALSE(said.has_detected_language());
  request.clear_source_language_code();
  ASSERT_THAT(house.Call(&TextCalls::Translate, request, detected), IsOk());
  EXPECT_EQ(detected.detected_language().language_code(), "en");
  EXPECT_EQ(detected.model(), "en-de");
}

TEST(TextCallTest, LanguagesAreDetectedTextByText) {
  TextHouse house;
  linnet::v1::DetectLanguageRequest request;
  request.add_contents("The dog runs across the street.");
  request.add_contents("Der Hund läuft über die Straße.");
  request.add_contents("12345");
  linnet::v1::DetectLanguageResponse response;
  ASSERT_THAT(house.Call(&TextCalls::DetectLanguage, request, response), IsOk());
  ASSERT_EQ(response.detections_size(), 3);
  EXPECT_EQ(response.detections(0).languages(0).language_code(), "en");
  EXPECT_TRUE(response.detections(0).reliable());
  EXPECT_EQ(response.detections(1).languages(0).language_code(), "de");
  EXPECT_EQ(response.detections(2).languages_size(), 0);
  EXPECT_FALSE(response.detections(2).reliable());
  request.add_contents(" ");
  EXPECT_THAT(house.Call(&TextCalls::DetectLanguage, request, response),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("contents[3]")));
}

TEST(TextCallTest, AModelIsToldByNameAsItIsListed) {
  TextHouse house({}, {.max_tokens = 777}, {.max_contents = 9});
  linnet::v1::ListModelsResponse list;
  house.calls->ListModels(list);
  ASSERT_EQ(list.models_size(), 2);
  linnet::v1::GetModelRequest request;
  linnet::v1::GetModelResponse response;
  request.set_name("en-summary");
  ASSERT_THAT(house.calls->GetModel(request, response), IsOk());
  EXPECT_EQ(response.model().SerializeAsString(), list.models(1).SerializeAsString());
  EXPECT_EQ(response.model().max_beam_size(), 8);
  EXPECT_EQ(response.model().limits().max_source_tokens(), 64);
  EXPECT_EQ(response.request_limits().max_contents(), 9);
  EXPECT_EQ(response.request_limits().max_call_tokens(), 777);
  EXPECT_EQ(list.request_limits().max_contents(), 9);
  request.set_name("babel");
  EXPECT_THAT(house.calls->GetModel(request, response),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("there is en-de, en-summary")));
  request.clear_name();
  EXPECT_THAT(house.calls->GetModel(request, response),
              StatusIs(absl::StatusCode::kInvalidArgument, "name: is required"));
}

TEST(TextCallTest, ATextThatRunsIntoItsLimitSaysSo) {
  TextHouse house;
  TranslateRequest request = ToGerman({"The dog runs through the garden."});
  request.mutable_options()->set_max_target_tokens(3);
  TranslateResponse response;
  ASSERT_THAT(house.Call(&TextCalls::Translate, request, response), IsOk());
  EXPECT_EQ(response.translations(0).finish_reason(), linnet::v1::FINISH_REASON_LENGTH);
  EXPECT_EQ(response.translations(0).segments(0).finish_reason(), linnet::v1::FINISH_REASON_LENGTH);
  EXPECT_EQ(response.translations(0).usage().target_tokens(), 4) << "three and the end token";
  EXPECT_THAT(house.metrics.Text(), HasSubstr("linnet_length_limited_total{model=\"en-de\"} 1\n"));
}

TEST(TextCallTest, HypothesesComeOnlyWhenAskedFor) {
  TextHouse house;
  TranslateRequest request = ToGerman({"The dog runs."});
  TranslateResponse plain, asked;
  ASSERT_THAT(house.Call(&TextCalls::Translate, request, plain), IsOk());
  EXPECT_EQ(plain.translations(0).segments(0).hypotheses_size(), 0);
  request.mutable_options()->set_beam_size(4);
  request.mutable_options()->set_n_best(3);
  ASSERT_THAT(house.Call(&TextCalls::Translate, request, asked), IsOk());
  const auto& segment = asked.translations(0).segments(0);
  ASSERT_EQ(segment.hypotheses_size(), 3);
  EXPECT_EQ(segment.hypotheses(0).text(), "The dog runs.");
  EXPECT_EQ(segment.hypotheses(0).score(), segment.score());
  EXPECT_EQ(segment.hypotheses(0).tokens(), asked.translations(0).usage().target_tokens());
  EXPECT_EQ(segment.hypotheses(0).token_scores_size(), segment.hypotheses(0).tokens());
  EXPECT_GT(segment.hypotheses(0).score(), segment.hypotheses(1).score());
}

TEST(TextCallTest, UsageCountsEndTokensAndTimingsAreFilled) {
  TextHouse house;
  TranslateResponse response;
  ASSERT_THAT(
      house.Call(&TextCalls::Translate, ToGerman({"The dog runs.\nA bird sings."}), response),
      IsOk());
  const auto& usage = response.translations(0).usage();
  EXPECT_EQ(usage.source_tokens(), usage.target_tokens()) << "an echo";
  EXPECT_GE(usage.source_tokens(), 4);
  EXPECT_TRUE(response.timings().has_total());
  EXPECT_TRUE(response.timings().has_tokenize());
  EXPECT_TRUE(response.timings().has_queue());
  EXPECT_TRUE(response.timings().has_decode());
}

TEST(TextCallTest, OneSegmentThatFailsFailsTheCallOnce) {
  // Every sequence of four tokens and more fails at its fourth, which is whatever the tokenizer
  // says: so learn it first.
  auto tokens = [] {
    TextHouse house;
    return *house.catalog->models()[0]->source_tokenizer->Encode("window");
  }();
  TextHouse house({.not_a_number = tokens.back()});
  TranslateResponse response;
  const absl::Status status = house.Call(
      &TextCalls::Translate,
      ToGerman({"A bird sings.", "Please open the window", "She writes a letter."}), response);
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_EQ(ErrorReason(status), "INTERNAL");
  EXPECT_EQ(response.translations_size(), 0) << "whole or not at all";
}

TEST(TextCallTest, ACancelWhileDecodingEndsTheCallWithinAStep) {
  test::Turnstile in_step, go_on;
  std::atomic<bool> armed =
      false;  // the golden example makes steps of its own while the house is built
  std::atomic<int> steps = 0;
  TextHouse house({.on_step = [&] {
    if (!armed) return;
    ++steps;
    in_step.Open();
    go_on.Pass();
  }});
  armed = true;
  CallContext context{.arrived = absl::Now()};
  TranslateResponse response;
  absl::Status status;
  test::Turnstile done;
  const TranslateRequest request = ToGerman({"The dog runs through the garden.", "A bird sings."});
  house.calls->Translate(request, response, context, [&](absl::Status result) {
    status = std::move(result);
    done.Open();
  });
  in_step.Pass();
  *context.cancelled = true;
  go_on.Open();
  done.Pass();
  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(steps, 1) << "only the step under way was made";
  EXPECT_EQ(house.admission.tokens(), 0);
}

TEST(TextCallTest, ACallThatWasCancelledBeforeItBeganDecodesNothing) {
  TextHouse house;
  CallContext context{.arrived = absl::Now()};
  *context.cancelled = true;
  TranslateResponse response;
  EXPECT_THAT(house.Call(&TextCalls::Translate, ToGerman({"The dog runs."}), response, context),
              StatusIs(absl::StatusCode::kCancelled));
}

TEST(TextCallTest, ADeadlineInThePastIsExceeded) {
  TextHouse house;
  TranslateResponse response;
  EXPECT_THAT(house.Call(&TextCalls::Translate, ToGerman({"The dog runs."}), response,
                         {.arrived = absl::Now(), .deadline = absl::Now() - absl::Seconds(1)}),
              StatusIs(absl::StatusCode::kDeadlineExceeded));
}

TEST(TextCallTest, ACallThatTheHouseCanNeverHoldIsTheCallersToChange) {
  TextHouse house({}, {.max_tokens = 50});
  TranslateResponse response;
  EXPECT_THAT(house.Call(&TextCalls::Translate,
                         ToGerman({"The dog runs.", "A bird sings.", "She writes."}), response),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("at most 50")));
}

TEST(TextCallTest, AFullHouseRefusesUntilItHasRoomAgain) {
  TextHouse house({}, {.max_tokens = 200});
  const TranslateRequest request = ToGerman({"The dog runs."});
  TranslateResponse response;
  {
    auto other = house.admission.Enter({.client = "other"}, 1);
    ASSERT_THAT(other->Charge({.model = "en-de", .tokens = 190}, absl::Now()), IsOk());
    test::Turnstile done;
    absl::Status status;
    house.calls->Translate(request, response, {.arrived = absl::Now()}, [&](absl::Status result) {
      status = std::move(result);
      done.Open();
    });
    done.Pass();
    EXPECT_THAT(status,
                StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("190 tokens of work")));
    EXPECT_GE(RetryDelay(status), absl::Milliseconds(750));
    EXPECT_LE(RetryDelay(status), absl::Milliseconds(1250));
  }
  EXPECT_THAT(house.Call(&TextCalls::Translate, request, response), IsOk());
}

TEST(TextCallTest, ADrainLetsWhatRunsEndAndRefusesNewcomers) {
  TextHouse house;
  std::vector<TranslateResponse> responses(10);
  std::vector<absl::Status> statuses(10, absl::UnknownError("no answer"));
  const TranslateRequest request = ToGerman({"The dog runs through the garden.", "A bird sings."});
  for (int i = 0; i < 10; ++i) {
    house.calls->Translate(request, responses[i], {.arrived = absl::Now()},
                           [&, i](absl::Status status) { statuses[i] = std::move(status); });
  }
  house.calls->Drain(absl::InfiniteFuture());
  for (const absl::Status& status : statuses) EXPECT_THAT(status, IsOk());
  TranslateResponse late;
  const absl::Status refused = house.Call(&TextCalls::Translate, request, late);
  EXPECT_EQ(refused.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(ErrorReason(refused), "SHUTTING_DOWN");
}

TEST(TextCallTest, ADrainWithoutPatienceEndsEveryCallOnce) {
  TextHouse house;
  constexpr int kCalls = 50;
  std::vector<TranslateResponse> responses(kCalls);
  std::vector<std::atomic<int>> answers(kCalls);
  std::atomic<int> others = 0;
  const TranslateRequest request =
      ToGerman({"The dog runs through the garden.", "A bird sings.", "She writes."});
  for (int i = 0; i < kCalls; ++i) {
    house.calls->Translate(request, responses[i], {.arrived = absl::Now()},
                           [&, i](const absl::Status& status) {
                             ++answers[i];
                             if (!status.ok() && status.code() != absl::StatusCode::kUnavailable)
                               ++others;
                           });
  }
  house.calls->Drain(absl::Now());
  for (const auto& count : answers) EXPECT_EQ(count, 1);
  EXPECT_EQ(others, 0);
  EXPECT_EQ(house.admission.tokens(), 0);
}

TEST(TextCallTest, ManyCallersAtOnceGetTheirOwnAnswers) {
  TextHouse house;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 25; ++i) {
        const std::string text = absl::StrCat("Thread ", t, " says\n ", i, " times\n\nthe same.");
        TranslateResponse response;
        test::Turnstile done;
        auto context = CallContext{.arrived = absl::Now()};
        if (i % 5 == 4) *context.cancelled = true;
        const TranslateRequest request = ToGerman({text});
        absl::Status status;
        house.calls->Translate(request, response, context, [&](absl::Status result) {
          status = std::move(result);
          done.Open();
        });
        done.Pass();
        if (i % 5 == 4) {
          EXPECT_EQ(status.code(), absl::StatusCode::kCancelled);
        } else {
          EXPECT_EQ(response.translations(0).text(), text);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(house.admission.tokens(), 0);
  EXPECT_EQ(house.admission.bytes(), 0);
}

}  // namespace
}  // namespace linnet::server
