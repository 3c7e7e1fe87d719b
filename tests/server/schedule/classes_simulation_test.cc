// Simulation of clients of all priorities on a virtual clock, with an engine whose steps and
// encoder calls take as long as those of a real one.
#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "server/base/errors.h"
#include "server/schedule/batcher.h"
#include "tests/support/echo_engine.h"
#include "tests/support/status_matchers.h"

namespace linnet::server {
namespace {

constexpr absl::Time kStart = absl::FromUnixSeconds(1'000'000);
constexpr int kRows = 160;

// Of a step and each of its rows, of an encoder call and each of its tokens.
struct Costs {
  absl::Duration step, row, call, token;
};
// en-de in int8 on two cores, a model of 600 million weights, and a GPU.
constexpr Costs kSmall = {absl::Microseconds(450), absl::Microseconds(95), absl::Microseconds(400),
                          absl::Microseconds(70)};
constexpr Costs kLarge = {absl::Milliseconds(15), absl::Microseconds(1500), absl::Milliseconds(10),
                          absl::Microseconds(2500)};
constexpr Costs kGpu = {absl::Microseconds(460), absl::Nanoseconds(800), absl::Microseconds(90),
                        absl::Microseconds(1)};

// The clock of the simulation advances in the calls of the engine.
class TimedEngine final : public test::EchoEngine {
 public:
  TimedEngine(const Costs& costs, absl::Time& now)
      : EchoEngine({.rows = kRows, .encoder_cache_tokens = 1 << 14}), costs_(costs), now_(now) {}

  absl::Status Add(std::span<const model::SequenceInput> inputs) override {
    now_ += costs_.call;
    for (const auto& input : inputs) now_ += costs_.token * std::ssize(input.source);
    return EchoEngine::Add(inputs);
  }
  absl::StatusOr<std::vector<model::SequenceEvent>> Step() override {
    auto events = EchoEngine::Step();
    now_ += costs_.step + costs_.row * rows.back();
    return events;
  }

 private:
  const Costs costs_;
  absl::Time& now_;
};

// Keeps `calls` calls of `segments` sentences in flight, and waits for `think` after each.
struct Client {
  std::string name;
  Priority priority = Priority::kNormal;
  int calls = 1, segments = 1;
  absl::Duration think = absl::ZeroDuration();
  int beam = 4;
  int min_tokens = 8, max_tokens = 24;
  bool sybil = false;  // each of its calls has another id
  absl::Duration start = absl::ZeroDuration();

  std::vector<absl::Duration> latencies = {};
  int64_t tokens = 0;  // of its answered sentences
  int shed = 0;

  absl::Duration Percentile(double part) {
    std::ranges::sort(latencies);
    return latencies.at(static_cast<size_t>(part * static_cast<double>(latencies.size() - 1)));
  }
};

class Simulation {
 public:
  // `check`: the laws about rows, after each step; and calls may be shed.
  Simulation(const Costs& costs, std::vector<Client> clients, bool check = false)
      : engine_(costs, now_), clients_(std::move(clients)), check_(check) {
    for (Client& client : clients_) {
      for (int i = 0; i < client.calls; ++i) Schedule(client, kStart + client.start);
    }
  }
  ~Simulation() {
    over_ = true;
    batcher_.EndAll(absl::CancelledError(""), absl::CancelledError(""));
  }

  std::vector<Client>& Run(absl::Duration time) {
    while (now_ < kStart + time && !::testing::Test::HasFailure()) {
      while (!events_.empty() && events_.begin()->first <= now_) {
        auto event = std::move(events_.begin()->second);
        events_.erase(events_.begin());
        event();
      }
      if (batcher_.idle()) {
        now_ = events_.begin()->first;
        continue;
      }
      const Holdings before = check_ ? Look() : Holdings();
      batcher_.Step([this] { return now_; });
      if (check_) CheckRows(before);
    }
    return clients_;
  }

 private:
  // The rows of each client and of batch work.
  struct Holdings {
    std::map<std::string, int> rows;
    std::map<std::string, int> waiting;  // sequences
    int batch_rows = 0;
    bool higher = false;
  };
  struct OpenCall {
    absl::Time begin;
    int open = 0;
    bool failed = false;
  };
  class SegmentSink final : public Sink {
   public:
    explicit SegmentSink(std::function<void(bool)> done) : done_(std::move(done)) {}
    void Done(absl::StatusOr<SequenceResult> result) override { done_(result.ok()); }

   private:
    std::function<void(bool)> done_;
  };

  void Schedule(Client& client, absl::Time time) {
    events_.emplace(time, [this, &client, time] { Call(client, time); });
  }

  void Call(Client& client, absl::Time time) {
    auto call = std::make_shared<OpenCall>(OpenCall{time, client.segments});
    ++calls_;
    for (int i = 0; i < client.segments; ++i) {
      auto sequence = std::make_unique<Sequence>();
      const int tokens = client.min_tokens +
                         static_cast<int>(random_() % (client.max_tokens - client.min_tokens + 1));
      sequence->input.source.assign(tokens, 9);
      sequence->input.source.back() = model::SpecialTokens{}.eos;
      sequence->input.options.beam_size = client.beam;
      sequence->input.options.max_target_tokens = tokens + 10;
      sequence->caller = {.client = client.name, .priority = client.priority, .call = calls_};
      if (client.sybil) sequence->caller.id = absl::StrCat(calls_);
      sequence->sink = std::make_unique<SegmentSink>([this, &client, call, tokens](bool ok) {
        if (over_) return;
        if (ok) client.tokens += tokens;
        call->failed |= !ok;
        if (!ok) CheckShed(client);
        if (--call->open > 0) return;
        client.shed += call->failed ? 1 : 0;
        if (!call->failed) client.latencies.push_back(now_ - call->begin);
        const absl::Duration wait = call->failed ? absl::Seconds(1) : client.think;
        Schedule(client, now_ + wait);
      });
      ASSERT_THAT(batcher_.Add(sequence, now_), IsOk());
    }
  }

  Holdings Look() const {
    Holdings holdings;
    for (const SequenceSnapshot& each : batcher_.Snapshot(1 << 20).sequences) {
      holdings.higher |= each.caller.priority != Priority::kBatch;
      if (!each.running) {
        ++holdings.waiting[each.caller.client];
        continue;
      }
      holdings.rows[each.caller.client] += each.rows;
      if (each.caller.priority == Priority::kBatch) holdings.batch_rows += each.rows;
    }
    return holdings;
  }

  // No client takes more than three quarters of the rows while another one waits, nor batch work
  // while other work is there.
  void CheckRows(const Holdings& before) {
    const Holdings after = Look();
    constexpr int kMax = kRows * 3 / 4;
    for (const auto& [client, rows] : after.rows) {
      const bool others = after.waiting.size() > after.waiting.contains(client);
      const auto had = before.rows.find(client);
      if (!others || rows <= kMax) continue;
      EXPECT_LE(rows, had == before.rows.end() ? 0 : had->second) << client;
    }
    if (before.higher && after.batch_rows > kMax) {
      EXPECT_LE(after.batch_rows, before.batch_rows);
    }
    holdings_ = after;
  }

  // A client without rows was not shed while one had more than its share.
  void CheckShed(const Client& client) {
    if (holdings_.rows.contains(client.name)) return;
    std::map<std::string, int> all = holdings_.rows;
    for (const auto& [name, count] : holdings_.waiting) all.try_emplace(name);
    int highest = 0, widest = 0;
    for (const auto& [name, rows] : all) highest = std::max(highest, rows);
    for (const Client& each : clients_) widest = std::max(widest, each.beam);
    EXPECT_LE(highest, kRows / std::ssize(all) + widest) << client.name << " was shed";
  }

  absl::Time now_ = kStart;
  bool over_ = false;
  TimedEngine engine_;
  std::mt19937 random_{7};
  std::vector<Client> clients_;
  const bool check_;
  std::multimap<absl::Time, std::function<void()>> events_;
  uint64_t calls_ = 0;
  Holdings holdings_;
  Batcher batcher_{engine_,
                   {.shed = {.interval = check_ ? absl::Seconds(5) : absl::InfiniteDuration()}}};
};

Client Interactive() {
  return {.name = "reader", .priority = Priority::kInteractive, .think = absl::Seconds(1)};
}
// A document: so many of its lines are in the window.
Client File(Priority priority = Priority::kBatch) {
  return {.name = "file", .priority = priority, .calls = 96, .max_tokens = 40};
}

TEST(ClassesSimulationTest, InteractiveCallsAreFastBesideAFileThatKeepsItsPace) {
  // A step of a GPU costs nearly the same with fewer rows, so the quarter that batch work leaves to
  // others costs it more.
  const struct {
    const char* name;
    Costs costs;
    Priority priority;
    double pace;
  } cases[] = {
      {"small", kSmall, Priority::kBatch, 0.85}, {"small", kSmall, Priority::kNormal, 0.85},
      {"large", kLarge, Priority::kBatch, 0.85}, {"large", kLarge, Priority::kNormal, 0.85},
      {"gpu", kGpu, Priority::kBatch, 0.8},      {"gpu", kGpu, Priority::kNormal, 0.8}};
  for (const auto& [name, costs, priority, least] : cases) {
    // Steps of a GPU are short, so that there are many.
    const absl::Duration time =
        costs.row < absl::Microseconds(1) ? absl::Seconds(20) : absl::Minutes(2);
    Client alone = Simulation(costs, {Interactive()}).Run(time)[0];
    Client file = Simulation(costs, {File(priority)}).Run(time)[0];
    std::vector<Client> both = Simulation(costs, {Interactive(), File(priority)}).Run(time);
    const auto times = [&](double part) {
      return absl::FDivDuration(both[0].Percentile(part), alone.Percentile(part));
    };
    absl::Duration own;  // of the interactive calls
    for (absl::Duration each : alone.latencies) own += each;
    own *=
        static_cast<double>(both[0].latencies.size()) / static_cast<double>(alone.latencies.size());
    const double pace = static_cast<double>(both[1].tokens) / static_cast<double>(file.tokens) /
                        (1 - absl::FDivDuration(own, time));
    std::printf("%s, %s file: alone %.1f ms, p50 %.2f times, p99 %.2f times, file %.1f %%\n", name,
                std::string(PriorityName(priority)).c_str(),
                absl::ToDoubleMilliseconds(alone.Percentile(0.5)), times(0.5), times(0.99),
                100 * pace);
    EXPECT_LE(times(0.5), 2) << name;
    EXPECT_LE(times(0.99), 4) << name;
    EXPECT_GE(pace, least) << name;
  }
}

TEST(ClassesSimulationTest, LowerWorkGoesOnUnderConstantInteractiveLoad) {
  for (const int readers : {1, 8, 60}) {
    Client reader = Interactive();
    reader.think = absl::ZeroDuration();
    reader.calls = readers;
    const absl::Duration time = absl::Seconds(20);
    const Client alone = Simulation(kSmall, {reader}).Run(time)[0];
    for (const Priority priority : {Priority::kBatch, Priority::kNormal}) {
      const std::vector<Client> both = Simulation(kSmall, {reader, File(priority)}).Run(time);
      EXPECT_GT(both[0].tokens, 0.75 * alone.tokens) << readers;
      EXPECT_GT(both[1].tokens, 0.08 * alone.tokens) << readers;
    }
  }
}

// Ten files of one client hold all rows; later calls of others find free rows.
TEST(ClassesSimulationTest, FilesOfOneClientLeaveRowsToOthers) {
  Client files = {.name = "files",
                  .priority = Priority::kBatch,
                  .calls = 10,
                  .segments = 40,
                  .beam = 8,
                  .min_tokens = 20,
                  .max_tokens = 60};
  Client reader = Interactive();
  reader.start = absl::Seconds(5);
  Client alone = Simulation(kSmall, {reader}).Run(absl::Seconds(40))[0];
  std::vector<Client> both = Simulation(kSmall, {files, reader}, true).Run(absl::Seconds(40));
  EXPECT_EQ(both[1].shed, 0);
  EXPECT_LT(both[1].Percentile(0.5), 2 * alone.Percentile(0.5));
  // The first one waits for rows.
  EXPECT_LT(both[1].Percentile(1), absl::Milliseconds(500));
}

TEST(ClassesSimulationTest, NobodyTakesMoreThanThreeQuartersWhileOthersWait) {
  for (const int count : {2, 3, 20, 200}) {
    std::vector<Client> clients = {
        {.name = "greedy", .calls = 40, .segments = 20, .beam = 5},
        {.name = "files", .priority = Priority::kBatch, .calls = 10, .segments = 40, .beam = 8}};
    for (int i = 2; i < count; ++i) {
      const auto priority = static_cast<Priority>(i % 3);
      clients.push_back({.name = absl::StrCat("client-", i),
                         .priority = priority,
                         .calls = 1 + i % 4,
                         .think = absl::Milliseconds(100) * (i % 7),
                         .beam = 1 + i % 6});
    }
    Client names = {.name = "one-address", .calls = 100, .beam = 5, .sybil = true};
    if (count > 2) clients.back() = names;
    std::vector<Client> result = Simulation(kSmall, clients, true).Run(absl::Seconds(8));
    for (const Client& client : result) {
      EXPECT_GT(client.tokens, 0) << client.name << " of " << count;
    }
  }
}

}  // namespace
}  // namespace linnet::server
