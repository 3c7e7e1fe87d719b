// Work in a few sizes is recorded once and then launched as a whole. A fake recorder stands for
// CUDA.
#include "model/torch/module/recorded_work.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

namespace linnet::model {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

const c10::Stream kCpu(c10::Stream::DEFAULT, at::Device(at::kCPU));

// What happened, in order: the size of work and the mode of its gemms.
std::vector<std::pair<int, ops::GemmMode>>& Ran() {
  static std::vector<std::pair<int, ops::GemmMode>> ran;
  return ran;
}

class FakeRecorder final : public ops::GraphRecorder {
 public:
  static inline int recorded = 0, launched = 0, fail_at = 0;

  std::unique_ptr<ops::Graph> Record(c10::function_ref<void()> work) override {
    struct Counts final : ops::Graph {
      void Launch() override { ++launched; }
    };
    if (++recorded == fail_at) throw std::runtime_error("not permitted");
    work();
    return std::make_unique<Counts>();
  }
};

class RecordedWorkTest : public ::testing::Test {
 protected:
  RecordedWorkTest() {
    Ran().clear();
    FakeRecorder::recorded = FakeRecorder::launched = FakeRecorder::fail_at = 0;
    ops::SetNewGraphRecorder(
        []() -> std::unique_ptr<ops::GraphRecorder> { return std::make_unique<FakeRecorder>(); });
  }
  ~RecordedWorkTest() override { ops::SetNewGraphRecorder(nullptr); }

  static RecordedWork Make(bool time_gemms) {
    return {"a step", "rows", {2, 4, 7}, time_gemms, [](int size) {
              Ran().emplace_back(size, ops::GemmScope::current());
            }};
  }
};

TEST_F(RecordedWorkTest, EachSizeRunsOnceAndIsRecordedAfterItsGemmsAreChosen) {
  using ops::GemmMode;
  RecordedWork work = Make(/*time_gemms=*/true);
  work.Prepare(kCpu, "");
  EXPECT_THAT(Ran(), ElementsAre(Pair(7, GemmMode::kChoose), Pair(7, GemmMode::kTable),
                                 Pair(4, GemmMode::kChoose), Pair(4, GemmMode::kTable),
                                 Pair(2, GemmMode::kChoose), Pair(2, GemmMode::kTable)));
  EXPECT_EQ(work.summary(), "3 graphs");
  Ran().clear();
  for (int items = 1; items <= 7; ++items) work.Launch(work.SizeFor(items));
  EXPECT_EQ(FakeRecorder::launched, 7);
  EXPECT_EQ(FakeRecorder::recorded, 3) << "no size is recorded later";
  EXPECT_THAT(Ran(), IsEmpty());
}

TEST_F(RecordedWorkTest, WithoutGraphsTheWorkRunsAtEachLaunch) {
  RecordedWork work = Make(/*time_gemms=*/false);
  work.Prepare(kCpu, "they were not asked for");
  EXPECT_THAT(Ran(), IsEmpty());
  EXPECT_EQ(work.summary(), "no graphs: they were not asked for");
  work.Launch(work.SizeFor(3));
  EXPECT_THAT(Ran(), ElementsAre(Pair(4, ops::GemmMode::kLibrary)));
  EXPECT_EQ(FakeRecorder::launched, 0);
}

TEST_F(RecordedWorkTest, WorkIsPaddedToTheNextSize) {
  RecordedWork work = Make(/*time_gemms=*/false);
  EXPECT_EQ(work.max(), 7);
  std::vector<int> sizes;
  for (int items : {1, 2, 3, 4, 5, 7}) sizes.push_back(work.SizeFor(items));
  EXPECT_THAT(sizes, ElementsAre(2, 2, 4, 4, 7, 7));
}

TEST_F(RecordedWorkTest, FailedRecordingNamesTheWork) {
  FakeRecorder::fail_at = 2;
  RecordedWork work = Make(/*time_gemms=*/false);
  try {
    work.Prepare(kCpu, "");
    FAIL() << "nothing was thrown";
  } catch (const GraphsFailed& failed) {
    EXPECT_STREQ(failed.what(), "recording a step of 4 rows failed: not permitted");
  }
}

}  // namespace
}  // namespace linnet::model
