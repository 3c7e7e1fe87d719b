#include "server/identity/token_table.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "tests/support/status_matchers.h"

namespace linnet::server {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(TokenTableTest, ParsesTokenNameAndRights) {
  const auto table = TokenTable::Parse(
      "# made yesterday\n\n"
      "0123456789abcdef search inference\n"
      "fedcba9876543210 ops admin,inference  # both\r\n"
      "aaaaaaaaaaaaaaaa\tops\tadmin\n");
  ASSERT_THAT(table, IsOk());
  EXPECT_EQ(table->size(), 3);
  const Grant* search = table->Find("0123456789abcdef");
  ASSERT_NE(search, nullptr);
  EXPECT_EQ(search->name, "search");
  EXPECT_TRUE(search->inference);
  EXPECT_FALSE(search->admin);
  EXPECT_TRUE(table->Find("fedcba9876543210")->inference);
  EXPECT_TRUE(table->Find("fedcba9876543210")->admin);
  EXPECT_FALSE(table->Find("aaaaaaaaaaaaaaaa")->inference);
}

TEST(TokenTableTest, SkipsByteOrderMark) {
  const auto table = TokenTable::Parse("\uFEFF0123456789abcdef search inference\r\n");
  ASSERT_THAT(table, IsOk());
  EXPECT_NE(table->Find("0123456789abcdef"), nullptr);
}

TEST(TokenTableTest, ParsesMaxPriority) {
  const auto table = TokenTable::Parse(
      "0123456789abcdef nightly inference max-priority=batch\n"
      "fedcba9876543210 search inference,admin max-priority=normal # not above\n"
      "aaaaaaaaaaaaaaaa shop inference\n");
  ASSERT_THAT(table, IsOk());
  EXPECT_EQ(table->Find("0123456789abcdef")->max_priority, Priority::kBatch);
  EXPECT_EQ(table->Find("fedcba9876543210")->max_priority, Priority::kNormal);
  EXPECT_EQ(table->Find("aaaaaaaaaaaaaaaa")->max_priority, Priority::kInteractive);
  for (const char* word : {"max-priority=urgent", "max-priority", "normal", "priority=batch"}) {
    EXPECT_THAT(TokenTable::Parse(absl::StrCat("0123456789abcdef a inference ", word)),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr("line 1"), HasSubstr("batch, normal or interactive"))))
        << word;
  }
}

TEST(TokenTableTest, EnforcesMinTokenLength) {
  EXPECT_THAT(TokenTable::Parse("0123456789abcde search inference"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("15 characters"), HasSubstr("at least 16"))));
}

TEST(TokenTableTest, RefusesTokenThatNoClientCanSend) {
  using std::string_literals::operator""s;
  for (const std::string& token : {"0123456789\0abcdef"s,
                                   "0123456789\x7f"
                                   "abcdef"s,
                                   "0123456789äbcdef"s}) {
    EXPECT_THAT(TokenTable::Parse(absl::StrCat(token, " search inference")),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr("line 1"), HasSubstr("visible ASCII"))));
  }
  EXPECT_THAT(TokenTable::Parse("0123456789abcdef se\x01rch inference"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("control characters")));
}

TEST(TokenTableTest, FindsEachOfManyTokens) {
  std::string text;
  for (int i = 0; i < 1000; ++i)
    absl::StrAppend(&text, "token-0123456789-", i, " n", i, " admin\n");
  const auto table = TokenTable::Parse(text);
  ASSERT_THAT(table, IsOk());
  EXPECT_EQ(table->size(), 1000);
  for (int i : {0, 1, 500, 999}) {
    const Grant* grant = table->Find(absl::StrCat("token-0123456789-", i));
    ASSERT_NE(grant, nullptr);
    EXPECT_EQ(grant->name, absl::StrCat("n", i));
  }
}

TEST(TokenTableTest, FindsExactTokensOnly) {
  const auto table = TokenTable::Parse("0123456789abcdef search inference");
  ASSERT_THAT(table, IsOk());
  for (const char* token :
       {"", "0123456789abcde", "0123456789abcdeF", "0123456789abcdef0", "search"})
    EXPECT_EQ(table->Find(token), nullptr) << token;
}

TEST(TokenTableTest, ErrorsNameTheLineNotTheToken) {
  for (const char* bad :
       {"0123456789abcdef search", "0123456789abcdef search root",
        "0123456789abcde search inference", "0123456789abcdef a admin\n0123456789abcdef b admin"}) {
    EXPECT_THAT(TokenTable::Parse(bad), StatusIs(absl::StatusCode::kInvalidArgument,
                                                 AllOf(HasSubstr("line "), Not(HasSubstr("0123")))))
        << bad;
  }
  EXPECT_THAT(TokenTable::Parse("# nobody\n"), StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace linnet::server
