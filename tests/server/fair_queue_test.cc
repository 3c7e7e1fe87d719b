#include "server/schedule/fair_queue.h"

#include <cstdlib>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"

namespace linnet::server {
namespace {

using ::testing::ElementsAre;

// An item of the queue.
struct Job {
  std::string client;
  Priority priority;
  int64_t work;
  uint64_t id;
  uint64_t call;
  std::string caller;
};

struct Line {
  using Ticket = FairQueue<Job>::Ticket;

  Ticket Push(const std::string& client, int64_t work, Priority priority = Priority::kNormal,
              uint64_t call = 0, const std::string& caller = "") {
    ++pushed;
    if (call == 0) call = pushed;
    return queue.Push({client, priority, caller}, call, static_cast<double>(work),
                      {client, priority, work, pushed, call, caller});
  }
  Job Serve() { return queue.ServeNext(); }
  // Clients in the order in which they are served.
  std::vector<std::string> ServeAll() {
    std::vector<std::string> clients;
    while (!queue.empty()) clients.push_back(Serve().client);
    return clients;
  }

  FairQueue<Job> queue;
  uint64_t pushed = 0;
};

TEST(FairQueueTest, ServesOneClientInOrderOfArrival) {
  Line line;
  for (int64_t work : {7, 1, 100, 3}) line.Push("a", work);
  std::vector<uint64_t> order;
  while (!line.queue.empty()) order.push_back(line.Serve().id);
  EXPECT_THAT(order, ElementsAre(1, 2, 3, 4));
}

TEST(FairQueueTest, NewClientDoesNotWaitForAnotherClientsQueue) {
  Line line;
  for (int i = 0; i < 4; ++i) line.Push("many", 10);
  line.Serve();
  line.Push("one", 10);
  EXPECT_THAT(line.ServeAll(), ElementsAre("one", "many", "many", "many"));
}

TEST(FairQueueTest, ClientHasNoCreditAfterAPause) {
  Line line;
  for (int i = 0; i < 6; ++i) line.Push("busy", 10);
  for (int i = 0; i < 4; ++i) line.Serve();
  for (int i = 0; i < 3; ++i) line.Push("back", 10);
  EXPECT_THAT(line.ServeAll(), ElementsAre("back", "busy", "back", "busy", "back"));
}

TEST(FairQueueTest, DroppedItemCostsOtherClientsNothing) {
  Line line;
  const Line::Ticket dropped = line.Push("a", 10);
  line.Push("b", 10);
  EXPECT_EQ(line.queue.Drop(dropped).client, "a");
  EXPECT_THAT(line.ServeAll(), ElementsAre("b"));
  EXPECT_EQ(line.queue.size(), 0);
}

TEST(FairQueueTest, DroppedItemCostsItsOwnClientNothing) {
  Line line;
  std::vector<Line::Ticket> tickets;
  for (int i = 0; i < 5; ++i) tickets.push_back(line.Push("a", 10));
  for (int i = 0; i < 4; ++i) line.Push("b", 10);
  for (int i : {1, 0, 2}) line.queue.Drop(tickets[i]);
  line.Push("a", 10);
  EXPECT_THAT(line.ServeAll(), ElementsAre("a", "b", "a", "b", "b", "a", "b"));
}

TEST(FairQueueTest, InteractiveGoesFirstAndBatchIsNotStarved) {
  Line line;
  for (int i = 0; i < 64; ++i) {
    line.Push("urgent", 10, Priority::kInteractive);
    line.Push("batch", 10, Priority::kBatch);
  }
  int urgent = 0, batch = 0;
  while (urgent < 32) (line.Serve().client == "urgent" ? urgent : batch) += 1;
  EXPECT_EQ(batch, 2) << "16 to 1";
}

TEST(FairQueueTest, InteractiveCallsOvertakeBatchCallsOfTheSameClient) {
  Line line;
  for (int i = 0; i < 3; ++i) line.Push("a", 10, Priority::kBatch);
  line.Serve();
  line.Push("a", 10, Priority::kInteractive);
  EXPECT_EQ(line.Serve().priority, Priority::kInteractive);
}

// Goyal, Vin and Cheng 1996, theorem 1: while two flows are both backlogged, their served work over
// their weight differs by at most one item of each.
TEST(FairQueueTest, BackloggedClientsAreServedInProportionToWeights) {
  for (unsigned seed = 0; seed < 50; ++seed) {
    std::mt19937 random(seed);
    constexpr int kMax = 100;
    const std::vector<Flow> flows = {{"a", Priority::kNormal},
                                     {"b", Priority::kNormal},
                                     {"c", Priority::kBatch},
                                     {"d", Priority::kInteractive}};
    Line line;
    std::map<Flow, int> waiting;
    std::map<Flow, double> served;
    for (int step = 0; step < 3000; ++step) {
      for (const Flow& flow : flows) {  // unequal load; all are always backlogged
        int pushes = 1 + static_cast<int>(random() % (flow.client == "a" ? 10 : 2));
        if (waiting[flow] > 50) pushes = 0;
        if (waiting[flow] == 0) pushes = std::max(pushes, 1);
        waiting[flow] += pushes;
        for (; pushes > 0; --pushes) line.Push(flow.client, 1 + random() % kMax, flow.priority);
      }
      const Job job = line.Serve();
      const Flow flow = {job.client, job.priority};
      --waiting[flow];
      served[flow] += static_cast<double>(job.work) / WeightOf(job.priority);
      for (const Flow& x : flows) {
        for (const Flow& y : flows) {
          EXPECT_LE(served[x] - served[y],
                    kMax / WeightOf(x.priority) + kMax / WeightOf(y.priority))
              << "seed " << seed << ", step " << step << ": " << x.client << " and " << y.client;
        }
      }
    }
  }
}

TEST(FairQueueTest, ClientGetsHalfItsShareAmongEverNewClients) {
  for (const Priority priority : {Priority::kBatch, Priority::kNormal}) {
    Line line;
    constexpr int kNew = 20, kTurns = 10'000;
    int names = 0;
    for (; names < kNew; ++names) line.Push("new-" + std::to_string(names), 10);
    line.Push("old", 10, priority);
    int served = 0;
    for (int turn = 0; turn < kTurns; ++turn) {  // as many always wait
      if (line.Serve().client == "old") {
        ++served;
        line.Push("old", 10, priority);
      } else {
        line.Push("new-" + std::to_string(++names), 10);
      }
    }
    const double weight = WeightOf(priority);
    EXPECT_GE(served, 0.5 * kTurns * weight / (weight + kNew * WeightOf(Priority::kNormal)));
  }
}

// Theorem 1 again, for the flows of a client.
TEST(FairQueueTest, BackloggedIdsShareTheirClientsServiceEqually) {
  constexpr int kMax = 100;
  const std::vector<std::string> ids = {"", "x", "y"};
  for (unsigned seed = 0; seed < 30; ++seed) {
    std::mt19937 random(seed);
    Line line;
    std::map<std::string, int> waiting;
    std::map<std::string, double> served;
    for (int step = 0; step < 2000; ++step) {
      for (const std::string& id : ids) {  // "y" sends just enough to be always backlogged
        int pushes = waiting[id] > 50 ? 0 : 1 + static_cast<int>(random() % 4);
        if (id == "y") pushes = waiting[id] > 0 ? 0 : 1;
        waiting[id] += pushes;
        for (; pushes > 0; --pushes)
          line.Push("a", 1 + static_cast<int>(random() % kMax), Priority::kNormal, 0, id);
      }
      if (line.queue.size() < 200) line.Push("b", 1 + static_cast<int>(random() % kMax));
      const Job job = line.Serve();
      if (job.client != "a") continue;
      --waiting[job.caller];
      served[job.caller] += static_cast<double>(job.work);
      for (const std::string& x : ids) {
        for (const std::string& y : ids) {
          EXPECT_LE(served[x] - served[y], 2 * kMax) << "seed " << seed << ", step " << step;
        }
      }
    }
  }
}

// Two clients get equal service for any numbers of ids, even with an id per item.
TEST(FairQueueTest, MoreIdsDoNotIncreaseAClientsShare) {
  constexpr int kMax = 100, kEach = 1'000'000;
  for (const auto& [ids_of_a, ids_of_b] :
       {std::pair{1, 1}, {2, 1}, {16, 1}, {kEach, 1}, {kEach, 16}, {3, 5}}) {
    std::mt19937 random(ids_of_a);
    Line line;
    const std::map<std::string, int> ids = {{"a", ids_of_a}, {"b", ids_of_b}};
    std::map<std::string, int> waiting;
    std::map<std::string, double> served;
    for (int step = 0; step < 4000; ++step) {
      for (const auto& [client, count] : ids) {
        for (; waiting[client] < (count == 1 ? 2 : 64); ++waiting[client]) {
          line.Push(client, 1 + static_cast<int>(random() % kMax), Priority::kNormal, 0,
                    std::to_string(line.pushed % count));
        }
      }
      const Job job = line.Serve();
      --waiting[job.client];
      served[job.client] += static_cast<double>(job.work);
      EXPECT_LE(std::abs(served["a"] - served["b"]), 2 * kMax)
          << ids_of_a << " and " << ids_of_b << " ids, step " << step;
    }
  }
}

TEST(FairQueueTest, IdGetsHalfItsShareAmongEverNewIds) {
  constexpr int kNew = 20, kTurns = 10'000;
  Line line;
  int names = 0;
  const auto push_new = [&] {
    line.Push("proxy", 10, Priority::kNormal, 0, "new-" + std::to_string(++names));
  };
  while (names < kNew) push_new();
  line.Push("proxy", 10, Priority::kNormal, 0, "old");
  int served = 0;
  for (int turn = 0; turn < kTurns; ++turn) {  // as many always wait
    if (line.Serve().caller == "old") {
      ++served;
      line.Push("proxy", 10, Priority::kNormal, 0, "old");
    } else {
      push_new();
    }
  }
  EXPECT_GE(served, kTurns / (1 + kNew) / 2);
}

TEST(FairQueueTest, IdDoesNotWaitForAnotherIdsQueue) {
  Line line;
  for (int i = 0; i < 4; ++i) line.Push("proxy", 10, Priority::kNormal, 0, "many");
  line.Serve();
  line.Push("proxy", 10, Priority::kNormal, 0, "one");
  std::vector<std::string> callers;
  while (!line.queue.empty()) callers.push_back(line.Serve().caller);
  EXPECT_THAT(callers, ElementsAre("one", "many", "many", "many"));
}

TEST(FairQueueTest, DroppedItemCostsItsOwnIdNothing) {
  Line line;
  std::vector<Line::Ticket> tickets;
  for (int i = 0; i < 5; ++i)
    tickets.push_back(line.Push("proxy", 10, Priority::kNormal, 0, "late"));
  for (int i = 0; i < 3; ++i) line.Push("proxy", 10, Priority::kNormal, 0, "x");
  for (int i : {1, 0, 2}) line.queue.Drop(tickets[i]);
  line.Push("proxy", 10, Priority::kNormal, 0, "late");
  std::vector<std::string> callers;
  while (!line.queue.empty()) callers.push_back(line.Serve().caller);
  EXPECT_THAT(callers, ElementsAre("late", "x", "late", "x", "x", "late"));
}

Line RandomLine(std::mt19937& random) {
  Line line;
  for (int i = 0; i < 60; ++i) {
    const std::string client(1, static_cast<char>('a' + random() % 4));
    const uint64_t call = 1 + random() % 12;
    line.Push(client, 1 + static_cast<int>(random() % 50),
              random() % 3 == 0 ? Priority::kInteractive : Priority::kNormal, call,
              std::string(call % 3, 'x'));
    if (random() % 3 == 0) line.Serve();
  }
  return line;
}

TEST(FairQueueTest, CursorVisitsItemsInServiceOrder) {
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    Line line = RandomLine(random);
    std::vector<uint64_t> met, served;
    for (FairQueue<Job>::Cursor at(line.queue); !at.done(); at.Take()) met.push_back((*at).id);
    while (!line.queue.empty()) served.push_back(line.Serve().id);
    EXPECT_EQ(met, served) << "round " << round;
  }
}

TEST(FairQueueTest, CursorSkipsACallAndServesOthersOutOfOrder) {
  std::mt19937 random(4);
  for (int round = 0; round < 200; ++round) {
    Line line = RandomLine(random);
    const uint64_t skipped = 1 + random() % 12;
    std::vector<Line::Ticket> tickets;
    for (FairQueue<Job>::Cursor at(line.queue); !at.done();) {
      if ((*at).call == skipped) {
        at.SkipCall();
        continue;
      }
      tickets.push_back(at.ticket());
      at.Take();
    }
    for (const Line::Ticket& ticket : tickets) EXPECT_NE(line.queue.Serve(ticket).call, skipped);
    std::map<Flow, uint64_t> last;
    while (!line.queue.empty()) {
      const Job job = line.Serve();
      EXPECT_EQ(job.call, skipped);
      EXPECT_GT(job.id, std::exchange(last[{job.client, job.priority, job.caller}], job.id));
    }
    EXPECT_EQ(line.queue.size(), 0);
  }
}

// WorkUntil is an upper bound on the work served until the given work of the flow is served, to
// within one item of each flow on either side.
TEST(FairQueueTest, WorkUntilIsAnUpperBound) {
  std::mt19937 random(5);
  constexpr int kClients = 4, kIds = 3, kMax = 50;
  for (int round = 0; round < 100; ++round) {
    Line line;
    for (int client = 0; client < kClients; ++client) {
      for (int i = static_cast<int>(random() % 400); i > 0; --i) {
        line.Push(std::string(1, static_cast<char>('a' + client)), 1 + random() % kMax,
                  Priority::kNormal, 0, std::string(random() % kIds, 'x'));
      }
    }
    const std::string client(1, static_cast<char>('a' + random() % (kClients + 1)));
    const int64_t work = 1 + static_cast<int>(random() % kMax);
    const double bound =
        line.queue.WorkUntil({client, Priority::kNormal, "x"}, static_cast<double>(work)) +
        kClients * kIds * 2 * kMax;
    line.Push(client, work, Priority::kNormal, 0, "x");
    const uint64_t own = line.pushed;
    double served = 0;
    while (true) {
      const Job job = line.Serve();
      served += static_cast<double>(job.work);
      if (job.id == own) break;
    }
    EXPECT_LE(served, bound) << "round " << round;
  }
}

}  // namespace
}  // namespace linnet::server
