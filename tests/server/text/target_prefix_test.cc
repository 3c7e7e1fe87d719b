// TranslateRequest.target_prefix: what an answer begins with, byte for byte.
#include <random>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/server/text/two_models_fixture.h"

namespace linnet::server {
namespace {

using linnet::v1::TranslateRequest;
using linnet::v1::TranslateResponse;
using linnet::v1::Translation;
using ::testing::AllOf;
using ::testing::HasSubstr;

struct NoisyServer : TwoModels {
  explicit NoisyServer(uint64_t seed = 3) : TwoModels(Noise(seed)) {}
  std::string Text(const TranslateRequest& request) {
    return Translated(request).translations(0).text();
  }
  absl::Status Refused(const TranslateRequest& request) {
    TranslateResponse response;
    return Call(&TextCalls::Translate, request, response);
  }
};

TranslateRequest Begun(const std::string& text, const std::string& prefix) {
  TranslateRequest request = ToGerman({text});
  request.set_target_prefix(prefix);
  return request;
}

std::string Joined(const std::vector<linnet::v1::TextPart>& parts) {
  std::string text;
  for (const linnet::v1::TextPart& part : parts) text += part.text();
  return text;
}

TEST(TargetPrefixTest, AnyPrefixOfAnyKindOfSearchIsKept) {
  std::mt19937 random(5);
  const std::vector<std::string> words = {"The",   "dog",   "dogs",    "runs.",   "A",
                                          "bi",    "She",   "wr",      "garden,", "\"Last",
                                          "one\"", "Ärger", "1,234.5", "x€y"};
  const std::vector<std::string> gaps = {" ", " ", " ", "  ", "\n", "\u00a0"};
  const auto pick = [&](const auto& from) { return from[random() % from.size()]; };
  for (int round = 0; round < 60; ++round) {
    NoisyServer server(round + 1);
    std::string prefix = random() % 4 == 0 ? pick(gaps) : "";
    for (int word = 0; word <= static_cast<int>(random() % 7); ++word)
      absl::StrAppend(&prefix, word > 0 ? pick(gaps) : "", pick(words));
    if (random() % 3 == 0) prefix += pick(gaps);
    TranslateRequest request =
        Begun(random() % 2 == 0 ? "  A bird sings. She writes.  The dog runs. " : "The dog runs.",
              prefix);
    auto& options = *request.mutable_options();
    options.set_max_target_tokens(60);
    options.set_beam_size(1 + static_cast<int>(random() % 5));
    if (random() % 4 == 0) {
      options.set_top_k(5);
    } else {
      options.set_n_best(options.beam_size());
    }
    request.set_word_scores(true);
    request.set_alignments(true);
    const TranslateResponse response = server.Translated(request);
    const Translation& answer = response.translations(0);
    EXPECT_TRUE(absl::StartsWith(answer.text(), prefix)) << prefix << "\n" << answer.text();
    int end = 0;
    for (const linnet::v1::Segment& segment : answer.segments()) {
      EXPECT_GE(segment.target_begin(), end);
      end = segment.target_end();
      ASSERT_LE(end, std::ssize(answer.text()));
      for (const linnet::v1::Word& word : segment.words()) {
        EXPECT_GE(word.target_begin(), segment.target_begin());
        EXPECT_LE(word.target_end(), segment.target_end());
      }
      const std::string text = TextOf(answer.text(), segment);
      const std::string given =
          prefix.substr(std::min<size_t>(segment.target_begin(), prefix.size()), text.size());
      for (const auto& hypothesis : segment.hypotheses())
        EXPECT_TRUE(absl::StartsWith(hypothesis.text(), given)) << hypothesis.text();
    }
    const Received streamed = Stream(*server.calls, request);
    ASSERT_THAT(streamed.status, IsOk());
    EXPECT_EQ(Joined(streamed.parts), answer.text());
    EXPECT_EQ(WithoutTimings(streamed.response), WithoutTimings(response));
  }
}

TEST(TargetPrefixTest, SentencesOfThePrefixAnswerTheirSegments) {
  NoisyServer server;
  const std::string text = "A bird sings. She writes.  The dog runs.";
  const std::string alone = server.Text(ToGerman({"The dog runs."}));
  const TranslateResponse response = server.Translated(Begun(text, "One bird.\n\nShe! "));
  const Translation& answer = response.translations(0);
  ASSERT_EQ(answer.segments_size(), 3);
  EXPECT_EQ(TextOf(answer.text(), answer.segments(0)), "One bird.");
  EXPECT_EQ(TextOf(answer.text(), answer.segments(1)), "She!");
  EXPECT_EQ(answer.text(), "One bird.\n\nShe! " + alone) << "the rest is as without a prefix";
  EXPECT_LT(answer.segments(0).score(), 0) << "the given sentence is scored";
}

TEST(TargetPrefixTest, MoreSentencesThanTheTextAreOneAnswer) {
  NoisyServer server;
  const TranslateResponse response =
      server.Translated(Begun("The dog runs.", "The dog. It runs. And"));
  const Translation& answer = response.translations(0);
  ASSERT_EQ(answer.segments_size(), 1);
  EXPECT_THAT(answer.text(), ::testing::StartsWith("The dog. It runs. And"));
}

TEST(TargetPrefixTest, CachedAnswersAreThoseOfTheirPrefix) {
  AnswerCache cache(1 << 20, CacheTenant::kShared);
  TextFixture server(TwoModels::Noise(3), {}, {}, {}, absl::InfiniteDuration(), &cache);
  std::vector<std::string> answers;
  for (int round = 0; round < 2; ++round) {
    for (const std::string prefix : {"The do", "The dog", "The dog ", ""}) {
      TranslateResponse response;
      EXPECT_THAT(server.Call(&TextCalls::Translate, Begun("A bird sings.", prefix), response),
                  IsOk());
      answers.push_back(response.translations(0).text());
      EXPECT_THAT(answers.back(), ::testing::StartsWith(prefix));
    }
  }
  EXPECT_EQ(std::vector(answers.begin(), answers.begin() + 4),
            std::vector(answers.begin() + 4, answers.end()));
}

TEST(TargetPrefixTest, RefusesWhatItCannotKeep) {
  NoisyServer server;
  const auto refused = [&](const TranslateRequest& request, const std::string& why) {
    EXPECT_THAT(server.Refused(request),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr("target_prefix"), HasSubstr(why))));
  };
  TranslateRequest two = Begun("The dog runs.", "A");
  two.add_contents("A bird sings.");
  refused(two, "is set for 2 texts");
  refused(Begun("The dog runs.", " \n"), "white space");
  refused(Begun("The dog runs.", "\xff"), "UTF-8");
  refused(Begun("The dog runs.", std::string((16 << 10) + 1, 'x')), "at most 16384");
  refused(Begun("The dog runs.", absl::StrCat("A", std::string(900, '9'))), "tokens");
  TranslateRequest markup = Begun("<b>dog</b>", "A");
  markup.set_mime_type("text/html");
  refused(markup, "mime_type is text/html");
  TranslateRequest german =
      Begun("Der Hund läuft durch den Garten, und die Katze schläft im Haus.", "Das");
  german.clear_source_language_code();
  refused(german, "in the target language already");
  TranslateRequest settings = Begun("", "A");
  settings.clear_contents();
  EXPECT_THAT(CheckSettings(settings, *server.catalog, {}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("lines of a document")));
}

}  // namespace
}  // namespace linnet::server
