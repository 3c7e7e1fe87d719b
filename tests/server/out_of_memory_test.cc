// Checks that running out of memory fails one call alone. In the binary of memory_test.cc, in which
// allocations can fail.
#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/base/errors.h"
#include "server/base/monotonic.h"
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

TEST(OutOfMemoryTest, OutOfMemoryFailsOneCallAlone) {
  TranslateRequest request = ToGerman({"The dog runs. A bird sings in the garden.", "A window."});
  request.set_word_scores(true);
  request.set_alignments(true);
  FailEachAllocationOf(request);
}

TEST(OutOfMemoryTest, OutOfMemoryFailsOneCallOfTwoModelsAlone) {
  TranslateRequest request = ToGerman({"The dog runs. A bird sings in the garden.", "A window."});
  request.set_word_scores(true);
  request.set_alignments(true);
  request.set_target_language_code("fr");
  FailEachAllocationOf(request);
}

// The same on the thread that brings the call: it is answered, and no longer in flight.
TEST(OutOfMemoryTest, OutOfMemoryEndsACallThatBegins) {
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
TEST(OutOfMemoryTest, OutOfMemoryEndsADocument) {
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
TEST(OutOfMemoryTest, RefusedLinesOfADocumentHoldNoSettings) {
  TextFixture server;
  auto document = std::make_shared<Document>(*server.calls, absl::InfiniteFuture(), [] {});
  linnet::v1::TranslateDocumentRequest message;
  *message.mutable_settings() = ToGerman({});
  std::string source;
  for (int i = 0; i < 256; ++i) {
    auto& entry = *message.mutable_settings()->mutable_glossary()->add_entries();
    entry.set_source_text(source += "dog");
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
TEST(OutOfMemoryTest, OutOfMemoryOfAnEngineThreadEndsItsCalls) {
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
TEST(OutOfMemoryTest, OutOfMemoryHidesNoStalledEngine) {
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
