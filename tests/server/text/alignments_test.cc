// Alignments of words.
#include <string>
#include <vector>

#include "server/schedule/sequence.h"
#include "server/text/aligned_words.h"
#include "tests/server/text/request_fixture.h"
#include "tests/server/text/text_fixture.h"

namespace linnet::server {
namespace {

using linnet::v1::ScoreRequest;
using linnet::v1::ScoreResponse;
using linnet::v1::StreamTranslateRequest;
using linnet::v1::SummarizeResponse;
using linnet::v1::TextPart;
using linnet::v1::TranslateRequest;
using linnet::v1::TranslateResponse;
using linnet::v1::WordAlignment;
using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::Pair;

using Links = google::protobuf::RepeatedPtrField<WordAlignment>;

std::string Source(const WordAlignment& word_alignment, const std::string& text) {
  return text.substr(word_alignment.source_begin(),
                     word_alignment.source_end() - word_alignment.source_begin());
}
std::string Target(const WordAlignment& word_alignment, const std::string& text) {
  return text.substr(word_alignment.target_begin(),
                     word_alignment.target_end() - word_alignment.target_begin());
}

// The strongest link of each target word.
std::vector<std::pair<std::string, std::string>> Strongest(const Links& word_alignments,
                                                           const std::string& source,
                                                           const std::string& target) {
  std::vector<std::pair<std::string, std::string>> strongest;
  int last = -1;
  float weight = 0;
  for (const WordAlignment& word_alignment : word_alignments) {
    EXPECT_GE(word_alignment.target_begin(), last) << "not in order";
    if (word_alignment.target_begin() != last) {
      strongest.emplace_back(Source(word_alignment, source), Target(word_alignment, target));
    } else {
      EXPECT_GE(word_alignment.weight(), kMinAlignmentWeight);
      EXPECT_LE(word_alignment.weight(), weight) << "not by weight";
    }
    last = word_alignment.target_begin();
    weight = word_alignment.weight();
  }
  return strongest;
}

// An engine that says the source again and looks at what it says: every word is linked to itself.
TEST(AlignmentsTest, RangesAreBytesOfSourceAndAnswer) {
  TextFixture fixture;
  // White space that normalisation removes, and a word of several tokens.
  const std::string text = " The  dog  runs. \n A bird sings extraordinarily. ";
  TranslateRequest request = ToGerman({"Go.", text});
  request.set_alignments(true);
  TranslateResponse response;
  ASSERT_THAT(fixture.Call(&TextCalls::Translate, request, response), IsOk());
  const auto& translation = response.translations(1);
  ASSERT_EQ(translation.segments_size(), 2);
  EXPECT_THAT(Strongest(translation.segments(0).word_alignments(), text, translation.text()),
              ElementsAre(Pair("The", "The"), Pair("dog", "dog"), Pair("runs.", "runs.")));
  EXPECT_THAT(Strongest(translation.segments(1).word_alignments(), text, translation.text()),
              ElementsAre(Pair("A", "A"), Pair("bird", "bird"), Pair("sings", "sings"),
                          Pair("extraordinarily.", "extraordinarily.")));
  // Each token gives a quarter of its attention to the next one; the last gives it to the end
  // token, which is not a word.
  const auto& word_alignments = translation.segments(1).word_alignments();
  double sum = 0;
  for (const WordAlignment& word_alignment : word_alignments) {
    if (Target(word_alignment, translation.text()) == "extraordinarily.")
      sum += word_alignment.weight();
  }
  EXPECT_GT(sum, 0.75);
  EXPECT_LT(sum, 1);
}

TEST(AlignmentsTest, AlignmentsDoNotChangeTheAnswer) {
  TextFixture fixture;
  TranslateRequest request = ToGerman({"The dog runs. A bird sings."});
  TranslateResponse plain, aligned;
  ASSERT_THAT(fixture.Call(&TextCalls::Translate, request, plain), IsOk());
  request.set_alignments(true);
  ASSERT_THAT(fixture.Call(&TextCalls::Translate, request, aligned), IsOk());
  for (auto& segment : *aligned.mutable_translations(0)->mutable_segments()) {
    EXPECT_GT(segment.word_alignments_size(), 0);
    segment.clear_word_alignments();
  }
  plain.clear_timings();
  aligned.clear_timings();
  EXPECT_EQ(aligned.SerializeAsString(), plain.SerializeAsString());
}

TEST(AlignmentsTest, SummariesAndScoresHaveAlignments) {
  TextFixture fixture;
  const std::string text = "The dog runs. A bird sings.";
  linnet::v1::SummarizeRequest summary = SummaryOf(text);
  summary.set_alignments(true);
  SummarizeResponse said;
  ASSERT_THAT(fixture.Call(&TextCalls::Summarize, summary, said), IsOk());
  EXPECT_THAT(
      Strongest(said.summaries(0).segments(0).word_alignments(), text, said.summaries(0).text()),
      ElementsAre(Pair("The", "The"), Pair("dog", "dog"), Pair("runs.", "runs."), Pair("A", "A"),
                  Pair("bird", "bird"), Pair("sings.", "sings.")));
  ScoreRequest score;
  score.set_model("en-de");
  score.add_pairs()->set_source_text(text);
  score.mutable_pairs(0)->set_target_text(text);  // the engine echoes the source
  score.set_alignments(true);
  ScoreResponse scored;
  ASSERT_THAT(fixture.Call(&TextCalls::Score, score, scored), IsOk());
  EXPECT_EQ(Strongest(scored.scores(0).word_alignments(), text, scored.scores(0).text()).size(), 6);
}

TEST(AlignmentsTest, AlignmentPassIsCharged) {
  model::SequenceInput input;
  input.source = {9, 8, 2};
  input.options.beam_size = 4;
  input.options.max_target_tokens = 10;
  EXPECT_EQ(MaxWork(input), 4 * (3 + 10));
  input.align = true;
  EXPECT_EQ(MaxWork(input), 4 * (3 + 2 * 10));
}

TEST(AlignmentsTest, SourceWordsSurviveNormalisation) {
  TextFixture fixture;
  const model::Tokenizer& tokenizer = *fixture.catalog->models()[0]->source_tokenizer;
  // The text as written, and the text that a normalising tokenizer decodes.
  const auto words = [&](const std::string& written, const std::string& said) {
    std::vector<std::string> found;
    for (const AlignedWord& word : SourceWords(tokenizer, *tokenizer.Encode(said), written))
      found.push_back(written.substr(word.begin, word.end - word.begin));
    return found;
  };
  EXPECT_THAT(words("  The dog \t runs. ", "The dog runs."), ElementsAre("The", "dog", "runs."));
  EXPECT_THAT(words("THE dog runs.", "the dog runs."), ElementsAre("THE", "dog", "runs."));
  EXPECT_THAT(words("The\u00A0dog\u3000runs.", "The dog runs."), ElementsAre("The", "dog", "runs."))
      << "every blank of Unicode separates words";
  EXPECT_THAT(words("The red_dog runs.", "The red dog runs."),
              ElementsAre("The", "red_dog", "red_dog", "runs."));
  EXPECT_THAT(words("The red - dog runs.", "The red dog runs."),
              ElementsAre("The", "red", "dog", "runs."));
  EXPECT_THAT(words("The . . . dog", "The ... dog"), ElementsAre("The", ".", "dog"));
}

}  // namespace
}  // namespace linnet::server
