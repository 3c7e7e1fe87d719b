// Simulation of admission, fair queue and batcher on a virtual clock with clients whose load
// exceeds the capacity.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "server/admission/admission.h"
#include "server/metrics/metrics.h"
#include "server/schedule/batcher.h"
#include "tests/support/echo_engine.h"
#include "tests/support/status_matchers.h"

namespace linnet::server {
namespace {

// Sentences of 8 to 24 tokens at beam 5 in 80 rows: 16 at a time, 125 per second.
constexpr int kRows = 80;
constexpr int kBeam = 5;
constexpr absl::Duration kFullStep = absl::Milliseconds(8);
constexpr absl::Duration kDeadline = absl::Seconds(2);

struct Client {
  std::string name;
  double calls_per_second = 0;  // Poisson arrivals
  int at_once = 1;              // calls per arrival
  absl::Duration deadline = kDeadline;
  int min_tokens = 8, max_tokens = 24;
  int more_tokens = 10;  // of a target that is as long as it may be than twice those of its source
  absl::Duration begin = absl::ZeroDuration(), end = absl::InfiniteDuration();
  // Outcomes of the calls that arrived in the measured time.
  int offered = 0, refused = 0, answered = 0, late = 0;
  double work = 0;  // of the answered calls
  // Counts for the shorter and for the longer half of the sentences.
  int offered_of[2] = {}, answered_of[2] = {};
};

class Overload {
 public:
  Overload(std::vector<Client> clients, uint32_t seed,
           const AdmissionLimits& limits = {.max_tokens = 10'000'000})
      : clients_(std::move(clients)), random_(seed), admission_(limits, metrics_) {
    for (Client& client : clients_) next_.emplace(Next(client, kStart + client.begin), &client);
  }

  // Reports steps like those of WarmUp: of one sequence, and of as many as the engine has rows for.
  // The machine may have so little time for the latter that they take `slowdown` times as long.
  void WarmUp(double slowdown = 1) {
    for (const int rows : {kBeam, kRows}) {
      const absl::Duration step =
          kFullStep * (0.5 + 0.5 * rows / kRows) * (rows == kRows ? slowdown : 1);
      for (int i = 0; i < 16; ++i) {
        admission_.StepMade("model",
                            {.rows = rows,
                             .finished_tokens = i == 15 ? 16 + 42 : 0,
                             .finished_steps = i == 15 ? 16 : 0,
                             .rows_limit = kRows,
                             .stepped = true,
                             .ended = kStart},
                            step);
      }
    }
  }

  // Every step that begins in this time takes so many times as long.
  void Slow(absl::Duration begin, absl::Duration end, double slowdown) {
    slow_from_ = kStart + begin;
    slow_until_ = kStart + end;
    slowdown_ = slowdown;
  }

  // Runs clients for this long; calls of the first part are not measured.
  const std::vector<Client>& Run(absl::Duration warm_up, absl::Duration time) {
    counts_from_ = kStart + warm_up;
    const absl::Time end = counts_from_ + time;
    while (now_ < end || !batcher_.idle()) {
      for (; !next_.empty() && next_.begin()->first <= std::min(now_, end);
           next_.erase(next_.begin())) {
        Client& client = *next_.begin()->second;
        const absl::Time time = next_.begin()->first;
        for (int i = 0; i < client.at_once; ++i) Arrive(client, time);
        if (const absl::Time next = Next(client, time); next < kStart + client.end)
          next_.emplace(next, &client);
      }
      GiveUp();
      const int rows = std::min(kRows, kBeam * (batcher_.waiting() + batcher_.running()));
      // Half of a step is fixed, half in proportion to the rows.
      const absl::Duration cycle = kFullStep * (0.5 + 0.5 * rows / kRows) *
                                   (slow_from_ <= now_ && now_ < slow_until_ ? slowdown_ : 1);
      if (batcher_.idle()) {
        now_ += kFullStep;
        continue;
      }
      bool begun = false;  // at every later reading of the clock the step is over
      const StepReport report = batcher_.Step([&] {
        const absl::Time time = now_;
        if (!std::exchange(begun, true)) now_ += cycle;
        return time;
      });
      admission_.StepMade("model", report, cycle);
    }
    EXPECT_EQ(admission_.tokens(), 0);
    return clients_;
  }

 private:
  static constexpr absl::Time kStart = absl::FromUnixSeconds(1'000'000);

  struct Call {
    Call(Client& client, Permit permit) : client(client), permit(std::move(permit)) {}
    Client& client;
    std::optional<Permit> permit;
    bool counts = false, is_long = false;
    int64_t work = 0;
    std::shared_ptr<Cancellation> cancelled = std::make_shared<Cancellation>();
  };

  // Mirrors the end of a StageRun.
  class CallSink final : public Sink {
   public:
    CallSink(Overload& overload, std::shared_ptr<Call> call)
        : overload_(overload), call_(std::move(call)) {}
    void Done(absl::StatusOr<SequenceResult> result) override {
      call_->permit->Ended(overload_.now_, /*finished=*/result.ok());
      call_->permit.reset();
      if (!call_->counts) return;
      ++(result.ok() ? call_->client.answered : call_->client.late);
      if (!result.ok()) return;
      call_->client.work += static_cast<double>(call_->work);
      ++call_->client.answered_of[call_->is_long];
    }

   private:
    Overload& overload_;
    std::shared_ptr<Call> call_;
  };

  absl::Time Next(const Client& client, absl::Time after) {
    const double even = (static_cast<double>(random_()) + 0.5) / 4294967296.0;
    return after + absl::Seconds(-std::log(even) * client.at_once / client.calls_per_second);
  }

  void Arrive(Client& client, absl::Time time) {
    const bool counts = time >= counts_from_;
    client.offered += counts;
    const auto choices = static_cast<unsigned>(client.max_tokens - client.min_tokens + 1);
    const int tokens = client.min_tokens + static_cast<int>(random_() % choices);
    client.offered_of[tokens > 16] += counts;
    auto sequence = std::make_unique<Sequence>();
    sequence->input.source.assign(tokens, 9);
    sequence->input.source.back() = 2;
    sequence->input.options.beam_size = kBeam;
    sequence->input.options.max_target_tokens = 2 * tokens + client.more_tokens;
    sequence->caller.client = client.name;
    sequence->deadline = time + client.deadline;
    auto permit = admission_.Enter(sequence->caller, 100);
    ASSERT_THAT(permit, IsOk());
    auto call = std::make_shared<Call>(client, *std::move(permit));
    CallWork work = {.model = "model", .size = {}, .deadline = sequence->deadline};
    work.size.Add(sequence->input);
    if (!call->permit->Charge(work, time).ok()) {
      client.refused += counts;
      return;
    }
    call->counts = counts;
    call->is_long = tokens > 16;
    call->work = work.size.tokens;
    sequence->cancelled = call->cancelled;
    // The client's own deadline is a little before the one that it sends.
    in_flight_.emplace(sequence->deadline - absl::Microseconds(random_() % 10000), call);
    sequence->sink = std::make_unique<CallSink>(*this, std::move(call));
    ASSERT_THAT(batcher_.Add(sequence, time), IsOk());
  }

  // Clients cancel calls at their deadline, as gRPC does.
  void GiveUp() {
    while (!in_flight_.empty() && in_flight_.begin()->first <= now_) {
      in_flight_.begin()->second->cancelled->Cancel();
      in_flight_.erase(in_flight_.begin());
    }
  }

  std::vector<Client> clients_;
  std::mt19937 random_;
  absl::Time now_ = kStart;
  absl::Time counts_from_ = kStart;
  absl::Time slow_from_ = absl::InfinitePast(), slow_until_ = absl::InfinitePast();
  double slowdown_ = 1;
  std::multimap<absl::Time, Client*> next_;  // the next arrival of each client
  std::multimap<absl::Time, std::shared_ptr<Call>> in_flight_;
  Metrics metrics_;
  Admission admission_;
  test::EchoEngine engine_{
      {.rows = kRows,
       .limits = {.max_beam_size = kBeam, .max_target_tokens = 400, .max_source_tokens = 100}}};
  Batcher batcher_{engine_, {.shed = {.interval = absl::Seconds(5)}}};
};

TEST(OverloadSimulationTest, TwoClientsGetEqualServiceForUnequalLoad) {
  for (double greedy : {90, 300, 900}) {
    for (uint32_t seed = 1; seed <= 3; ++seed) {
      const auto clients = Overload({{"greedy", greedy}, {"modest", 90}}, seed)
                               .Run(/*warm_up=*/absl::Seconds(6), /*time=*/absl::Seconds(20));
      const double answers[] = {1.0 * clients[0].answered, 1.0 * clients[1].answered};
      // The engine finishes 125 of these sentences per second, and some more of short ones.
      EXPECT_GT(answers[0] + answers[1], 0.95 * 125 * 20) << greedy << ", seed " << seed;
      EXPECT_NEAR(clients[0].work / clients[1].work, 1, 0.1) << greedy << ", seed " << seed;
      EXPECT_NEAR(answers[0] / answers[1], 1, 0.1) << greedy << ", seed " << seed;
    }
  }
}

// Each of them may take 1,790 tokens of work and takes 165; the calls before have taught that.
TEST(OverloadSimulationTest, TenThousandSentencesAtOnceFitIntoTheDefaultLimits) {
  const auto burst = [](std::string name) {
    return Client{.name = std::move(name),
                  .calls_per_second = 1e6,
                  .at_once = 5000,
                  .deadline = absl::Minutes(3),
                  .more_tokens = 310,
                  .begin = absl::Seconds(10),
                  .end = absl::Seconds(10) + absl::Nanoseconds(1)};
  };
  const Client before{
      .name = "before", .calls_per_second = 100, .more_tokens = 310, .end = absl::Seconds(9)};
  Overload overload({before, burst("one"), burst("other")}, /*seed=*/1, AdmissionLimits());
  const auto clients = overload.Run(absl::Seconds(9.5), absl::Seconds(10));
  for (const Client& client : {clients[1], clients[2]}) {
    EXPECT_EQ(client.offered, 5000);
    EXPECT_EQ(client.refused, 0) << "by admission";
  }
  // Nothing is shed, since no calls come while they are worked off.
  EXPECT_EQ(clients[1].answered + clients[2].answered, 10'000);
}

TEST(OverloadSimulationTest, LightClientGetsAllItNeedsAndOthersTheRest) {
  for (uint32_t seed = 1; seed <= 3; ++seed) {
    const auto clients = Overload({{"greedy", 900}, {"modest", 30}, {"other", 200}}, seed)
                             .Run(/*warm_up=*/absl::Seconds(6), /*time=*/absl::Seconds(20));
    EXPECT_GT(clients[1].answered, 0.98 * clients[1].offered) << "seed " << seed;
    EXPECT_NEAR(clients[0].work / clients[2].work, 1, 0.1) << "seed " << seed;
  }
}

TEST(OverloadSimulationTest, EstimateExpectsOthersToKeepSending) {
  for (uint32_t seed = 1; seed <= 3; ++seed) {
    const auto clients = Overload({{"greedy", 900}, {"modest", 72}}, seed)
                             .Run(/*warm_up=*/absl::Seconds(6), /*time=*/absl::Seconds(20));
    EXPECT_LT(clients[0].late, 0.01 * clients[0].answered) << "seed " << seed;
    EXPECT_NEAR(clients[0].work / clients[1].work, 1, 0.1) << "seed " << seed;
  }
}

TEST(OverloadSimulationTest, FewAdmittedCallsAreLateIfClientsCancel) {
  for (double offered : {150, 400, 1000}) {
    int late = 0, answered = 0;
    for (uint32_t seed = 1; seed <= 3; ++seed) {
      const auto clients = Overload({{"one", offered}}, seed)
                               .Run(/*warm_up=*/absl::Seconds(6), /*time=*/absl::Seconds(20));
      late += clients[0].late;
      answered += clients[0].answered;
    }
    EXPECT_LT(late, 0.01 * answered) << offered;
  }
}

TEST(OverloadSimulationTest, LongSentencesAreAdmittedAsOftenAsShortOnes) {
  for (double offered : {200, 400, 1000}) {
    double share[2] = {};
    for (uint32_t seed = 1; seed <= 3; ++seed) {
      const auto clients = Overload({{"one", offered}}, seed)
                               .Run(/*warm_up=*/absl::Seconds(6), /*time=*/absl::Seconds(20));
      for (int i : {0, 1}) share[i] += 1.0 * clients[0].answered_of[i] / clients[0].offered_of[i];
    }
    EXPECT_NEAR(share[1] / share[0], 1, 0.2) << offered;
  }
}

TEST(OverloadSimulationTest, BurstOnIdleEngineAdmitsWhatMeetsItsDeadline) {
  for (int at_once : {400, 2000}) {
    int late = 0, answered = 0, bursts = 0;
    for (uint32_t seed = 1; seed <= 3; ++seed) {
      const auto clients = Overload({{"one", at_once / 20.0, at_once}}, seed)
                               .Run(/*warm_up=*/absl::Seconds(100), /*time=*/absl::Seconds(400));
      late += clients[0].late;
      answered += clients[0].answered;
      bursts += clients[0].offered / at_once;
    }
    EXPECT_LT(late, 0.01 * answered) << at_once;
    EXPECT_GT(answered, bursts * 0.65 * 125 * absl::ToDoubleSeconds(kDeadline)) << at_once;
  }
}

TEST(OverloadSimulationTest, BurstInFirstSecondAdmitsWhatMeetsItsDeadline) {
  for (int at_once : {400, 2000}) {
    int late = 0, answered = 0;
    for (uint32_t seed = 1; seed <= 3; ++seed) {
      Overload overload({{.name = "one",
                          .calls_per_second = 1e6,
                          .at_once = at_once,
                          .end = absl::Nanoseconds(1)}},
                        seed);
      overload.WarmUp();
      const auto clients = overload.Run(absl::ZeroDuration(), absl::Seconds(10));
      EXPECT_EQ(clients[0].offered, at_once);
      late += clients[0].late;
      answered += clients[0].answered;
    }
    EXPECT_LE(late, 0.01 * answered) << at_once;
    EXPECT_GT(answered, 3 * 0.65 * 125 * absl::ToDoubleSeconds(kDeadline)) << at_once;
  }
}

// A sentence of three tokens takes 13 ms on an idle engine. Step costs of a full engine would give
// an estimate of 42 ms.
Client Hurried(absl::Duration begin) {
  return {.name = "hurried",
          .calls_per_second = 20,
          .deadline = absl::Milliseconds(40),
          .min_tokens = 3,
          .max_tokens = 3,
          .begin = begin,
          .end = begin + absl::Seconds(23)};
}

TEST(OverloadSimulationTest, IdleEngineMeetsShortDeadlinesAfterAnyBatch) {
  for (const absl::Duration pause : {absl::Seconds(1), absl::Minutes(1), absl::Hours(10)}) {
    for (uint32_t seed = 1; seed <= 3; ++seed) {
      const Client batch{.name = "batch",
                         .calls_per_second = 2000,
                         .at_once = 2000,
                         .deadline = absl::InfiniteDuration(),
                         .end = absl::Milliseconds(1)};
      const absl::Duration begin = absl::Seconds(30) + pause;
      const auto clients = Overload({batch, Hurried(begin)}, seed)
                               .Run(/*warm_up=*/begin, /*time=*/absl::Seconds(25));
      EXPECT_GT(clients[1].offered, 350) << "seed " << seed;
      EXPECT_GE(clients[1].answered, 0.95 * clients[1].offered) << pause << ", seed " << seed;
    }
  }
}

TEST(OverloadSimulationTest, ShortDeadlinesAreMetAgainAfterASlowPeriod) {
  for (const absl::Duration pause : {absl::ZeroDuration(), absl::Minutes(1), absl::Hours(10)}) {
    for (uint32_t seed = 1; seed <= 3; ++seed) {
      Client hurried = Hurried(absl::ZeroDuration());
      hurried.end = absl::Minutes(1) + pause + absl::Seconds(60);
      Client others{.name = "others", .calls_per_second = 5, .end = absl::Minutes(1)};
      if (pause > absl::Minutes(2)) hurried.begin = absl::Minutes(1) + pause;
      Overload overload({hurried, others}, seed);
      overload.Slow(absl::ZeroDuration(), absl::Minutes(1), /*slowdown=*/10);
      // Only probes correct the estimate: half a minute of them suffices.
      const auto clients =
          overload.Run(absl::Minutes(1) + pause + absl::Seconds(30), absl::Seconds(30));
      EXPECT_GT(clients[0].offered, 450) << "seed " << seed;
      EXPECT_GE(clients[0].answered, 0.95 * clients[0].offered)
          << clients[0].refused << " refused, " << clients[0].late << " late, " << pause
          << ", seed " << seed;
    }
  }
}

// A stretch in which the process gets a hundredth of the machine, in traffic or after a pause.
TEST(OverloadSimulationTest, FewCallsAreRefusedAfterTheProcessHadNoTime) {
  struct Case {
    absl::Duration deadline, stretch;
    double calls_per_second;
    int tokens;
  };
  for (const auto& [deadline, stretch, calls_per_second, tokens] :
       {Case{absl::Seconds(2), absl::Seconds(10), 1, 16},
        Case{absl::Seconds(2), absl::Seconds(10), 20, 16},
        Case{absl::Seconds(10), absl::Seconds(10), 20, 16},
        Case{absl::Minutes(5), absl::Minutes(6), 0.2, 60}}) {
    for (const bool pause : {false, true}) {
      for (uint32_t seed = 1; seed <= 3; ++seed) {
        const absl::Duration begin = absl::Minutes(1), end = begin + stretch;
        Overload overload({{.name = "one",
                            .calls_per_second = calls_per_second,
                            .deadline = deadline,
                            .min_tokens = tokens,
                            .max_tokens = tokens,
                            .begin = pause ? begin : absl::ZeroDuration()}},
                          seed);
        overload.WarmUp();
        overload.Slow(begin, end, /*slowdown=*/100);
        const auto clients = overload.Run(end, absl::Minutes(1));
        EXPECT_LE(clients[0].refused + clients[0].late, 3 + calls_per_second)
            << "of " << clients[0].offered << ", deadline " << deadline << ", pause " << pause
            << ", seed " << seed;
      }
    }
  }
}

// The machine had no time for the process while it measured full steps at its start. A call beside
// others, in steps of a size that has not been measured, does not pay for that.
TEST(OverloadSimulationTest, FewCallsAreRefusedAfterAWarmUpWithoutTime) {
  for (const absl::Duration deadline : {absl::Seconds(2), absl::Seconds(10)}) {
    for (uint32_t seed = 1; seed <= 3; ++seed) {
      Overload overload({{.name = "one", .calls_per_second = 20, .deadline = deadline}}, seed);
      overload.WarmUp(/*slowdown=*/1000);
      const auto clients = overload.Run(absl::ZeroDuration(), absl::Minutes(1));
      EXPECT_LE(clients[0].refused + clients[0].late, 20)
          << "of " << clients[0].offered << ", deadline " << deadline << ", seed " << seed;
    }
  }
}

// Every sentence takes a hundred times as long: probes take a tenth of the time, and four more come
// first.
TEST(OverloadSimulationTest, SlowEngineRefuses) {
  for (const absl::Duration deadline : {absl::Milliseconds(100), absl::Seconds(2)}) {
    const absl::Duration time = absl::Minutes(10);
    Overload overload({{.name = "one", .calls_per_second = 20, .deadline = deadline}}, 1);
    overload.Slow(absl::ZeroDuration(), absl::InfiniteDuration(), /*slowdown=*/100);
    const auto clients = overload.Run(absl::Minutes(1), time);
    EXPECT_EQ(clients[0].answered, 0);
    EXPECT_LE(clients[0].late, 0.1 * absl::FDivDuration(time, deadline) + 4) << deadline;
  }
}

}  // namespace
}  // namespace linnet::server
