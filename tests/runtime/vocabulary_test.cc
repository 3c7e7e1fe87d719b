#include "model/runtime/tokenizer/vocabulary.h"

#include <string>

#include "gmock/gmock.h"
#include "tests/support/status_matchers.h"

namespace linnet::model {
namespace {

using ::testing::AllOf;
using ::testing::Eq;
using ::testing::HasSubstr;
using ::testing::Optional;

TEST(VocabularyTest, LineNumberIsTheId) {
  const absl::StatusOr<Vocabulary> vocabulary = Vocabulary::Parse("<s>\n<pad>\nthe\n@@\n");
  ASSERT_THAT(vocabulary, IsOk());
  EXPECT_EQ(vocabulary->size(), 4);
  EXPECT_THAT(vocabulary->Find("<s>"), Optional(0));
  EXPECT_THAT(vocabulary->Find("@@"), Optional(3));
  EXPECT_EQ(vocabulary->Piece(2), "the");
  EXPECT_THAT(vocabulary->Find("The"), Eq(std::nullopt));
}

TEST(VocabularyTest, KeepsPiecesOfWhiteSpace) {
  const absl::StatusOr<Vocabulary> vocabulary =
      Vocabulary::Parse("a\n \n\t\n\r\n\u2028\n\u00a0b \nlast");
  ASSERT_THAT(vocabulary, IsOk());
  EXPECT_EQ(vocabulary->size(), 7);
  for (const std::string piece : {"a", " ", "\t", "\r", "\u2028", "\u00a0b ", "last"}) {
    ASSERT_TRUE(vocabulary->Find(piece).has_value());
    EXPECT_EQ(vocabulary->Piece(*vocabulary->Find(piece)), piece);
  }
}

TEST(VocabularyTest, ReturnsEmptyPieceForOtherIds) {
  const absl::StatusOr<Vocabulary> vocabulary = Vocabulary::Parse("a\n\nb\n\n");
  ASSERT_THAT(vocabulary, IsOk());
  EXPECT_EQ(vocabulary->size(), 4);
  for (TokenId id : {-1, 1, 3, 4, 1 << 30}) EXPECT_EQ(vocabulary->Piece(id), "");
  EXPECT_THAT(vocabulary->Find(""), Eq(std::nullopt));
}

TEST(VocabularyTest, RefusesInvalidVocabularies) {
  const auto says = [](const auto& what) {
    return StatusIs(absl::StatusCode::kFailedPrecondition, what);
  };
  EXPECT_THAT(Vocabulary::Parse("a\nb\na\n").status(),
              says(AllOf(HasSubstr("lines 1 and 3"), HasSubstr("\"a\""))));
  EXPECT_THAT(Vocabulary::Parse("a\n\xff\n").status(), says(HasSubstr("line 2 is not UTF-8")));
  EXPECT_THAT(Vocabulary::Parse("").status(), says(HasSubstr("no pieces")));
  EXPECT_THAT(Vocabulary::Parse("\n\n").status(), says(HasSubstr("no pieces")));
}

}  // namespace
}  // namespace linnet::model
