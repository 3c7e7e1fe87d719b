// Tests of calls on a server with an answer cache.
#include <atomic>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/cache/answer_cache.h"
#include "server/text/text_call.h"
#include "tests/server/text/text_fixture.h"
#include "tests/support/search_engine.h"

namespace linnet::server {
namespace {

using linnet::v1::ScoreRequest;
using linnet::v1::ScoreResponse;
using linnet::v1::TextPart;
using linnet::v1::TranslateRequest;
using linnet::v1::TranslateResponse;
using ::testing::HasSubstr;

constexpr int64_t kManyBytes = 1 << 20;

// A server whose engines count the sequences that they decode.
struct CountingServer {
  explicit CountingServer(CacheTenant tenant = CacheTenant::kShared, int64_t bytes = kManyBytes)
      : cache(bytes, tenant), fixture(Factory(), {}, {}, {}, absl::InfiniteDuration(), &cache) {
    added = 0;  // those of the warm-up
  }

  struct Engine : test::SearchEngine {
    explicit Engine(std::atomic<int>& added)
        : SearchEngine(/*vocabulary_size=*/400, kTinyLimits, /*seed=*/7), added(added) {}
    absl::Status Add(std::span<const model::SequenceInput> inputs) override {
      added += static_cast<int>(inputs.size());
      return SearchEngine::Add(inputs);
    }
    std::atomic<int>& added;
  };
  Catalog::EngineFactory Factory() {
    return [this](const model::Bundle&) { return std::make_unique<Engine>(added); };
  }
  TranslateResponse Ask(const TranslateRequest& request, const std::string& client = "") {
    TranslateResponse response;
    CallContext context{.arrived = absl::Now()};
    context.caller.client = client;
    EXPECT_THAT(fixture.Call(&TextCalls::Translate, request, response, context), IsOk());
    response.clear_timings();
    return response;
  }

  std::atomic<int> added = 0;
  AnswerCache cache;
  TextFixture fixture;
};

TEST(AnswerCacheCallsTest, DecodesARepeatedTextOnce) {
  CountingServer server;
  const TranslateRequest request = ToGerman({"A bird sings. The dog runs.", "She writes"});
  const std::string first = server.Ask(request).SerializeAsString();
  EXPECT_EQ(server.added, 3);
  EXPECT_EQ(server.Ask(request).SerializeAsString(), first);
  EXPECT_EQ(server.added, 3);
  server.Ask(ToGerman({"The dog runs. A bird sings."}));
  EXPECT_EQ(server.added, 3) << "sentences are cached, not texts";
  EXPECT_THAT(server.fixture.metrics.Text(),
              HasSubstr("linnet_answer_cache_hits_total{model=\"en-de\"} 5\n"));
  EXPECT_THAT(server.fixture.metrics.Text(),
              HasSubstr("linnet_answer_cache_misses_total{model=\"en-de\"} 3\n"));
}

TEST(AnswerCacheCallsTest, DecodesAnewWithOtherOptions) {
  CountingServer server;
  TranslateRequest request = ToGerman({"A bird sings."});
  server.Ask(request);
  request.mutable_options()->set_beam_size(3);
  server.Ask(request);
  request.set_alignments(true);
  server.Ask(request);
  EXPECT_EQ(server.added, 3);
}

TEST(AnswerCacheCallsTest, CachesSamplesOnlyIfTheRequestAsksForIt) {
  CountingServer server;
  TranslateRequest request = ToGerman({"A bird sings."});
  request.mutable_options()->set_seed(4);
  request.mutable_options()->set_top_k(5);
  for (int i = 0; i < 2; ++i) server.Ask(request);
  EXPECT_EQ(server.added, 2);
  request.set_use_cache(true);
  for (int i = 0; i < 2; ++i) server.Ask(request);
  EXPECT_EQ(server.added, 3);
}

TEST(AnswerCacheCallsTest, NeitherReadsNorKeepsAnswersIfTheRequestForbidsIt) {
  CountingServer server;
  TranslateRequest request = ToGerman({"A bird sings."});
  request.set_use_cache(false);
  for (int i = 0; i < 2; ++i) server.Ask(request);
  EXPECT_EQ(server.added, 2);
  EXPECT_EQ(server.cache.stats().entries, 0);
  request.clear_use_cache();
  server.Ask(request);
  EXPECT_EQ(server.added, 3);
}

TEST(AnswerCacheCallsTest, SharesAnswersAmongTenantsAsSet) {
  CountingServer separate(CacheTenant::kToken), shared(CacheTenant::kShared);
  const TranslateRequest request = ToGerman({"A bird sings."});
  for (CountingServer* server : {&separate, &shared}) {
    for (const char* client : {"subject:a", "subject:b", "subject:a"}) server->Ask(request, client);
  }
  EXPECT_EQ(separate.added, 2);
  EXPECT_EQ(shared.added, 1);
}

TEST(AnswerCacheCallsTest, AdmitsAHitWithoutWork) {
  // The server admits one sentence at a time.
  AnswerCache cache(kManyBytes, CacheTenant::kShared);
  test::Notification in_step, go_on;
  std::atomic<bool> armed = false;
  TextFixture fixture(
      [&](const model::Bundle&) {
        return std::make_unique<test::EchoEngine>(
            test::EchoEngine::Options{.limits = kTinyLimits, .on_step = [&] {
                                        if (!armed) return;
                                        in_step.Open();
                                        go_on.Pass();
                                      }});
      },
      {.max_tokens = 1200}, {}, {}, absl::InfiniteDuration(), &cache);
  const auto costly = [](const char* text) {  // more than 640 tokens
    TranslateRequest request = ToGerman({text});
    request.mutable_options()->set_beam_size(8);
    request.mutable_options()->set_min_target_tokens(80);
    request.mutable_options()->set_max_target_tokens(80);
    return request;
  };
  const TranslateRequest known = costly("A bird sings."), other = costly("The dog runs.");
  TranslateResponse response;
  ASSERT_THAT(fixture.Call(&TextCalls::Translate, known, response), IsOk());
  armed = true;
  TranslateResponse slow_response;
  test::Notification slow_done;
  fixture.calls->Translate(other, slow_response, {.arrived = absl::Now()},
                           [&](const absl::Status&) { slow_done.Open(); });
  in_step.Pass();
  const auto ask = [&](const TranslateRequest& request) {
    absl::Status result;
    test::Notification done;
    fixture.calls->Translate(request, response, {.arrived = absl::Now()}, [&](absl::Status status) {
      result = std::move(status);
      done.Open();
    });
    done.Pass();
    return result;
  };
  EXPECT_THAT(ask(known), IsOk());
  EXPECT_EQ(ask(costly("Please open the window.")).code(), absl::StatusCode::kResourceExhausted);
  go_on.Open();
  slow_done.Pass();
}

TEST(AnswerCacheCallsTest, StreamsTheSamePartsFromTheCache) {
  CountingServer server;
  const TranslateRequest request = ToGerman({" A bird sings.  The dog runs.\n", "She writes."});
  struct Received {
    std::vector<std::string> texts;  // of each segment: its parts, merged
    std::vector<std::string> parts;
    std::string response;
  };
  const auto stream = [&] {
    Received received;
    TranslateResponse response;
    test::Notification done;
    server.fixture.calls->StreamTranslate(
        request, response, {.arrived = absl::Now()},
        [&](const TextPart& part) {
          received.parts.push_back(part.SerializeAsString());
          const size_t segment = part.content_index() * 2 + part.segment_index();
          received.texts.resize(std::max(received.texts.size(), segment + 1));
          received.texts[segment] += part.text();
        },
        [&](const absl::Status& status) {
          EXPECT_THAT(status, IsOk());
          done.Open();
        });
    done.Pass();
    response.clear_timings();
    received.response = response.SerializeAsString();
    return received;
  };
  const Received first = stream();
  EXPECT_EQ(server.added, 3);
  const Received second = stream(), third = stream();
  EXPECT_EQ(server.added, 3);
  EXPECT_EQ(second.texts, first.texts);
  EXPECT_EQ(second.response, first.response);
  EXPECT_EQ(third.parts, second.parts);
  // A text pool that is behind merges parts of a running search, never those of the cache.
  EXPECT_GE(second.parts.size(), first.parts.size());
  EXPECT_EQ(first.response, server.Ask(request).SerializeAsString());
}

TEST(AnswerCacheCallsTest, AReloadErasesTheAnswers) {
  CountingServer server;
  const TranslateRequest request = ToGerman({"A bird sings."});
  server.Ask(request);
  EXPECT_TRUE(server.fixture.catalog->Reload("en-summary").ok());
  EXPECT_EQ(server.cache.stats().entries, 1) << "another model";
  EXPECT_TRUE(server.fixture.catalog->Reload().ok());
  EXPECT_EQ(server.cache.stats().entries, 0);
  server.Ask(request);
  EXPECT_EQ(server.cache.stats().entries, 1) << "the same model is still served";
  auto changed = test::TinyManifest("en-de", linnet::v1::TASK_TRANSLATE, "en", "de");
  changed.set_version("other");
  test::WriteBundle(server.fixture.folder.path() / "en-de", changed);
  EXPECT_TRUE(server.fixture.catalog->Reload().ok());
  EXPECT_EQ(server.cache.stats().entries, 0);
  EXPECT_EQ(server.Ask(request).model_version(), "other");
}

TEST(AnswerCacheCallsTest, AnEngineWithoutBatchInvarianceIsRefused) {
  test::TemporaryFolder folder;
  TextFixture::WriteBundles(folder.path());
  Metrics metrics;
  const auto factory = [](const model::Bundle&) {
    return std::make_unique<test::EchoEngine>(
        test::EchoEngine::Options{.limits = kTinyLimits, .batch_invariant = false});
  };
  AnswerCache cache(kManyBytes, CacheTenant::kShared);
  const auto refused =
      Catalog::Load(folder.path(), factory, {}, metrics, nullptr, 0, {}, {}, &cache);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(refused.status().message(), HasSubstr("an engine on echo in none"));
  EXPECT_THAT(Catalog::Load(folder.path(), factory, {}, metrics), IsOk());
}

// Callers with few texts and many options, all at once. Every reply is that of a server without a
// cache, byte for byte.
TEST(AnswerCacheCallsTest, RepliesAreThoseOfAServerWithoutACache) {
  const std::vector<std::string> texts = {"A bird sings.", "The dog runs. A bird sings.",
                                          "She writes a letter", "Please open the window.",
                                          "  The dog runs.  "};
  const auto random_request = [&](std::mt19937& random) {
    TranslateRequest request = ToGerman({});
    for (unsigned i = 1 + random() % 2; i > 0; --i) request.add_contents(texts[random() % 5]);
    request.mutable_options()->set_beam_size(1 + static_cast<int>(random() % 3));
    if (random() % 3 == 0) request.set_word_scores(true);
    if (random() % 3 == 0) request.mutable_options()->set_n_best(1);
    return request;
  };
  TextFixture plain([](const model::Bundle&) {
    return std::make_unique<test::SearchEngine>(400, kTinyLimits, 7);
  });
  CountingServer server(CacheTenant::kToken, /*bytes=*/12'000);
  std::atomic<int> replies = 0;
  std::vector<std::thread> threads;
  for (unsigned caller = 0; caller < 4; ++caller) {
    threads.emplace_back([&, caller] {
      std::mt19937 random(caller);
      for (int i = 0; i < 60; ++i) {
        const TranslateRequest request = random_request(random);
        const auto ask = [&](TextCalls& calls) {
          TranslateResponse response;
          CallContext context{.arrived = absl::Now()};
          context.caller.client = absl::StrCat(caller % 2);
          test::Notification done;
          calls.Translate(request, response, context, [&](const absl::Status& status) {
            EXPECT_THAT(status, IsOk());
            done.Open();
          });
          done.Pass();
          response.clear_timings();
          return response.SerializeAsString();
        };
        EXPECT_EQ(ask(*server.fixture.calls), ask(*plain.calls)) << request.ShortDebugString();
        ++replies;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(replies, 240);
  EXPECT_LT(server.added, 240) << "most were not decoded";
  EXPECT_GT(server.cache.stats().evictions, 0);
}

}  // namespace
}  // namespace linnet::server
