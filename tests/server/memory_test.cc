// Checks that a permit holds the memory of its call before it is allocated. In a binary of its own,
// in which every allocation is counted.
#include <algorithm>
#include <atomic>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "server/base/errors.h"
#include "server/request/request_bytes.h"
#include "server/text/memory_cost.h"
#include "tests/server/text/text_fixture.h"
#include "tests/support/allocations.h"

namespace linnet::server {
namespace {

using linnet::v1::TranslateRequest;
using linnet::v1::TranslateResponse;
using test::Allocations;

// Working memory of the language detector. It belongs to a thread of the text pool, so few calls
// use it at a time, and no permit holds it.
constexpr int64_t kDetectorBytes = 256 << 10;

std::string Many(const std::string& word, int times) {
  std::string text;
  for (int i = 0; i < times; ++i) text += word;
  return text;
}

// A server whose engine compares the held and the allocated bytes at every step.
class CountedServer {
 public:
  CountedServer()
      : server_({.rows = 64, .encoder_cache_tokens = 4096, .on_step = [this] { Look(); }},
                {.max_tokens = int64_t{1} << 40, .max_bytes = int64_t{1} << 30}) {
    // Translations to French go through German.
    test::WriteBundle(server_.folder.path() / "de-fr",
                      test::TinyManifest("de-fr", linnet::v1::TASK_TRANSLATE, "de", "fr"));
    EXPECT_TRUE(server_.catalog->Reload().ok());
    // Allocations that are made once, by the first call of each kind.
    EXPECT_THAT(Call(ToGerman({"The dog runs."})), IsOk());
    EXPECT_THAT(Call(ToGerman({"Warm. Up."})), IsOk());
    EXPECT_THAT(Call(ToGerman({Many("1\n", 40)})), IsOk());
    TranslateRequest french = ToGerman({"The dog runs."});
    french.set_target_language_code("fr");
    EXPECT_THAT(Call(french), IsOk());
  }

  // Runs a call as the service does: it holds a permit from its first byte. Returns its status.
  absl::Status Call(const TranslateRequest& request) {
    const std::string bytes = request.SerializeAsString();
    max_held_ = 0;
    short_by_ = 0;
    Allocations::ResetPeak();
    before_ = Allocations::live_bytes();
    absl::Status result;
    {
      auto permit = server_.calls->Admit({.client = "c"},
                                         ParsedBytes(bytes, *TranslateRequest::descriptor()));
      EXPECT_THAT(permit, IsOk());
      TranslateRequest parsed;
      if (absl::Status status = ParseRequest(bytes, parsed); !status.ok()) return status;
      Look();
      TranslateResponse response;
      test::Notification done;
      server_.calls->Translate(
          parsed, response, {.arrived = absl::Now(), .permit = *permit, .caller = {.client = "c"}},
          [&](absl::Status status) {
            result = std::move(status);
            Look();  // with its reply
            done.Open();
          });
      done.Pass();
      peak_ = Allocations::peak_bytes() - before_;
    }
    EXPECT_EQ(server_.admission.bytes(), 0);
    return result;
  }
  int64_t peak() const { return peak_; }
  int64_t max_held() const { return max_held_; }
  int64_t short_by() const { return short_by_; }  // max over all checks

 private:
  void Look() {
    const int64_t held = server_.admission.bytes();
    const int64_t allocated = Allocations::live_bytes() - before_;
    max_held_ = std::max<int64_t>(max_held_, held);
    short_by_ = std::max<int64_t>(short_by_, allocated - held);
  }

  std::atomic<int64_t> before_ = 0, max_held_ = 0, short_by_ = 0;
  int64_t peak_ = 0;
  TextFixture server_;
};

struct Scenario {
  std::string name;
  TranslateRequest request;
};

std::vector<Scenario> Scenarios() {
  const std::string sentence = "The dog runs through the garden of the old dog. ";
  std::vector<Scenario> scenarios;
  auto add = [&](std::string name, std::vector<std::string> contents) -> TranslateRequest& {
    scenarios.push_back({std::move(name), ToGerman(std::move(contents))});
    return scenarios.back().request;
  };
  add("a word", {"dog"});
  add("an ordinary text", {Many(sentence, 400)});
  add("lines of a letter", {Many("a\n", 4000)});
  add("lines of two letters, many texts", std::vector<std::string>(1000, "a\nb"));
  add("many texts", std::vector<std::string>(2000, "dog"));
  add("one sentence without an end", {Many("dog ", 20000)});
  add("one word without an end", {Many("dog", 20000)});
  add("characters of four bytes", {Many("\xF0\x9F\x90\x95", 5000)});
  add("another language, which many answers say",
      std::vector<std::string>(500, "Hunde bellen laut auf der Straße."));
  add("lines of a digit", {Many("1\n", 4000)});
  TranslateRequest& copied =
      add("words and alignments of lines of digits", {Many("1 2 3 4 5\n", 400)});
  copied.set_word_scores(true);
  copied.set_alignments(true);
  copied.mutable_options()->set_n_best(1);
  TranslateRequest& copied_twice = add("alignments of lines of digits through a third language",
                                       {Many("1 2 3 4 5 6 7 8 9\n", 400)});
  copied_twice.set_alignments(true);
  copied_twice.set_target_language_code("fr");
  TranslateRequest& joined = add("joined lines", {Many(sentence + "\n", 400)});
  joined.set_line_breaks(linnet::v1::LINE_BREAKS_JOIN_PARAGRAPHS);
  TranslateRequest& hyphens = add("joined lines of hyphens", {Many(sentence + "a-b\n", 400)});
  hyphens.set_line_breaks(linnet::v1::LINE_BREAKS_JOIN_PARAGRAPHS);
  hyphens.set_alignments(true);
  TranslateRequest& n_best = add("n best", {Many(sentence, 40)});
  n_best.mutable_options()->set_beam_size(8);
  n_best.mutable_options()->set_n_best(8);
  add("words", {Many(sentence, 100)}).set_word_scores(true);
  TranslateRequest& aligned = add("alignments", {Many(sentence, 100)});
  aligned.set_alignments(true);
  TranslateRequest& long_aligned = add("alignments of long sentences", {Many("the dog ", 2000)});
  long_aligned.set_alignments(true);
  long_aligned.set_word_scores(true);
  for (const std::string code : {"de", "fr"}) {
    for (const std::string& text : {Many("<b>The</b> <i>dog, the</i> dog", 40) + ". ",
                                    Many("<b>The</b> dog runs... ", 400)}) {
      TranslateRequest& tags =
          add(absl::StrCat("tags of ", text.size(), " bytes to ", code), {text});
      tags.set_mime_type("text/html");
      tags.set_target_language_code(code);
    }
  }
  TranslateRequest& patterns = add("patterns", {Many(sentence, 400)});
  for (int i = 0; i < 16; ++i) patterns.add_protected_patterns("(?:dog|.*a.{12}c)");
  TranslateRequest& terms = add("a glossary", {Many("a dog a dog. ", 1000)});
  auto& entry = *terms.mutable_glossary()->add_entries();
  entry.set_source_text("a");
  entry.set_target_text("The dog runs through the garden of the old dog");
  terms.mutable_options()->set_beam_size(2);
  for (const auto& contents :
       {std::vector<std::string>{Many(sentence, 400)}, std::vector<std::string>(2000, "dog"),
        std::vector<std::string>{Many("the dog ", 2000)}}) {
    TranslateRequest& pivot = add("through a third language", contents);
    pivot.set_target_language_code("fr");
    pivot.set_alignments(contents.size() == 1);
    pivot.set_word_scores(contents.size() == 1);
  }
  return scenarios;
}

TEST(MemoryTest, PermitCoversTheAllocationsOfItsCall) {
  CountedServer server;
  for (const Scenario& scenario : Scenarios()) {
    SCOPED_TRACE(scenario.name);
    EXPECT_THAT(server.Call(scenario.request), IsOk());
    EXPECT_LE(server.short_by(), 0) << "allocated beyond what was held";
    // The tokenizer and the detector free their working memory before the engine steps, where the
    // check is made.
    int64_t longest = 0;
    for (const std::string& text : scenario.request.contents())
      longest = std::max<int64_t>(longest, std::ssize(text));
    EXPECT_LE(server.peak(), server.max_held() + EncodeBytes(longest) + kDetectorBytes)
        << "at its peak";
  }
}

TEST(MemoryTest, RejectsSegmentsBeforeAllocatingThem) {
  TextFixture server;
  TranslateResponse response;
  const TranslateRequest request = ToGerman({Many("a\n", 500'000)});
  Allocations::ResetPeak();
  const int64_t before = Allocations::live_bytes();
  const absl::Status status = server.Call(&TextCalls::Translate, request, response);
  EXPECT_EQ(ErrorReason(status), "TOO_MANY_SEGMENTS") << status;
  EXPECT_LT(Allocations::peak_bytes() - before, 64 << 20);
}

TEST(MemoryTest, RejectsTextsBeforeAllocatingAnythingForThem) {
  TextFixture server;
  TranslateResponse response;
  linnet::v1::DetectLanguageResponse detected;
  TranslateRequest request = ToGerman({});
  linnet::v1::DetectLanguageRequest detection;
  for (int i = 0; i < 500'000; ++i) {
    request.add_contents();
    detection.add_contents();
  }
  Allocations::ResetPeak();
  const int64_t before = Allocations::live_bytes();
  EXPECT_EQ(ErrorReason(server.Call(&TextCalls::Translate, request, response)), "TOO_MANY_TEXTS");
  EXPECT_EQ(ErrorReason(server.Call(&TextCalls::DetectLanguage, detection, detected)),
            "TOO_MANY_TEXTS");
  EXPECT_LT(Allocations::peak_bytes() - before, 1 << 20);
}

TEST(MemoryTest, RejectedCallHoldsNoMemory) {
  TextFixture server({}, {.max_bytes = 4 << 20});
  TranslateResponse response;
  TranslateRequest request = ToGerman({Many("The dog runs. ", 4000)});
  request.set_alignments(true);
  const absl::Status status = server.Call(&TextCalls::Translate, request, response);
  EXPECT_EQ(ErrorReason(status), "CALL_TOO_LARGE") << status;
  request = ToGerman({"The dog runs."});
  EXPECT_THAT(server.Call(&TextCalls::Translate, request, response), IsOk());
}

// Two bytes on the wire may become a hundred in memory, in known and in unknown fields.
TEST(MemoryTest, KnowsTheMemoryOfAMessageBeforeParsing) {
  std::vector<std::string> wires = {
      "",
      Many(std::string("\x0A\x00", 2), 10000),  // empty texts
      Many("\x0A\x01"
           "a",
           10000),                                                // texts of a letter
      Many(std::string("\x78\x00", 2), 10000),                    // an unknown number
      Many(std::string("\x7A\x00", 2), 10000),                    // unknown bytes
      "\x7B" + Many(std::string("\x08\x01", 2), 10000) + "\x7C",  // in an unknown group
      Many("\x7B\x7C", 10000),                                    // unknown groups
  };
  for (const linnet::v1::TranslateRequest& request :
       {Scenarios()[0].request, Scenarios()[12].request})
    wires.push_back(request.SerializeAsString());
  TranslateRequest labels;
  for (int i = 0; i < 2000; ++i) (*labels.mutable_labels())[std::to_string(i)] = "";
  for (int i = 0; i < 2000; ++i) labels.mutable_glossary()->add_entries();
  wires.push_back(labels.SerializeAsString());
  std::mt19937 random(1);
  for (int i = 0; i < 300; ++i) {
    std::string wire = wires[random() % wires.size()].substr(0, 3000);
    for (int change = 0; change < 5 && !wire.empty(); ++change)
      wire[random() % wire.size()] = static_cast<char>(random());
    wires.push_back(wire);
  }
  for (size_t i = 0; i < wires.size(); ++i) {
    const int64_t bound = ParsedBytes(wires[i], *TranslateRequest::descriptor());
    const int64_t before = Allocations::live_bytes();
    const auto message = std::make_unique<TranslateRequest>();
    message->ParsePartialFromString(wires[i]);
    const int64_t taken = Allocations::live_bytes() - before;
    EXPECT_LE(taken, bound + 1024) << "wire " << i << " of " << wires[i].size() << " bytes";
  }
}

}  // namespace
}  // namespace linnet::server
