// Noisy-channel reranking: a model of the other direction chooses among hypotheses.
#include <algorithm>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/text/ranked_texts.h"
#include "tests/server/text/request_fixture.h"
#include "tests/server/text/two_models_fixture.h"

namespace linnet::server {
namespace {

using linnet::v1::Hypothesis;
using linnet::v1::Segment;
using linnet::v1::TextPart;
using linnet::v1::TranslateRequest;
using linnet::v1::TranslateResponse;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Eq;
using ::testing::HasSubstr;
using ::testing::Optional;

// A server with the models en-de and de-en.
struct RerankingServer : TwoModels {
  template <std::invocable<const model::Bundle&> Factory, typename... Rest>
  explicit RerankingServer(Factory factory, Rest... rest) : TwoModels(factory, rest...) {
    LimitChannel(64, 80);
  }

  // The model de-en reads and writes at most so many tokens.
  void LimitChannel(int max_source_tokens, int max_target_tokens) {
    auto manifest = test::TinyManifest("de-en", linnet::v1::TASK_TRANSLATE, "de", "en");
    manifest.set_version(absl::StrCat("reads-", max_source_tokens));  // a reload sees it
    manifest.mutable_limits()->set_max_source_tokens(max_source_tokens);
    manifest.mutable_limits()->set_max_target_tokens(max_target_tokens);
    manifest.mutable_default_options()->set_max_target_tokens(max_target_tokens);
    test::WriteBundle(folder.path() / "de-en", manifest);
    EXPECT_TRUE(catalog->Reload().ok());
  }

  // The mean log-probability of `source` given `text` under the other model, if that reads both.
  std::optional<float> ChannelScore(const std::string& text, const std::string& source) {
    linnet::v1::ScoreRequest request;
    request.set_source_language_code("de");
    request.set_target_language_code("en");
    request.add_pairs()->set_source_text(text);
    request.mutable_pairs(0)->set_target_text(source);
    linnet::v1::ScoreResponse response;
    if (!Call(&TextCalls::Score, request, response).ok()) return std::nullopt;
    return Mean(response.scores(0).token_scores());
  }

  template <typename Scores>
  static float Mean(const Scores& scores) {
    return static_cast<float>(std::accumulate(scores.begin(), scores.end(), 0.0) / scores.size());
  }
};

TranslateRequest Reranked(std::vector<std::string> contents, int hypotheses = 4) {
  TranslateRequest request = ToGerman(std::move(contents));
  request.mutable_reranking()->set_hypotheses(hypotheses);
  return request;
}

TEST(RerankingTest, OrderIsThatOfTwoCallsMadeByHand) {
  const std::vector<std::string> contents = {" A bird sings.  The dog runs.\n\nShe writes. ",
                                             "Last one."};
  int scored = 0, unscored = 0, mixed = 0, changed = 0;
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    RerankingServer server(RerankingServer::Noise(seed));
    // Some hypotheses, or sources, are too long for the other model.
    const int max_source = seed % 4 == 0 ? 12 : 64 - static_cast<int>(seed);
    server.LimitChannel(max_source, seed % 4 == 2 ? 7 : 80);
    const int hypotheses = 2 + static_cast<int>(seed % 6);
    const float weight = 0.25f * static_cast<float>(seed);
    TranslateRequest request = Reranked(contents, hypotheses);
    request.mutable_reranking()->set_channel_weight(weight);
    request.mutable_options()->set_n_best(hypotheses);
    request.set_word_scores(true);
    const TranslateResponse answer = server.Translated(request);
    EXPECT_EQ(answer.model(), "en-de");
    EXPECT_EQ(answer.channel_model().model(), "de-en");
    EXPECT_EQ(answer.channel_model().model_version(), absl::StrCat("reads-", max_source));
    request.clear_reranking();
    request.mutable_options()->set_beam_size(hypotheses);
    const TranslateResponse searched = server.Translated(request);

    for (int i = 0; i < 2; ++i) {
      const auto& translation = answer.translations(i);
      ASSERT_EQ(translation.segments_size(), searched.translations(i).segments_size());
      std::string text;
      int read = 0;
      for (int j = 0; j < translation.segments_size(); ++j) {
        const Segment& segment = translation.segments(j);
        const Segment& before = searched.translations(i).segments(j);
        const std::string source = contents[i].substr(
            segment.source_begin(), segment.source_end() - segment.source_begin());
        struct Expected {
          Hypothesis hypothesis;
          std::optional<float> channel;
          float score;
        };
        std::vector<Expected> expected;
        for (const Hypothesis& each : before.hypotheses()) {
          const auto channel = server.ChannelScore(each.text(), source);
          const float score = server.Mean(each.token_scores()) + weight * channel.value_or(0);
          expected.push_back({each, channel, score});
          ++(channel.has_value() ? scored : unscored);
        }
        std::stable_sort(expected.begin(), expected.end(), [](const auto& a, const auto& b) {
          return std::tuple(!a.channel.has_value(), a.channel.has_value() ? -a.score : 0) <
                 std::tuple(!b.channel.has_value(), b.channel.has_value() ? -b.score : 0);
        });
        mixed += expected.front().channel.has_value() && !expected.back().channel.has_value();
        ASSERT_EQ(segment.hypotheses_size(), expected.size());
        for (size_t k = 0; k < expected.size(); ++k) {
          Hypothesis& one = expected[k].hypothesis;
          EXPECT_EQ(segment.hypotheses(k).has_channel_score(), expected[k].channel.has_value());
          if (expected[k].channel.has_value()) {
            EXPECT_FLOAT_EQ(segment.hypotheses(k).channel_score(), *expected[k].channel);
            one.set_channel_score(segment.hypotheses(k).channel_score());
          }
          EXPECT_EQ(segment.hypotheses(k).SerializeAsString(), one.SerializeAsString());
        }
        changed += segment.hypotheses(0).text() != before.hypotheses(0).text() ? 1 : 0;
        // The segment is that of its first hypothesis.
        EXPECT_EQ(TextOf(translation.text(), segment), segment.hypotheses(0).text());
        EXPECT_EQ(segment.score(), segment.hypotheses(0).score());
        EXPECT_EQ(segment.has_channel_score(), segment.hypotheses(0).has_channel_score());
        EXPECT_EQ(segment.channel_score(), segment.hypotheses(0).channel_score());
        ASSERT_GT(segment.words_size(), 0);
        EXPECT_EQ(segment.words(segment.words_size() - 1).target_end(), segment.target_end());
        // White space between sentences is that of the source.
        text +=
            contents[i].substr(read, segment.source_begin() - read) + segment.hypotheses(0).text();
        read = segment.source_end();
      }
      EXPECT_EQ(translation.text(), text + contents[i].substr(read));
    }
  }
  EXPECT_GT(scored, 20);
  EXPECT_GT(unscored, 5);
  EXPECT_GT(mixed, 0) << "segments with hypotheses of both kinds";
  EXPECT_GT(changed, 5);
}

TEST(RerankingTest, NBestListIsOfTheBestAlone) {
  RerankingServer server(RerankingServer::Noise(3));
  TranslateRequest request = Reranked({"A bird sings."}, 6);
  EXPECT_EQ(server.Translated(request).translations(0).segments(0).hypotheses_size(), 0);
  request.mutable_options()->set_n_best(6);
  const Segment all = server.Translated(request).translations(0).segments(0);
  ASSERT_EQ(all.hypotheses_size(), 6);
  request.mutable_options()->set_n_best(2);
  const Segment two = server.Translated(request).translations(0).segments(0);
  ASSERT_EQ(two.hypotheses_size(), 2);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(two.hypotheses(i).SerializeAsString(), all.hypotheses(i).SerializeAsString());
  }
}

TEST(RerankingTest, HypothesesOfAWiderBeamOrOfSamplesAreReranked) {
  RerankingServer server(RerankingServer::Noise(4));
  TranslateRequest request = Reranked({"A bird sings."}, 3);
  request.mutable_options()->set_n_best(3);
  request.mutable_options()->set_beam_size(7);
  EXPECT_EQ(server.Translated(request).translations(0).segments(0).hypotheses_size(), 3);
  request.mutable_options()->clear_beam_size();
  request.mutable_options()->set_seed(1);
  EXPECT_EQ(server.Translated(request).translations(0).segments(0).hypotheses_size(), 3);
}

TEST(RerankingTest, StreamSendsItsPartsAtTheEnd) {
  const TranslateRequest request =
      Reranked({" A bird sings.  The dog runs.\n\nShe writes a letter. ", "Go."});
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    RerankingServer server(RerankingServer::Noise(seed));
    const TranslateResponse unary = server.Translated(request);
    const Received stream = Stream(server, request);
    ASSERT_THAT(stream.status, IsOk());
    EXPECT_EQ(WithoutTimings(stream.response), WithoutTimings(unary));
    ASSERT_EQ(stream.parts.size(), 4) << "one of each segment";
    std::vector<std::string> texts(2);
    for (const TextPart& part : stream.parts) {
      texts[part.content_index()] += part.text();
      EXPECT_EQ(part.segment().SerializeAsString(), unary.translations(part.content_index())
                                                        .segments(part.segment_index())
                                                        .SerializeAsString());
    }
    for (int i = 0; i < 2; ++i) EXPECT_EQ(texts[i], unary.translations(i).text());
    EXPECT_EQ(server.admission.tokens(), 0);
  }
}

TEST(RerankingTest, TermsOfAGlossaryAreMet) {
  int changed = 0;
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    RerankingServer server(RerankingServer::Noise(seed));
    TranslateRequest request = Reranked({"A bird sings. The dog runs."}, 6);
    auto& entry = *request.mutable_glossary()->add_entries();
    entry.set_source_text("dog");
    entry.set_target_text("window");
    request.mutable_options()->set_n_best(6);
    const TranslateResponse answer = server.Translated(request);
    const Segment& dog = answer.translations(0).segments(1);
    ASSERT_EQ(dog.glossary_terms_size(), 1);
    EXPECT_TRUE(dog.glossary_terms(0).met());
    request.clear_reranking();
    request.mutable_options()->set_beam_size(6);
    const TranslateResponse searched = server.Translated(request);
    changed += searched.translations(0).text() != answer.translations(0).text() ? 1 : 0;
  }
  EXPECT_GT(changed, 0);
}

TEST(RerankingTest, CachedAnswersOfBothModelsGiveTheSameReply) {
  AnswerCache cache(1 << 20, CacheTenant::kToken);
  RerankingServer server(RerankingServer::Noise(7), AdmissionLimits{}, TextLimits{},
                         BatcherOptions{}, absl::InfiniteDuration(), &cache);
  const TranslateRequest request = Reranked({"The dog runs. A bird sings."});
  const std::string said = WithoutTimings(server.Translated(request));
  EXPECT_EQ(WithoutTimings(server.Translated(request)), said);
  EXPECT_THAT(server.metrics.Text(),
              AllOf(HasSubstr("linnet_answer_cache_hits_total{model=\"en-de\"} 2\n"),
                    HasSubstr("linnet_answer_cache_hits_total{model=\"de-en\"} 8\n")));
}

TEST(RerankingTest, SamplesAndTheirScoresAreNotKept) {
  AnswerCache cache(1 << 20, CacheTenant::kToken);
  RerankingServer server(RerankingServer::Noise(7), AdmissionLimits{}, TextLimits{},
                         BatcherOptions{}, absl::InfiniteDuration(), &cache);
  TranslateRequest sampled = Reranked({"The dog runs."});
  sampled.mutable_options()->set_seed(3);
  TranslateRequest refused = Reranked({"A bird sings."});
  refused.set_use_cache(false);
  for (const TranslateRequest& request : {sampled, sampled, refused, refused})
    server.Translated(request);
  // Neither hit nor missed: the cache was not asked.
  EXPECT_THAT(server.metrics.Text(),
              AllOf(HasSubstr("linnet_answer_cache_misses_total{model=\"en-de\"} 0\n"),
                    HasSubstr("linnet_answer_cache_misses_total{model=\"de-en\"} 0\n"),
                    HasSubstr("linnet_answer_cache_hits_total{model=\"de-en\"} 0\n")));
}

TEST(RerankingTest, GlossaryNeedsNoWiderBeamThanTheHypotheses) {
  RerankingServer server(RerankingServer::Noise(2));
  auto manifest = test::TinyManifest("greedy", linnet::v1::TASK_TRANSLATE, "en", "de");
  manifest.mutable_default_options()->set_beam_size(1);
  test::WriteBundle(server.folder.path() / "greedy", manifest);
  ASSERT_TRUE(server.catalog->Reload().ok());
  TranslateRequest request = Reranked({"The dog runs."});
  request.set_model("greedy");
  auto& entry = *request.mutable_glossary()->add_entries();
  entry.set_source_text("dog");
  entry.set_target_text("window");
  const TranslateResponse answer = server.Translated(request);
  EXPECT_TRUE(answer.translations(0).segments(0).glossary_terms(0).met());
}

TEST(RerankingTest, UnsetNumberOfHypothesesFitsTheModel) {
  RerankingServer server([](const model::Bundle&) {
    model::SearchLimits limits = kTinyLimits;
    limits.max_beam_size = 5;
    return std::make_unique<test::SearchEngine>(400, limits, 1);
  });
  TranslateRequest request = ToGerman({"The dog runs."});
  request.mutable_reranking();
  request.mutable_options()->set_n_best(5);
  EXPECT_EQ(server.Translated(request).translations(0).segments(0).hypotheses_size(), 5);
}

TEST(RerankingTest, StepsWithRoomForOneHypothesisAreNamedInTheError) {
  RerankingServer server([](const model::Bundle&) {
    model::SearchLimits limits = kTinyLimits;
    limits.max_beam_size = 1;
    return std::make_unique<test::SearchEngine>(400, limits, 1);
  });
  TranslateRequest request = ToGerman({"The dog runs."});
  request.mutable_reranking();
  TranslateResponse response;
  EXPECT_THAT(server.Call(&TextCalls::Translate, request, response),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("raise max-batch-rows")));
}

TEST(RerankingTest, LanguageOfATextMayBeDetected) {
  RerankingServer server(RerankingServer::Noise(2));
  TranslateRequest request =
      Reranked({"The quick brown dog runs through the garden of the old school."});
  request.clear_source_language_code();
  const TranslateResponse answer = server.Translated(request);
  EXPECT_EQ(answer.detected_language().language_code(), "en");
  EXPECT_EQ(answer.channel_model().model(), "de-en");
  request.clear_contents();
  EXPECT_THAT(CheckSettings(request, *server.catalog, {}), IsOk()) << "of a document";
}

TEST(RerankingTest, MetTermsComeBeforeScores) {
  RankedTexts texts;
  texts.request.reranking.emplace();
  texts.request.reranking->n_best = 4;
  PreparedSegment& segment = texts.prepared.emplace_back().segments.emplace_back();
  std::vector<PreparedText> scored;
  // The number of the hypothesis is its token.
  const auto add = [&](float score, int unmet, std::optional<float> channel) {
    segment.result.hypotheses.push_back(
        {.tokens = {static_cast<model::TokenId>(segment.result.hypotheses.size())},
         .token_scores = {score},
         .unmet_constraints = unmet});
    PreparedText& text = scored.emplace_back();
    if (!channel.has_value()) return;
    text.segments.emplace_back().result.hypotheses.push_back(
        {.tokens = {}, .token_scores = {*channel}});
  };
  add(-1, 1, -1);
  add(-2, 0, std::nullopt);
  add(-3, 0, -9);
  add(-3, 0, -8);
  Rerank(scored, texts);
  std::vector<model::TokenId> order;
  for (const model::Hypothesis& each : segment.result.hypotheses) order.push_back(each.tokens[0]);
  EXPECT_THAT(order, ElementsAre(3, 2, 1, 0));
  EXPECT_THAT(segment.channel_scores,
              ElementsAre(Optional(-8), Optional(-9), Eq(std::nullopt), Optional(-1)));
}

TEST(RerankingTest, CallIsChargedForBothModelsBeforeItBegins) {
  int64_t first = 0, second = 0;
  bool warm = true;
  Admission* admission = nullptr;
  const auto note = [&](int64_t& tokens) {
    return [&] {
      if (!warm && tokens == 0) tokens = admission->tokens();
    };
  };
  RerankingServer server(
      RerankingServer::Echo({.on_step = note(first)}, {.on_step = note(second)}));
  admission = &server.admission;
  warm = false;
  const TranslateRequest request = Reranked({"The dog runs."});
  server.Translated(request);
  EXPECT_GT(second, 0);
  EXPECT_GT(first, second);
  // More than the server admits at once.
  RerankingServer small(RerankingServer::Echo({}, {}), AdmissionLimits{.max_tokens = first - 1});
  TranslateResponse response;
  EXPECT_EQ(ErrorReason(small.Call(&TextCalls::Translate, request, response)),
            ConditionOf(Reason::kCallTooLarge).name);
  EXPECT_THAT(small.Call(&TextCalls::Translate, ToGerman({"The dog runs."}), response), IsOk());
}

TEST(RerankingTest, HypothesesCountAsSegmentsOfTheCall) {
  RerankingServer server(RerankingServer::Echo({}, {}), AdmissionLimits{},
                         TextLimits{.max_segments = 8});
  TranslateResponse response;
  EXPECT_THAT(server.Call(&TextCalls::Translate, Reranked({"Go. Go."}), response), IsOk());
  EXPECT_EQ(ErrorReason(server.Call(&TextCalls::Translate, Reranked({"Go. Go. Go."}), response)),
            ConditionOf(Reason::kTooManySegments).name);
}

TEST(RerankingTest, CancellationInTheSecondModelEndsTheCall) {
  auto cancelled = std::make_shared<Cancellation>();
  bool warm = true;
  RerankingServer server(RerankingServer::Echo({}, {.on_step = [&, cancelled] {
                                                 if (!warm) cancelled->Cancel();
                                               }}));
  warm = false;
  TranslateResponse response;
  EXPECT_EQ(server
                .Call(&TextCalls::Translate, Reranked({"The dog runs."}), response,
                      {.arrived = absl::Now(), .cancelled = cancelled})
                .code(),
            absl::StatusCode::kCancelled);
}

TEST(RerankingTest, SlowCallIsLoggedOnceWithBothModels) {
  RerankingServer server(RerankingServer::Echo({}, {}), AdmissionLimits{}, TextLimits{},
                         BatcherOptions{}, absl::ZeroDuration());
  ::testing::internal::CaptureStderr();
  server.Translated(Reranked({"The dog runs."}));
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(
      log, AllOf(HasSubstr("slow_call code=OK model=de-en "), HasSubstr(" search_model=en-de ")));
  EXPECT_EQ(log.find("slow_call"), log.rfind("slow_call"));
}

TEST(RerankingTest, ModelOfTheOtherDirectionIsNeeded) {
  TextFixture server;
  const absl::Status status = CheckRequest(Reranked({"Dog"}), *server.catalog, {}).status();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kNotFound,
                               AllOf(HasSubstr("no model translates de to en: there is en to de"),
                                     HasSubstr("serve one, or leave reranking out"))));
}

TEST(RerankingTest, RefusesSettingsThatDoNotFit) {
  RerankingServer server(RerankingServer::Echo({}, {}));
  const auto expect_bad = [&](const TranslateRequest& request, const std::string& field,
                              const std::string& message) {
    const absl::Status status = CheckRequest(request, *server.catalog, {}).status();
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(message)));
    EXPECT_EQ(Field(status), field);
    // The settings of a document are checked before its first line.
    TranslateRequest settings = request;
    settings.clear_contents();
    EXPECT_EQ(Field(CheckSettings(settings, *server.catalog, {})), field);
  };
  expect_bad(Reranked({"Dog"}, 1), "reranking.hypotheses", "is 1, it must be between 2 and 32");
  expect_bad(Reranked({"Dog"}, 9), "reranking.hypotheses", "is 9, it must be between 2 and 8");
  for (const float weight : {-0.5f, 101.f, NAN}) {
    TranslateRequest request = Reranked({"Dog"});
    request.mutable_reranking()->set_channel_weight(weight);
    expect_bad(request, "reranking.channel_weight", "must be between 0 and 100");
  }
  for (const int n_best : {0, 5}) {
    TranslateRequest request = Reranked({"Dog"});
    request.mutable_options()->set_n_best(n_best);
    expect_bad(request, "options.n_best", "between 1 and the 4 of reranking.hypotheses");
  }
  TranslateRequest narrow = Reranked({"Dog"});
  narrow.mutable_options()->set_beam_size(3);
  expect_bad(narrow, "options.beam_size", "is 3, less than the 4 of reranking.hypotheses");
  TranslateRequest wide = Reranked({"Dog"});
  wide.mutable_options()->set_beam_size(9);
  expect_bad(wide, "options.beam_size", "is 9, it must be between 1 and 8");
  TranslateRequest aligned = Reranked({"Dog"});
  aligned.set_alignments(true);
  expect_bad(aligned, "alignments", "cannot be combined with reranking");
}

TEST(RerankingTest, ThirdLanguageIsRefused) {
  RerankingServer server(RerankingServer::Echo({}, {}));
  test::WriteBundle(server.folder.path() / "de-fr",
                    test::TinyManifest("de-fr", linnet::v1::TASK_TRANSLATE, "de", "fr"));
  ASSERT_TRUE(server.catalog->Reload().ok());
  TranslateRequest request = Reranked({"Dog"});
  request.set_target_language_code("fr");
  const absl::Status status = CheckRequest(request, *server.catalog, {}).status();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument,
                               HasSubstr("reranking cannot be carried through a third language")));
  EXPECT_EQ(Field(status), "reranking");
}

}  // namespace
}  // namespace linnet::server
