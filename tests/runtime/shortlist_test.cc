#include "model/runtime/search/shortlist.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "tests/support/status_matchers.h"
#include "tests/support/temporary_folder.h"

namespace linnet::model {
namespace {

using ::linnet::IsOk;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ShortlistTest : public ::testing::Test {
 protected:
  // Reads a shortlist for a model of four source and ten target tokens.
  absl::StatusOr<Shortlist> Read(const std::string& json) {
    const auto file = folder_.path() / "shortlist.json";
    std::ofstream(file) << json;
    return Shortlist::Read(file, 4, 10, {});
  }

  test::TemporaryFolder folder_;
};

constexpr char kList[] =
    R"({"always": [9, 4], "counts": [0, 2, 0, 3], "candidates": [7, 5, 5, 8, 2]})";

TEST_F(ShortlistTest, ReturnsSortedDistinctTokens) {
  const auto list = Read(kList);
  ASSERT_THAT(list, IsOk());
  // 2 and 3 are eos and unk.
  EXPECT_THAT(list->TokensFor({}, {}), ElementsAre(2, 3, 4, 9));
  EXPECT_THAT(list->TokensFor(std::vector<TokenId>{0, 2}, {}), ElementsAre(2, 3, 4, 9));
  EXPECT_THAT(list->TokensFor(std::vector<TokenId>{3, 1, 3}, {}), ElementsAre(2, 3, 4, 5, 7, 8, 9));
  EXPECT_THAT(list->TokensFor(std::vector<TokenId>{1}, std::vector<TokenId>{0, 7}),
              ElementsAre(0, 2, 3, 4, 5, 7, 9));
}

TEST_F(ShortlistTest, RefusesFileThatDoesNotFitTheModel) {
  const auto refused = [&](const std::string& json) {
    return std::string(Read(json).status().message());
  };
  EXPECT_THAT(refused("{"), HasSubstr("is no shortlist"));
  EXPECT_THAT(refused(R"({"sometimes": [1]})"), HasSubstr("sometimes"));
  EXPECT_THAT(refused(R"({"counts": [1]})"),
              HasSubstr("has counts of 1 source tokens, the model has 4"));
  EXPECT_THAT(refused(R"({"counts": [0, -1, 0, 1]})"), HasSubstr("has a count of -1"));
  EXPECT_THAT(refused(R"({"counts": [0, 1, 0, 1], "candidates": [5]})"),
              HasSubstr("has 1 candidates, its counts sum up to 2"));
  EXPECT_THAT(refused(R"({"counts": [0, 1, 0, 0], "candidates": [10]})"),
              HasSubstr("has the target token 10, the model has 10"));
  EXPECT_THAT(refused(R"({"counts": [0, 0, 0, 0], "always": [-1]})"),
              HasSubstr("has the target token -1"));
  EXPECT_THAT(std::string(Shortlist::Read("/nowhere/list", 4, 10, {}).status().message()),
              HasSubstr("cannot read"));
}

}  // namespace
}  // namespace linnet::model
