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

struct JobQueue {
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
  JobQueue jobs;
  for (int64_t work : {7, 1, 100, 3}) jobs.Push("a", work);
  std::vector<uint64_t> order;
  while (!jobs.queue.empty()) order.push_back(jobs.Serve().id);
  EXPECT_THAT(order, ElementsAre(1, 2, 3, 4));
}

TEST(FairQueueTest, NewClientDoesNotWaitForAnotherClientsQueue) {
  JobQueue jobs;
  for (int i = 0; i < 4; ++i) jobs.Push("many", 10);
  jobs.Serve();
  jobs.Push("one", 10);
  EXPECT_THAT(jobs.ServeAll(), ElementsAre("one", "many", "many", "many"));
}

TEST(FairQueueTest, ClientHasNoCreditAfterAPause) {
  JobQueue jobs;
  for (int i = 0; i < 6; ++i) jobs.Push("busy", 10);
  for (int i = 0; i < 4; ++i) jobs.Serve();
  for (int i = 0; i < 3; ++i) jobs.Push("back", 10);
  EXPECT_THAT(jobs.ServeAll(), ElementsAre("back", "busy", "back", "busy", "back"));
}

TEST(FairQueueTest, DroppedItemCostsOtherClientsNothing) {
  JobQueue jobs;
  const JobQueue::Ticket dropped = jobs.Push("a", 10);
  jobs.Push("b", 10);
  EXPECT_EQ(jobs.queue.Drop(dropped).client, "a");
  EXPECT_THAT(jobs.ServeAll(), ElementsAre("b"));
  EXPECT_EQ(jobs.queue.size(), 0);
}

TEST(FairQueueTest, DroppedItemCostsItsOwnClientNothing) {
  JobQueue jobs;
  std::vector<JobQueue::Ticket> tickets;
  for (int i = 0; i < 5; ++i) tickets.push_back(jobs.Push("a", 10));
  for (int i = 0; i < 4; ++i) jobs.Push("b", 10);
  for (int i : {1, 0, 2}) jobs.queue.Drop(tickets[i]);
  jobs.Push("a", 10);
  EXPECT_THAT(jobs.ServeAll(), ElementsAre("a", "b", "a", "b", "b", "a", "b"));
}

TEST(FairQueueTest, InteractiveGoesFirstAndBatchIsNotStarved) {
  JobQueue jobs;
  for (int i = 0; i < 64; ++i) {
    jobs.Push("urgent", 10, Priority::kInteractive);
    jobs.Push("batch", 10, Priority::kBatch);
  }
  int urgent = 0, batch = 0;
  while (urgent < 32) (jobs.Serve().client == "urgent" ? urgent : batch) += 1;
  EXPECT_EQ(batch, 2) << "16 to 1";
}

TEST(FairQueueTest, InteractiveCallsOvertakeBatchCallsOfTheSameClient) {
  JobQueue jobs;
  for (int i = 0; i < 3; ++i) jobs.Push("a", 10, Priority::kBatch);
  jobs.Serve();
  jobs.Push("a", 10, Priority::kInteractive);
  EXPECT_EQ(jobs.Serve().priority, Priority::kInteractive);
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
    JobQueue jobs;
    std::map<Flow, int> waiting;
    std::map<Flow, double> served;
    for (int step = 0; step < 3000; ++step) {
      for (const Flow& flow : flows) {  // unequal load; all are always backlogged
        int pushes = 1 + static_cast<int>(random() % (flow.client == "a" ? 10 : 2));
        if (waiting[flow] > 50) pushes = 0;
        if (waiting[flow] == 0) pushes = std::max(pushes, 1);
        waiting[flow] += pushes;
        for (; pushes > 0; --pushes) jobs.Push(flow.client, 1 + random() % kMax, flow.priority);
      }
      const Job job = jobs.Serve();
      const Flow flow = {job.client, job.priority};
      --waiting[flow];
      served[flow] += static_cast<double>(job.work) / PriorityWeight(job.priority);
      for (const Flow& x : flows) {
        for (const Flow& y : flows) {
          EXPECT_LE(served[x] - served[y],
                    kMax / PriorityWeight(x.priority) + kMax / PriorityWeight(y.priority))
              << "seed " << seed << ", step " << step << ": " << x.client << " and " << y.client;
        }
      }
    }
  }
}

TEST(FairQueueTest, ClientGetsHalfItsShareAmongEverNewClients) {
  for (const Priority priority : {Priority::kBatch, Priority::kNormal}) {
    JobQueue jobs;
    constexpr int kNew = 20, kTurns = 10'000;
    int names = 0;
    for (; names < kNew; ++names) jobs.Push("new-" + std::to_string(names), 10);
    jobs.Push("old", 10, priority);
    int served = 0;
    for (int turn = 0; turn < kTurns; ++turn) {  // as many always wait
      if (jobs.Serve().client == "old") {
        ++served;
        jobs.Push("old", 10, priority);
      } else {
        jobs.Push("new-" + std::to_string(++names), 10);
      }
    }
    const double weight = PriorityWeight(priority);
    EXPECT_GE(served, 0.5 * kTurns * weight / (weight + kNew * PriorityWeight(Priority::kNormal)));
  }
}

// Theorem 1 again, for the flows of a client.
TEST(FairQueueTest, BackloggedIdsShareTheirClientsServiceEqually) {
  constexpr int kMax = 100;
  const std::vector<std::string> ids = {"", "x", "y"};
  for (unsigned seed = 0; seed < 30; ++seed) {
    std::mt19937 random(seed);
    JobQueue jobs;
    std::map<std::string, int> waiting;
    std::map<std::string, double> served;
    for (int step = 0; step < 2000; ++step) {
      for (const std::string& id : ids) {  // "y" sends just enough to be always backlogged
        int pushes = waiting[id] > 50 ? 0 : 1 + static_cast<int>(random() % 4);
        if (id == "y") pushes = waiting[id] > 0 ? 0 : 1;
        waiting[id] += pushes;
        for (; pushes > 0; --pushes)
          jobs.Push("a", 1 + static_cast<int>(random() % kMax), Priority::kNormal, 0, id);
      }
      if (jobs.queue.size() < 200) jobs.Push("b", 1 + static_cast<int>(random() % kMax));
      const Job job = jobs.Serve();
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
    JobQueue jobs;
    const std::map<std::string, int> ids = {{"a", ids_of_a}, {"b", ids_of_b}};
    std::map<std::string, int> waiting;
    std::map<std::string, double> served;
    for (int step = 0; step < 4000; ++step) {
      for (const auto& [client, count] : ids) {
        for (; waiting[client] < (count == 1 ? 2 : 64); ++waiting[client]) {
          jobs.Push(client, 1 + static_cast<int>(random() % kMax), Priority::kNormal, 0,
                    std::to_string(jobs.pushed % count));
        }
      }
      const Job job = jobs.Serve();
      --waiting[job.client];
      served[job.client] += static_cast<double>(job.work);
      EXPECT_LE(std::abs(served["a"] - served["b"]), 2 * kMax)
          << ids_of_a << " and " << ids_of_b << " ids, step " << step;
    }
  }
}

TEST(FairQueueTest, IdGetsHalfItsShareAmongEverNewIds) {
  constexpr int kNew = 20, kTurns = 10'000;
  JobQueue jobs;
  int names = 0;
  const auto push_new = [&] {
    jobs.Push("proxy", 10, Priority::kNormal, 0, "new-" + std::to_string(++names));
  };
  while (names < kNew) push_new();
  jobs.Push("proxy", 10, Priority::kNormal, 0, "old");
  int served = 0;
  for (int turn = 0; turn < kTurns; ++turn) {  // as many always wait
    if (jobs.Serve().caller == "old") {
      ++served;
      jobs.Push("proxy", 10, Priority::kNormal, 0, "old");
    } else {
      push_new();
    }
  }
  EXPECT_GE(served, kTurns / (1 + kNew) / 2);
}

TEST(FairQueueTest, IdDoesNotWaitForAnotherIdsQueue) {
  JobQueue jobs;
  for (int i = 0; i < 4; ++i) jobs.Push("proxy", 10, Priority::kNormal, 0, "many");
  jobs.Serve();
  jobs.Push("proxy", 10, Priority::kNormal, 0, "one");
  std::vector<std::string> callers;
  while (!jobs.queue.empty()) callers.push_back(jobs.Serve().caller);
  EXPECT_THAT(callers, ElementsAre("one", "many", "many", "many"));
}

TEST(FairQueueTest, DroppedItemCostsItsOwnIdNothing) {
  JobQueue jobs;
  std::vector<JobQueue::Ticket> tickets;
  for (int i = 0; i < 5; ++i)
    tickets.push_back(jobs.Push("proxy", 10, Priority::kNormal, 0, "late"));
  for (int i = 0; i < 3; ++i) jobs.Push("proxy", 10, Priority::kNormal, 0, "x");
  for (int i : {1, 0, 2}) jobs.queue.Drop(tickets[i]);
  jobs.Push("proxy", 10, Priority::kNormal, 0, "late");
  std::vector<std::string> callers;
  while (!jobs.queue.empty()) callers.push_back(jobs.Serve().caller);
  EXPECT_THAT(callers, ElementsAre("late", "x", "late", "x", "x", "late"));
}

JobQueue RandomLine(std::mt19937& random) {
  JobQueue jobs;
  for (int i = 0; i < 60; ++i) {
    const std::string client(1, static_cast<char>('a' + random() % 4));
    const uint64_t call = 1 + random() % 12;
    jobs.Push(client, 1 + static_cast<int>(random() % 50),
              random() % 3 == 0 ? Priority::kInteractive : Priority::kNormal, call,
              std::string(call % 3, 'x'));
    if (random() % 3 == 0) jobs.Serve();
  }
  return jobs;
}

TEST(FairQueueTest, CursorVisitsItemsInServiceOrder) {
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    JobQueue jobs = RandomLine(random);
    std::vector<uint64_t> met, served;
    for (FairQueue<Job>::Cursor at(jobs.queue); !at.done(); at.Take()) met.push_back((*at).id);
    while (!jobs.queue.empty()) served.push_back(jobs.Serve().id);
    EXPECT_EQ(met, served) << "round " << round;
  }
}

TEST(FairQueueTest, CursorSkipsACallAndServesOthersOutOfOrder) {
  std::mt19937 random(4);
  for (int round = 0; round < 200; ++round) {
    JobQueue jobs = RandomLine(random);
    const uint64_t skipped = 1 + random() % 12;
    std::vector<JobQueue::Ticket> tickets;
    for (FairQueue<Job>::Cursor at(jobs.queue); !at.done();) {
      if ((*at).call == skipped) {
        at.SkipCall();
        continue;
      }
      tickets.push_back(at.ticket());
      at.Take();
    }
    for (const JobQueue::Ticket& ticket : tickets)
      EXPECT_NE(jobs.queue.Serve(ticket).call, skipped);
    std::map<Flow, uint64_t> last;
    while (!jobs.queue.empty()) {
      const Job job = jobs.Serve();
      EXPECT_EQ(job.call, skipped);
      EXPECT_GT(job.id, std::exchange(last[{job.client, job.priority, job.caller}], job.id));
    }
    EXPECT_EQ(jobs.queue.size(), 0);
  }
}

// WorkUntil is an upper bound on the work served until the given work of the flow is served, to
// within one item of each flow on either side.
TEST(FairQueueTest, WorkUntilIsAnUpperBound) {
  std::mt19937 random(5);
  constexpr int kClients = 4, kIds = 3, kMax = 50;
  for (int round = 0; round < 100; ++round) {
    JobQueue jobs;
    for (int client = 0; client < kClients; ++client) {
      for (int i = static_cast<int>(random() % 400); i > 0; --i) {
        jobs.Push(std::string(1, static_cast<char>('a' + client)), 1 + random() % kMax,
                  Priority::kNormal, 0, std::string(random() % kIds, 'x'));
      }
    }
    const std::string client(1, static_cast<char>('a' + random() % (kClients + 1)));
    const int64_t work = 1 + static_cast<int>(random() % kMax);
    const double bound =
        jobs.queue.WorkUntil({client, Priority::kNormal, "x"}, static_cast<double>(work)) +
        kClients * kIds * 2 * kMax;
    jobs.Push(client, work, Priority::kNormal, 0, "x");
    const uint64_t own = jobs.pushed;
    double served = 0;
    while (true) {
      const Job job = jobs.Serve();
      served += static_cast<double>(job.work);
      if (job.id == own) break;
    }
    EXPECT_LE(served, bound) << "round " << round;
  }
}

}  // namespace
}  // namespace linnet::server
