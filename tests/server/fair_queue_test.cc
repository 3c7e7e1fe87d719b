#include "server/schedule/fair_queue.h"

#include <map>
#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"

namespace linnet::server {
namespace {

using ::testing::ElementsAre;

// A queue of sequences that only have a name, a caller and a cost.
struct Line {
  void Push(const std::string& client, int64_t work, Priority priority = Priority::kNormal) {
    auto sequence = std::make_unique<Sequence>();
    sequence->caller = {.client = client, .priority = priority};
    sequence->most_tokens = work;
    sequence->rows = 1;
    sequence->input.id = ++pushed;
    queue.Push(std::move(sequence));
  }
  std::unique_ptr<Sequence> Serve() { return queue.Serve(queue.begin()); }
  // Clients in the order in which they are served.
  std::vector<std::string> ServeAll() {
    std::vector<std::string> clients;
    while (!queue.empty()) clients.push_back(Serve()->caller.client);
    return clients;
  }

  FairQueue queue;
  uint64_t pushed = 0;
};

TEST(FairQueueTest, OneClientIsServedInOrderOfArrival) {
  Line line;
  for (int64_t work : {7, 1, 100, 3}) line.Push("a", work);
  std::vector<uint64_t> order;
  while (!line.queue.empty()) order.push_back(line.Serve()->input.id);
  EXPECT_THAT(order, ElementsAre(1, 2, 3, 4));
}

TEST(FairQueueTest, ANewcomerDoesNotStandBehindTheWholeLineOfAnother) {
  Line line;
  for (int i = 0; i < 4; ++i) line.Push("many", 10);
  line.Serve();
  line.Push("one", 10);
  EXPECT_THAT(line.ServeAll(), ElementsAre("one", "many", "many", "many"));
}

TEST(FairQueueTest, WhoComesBackAfterAPauseHasSavedNothingUp) {
  Line line;
  for (int i = 0; i < 6; ++i) line.Push("busy", 10);
  for (int i = 0; i < 4; ++i) line.Serve();
  for (int i = 0; i < 3; ++i) line.Push("back", 10);
  EXPECT_THAT(line.ServeAll(), ElementsAre("back", "busy", "back", "busy", "back"));
}

TEST(FairQueueTest, WhatIsDroppedCostsTheOthersNothing) {
  Line line;
  line.Push("a", 10);
  line.Push("b", 10);
  line.queue.DropIf([](const Sequence& sequence) { return sequence.caller.client == "a"; });
  EXPECT_THAT(line.ServeAll(), ElementsAre("b"));
  EXPECT_EQ(line.queue.size(), 0);
}

TEST(FairQueueTest, WhatIsDroppedDoesNotCostItsOwnClientItsTurn) {
  Line line;
  for (int i = 0; i < 5; ++i) line.Push("a", 10);  // 1 to 5
  for (int i = 0; i < 4; ++i) line.Push("b", 10);
  const auto dropped =
      line.queue.DropIf([](const Sequence& sequence) { return sequence.input.id <= 3; });
  EXPECT_EQ(dropped.size(), 3);
  line.Push("a", 10);
  EXPECT_THAT(line.ServeAll(), ElementsAre("a", "b", "a", "b", "b", "a", "b"));
}

TEST(FairQueueTest, TheUrgentGoFirstAndThePatientAreServedAllTheSame) {
  Line line;
  for (int i = 0; i < 64; ++i) {
    line.Push("urgent", 10, Priority::kInteractive);
    line.Push("patient", 10, Priority::kBatch);
  }
  int urgent = 0, patient = 0;
  while (urgent < 32) (line.Serve()->caller.client == "urgent" ? urgent : patient) += 1;
  EXPECT_EQ(patient, 2) << "16 to 1";
}

TEST(FairQueueTest, OneClientsUrgentCallsOvertakeItsOwnPatientOnes) {
  Line line;
  for (int i = 0; i < 3; ++i) line.Push("a", 10, Priority::kBatch);
  line.Serve();
  line.Push("a", 10, Priority::kInteractive);
  EXPECT_EQ(line.Serve()->caller.priority, Priority::kInteractive);
}

// Goyal, Vin and Cheng 1996, theorem 1: over any time in which two flows always wait, the work that
// they get, each over its weight, differs by no more than one sequence of each.
TEST(FairQueueTest, WhoeverAlwaysWaitsGetsWorkInProportionWhateverItSends) {
  for (unsigned seed = 0; seed < 50; ++seed) {
    std::mt19937 random(seed);
    constexpr int kMost = 100;
    const std::vector<Flow> flows = {{"a", Priority::kNormal},
                                     {"b", Priority::kNormal},
                                     {"c", Priority::kBatch},
                                     {"d", Priority::kInteractive}};
    Line line;
    std::map<Flow, int> waiting;
    std::map<Flow, double> served;
    for (int step = 0; step < 3000; ++step) {
      for (const Flow& flow : flows) {  // some send much more than others, all always wait
        int pushes = 1 + static_cast<int>(random() % (flow.client == "a" ? 10 : 2));
        if (waiting[flow] > 50) pushes = 0;
        if (waiting[flow] == 0) pushes = std::max(pushes, 1);
        waiting[flow] += pushes;
        for (; pushes > 0; --pushes) line.Push(flow.client, 1 + random() % kMost, flow.priority);
      }
      const auto sequence = line.Serve();
      const Flow flow = FlowOf(sequence->caller);
      --waiting[flow];
      served[flow] += static_cast<double>(sequence->work()) / sequence->caller.weight();
      for (const Flow& x : flows) {
        for (const Flow& y : flows) {
          EXPECT_LE(served[x] - served[y],
                    kMost / WeightOf(x.priority) + kMost / WeightOf(y.priority))
              << "seed " << seed << ", step " << step << ": " << x.client << " and " << y.client;
        }
      }
    }
  }
}

TEST(FairQueueTest, AmongClientsThatAreAlwaysNewAnotherGetsHalfOfItsShareAtLeast) {
  for (const Priority priority : {Priority::kBatch, Priority::kNormal}) {
    Line line;
    constexpr int kNew = 20, kTurns = 10'000;
    int names = 0;
    for (; names < kNew; ++names) line.Push("new-" + std::to_string(names), 10);
    line.Push("old", 10, priority);
    int served = 0;
    for (int turn = 0; turn < kTurns; ++turn) {  // as many always wait
      if (line.Serve()->caller.client == "old") {
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

}  // namespace
}  // namespace linnet::server
