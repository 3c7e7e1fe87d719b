// Translations of HTML and XML. The engine of the fixture says the source again, and each word is
// aligned to itself, so an answer is its fragment.
#include <string>
#include <vector>

#include "tests/server/text/pivot_server.h"
#include "tests/server/text/request_fixture.h"
#include "tests/server/text/text_fixture.h"

namespace linnet::server {
namespace {

using linnet::v1::Segment;
using linnet::v1::TextPart;
using linnet::v1::TranslateRequest;
using linnet::v1::TranslateResponse;
using ::testing::ElementsAre;

const char kFragment[] =
    "<h1>The <b>dog</b> runs.</h1>\n<p> A  <i>bird <b>sings</b>. The dog</i> runs &amp; runs.\n"
    "<ul><li>12:30<li><!-- none --></ul><pre>  dog </pre>";
// White space within a segment is folded.
const char kAnswer[] =
    "<h1>The <b>dog</b> runs.</h1>\n<p> A <i>bird <b>sings</b>. The dog</i> runs &amp; runs.\n"
    "<ul><li>12:30<li><!-- none --></ul><pre>  dog </pre>";

TranslateRequest Html(const std::string& fragment) {
  TranslateRequest request = ToGerman({fragment});
  request.set_mime_type("text/html");
  return request;
}

std::string Part(const std::string& text, int begin, int end) {
  return text.substr(begin, end - begin);
}

TEST(MarkupCallsTest, TagsReturnAroundTheirWords) {
  TextFixture fixture;
  TranslateResponse response;
  ASSERT_THAT(fixture.Call(&TextCalls::Translate, Html(kFragment), response), IsOk());
  const auto& translation = response.translations(0);
  EXPECT_EQ(translation.text(), kAnswer);
  ASSERT_EQ(translation.segments_size(), 4);
  EXPECT_EQ(Part(translation.text(), translation.segments(1).target_begin(),
                 translation.segments(1).target_end()),
            "A <i>bird <b>sings</b>.");
  EXPECT_EQ(
      Part(kFragment, translation.segments(3).source_begin(), translation.segments(3).source_end()),
      "12:30");
  EXPECT_EQ(translation.segments(0).word_alignments_size(), 0) << "nobody asked for them";
}

TEST(MarkupCallsTest, RangesAreThoseOfTheFragments) {
  TextFixture fixture;
  TranslateRequest request = Html("a &lt; <b>The</b> dog");
  request.set_alignments(true);
  request.set_word_scores(true);
  TranslateResponse response;
  ASSERT_THAT(fixture.Call(&TextCalls::Translate, request, response), IsOk());
  const auto& translation = response.translations(0);
  ASSERT_EQ(translation.text(), request.contents(0));
  const Segment& segment = translation.segments(0);
  ASSERT_EQ(segment.words_size(), 4);
  EXPECT_EQ(
      Part(translation.text(), segment.words(1).target_begin(), segment.words(1).target_end()),
      "&lt;");
  EXPECT_EQ(
      Part(translation.text(), segment.words(2).target_begin(), segment.words(2).target_end()),
      "The");
  for (const auto& link : segment.word_alignments()) {
    if (link.weight() < 0.5) continue;
    EXPECT_EQ(Part(request.contents(0), link.source_begin(), link.source_end()),
              Part(translation.text(), link.target_begin(), link.target_end()));
  }
}

TEST(MarkupCallsTest, StreamIsTheAnswer) {
  TextFixture fixture;
  for (const char* fragment : {kFragment, "<br>", "The dog runs."}) {
    const TranslateRequest request = Html(fragment);
    const auto [status, response, parts] = Stream(*fixture.calls, request);
    EXPECT_THAT(status, IsOk());
    std::string text;
    for (const TextPart& part : parts) {
      text += part.text();
      if (!part.has_segment()) continue;
      EXPECT_LE(part.segment().target_end(), static_cast<int>(text.size()));
    }
    EXPECT_EQ(text, response.translations(0).text());
    EXPECT_EQ(text, std::string(fragment) == kFragment ? kAnswer : fragment);
  }
}

TEST(MarkupCallsTest, HypothesesHaveTheTags) {
  TextFixture fixture;
  TranslateRequest request = Html("<p>The <b>dog</b> runs.</p>");
  request.mutable_options()->set_beam_size(2);
  request.mutable_options()->set_n_best(2);
  TranslateResponse response;
  ASSERT_THAT(fixture.Call(&TextCalls::Translate, request, response), IsOk());
  for (const auto& hypothesis : response.translations(0).segments(0).hypotheses()) {
    EXPECT_NE(hypothesis.text().find("<b>"), std::string::npos) << hypothesis.text();
    EXPECT_NE(hypothesis.text().find("</b>"), std::string::npos) << hypothesis.text();
  }
}

TEST(MarkupCallsTest, FragmentWithoutTextIsItsOwnTranslation) {
  TextFixture fixture;
  for (const char* fragment : {"<br>", "<p> </p>", "<!-- a -->", "<script>a</script>"}) {
    TranslateResponse response;
    ASSERT_THAT(fixture.Call(&TextCalls::Translate, Html(fragment), response), IsOk()) << fragment;
    EXPECT_EQ(response.translations(0).text(), fragment);
  }
}

TEST(MarkupCallsTest, XmlHasNoBlocks) {
  TextFixture fixture;
  TranslateRequest request = Html("<p>The <P id='1'/>dog</p> runs.");
  request.set_mime_type("application/xml");
  TranslateResponse response;
  ASSERT_THAT(fixture.Call(&TextCalls::Translate, request, response), IsOk());
  EXPECT_EQ(response.translations(0).text(), request.contents(0));
  EXPECT_EQ(response.translations(0).segments_size(), 1);
}

TEST(MarkupCallsTest, OptionsSayHowMarkupIsRead) {
  TextFixture fixture;
  TranslateRequest request =
      Html("The <x-Name>dog</x-Name> runs<p title=\"The bird\">A bird <hr>sings");
  const auto segments = [&] {
    TranslateResponse response;
    EXPECT_THAT(fixture.Call(&TextCalls::Translate, request, response), IsOk());
    EXPECT_EQ(response.translations(0).text(), request.contents(0));
    std::vector<std::string> sources;
    for (const Segment& segment : response.translations(0).segments())
      sources.push_back(Part(request.contents(0), segment.source_begin(), segment.source_end()));
    return sources;
  };
  EXPECT_THAT(segments(), ElementsAre("The <x-Name>dog</x-Name> runs", "A bird", "sings"));
  request.mutable_markup()->set_attributes(true);
  EXPECT_THAT(segments(),
              ElementsAre("The <x-Name>dog</x-Name> runs", "The bird", "A bird", "sings"));
  request.mutable_markup()->Clear();
  request.mutable_markup()->add_splitting_tags("X-NAME");
  EXPECT_THAT(segments(), ElementsAre("The", "dog", "runs", "A bird", "sings"));
  request.mutable_markup()->add_non_splitting_tags("x-name");
  request.mutable_markup()->add_non_splitting_tags("hr");
  EXPECT_THAT(segments(), ElementsAre("The <x-Name>dog</x-Name> runs", "A bird <hr>sings"));
  request.mutable_markup()->add_ignore_tags("p");
  EXPECT_THAT(segments(), ElementsAre("The <x-Name>dog</x-Name> runs"));
}

TEST(MarkupCallsTest, TermAcrossATagIsInItsElement) {
  TextFixture fixture;
  auto manifest = test::TinyManifest("en-it", linnet::v1::TASK_TRANSLATE, "en", "it");
  manifest.set_text_grammar(true);
  manifest.add_placeholders("<ph0>");
  test::WriteBundle(fixture.folder.path() / "en-it", manifest);
  ASSERT_TRUE(fixture.catalog->Reload().ok());
  const auto translated = [&](const std::string& fragment) {
    TranslateRequest request = Html(fragment);
    request.set_target_language_code("it");
    auto& entry = *request.mutable_glossary()->add_entries();
    entry.set_source_text("big dog");
    entry.set_target_text("狗");
    TranslateResponse response;
    EXPECT_THAT(fixture.Call(&TextCalls::Translate, request, response), IsOk());
    return response.translations(0).text();
  };
  EXPECT_EQ(translated("A <b>big</b> dog runs."), "A <b>狗</b> runs.");
  EXPECT_EQ(translated("A big <b>dog</b> runs."), "A <b>狗</b> runs.");
  EXPECT_EQ(translated("<b>A big</b> dog runs."), "<b>A 狗</b> runs.");
  const std::string variables = "A <b>{name}</b>, (<i>{{#a}}<u>{b}</u>{{/a}}</i>) runs.";
  EXPECT_EQ(translated(variables), variables);
}

TEST(MarkupCallsTest, GoesThroughAThirdLanguage) {
  PivotServer server;
  TranslateRequest request = To("fr", {kFragment});
  request.set_mime_type("text/html");
  TranslateResponse response;
  ASSERT_THAT(server.Call(&TextCalls::Translate, request, response), IsOk());
  EXPECT_EQ(response.pivot().language_code(), "de");
  EXPECT_EQ(response.translations(0).text(), kAnswer);
}

}  // namespace
}  // namespace linnet::server
