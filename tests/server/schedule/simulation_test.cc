// Simulation of admission, fair queue, batcher, shedding and supervision on a virtual clock, by
// seed. Clients of every kind, one of which changes its name with every call, use models that fail,
// are rebuilt, are replaced while they work, and may not be warm when the first calls come. Engines
// that stall, lose their device or cannot be rebuilt end the process, and the next one starts some
// time later. Every call ends once with an allowed status, every permit is given back, no client
// starves, and every failure for good ends its process in time.
//
// LINNET_SIMULATION_CALLS=1000000 runs further seeds until that many calls were made.
// LINNET_SIMULATION_SEED=7 starts at a seed; the same seed reproduces the same run.
#include <array>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "server/metrics/metrics.h"
#include "tests/server/schedule/virtual_server.h"
#include "tests/support/status_matchers.h"

namespace linnet::server {
namespace {

constexpr absl::Time kStart = absl::FromUnixSeconds(1'000'000);
constexpr int kRows = 80;
constexpr int kCallsOfASeed = 40'000;
// A client that always has a call waiting is answered within this time, while its model works.
constexpr absl::Duration kStarved = absl::Seconds(30);
// Duration of the longest step: no call ends later than that after its deadline, unless its engine
// stalls.
constexpr absl::Duration kLongestStep = absl::Milliseconds(50);
constexpr absl::Duration kStall = absl::Seconds(3), kLoad = absl::Seconds(4);  // timeouts
constexpr absl::Duration kTick = absl::Milliseconds(250);                      // of the supervisor
constexpr absl::Duration kDrain = absl::Seconds(2);  // of a process that ends
constexpr absl::Duration kGrace = absl::Seconds(4);  // until the supervisor ends it

enum class Kind { kModest, kBatch, kHurried, kRelaxed, kSybil, kIds, kBursts };

struct Client {
  Kind kind;
  std::string name;
  Priority priority = Priority::kNormal;
  absl::Duration min_deadline = absl::InfiniteDuration(), max_deadline = absl::InfiniteDuration();
  int max_segments = 1;
  double calls_per_second = 0;  // 0: the next call comes some time after the last one has ended
  int at_once = 1;
  // For a client that waits for its answers: time of the last answer, or of its start.
  absl::Time answered = kStart;
  int answers = 0;
};

struct Outcomes {
  int calls = 0, ended = 0, reloads = 0;
  int restarts = 0, stalls = 0, lost_devices = 0, given_up = 0;  // of engines
  int processes_ended = 0, processes_killed = 0;
  std::map<std::string, int> reasons;  // "" for an answer
  auto operator<=>(const Outcomes&) const = default;
};

class Simulation {
 public:
  explicit Simulation(uint32_t seed) : random_(seed), seed_(seed) {
    clock_.now = kStart;
    clock_.pass_until = [this](absl::FunctionRef<bool()> condition) { PassUntil(condition); };
    clients_ = {{Kind::kModest, "modest-0"},
                {Kind::kModest, "modest-1"},
                {Kind::kModest, "modest-2", Priority::kBatch},
                {Kind::kBatch, "batch", Priority::kBatch},
                {Kind::kHurried, "hurried", Priority::kInteractive, absl::Milliseconds(5),
                 absl::Milliseconds(300)},
                {Kind::kRelaxed, "relaxed", Priority::kNormal, absl::Seconds(1), absl::Seconds(10)},
                {Kind::kSybil, "sybil"},
                {Kind::kIds, "ids"},
                {Kind::kBursts, "bursts", Priority::kNormal, absl::Seconds(2), absl::Seconds(2)}};
    for (Client& client : clients_) {
      if (client.kind == Kind::kBatch) client.max_segments = 24;
      if (client.kind == Kind::kHurried) client.calls_per_second = 40;
      if (client.kind == Kind::kRelaxed) client.calls_per_second = 60, client.max_segments = 3;
      if (client.kind == Kind::kSybil) client.calls_per_second = 600;
      if (client.kind == Kind::kIds) client.calls_per_second = 200;
      if (client.kind == Kind::kBursts) client.calls_per_second = 20, client.at_once = 400;
      After(Wait(client), [this, &client] { Arrive(client); });
    }
    StartProcess();
    for (size_t i = 0; i < models_.size(); ++i)
      After(absl::Seconds(Uniform(5, 60)), [this, i] { Reload(i); });
    After(absl::Seconds(10), [this] { Slowdown(); });
    After(kTick, [this] { Tick(); });
  }

  Outcomes Run(int calls) {
    calls_ = calls;
    PassUntil([&] { return outcomes_.calls >= calls_ && outcomes_.ended == outcomes_.calls; });
    EXPECT_EQ(outcomes_.ended, outcomes_.calls) << "a call did not end";
    EndProcess();
    return outcomes_;
  }

 private:
  struct Call {
    Call(Client& client, Permit permit) : client(client), permit(std::move(permit)) {}
    Client& client;
    std::optional<Permit> permit;
    absl::Time deadline;
    std::shared_ptr<Cancellation> cancelled = std::make_shared<Cancellation>();
    bool by_client = false;  // cancelled by the client, not because another segment failed
    int open = 0, ends = 0;
    absl::Status status;
  };

  class SegmentSink final : public Sink {
   public:
    SegmentSink(Simulation& simulation, std::shared_ptr<Call> call, int64_t tokens)
        : simulation_(simulation), call_(std::move(call)), tokens_(tokens) {}
    // Mirrors StageRun.
    void Done(absl::StatusOr<SequenceResult> result) override {
      EXPECT_FALSE(std::exchange(done_, true)) << "a sequence ended twice";
      if (call_->permit.has_value()) call_->permit->GiveBack(tokens_);
      if (!result.ok() && call_->status.ok()) {
        call_->status = result.status();
        call_->cancelled->Cancel();
      }
      if (--call_->open == 0) simulation_.End(*call_);
    }

   private:
    Simulation& simulation_;
    std::shared_ptr<Call> call_;
    const int64_t tokens_;
    bool done_ = false;
  };

  static AdmissionLimits Limits() { return {.max_tokens = 100'000, .max_bytes = 16 << 20}; }
  double Uniform(double from, double to) {
    return from + (to - from) * static_cast<double>(random_()) / 4294967296.0;
  }
  int Below(int count) { return static_cast<int>(random_() % static_cast<unsigned>(count)); }
  void After(absl::Duration time, std::function<void()> event) {
    events_.emplace(now_ + time, std::move(event));
  }

  // Lets events happen and models act, one after the other, until the condition holds. An engine
  // that stalls calls it again.
  void PassUntil(absl::FunctionRef<bool()> condition) {
    ++depth_;
    while (!condition() && !::testing::Test::HasFailure()) {
      VirtualModel* next = nullptr;
      for (const auto& model : loaded_) {
        if (next == nullptr || model->next_event() < next->next_event()) next = model.get();
      }
      const absl::Time event = events_.begin()->first;  // there is always a tick
      const bool acts = next != nullptr && next->next_event() < event;
      now_ = std::max(now_, acts ? next->next_event() : event);
      if (acts) {
        next->Act();
      } else {
        const auto happens = std::move(events_.begin()->second);
        events_.erase(events_.begin());
        happens();
      }
      std::erase_if(loaded_, [&](const auto& model) {
        if (!model->retired() || !model->idle() || model->in_call()) return false;
        Count(*model);
        return true;
      });
      if (ended_ && depth_ == 1) EndProcess();
      CheckThatNobodyStarves();
      if (outcomes_.calls < calls_) last_call_ = now_;
      ASSERT_LT(now_ - last_call_, absl::Minutes(5)) << "a call did not end";
    }
    --depth_;
  }

  // --- The process

  void StartProcess() {
    admission_.reset();
    metrics_.emplace();
    admission_.emplace(Limits(), *metrics_, ++seed_);
    supervisor_.emplace([this] {
      if (!std::exchange(ended_, true)) ++outcomes_.processes_killed;
      KillAll();
    });
    supervisor_->SetGrace(kGrace);
    ended_ = false;
    drained_ = absl::InfiniteFuture();
    for (size_t i = 0; i < models_.size(); ++i) Load(i);
  }
  // The supervisor's thread, and the main function.
  void Tick() {
    After(kTick, [this] { Tick(); });
    if (!supervisor_.has_value() || ended_) return;
    supervisor_->Tick(clock_.monotonic());
    if (ended_ || !supervisor_->failure().has_value()) return;
    if (drained_ == absl::InfiniteFuture()) {
      for (const auto& model : loaded_) model->Drain();
      // Once in a while the main function hangs, and the supervisor has to end the process.
      drained_ = now_ + (Below(4) == 0 ? absl::Hours(1) : kDrain);
    } else if (drained_ <= now_) {
      ended_ = true;
      KillAll();
    }
  }
  // Ends all calls. The engines that do not return are on the stack until then.
  void KillAll() {
    for (const auto& model : loaded_) model->Kill();
  }
  void EndProcess() {
    if (!supervisor_.has_value()) return;
    for (const auto& model : loaded_) Count(*model);
    const bool failed = failures_ > 0;
    loaded_.clear();
    models_ = {};
    EXPECT_EQ(supervisor_->failure().has_value(), failed) << "a failure was not seen";
    EXPECT_EQ(admission_->tokens(), 0) << "a permit was not given back";
    EXPECT_EQ(admission_->bytes(), 0) << "a permit was not given back";
    outcomes_.processes_ended += failed;
    failures_ = 0;
    supervisor_.reset();
    ended_ = false;
    After(absl::Seconds(5), [this] { StartProcess(); });
  }
  void Count(const VirtualModel& model) {
    EXPECT_EQ(model.left_in_engine(), 0) << "rows without an owner";
    const VirtualModel::Counts& counts = model.counts();
    outcomes_.restarts += counts.restarts;
    outcomes_.stalls += counts.stalls;
    outcomes_.lost_devices += counts.lost_devices;
    outcomes_.given_up += counts.given_up;
    failures_ += counts.failures();
  }
  bool serving() const { return supervisor_.has_value() && !ended_; }

  // --- Models and clients

  // Time until its next call or burst.
  absl::Duration Wait(const Client& client) {
    const double mean =
        client.calls_per_second > 0 ? client.at_once / client.calls_per_second : 0.2;
    return absl::Seconds(-std::log(Uniform(1e-9, 1)) * mean);
  }

  void Load(size_t place) {
    loaded_.push_back(std::make_unique<VirtualModel>(
        absl::StrCat("model-", place, "@", ++versions_),
        VirtualModel::Options{
            .engine = {.rows = kRows, .encoder_cache_tokens = 1000},
            .batcher = {.shed = {.interval = absl::Seconds(5), .max_wait = absl::Seconds(2)}},
            .faults = {},
            .stall_timeout = kStall,
            .load_timeout = kLoad},
        *admission_, *supervisor_, clock_, random_));
    models_[place] = loaded_.back().get();
    // One in three is not warmed up: its golden examples failed.
    if (Below(3) > 0) models_[place]->WarmUp();
  }
  void Reload(size_t place) {
    if (outcomes_.calls >= calls_) return;
    if (serving() && drained_ == absl::InfiniteFuture()) {
      ++outcomes_.reloads;
      models_[place]->Retire();
      Load(place);
    }
    After(absl::Seconds(Uniform(5, 60)), [this, place] { Reload(place); });
  }
  // Makes all models slower for a while, as if the machine were busy.
  void Slowdown() {
    if (outcomes_.calls >= calls_) return;
    const double times = Below(2) == 0 ? 1 : Uniform(1, 5);
    for (const auto& model : loaded_) model->SetSlowdown(times);
    After(absl::Seconds(Uniform(1, 20)), [this] { Slowdown(); });
  }

  void Arrive(Client& client) {
    if (outcomes_.calls >= calls_) return;
    // The client with many names does not call all the time.
    const bool quiet = client.kind == Kind::kSybil && absl::ToUnixSeconds(now_) / 50 % 3 == 2;
    for (int i = 0; i < client.at_once && !quiet; ++i) Begin(client);
    if (client.calls_per_second > 0) After(Wait(client), [this, &client] { Arrive(client); });
  }

  void Begin(Client& client) {
    ++outcomes_.calls;
    Caller caller = {.client = client.name,
                     .priority = client.priority,
                     .call = static_cast<uint64_t>(outcomes_.calls)};
    // A new address for each call, and one address with a new id for each call.
    if (client.kind == Kind::kSybil) caller.client = absl::StrCat("sybil-", outcomes_.calls);
    if (client.kind == Kind::kIds) caller.id = absl::StrCat(outcomes_.calls);
    if (!serving()) return Ended(client, ShuttingDown(), /*deadline=*/false);
    auto permit = admission_->Enter(caller, Below(2000));
    if (!permit.ok()) return Ended(client, permit.status(), /*deadline=*/false);
    VirtualModel& model = *models_[Below(2)];
    auto call = std::make_shared<Call>(client, *std::move(permit));
    call->deadline = client.max_deadline == absl::InfiniteDuration()
                         ? absl::InfiniteFuture()
                         : now_ + Uniform(0, 1) * (client.max_deadline - client.min_deadline) +
                               client.min_deadline;
    CallWork work = {.model = model.name(), .size = {}, .deadline = call->deadline};
    std::vector<std::unique_ptr<Sequence>> sequences;
    for (int i = 1 + Below(client.max_segments); i > 0; --i) {
      auto sequence = std::make_unique<Sequence>();
      const int tokens = 3 + Below(22);
      sequence->input.source.assign(tokens, 9);
      sequence->input.source.back() = 2;
      sequence->input.options.beam_size = std::array{1, 4, 5, 5}[Below(4)];
      sequence->input.options.max_target_tokens = 2 * tokens + 10;
      sequence->input.align = Below(10) == 0;
      sequence->caller = caller;
      sequence->deadline = call->deadline;
      sequence->cancelled = call->cancelled;
      work.size.Add(sequence->input);
      sequences.push_back(std::move(sequence));
    }
    if (absl::Status status = call->permit->Charge(work, now_); !status.ok()) {
      EXPECT_FALSE(call->deadline == absl::InfiniteFuture() && absl::IsDeadlineExceeded(status));
      return Ended(client, status, absl::IsDeadlineExceeded(status));
    }
    call->open = static_cast<int>(sequences.size());
    if (Below(20) == 0) Cancel(call, absl::Seconds(Uniform(0, 1)), /*by_client=*/true);
    // gRPC cancels at the deadline, possibly before the batcher sees it.
    if (call->deadline != absl::InfiniteFuture() && Below(2) == 0)
      Cancel(call, call->deadline - now_, /*by_client=*/true);
    for (auto& sequence : sequences) {
      const int64_t tokens = MaxWork(sequence->input);
      sequence->sink = std::make_unique<SegmentSink>(*this, call, tokens);
      if (absl::Status status = model.Submit(sequence); !status.ok())
        sequence->sink->Done(std::move(status));
    }
  }

  void Cancel(const std::shared_ptr<Call>& call, absl::Duration after, bool by_client) {
    After(after, [weak = std::weak_ptr<Call>(call), by_client] {
      const std::shared_ptr<Call> call = weak.lock();
      if (call == nullptr) return;
      call->cancelled->Cancel();
      call->by_client = by_client;
    });
  }

  void End(Call& call) {
    EXPECT_EQ(++call.ends, 1) << "a call ended twice";
    if (call.status.ok() || absl::IsDeadlineExceeded(call.status) || absl::IsCancelled(call.status))
      call.permit->Ended(now_, call.status.ok());
    call.permit.reset();
    const bool stalled = absl::IsInternal(call.status) || absl::IsUnavailable(call.status);
    EXPECT_LE(now_,
              call.deadline + kLongestStep + (stalled ? kStall + kTick : absl::ZeroDuration()))
        << call.status;
    if (absl::IsCancelled(call.status)) {
      EXPECT_TRUE(call.by_client) << call.status;
    }
    Ended(call.client, call.status, now_ >= call.deadline);
  }

  void Ended(Client& client, const absl::Status& status, bool deadline) {
    ++outcomes_.ended;
    ++outcomes_.reasons[status.ok() ? "" : ErrorReason(WithErrorInfo(status))];
    if (absl::IsDeadlineExceeded(status)) {
      EXPECT_TRUE(deadline) << status;
    }
    absl::Duration wait = Wait(client);
    if (status.ok()) {
      client.answered = now_;
      ++client.answers;
    } else if (const absl::Duration delay = RetryDelay(status); delay != absl::InfiniteDuration()) {
      wait = std::max(wait, std::min(delay, absl::Seconds(1)));
      // A model that is down answers no call.
      if (absl::IsUnavailable(status))
        client.answered = std::max(client.answered, now_ - kStarved / 2);
    }
    if (client.calls_per_second == 0) After(wait, [this, &client] { Arrive(client); });
  }

  void CheckThatNobodyStarves() {
    if (outcomes_.calls >= calls_) return;
    for (const Client& client : clients_) {
      if (client.kind != Kind::kModest) continue;
      ASSERT_LT(now_ - client.answered, kStarved)
          << client.name << " is not answered, after " << client.answers << " answers, "
          << now_ - kStart << " after the start";
    }
  }

  std::mt19937 random_;
  uint32_t seed_;  // of the admission of the last process
  VirtualClock clock_;
  absl::Time& now_ = clock_.now;
  absl::Time last_call_ = kStart;
  int depth_ = 0;  // calls of PassUntil
  std::optional<Metrics> metrics_;
  std::optional<Admission> admission_;
  std::optional<Supervisor> supervisor_;  // nullopt: no process runs
  bool ended_ = false;                    // the process has ended, once no engine is on the stack
  absl::Time drained_ = absl::InfiniteFuture();  // end of the drain
  int failures_ = 0;                             // of the process, for good
  std::multimap<absl::Time, std::function<void()>> events_;
  std::vector<Client> clients_;
  Outcomes outcomes_;
  std::array<VirtualModel*, 2> models_ = {};
  int versions_ = 0;
  int calls_ = 0;
  // Last, because it is destroyed first: the calls that it still holds end then and use the members
  // above.
  std::vector<std::unique_ptr<VirtualModel>> loaded_;
};

int FromEnvironment(const char* name, int otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr ? otherwise : std::atoi(value);
}

TEST(SimulationTest, EveryCallEndsOnceAndNoClientStarves) {
  const int calls = FromEnvironment("LINNET_SIMULATION_CALLS", kCallsOfASeed);
  // In the first run a process ends.
  const int first = FromEnvironment("LINNET_SIMULATION_SEED", 1);
  Outcomes all;
  for (int seed = first; all.calls < calls; ++seed) {
    SCOPED_TRACE(absl::StrCat("LINNET_SIMULATION_SEED=", seed));
    const Outcomes outcomes = Simulation(static_cast<uint32_t>(seed)).Run(kCallsOfASeed);
    if (HasFailure()) return;
    all.calls += outcomes.calls;
    all.restarts += outcomes.restarts;
    all.stalls += outcomes.stalls;
    all.lost_devices += outcomes.lost_devices;
    all.given_up += outcomes.given_up;
    all.processes_ended += outcomes.processes_ended;
    all.processes_killed += outcomes.processes_killed;
    all.reloads += outcomes.reloads;
    for (const auto& [reason, count] : outcomes.reasons) all.reasons[reason] += count;
  }
  std::printf(
      "%d calls, %d restarts, %d reloads, %d stalls, %d lost devices, %d given up, "
      "%d processes ended, %d of them by the supervisor",
      all.calls, all.restarts, all.reloads, all.stalls, all.lost_devices, all.given_up,
      all.processes_ended, all.processes_killed);
  for (const auto& [reason, count] : all.reasons)
    std::printf(", %d %s", count, reason.empty() ? "answers" : reason.c_str());
  std::printf("\n");
  RecordProperty("calls", all.calls);
  RecordProperty("restarts", all.restarts);
  RecordProperty("reloads", all.reloads);
  // All of these events occurred; the rare ones in a long run.
  EXPECT_GT(all.restarts, 0);
  EXPECT_GT(all.reloads, 0);
  EXPECT_GT(all.processes_ended, 0);
  if (all.calls >= 10 * kCallsOfASeed) {
    EXPECT_GT(all.stalls, 0);
    EXPECT_GT(all.lost_devices, 0);
    EXPECT_GT(all.given_up, 0);
    EXPECT_GT(all.processes_killed, 0);
  }
  for (const char* reason : {"", "CANCELLED", "DEADLINE_EXCEEDED", "DEADLINE_TOO_CLOSE",
                             "DEADLINE_TOO_SHORT", "INTERNAL", "OUT_OF_MEMORY", "ENGINE_DOWN",
                             "SHUTTING_DOWN", "WAITED_TOO_LONG", "TOO_MUCH_WORK"})
    EXPECT_GT(all.reasons[reason], 0) << reason;
}

TEST(SimulationTest, SeedReproducesTheRun) {
  EXPECT_EQ(Simulation(7).Run(3000), Simulation(7).Run(3000));
}

}  // namespace
}  // namespace linnet::server
