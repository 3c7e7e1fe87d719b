#include "model/runtime/search/shortlist.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
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
using ::testing::Not;

// A file of the binary form, whose parts a test may change.
struct Binary {
  uint32_t sources = 4, targets = 10;
  std::vector<uint32_t> offsets = {0, 0, 2, 2, 5};
  std::vector<uint32_t> always = {9, 4};
  std::vector<uint32_t> candidates = {7, 5, 5, 8, 2};

  std::string bytes() const {
    std::string file = "LNSHORT1";
    const auto add = [&](uint32_t number, int width) {
      for (int i = 0; i < width; ++i) file.push_back(static_cast<char>(number >> (8 * i)));
    };
    const int width = targets <= 65536 ? 2 : 4;
    for (const uint32_t size : {sources, targets, static_cast<uint32_t>(always.size()),
                                static_cast<uint32_t>(candidates.size())})
      add(size, 4);
    for (const uint32_t offset : offsets) add(offset, 4);
    for (const uint32_t token : always) add(token, width);
    for (const uint32_t token : candidates) add(token, width);
    return file;
  }
};

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

TEST_F(ShortlistTest, BinaryFormHoldsTheSameAsJson) {
  const auto json = Read(kList), binary = Read(Binary().bytes());
  ASSERT_THAT(json, IsOk());
  ASSERT_THAT(binary, IsOk());
  for (const std::vector<TokenId>& source :
       std::vector<std::vector<TokenId>>{{}, {0}, {1}, {2}, {3}, {3, 1, 3}, {0, 1, 2, 3}}) {
    EXPECT_EQ(binary->TokensFor(source, {}), json->TokensFor(source, {}));
    const std::vector<TokenId> more = {0, 7};
    EXPECT_EQ(binary->TokensFor(source, more), json->TokensFor(source, more));
  }
}

TEST_F(ShortlistTest, IdsBeyondTwoBytesTakeFour) {
  Binary wide{.targets = 70000, .always = {69999}, .candidates = {65536, 5, 5, 65535, 2}};
  const auto list = Shortlist::Parse(wide.bytes(), 4, 70000, {});
  ASSERT_THAT(list, IsOk());
  EXPECT_THAT(list->TokensFor(std::vector<TokenId>{1, 3}, {}),
              ElementsAre(2, 3, 5, 65535, 65536, 69999));
  const auto json = Shortlist::Parse(
      R"({"always": [69999], "counts": [0, 2, 0, 3], "candidates": [65536, 5, 5, 65535, 2]})", 4,
      70000, {});
  ASSERT_THAT(json, IsOk());
  EXPECT_EQ(json->TokensFor(std::vector<TokenId>{1, 3}, {}),
            list->TokensFor(std::vector<TokenId>{1, 3}, {}));
}

TEST_F(ShortlistTest, RefusesBinaryFileThatIsDamagedOrOfAnotherModel) {
  const auto refused = [&](const std::string& bytes) {
    return std::string(Read(bytes).status().message());
  };
  const std::string whole = Binary().bytes();
  for (size_t size = 8; size < whole.size(); ++size)
    EXPECT_THAT(Read(whole.substr(0, size)), Not(IsOk()));
  EXPECT_THAT(refused(whole.substr(0, 20)), HasSubstr("it has 20 bytes, its header needs 24"));
  EXPECT_THAT(refused(whole + "x"), HasSubstr("has 59 bytes, its header stands for 58"));
  EXPECT_THAT(refused(Binary{.targets = 11}.bytes()),
              HasSubstr("is of 11 target tokens, the model has 10"));
  EXPECT_THAT(refused(Binary{.sources = 3, .offsets = {0, 2, 2, 5}}.bytes()),
              HasSubstr("has counts of 3 source tokens, the model has 4"));
  EXPECT_THAT(refused(Binary{.always = {10}}.bytes()),
              HasSubstr("has the target token 10, the model has 10"));
  EXPECT_THAT(refused(Binary{.candidates = {7, 5, 65535, 8, 2}}.bytes()),
              HasSubstr("has the target token 65535, the model has 10"));
  for (const std::vector<uint32_t>& offsets : std::vector<std::vector<uint32_t>>{
           {1, 1, 2, 2, 5}, {0, 3, 2, 2, 5}, {0, 0, 2, 2, 4}, {0, 0, 9, 2, 5}, {0, 0, 2, 2, 6}}) {
    EXPECT_THAT(refused(Binary{.offsets = offsets}.bytes()),
                HasSubstr("has offsets that do not ascend from 0 to 5"));
  }
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
