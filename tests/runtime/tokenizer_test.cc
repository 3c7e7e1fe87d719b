#include "model/runtime/tokenizer/tokenizer.h"

#include <unicode/utf8.h>

#include <algorithm>
#include <fstream>
#include <numeric>
#include <random>
#include <set>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "model/runtime/text/characters.h"
#include "model/runtime/text/segmenter.h"
#include "tests/runtime/words_golden.h"
#include "tests/support/places.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temporary_folder.h"

namespace linnet::model {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::filesystem::path kTiny = SourceDir() / "tests/data/tiny.spm";
// Ids of the bytes in tiny.spm: after four special tokens and two placeholders.
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
  const test::TemporaryFolder folder;
  const std::filesystem::path file = folder.path() / name;
  std::ofstream(file, std::ios::binary) << contents;
  return Tokenizer::Load(file, {}).status();
}

TEST_F(TokenizerTest, TextsSurviveRoundTrip) {
  for (const std::string text :
       {"The dog runs.", "Über die Brücke läuft ein Hund; größer wäre schöner.",
        "https://example.org/a?b=1&c=%20#top", "tabs\tand\nnew lines", "  two blanks  ",
        "😀 👩‍👩‍👧 🇩🇪", "日本語テキスト", "mixed<ph0>with<ph1>places",
        "\x01\x7f", "e\u0301 \u00a0 \u200b \ufffd", " "}) {
    EXPECT_EQ(RoundTrip(text), text);
  }
}

TEST_F(TokenizerTest, RandomUnicodeSurvivesRoundTrip) {
  std::mt19937 random(1);
  for (int round = 0; round < 500; ++round) {
    std::string text;
    while (random() % 30 != 0) {
      const UChar32 c = static_cast<UChar32>(random() % (random() % 2 == 0 ? 0x80 : 0x11000));
      // U+2581 is SentencePiece's sign for a blank and is decoded as one; surrogates are not
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

TEST_F(TokenizerTest, EncodesEveryTextWithoutUnknownTokens) {
  const absl::StatusOr<std::vector<TokenId>> tokens = tokenizer_->Encode("😀 日本 Ж");
  ASSERT_THAT(tokens, IsOk());
  EXPECT_EQ(std::count(tokens->begin(), tokens->end(), SpecialTokens().unk), 0);
}

// A word is protected exactly if one of its tokens spells no letter, whichever letters stand beside
// each other.
TEST_F(TokenizerTest, WordsWithoutTokensAreProtected) {
  const std::vector<std::string> letters = {
      "a",      "e",      "o",      "u",      "\u00FC", "\u00DF", "\u0301", "\u0308", "\u0416",
      "\u0438", "\u0306", "\u1100", "\u1161", "\uFB01", "\uFF41", "\u00E9", "\u01C6"};
  std::mt19937 random(6);
  int unspellable = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string word = letters[random() % 6];
    while (random() % 4 != 0) word += letters[random() % letters.size()];
    const std::vector<TokenId> tokens = tokenizer_->Encode(word).value();
    const bool bytes = std::any_of(tokens.begin(), tokens.end(), [](TokenId token) {
      return token >= kByte0 + 0x80 && token < kByte0 + 0x100;
    });
    const auto read = tokenizer_->Read(word, {.protects = true});
    ASSERT_THAT(read, IsOk());
    ASSERT_EQ(!read->spans.empty(), bytes) << word;
    unspellable += bytes ? 1 : 0;
  }
  EXPECT_GT(unspellable, 500);
  EXPECT_LT(unspellable, 2500);
}

TEST_F(TokenizerTest, EmptyTextHasNoTokens) {
  EXPECT_THAT(tokenizer_->Encode(""), IsOkAndHolds(IsEmpty()));
  EXPECT_EQ(tokenizer_->Decode({}), "");
}

TEST_F(TokenizerTest, DecodeSkipsSpecialTokens) {
  absl::StatusOr<std::vector<TokenId>> tokens = tokenizer_->Encode("the house");
  ASSERT_THAT(tokens, IsOk());
  tokens->insert(tokens->begin(), {0, 2});
  tokens->insert(tokens->end(), {2, 1, 1});
  EXPECT_EQ(tokenizer_->Decode(*tokens), "the house");
}

TEST_F(TokenizerTest, PlaceholdersAreSinglePieces) {
  const absl::StatusOr<std::vector<TokenId>> tokens = tokenizer_->Encode("a<ph0>b<ph1>c");
  ASSERT_THAT(tokens, IsOk());
  EXPECT_EQ(std::count(tokens->begin(), tokens->end(), 4), 1);
  EXPECT_EQ(std::count(tokens->begin(), tokens->end(), 5), 1);
}

TEST_F(TokenizerTest, MarksCapitalsAndRestoresThem) {
  const auto marking = Tokenizer::Load({.subword_file = kTiny, .capitals_mark = "<ph0>"}, {});
  ASSERT_THAT(marking, IsOk());
  const absl::StatusOr<std::vector<TokenId>> tokens = (*marking)->Encode("THE HOUSE.");
  EXPECT_EQ(tokens, tokenizer_->Encode("<ph0> The house."));
  EXPECT_EQ((*marking)->Decode(*tokens), "THE HOUSE.");
  EXPECT_EQ((*marking)->Encode("The house."), tokenizer_->Encode("The house."));

  // A single word is read by the text around it.
  const TextAround around = {.after = " READ THIS!"};
  const absl::StatusOr<std::vector<TokenId>> word = tokenizer_->Encode("<ph0> House!");
  EXPECT_EQ((*marking)->Encode("HOUSE!", around), word);
  EXPECT_EQ((*marking)->Encode("HOUSE!"), tokenizer_->Encode("HOUSE!"));
  const absl::StatusOr<TokenizedText> copying =
      (*marking)->Read("HOUSE!", {.around = around, .protects = true});
  ASSERT_THAT(copying, IsOk());
  EXPECT_EQ(copying->tokens, *word);
}

TEST_F(TokenizerTest, RefusesMarkThatIsNotAPiece) {
  const auto marking = Tokenizer::Load({.subword_file = kTiny, .capitals_mark = "<caps>"}, {});
  EXPECT_THAT(marking, StatusIs(absl::StatusCode::kFailedPrecondition,
                                AllOf(HasSubstr("tiny.spm"), HasSubstr("no piece <caps>"))));
}

TEST_F(TokenizerTest, ReplacesInvalidBytePieces) {
  EXPECT_EQ(tokenizer_->Decode(std::vector<TokenId>{kByte0 + 0xE2}), "\uFFFD");
  EXPECT_EQ(tokenizer_->Decode(std::vector<TokenId>{kByte0 + 0x80, kByte0 + 'a'}), "\uFFFDa");
  EXPECT_EQ(tokenizer_->Decode(std::vector<TokenId>{kByte0 + 0xC3, kByte0 + 0xBC}), "ü");
}

TEST_F(TokenizerTest, DecodesAnyTokensToValidText) {
  std::mt19937 random(2);
  for (int round = 0; round < 2000; ++round) {
    std::vector<TokenId> tokens(random() % 12);
    for (TokenId& token : tokens) token = static_cast<TokenId>(random() % 500) - 20;
    EXPECT_EQ(FirstInvalidUtf8(tokenizer_->Decode(tokens)), -1);
  }
  EXPECT_EQ(tokenizer_->Decode(std::vector<TokenId>{tokenizer_->pieces()}),
            tokenizer_->Decode(std::vector<TokenId>{SpecialTokens().unk}));
}

TEST_F(TokenizerTest, IsThreadSafe) {
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

TEST(TokenizerLoadTest, RefusesInvalidModels) {
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

TEST(TokenizerLoadTest, RefusesOtherSpecialIds) {
  EXPECT_THAT(Tokenizer::Load(kTiny, {.bos = 1, .pad = 0}).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("bos"), HasSubstr("id 0"), HasSubstr("says 1"))));
}

TEST(TokenizerLoadTest, RefusesVocabulariesOfOtherModels) {
  const test::TemporaryFolder folder;
  const auto status = [&](const std::string& pieces, TokenizerSpec spec) {
    spec.vocabulary_file = folder.path() / "dict.vocab";
    std::ofstream(spec.vocabulary_file, std::ios::binary) << pieces;
    return Tokenizer::Load(spec, {}).status();
  };
  const auto says = [](const auto& what) {
    return StatusIs(absl::StatusCode::kFailedPrecondition, what);
  };
  const std::string good = "<s>\n<pad>\n</s>\n<unk>\nthe\n";
  const TokenizerSpec codes = {.subword_file = TestData("v0.2.codes"),
                               .subword_kind = linnet::v1::SUBWORD_KIND_BPE_CODES};
  EXPECT_THAT(status(good, codes), IsOk());
  EXPECT_THAT(status(good, {.subword_file = kTiny}), IsOk());
  // fairseq's dict.txt unchanged, without the special tokens.
  EXPECT_THAT(status("the\nof\n", codes),
              says(AllOf(HasSubstr("dict.vocab"), HasSubstr("special tokens included"))));
  EXPECT_THAT(status("</s>\n<unk>\n<pad>\n<s>\n", codes),
              says(AllOf(HasSubstr("id 2 for <pad>"), HasSubstr("the model's is 1"))));
  TokenizerSpec small = codes;
  small.vocabulary_size = 4;
  EXPECT_THAT(status(good, small),
              says(AllOf(HasSubstr("dict.vocab has 5 pieces"), HasSubstr("has 4"))));
  EXPECT_THAT(Tokenizer::Load({.subword_file = kTiny, .vocabulary_size = 100}, {}).status(),
              says(AllOf(HasSubstr("tiny.spm"), HasSubstr("100"))));
  EXPECT_THAT(Tokenizer::Load(codes, {}).status(), says(HasSubstr("need a vocabulary file")));
  EXPECT_THAT(
      status(good, {.subword_file = kTiny, .subword_kind = linnet::v1::SUBWORD_KIND_BPE_CODES}),
      says(AllOf(HasSubstr("tiny.spm"), HasSubstr("line 1"))));
  EXPECT_THAT(status(good, {.subword_file = TestData("v0.2.codes")}),
              says(HasSubstr("is not a SentencePiece model")));
}

TEST(TokenizerContinuationsTest, ContainsTokensThatExtendAWord) {
  const test::TemporaryFolder folder;
  const std::vector<std::string> pieces = {"<s>", "<pad>", "</s>",   "<unk>", "▁dog",
                                           "s",   "▁",     "-",      "7",     "東京",
                                           "は",  "แมว",   "\u0301", "서울"};
  std::ofstream file(folder.path() / "pieces.vocab", std::ios::binary);
  for (const std::string& piece : pieces) file << piece << "\n";
  file.close();
  const auto tokenizer = Tokenizer::Load(
      {.subword_file = kTiny, .vocabulary_file = folder.path() / "pieces.vocab"}, {});
  ASSERT_THAT(tokenizer, IsOk());
  std::vector<std::string> found;
  for (TokenId token : *(*tokenizer)->Continuations()) found.push_back(pieces[token]);
  EXPECT_THAT(found, testing::ElementsAre("s", "7", "\u0301", "서울"));
}

TEST_F(TokenizerTest, EveryWayToSpellAStartIsItsText) {
  std::mt19937 random(2);
  for (const std::string text :
       {"The dog", "dog", "garden", "dog in the garden", "Last one. It", "a-b c"}) {
    const std::vector<TokenId> tokens = *tokenizer_->Encode(text);
    for (const bool then_word : {false, true}) {
      const auto start = tokenizer_->Spell(tokens, then_word);
      ASSERT_NE(start, nullptr) << text;
      ASSERT_EQ(start->text.size(), start->places.size());
      std::set<std::vector<TokenId>> walks;
      for (int walk = 0; walk < 200; ++walk) {
        std::vector<TokenId> walked;
        for (size_t at = 0; at < start->text.size();) {
          const SpelledStart::Place& place = start->places[at];
          ASSERT_FALSE(place.tokens.empty()) << "no dead end";
          const size_t next = random() % place.tokens.size();
          walked.push_back(place.tokens[next]);
          at = place.spelled[next];
        }
        walked.push_back(tokens.back());  // white space at the end of a text may be dropped
        const std::string said = tokenizer_->Decode(walked);
        EXPECT_TRUE(absl::StartsWith(said, then_word ? text + " " : text)) << said;
        walks.insert(walked);
      }
      EXPECT_GT(walks.size(), 1) << text;
    }
    size_t at = 0;  // its own tokens are one of the ways
    const auto start = tokenizer_->Spell(tokens, /*then_word=*/false);
    for (TokenId token : tokens) {
      const SpelledStart::Place& place = start->places[at];
      const auto found = std::ranges::find(place.tokens, token);
      ASSERT_NE(found, place.tokens.end());
      at = place.spelled[found - place.tokens.begin()];
    }
    EXPECT_EQ(at, start->text.size());
  }
}

TEST_F(TokenizerTest, SpellsNoBytesAndNothing) {
  EXPECT_EQ(tokenizer_->Spell({}, false), nullptr);
  EXPECT_EQ(tokenizer_->Spell(std::vector<TokenId>{kByte0 + 0xC3}, false), nullptr);
  EXPECT_EQ(tokenizer_->Spell(std::vector<TokenId>{-1}, false), nullptr);
  EXPECT_EQ(tokenizer_->Spell(std::vector<TokenId>{1 << 30}, false), nullptr);
}

}  // namespace
}  // namespace linnet::model
