// TranslateRequest.line_breaks: paragraphs whose lines are joined.
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
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

const std::string kWrapped =
    "The dog runs along the street of the old\ntown. A bird sings in the high trees, and\nshe "
    "writes.\n"
    "\nThe dog runs.\n";
const std::string kUnwrapped =
    "The dog runs along the street of the old town. A bird sings in the high trees, and she "
    "writes.\n"
    "\nThe dog runs.\n";

TranslateRequest Joining(const std::string& text) {
  TranslateRequest request = ToGerman({text});
  request.set_line_breaks(linnet::v1::LINE_BREAKS_JOIN_PARAGRAPHS);
  return request;
}

std::string SourceText(const std::string& text, const Segment& segment) {
  return text.substr(segment.source_begin(), segment.source_end() - segment.source_begin());
}

TEST(JoinedLinesTest, AnswerIsThatOfTheUnwrappedText) {
  TwoModels server(TwoModels::Noise(7));
  const TranslateResponse joined = server.Translated(Joining(kWrapped));
  const TranslateResponse plain = server.Translated(ToGerman({kUnwrapped}));
  const auto& translation = joined.translations(0);
  EXPECT_EQ(translation.text(), plain.translations(0).text());
  ASSERT_THAT(translation.segments(), SizeIs(3));
  EXPECT_EQ(SourceText(kWrapped, translation.segments(0)),
            "The dog runs along the street of the old\ntown.");
  EXPECT_EQ(SourceText(kWrapped, translation.segments(1)),
            "A bird sings in the high trees, and\nshe writes.");
  EXPECT_EQ(SourceText(kWrapped, translation.segments(2)), "The dog runs.");
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(translation.segments(i).score(), plain.translations(0).segments(i).score());
    EXPECT_EQ(translation.segments(i).target_begin(),
              plain.translations(0).segments(i).target_begin());
  }
  TranslateRequest keep = ToGerman({kWrapped});
  EXPECT_EQ(server.Translated(keep).translations(0).segments_size(), 5);
  keep.set_line_breaks(linnet::v1::LINE_BREAKS_KEEP);
  EXPECT_EQ(server.Translated(keep).translations(0).segments_size(), 5);
}

TEST(JoinedLinesTest, WordsAndTermsHaveTheirPlaceInTheSource) {
  TextFixture fixture;  // answers with the source
  TranslateRequest request = Joining(
      "The dog runs along the street of the old\ntown. A bird sings in the high exam-\nples, and "
      "she "
      "writes.\n");
  const std::string text = request.contents(0);
  request.set_alignments(true);
  request.mutable_options()->set_beam_size(2);
  for (const char* term : {"old town", "she"})
    request.mutable_glossary()->add_entries()->set_source_text(term);
  TranslateResponse response;
  ASSERT_THAT(fixture.Call(&TextCalls::Translate, request, response), IsOk());
  const auto& translation = response.translations(0);
  std::vector<std::string> terms;
  for (const Segment& segment : translation.segments()) {
    for (const auto& term : segment.glossary_terms())
      terms.push_back(text.substr(term.source_begin(), term.source_end() - term.source_begin()));
    for (const auto& alignment : segment.word_alignments()) {
      const std::string source =
          text.substr(alignment.source_begin(), alignment.source_end() - alignment.source_begin());
      EXPECT_TRUE(source.find(' ') == std::string::npos) << source;
      EXPECT_GE(alignment.source_begin(), segment.source_begin());
      EXPECT_LE(alignment.source_end(), segment.source_end());
    }
  }
  EXPECT_THAT(terms, ElementsAre("old\ntown", "she"));
}

TEST(JoinedLinesTest, StreamsAndPivotsReadJoinedText) {
  TwoModels server(TwoModels::Noise(7));
  for (const auto& [source, target] : {std::pair("de", "fr"), std::pair("de", "en")}) {
    const std::string name = absl::StrCat(source, "-", target);
    test::WriteBundle(server.folder.path() / name,
                      test::TinyManifest(name, linnet::v1::TASK_TRANSLATE, source, target));
  }
  EXPECT_TRUE(server.catalog->Reload().ok());
  const Received received = Stream(*server.calls, Joining(kWrapped));
  ASSERT_THAT(received.status, IsOk());
  EXPECT_EQ(WithoutTimings(received.response),
            WithoutTimings(server.Translated(Joining(kWrapped))));
  TranslateRequest pivot = Joining(kWrapped), plain = ToGerman({kUnwrapped});
  pivot.set_alignments(true);
  pivot.set_target_language_code("fr");
  plain.set_target_language_code("fr");
  const TranslateResponse french = server.Translated(pivot);
  EXPECT_EQ(french.translations(0).text(), server.Translated(plain).translations(0).text());
  EXPECT_EQ(SourceText(kWrapped, french.translations(0).segments(0)),
            "The dog runs along the street of the old\ntown.");
}

using JoinedLinesRequestTest = RequestFixture;

TEST_F(JoinedLinesRequestTest, RefusesValueThatItDoesNotKnow) {
  TranslateRequest request = ToGerman({"The dog runs."});
  request.set_line_breaks(static_cast<linnet::v1::LineBreaks>(9));
  ExpectBad(request, "line_breaks", "is 9, which this server does not know");
}

}  // namespace
}  // namespace linnet::server
