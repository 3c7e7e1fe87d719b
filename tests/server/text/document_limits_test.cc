// How many lines of a document are in flight, and what becomes of those that the server refuses.
#include <atomic>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "tests/server/text/document_fixture.h"

namespace linnet::server {
namespace {

// A client that does not read keeps the server from taking more, also with a high
// --max-inflight-lines.
TEST(DocumentStreamTest, UnreadBlankLinesStopTheInput) {
  TextFixture fixture({}, {}, {.max_inflight_lines = 10000});
  Document document(*fixture.calls, absl::InfiniteFuture(), [] {});
  document.Take(Settings());
  int64_t taken = 0;
  while (document.wants_more() && taken < 1000) {
    document.Take(Lines({std::string(10000, ' ')}, taken++));
  }
  EXPECT_EQ(taken, 8) << "64 KiB and a line that waits";
  while (document.TakeResult().has_value()) document.Written();
  EXPECT_TRUE(document.wants_more());
  document.Close();
  while (document.TakeResult().has_value()) document.Written();
  EXPECT_THAT(*document.finished(), IsOk());
}

TEST(DocumentStreamTest, LimitsLinesInFlightUntilResultsAreRead) {
  TextFixture fixture({}, {}, {.max_contents = 100, .max_inflight_lines = 4});
  auto document = std::make_shared<Document>(*fixture.calls, absl::InfiniteFuture(), [] {});
  document->Take(Settings());
  EXPECT_TRUE(document->wants_more());
  document->Take(Lines(std::vector<std::string>(20, "The dog runs."), 0));
  EXPECT_FALSE(document->wants_more()) << "16 lines wait";
  fixture.calls->Drain(MonotonicTime::max());  // all lines taken are answered
  int answered = 0;
  while (document->TakeResult().has_value()) ++answered;
  EXPECT_EQ(answered, 4) << "none is started before a result is written";
  document->Cancel();
}

TEST(DocumentStreamTest, BusyServerDelaysLinesInsteadOfFailing) {
  // Room for one or two lines at a time.
  TextFixture fixture({}, {.max_tokens = 100});
  Reader reader(fixture);
  reader.Send(Settings());
  std::vector<std::string> texts(60, "The dog runs.");
  reader.Send(Lines(texts, 0));
  reader.document->Close();
  ASSERT_THAT(reader.ReadToTheEnd(), IsOk());
  EXPECT_EQ(reader.results.size(), 60);
  for (const auto& result : reader.results)
    EXPECT_TRUE(result.has_response()) << result.DebugString();
  EXPECT_EQ(fixture.admission.tokens(), 0);
}

// An engine that has no memory for a source when it sees it first, once its gate is armed.
class ShortOfMemory : public test::EchoEngine {
 public:
  explicit ShortOfMemory(StepGate& gate) : EchoEngine({.limits = kTinyLimits}), gate_(gate) {}
  absl::Status Add(std::span<const model::SequenceInput> inputs) override {
    gate_.Step();
    if (gate_.armed && (inputs.size() > 1 || seen_.insert(inputs.front().source).second))
      return absl::ResourceExhaustedError("out of memory");
    return EchoEngine::Add(inputs);
  }

 private:
  StepGate& gate_;
  std::set<std::vector<model::TokenId>> seen_;
};

TEST(DocumentStreamTest, LinesThatTheEngineRefusedAreDecodedLater) {
  StepGate gate;
  TextFixture fixture(
      [&gate](const model::Bundle&) { return std::make_unique<ShortOfMemory>(gate); });
  gate.armed = true;
  Reader reader(fixture);
  reader.Send(Settings());
  reader.Send(Lines({"The dog runs.", "A bird sings.", "The dog sings.", "A bird runs."}, 0));
  gate.go_on.Open();  // all are in flight
  reader.document->Close();
  ASSERT_THAT(reader.ReadToTheEnd(), IsOk());
  ASSERT_EQ(reader.results.size(), 4);
  for (const auto& result : reader.results)
    EXPECT_TRUE(result.has_response()) << result.DebugString();
  EXPECT_EQ(fixture.admission.tokens(), 0);
}

TEST(DocumentStreamTest, StartsAndReadsNothingWhileALineWaitsToBeRetried) {
  test::Notification in_step, go_on;
  std::atomic<bool> armed = false;
  TextFixture fixture({.on_step = [&] {
    if (!armed.exchange(false)) return;
    in_step.Open();
    go_on.Pass();
  }});
  armed = true;
  Reader reader(fixture);
  reader.Send(Settings());
  reader.Send(Lines({"The dog runs."}, 0));
  in_step.Pass();
  EXPECT_TRUE(reader.document->wants_more());
  {
    const auto others = FillMemory(fixture.admission, 0);
    reader.document->Take(Lines(std::vector<std::string>(10, "The dog runs."), 1));
    EXPECT_FALSE(reader.document->wants_more());
  }
  go_on.Open();
  reader.document->Close();
  ASSERT_THAT(reader.ReadToTheEnd(), IsOk());
  EXPECT_EQ(reader.results.size(), 11);
}

TEST(DocumentStreamTest, FullServerRejectsOnlyLineInFlight) {
  TextFixture fixture({}, {.max_tokens = 254});
  auto other = fixture.admission.Enter({.client = "other"}, 1);
  ASSERT_THAT(other->Charge({.model = "en-de", .size = {.tokens = 190}}, absl::Now()), IsOk());
  Reader reader(fixture);
  TranslateDocumentRequest settings = Settings();
  settings.mutable_settings()->mutable_options()->set_beam_size(1);
  settings.mutable_settings()->mutable_options()->set_min_target_tokens(79);
  reader.Send(settings);
  reader.Send(Lines({"The dog runs.", "A bird sings."}, 0));
  reader.document->Close();
  ASSERT_THAT(reader.ReadToTheEnd(), IsOk());
  ASSERT_EQ(reader.results.size(), 2);
  for (const auto& result : reader.results) EXPECT_EQ(result.error().code(), 8);
}

}  // namespace
}  // namespace linnet::server
