// Calls of two models: streams, errors, cancellation, cost and the cache.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/base/errors.h"
#include "server/base/log.h"
#include "tests/server/text/pivot_server.h"

namespace linnet::server {
namespace {

using linnet::v1::TextPart;
using linnet::v1::TranslateRequest;
using linnet::v1::TranslateResponse;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// An echo engine that says nothing to sources of at most six tokens.
struct Reticent : test::EchoEngine {
  Reticent() : EchoEngine({.limits = kTinyLimits}) {}
  absl::StatusOr<std::vector<model::SequenceEvent>> Step() override {
    auto events = EchoEngine::Step();
    for (model::SequenceEvent& event : *events) {
      event.stable.clear();
      for (model::Hypothesis& hypothesis : event.hypotheses) {
        if (hypothesis.tokens.size() > 6) continue;
        hypothesis.tokens = {hypothesis.tokens.back()};
        hypothesis.token_scores = {-0.5f};
      }
    }
    return events;
  }
};

TEST(PivotCallsTest, StreamedPartsAreThoseOfTheAnswer) {
  const auto check = [](PivotServer& server, const TranslateRequest& request) {
    const TranslateResponse unary = server.Translated(request);
    const Received received = Stream(*server.calls, request);
    ASSERT_THAT(received.status, IsOk());
    EXPECT_EQ(WithoutTimings(received.response), WithoutTimings(unary));
    EXPECT_TRUE(received.response.has_pivot());
    std::vector<std::string> texts(unary.translations_size());
    std::pair place = {0, 0};
    int segments = 0;
    for (const TextPart& part : received.parts) {
      EXPECT_LE(place, std::pair(part.content_index(), part.segment_index())) << "in order";
      place = {part.content_index(), part.segment_index()};
      texts[part.content_index()] += part.text();
      if (!part.has_segment()) continue;
      const auto& whole = unary.translations(part.content_index()).segments(part.segment_index());
      EXPECT_EQ(part.segment().SerializeAsString(), whole.SerializeAsString());
      ++segments;
    }
    for (int i = 0; i < unary.translations_size(); ++i)
      EXPECT_EQ(texts[i], unary.translations(i).text());
    EXPECT_EQ(segments, 4) << "each segment is closed once";
    EXPECT_EQ(server.admission.tokens(), 0);
  };
  TranslateRequest request =
      To("fr", {" A bird sings.  The dog runs.\n\nShe writes a letter. ", "Go."});
  request.set_word_scores(true);
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    PivotServer server(PivotServer::Noise(seed));
    request.mutable_options()->set_beam_size(1 + static_cast<int>(seed % 4));
    check(server, request);
  }
  const auto reticent = [](const model::Bundle& bundle) -> std::unique_ptr<model::Engine> {
    if (!PivotServer::IsSecond(bundle)) return std::make_unique<Reticent>();
    return std::make_unique<test::EchoEngine>(test::EchoEngine::Options{.limits = kTinyLimits});
  };
  request.clear_options();
  PivotServer server(reticent);
  check(server, request);
}

TEST(PivotCallsTest, SentenceWithoutAPivotTextHasAnEmptyAnswer) {
  PivotServer server([](const model::Bundle& bundle) -> std::unique_ptr<model::Engine> {
    if (!PivotServer::IsSecond(bundle)) return std::make_unique<Reticent>();
    return std::make_unique<test::EchoEngine>(test::EchoEngine::Options{.limits = kTinyLimits});
  });
  const TranslateResponse answer =
      server.Translated(To("fr", {"Go.", "Go. The dog runs through the garden. Go."}));
  EXPECT_EQ(answer.translations(0).text(), "");
  ASSERT_EQ(answer.translations(0).segments_size(), 1);
  EXPECT_EQ(answer.translations(0).segments(0).source_end(), 3);
  EXPECT_EQ(answer.translations(1).text(), " The dog runs through the garden. ");
  ASSERT_EQ(answer.translations(1).segments_size(), 3);
  EXPECT_EQ(answer.translations(1).segments(2).target_begin(), 34);
  const TranslateResponse nothing = server.Translated(To("fr", {"Go."}));
  EXPECT_EQ(nothing.translations(0).text(), "");
  const Received stream = Stream(*server.calls, To("fr", {"Go."}));
  EXPECT_THAT(stream.status, IsOk());
  ASSERT_EQ(stream.parts.size(), 1);
  EXPECT_TRUE(stream.parts[0].has_segment());
}

// The estimates learn from work alone.
TEST(PivotCallsTest, EmptyPivotFromTheCacheIsNoCompletion) {
  AnswerCache cache(1 << 20, CacheTenant::kToken);
  PivotServer server(
      [](const model::Bundle& bundle) -> std::unique_ptr<model::Engine> {
        if (!PivotServer::IsSecond(bundle)) return std::make_unique<Reticent>();
        return std::make_unique<test::EchoEngine>(test::EchoEngine::Options{.limits = kTinyLimits});
      },
      AdmissionLimits(), TextLimits(), BatcherOptions(), absl::InfiniteDuration(), &cache);
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(server.Translated(To("fr", {"Go."})).translations(0).text(), "");
  EXPECT_THAT(server.metrics.Text(),
              HasSubstr("linnet_answer_cache_hits_total{model=\"en-de\"} 1\n"));
  EXPECT_THAT(server.metrics.Text(), Not(HasSubstr("model=\"\"")));
}

// The code of a call that can be cancelled.
absl::StatusCode CodeOf(PivotServer& server, const std::shared_ptr<Cancellation>& cancelled) {
  TranslateResponse response;
  return server
      .Call(&TextCalls::Translate, To("fr", {"The dog runs."}), response,
            {.arrived = absl::Now(), .cancelled = cancelled})
      .code();
}

TEST(PivotCallsTest, CancellationInTheSecondModelEndsTheCall) {
  auto cancelled = std::make_shared<Cancellation>();
  bool warm = true;
  PivotServer server(PivotServer::Echo({}, {.on_step = [&, cancelled] {
                                         if (!warm) cancelled->Cancel();
                                       }}));
  warm = false;
  EXPECT_EQ(CodeOf(server, cancelled), absl::StatusCode::kCancelled);
}

TEST(PivotCallsTest, CancellationInTheFirstModelNeverReachesTheSecond) {
  auto cancelled = std::make_shared<Cancellation>();
  bool warm = true;
  int added = 0;
  PivotServer server(PivotServer::Echo({.on_step =
                                            [&, cancelled] {
                                              if (!warm) cancelled->Cancel();
                                            }},
                                       {.on_add = [&] { ++added; }}));
  warm = false;
  added = 0;
  EXPECT_EQ(CodeOf(server, cancelled), absl::StatusCode::kCancelled);
  EXPECT_EQ(added, 0);
}

TEST(PivotCallsTest, ErrorOfTheSecondModelIsThatOfTheCall) {
  TextFixture other;
  const model::TokenId window =
      other.catalog->models()[0]->source_tokenizer->Encode("window")->back();
  PivotServer server(PivotServer::Echo({}, {.not_a_number = window}));
  TranslateResponse response;
  EXPECT_EQ(server
                .Call(&TextCalls::Translate, To("fr", {"A bird sings.", "Please open the window"}),
                      response)
                .code(),
            absl::StatusCode::kInternal);
  EXPECT_EQ(response.translations_size(), 0);
  EXPECT_EQ(Stream(*server.calls, To("fr", {"Please open the window"})).status.code(),
            absl::StatusCode::kInternal);
  EXPECT_THAT(server.Translated(To("fr", {"A bird sings."})).translations(0).text(),
              "A bird sings.");
}

TEST(PivotCallsTest, CallIsChargedForBothModelsBeforeItBegins) {
  int64_t first = 0, second = 0;
  bool warm = true;
  Admission* admission = nullptr;
  PivotServer server(PivotServer::Echo({.on_step =
                                            [&] {
                                              if (!warm && first == 0) first = admission->tokens();
                                            }},
                                       {.on_step = [&] {
                                         if (!warm && second == 0) second = admission->tokens();
                                       }}));
  admission = &server.admission;
  warm = false;
  TranslateRequest request = To("fr", {"The dog runs."}), half = ToGerman({"The dog runs."});
  for (TranslateRequest* each : {&request, &half}) each->mutable_options()->set_beam_size(1);
  server.Translated(request);
  EXPECT_GT(second, 0);
  EXPECT_GT(first, second) << "for both models";
  // Each may take 28, and the server gives a call 42.
  PivotServer small(PivotServer::Echo({}, {}), AdmissionLimits{.max_tokens = 56});
  TranslateResponse response;
  const absl::Status refused = small.Call(&TextCalls::Translate, request, response);
  EXPECT_EQ(ErrorReason(refused), GetCondition(Reason::kCallTooLarge).name);
  EXPECT_THAT(small.Call(&TextCalls::Translate, half, response), IsOk());
}

TEST(PivotCallsTest, SentencesOfACallShareBatchesOfBothModels) {
  int first = 0, second = 0;
  const auto widest = [](int& most) {
    struct Watching : test::EchoEngine {
      explicit Watching(int& most) : EchoEngine({.limits = kTinyLimits}), most(most) {}
      absl::Status Add(std::span<const model::SequenceInput> inputs) override {
        absl::Status status = EchoEngine::Add(inputs);
        most = std::max(most, sequences());
        return status;
      }
      int& most;
    };
    return std::make_unique<Watching>(most);
  };
  PivotServer server([&](const model::Bundle& bundle) {
    return widest(PivotServer::IsSecond(bundle) ? second : first);
  });
  first = second = 0;
  server.Translated(To("fr", {"The dog runs. A bird sings. She writes.", "He reads."}));
  EXPECT_EQ(first, 4);
  EXPECT_EQ(second, 4);
  const std::string page = server.metrics.Text();
  EXPECT_THAT(page, AllOf(HasSubstr("linnet_sequences_total{model=\"en-de\""),
                          HasSubstr("linnet_sequences_total{model=\"de-fr\"")));
}

TEST(PivotCallsTest, CachedAnswersOfBothModelsGiveTheSameReply) {
  AnswerCache cache(1 << 20, CacheTenant::kToken);
  PivotServer server(PivotServer::Noise(7), AdmissionLimits{}, TextLimits{}, BatcherOptions{},
                     absl::InfiniteDuration(), &cache);
  const TranslateRequest request = To("fr", {"The dog runs. A bird sings."});
  const std::string said = WithoutTimings(server.Translated(request));
  EXPECT_EQ(WithoutTimings(server.Translated(request)), said);
  // The first model's part alone is cached.
  ASSERT_TRUE(server.catalog->Reload().ok());
  server.Translated(To("de", {"The dog runs. A bird sings."}));
  EXPECT_EQ(WithoutTimings(server.Translated(request)), said);
  EXPECT_EQ(WithoutTimings(Stream(*server.calls, request).response), said);
}

TEST(PivotCallsTest, WarnsOfALanguageThatTheFirstModelDoesNotRead) {
  PivotServer server;
  const TranslateResponse answer =
      server.Translated(To("fr", {"Hunde bellen laut auf der Straße, und die Katze schläft."}));
  ASSERT_EQ(answer.translations(0).warnings_size(), 1);
  EXPECT_THAT(answer.translations(0).warnings(0).message(), HasSubstr("model \"en-de\" reads"));
}

TEST(PivotCallsTest, SlowCallIsLoggedOnceWithBothModels) {
  PivotServer server(PivotServer::Echo({}, {}), AdmissionLimits{}, TextLimits{}, BatcherOptions{},
                     absl::ZeroDuration());
  ::testing::internal::CaptureStderr();
  server.Translated(To("fr", {"The dog runs."}));
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, AllOf(HasSubstr("slow_call code=OK model=de-fr "),
                         HasSubstr(" pivot_model=en-de "), Not(HasSubstr("pivot_seconds=-"))));
  EXPECT_EQ(log.find("slow_call"), log.rfind("slow_call"));
}

}  // namespace
}  // namespace linnet::server
