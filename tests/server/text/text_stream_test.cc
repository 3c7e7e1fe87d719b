#include <string>
#include <thread>
#include <vector>

#include "model/runtime/text/segmenter.h"
#include "server/base/monotonic.h"
#include "server/text/part_queue.h"
#include "server/text/part_writer.h"
#include "server/text/text_call.h"
#include "server/text/text_preparer.h"
#include "tests/server/text/text_fixture.h"
#include "tests/support/search_engine.h"

namespace linnet::server {
namespace {

using linnet::v1::SummarizeResponse;
using linnet::v1::TextPart;
using linnet::v1::TranslateRequest;
using linnet::v1::TranslateResponse;

constexpr int kTinyPieces = 400;

Catalog::EngineFactory Noise(uint64_t seed) {
  return [seed](const model::Bundle&) {
    return std::make_unique<test::SearchEngine>(kTinyPieces, kTinyLimits, seed);
  };
}

TranslateResponse WithoutTimings(TranslateResponse response) {
  response.clear_timings();
  return response;
}

TEST(TextStreamTest, PartsOfRandomSearchesEqualUnaryAnswer) {
  int segments = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    TextFixture fixture(Noise(seed));
    TranslateRequest request =
        ToGerman({" A bird sings.  The dog runs.\n\nShe writes. ", "Last one."});
    request.mutable_options()->set_beam_size(1 + static_cast<int>(seed % 6));
    request.mutable_options()->set_n_best(1);
    request.mutable_options()->set_max_target_tokens(static_cast<int>(seed % 4) * 9 + 3);
    if (seed % 3 == 0) request.mutable_options()->set_length_penalty(0);
    request.set_word_scores(seed % 2 == 0);
    TranslateResponse unary;
    ASSERT_THAT(fixture.Call(&TextCalls::Translate, request, unary), IsOk());
    const Received received = Stream(*fixture.calls, request);
    ASSERT_THAT(received.status, IsOk());
    EXPECT_EQ(WithoutTimings(received.response).SerializeAsString(),
              WithoutTimings(unary).SerializeAsString());
    for (int i = 0; i < unary.translations_size(); ++i)
      EXPECT_EQ(received.text(i), unary.translations(i).text()) << "seed " << seed;
    std::pair place = {0, 0};
    for (const TextPart& part : received.parts) {
      EXPECT_LE(place, std::pair(part.content_index(), part.segment_index())) << "in order";
      EXPECT_EQ(model::FirstInvalidUtf8(part.text()), -1);
      place = {part.content_index(), part.segment_index()};
      if (part.has_segment()) {
        const auto& whole = unary.translations(part.content_index()).segments(part.segment_index());
        EXPECT_EQ(part.segment().SerializeAsString(), whole.SerializeAsString());
        ++segments;
      } else {
        EXPECT_NE(part.text(), "");
      }
    }
    EXPECT_EQ(fixture.admission.tokens(), 0);
  }
  EXPECT_EQ(segments, 60 * 4) << "each segment is closed once";
}

TEST(TextStreamTest, SendsTextDuringDecoding) {
  test::Notification received_some;
  std::atomic<int> steps = -100;
  TextFixture fixture({.on_step = [&] {
    if (++steps == 5) received_some.Pass();  // this step has not produced a token yet
  }});
  steps = 0;
  TranslateResponse response;
  std::string text;
  test::Notification done;
  const TranslateRequest request = ToGerman({"The dog runs through the garden."});
  fixture.calls->StreamTranslate(
      request, response, {.arrived = absl::Now()},
      [&](const TextPart& part) {
        text += part.text();
        EXPECT_THAT(request.contents(0), ::testing::StartsWith(text));
        if (!part.text().empty()) received_some.Open();
      },
      [&](const absl::Status& status) {
        EXPECT_THAT(status, IsOk());
        done.Open();
      });
  done.Pass();
  EXPECT_GT(steps, 5);
  EXPECT_EQ(text, request.contents(0));
}

TEST(TextStreamTest, StreamsSummaries) {
  TextFixture fixture(Noise(5));
  const auto request = SummaryOf("A bird sings. The dog runs.");
  SummarizeResponse unary, streamed;
  ASSERT_THAT(fixture.Call(&TextCalls::Summarize, request, unary), IsOk());
  std::string text;
  test::Notification done;
  fixture.calls->StreamSummarize(
      request, streamed, {.arrived = absl::Now()}, [&](TextPart part) { text += part.text(); },
      [&](const absl::Status& status) {
        EXPECT_THAT(status, IsOk());
        done.Open();
      });
  done.Pass();
  EXPECT_EQ(text, unary.summaries(0).text());
  EXPECT_EQ(streamed.summaries(0).text(), text);
}

TEST(TextStreamTest, UnaryCallsComputeNoStablePrefixes) {
  std::atomic<bool> asked = false;
  struct Watching : test::EchoEngine {
    explicit Watching(std::atomic<bool>& asked)
        : EchoEngine({.limits = kTinyLimits}), asked(asked) {}
    absl::Status Add(std::span<const model::SequenceInput> inputs) override {
      for (const auto& input : inputs) asked = asked || input.report_stable;
      return EchoEngine::Add(inputs);
    }
    std::atomic<bool>& asked;
  };
  TextFixture fixture([&](const model::Bundle&) { return std::make_unique<Watching>(asked); });
  TranslateResponse response;
  ASSERT_THAT(fixture.Call(&TextCalls::Translate, ToGerman({"A bird sings."}), response), IsOk());
  EXPECT_FALSE(asked);
  EXPECT_THAT(Stream(*fixture.calls, ToGerman({"A bird sings."})).status, IsOk());
  EXPECT_TRUE(asked);
}

TEST(TextStreamTest, FailedStreamEndsOnceWithoutResponse) {
  TextFixture fixture({.not_a_number = [] {
    TextFixture other;
    return other.catalog->models()[0]->source_tokenizer->Encode("window")->back();
  }()});
  const Received received =
      Stream(*fixture.calls, ToGerman({"A bird sings.", "Please open the window"}));
  EXPECT_EQ(received.status.code(), absl::StatusCode::kInternal);
  EXPECT_EQ(received.response.translations_size(), 0);
  EXPECT_EQ(fixture.admission.tokens(), 0);
}

TEST(TextStreamTest, RefusesBadRequestBeforeAnyPart) {
  TextFixture fixture;
  const Received received = Stream(*fixture.calls, ToGerman({""}));
  EXPECT_EQ(received.status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(received.parts.empty());
}

TEST(TextStreamTest, CancelEndsTheStreamOnce) {
  StepGate gate;
  TextFixture fixture({.on_step = [&] { gate.Step(); }});
  gate.armed = true;
  const CallContext context{.arrived = absl::Now()};
  std::atomic<int> ends = 0;
  absl::Status status;
  TranslateResponse response;
  test::Notification done;
  const TranslateRequest request = ToGerman({"The dog runs through the garden.", "A bird sings."});
  fixture.calls->StreamTranslate(
      request, response, context, [](const TextPart&) {},
      [&](absl::Status result) {
        status = std::move(result);
        ++ends;
        done.Open();
      });
  gate.in_step.Pass();
  context.cancelled->Cancel();
  gate.go_on.Open();
  done.Pass();
  fixture.calls->Drain(MonotonicTime::max());
  EXPECT_EQ(ends, 1);
  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled);
}

TEST(TextStreamTest, ConcurrentStreamsGetTheirOwnParts) {
  TextFixture fixture(Noise(3));
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 8; ++i) {
        const TranslateRequest request =
            ToGerman({absl::StrCat("Thread ", t, " says.\n", i, " times.")});
        CallContext context{.arrived = absl::Now()};
        if (i % 4 == 3) context.cancelled->Cancel();
        const Received received = Stream(*fixture.calls, request, context);
        if (i % 4 == 3) {
          EXPECT_EQ(received.status.code(), absl::StatusCode::kCancelled);
        } else {
          EXPECT_EQ(received.text(0), received.response.translations(0).text());
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(fixture.admission.tokens(), 0);
}

TEST(PartQueueTest, MergesPartsOfOneSegmentOnly) {
  PartQueue queue;
  const auto push = [&](int content, int segment, std::string text, bool last) {
    TextPart part;
    part.set_content_index(content);
    part.set_segment_index(segment);
    part.set_text(std::move(text));
    if (last) part.mutable_segment()->set_score(segment);
    queue.Push(std::move(part));
  };
  push(0, 0, "Ein ", false);
  push(0, 0, "Hund", false);
  push(0, 0, " läuft.", true);
  push(0, 1, " Er", false);
  push(1, 1, "Sie", false);
  auto first = queue.Pop();
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(first->text(), "Ein Hund läuft.");
  EXPECT_TRUE(first->has_segment());
  EXPECT_EQ(queue.Pop()->text(), " Er");
  EXPECT_EQ(queue.Pop()->text(), "Sie");
  EXPECT_FALSE(queue.Pop().has_value());
}

TEST(PartWriterTest, RejectsResultThatRevisesSentText) {
  TextFixture fixture;
  const TranslateRequest request = ToGerman({"The dog runs."});
  const auto checked = CheckRequest(request, *fixture.catalog, {});
  ASSERT_THAT(checked, IsOk());
  std::vector<DecodedText> texts = {
      {*PrepareText(*checked, checked->items[0], /*glossary=*/nullptr,
                    {.hold = [](int64_t) { return absl::OkStatus(); }}),
       std::vector<SequenceResult>(1)}};
  PartWriter writer(*checked, texts);
  const model::Tokenizer& tokenizer = *checked->model->target_tokenizer;
  const auto sent = *tokenizer.Encode("A bird");
  EXPECT_EQ(writer.Stable(sent)->text(), "A bird");
  EXPECT_FALSE(writer.Stable(*tokenizer.Encode("A dog and a bird")).has_value()) << "held back";
  model::Hypothesis& best = texts[0].results[0].hypotheses.emplace_back();
  best.tokens = *tokenizer.Encode("The dog");
  EXPECT_EQ(writer.Done().status().code(), absl::StatusCode::kInternal);
  best.tokens = *tokenizer.Encode("A bird sings");
  auto last = writer.Done();
  ASSERT_THAT(last, IsOk());
  EXPECT_EQ(last->text(), " sings");
  EXPECT_TRUE(writer.finished());
}

}  // namespace
}  // namespace linnet::server
