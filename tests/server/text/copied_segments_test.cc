// Segments without a letter, which are their own translation.
#include <string>
#include <utility>
#include <vector>

#include "tests/server/text/request_fixture.h"
#include "tests/server/text/two_models_fixture.h"

namespace linnet::server {
namespace {

using linnet::v1::Segment;
using linnet::v1::TranslateRequest;
using linnet::v1::TranslateResponse;
using linnet::v1::Translation;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

// Models that write noise: what they read does not come back unchanged.
struct NoisyServer : TwoModels {
  NoisyServer() : TwoModels(Noise(3)) {
    for (const auto& [source, target] : {std::pair("de", "fr"), std::pair("de", "en")}) {
      const std::string name = absl::StrCat(source, "-", target);
      test::WriteBundle(folder.path() / name,
                        test::TinyManifest(name, linnet::v1::TASK_TRANSLATE, source, target));
    }
    EXPECT_TRUE(catalog->Reload().ok());
  }
};

std::vector<std::string> CopiedOf(const Translation& translation, const std::string& source) {
  std::vector<std::string> copied;
  for (const Segment& segment : translation.segments()) {
    const std::string text =
        source.substr(segment.source_begin(), segment.source_end() - segment.source_begin());
    if (!segment.copied()) continue;
    EXPECT_EQ(TextOf(translation.text(), segment), text);
    copied.push_back(text);
  }
  return copied;
}

TEST(CopiedSegmentsTest, TextWithoutLettersIsItsOwnTranslation) {
  NoisyServer server;
  for (const std::string text :
       {"00:00:16,700 --> 00:00:18,000", "---", "```", "12:30 - 14:00", "1,234.56", "5 %",
        " * * * \r\n", "42\n\n43", "😀 👍🏽", "±½²", "Ⅳ", "٣٫١٤", "※ 。", "三", "3-я", "ª"}) {
    const TranslateResponse answer = server.Translated(ToGerman({text}));
    const Translation& translation = answer.translations(0);
    EXPECT_EQ(translation.text(), text);
    EXPECT_EQ(translation.finish_reason(), linnet::v1::FINISH_REASON_STOP);
    EXPECT_EQ(translation.usage().source_tokens(), 0);
    EXPECT_EQ(translation.usage().target_tokens(), 0);
    ASSERT_GE(translation.segments_size(), 1);
    for (const Segment& segment : translation.segments()) {
      EXPECT_TRUE(segment.copied()) << text;
      EXPECT_EQ(segment.score(), 0);
      EXPECT_EQ(segment.finish_reason(), linnet::v1::FINISH_REASON_STOP);
    }
  }
  for (const std::string text : {"5 kg", "A1", "`>sh"}) {
    const TranslateResponse answer = server.Translated(ToGerman({text}));
    for (const Segment& segment : answer.translations(0).segments())
      EXPECT_FALSE(segment.copied()) << text;
    EXPECT_GT(answer.translations(0).usage().source_tokens(), 0) << text;
  }
}

TEST(CopiedSegmentsTest, OtherSegmentsAreThoseOfTextWithoutThem) {
  NoisyServer server;
  const std::string text = "1\n00:00:16 --> 00:00:18\nThe dog runs.\n\n2\nA bird sings.\t12\n";
  const TranslateResponse mixed = server.Translated(ToGerman({text}));
  const TranslateResponse plain = server.Translated(ToGerman({"The dog runs.", "A bird sings."}));
  const std::string dog = plain.translations(0).text(), bird = plain.translations(1).text();
  const Translation& translation = mixed.translations(0);
  EXPECT_EQ(translation.text(), "1\n00:00:16 --> 00:00:18\n" + dog + "\n\n2\n" + bird + "\t12\n");
  EXPECT_THAT(CopiedOf(translation, text), ElementsAre("1", "00:00:16 --> 00:00:18", "2", "12"));
  EXPECT_EQ(translation.usage().source_tokens(), plain.translations(0).usage().source_tokens() +
                                                     plain.translations(1).usage().source_tokens());
  EXPECT_EQ(translation.usage().target_tokens(), plain.translations(0).usage().target_tokens() +
                                                     plain.translations(1).usage().target_tokens());
}

TEST(CopiedSegmentsTest, WordsHypothesesAndAlignmentsAreThoseOfText) {
  NoisyServer server;
  TranslateRequest request = ToGerman({"The dog runs.\n12:30 – 14:00"});
  request.set_word_scores(true);
  request.set_alignments(true);
  request.mutable_options()->set_n_best(2);
  request.mutable_options()->set_beam_size(2);
  const TranslateResponse answer = server.Translated(request);
  ASSERT_EQ(answer.translations(0).segments_size(), 2);
  const Segment& segment = answer.translations(0).segments(1);
  ASSERT_THAT(segment.hypotheses(), SizeIs(1));
  EXPECT_EQ(segment.hypotheses(0).text(), "12:30 – 14:00");
  EXPECT_EQ(segment.hypotheses(0).score(), 0);
  EXPECT_EQ(segment.hypotheses(0).tokens(), 0);
  EXPECT_THAT(segment.hypotheses(0).token_scores(), IsEmpty());
  const std::string& text = answer.translations(0).text();
  std::vector<std::pair<std::string, float>> words;
  for (const auto& word : segment.words())
    words.emplace_back(text.substr(word.target_begin(), word.target_end() - word.target_begin()),
                       word.score());
  EXPECT_THAT(words, ElementsAre(Pair("12:30", 0), Pair("–", 0), Pair("14:00", 0)));
  ASSERT_THAT(segment.word_alignments(), SizeIs(3));
  for (const auto& alignment : segment.word_alignments()) {
    EXPECT_EQ(alignment.weight(), 1);
    EXPECT_EQ(alignment.source_begin() - segment.source_begin(),
              alignment.target_begin() - segment.target_begin());
    EXPECT_EQ(alignment.source_end() - alignment.source_begin(),
              alignment.target_end() - alignment.target_begin());
  }
}

TEST(CopiedSegmentsTest, StreamSendsThemInOrder) {
  NoisyServer server;
  for (const std::string text : {"---", "1\nThe dog runs.\n---\nA bird sings.\n2\n"}) {
    const TranslateRequest request = ToGerman({text, "3"});
    const Received received = Stream(*server.calls, request);
    ASSERT_THAT(received.status, IsOk());
    EXPECT_EQ(WithoutTimings(received.response), WithoutTimings(server.Translated(request)));
    std::vector<std::string> texts(2);
    for (const auto& part : received.parts) texts[part.content_index()] += part.text();
    EXPECT_EQ(texts[0], received.response.translations(0).text());
    EXPECT_EQ(texts[1], "3");
  }
}

TEST(CopiedSegmentsTest, PassThroughThirdLanguage) {
  NoisyServer server;
  for (const std::string text : {"12:30", "12:30\nThe dog runs.\n14:00"}) {
    TranslateRequest pivot = ToGerman({text});
    pivot.set_target_language_code("fr");
    pivot.set_alignments(true);
    const TranslateResponse french = server.Translated(pivot);
    EXPECT_EQ(french.pivot().language_code(), "de");
    const std::vector<std::string> copied = CopiedOf(french.translations(0), text);
    EXPECT_EQ(copied.front(), "12:30");
    EXPECT_EQ(copied.size(), text.size() > 5 ? 2u : 1u);
    const Segment& first = french.translations(0).segments(0);
    EXPECT_EQ(first.score(), 0);
    ASSERT_THAT(first.word_alignments(), SizeIs(1));
    EXPECT_EQ(first.word_alignments(0).weight(), 1);
    EXPECT_EQ(first.word_alignments(0).source_end(), 5);
  }
}

TEST(CopiedSegmentsTest, GlossaryMayReplaceSegmentWithoutLetters) {
  NoisyServer server;
  TranslateRequest request = ToGerman({"24/7\n8/5"});
  request.mutable_options()->set_beam_size(4);
  linnet::v1::GlossaryEntry& replaced = *request.mutable_glossary()->add_entries();
  replaced.set_source_text("24/7");
  replaced.set_target_text("The dog");
  request.mutable_glossary()->add_entries()->set_source_text("8/5");  // is kept
  const Translation translation = server.Translated(request).translations(0);
  ASSERT_EQ(translation.segments_size(), 2);
  EXPECT_FALSE(translation.segments(0).copied());
  EXPECT_TRUE(translation.segments(0).glossary_terms(0).met());
  EXPECT_TRUE(translation.segments(1).copied());
  EXPECT_TRUE(translation.segments(1).glossary_terms(0).met());
}

}  // namespace
}  // namespace linnet::server
