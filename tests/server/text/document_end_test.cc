// How documents end: after their last line, at a shutdown, or cancelled.
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "server/base/errors.h"
#include "server/base/monotonic.h"
#include "tests/server/text/document_fixture.h"

namespace linnet::server {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::IsEmpty;

TEST(DocumentStreamTest, ShutdownEndsTheDocument) {
  TextFixture fixture;
  Reader reader(fixture);
  reader.Send(Settings());
  fixture.calls->Drain(MonotonicTime::max());
  reader.Send(Lines({"The dog runs."}, 7));
  EXPECT_EQ(reader.ReadToTheEnd().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(Ids(reader), IsEmpty()) << "the client sends the line to the next server";
}

TEST(DocumentStreamTest, ShutdownAfterALineLeavesTheNextUnanswered) {
  for (const bool keep_order : {false, true}) {
    TextFixture fixture;
    Reader reader(fixture);
    reader.Send(Settings(keep_order));
    reader.Send(Lines({"The dog runs."}, 1));
    reader.ReadWhile([&] { return reader.results.empty(); });
    fixture.calls->Drain(MonotonicTime::max());
    reader.Send(Lines({"A bird sings.", ""}, 2));
    EXPECT_EQ(reader.ReadToTheEnd().code(), absl::StatusCode::kUnavailable);
    EXPECT_THAT(Ids(reader), ElementsAre(1));
    EXPECT_EQ(fixture.admission.bytes(), 0);
  }
}

TEST(ResultWriterTest, InOrderNoResultPassesALineWithoutOne) {
  for (const bool in_order : {true, false}) {
    ResultWriter<int> writer;
    if (in_order) writer.KeepOrder();
    for (int line = 0; line < 4; ++line) writer.Expect();
    writer.Store(0, 0, {});
    writer.Store(2, 2, {.permit = nullptr, .blank_bytes = 5});
    writer.LeaveUnanswered(1);
    writer.Store(3, 3, {});
    std::vector<int> taken;
    while (const auto result = writer.Take()) {
      taken.push_back(*result);
      writer.Written();
    }
    EXPECT_THAT(taken, ElementsAreArray(in_order ? std::vector{0} : std::vector{0, 2, 3}));
    EXPECT_EQ(writer.unwritten(), 0);
    EXPECT_EQ(writer.blank_bytes(), 0);
  }
}

TEST(DocumentStreamTest, DrainEndsADocumentThatWaitsForItsClient) {
  TextFixture fixture;
  Reader before(fixture), during(fixture);
  before.Send(Settings());
  during.Send(Settings());
  fixture.calls->DrainLater(before.document);
  fixture.calls->Drain(MonotonicTime::max());
  fixture.calls->DrainLater(during.document);
  for (Reader* reader : {&before, &during}) {
    const absl::Status status = reader->ReadToTheEnd();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
    EXPECT_EQ(ErrorReason(status), "SHUTTING_DOWN");
  }
}

TEST(DocumentStreamTest, DrainAnswersTheLinesInFlight) {
  for (const bool closed : {false, true}) {
    StepGate gate;
    TextFixture fixture({.on_step = [&] { gate.Step(); }});
    gate.armed = true;
    Reader reader(fixture);
    fixture.calls->DrainLater(reader.document);
    reader.Send(Settings());
    reader.Send(Lines({"The dog runs.", "A bird sings."}, 0));
    if (closed) reader.document->Close();
    gate.in_step.Pass();
    std::thread drain([&] { fixture.calls->Drain(MonotonicTime::max()); });
    gate.go_on.Open();
    drain.join();
    EXPECT_EQ(reader.ReadToTheEnd().code(),
              closed ? absl::StatusCode::kOk : absl::StatusCode::kUnavailable);
    EXPECT_EQ(reader.results.size(), 2);
    for (const auto& result : reader.results) EXPECT_FALSE(result.has_error());
  }
}

TEST(DocumentStreamTest, CancelFreesLinesInFlight) {
  StepGate gate;
  TextFixture fixture({.on_step = [&] { gate.Step(); }});
  gate.armed = true;
  Reader reader(fixture);
  reader.Send(Settings());
  reader.Send(Lines(std::vector<std::string>(30, "The dog runs through the garden."), 0));
  gate.in_step.Pass();
  reader.document->Cancel();
  gate.go_on.Open();
  EXPECT_EQ(reader.ReadToTheEnd().code(), absl::StatusCode::kCancelled);
  fixture.calls->Drain(MonotonicTime::max());
  EXPECT_EQ(fixture.admission.tokens(), 0);
  EXPECT_EQ(fixture.admission.bytes(), 0);
}

TEST(DocumentStreamTest, RandomDocumentsAnswerEachLineOnce) {
  std::mt19937 random(11);
  for (int round = 0; round < 60; ++round) {
    TextFixture fixture({}, {.max_tokens = 150 + static_cast<int64_t>(random() % 2000)},
                        {.max_inflight_lines = 1 + static_cast<int>(random() % 9)});
    Reader reader(fixture);
    reader.Send(Settings(random() % 2 == 0));
    const int messages = static_cast<int>(random() % 6);
    int64_t next = 0;
    const int stop_at = random() % 4 == 0 ? static_cast<int>(random() % 6) : -1;
    for (int m = 0; m < messages; ++m) {
      std::vector<std::string> texts;
      for (int l = static_cast<int>(random() % 12); l > 0; --l)
        texts.push_back(random() % 5 == 0 ? "" : "The dog runs.");
      const auto count = static_cast<int64_t>(texts.size());
      if (m == stop_at) {
        if (random() % 2 == 0) {
          reader.document->Cancel();
        } else {
          fixture.calls->Drain(MonotonicNow());
        }
      }
      if (reader.document->finished().has_value()) break;
      reader.document->Take(Lines(std::move(texts), next));
      next += count;
      reader.ReadWhile([&] {
        return !reader.document->wants_more() && !reader.document->finished().has_value();
      });
    }
    reader.document->Close();
    const absl::Status status = reader.ReadToTheEnd();
    const std::vector<int64_t> ids = Ids(reader);
    EXPECT_EQ(std::set<int64_t>(ids.begin(), ids.end()).size(), ids.size()) << "answered twice";
    if (status.ok()) {
      EXPECT_EQ(ids.size(), next) << "round " << round;
    }
    fixture.calls->Drain(MonotonicTime::max());
    EXPECT_EQ(fixture.admission.tokens(), 0);
    EXPECT_EQ(fixture.admission.bytes(), 0);
  }
}

}  // namespace
}  // namespace linnet::server
