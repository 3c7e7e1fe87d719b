#include "server/cache/answer_cache.h"

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "model/runtime/search/search_options.h"
#include "tests/support/changed_option.h"

namespace linnet::server {
namespace {

using ::testing::IsNull;
using ::testing::NotNull;

CachedAnswer AnswerOf(int tokens) {
  CachedAnswer answer;
  answer.hypotheses.resize(1);
  answer.hypotheses.front().tokens.assign(tokens, 7);
  return answer;
}

model::SequenceInput InputOf(std::vector<model::TokenId> source) {
  model::SequenceInput input;
  input.source = std::move(source);
  return input;
}

// A requested length that is only a name.
struct NamedLength : model::TargetLength {
  explicit NamedLength(std::string name) : name_(std::move(name)) {}
  State After(std::span<const model::TokenId>) const override { return State::kEnough; }
  std::span<const model::TokenId> word_starts() const override { return {}; }
  std::string name() const override { return name_; }
  std::string name_;
};

TEST(AnswerCacheTest, ReturnsWhatWasInsertedUnderTheSameKeyOnly) {
  AnswerCache cache(1 << 20, CacheTenant::kShared);
  ModelCache model(cache, "en-de");
  EXPECT_THAT(model.Find("a"), IsNull());
  model.Insert("a", AnswerOf(5));
  ASSERT_THAT(model.Find("a"), NotNull());
  EXPECT_EQ(model.Find("a")->hypotheses.front().tokens.size(), 5);
  EXPECT_THAT(model.Find("b"), IsNull());
}

TEST(AnswerCacheTest, HasADifferentKeyForEveryFieldOfASequence) {
  AnswerCache cache(1 << 20, CacheTenant::kShared);
  const ModelCache model(cache, "en-de");
  const std::vector<std::function<void(model::SequenceInput&)>> changes = {
      [](auto&) {},
      [](auto& input) {
        input.source = {5, 7, 6, 2};
      },
      [](auto& input) {
        input.source = {5, 6};
      },
      [](auto& input) { input.before_text = 1; },
      [](auto& input) { input.after_text = 1; },
      [](auto& input) { input.prefix = {5}; },
      [](auto& input) { input.silent = {5}; },
      [](auto& input) { input.target = {5}; },
      [](auto& input) { input.target = std::vector<model::TokenId>(); },
      [](auto& input) {
        input.constraints = {{5, 6}};
      },
      [](auto& input) {
        input.constraints = {{5}, {6}};
      },
      [](auto& input) {
        input.continuations =
            std::make_shared<const std::vector<model::TokenId>>(std::vector<model::TokenId>{5});
      },
      [](auto& input) { input.length = std::make_shared<const NamedLength>("3 words"); },
      [](auto& input) { input.length = std::make_shared<const NamedLength>("4 words"); },
      [](auto& input) { input.align = true; },
      [](auto& input) { input.options.seed = 0; }};
  std::set<std::string> keys;
  for (const model::SearchOption& option : model::kSearchOptions) {
    model::SequenceInput input = InputOf({5, 6, 7, 2});
    test::ChangeOption(option, input.options);
    keys.insert(model.MakeKey({}, input));
  }
  for (const auto& change : changes) {
    model::SequenceInput input = InputOf({5, 6, 7, 2});
    change(input);
    keys.insert(model.MakeKey({}, input));
  }
  EXPECT_EQ(keys.size(), changes.size() + std::size(model::kSearchOptions));
}

TEST(AnswerCacheTest, HasOneKeyForIdenticalSequences) {
  AnswerCache cache(1 << 20, CacheTenant::kShared);
  const ModelCache model(cache, "en-de");
  model::SequenceInput input = InputOf({5, 6, 2});
  const std::string key = model.MakeKey({.client = "a"}, input);
  input.id = 9;
  input.report_stable = true;
  EXPECT_EQ(model.MakeKey({.client = "b", .call = 3}, input), key);
  EXPECT_NE(ModelCache(cache, "de-en").MakeKey({.client = "a"}, input), key);
}

TEST(AnswerCacheTest, SeparatesTokensByDefault) {
  AnswerCache cache(1 << 20, CacheTenant::kToken);
  const ModelCache model(cache, "en-de");
  const model::SequenceInput input = InputOf({5, 6, 2});
  EXPECT_NE(model.MakeKey({.client = "subject:a"}, input),
            model.MakeKey({.client = "subject:b"}, input));
  EXPECT_NE(model.MakeKey({.client = "network", .address = "a"}, input),
            model.MakeKey({.client = "network", .address = "b"}, input));
  EXPECT_EQ(model.MakeKey({.client = "subject:a", .call = 1, .id = "x"}, input),
            model.MakeKey({.client = "subject:a", .call = 2, .id = "y"}, input));
}

TEST(AnswerCacheTest, EvictsTheLeastRecentlyUsedWhenItIsFull) {
  constexpr int64_t kBytes = 4000;
  AnswerCache cache(kBytes, CacheTenant::kShared);
  ModelCache model(cache, "en-de");
  for (const char* key : {"a", "b", "c"}) model.Insert(key, AnswerOf(100));
  ASSERT_EQ(cache.stats().entries, 3);
  EXPECT_THAT(model.Find("a"), NotNull());
  model.Insert("d", AnswerOf(200));
  EXPECT_THAT(model.Find("b"), IsNull());
  EXPECT_THAT(model.Find("a"), NotNull());
  EXPECT_THAT(model.Find("d"), NotNull());
  EXPECT_GE(cache.stats().evictions, 1);
  EXPECT_LE(cache.stats().bytes, kBytes);
}

TEST(AnswerCacheTest, CountsAnAnswersMemoryAndRefusesOneThatNeverFits) {
  AnswerCache cache(4000, CacheTenant::kShared);
  ModelCache model(cache, "en-de");
  model.Insert("long", AnswerOf(2000));
  EXPECT_EQ(cache.stats().entries, 0);
  model.Insert("short", AnswerOf(500));
  EXPECT_GT(cache.stats().bytes, 500 * static_cast<int64_t>(sizeof(model::TokenId)));
  model.Insert("short", AnswerOf(500));
  EXPECT_EQ(cache.stats().entries, 1) << "an answer is kept once";
}

TEST(AnswerCacheTest, ClearsOneModelAndClosesItForGood) {
  AnswerCache cache(1 << 20, CacheTenant::kShared);
  ModelCache one(cache, "one"), two(cache, "two");
  one.Insert("a", AnswerOf(5));
  two.Insert("b", AnswerOf(5));
  one.Clear();
  EXPECT_THAT(one.Find("a"), IsNull());
  EXPECT_THAT(two.Find("b"), NotNull());
  one.Insert("a", AnswerOf(5));
  EXPECT_THAT(one.Find("a"), NotNull());
  one.Close();
  one.Insert("a", AnswerOf(5));
  EXPECT_THAT(one.Find("a"), IsNull());
  EXPECT_EQ(cache.stats().entries, 1);
  EXPECT_EQ(cache.stats().evictions, 0) << "nothing had to make room";
}

}  // namespace
}  // namespace linnet::server
