#include "model/runtime/tokenizer/byte_level.h"

#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "model/runtime/text/characters.h"
#include "model/runtime/tokenizer/tokenizer.h"
#include "tests/runtime/words_golden.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temporary_folder.h"

namespace linnet::model {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::filesystem::path kData = TestData("byte_level");

// Results of Hugging Face's tokenizers (tests/data/byte_level/make.py).
const nlohmann::json& Golden() {
  static const nlohmann::json golden =
      nlohmann::json::parse(TestDataContents("byte_level/golden.json"));
  return golden;
}

TokenizerSpec ByteLevelSpec() {
  return {.subword_file = kData / "merges.txt",
          .subword_kind = linnet::v1::SUBWORD_KIND_BYTE_LEVEL_BPE,
          .vocabulary_file = kData / "pieces.vocab"};
}

std::vector<std::string> SplitWords(absl::string_view text) {
  const std::vector<absl::string_view> words = SplitForByteLevel(text);
  return {words.begin(), words.end()};
}

class ByteLevelTest : public testing::Test {
 protected:
  void SetUp() override {
    auto tokenizer = Tokenizer::Load(ByteLevelSpec(), {});
    ASSERT_THAT(tokenizer, IsOk());
    tokenizer_ = *std::move(tokenizer);
  }

  std::unique_ptr<Tokenizer> tokenizer_;
};

TEST_F(ByteLevelTest, IdsEqualTokenizersOnFuzzedUnicode) {
  ASSERT_GT(Golden()["encoded"].size(), 250);
  for (const nlohmann::json& each : Golden()["encoded"]) {
    const auto text = each["text"].get<std::string>();
    const auto ids = each["ids"].get<std::vector<TokenId>>();
    EXPECT_THAT(tokenizer_->Encode(text), IsOkAndHolds(ids)) << each;
    EXPECT_EQ(tokenizer_->Decode(ids), text);
  }
}

TEST_F(ByteLevelTest, TextOfAnyIdsEqualsTokenizers) {
  for (const nlohmann::json& each : Golden()["decoded"]) {
    EXPECT_EQ(tokenizer_->Decode(each["ids"].get<std::vector<TokenId>>()),
              each["text"].get<std::string>())
        << each;
  }
}

// ICU may be older than the tables of tokenizers, so characters that it does not know are left out.
TEST(ByteLevelSplitTest, KindOfEveryCharacterEqualsTokenizers) {
  int compared = 0;
  for (const nlohmann::json& range : Golden()["kinds"]) {
    for (UChar32 c = range[0]; c <= range[1].get<UChar32>(); ++c) {
      if (U_IS_SURROGATE(c) || u_charType(c) == U_UNASSIGNED) continue;
      char buffer[U8_MAX_LENGTH];
      int length = 0;
      U8_APPEND_UNSAFE(buffer, length, c);
      const absl::string_view character(buffer, length);
      int kind = 0;
      if (SplitForByteLevel(absl::StrCat("a", character)).size() == 1) kind = 1;
      if (SplitForByteLevel(absl::StrCat("1", character)).size() == 1) kind = 2;
      if (SplitForByteLevel(absl::StrCat("!", character)).size() == 1) kind = 3;
      EXPECT_EQ(kind, range[2].get<int>()) << std::hex << c;
      ++compared;
    }
  }
  EXPECT_GT(compared, 280000);
}

TEST(ByteLevelSplitTest, BlankBelongsToTheWordBehindIt) {
  EXPECT_THAT(SplitForByteLevel(""), IsEmpty());
  EXPECT_THAT(SplitWords("a b"), ElementsAre("a", " b"));
  EXPECT_THAT(SplitWords("a   b"), ElementsAre("a", "  ", " b"));
  EXPECT_THAT(SplitWords("a \t\nb "), ElementsAre("a", " \t", "\n", "b", " "));
  EXPECT_THAT(SplitWords("a\u00a0b"), ElementsAre("a", "\u00a0", "b"));
  EXPECT_THAT(SplitWords("  "), ElementsAre("  "));
}

TEST(ByteLevelSplitTest, ContractionsStandAlone) {
  EXPECT_THAT(SplitWords("we'll're"), ElementsAre("we", "'ll", "'re"));
  EXPECT_THAT(SplitWords("it's 's 'S"), ElementsAre("it", "'s", " '", "s", " '", "S"));
  EXPECT_THAT(SplitWords("''d'x"), ElementsAre("''", "d", "'", "x"));
}

TEST(ByteLevelSplitTest, WordsTogetherAreTheText) {
  for (const std::string text : {"\xff\xfe a\x80", "\u00e9\u0301 x", "a'", " '", "'"}) {
    std::string whole;
    for (absl::string_view word : SplitForByteLevel(text)) {
      EXPECT_FALSE(word.empty());
      absl::StrAppend(&whole, word);
    }
    EXPECT_EQ(whole, text);
  }
}

TEST_F(ByteLevelTest, NamesOfSpecialTokensAreText) {
  for (const std::string text : {"<s>", "</s>", "<pad> <unk>"}) {
    const absl::StatusOr<std::vector<TokenId>> tokens = tokenizer_->Encode(text);
    ASSERT_THAT(tokens, IsOk());
    for (TokenId token : *tokens) EXPECT_GT(token, 3);
    EXPECT_EQ(tokenizer_->Decode(*tokens), text);
  }
}

TEST_F(ByteLevelTest, SpecialTokensAreInNoText) {
  std::vector<TokenId> tokens = *tokenizer_->Encode("dog");
  tokens.insert(tokens.begin(), {0, 2});
  tokens.insert(tokens.end(), {2, 1});
  EXPECT_EQ(tokenizer_->Decode(tokens), "dog");
  EXPECT_EQ(tokenizer_->Decode(std::vector<TokenId>{3, 100000}), "<unk><unk>");
}

TEST_F(ByteLevelTest, ContinuationsExtendAWord) {
  const auto found = tokenizer_->Continuations();
  const auto continues = [&](absl::string_view piece) {
    const std::vector<TokenId> tokens = *tokenizer_->Encode(piece);
    EXPECT_EQ(tokens.size(), 1) << piece;
    return std::binary_search(found->begin(), found->end(), tokens[0]);
  };
  EXPECT_TRUE(continues("a"));
  EXPECT_TRUE(continues("1"));
  EXPECT_FALSE(continues(" a"));
  EXPECT_FALSE(continues("."));
  EXPECT_FALSE(continues("\n"));
}

TEST(ByteLevelLoadTest, RefusesDamagedFiles) {
  const test::TemporaryFolder folder;
  const auto status = [&](const std::string& merges) {
    TokenizerSpec spec = ByteLevelSpec();
    spec.subword_file = folder.path() / "merges.txt";
    std::ofstream(spec.subword_file, std::ios::binary) << merges;
    return Tokenizer::Load(spec, {}).status();
  };
  const auto says = [](const std::string& what) {
    return StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr(what));
  };
  EXPECT_THAT(status("#version: 0.2 - Trained by `huggingface/tokenizers`\na b\n"), IsOk());
  EXPECT_THAT(status("a b\n"), IsOk());
  EXPECT_THAT(status("#version: 0.2\n"), says("has no merge operations"));
  EXPECT_THAT(status("a b\nab\n"), says("line 2 is no merge operation"));
  EXPECT_THAT(status("a b\n\xff b\n"), says("line 2 is not UTF-8"));
  TokenizerSpec spec = ByteLevelSpec();
  spec.vocabulary_file.clear();
  EXPECT_THAT(Tokenizer::Load(spec, {}).status(), says("need a vocabulary file"));
}

}  // namespace
}  // namespace linnet::model
