#include "server/text/document_stream.h"
#include "server/base/monotonic.h"

#include <functional>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/base/errors.h"
#include "tests/server/text/text_fixture.h"

namespace linnet::server {
namespace {

using linnet::v1::TranslateDocumentRequest;
using linnet::v1::TranslateDocumentResponse;
using Document = DocumentStream<TranslateDocumentTypes>;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TranslateDocumentRequest Lines(std::vector<std::string> texts, int64_t first_id) {
  TranslateDocumentRequest message;
  for (std::string& text : texts) {
    message.add_lines()->set_text(std::move(text));
    message.mutable_lines()->rbegin()->set_sequence_id(first_id++);
  }
  return message;
}

TranslateDocumentRequest Settings(bool keep_order = false) {
  TranslateDocumentRequest message;
  message.mutable_settings()->set_source_language_code("en");
  message.mutable_settings()->set_target_language_code("de");
  message.set_keep_order(keep_order);
  return message;
}

// A client that reads everything at once.
class Reader {
 public:
  explicit Reader(TextFixture& fixture)
      : document(std::make_shared<Document>(*fixture.calls, absl::InfiniteFuture(),
                                            [changed = changed_] { changed->Wake(); })) {}

  // Reads results while `waiting` holds.
  void ReadWhile(const std::function<bool()>& waiting) {
    while (true) {
      const int seen = changed_->count();
      while (auto result = document->TakeResult()) {
        results.push_back(*std::move(result));
        document->Written();
      }
      if (!waiting()) return;
      changed_->WaitPast(seen);
    }
  }
  void Send(TranslateDocumentRequest message) {
    ReadWhile([&] { return !document->wants_more(); });
    document->Take(std::move(message));
  }
  absl::Status ReadToTheEnd() {
    ReadWhile([&] { return !document->finished().has_value(); });
    return *document->finished();
  }

 private:
  class Counter {
   public:
    void Wake() {
      MutexLock lock(mu_);
      ++count_;
      changed_.NotifyAll();
    }
    int count() {
      MutexLock lock(mu_);
      return count_;
    }
    void WaitPast(int seen) {
      MutexLock lock(mu_);
      while (count_ == seen) changed_.Wait(mu_);
    }

   private:
    Mutex mu_;
    CondVar changed_;
    int count_ ABSL_GUARDED_BY(mu_) = 0;
  };
  // Shared with the document, which may call it after the reader is destroyed.
  const std::shared_ptr<Counter> changed_ = std::make_shared<Counter>();

 public:
  std::vector<TranslateDocumentResponse> results;
  std::shared_ptr<Document> document;
};

std::vector<int64_t> Ids(const Reader& reader) {
  std::vector<int64_t> ids;
  for (const auto& result : reader.results) ids.push_back(result.sequence_id());
  return ids;
}

TEST(DocumentStreamTest, AnswersEveryLineWithItsId) {
  TextFixture fixture;
  Reader reader(fixture);
  TranslateDocumentRequest first = Settings();
  first.MergeFrom(Lines({"The dog runs.", "A bird  sings. She writes."}, 10));
  reader.Send(first);
  reader.Send(Lines({"Last one."}, 20));
  reader.document->Close();
  ASSERT_THAT(reader.ReadToTheEnd(), IsOk());
  EXPECT_THAT(Ids(reader), ::testing::UnorderedElementsAre(10, 11, 20));
  for (const auto& result : reader.results) {
    ASSERT_TRUE(result.has_response());
    linnet::v1::TranslateResponse alone;
    ASSERT_THAT(fixture.Call(&TextCalls::Translate,
                             ToGerman({result.response().translations(0).text()}), alone),
                IsOk());
    auto same = result.response();
    same.clear_timings();
    alone.clear_timings();
    EXPECT_EQ(same.SerializeAsString(), alone.SerializeAsString());
  }
  EXPECT_EQ(reader.document->lines(), 3);
}

TEST(DocumentStreamTest, KeepsOrderOnRequest) {
  TextFixture fixture;
  Reader reader(fixture);
  reader.Send(Settings(/*keep_order=*/true));
  std::vector<int64_t> sent;
  for (int i = 0; i < 40; ++i) {
    std::string text = "The dog runs";
    for (int more = 0; more < (i * 7) % 9; ++more) text += " through the garden";
    reader.Send(Lines({text}, 100 - i));
    sent.push_back(100 - i);
  }
  reader.document->Close();
  ASSERT_THAT(reader.ReadToTheEnd(), IsOk());
  EXPECT_EQ(Ids(reader), sent);
}

TEST(DocumentStreamTest, ReturnsBlankLinesUnchanged) {
  TextFixture fixture;
  Reader reader(fixture);
  reader.Send(Settings(/*keep_order=*/true));
  const std::vector<std::string> lines = {"",       "The dog runs.", " \t",
                                          "\u3000", "\u00A0\u2003",  "\uFEFF"};
  reader.Send(Lines(lines, 1));
  reader.document->Close();
  ASSERT_THAT(reader.ReadToTheEnd(), IsOk());
  std::vector<std::string> texts;
  for (const auto& result : reader.results) {
    texts.push_back(result.response().translations(0).text());
    EXPECT_EQ(result.response().translations(0).finish_reason(), linnet::v1::FINISH_REASON_STOP);
  }
  EXPECT_THAT(texts, ElementsAreArray(lines));
}

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

TEST(DocumentStreamTest, FailedLineDoesNotAffectOthers) {
  TextFixture fixture({}, {}, {.max_text_bytes = 40});
  Reader reader(fixture);
  reader.Send(Settings(/*keep_order=*/true));
  reader.Send(Lines({"The dog runs.", std::string(41, 'a'), "A bird sings."}, 1));
  reader.document->Close();
  ASSERT_THAT(reader.ReadToTheEnd(), IsOk());
  ASSERT_EQ(reader.results.size(), 3);
  EXPECT_TRUE(reader.results[0].has_response());
  EXPECT_TRUE(reader.results[2].has_response());
  ASSERT_TRUE(reader.results[1].has_error());
  EXPECT_EQ(reader.results[1].error().code(), 3);
  EXPECT_THAT(reader.results[1].error().message(), HasSubstr("text: holds 41 bytes"));
  EXPECT_GT(reader.results[1].error().details_size(), 1);
}

TEST(DocumentStreamTest, BadSettingsEndTheDocumentAtOnce) {
  // Each counts as rejected, once, for this reason.
  const auto end = [](TranslateDocumentRequest message, const char* reason = "invalid") {
    TextFixture fixture;
    Reader reader(fixture);
    reader.Send(std::move(message));
    const absl::Status status = reader.ReadToTheEnd();
    EXPECT_TRUE(reader.results.empty());
    EXPECT_THAT(fixture.metrics.Text(),
                HasSubstr(absl::StrCat("linnet_rejected_total{reason=\"", reason, "\"} 1\n")));
    return status;
  };
  EXPECT_THAT(end(Lines({"The dog."}, 1)),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("settings: is required")));
  auto message = Settings();
  message.mutable_settings()->set_target_language_code("fr");
  EXPECT_EQ(end(message, "not_found").code(), absl::StatusCode::kNotFound);
  message = Settings();
  message.mutable_settings()->mutable_options()->set_beam_size(0);
  EXPECT_THAT(end(message), StatusIs(absl::StatusCode::kInvalidArgument,
                                     HasSubstr("settings.options.beam_size: is 0")));
  message = Settings();
  message.mutable_settings()->add_contents("text");
  EXPECT_THAT(end(message),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("settings.contents")));
  TextFixture fixture;
  Reader empty(fixture);
  empty.document->Close();
  EXPECT_THAT(empty.ReadToTheEnd(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("settings: is required")));
}

TEST(DocumentStreamTest, CallThatWasRefusedIsNotAdmitted) {
  TextFixture fixture({}, {.max_bytes = 1});
  const auto reason = [&](absl::Status refused) {
    Document document(
        *fixture.calls, absl::InfiniteFuture(), [] {}, {}, std::move(refused));
    EXPECT_FALSE(document.wants_more());
    return ErrorReason(*document.finished());
  };
  EXPECT_EQ(reason(BadField("x", Reason::kMissing, "is missing")), "MISSING");
  EXPECT_EQ(reason(absl::OkStatus()), "CALL_TOO_LARGE");
}

TEST(DocumentStreamTest, LateSettingsEndTheDocumentAfterLinesInFlight) {
  TextFixture fixture;
  Reader reader(fixture);
  auto first = Settings();
  first.MergeFrom(Lines({"The dog runs."}, 1));
  reader.Send(first);
  reader.Send(Settings());
  EXPECT_THAT(reader.ReadToTheEnd(), StatusIs(absl::StatusCode::kInvalidArgument,
                                              HasSubstr("only be set in the first message")));
  EXPECT_THAT(Ids(reader), ElementsAre(1));
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

TEST(DocumentStreamTest, EachLineHasTheDefaultDeadline) {
  TextFixture fixture({}, {}, {.default_deadline = absl::ZeroDuration()});
  Reader reader(fixture);
  reader.Send(Settings());
  reader.Send(Lines({"The dog runs.", "A bird sings."}, 0));
  reader.document->Close();
  EXPECT_THAT(reader.ReadToTheEnd(), IsOk());
  ASSERT_EQ(reader.results.size(), 2);
  for (const auto& result : reader.results)
    EXPECT_EQ(result.error().code(), static_cast<int>(absl::StatusCode::kDeadlineExceeded));
}

}  // namespace
}  // namespace linnet::server
