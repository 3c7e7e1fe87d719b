// Work on the text pool is done in slices: whatever a text holds, a slice is small, clients take
// turns, and work that cannot lead to an answer stops.
#include <atomic>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "server/text/memory_cost.h"
#include "server/text/text_preparer.h"
#include "tests/server/text/pivot_server.h"
#include "tests/server/text/text_fixture.h"

namespace linnet::server {
namespace {

using linnet::v1::SummarizeRequest;
using linnet::v1::TranslateRequest;
using linnet::v1::TranslateResponse;
using ::testing::HasSubstr;

constexpr absl::string_view kUnreadable = "\xD0\x96";  // Ж, to the model of these tests

// Fragments that cost most to split or to tokenise when they are repeated.
const std::vector<std::string>& Hostile() {
  static const auto* const fragments = new std::vector<std::string>{
      "Mr. ", "II. ", "x", "Z. ", "a.b. ", "A. B. ", "xy, ", "Z.{}", std::string(kUnreadable)};
  return *fragments;
}

std::string Repeated(const std::string& fragment, size_t bytes) {
  std::string text;
  while (text.size() < bytes) text += fragment;
  return text;
}

// Calls on a pool without threads: the test decides when the next slice runs.
class TextSlicesTest : public ::testing::Test {
 protected:
  struct Call {
    explicit Call(TranslateRequest asked) : request(std::move(asked)) {}
    TranslateRequest request;
    TranslateResponse response;
    CallContext context{.arrived = absl::Now()};
    absl::Status status;
    std::atomic<bool> done = false;
  };

  ~TextSlicesTest() override {
    for (const auto& call : started_) call->context.cancelled->Cancel();
    Finish();
  }

  Call& Start(const std::string& client, std::string text, Priority priority = Priority::kNormal) {
    return StartRequest(client, ToGerman({std::move(text)}), priority);
  }
  Call& StartRequest(const std::string& client, TranslateRequest request,
                     Priority priority = Priority::kNormal) {
    Call& call = *started_.emplace_back(std::make_unique<Call>(std::move(request)));
    call.context.caller = {.client = client, .priority = priority};
    calls_.Translate(call.request, call.response, call.context, [&call](absl::Status status) {
      call.status = std::move(status);
      call.done = true;
    });
    return call;
  }
  // Runs slices until the call has ended. Returns how many of them it took.
  int RunUntilDone(const Call& call) {
    return RunUntil([&] { return call.done.load(); });
  }
  int RunUntil(const std::function<bool()>& condition) {
    int slices = 0;
    while (!condition()) {
      if (pool_.RunNext()) {
        ++slices;
      } else {
        std::this_thread::yield();  // an engine works
      }
    }
    return slices;
  }
  void Finish() {
    for (const auto& call : started_) RunUntilDone(*call);
  }

  // Runs slices until the call is submitted to its engine, and returns how many it took.
  int SlicesUntilSubmitted(const Call& call) {
    engine_waits_ = true;
    const int slices = RunUntil([&] { return fixture_.admission.tokens() > 0 || call.done; });
    engine_waits_ = false;
    return slices;
  }

  std::atomic<bool> engine_waits_ = false;
  TextFixture fixture_{{.on_step =
                            [this] {
                              while (engine_waits_) std::this_thread::yield();
                            }},
                       {.max_tokens = 1'000'000, .max_bytes = int64_t{1} << 30}};
  TextPool pool_{0};
  TextCalls calls_{*fixture_.catalog,       fixture_.admission, pool_, fixture_.metrics, {},
                   absl::InfiniteDuration()};
  std::vector<std::unique_ptr<Call>> started_;
};

// A slice takes about a millisecond, so that ten of them are less than the 50 ms of SECURITY.md.
TEST_F(TextSlicesTest, InteractiveCallWaitsForOneSliceOfEachHostileText) {
  for (const bool one_client : {true, false}) {
    std::vector<Call*> hostile;
    for (const std::string& fragment : Hostile())
      hostile.push_back(&Start(one_client ? "hostile" : fragment, Repeated(fragment, 1'000'000)));
    for (int i = 0; i < 16; ++i) ASSERT_TRUE(pool_.RunNext());
    for (const Call* call : hostile)
      ASSERT_FALSE(call->done) << call->request.contents(0).substr(0, 9) << call->status;
    const Call& victim = Start("victim", "A dog runs.", Priority::kInteractive);
    EXPECT_LE(SlicesUntilSubmitted(victim), one_client ? 2 : 9);
    RunUntilDone(victim);
    EXPECT_THAT(victim.status, IsOk());
    EXPECT_TRUE(victim.response.timings().has_text_queue());
    for (const Call* call : hostile) call->context.cancelled->Cancel();
    Finish();
  }
}

// The time between a call and the first slice after it counts, also where that slice detects the
// language, and so does that of a call that is refused.
TEST_F(TextSlicesTest, WaitingForAThreadIsMeasured) {
  const auto duration = [](const google::protobuf::Duration& time) {
    return absl::Seconds(time.seconds()) + absl::Nanoseconds(time.nanos());
  };
  const auto expect_calls = [&](int count) {
    EXPECT_THAT(fixture_.metrics.Text(),
                HasSubstr(absl::StrCat("linnet_text_queue_duration_seconds_count ", count, "\n")));
  };
  int calls = 0;
  for (const bool detects : {false, true}) {
    TranslateRequest request = ToGerman({Repeated("The dog runs through the garden. ", 5000)});
    if (detects) request.clear_source_language_code();
    const Call& call = StartRequest("client", std::move(request));
    const absl::Time waits = absl::Now();
    expect_calls(calls);
    const absl::Duration waited = absl::Now() - waits;
    RunUntilDone(call);
    ASSERT_THAT(call.status, IsOk());
    const linnet::v1::Timings& timings = call.response.timings();
    EXPECT_GE(duration(timings.text_queue()), waited);
    EXPECT_LE(duration(timings.text_queue()) + duration(timings.tokenize()),
              duration(timings.total()));
    expect_calls(++calls);
  }
  RunUntilDone(Start("client", Repeated("Mr. ", 1'000'000)));
  expect_calls(++calls);
}

TEST_F(TextSlicesTest, TextThatCannotFitIsReadNoFurther) {
  for (const std::string& fragment : Hostile()) {
    const Call& call = Start("hostile", Repeated(fragment, 1'000'000));
    // A slice reads at least this much of any text. A token of the text is at least one of work.
    const int64_t limit = fixture_.admission.MaxCallTokens({});
    constexpr int64_t kLeastPerSlice = 256;
    const int slices = RunUntilDone(call);
    EXPECT_GT(slices, 5) << fragment;
    if (fragment == kUnreadable || fragment == "Z.{}") {
      EXPECT_THAT(call.status, IsOk()) << "a text that the model does not read is copied";
      continue;
    }
    EXPECT_LT(slices, 2 + limit / 2 / kLeastPerSlice) << fragment;
    EXPECT_THAT(call.status,
                StatusIs(absl::StatusCode::kInvalidArgument,
                         ::testing::AnyOf(HasSubstr("needs at least"), HasSubstr("more segments"))))
        << fragment;
  }
}

TEST_F(TextSlicesTest, CancelledCallTakesOneMoreSlice) {
  Call& call = Start("hostile", Repeated("Mr. ", 1'000'000));
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(pool_.RunNext());
  call.context.cancelled->Cancel();
  EXPECT_EQ(RunUntilDone(call), 1);
  EXPECT_THAT(call.status, StatusIs(absl::StatusCode::kCancelled));
}

TEST_F(TextSlicesTest, CallPastItsDeadlineTakesOneMoreSlice) {
  Call& call =
      *started_.emplace_back(std::make_unique<Call>(ToGerman({Repeated("Mr. ", 1'000'000)})));
  call.context.deadline = absl::Now() - absl::Seconds(1);
  calls_.Translate(call.request, call.response, call.context, [&call](absl::Status status) {
    call.status = std::move(status);
    call.done = true;
  });
  EXPECT_LE(RunUntilDone(call), 1);
  EXPECT_THAT(call.status, StatusIs(absl::StatusCode::kDeadlineExceeded));
}

// The languages of many texts are detected in slices as well. No model reads the one of these.
TEST_F(TextSlicesTest, LanguagesAreDetectedInSlices) {
  const auto start = [&] {
    TranslateRequest request = ToGerman({});
    request.clear_source_language_code();
    for (int i = 0; i < 4096; ++i)
      request.add_contents("Vaikka Yhdysvaltojen siirtyminen digitaaliseen aikaan on uutta.");
    return &StartRequest("hostile", std::move(request));
  };
  const Call* call = start();
  EXPECT_GT(RunUntilDone(*call), 4096 * kBytesPerText / kBytesPerTurn);
  EXPECT_THAT(call->status, StatusIs(absl::StatusCode::kNotFound)) << call->status;
  call = start();
  ASSERT_TRUE(pool_.RunNext());
  const Call& victim = Start("victim", "A dog runs.", Priority::kInteractive);
  EXPECT_LE(SlicesUntilSubmitted(victim), 2);
  EXPECT_FALSE(call->done);
  RunUntilDone(victim);
  call->context.cancelled->Cancel();
  EXPECT_EQ(RunUntilDone(*call), 1);
  EXPECT_THAT(call->status, StatusIs(absl::StatusCode::kCancelled));
}

// Markup is read in slices before its text is split, and cancelled there as well.
TEST_F(TextSlicesTest, MarkupIsReadInSlices) {
  const auto html = [](const std::string& fragment) {
    TranslateRequest request = ToGerman({Repeated(fragment, 200'000)});
    request.set_mime_type("text/html");
    return request;
  };
  for (const std::string fragment : {"<b>", "<p>", "<code>x</code>", "&amp;", "x "}) {
    Call& call = StartRequest("hostile", html(fragment));
    for (int i = 0; i < 2; ++i) ASSERT_TRUE(pool_.RunNext());
    const Call& victim = Start("victim", "A dog runs.", Priority::kInteractive);
    EXPECT_LE(SlicesUntilSubmitted(victim), 2);
    EXPECT_FALSE(call.done) << fragment;
    call.context.cancelled->Cancel();
    EXPECT_LE(RunUntilDone(call), 2) << "one of them may be the other call's";
    EXPECT_THAT(call.status, StatusIs(absl::StatusCode::kCancelled)) << fragment;
    RunUntilDone(victim);
    EXPECT_THAT(victim.status, IsOk());
  }
  // Its text is refused as early as any other.
  const Call& large = StartRequest("hostile", html("<p>Z. "));
  const int slices = RunUntilDone(large);
  EXPECT_THAT(large.status, StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_GT(slices, 5);
}

// So is the answer written: of one fragment with many segments.
TEST_F(TextSlicesTest, MarkupIsWrittenInSlices) {
  TranslateRequest request =
      ToGerman({Repeated("<p>(((((((( <b>1</b>, 2, 3 ))))))))</p>", 100'000)});
  request.set_mime_type("text/html");
  Call& call = StartRequest("long", request);
  RunUntil([&] { return !call.response.model().empty(); });
  ASSERT_FALSE(call.done) << "the plain text is complete, and the tags are to be written";
  const Call& victim = Start("victim", "A dog runs.", Priority::kInteractive);
  EXPECT_LE(SlicesUntilSubmitted(victim), 2);
  EXPECT_FALSE(call.done);
  RunUntilDone(call);
  EXPECT_THAT(call.status, IsOk());
  EXPECT_EQ(call.response.translations(0).text(), call.request.contents(0));
}

// The work of refused calls counts in the share of their client.
TEST_F(TextSlicesTest, RefusedCallsUseTheShareOfTheirClient) {
  std::vector<Call*> refused(4);
  int slices_of_other = 0;
  std::function<void()> other = [&] {
    ++slices_of_other;
    TextJob next;
    next.flow.client = "other";
    next.bytes = kBytesPerTurn;
    next.run = [&] { other(); };
    if (slices_of_other < 100) pool_.Run(std::move(next));
  };
  other();
  int slices = 0;
  for (; slices_of_other < 100; ++slices) {
    for (Call*& call : refused) {
      if (call == nullptr || call->done) call = &Start("hostile", Repeated("Z. ", 100'000));
    }
    ASSERT_TRUE(pool_.RunNext());
  }
  EXPECT_NEAR(slices, 200, 10);
}

// A long answer does not keep other texts waiting either.
TEST_F(TextSlicesTest, AnswersTakeTurnsWithTextsToPrepare) {
  // 3000 segments that are their own translations cost no engine.
  Call& call = Start("long", Repeated("(((((((((((( 1, 2, 3 ))))))))))))\n", 200'000));
  RunUntil([&] { return call.response.translations_size() > 0; });
  ASSERT_FALSE(call.done) << "the answer takes several slices";
  const Call& victim = Start("victim", "A dog runs.", Priority::kInteractive);
  EXPECT_LE(SlicesUntilSubmitted(victim), 2);
  EXPECT_FALSE(call.done);
  RunUntilDone(call);
  EXPECT_THAT(call.status, IsOk());
  EXPECT_EQ(call.response.translations(0).text(), call.request.contents(0));
}

TEST_F(TextSlicesTest, ScoresAreAssembledInSlices) {
  linnet::v1::ScoreRequest request;
  request.set_model("en-de");
  for (int i = 0; i < 500; ++i) {
    request.add_pairs()->set_source_text("The dog runs.");
    request.mutable_pairs(i)->set_target_text("The dog runs.");
  }
  linnet::v1::ScoreResponse response;
  std::atomic<bool> done = false;
  calls_.Score(request, response, {.arrived = absl::Now()}, [&done](absl::Status status) {
    EXPECT_THAT(status, IsOk());
    done = true;
  });
  RunUntil([&] { return response.scores_size() > 0; });
  EXPECT_FALSE(done);
  RunUntil([&] { return done.load(); });
  EXPECT_EQ(response.scores_size(), 500);
}

// The texts of both models of a translation through a third language.
TEST_F(TextSlicesTest, PivotsAreAssembledInSlices) {
  WriteModel(fixture_, "de", "fr");
  ASSERT_TRUE(fixture_.catalog->Reload().ok());
  const std::string text = Repeated("(((((((((((( 1, 2, 3 ))))))))))))\n", 200'000);
  Call& direct = Start("direct", text);
  RunUntil([&] { return direct.response.translations_size() > 0; });
  const int assembled_in = RunUntilDone(direct);
  ASSERT_GT(assembled_in, 5);
  Call& pivot = *started_.emplace_back(std::make_unique<Call>(ToGerman({text})));
  pivot.request.set_target_language_code("fr");
  calls_.Translate(pivot.request, pivot.response, pivot.context, [&pivot](absl::Status status) {
    pivot.status = std::move(status);
    pivot.done = true;
  });
  const int first = RunUntil([&] { return pivot.response.translations_size() > 0; });
  const int prepared_in = static_cast<int>(text.size() / kBytesPerTurn);
  EXPECT_GT(first, prepared_in + assembled_in);
  EXPECT_GE(RunUntilDone(pivot), assembled_in);
  EXPECT_THAT(pivot.status, IsOk());
  EXPECT_EQ(pivot.response.translations(0).text(), text);
}

// A text that has few tokens however long it is: what the model cannot read, white space, and
// characters that are not seen.
TEST_F(TextSlicesTest, LittleTextIsTokenisedAtOnce) {
  const std::string invisible = absl::StrCat("a", Repeated("\xE2\x80\x8B", 300'000), "b");
  for (const std::string& text : {Repeated(std::string(kUnreadable), 300'000),
                                  absl::StrCat("a", std::string(300'000, ' '), "b"), invisible}) {
    const Call& call = Start("hostile", text);
    RunUntilDone(call);
    ASSERT_THAT(call.status, IsOk());
    for (const auto& segment : call.response.translations(0).segments())
      EXPECT_LE(segment.source_end() - segment.source_begin(), 16 << 10);
  }
  // A text that is not split.
  const auto too_large = StatusIs(absl::StatusCode::kInvalidArgument,
                                  HasSubstr(" bytes, at most 16384 are read at once: shorten it"));
  linnet::v1::ScoreRequest score;
  score.set_model("en-de");
  score.add_pairs()->set_source_text(invisible);
  score.mutable_pairs(0)->set_target_text("a");
  linnet::v1::ScoreResponse scored;
  EXPECT_THAT(fixture_.Call(&TextCalls::Score, score, scored), too_large);
  score.mutable_pairs(0)->set_source_text("a");
  score.mutable_pairs(0)->set_target_text(invisible);
  EXPECT_THAT(fixture_.Call(&TextCalls::Score, score, scored), too_large);
  SummarizeRequest summary = SummaryOf(absl::StrCat("The dog runs. ", invisible));
  linnet::v1::SummarizeResponse summarized;
  EXPECT_THAT(fixture_.Call(&TextCalls::Summarize, summary, summarized), too_large);
  summary.set_long_input(linnet::v1::LONG_INPUT_CHUNK);
  EXPECT_THAT(fixture_.Call(&TextCalls::Summarize, summary, summarized), IsOk());
}

// Many spans to protect are found and merged in slices, and memory for them is held as they are.
TEST_F(TextSlicesTest, SpansAreMergedInSlices) {
  const TranslateRequest request = ToGerman({Repeated("{} \n", 300'000)});
  const TextRequest checked = *CheckRequest(request, *fixture_.catalog, {});
  int64_t held = 0, most = 0;
  TextPreparer preparer(checked, checked.items.front(), nullptr, {.hold = [&](int64_t bytes) {
                          held += bytes;
                          return absl::OkStatus();
                        }});
  ASSERT_THAT(preparer.Step(1), IsOk());
  const int64_t without_spans = held;
  while (preparer.segments().empty()) {
    const int64_t before = held;
    ASSERT_THAT(preparer.Step(1000), IsOk());
    most = std::max(most, held - before);
  }
  EXPECT_GT(held - without_spans, 2'000'000);
  // A vector that grows to twice its size.
  EXPECT_LE(most, 2 * (held - without_spans) / 3);
}

// Lines are joined, and protected spans and entries of a glossary searched, in slices too.
TEST_F(TextSlicesTest, EveryStepIsSmall) {
  linnet::v1::Glossary entries;
  entries.add_entries()->set_source_text("dog");
  entries.mutable_entries(0)->set_target_text("Hund");
  entries.add_entries()->set_source_text(std::string(30, '-') + ")");  // compared at every dash
  const Glossary glossary(entries);
  for (const std::string fragment : {"a\n", "a-b-c- \n", "The dog runs. ", "-"}) {
    TranslateRequest request = ToGerman({Repeated(fragment, 500'000)});
    if (fragment.back() == '\n') request.set_line_breaks(linnet::v1::LINE_BREAKS_JOIN_PARAGRAPHS);
    const TextRequest checked = *CheckRequest(request, *fixture_.catalog, {});
    TextPreparer preparer(checked, checked.items.front(), &glossary,
                          {.hold = [](int64_t) { return absl::OkStatus(); }});
    int steps = 0;
    for (; preparer.segments().empty(); ++steps) {
      const auto work = preparer.Step(1000);
      ASSERT_THAT(work, IsOk());
      ASSERT_LE(*work, 4 * kMaxEncodedBytes) << fragment;
    }
    EXPECT_GT(steps, fragment == "-" ? 10'000 : 100) << fragment;
  }
}

std::string RandomText(std::mt19937& random) {
  static const auto* const words = new std::vector<std::string>{"Mr. ",
                                                                "The dog runs. ",
                                                                "x",
                                                                "(",
                                                                ") ",
                                                                "Z. ",
                                                                "a.b. ",
                                                                "1. ",
                                                                "\n",
                                                                "\t",
                                                                ", ",
                                                                "window ",
                                                                "\xE4\xBD\xA0",
                                                                "\xE3\x80\x82",
                                                                "\xF0\x9F\x98\x80",
                                                                "\xCC\x81",
                                                                "\"",
                                                                "! ",
                                                                "\xE2\x80\x8B",
                                                                "A BIG DOG ",
                                                                "   ",
                                                                "\xE6\x9D\xB1\xE4\xBA\xAC "};
  std::string text = "A ";
  std::vector<std::string> used;
  for (uint32_t kinds = 1 + random() % 6; kinds > 0; --kinds)
    used.push_back((*words)[random() % words->size()]);
  for (const size_t bytes = random() % (random() % 8 == 0 ? 60'000 : 600); text.size() < bytes;)
    text += random() % 40 == 0 ? Repeated(used[random() % used.size()], random() % 500)
                               : used[random() % used.size()];
  return text;
}

std::string Description(const absl::StatusOr<PreparedText>& text) {
  if (!text.ok()) return std::string(text.status().message());
  std::string all = absl::StrCat(text->tail, "|", text->truncated, "\n");
  for (const PreparedSegment& segment : text->segments) {
    absl::StrAppend(&all, segment.place.begin, "-", segment.place.end, " ",
                    segment.place.part_of_sentence, segment.copied, segment.gap, "|", segment.text);
    for (const model::TokenId token : segment.source) absl::StrAppend(&all, " ", token);
    for (const auto& span : segment.spans) absl::StrAppend(&all, " [", span.text, "]");
    all += '\n';
  }
  return all;
}

TEST_F(TextSlicesTest, SlicesGiveTheSegmentsOfTheWhole) {
  std::mt19937 random(5);
  const auto hold = [](int64_t) { return absl::OkStatus(); };
  linnet::v1::Glossary entries;
  for (const char* const term : {"dog", "dog runs", "A BIG", "\xE4\xBA\xAC", "a.b. Mr", "1. ! 1"})
    entries.add_entries()->set_source_text(term);
  const Glossary glossary(entries);
  const auto check = [&](const TextRequest& request) {
    const TextItem& item = request.items.front();
    const std::string whole =
        Description(PrepareText(request, item, &glossary, PrepareLimits{.hold = hold}));
    TextPreparer sliced(request, item, &glossary, PrepareLimits{.hold = hold});
    absl::Status status;
    while (status.ok() && !sliced.done()) status = sliced.Step(1 + random() % 3000).status();
    ASSERT_TRUE(Description(status.ok() ? absl::StatusOr<PreparedText>(sliced.Take()) : status) ==
                whole);
  };
  for (int round = 0; round < 60; ++round) {
    const std::string text = RandomText(random);
    TranslateRequest translate = ToGerman({text});
    if (round % 3 == 0) translate.set_line_breaks(linnet::v1::LINE_BREAKS_JOIN_PARAGRAPHS);
    check(*CheckRequest(translate, *fixture_.catalog, {}));
    SummarizeRequest summarize = SummaryOf(text);
    summarize.set_long_input(round % 2 == 0 ? linnet::v1::LONG_INPUT_CHUNK
                                            : linnet::v1::LONG_INPUT_TRUNCATE);
    check(*CheckRequest(summarize, *fixture_.catalog, {}));
  }
}

}  // namespace
}  // namespace linnet::server
