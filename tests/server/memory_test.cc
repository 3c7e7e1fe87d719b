// Checks that a permit holds the memory of its call before it is allocated, and that running out of
// memory fails one call alone. A binary of its own, in which every allocation is counted.
#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "server/base/errors.h"
#include "server/base/monotonic.h"
#include "server/request/request_bytes.h"
#include "server/schedule/scheduler.h"
#include "server/schedule/supervisor.h"
#include "server/text/document_stream.h"
#include "server/text/memory_cost.h"
#include "tests/server/text/text_fixture.h"
#include "tests/support/allocations.h"
#include "tests/support/waited_sink.h"

namespace linnet::server {
namespace {

using linnet::v1::TranslateRequest;
using linnet::v1::TranslateResponse;
using test::Allocations;

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

// Lets allocations of both threads of a pool fail. The jobs share what they wait for: each may
// still look at it after the other one and this function have returned.
void LetPoolFail(TextPool& pool) {
  const auto begun = std::make_shared<std::array<test::Notification, 2>>();
  for (int own : {0, 1}) {
    TextJob job;
    job.run = [begun, own] {
      Allocations::MayFail(true);
      (*begun)[own].Open();
      (*begun)[1 - own].Pass();
    };
    pool.Run(std::move(job));
  }
  for (test::Notification& one : *begun) one.Pass();
}

// For every allocation of the text stage that fails: the call ends once, with OUT_OF_MEMORY or as
// without the failure, no permit is lost, and the next call is answered.
void FailEachAllocationOf(const TranslateRequest& request) {
  TextFixture server;
  test::WriteBundle(server.folder.path() / "de-fr",
                    test::TinyManifest("de-fr", linnet::v1::TASK_TRANSLATE, "de", "fr"));
  EXPECT_TRUE(server.catalog->Reload().ok());
  LetPoolFail(server.pool);
  int failed = 0;
  for (int64_t n = 1;; ++n) {
    TranslateResponse response;
    Allocations::FailNth(n);
    const absl::Status status = server.Call(&TextCalls::Translate, request, response);
    const bool reached = Allocations::failed();
    Allocations::FailNth(0);
    if (!status.ok()) {
      ++failed;
      EXPECT_TRUE(absl::IsResourceExhausted(status) || absl::IsInternal(status)) << status;
    }
    if (!reached) break;
    if (n % 20 == 0) {
      TranslateResponse next;
      EXPECT_THAT(server.Call(&TextCalls::Translate, request, next), IsOk());
    }
  }
  EXPECT_GT(failed, 50);
}

TEST(MemoryTest, OutOfMemoryFailsOneCallAlone) {
  TranslateRequest request = ToGerman({"The dog runs. A bird sings in the garden.", "A window."});
  request.set_word_scores(true);
  request.set_alignments(true);
  FailEachAllocationOf(request);
}

TEST(MemoryTest, OutOfMemoryFailsOneCallOfTwoModelsAlone) {
  TranslateRequest request = ToGerman({"The dog runs. A bird sings in the garden.", "A window."});
  request.set_word_scores(true);
  request.set_alignments(true);
  request.set_target_language_code("fr");
  FailEachAllocationOf(request);
}

// The same on the thread that brings the call: it is answered, and no longer in flight.
TEST(MemoryTest, OutOfMemoryEndsACallThatBegins) {
  TextFixture server;
  const TranslateRequest request = ToGerman({"The dog runs. A bird sings.", "A window."});
  // protobuf's descriptors, which the first call builds, do not survive a failed allocation.
  TranslateResponse first;
  EXPECT_THAT(server.Call(&TextCalls::Translate, request, first), IsOk());
  int failed = 0;
  for (int64_t n = 1;; ++n) {
    TranslateResponse response;
    test::Notification ended;
    absl::Status result;
    const CallContext context = {.arrived = absl::Now(), .caller = {.client = "c"}};
    TextCalls::Done done = [&](absl::Status status) {
      result = std::move(status);
      ended.Open();
    };
    Allocations::MayFail(true);
    Allocations::FailNth(n);
    server.calls->Translate(request, response, context, std::move(done));
    const bool reached = Allocations::failed();
    Allocations::FailNth(0);
    Allocations::MayFail(false);
    ended.Pass();
    failed += result.ok() ? 0 : 1;
    if (!result.ok()) {
      EXPECT_TRUE(absl::IsResourceExhausted(result) || absl::IsInternal(result)) << result;
    }
    if (!reached) break;
  }
  EXPECT_GT(failed, 5);
  server.calls->Drain(MonotonicNow());
  EXPECT_EQ(server.admission.bytes(), 0);
}

using Document = DocumentStream<TranslateDocumentTypes>;

// Runs a document of three lines as DocumentCall does, with results that are read at once. Returns
// its status.
absl::Status RunDocument(TextCalls& calls) {
  auto document = std::make_shared<Document>(calls, absl::InfiniteFuture(), [] {});
  linnet::v1::TranslateDocumentRequest message;
  *message.mutable_settings() = ToGerman({});
  message.set_keep_order(true);
  for (const char* text : {"The dog runs.", "A bird sings.", "A window."})
    message.add_lines()->set_text(text);
  try {
    document->Take(message);
  } catch (...) {
    document->Fail(ErrorOfException());
  }
  document->Close();
  const MonotonicTime limit = After(MonotonicNow(), absl::Seconds(20));
  while (!document->finished().has_value()) {
    bool taken = false;
    try {
      const auto result = document->TakeResult();
      taken = result.has_value();
      if (taken && result->has_error()) {
        EXPECT_EQ(result->error().code(), static_cast<int>(absl::StatusCode::kResourceExhausted));
      }
    } catch (...) {
      document->Fail(ErrorOfException());
    }
    if (taken) document->Written();
    if (MonotonicNow() > limit) return absl::DeadlineExceededError("the document does not end");
  }
  return *document->finished();
}

// The same for a document, on the threads that bring, prepare and read it.
TEST(MemoryTest, OutOfMemoryEndsADocument) {
  TextFixture server;
  LetPoolFail(server.pool);
  EXPECT_THAT(RunDocument(*server.calls), IsOk());
  int failed = 0;
  for (int64_t n = 1;; ++n) {
    Allocations::MayFail(true);
    Allocations::FailNth(n);
    absl::Status status;
    try {
      status = RunDocument(*server.calls);
    } catch (const std::bad_alloc&) {  // before the document has begun
      status = absl::ResourceExhaustedError("");
    }
    const bool reached = Allocations::failed();
    Allocations::FailNth(0);
    Allocations::MayFail(false);
    ASSERT_FALSE(absl::IsDeadlineExceeded(status)) << "allocation " << n;
    failed += status.ok() ? 0 : 1;
    if (!reached) break;
  }
  EXPECT_GT(failed, 5);
  server.calls->Drain(MonotonicNow());
  EXPECT_EQ(server.admission.bytes(), 0);
}

// Lines that are refused wait with their text, not with a copy of the document's settings.
TEST(MemoryTest, RefusedLinesOfADocumentHoldNoSettings) {
  TextFixture server;
  auto document = std::make_shared<Document>(*server.calls, absl::InfiniteFuture(), [] {});
  linnet::v1::TranslateDocumentRequest message;
  *message.mutable_settings() = ToGerman({});
  for (int i = 0; i < 256; ++i) {
    auto& entry = *message.mutable_settings()->mutable_glossary()->add_entries();
    entry.set_source_text(Many("dog", i + 1));
    entry.set_target_text("Hund");
  }
  document->Take(message);
  const int64_t settings = message.settings().SpaceUsedLong();
  // Room for one line.
  const auto others = FillMemory(server.admission, 3 * Admission::kBytesPerCall + 2 * settings);
  linnet::v1::TranslateDocumentRequest lines;
  for (int i = 0; i < 60; ++i) lines.add_lines()->set_text("The dog runs.");
  Allocations::ResetPeak();
  const int64_t before = Allocations::live_bytes();
  document->Take(lines);
  EXPECT_LT(Allocations::peak_bytes() - before, 8 * settings);
  EXPECT_FALSE(document->wants_more());
  document->Cancel();
  server.calls->Drain(MonotonicNow());
}

// The same on the thread of an engine: every call ends, and the engine decodes on, is rebuilt, or
// has failed for good, so that the process ends.
TEST(MemoryTest, OutOfMemoryOfAnEngineThreadEndsItsCalls) {
  TranslateRequest request = ToGerman({"The dog runs. A bird sings.", "A window."});
  request.set_word_scores(true);
  int failed = 0, for_good = 0;
  for (int64_t n = 1;; ++n) {
    Supervisor supervisor([] {});
    TextFixture server(
        [](const model::Bundle&) {
          Allocations::MayFail(true);
          return std::make_unique<test::EchoEngine>(
              test::EchoEngine::Options{.limits = kTinyLimits});
        },
        {}, {}, {}, absl::InfiniteDuration(), nullptr, {.supervisor = &supervisor});
    TranslateResponse response;
    Allocations::FailNth(n);
    const absl::Status status =
        server.Call(&TextCalls::Translate, request, response,
                    {.arrived = absl::Now(), .deadline = absl::Now() + absl::Hours(1)});
    const bool reached = Allocations::failed();
    Allocations::FailNth(0);
    if (!reached) break;
    supervisor.Tick(MonotonicNow());
    if (!status.ok()) {
      ++failed;
      EXPECT_TRUE(absl::IsResourceExhausted(status) || absl::IsInternal(status) ||
                  absl::IsUnavailable(status))
          << status;
    }
    for_good += supervisor.failure().has_value() ? 1 : 0;
  }
  EXPECT_GT(failed, 20);
  EXPECT_GT(for_good, 10);
}

// The process ends by the failure, so it must be known even if its details are lost.
TEST(MemoryTest, OutOfMemoryHidesNoStalledEngine) {
  // protobuf's descriptors, which the first error builds, do not survive a failed allocation.
  EXPECT_FALSE(EngineDown(absl::ZeroDuration()).ok());
  for (int64_t n = 1;; ++n) {
    test::Notification inside, go_on;
    Supervisor supervisor([] {});
    auto scheduler = Scheduler::Start(
        [&] {
          return std::make_unique<test::EchoEngine>(
              test::EchoEngine::Options{.rows = 1, .on_step = [&] {
                                          inside.Open();
                                          go_on.Pass();
                                        }});
        },
        {}, nullptr, {.stall_timeout = absl::Hours(1), .supervisor = &supervisor}, "en-de");
    ASSERT_THAT(scheduler, IsOk());
    test::Waited running, waiting;
    std::vector<std::unique_ptr<Sequence>> sequences;
    sequences.push_back(test::Say({5, 6}, running));
    sequences.push_back(test::Say({7}, waiting));
    ASSERT_THAT((*scheduler)->Submit(sequences), IsOk());
    inside.Pass();
    const MonotonicTime later = After(MonotonicNow(), absl::Hours(2));
    Allocations::MayFail(true);
    Allocations::FailNth(n);
    supervisor.Tick(later);
    const bool reached = Allocations::failed();
    Allocations::FailNth(0);
    Allocations::MayFail(false);
    EXPECT_TRUE(supervisor.failure().has_value()) << n;
    EXPECT_FALSE(running.status().ok());
    EXPECT_FALSE(waiting.status().ok());
    go_on.Open();
    if (!reached) break;
  }
}

}  // namespace
}  // namespace linnet::server
