#include "model/runtime/tokenizer/tokenizer.h"

#include <algorithm>
#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "model/runtime/text/characters.h"
#include "model/runtime/text/segmenter.h"
#include "model/runtime/tokenizer/vocabulary.h"
#include "tests/runtime/words_golden.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temporary_folder.h"

namespace linnet::model {
namespace {

using ::testing::IsEmpty;

// A model with byte pairs. Its vocabulary is the pieces of `sentences`.
class BytePairTokenizerTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pieces = "<s>\n<pad>\n</s>\n<unk>\n";
    std::set<std::string> seen;
    for (const nlohmann::json& each : GoldenWords()["byte_pairs"]) {
      if (each["codes"] != "v0.2.codes") continue;
      const auto line = each["pieces"].get<std::string>();
      for (absl::string_view piece : PartsOf(line, ' ')) {
        if (!piece.empty() && piece != "</s>" && seen.emplace(piece).second) {
          absl::StrAppend(&pieces, piece, "\n");
        }
      }
    }
    std::ofstream(folder_.path() / "dict.vocab", std::ios::binary) << pieces;
    vocabulary_ = *Vocabulary::Parse(pieces);
  }

  std::unique_ptr<Tokenizer> Load(linnet::v1::WordTokenizer words) const {
    auto tokenizer = Tokenizer::Load({.subword_file = TestData("v0.2.codes"),
                                      .subword_kind = linnet::v1::SUBWORD_KIND_BPE_CODES,
                                      .vocabulary_file = folder_.path() / "dict.vocab",
                                      .word_tokenizer = words,
                                      .language_code = "en"},
                                     {});
    EXPECT_THAT(tokenizer.status(), IsOk());
    return tokenizer.ok() ? *std::move(tokenizer) : nullptr;
  }

  const test::TemporaryFolder folder_;
  Vocabulary vocabulary_;
};

TEST_F(BytePairTokenizerTest, MapsPiecesToIds) {
  const std::unique_ptr<Tokenizer> tokenizer = Load(linnet::v1::WORD_TOKENIZER_UNSPECIFIED);
  for (const nlohmann::json& each : GoldenWords()["byte_pairs"]) {
    if (each["codes"] != "v0.2.codes") continue;
    std::vector<TokenId> expected;
    const auto line = each["pieces"].get<std::string>();
    for (absl::string_view piece : PartsOf(line, ' ')) {
      if (!piece.empty()) expected.push_back(vocabulary_.Find(piece).value_or(3));
    }
    const auto words = each["words"].get<std::string>();
    EXPECT_THAT(tokenizer->Encode(words), IsOkAndHolds(expected));
    if (words.find("@@") == std::string::npos && words.find("</") == std::string::npos) {
      EXPECT_EQ(tokenizer->Decode(expected), words);
    }
  }
}

TEST_F(BytePairTokenizerTest, AppliesMosesBeforeSubwords) {
  const std::unique_ptr<Tokenizer> tokenizer = Load(linnet::v1::WORD_TOKENIZER_MOSES);
  int known = 0;
  for (const nlohmann::json& each : GoldenWords()["moses"]) {
    if (each["language"] != "en") continue;
    const absl::StatusOr<std::vector<TokenId>> tokens =
        tokenizer->Encode(each["text"].get<std::string>());
    ASSERT_THAT(tokens, IsOk());
    const bool all_known = std::count(tokens->begin(), tokens->end(), 3) == 0;
    const auto text = each["from_words"].get<std::string>();
    if (!all_known) continue;
    ++known;
    EXPECT_EQ(tokenizer->Decode(*tokens), text);
  }
  EXPECT_GT(known, 40);
}

TEST_F(BytePairTokenizerTest, DecodesUnknownTokenAsItsName) {
  const std::unique_ptr<Tokenizer> tokenizer = Load(linnet::v1::WORD_TOKENIZER_UNSPECIFIED);
  EXPECT_THAT(tokenizer->Encode("\U0001F984"), IsOkAndHolds(testing::ElementsAre(3)));
  EXPECT_EQ(tokenizer->Decode(std::vector<TokenId>{3, 100000}), "<unk> <unk>");
}

TEST_F(BytePairTokenizerTest, EmptyTextHasNoTokens) {
  for (auto words : {linnet::v1::WORD_TOKENIZER_UNSPECIFIED, linnet::v1::WORD_TOKENIZER_MOSES}) {
    const std::unique_ptr<Tokenizer> tokenizer = Load(words);
    for (const std::string text : {"", " ", "\t \u00a0"}) {
      EXPECT_THAT(tokenizer->Encode(text), IsOkAndHolds(IsEmpty()));
    }
    EXPECT_EQ(tokenizer->Decode({}), "");
    EXPECT_EQ(tokenizer->Decode(std::vector<TokenId>{0, 1, 2}), "");
  }
}

TEST_F(BytePairTokenizerTest, SplitsLongTextIntoPartsThatFit) {
  const std::unique_ptr<Tokenizer> tokenizer = Load(linnet::v1::WORD_TOKENIZER_MOSES);
  const auto count = [&](absl::string_view text) {
    return static_cast<int>(tokenizer->Encode(text)->size()) + 1;
  };
  for (const std::string& text :
       {std::string(20000, 'x'), std::string(3000, '\''), std::string(3000, '.')}) {
    const auto segments = SplitText(text, "en", 50, count);
    ASSERT_THAT(segments, IsOk());
    std::string whole;
    for (const TextSegment& segment : *segments) {
      const std::string part = text.substr(segment.begin, segment.end - segment.begin);
      EXPECT_LE(count(part), 50);
      whole += part;
    }
    EXPECT_EQ(whole, text);
  }
}

}  // namespace
}  // namespace linnet::model
