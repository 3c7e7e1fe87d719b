// The choice among a library's gemms by their times, with a fake library.
#include "model/ops/gemm_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace linnet::ops {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

constexpr GemmShape kShape = {.type = FloatType::kFloat16,
                              .float32_result = false,
                              .bias = true,
                              .relu = false,
                              .rows = 5,
                              .outputs = 2048,
                              .inputs = 512};

// A candidate for each given time; without a time it does not run.
class FakeLibrary final : public GemmLibrary {
 public:
  explicit FakeLibrary(std::vector<std::optional<double>> microseconds)
      : microseconds_(std::move(microseconds)) {}

  std::vector<GemmAlgorithm> Candidates(const GemmShape&) override {
    ++asked;
    std::vector<GemmAlgorithm> candidates;
    for (size_t i = 0; i < microseconds_.size(); ++i) {
      candidates.push_back(
          {.name = "fake " + std::to_string(i), .words = {i}, .workspace_bytes = 0});
    }
    return candidates;
  }
  std::optional<double> Seconds(const GemmShape&, const GemmAlgorithm& algorithm,
                                int runs) override {
    timed.emplace_back(static_cast<int>(algorithm.words[0]), runs);
    const auto& time = microseconds_[algorithm.words[0]];
    return time ? std::optional(*time / 1e6) : std::nullopt;
  }

  int asked = 0;
  std::vector<std::pair<int, int>> timed;  // candidate and runs

 private:
  std::vector<std::optional<double>> microseconds_;
};

int ChosenOf(std::vector<std::optional<double>> microseconds) {
  FakeLibrary library(std::move(microseconds));
  const auto choice = ChooseGemm(kShape, library);
  return choice ? choice->candidate : -1;
}

TEST(GemmChoiceTest, TakesTheFastestCandidate) {
  EXPECT_EQ(ChosenOf({9.0, 5.0, 7.0}), 1);
  EXPECT_EQ(ChosenOf({9.0}), 0);
}

TEST(GemmChoiceTest, TakesTheEarliestOfEqualCandidates) {
  EXPECT_EQ(ChosenOf({5.0, 5.0, 5.0}), 0);
  EXPECT_EQ(ChosenOf({9.0, 5.1, 5.0}), 1) << "2 % are noise";
  EXPECT_EQ(ChosenOf({5.2, 5.1, 5.0}), 1) << "4 % are not";
}

TEST(GemmChoiceTest, PassesOverCandidatesThatDoNotRun) {
  EXPECT_EQ(ChosenOf({std::nullopt, 9.0, std::nullopt, 4.0}), 3);
  EXPECT_EQ(ChosenOf({std::nullopt, std::nullopt}), -1);
  EXPECT_EQ(ChosenOf({}), -1) << "the library keeps its own choice";
}

TEST(GemmChoiceTest, TimesTheFastestAndTheFirstAgain) {
  FakeLibrary library({9.0, 7.0, std::nullopt, 3.0, 5.0, 4.0, 6.0, 8.0});
  const auto choice = ChooseGemm(kShape, library);
  ASSERT_TRUE(choice);
  EXPECT_EQ(choice->candidate, 3);
  EXPECT_EQ(choice->candidates, 8);
  EXPECT_NEAR(*choice->first_seconds, 9e-6, 1e-12);
  ASSERT_EQ(library.timed.size(), 8 + 5);
  library.timed.erase(library.timed.begin(), library.timed.begin() + 8);
  EXPECT_THAT(library.timed, ElementsAre(Pair(3, kGemmRuns), Pair(5, kGemmRuns), Pair(4, kGemmRuns),
                                         Pair(6, kGemmRuns), Pair(0, kGemmRuns)));
}

TEST(GemmChoiceTest, TimesEachShapeOnce) {
  GemmTable table;
  FakeLibrary library({9.0, 5.0});
  EXPECT_EQ(table.Find(kShape), nullptr);
  const GemmChoice* choice = table.FindOrChoose(kShape, library);
  ASSERT_NE(choice, nullptr);
  EXPECT_EQ(choice->candidate, 1);
  EXPECT_EQ(table.FindOrChoose(kShape, library), choice);
  EXPECT_EQ(table.Find(kShape), choice);
  EXPECT_EQ(library.asked, 1);
  GemmShape other = kShape;
  other.rows = 6;
  EXPECT_EQ(table.Find(other), nullptr) << "another number of rows has a choice of its own";
  table.FindOrChoose(other, library);
  EXPECT_EQ(library.asked, 2);
  EXPECT_EQ(table.Find(kShape), choice) << "choices stay where they are";
}

TEST(GemmChoiceTest, DoesNotTryAgainWithoutAChoice) {
  GemmTable table;
  FakeLibrary library({std::nullopt});
  EXPECT_EQ(table.FindOrChoose(kShape, library), nullptr);
  EXPECT_EQ(table.FindOrChoose(kShape, library), nullptr);
  EXPECT_EQ(library.asked, 1);
}

TEST(GemmChoiceTest, DescribesShapesInOrder) {
  GemmTable table;
  FakeLibrary split({9.0, 5.0}), own({4.0, 8.0}), none({});
  GemmShape logits = kShape, wide = kShape;
  logits.float32_result = true;
  wide.rows = 160;
  wide.relu = true;
  table.FindOrChoose(wide, own);
  table.FindOrChoose(logits, none);
  table.FindOrChoose(kShape, split);
  EXPECT_THAT(
      table.Describe(),
      ElementsAre(
          "float16 5 x 512 x 2048 bias: candidate 2 of 2 (fake 1), 5.00 us; the first takes "
          "9.00 us",
          "float16 160 x 512 x 2048 bias relu: candidate 1 of 2 (fake 0), 4.00 us",
          "float16 to float32 5 x 512 x 2048 bias: the library's own, no candidate runs"));
}

TEST(GemmChoiceTest, ScopesNestAndHoldForOneThread) {
  EXPECT_EQ(GemmScope::current(), GemmMode::kLibrary);
  {
    const GemmScope outer(GemmMode::kChoose);
    {
      const GemmScope inner(GemmMode::kTable);
      EXPECT_EQ(GemmScope::current(), GemmMode::kTable);
    }
    EXPECT_EQ(GemmScope::current(), GemmMode::kChoose);
    std::thread([] { EXPECT_EQ(GemmScope::current(), GemmMode::kLibrary); }).join();
  }
  EXPECT_EQ(GemmScope::current(), GemmMode::kLibrary);
}

}  // namespace
}  // namespace linnet::ops
