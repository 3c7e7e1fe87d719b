#include "server/token_table.h"

#include "gmock/gmock.h"
#include "tests/support/status_matchers.h"

namespace linnet::server {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(TokenTableTest, ALineIsATokenItsNameAndItsRights) {
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

TEST(TokenTableTest, AByteOrderMarkIsNoPartOfTheFirstToken) {
  const auto table = TokenTable::Parse("\uFEFF0123456789abcdef search inference\r\n");
  ASSERT_THAT(table, IsOk());
  EXPECT_NE(table->Find("0123456789abcdef"), nullptr);
}

TEST(TokenTableTest, OnlyTheVeryTokenIsFound) {
  const auto table = TokenTable::Parse("0123456789abcdef search inference");
  ASSERT_THAT(table, IsOk());
  for (const char* token :
       {"", "0123456789abcde", "0123456789abcdeF", "0123456789abcdef0", "search"})
    EXPECT_EQ(table->Find(token), nullptr) << token;
}

TEST(TokenTableTest, WhatIsWrongIsNamedByItsLineAndNeverByTheToken) {
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
