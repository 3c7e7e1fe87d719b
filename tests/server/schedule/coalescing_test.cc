// Tests of the batcher: identical sequences share a run, and answers of the cache.
#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "server/cache/answer_cache.h"
#include "tests/server/schedule/batcher_fixture.h"
#include "tests/support/recording_sink.h"
#include "tests/support/search_engine.h"
#include "tests/support/status_matchers.h"

namespace linnet::server {
namespace {

using test::Outcome;
using test::Say;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

using Tokens = std::vector<model::TokenId>;

// The key of a sequence is its source.
std::unique_ptr<Sequence> Keyed(std::unique_ptr<Sequence> sequence) {
  for (const model::TokenId token : sequence->input.source)
    absl::StrAppend(&sequence->key, token, " ");
  return sequence;
}

std::unique_ptr<Sequence> Until(absl::Time deadline, std::unique_ptr<Sequence> sequence) {
  sequence->deadline = deadline;
  return sequence;
}

std::unique_ptr<Sequence> Cancellable(std::shared_ptr<Cancellation> cancelled,
                                      std::unique_ptr<Sequence> sequence) {
  sequence->cancelled = std::move(cancelled);
  return sequence;
}

std::unique_ptr<Sequence> Of(const std::string& client, std::unique_ptr<Sequence> sequence) {
  sequence->caller.client = client;
  return sequence;
}

// Records the stable prefixes as well.
class StreamSink : public test::RecordingSink {
 public:
  StreamSink(Outcome& outcome, std::vector<Tokens>& prefixes)
      : RecordingSink(outcome), prefixes_(prefixes) {}
  void Progress(Tokens stable) override { prefixes_.push_back(std::move(stable)); }

 private:
  std::vector<Tokens>& prefixes_;
};

std::unique_ptr<Sequence> Stream(std::vector<Tokens>& prefixes, Outcome& outcome,
                                 std::unique_ptr<Sequence> sequence) {
  sequence->input.report_stable = true;
  sequence->sink = std::make_unique<StreamSink>(outcome, prefixes);
  return sequence;
}

TEST(CoalescingTest, RunsIdenticalSequencesOnce) {
  BatcherFixture fixture;
  Outcome first, second, third, other;
  fixture.Add(Keyed(Say({5, 6, 7}, first)));
  fixture.Add(Keyed(Say({5, 6, 7}, second)));
  fixture.Add(Keyed(Say({5, 6, 8}, other)));
  StepReport report = fixture.Step();
  EXPECT_EQ(report.sequences, 2);
  EXPECT_EQ(report.coalesced, 1);
  EXPECT_EQ(report.cache_misses, 2);
  fixture.Add(Keyed(Say({5, 6, 7}, third)));  // while it runs
  EXPECT_EQ(fixture.batcher.sequences(), 4);
  int finished = 0;
  while (!fixture.batcher.idle()) finished += fixture.Step().finished;
  EXPECT_EQ(finished, 4);
  EXPECT_THAT(fixture.engine.groups, ElementsAre(2)) << "nothing was encoded twice";
  for (const Outcome* outcome : {&first, &second, &third})
    EXPECT_THAT(outcome->tokens(), ElementsAre(5, 6, 7, 2));
  EXPECT_EQ((*first.result)->origin, ResultOrigin::kEngine);
  EXPECT_EQ((*third.result)->origin, ResultOrigin::kCoalesced);
  EXPECT_GT((*third.result)->times.added, (*first.result)->times.added);
  EXPECT_EQ(fixture.batcher.sequences(), 0);
}

TEST(CoalescingTest, RunsSequencesWithoutAKeySeparately) {
  BatcherFixture fixture;
  Outcome first, second;
  fixture.Add(Say({5, 6, 7}, first));
  fixture.Add(Say({5, 6, 7}, second));
  EXPECT_EQ(fixture.Step().sequences, 2);
  fixture.StepsUntilIdle();
}

TEST(CoalescingTest, ContinuesWhenTheFirstCallerCancels) {
  BatcherFixture fixture;
  Outcome first, second;
  const auto cancelled = std::make_shared<Cancellation>();
  fixture.Add(Keyed(Cancellable(cancelled, Say({5, 6, 7}, first))));
  fixture.Add(Keyed(Say({5, 6, 7}, second)));
  fixture.Step();
  cancelled->Cancel();
  EXPECT_EQ(fixture.Step().cancelled, 1);
  EXPECT_EQ(first.code(), absl::StatusCode::kCancelled);
  const BatchSnapshot snapshot = fixture.batcher.Snapshot(10);
  ASSERT_EQ(snapshot.sequences.size(), 1);
  EXPECT_EQ(snapshot.sequences.front().rows, 1) << "the rows went to the second caller";
  fixture.StepsUntilIdle();
  EXPECT_THAT(second.tokens(), ElementsAre(5, 6, 7, 2));
  EXPECT_EQ(fixture.engine.sizes.size(), 4) << "it did not start again";
}

TEST(CoalescingTest, EndsEachCallerAtItsOwnDeadline) {
  BatcherFixture fixture;
  Outcome soon, later, never;
  const absl::Time now = fixture.now;
  fixture.Add(Keyed(Until(now + absl::Milliseconds(8), Say({5, 6, 7, 8, 9, 10}, soon))));
  fixture.Add(Keyed(Until(now + absl::Milliseconds(14), Say({5, 6, 7, 8, 9, 10}, later))));
  fixture.Add(Keyed(Say({5, 6, 7, 8, 9, 10}, never)));
  while (!soon.done()) fixture.Step();
  EXPECT_EQ(soon.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_FALSE(later.done());
  while (!later.done()) fixture.Step();
  EXPECT_EQ(later.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_FALSE(never.done());
  fixture.StepsUntilIdle();
  EXPECT_THAT(never.tokens(), ElementsAre(5, 6, 7, 8, 9, 10, 2));
}

TEST(CoalescingTest, FreesTheRowsWhenTheLastCallerLeaves) {
  BatcherFixture fixture;
  Outcome first, second;
  const auto cancelled = std::make_shared<Cancellation>();
  fixture.Add(Keyed(Cancellable(cancelled, Say({5, 6, 7}, first))));
  fixture.Add(Keyed(Cancellable(cancelled, Say({5, 6, 7}, second))));
  fixture.Step();
  cancelled->Cancel();
  EXPECT_EQ(fixture.Step().cancelled, 2);
  EXPECT_EQ(fixture.engine.sequences(), 0);
  EXPECT_TRUE(fixture.batcher.idle());
  Outcome again;
  fixture.Add(Keyed(Say({5, 6, 7}, again)));
  fixture.StepsUntilIdle();
  EXPECT_THAT(again.tokens(), ElementsAre(5, 6, 7, 2));
}

TEST(CoalescingTest, StepDoesNotInspectAllThatShareARun) {
  constexpr int kLines = 20'000;
  BatcherFixture fixture;
  const auto call = std::make_shared<Cancellation>(), other = std::make_shared<Cancellation>();
  std::vector<Outcome> outcomes(kLines);
  for (int i = 0; i < kLines; ++i) {
    const absl::Duration left =
        i % 1000 == 1 ? absl::Minutes(1) : absl::Hours(1) + absl::Seconds(i);
    fixture.Add(
        Keyed(Until(fixture.now + left, Cancellable(i % 4 == 0 ? other : call,
                                                    Say({5, 6, 7, 8, 9, 10}, outcomes[i])))));
  }
  EXPECT_EQ(fixture.Step().coalesced, kLines - 1);
  EXPECT_LE(fixture.Step().examined_running, 2) << "one of each call";
  fixture.now += absl::Minutes(2);
  StepReport report = fixture.Step();
  EXPECT_EQ(report.expired, kLines / 1000);
  EXPECT_LE(report.examined_running, kLines / 1000 + 2);
  other->Cancel();  // also the first, which holds the rows
  report = fixture.Step();
  EXPECT_EQ(report.cancelled, kLines / 4);
  EXPECT_LE(report.examined_running, kLines / 4 + 2);
  fixture.StepsUntilIdle();
  EXPECT_EQ(std::count_if(outcomes.begin(), outcomes.end(),
                          [](const Outcome& outcome) { return outcome.result->ok(); }),
            kLines - kLines / 1000 - kLines / 4);
  EXPECT_EQ(fixture.batcher.sequences(), 0);
}

TEST(CoalescingTest, DoesNotWaitBehindTheQueueOfAnotherClient) {
  BatcherFixture fixture({.rows = 1});
  std::vector<Outcome> many(20);
  Outcome last, other;
  for (int i = 0; i < 20; ++i) fixture.Add(Of("many", Keyed(Say({5, 6, 10 + i}, many[i]))));
  fixture.Add(Of("many", Keyed(Say({7}, last))));
  fixture.Step();
  fixture.Add(Of("other", Keyed(Say({7}, other))));
  while (!other.done()) fixture.Step();
  EXPECT_TRUE(last.done()) << "it shares the run";
  EXPECT_LE(std::count_if(many.begin(), many.end(), [](const Outcome& o) { return o.done(); }), 2)
      << "the other client's turn came early";
  fixture.StepsUntilIdle();
}

TEST(CoalescingTest, FailsAllCallersOfAFailedRun) {
  BatcherFixture fixture({.not_a_number = 6});
  Outcome first, second, other;
  fixture.Add(Keyed(Say({5, 6}, first)));
  fixture.Add(Keyed(Say({5, 6}, second)));
  fixture.Add(Keyed(Say({5, 7}, other)));
  int failed = 0;
  while (!fixture.batcher.idle()) failed += fixture.Step().failed;
  EXPECT_EQ(failed, 2);
  EXPECT_EQ(first.code(), absl::StatusCode::kInternal);
  EXPECT_EQ(second.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(other.tokens(), ElementsAre(5, 7, 2));
}

TEST(CoalescingTest, AnswersFromTheCacheOnceASequenceHasFinished) {
  AnswerCache cache(1 << 20, CacheTenant::kShared);
  ModelCache model(cache, "echo");
  BatcherFixture fixture;
  auto cached = [&](std::unique_ptr<Sequence> sequence) {
    sequence->cache = &model;
    return Keyed(std::move(sequence));
  };
  Outcome first, second;
  fixture.Add(cached(Say({5, 6}, first)));
  EXPECT_EQ(cache.stats().entries, 0);
  fixture.StepsUntilIdle();
  EXPECT_EQ(cache.stats().entries, 1);
  fixture.Add(cached(Say({5, 6}, second)));
  EXPECT_TRUE(fixture.batcher.idle());
  EXPECT_THAT(second.tokens(), ElementsAre(5, 6, 2));
  EXPECT_EQ((*second.result)->origin, ResultOrigin::kCache);
  const StepReport report = fixture.batcher.TakeReport();
  EXPECT_EQ(report.cache_hits, 1);
  EXPECT_EQ(report.finished, 1);
}

TEST(CoalescingTest, KeepsNoAnswerOfAFailedOrCancelledSequence) {
  AnswerCache cache(1 << 20, CacheTenant::kShared);
  ModelCache model(cache, "echo");
  BatcherFixture fixture({.not_a_number = 6});
  Outcome failed, stopped;
  auto sequence = Keyed(Say({5, 6}, failed));
  sequence->cache = &model;
  fixture.Add(std::move(sequence));
  const auto cancelled = std::make_shared<Cancellation>();
  sequence = Keyed(Cancellable(cancelled, Say({7, 8}, stopped)));
  sequence->cache = &model;
  fixture.Add(std::move(sequence));
  fixture.Step();
  cancelled->Cancel();
  fixture.StepsUntilIdle();
  EXPECT_EQ(cache.stats().entries, 0);
}

constexpr model::SearchLimits kSearchLimits = {
    .max_beam_size = 8, .max_target_tokens = 30, .max_source_tokens = 64};

// A batcher over real beam searches, for the laws below.
struct SearchFixture {
  test::SearchEngine engine{50, kSearchLimits, /*seed=*/3};
  Batcher batcher{engine, {.max_sequences = 6}};
  absl::Time now = absl::FromUnixSeconds(1'000'000);

  void Step() {
    batcher.Step([this] { return now += absl::Milliseconds(1); });
  }
};

// The result and the stable prefixes of a sequence, as text.
std::string Described(const Outcome& outcome, const std::vector<Tokens>& prefixes) {
  std::string text;
  for (const model::Hypothesis& hypothesis : (*outcome.result)->hypotheses) {
    absl::StrAppend(&text, hypothesis.score, ":");
    for (size_t i = 0; i < hypothesis.tokens.size(); ++i)
      absl::StrAppend(&text, " ", hypothesis.tokens[i], "/", hypothesis.token_scores[i]);
  }
  for (const Tokens& prefix : prefixes) {
    absl::StrAppend(&text, " |");
    for (const model::TokenId token : prefix) absl::StrAppend(&text, " ", token);
  }
  return text;
}

std::unique_ptr<Sequence> Search(int text, std::vector<Tokens>& prefixes, Outcome& outcome,
                                 bool streams) {
  auto sequence = Say({5 + text, 6 + 2 * text % 7, 9}, outcome, /*beam_size=*/4);
  sequence->input.options.n_best = 2;
  sequence->input.options.max_target_tokens = 30;
  sequence->key = absl::StrCat(text);
  if (streams) return Stream(prefixes, outcome, std::move(sequence));
  return sequence;
}

// Under a random load with cancellations and deadlines every sequence ends once, and those that are
// answered have the result and, if they stream, the prefixes of a sequence that runs alone.
TEST(CoalescingTest, GivesTheAnswersAndPrefixesOfASequenceThatRunsAlone) {
  constexpr int kTexts = 12;
  std::map<std::pair<int, bool>, std::string> expected;
  for (int text = 0; text < kTexts; ++text) {
    for (const bool streams : {false, true}) {
      SearchFixture alone;
      Outcome outcome;
      std::vector<Tokens> prefixes;
      auto sequence = Search(text, prefixes, outcome, streams);
      sequence->key.clear();
      ASSERT_THAT(alone.batcher.Add(sequence, alone.now), IsOk());
      while (!alone.batcher.idle()) alone.Step();
      expected[{text, streams}] = Described(outcome, prefixes);
    }
  }
  struct Call {
    int text;
    bool streams;
    std::shared_ptr<Cancellation> cancelled = std::make_shared<Cancellation>();
    bool was_cancelled = false;
    bool deadline = false;
    Outcome outcome;
    std::vector<Tokens> prefixes;
  };
  for (uint32_t seed = 0; seed < 20; ++seed) {
    std::mt19937 random(seed);
    AnswerCache cache(4000, CacheTenant::kShared);
    ModelCache model(cache, "noise");
    std::vector<std::unique_ptr<Call>> calls;
    SearchFixture fixture;
    std::map<ResultOrigin, int> origins;
    for (int step = 0; step < 200 || !fixture.batcher.idle(); ++step) {
      for (int i = static_cast<int>(random() % 4); i > 0 && step < 200; --i) {
        Call& call = *calls.emplace_back(std::make_unique<Call>());
        call.text = static_cast<int>(std::min(random() % kTexts, random() % kTexts));
        call.streams = random() % 2 == 0;
        auto sequence = Search(call.text, call.prefixes, call.outcome, call.streams);
        sequence->cache = &model;
        sequence->cancelled = call.cancelled;
        sequence->caller = {.client = absl::StrCat(random() % 3),
                            .priority = static_cast<Priority>(random() % 3),
                            .call = 1 + random() % 6};
        if (random() % 4 == 0) {
          call.deadline = true;
          sequence->deadline = fixture.now + absl::Milliseconds(random() % 60);
        }
        ASSERT_THAT(fixture.batcher.Add(sequence, fixture.now), IsOk());
      }
      if (!calls.empty() && random() % 3 == 0) {
        Call& call = *calls[random() % calls.size()];
        call.was_cancelled |= !call.outcome.done();
        call.cancelled->Cancel();
      }
      fixture.Step();
    }
    EXPECT_EQ(fixture.engine.sequences(), 0);
    EXPECT_EQ(fixture.batcher.sequences(), 0);
    for (const auto& call : calls) {
      ASSERT_TRUE(call->outcome.done());
      if (call->outcome.result->ok()) {
        ++origins[(*call->outcome.result)->origin];
        EXPECT_EQ(Described(call->outcome, call->prefixes), (expected[{call->text, call->streams}]))
            << "seed " << seed;
      } else if (call->outcome.code() == absl::StatusCode::kCancelled) {
        EXPECT_TRUE(call->was_cancelled);
      } else {
        EXPECT_EQ(call->outcome.code(), absl::StatusCode::kDeadlineExceeded);
        EXPECT_TRUE(call->deadline);
      }
    }
    EXPECT_EQ(origins.size(), 3) << "from the engine, another's run and the cache";
    EXPECT_GT(cache.stats().evictions, 0);
  }
}

}  // namespace
}  // namespace linnet::server
