// Provokes every reason of the table of errors.
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/cord.h"
#include "google/rpc/error_details.pb.h"
#include "server/admin/admin_calls.h"
#include "server/base/errors.h"
#include "server/base/monotonic.h"
#include "server/identity/authentication.h"
#include "server/request/request_bytes.h"
#include "server/schedule/batcher.h"
#include "tests/server/text/text_fixture.h"
#include "tests/support/recording_sink.h"

namespace linnet::server {
namespace {

using linnet::v1::SummarizeRequest;
using linnet::v1::SummarizeResponse;
using linnet::v1::TranslateRequest;
using linnet::v1::TranslateResponse;

absl::Status Translate(TextFixture& fixture, const TranslateRequest& request,
                       const CallContext& context = {.arrived = absl::Now()}) {
  TranslateResponse response;
  absl::Status result;
  test::Notification done;
  fixture.calls->Translate(request, response, context, [&](absl::Status status) {
    result = std::move(status);
    done.Open();
  });
  done.Pass();
  return result;
}

absl::Status Translate(const TranslateRequest& request) {
  TextFixture fixture({}, {}, {.max_contents = 3, .max_text_bytes = 1000});
  return Translate(fixture, request);
}

// Translates a good request after one change that makes it bad.
absl::Status Wrong(const std::function<void(TranslateRequest&)>& change) {
  TranslateRequest request = ToGerman({"The dog runs across the street."});
  change(request);
  return Translate(request);
}

absl::Status Summarize(const std::function<void(SummarizeRequest&)>& change) {
  TextFixture fixture;
  SummarizeRequest request = SummaryOf("The dog runs.");
  change(request);
  SummarizeResponse response;
  return fixture.Call(&TextCalls::Summarize, request, response);
}

absl::Status Resolve(const std::map<std::string, std::string>& metadata, const TokenTable* tokens) {
  auto headers = [&](absl::string_view name) -> std::vector<absl::string_view> {
    const auto found = metadata.find(std::string(name));
    if (found == metadata.end()) return {};
    return {found->second};
  };
  Caller caller;
  return ResolveCaller(headers, {.address = "ipv4:127.0.0.1:4711"}, Right::kInference, tokens,
                       caller);
}

absl::Status Parse(const std::string& bytes) {
  TranslateRequest request;
  return ParseRequest(bytes, request);
}

std::string Many(const std::string& word, int times) {
  std::string text;
  for (int i = 0; i < times; ++i) text += word;
  return text;
}

absl::Status Enter(const AdmissionLimits& limits, const std::string& others, int64_t bytes,
                   int64_t tokens, absl::Time deadline = absl::InfiniteFuture()) {
  Metrics metrics;
  Admission admission(limits, metrics);
  const absl::Time now = absl::FromUnixSeconds(1);
  admission.StepMade("en-de", {.rows = 1, .rows_limit = 1, .stepped = true, .ended = now},
                     absl::Milliseconds(100));
  auto other = admission.Enter({.client = others}, 1);
  EXPECT_THAT(other, IsOk());
  EXPECT_THAT(other->Charge({.model = "en-de", .size = {60, 60, 1}}, now), IsOk());
  auto permit = admission.Enter({.client = "me"}, bytes);
  if (!permit.ok()) return permit.status();
  return permit->Charge({.model = "en-de", .size = {tokens, tokens, 1}, .deadline = deadline}, now);
}

absl::Status WaitTooLong() {
  test::EchoEngine engine({.rows = 1});
  Batcher batcher(engine, {.shed = {.interval = absl::Seconds(2), .max_wait = absl::Seconds(1)}});
  test::Outcome first, second;
  absl::Time now = absl::FromUnixSeconds(1);
  auto add = [&](std::unique_ptr<Sequence> sequence) {
    EXPECT_THAT(batcher.Add(sequence, now), IsOk());
  };
  add(test::Say(std::vector<model::TokenId>(50, 5), first));
  add(test::Say({6}, second));
  while (!second.done()) batcher.Step([&] { return now += absl::Milliseconds(100); });
  batcher.EndAll(absl::CancelledError(""), absl::CancelledError(""));
  return second.result->status();
}

absl::Status Reload(TextFixture& fixture, linnet::v1::ReloadResponse* response) {
  Reloader reloader(*fixture.catalog, fixture.metrics);
  AdminCalls admin(*fixture.catalog, reloader);
  linnet::v1::ReloadResponse ignored;
  absl::Status result;
  test::Notification done;
  admin.Reload({}, response == nullptr ? ignored : *response, [&](absl::Status status) {
    result = std::move(status);
    done.Open();
  });
  done.Pass();
  return result;
}

absl::Status FromProto(const google::rpc::Status& proto) {
  absl::Status status(static_cast<absl::StatusCode>(proto.code()), proto.message());
  for (const auto& detail : proto.details())
    status.SetPayload(detail.type_url(), absl::Cord(detail.value()));
  return status;
}

const std::map<Reason, std::function<absl::Status()>>& Scenarios() {
  static const auto& scenarios = *new std::map<Reason, std::function<absl::Status()>>{
      {Reason::kMalformed, [] { return Parse("\x0A\xFF"); }},
      {Reason::kInvalidUtf8,
       [] {
         return Parse(
             "\x0A\x04"
             "caf\xE9");
       }},
      {Reason::kUnknownField, [] { return Parse("\x7A\x02hi"); }},
      {Reason::kEmpty, [] { return Wrong([](auto& r) { r.clear_contents(); }); }},
      {Reason::kMissing, [] { return Wrong([](auto& r) { r.clear_target_language_code(); }); }},
      {Reason::kSetTwice,
       [] {
         return Summarize([](auto& r) {
           r.set_max_summary_tokens(5);
           r.mutable_options()->set_max_target_tokens(5);
         });
       }},
      {Reason::kTooManyTexts,
       [] {
         return Wrong([](auto& r) {
           for (int i = 0; i < 3; ++i) r.add_contents("more");
         });
       }},
      {Reason::kTextTooLarge,
       [] { return Wrong([](auto& r) { r.add_contents(Many("word ", 200)); }); }},
      {Reason::kTooManySegments,
       [] {
         TextFixture fixture({}, {}, {.max_segments = 3});
         return Translate(fixture, ToGerman({"a\nb", "c\nd"}));
       }},
      {Reason::kBadLanguageCode,
       [] { return Wrong([](auto& r) { r.set_target_language_code("e n"); }); }},
      {Reason::kLanguageUnknown,
       [] {
         TextFixture fixture;
         test::WriteBundle(fixture.folder.path() / "fr-de",
                           test::TinyManifest("fr-de", linnet::v1::TASK_TRANSLATE, "fr", "de"));
         EXPECT_TRUE(fixture.catalog->Reload().ok());
         TranslateRequest request = ToGerman({"12345"});
         request.clear_source_language_code();
         TranslateResponse response;
         return fixture.Call(&TextCalls::Translate, request, response);
       }},
      {Reason::kLanguageMismatch,
       [] {
         TextFixture fixture({}, {}, {.language_check = LanguageCheck::kRefuse});
         return Translate(fixture, ToGerman({"Der Hund bellt laut auf der Straße."}));
       }},
      {Reason::kBadOption,
       [] { return Wrong([](auto& r) { r.mutable_options()->set_beam_size(0); }); }},
      {Reason::kBadLabel, [] { return Wrong([](auto& r) { (*r.mutable_labels())["A"] = ""; }); }},
      {Reason::kBadSetting,
       [] { return Wrong([](auto& r) { r.set_priority(static_cast<linnet::v1::Priority>(9)); }); }},
      {Reason::kWrongTask, [] { return Wrong([](auto& r) { r.set_model("en-summary"); }); }},
      {Reason::kWrongLanguages,
       [] {
         return Wrong([](auto& r) {
           r.set_model("en-de");
           r.set_target_language_code("fr");
         });
       }},
      {Reason::kTextTooLong,
       [] { return Summarize([](auto& r) { r.set_contents(0, Many("dog ", 200)); }); }},
      {Reason::kUnreadableText,  // a letter with more accents than fit, and than are protected
       [] {
         TextFixture fixture;
         return Translate(fixture, ToGerman({"e" + Many("\xCC\x81", 9000)}));
       }},
      {Reason::kCallTooLarge,
       [] {
         TextFixture fixture({}, {.max_tokens = 50});
         return Translate(fixture, ToGerman({"The dog runs.", "A bird sings."}));
       }},
      {Reason::kBeyondEngine,
       [] {
         TextFixture fixture({.rows = 5});
         TranslateRequest request = ToGerman({"The dog runs."});
         request.mutable_options()->set_beam_size(8);
         return Translate(fixture, request);
       }},
      {Reason::kBadGlossary,
       [] {
         return Wrong(
             [](auto& r) { r.mutable_glossary()->add_entries()->set_source_text("dog "); });
       }},
      {Reason::kBadHeader,
       [] {
         return Resolve({{"x-priority", "urgent"}}, nullptr);
       }},
      {Reason::kUnauthenticated,
       [] {
         const auto tokens = TokenTable::Parse("0123456789abcdef ops admin");
         return Resolve({}, &*tokens);
       }},
      {Reason::kPermissionDenied,
       [] {
         const auto tokens = TokenTable::Parse("0123456789abcdef ops admin");
         return Resolve({{"authorization", "Bearer 0123456789abcdef"}}, &*tokens);
       }},
      {Reason::kUnsupportedFormat,
       [] { return Wrong([](auto& r) { r.set_mime_type("text/rtf"); }); }},
      {Reason::kModelNotFound, [] { return Wrong([](auto& r) { r.set_model("babel"); }); }},
      {Reason::kRegistryUnreadable,
       [] {
         TextFixture fixture;
         std::filesystem::remove_all(fixture.folder.path() / "en-de");
         std::filesystem::remove_all(fixture.folder.path() / "en-summary");
         return Reload(fixture, nullptr);
       }},
      {Reason::kModelNotLoaded,
       [] {
         TextFixture fixture;
         std::ofstream(fixture.folder.path() / "en-de" / "manifest.json") << "{";
         linnet::v1::ReloadResponse response;
         EXPECT_THAT(Reload(fixture, &response), IsOk());
         return FromProto(response.models(0).error());
       }},
      {Reason::kTooManyBytes, [] { return Enter({.max_bytes = 60'000}, "other", 28'000, 1); }},
      {Reason::kTooMuchWork, [] { return Enter({.max_tokens = 100}, "other", 1, 50); }},
      {Reason::kShareUsed, [] { return Enter({.max_tokens = 100}, "me", 1, 30); }},
      {Reason::kDeadlineTooClose,
       [] {  // 0.8 s for itself, and 0.8 s for the other client, interleaved
         return Enter({}, "other", 1, 8, absl::FromUnixSeconds(2));
       }},
      {Reason::kDeadlineTooShort,
       [] { return Enter({}, "other", 1, 600, absl::FromUnixSeconds(2)); }},
      {Reason::kWaitedTooLong, WaitTooLong},
      {Reason::kShuttingDown,
       [] {
         TextFixture fixture;
         fixture.calls->Drain(MonotonicTime::max());
         return Translate(fixture, ToGerman({"The dog runs."}));
       }},
      {Reason::kCancelled,
       [] {
         TextFixture fixture;
         const CallContext context{.arrived = absl::Now()};
         context.cancelled->Cancel();
         return Translate(fixture, ToGerman({"The dog runs."}), context);
       }},
      {Reason::kDeadlineExceeded,
       [] {
         TextFixture fixture;
         return Translate(fixture, ToGerman({"The dog runs."}),
                          {.arrived = absl::Now(), .deadline = absl::InfinitePast()});
       }},
      {Reason::kInternal,
       [] {
         TextFixture other;
         const auto word = *other.catalog->models()[0]->source_tokenizer->Encode("window");
         TextFixture fixture({.not_a_number = word.back()});
         return Translate(fixture, ToGerman({"window"}));
       }},
  };
  return scenarios;
}

// Provoked in other tests.
const std::map<Reason, std::string> kElsewhere = {
    {Reason::kOutOfMemory, "tests/server/schedule/engine_failures_test.cc"},
    {Reason::kEngineDown, "tests/server/schedule/engine_failures_test.cc"},
};

std::vector<std::string> DetailNames(const absl::Status& status) {
  std::vector<std::string> names;
  const google::rpc::Status proto = ToProto(status);
  for (const auto& any : proto.details())
    names.push_back(any.type_url().substr(any.type_url().rfind('.') + 1));
  return names;
}

TEST(ErrorsReachedTest, EveryReasonIsReachedWithCodeAndDetails) {
  for (const ErrorCondition& row : ErrorTable()) {
    if (kElsewhere.contains(row.reason)) continue;
    const auto scenario = Scenarios().find(row.reason);
    ASSERT_NE(scenario, Scenarios().end()) << row.name << " has no scenario";
    const absl::Status status = scenario->second();
    EXPECT_EQ(ErrorReason(status), row.name) << status;
    EXPECT_EQ(status.code(), row.code) << status;
    std::vector<std::string> details = {"ErrorInfo"};
    if (row.detail == Detail::kBadRequest) details.push_back("BadRequest");
    if (row.detail == Detail::kResourceInfo) details.push_back("ResourceInfo");
    if (row.detail == Detail::kRetryInfoAndQuotaFailure) details.push_back("QuotaFailure");
    if (row.detail == Detail::kRetryInfo || row.detail == Detail::kRetryInfoAndQuotaFailure)
      details.push_back("RetryInfo");
    EXPECT_THAT(DetailNames(status), ::testing::UnorderedElementsAreArray(details)) << row.name;
  }
}

}  // namespace
}  // namespace linnet::server
