#include "server/request/glossary.h"

#include <string>
#include <vector>

#include "tests/server/text/request_fixture.h"
#include "tests/server/text/text_fixture.h"
#include "tests/support/search_engine.h"

namespace linnet::server {
namespace {

using linnet::v1::GlossaryTerm;
using linnet::v1::TranslateRequest;
using linnet::v1::TranslateResponse;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Real searches over noise: what they say is nonsense, and every term is put into it.
Catalog::EngineFactory Noise(uint64_t seed) {
  return [seed](const model::Bundle&) {
    return std::make_unique<test::SearchEngine>(/*vocabulary_size=*/400, kTinyLimits, seed);
  };
}

void Add(TranslateRequest& request, const std::string& source, const std::string& target = "") {
  auto& entry = *request.mutable_glossary()->add_entries();
  entry.set_source_text(source);
  entry.set_target_text(target);
}

std::string Source(const GlossaryTerm& term, const std::string& text) {
  return text.substr(term.source_begin(), term.source_end() - term.source_begin());
}
std::string Target(const GlossaryTerm& term, const std::string& text) {
  return text.substr(term.target_begin(), term.target_end() - term.target_begin());
}

TEST(GlossaryTest, ReportsEveryUseAndMetOnesAreInTheAnswer) {
  const std::string text = "The dog runs. A bird sings, the dog and Bird too.";
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    TextFixture fixture(Noise(seed));
    TranslateRequest request = ToGerman({"Go.", text});
    Add(request, "bird");
    Add(request, "dog", "Hund");
    Add(request, "Bird", "Vogel");
    Add(request, "cat", "Katze");
    request.mutable_options()->set_beam_size(6);
    TranslateResponse response;
    ASSERT_THAT(fixture.Call(&TextCalls::Translate, request, response), IsOk());
    const auto& translation = response.translations(1);
    std::vector<std::pair<std::string, std::string>> uses;
    for (const auto& segment : translation.segments()) {
      for (const GlossaryTerm& term : segment.glossary_terms()) {
        EXPECT_TRUE(term.met()) << "seed " << seed << ": " << translation.text();
        EXPECT_GE(term.target_begin(), segment.target_begin());
        EXPECT_LE(term.target_end(), segment.target_end());
        uses.emplace_back(Source(term, text), Target(term, translation.text()));
        const auto& entry = request.glossary().entries(term.entry());
        EXPECT_EQ(uses.back().first, entry.source_text());
      }
    }
    EXPECT_THAT(uses,
                ElementsAre(::testing::Pair("dog", "Hund"), ::testing::Pair("bird", "bird"),
                            ::testing::Pair("dog", "Hund"), ::testing::Pair("Bird", "Vogel")));
    EXPECT_THAT(response.translations(0).segments(0).glossary_terms(), IsEmpty());
  }
}

TEST(GlossaryTest, GlossaryThatDoesNotApplyChangesNothing) {
  TextFixture fixture(Noise(3));
  TranslateRequest request = ToGerman({"The dog runs."});
  TranslateResponse plain, with;
  ASSERT_THAT(fixture.Call(&TextCalls::Translate, request, plain), IsOk());
  Add(request, "cat", "Katze");
  Add(request, "DOG", "Hund");
  ASSERT_THAT(fixture.Call(&TextCalls::Translate, request, with), IsOk());
  plain.clear_timings();
  with.clear_timings();
  EXPECT_EQ(with.SerializeAsString(), plain.SerializeAsString());
}

TEST(GlossaryTest, IgnoresCaseAndCopiesEmptyTargets) {
  TextFixture fixture(Noise(3));
  TranslateRequest request = ToGerman({"The Dog runs."});
  Add(request, "dog");
  TranslateResponse response;
  ASSERT_THAT(fixture.Call(&TextCalls::Translate, request, response), IsOk());
  EXPECT_THAT(response.translations(0).segments(0).glossary_terms(), IsEmpty());
  request.mutable_glossary()->set_ignore_case(true);
  response.Clear();
  ASSERT_THAT(fixture.Call(&TextCalls::Translate, request, response), IsOk());
  ASSERT_EQ(response.translations(0).segments(0).glossary_terms_size(), 1);
  const GlossaryTerm& term = response.translations(0).segments(0).glossary_terms(0);
  EXPECT_TRUE(term.met());
  EXPECT_EQ(Target(term, response.translations(0).text()), "Dog");
}

TEST(GlossaryTest, TermsAndTextThatTheModelCannotWriteShareSpans) {
  TextFixture fixture;
  auto manifest = test::TinyManifest("en-it", linnet::v1::TASK_TRANSLATE, "en", "it");
  manifest.set_text_grammar(true);
  manifest.add_placeholders("<ph0>");
  test::WriteBundle(fixture.folder.path() / "en-it", manifest);
  ASSERT_TRUE(fixture.catalog->Reload().ok());
  // What the model reads, and the answer of a model that copies it.
  const auto translated = [&](const std::string& source, const std::string& target) {
    TranslateRequest request = ToGerman({"I saw 東京 today."});
    request.set_target_language_code("it");
    request.mutable_options()->set_beam_size(1);
    if (!source.empty()) Add(request, source, target);
    TranslateResponse response;
    EXPECT_THAT(fixture.Call(&TextCalls::Translate, request, response), IsOk());
    for (const GlossaryTerm& term : response.translations(0).segments(0).glossary_terms())
      EXPECT_TRUE(term.met());
    EXPECT_THAT(response.translations(0).warnings(), IsEmpty());
    return response.translations(0).text();
  };
  EXPECT_EQ(translated("", ""), "I saw 東京 today.");
  EXPECT_EQ(translated("東京", ""), "I saw 東京 today.");
  EXPECT_EQ(translated("東京", "Tokio"), "I saw Tokio today.");
  EXPECT_EQ(translated("saw 東京", ""), "I saw 東京 today.");
  EXPECT_EQ(translated("today", "狗"), "I saw 東京 狗.");
  EXPECT_EQ(translated("I", "io"), "io saw 東京 today.");
}

TEST(GlossaryTest, StreamedTextIsNeverRevised) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    TextFixture fixture(Noise(seed));
    TranslateRequest request = ToGerman({"The dog runs. A bird sings, and the dog."});
    Add(request, "dog", "Hund");
    Add(request, "bird");
    TranslateResponse unary;
    ASSERT_THAT(fixture.Call(&TextCalls::Translate, request, unary), IsOk());
    const Received streamed = Stream(*fixture.calls, request);
    EXPECT_THAT(streamed.status, IsOk());
    EXPECT_EQ(streamed.text(0), unary.translations(0).text());
    EXPECT_EQ(streamed.response.translations(0).SerializeAsString(),
              unary.translations(0).SerializeAsString());
  }
}

using GlossaryRequestTest = RequestFixture;

TEST_F(GlossaryRequestTest, RefusesBadGlossaryWithItsPath) {
  const auto with = [](const std::string& source, const std::string& target) {
    TranslateRequest request = ToGerman({"The dog runs."});
    Add(request, "dog", "Hund");
    Add(request, source, target);
    return request;
  };
  EXPECT_THAT(Check(with("runs", "läuft")), IsOk());
  ExpectBad(with("", "x"), "glossary.entries[1].source_text", "text is empty");
  ExpectBad(with(" ", "x"), "glossary.entries[1].source_text", "white space");
  ExpectBad(with("x\xC3", "x"), "glossary.entries[1].source_text", "UTF-8");
  ExpectBad(with("x", "\n"), "glossary.entries[1].target_text", "white space");
  ExpectBad(with("x", std::string(300, 'x')), "glossary.entries[1].target_text",
            "has 300 bytes, at most 256");
  ExpectBad(with("dog", "Köter"), "glossary.entries[1].source_text", "an earlier entry");
  ExpectBad(with("run ", "x"), "glossary.entries[1].source_text", "begins or ends with white");
  ExpectBad(with("run", " x"), "glossary.entries[1].target_text", "begins or ends with white");
  TranslateRequest request = with("Dog", "Köter");
  EXPECT_THAT(Check(request), IsOk());
  request.mutable_glossary()->set_ignore_case(true);
  ExpectBad(request, "glossary.entries[1].source_text", "an earlier entry, as case is ignored");
  request = with("x", "y");
  for (int i = 0; i < 300; ++i) Add(request, absl::StrCat("x", i));
  ExpectBad(request, "glossary", "has 302 entries, at most 256");
}

}  // namespace
}  // namespace linnet::server
