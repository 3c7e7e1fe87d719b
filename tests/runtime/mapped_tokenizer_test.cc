#include "model/runtime/tokenizer/tokenizer.h"

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "model/runtime/text/segmenter.h"
#include "model/runtime/tokenizer/vocabulary.h"
#include "tests/runtime/words_golden.h"
#include "tests/support/status_matchers.h"

namespace linnet::model {
namespace {

// Ids of tiny.vocab, in the order of a Marian model.
constexpr SpecialTokens kMarian = {.bos = 0, .pad = 399, .eos = 0, .unk = 1};

class MappedTokenizerTest : public testing::Test {
 protected:
  void SetUp() override {
    absl::StatusOr<std::unique_ptr<Tokenizer>> tokenizer = Tokenizer::Load(spec_, kMarian);
    ASSERT_THAT(tokenizer, IsOk());
    tokenizer_ = *std::move(tokenizer);
    absl::StatusOr<Vocabulary> vocabulary = Vocabulary::Parse(TestDataContents("tiny.vocab"));
    ASSERT_THAT(vocabulary, IsOk());
    vocabulary_ = *std::move(vocabulary);
  }

  TokenId Id(absl::string_view piece) const { return vocabulary_.Find(piece).value(); }

  const TokenizerSpec spec_ = {.subword_file = TestData("tiny.spm"),
                               .vocabulary_file = TestData("tiny.vocab")};
  std::unique_ptr<Tokenizer> tokenizer_;
  Vocabulary vocabulary_;
};

TEST_F(MappedTokenizerTest, MapsPiecesToIdsOfTheVocabulary) {
  const nlohmann::json& cases = GoldenWords()["mapped_pieces"];
  ASSERT_GT(cases.size(), 60);
  for (const nlohmann::json& each : cases) {
    EXPECT_THAT(tokenizer_->Encode(each["text"].get<std::string>()),
                IsOkAndHolds(each["ids"].get<std::vector<TokenId>>()))
        << each;
  }
}

TEST_F(MappedTokenizerTest, TextWithoutUnknownPiecesSurvivesRoundTrip) {
  for (const std::string text : {"The dog runs.", "größer 😀 日本語", "a<ph0>b"}) {
    const absl::StatusOr<std::vector<TokenId>> tokens = tokenizer_->Encode(text);
    ASSERT_THAT(tokens, IsOk());
    EXPECT_EQ(tokenizer_->Decode(*tokens), text);
  }
}

TEST_F(MappedTokenizerTest, DecodesPiecesThatOnlyTheVocabularyHas) {
  const std::vector<TokenId> tokens = {Id("\u2581ailleurs"), Id("\u2581The"), Id("\u2581ailleurs"),
                                       Id("s"), kMarian.eos};
  EXPECT_EQ(tokenizer_->Decode(tokens), "ailleurs The ailleurss");
}

TEST_F(MappedTokenizerTest, EncodesMissingPiecesAsUnknown) {
  const absl::StatusOr<std::vector<TokenId>> tokens = tokenizer_->Encode("The cat and");
  ASSERT_THAT(tokens, IsOk());
  EXPECT_EQ(std::count(tokens->begin(), tokens->end(), kMarian.unk), 1);
  EXPECT_EQ(tokenizer_->Decode(std::vector<TokenId>{kMarian.unk}),
            tokenizer_->Decode(std::vector<TokenId>{4000}));
}

TEST_F(MappedTokenizerTest, NameOfALanguageInATextIsText) {
  for (const char* text : {">>fra<<", ">>fra<< The dog", "The >>fra<< dog", ">>fra<<>>fra<<"}) {
    const absl::StatusOr<std::vector<TokenId>> tokens = tokenizer_->Encode(text);
    ASSERT_THAT(tokens, IsOk());
    EXPECT_EQ(std::count(tokens->begin(), tokens->end(), Id(">>fra<<")), 0) << text;
    EXPECT_GT(tokens->size(), 1) << text;
  }
}

TEST_F(MappedTokenizerTest, TextsNeitherBecomeNorShowControlIds) {
  const TokenId dog = Id("\u2581The");
  TokenizerSpec spec = spec_;
  spec.control_ids = {dog};
  const auto tokenizer = Tokenizer::Load(spec, kMarian);
  ASSERT_THAT(tokenizer, IsOk());
  EXPECT_EQ(tokenizer_->Encode("The")->front(), dog);
  EXPECT_EQ((*tokenizer)->Encode("The")->front(), kMarian.unk);
  const std::vector<TokenId> tokens = {dog, Id("\u2581ailleurs"), dog};
  EXPECT_EQ((*tokenizer)->Decode(tokens), "ailleurs");
  EXPECT_EQ((*tokenizer)->Grammar(450).classes()[dog], TokenGrammar::kControl);
}

TEST_F(MappedTokenizerTest, TextNeverEncodesToSpecialTokens) {
  for (const std::string text : {"</s>", "<pad>", "a </s> b", ">>fra<<</s>"}) {
    const absl::StatusOr<std::vector<TokenId>> tokens = tokenizer_->Encode(text);
    ASSERT_THAT(tokens, IsOk());
    for (TokenId token : *tokens) EXPECT_TRUE(token != kMarian.eos && token != kMarian.pad) << text;
  }
}

TEST_F(MappedTokenizerTest, DecodesAnyTokensToValidText) {
  std::mt19937 random(5);
  for (int round = 0; round < 2000; ++round) {
    std::vector<TokenId> tokens(random() % 12);
    for (TokenId& token : tokens) token = static_cast<TokenId>(random() % 450) - 20;
    EXPECT_EQ(FirstInvalidUtf8(tokenizer_->Decode(tokens)), -1);
  }
}

}  // namespace
}  // namespace linnet::model
