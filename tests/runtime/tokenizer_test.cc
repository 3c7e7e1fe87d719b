#include "model/runtime/tokenizer.h"

#include <unicode/utf8.h>

#include <algorithm>
#include <fstream>
#include <numeric>
#include <random>
#include <thread>

#include "gmock/gmock.h"
#include "model/runtime/segmenter.h"
#include "tests/support/status_matchers.h"

namespace linnet::model {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::filesystem::path kTiny =
    std::filesystem::path(LINNET_SOURCE_DIR) / "tests/data/tiny.spm";
// Ids of the bytes in tiny.spm: behind four special tokens and two placeholders.
constexpr TokenId kByte0 = 6;

class TokenizerTest : public testing::Test {
 protected:
  void SetUp() override {
    absl::StatusOr<std::unique_ptr<Tokenizer>> tokenizer = Tokenizer::Load(kTiny, {});
    ASSERT_THAT(tokenizer, IsOk());
    tokenizer_ = *std::move(tokenizer);
  }

  std::string RoundTrip(const std::string& text) const {
    const absl::StatusOr<std::vector<TokenId>> tokens = tokenizer_->Encode(text);
    return tokens.ok() ? tokenizer_->Decode(*tokens) : tokens.status().ToString();
  }

  std::unique_ptr<Tokenizer> tokenizer_;
};

absl::Status LoadStatus(const std::string& name, const std::string& contents) {
  const std::filesystem::path file = std::filesystem::path(testing::TempDir()) / name;
  std::ofstream(file, std::ios::binary) << contents;
  return Tokenizer::Load(file, {}).status();
}

TEST_F(TokenizerTest, EveryTextComesBackAsItWas) {
  for (const std::string text :
       {"The dog runs.", "Über die Brücke läuft ein Hund; größer wäre schöner.",
        "https://example.org/a?b=1&c=%20#top", "tabs\tand\nnew lines", "  two blanks  ",
        "😀 👩‍👩‍👧 🇩🇪", "日本語テキスト", "mixed<ph0>with<ph1>places",
        "\x01\x7f", "e\u0301 \u00a0 \u200b \ufffd", " "}) {
    EXPECT_EQ(RoundTrip(text), text);
  }
}

TEST_F(TokenizerTest, RandomUnicodeComesBackAsItWas) {
  std::mt19937 random(1);
  for (int round = 0; round < 500; ++round) {
    std::string text;
    while (random() % 30 != 0) {
      const UChar32 c = static_cast<UChar32>(random() % (random() % 2 == 0 ? 0x80 : 0x11000));
      // U+2581 is SentencePiece's own sign for a blank and comes back as one; surrogates are no
      // characters.
      if (c == 0 || c == 0x2581 || (c >= 0xD800 && c < 0xE000)) continue;
      char bytes[4];
      int size = 0;
      U8_APPEND_UNSAFE(bytes, size, c);
      text.append(bytes, size);
    }
    ASSERT_EQ(RoundTrip(text), text) << "round " << round;
  }
}

TEST_F(TokenizerTest, NothingIsUnknown) {
  const absl::StatusOr<std::vector<TokenId>> tokens = tokenizer_->Encode("😀 日本 Ж");
  ASSERT_THAT(tokens, IsOk());
  EXPECT_EQ(std::count(tokens->begin(), tokens->end(), SpecialTokens().unk), 0);
}

TEST_F(TokenizerTest, EmptyTextHasNoTokens) {
  EXPECT_THAT(tokenizer_->Encode(""), IsOkAndHolds(IsEmpty()));
  EXPECT_EQ(tokenizer_->Decode({}), "");
}

TEST_F(TokenizerTest, SpecialTokensSayNothing) {
  absl::StatusOr<std::vector<TokenId>> tokens = tokenizer_->Encode("the house");
  ASSERT_THAT(tokens, IsOk());
  tokens->insert(tokens->begin(), {0, 2});
  tokens->insert(tokens->end(), {2, 1, 1});
  EXPECT_EQ(tokenizer_->Decode(*tokens), "the house");
}

TEST_F(TokenizerTest, PlaceholdersAreOnePieceEach) {
  const absl::StatusOr<std::vector<TokenId>> tokens = tokenizer_->Encode("a<ph0>b<ph1>c");
  ASSERT_THAT(tokens, IsOk());
  EXPECT_EQ(std::count(tokens->begin(), tokens->end(), 4), 1);
  EXPECT_EQ(std::count(tokens->begin(), tokens->end(), 5), 1);
}

TEST_F(TokenizerTest, BytesThatAreNoCharacterBecomeReplacementCharacters) {
  EXPECT_EQ(tokenizer_->Decode(std::vector<TokenId>{kByte0 + 0xE2}), "\uFFFD");
  EXPECT_EQ(tokenizer_->Decode(std::vector<TokenId>{kByte0 + 0x80, kByte0 + 'a'}), "\uFFFDa");
  EXPECT_EQ(tokenizer_->Decode(std::vector<TokenId>{kByte0 + 0xC3, kByte0 + 0xBC}), "ü");
}

TEST_F(TokenizerTest, DecodeMakesValidTextOfAnyTokens) {
  std::mt19937 random(2);
  for (int round = 0; round < 2000; ++round) {
    std::vector<TokenId> tokens(random() % 12);
    for (TokenId& token : tokens) token = static_cast<TokenId>(random() % 500) - 20;
    EXPECT_EQ(FirstInvalidUtf8(tokenizer_->Decode(tokens)), -1);
  }
  EXPECT_EQ(tokenizer_->Decode(std::vector<TokenId>{tokenizer_->pieces()}),
            tokenizer_->Decode(std::vector<TokenId>{SpecialTokens().unk}));
}

TEST_F(TokenizerTest, ManyThreadsReadOneTokenizer) {
  const std::string text = "The children are playing near the house. Größe 42.";
  const std::string expected = RoundTrip(text);
  std::vector<int> right(4);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      for (int round = 0; round < 200; ++round) right[i] += RoundTrip(text) == expected;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(std::accumulate(right.begin(), right.end(), 0), 800);
}

TEST(TokenizerLoadTest, RefusesWhatIsNoModel) {
  EXPECT_THAT(Tokenizer::Load("/no/such/file.spm", {}).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("/no/such/file.spm")));
  EXPECT_THAT(LoadStatus("empty.spm", ""),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("empty.spm")));
  EXPECT_THAT(LoadStatus("text.spm", "this is a text, not a model"),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("text.spm")));
  std::ifstream tiny(kTiny, std::ios::binary);
  const std::string whole((std::istreambuf_iterator<char>(tiny)), {});
  ASSERT_GT(whole.size(), 4000);
  EXPECT_THAT(LoadStatus("half.spm", whole.substr(0, whole.size() / 2 + 1)),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("half.spm")));
}

TEST(TokenizerLoadTest, RefusesSpecialIdsThatAreNotTheVocabularys) {
  EXPECT_THAT(Tokenizer::Load(kTiny, {.bos = 1, .pad = 0}).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("bos"), HasSubstr("id 0"), HasSubstr("says 1"))));
}

}  // namespace
}  // namespace linnet::model
