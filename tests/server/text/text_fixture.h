#pragma once

#include <atomic>
#include <concepts>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "server/admission/admission.h"
#include "server/metrics/metrics.h"
#include "server/models/catalog.h"
#include "server/text/text_call.h"
#include "tests/support/echo_engine.h"
#include "tests/support/notification.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tiny_bundle.h"

namespace linnet::server {

inline constexpr model::SearchLimits kTinyLimits = {
    .max_beam_size = 8, .max_target_tokens = 80, .max_source_tokens = 64};

// Holds the steps of an engine once it is armed. Before that the golden example makes some.
struct StepGate {
  void Step() {
    if (!armed) return;
    in_step.Open();
    go_on.Pass();
  }

  std::atomic<bool> armed = false;
  test::Notification in_step, go_on;
};

// Calls a method and waits. The status must be delivered exactly once.
template <typename Request, typename Response>
absl::Status MakeCall(TextCalls& calls,
                      void (TextCalls::*method)(const Request&, Response&, const CallContext&,
                                                TextCalls::Done),
                      const Request& request, Response& response,
                      const CallContext& context = {.arrived = absl::Now()}) {
  absl::Status result;
  int answers = 0;
  test::Notification done;
  (calls.*method)(request, response, context, [&](absl::Status status) {
    result = std::move(status);
    ++answers;
    done.Open();
  });
  done.Pass();
  EXPECT_EQ(answers, 1);
  return result;
}

// The status, response and parts of one stream.
struct Received {
  absl::Status status;
  linnet::v1::TranslateResponse response;
  std::vector<linnet::v1::TextPart> parts;

  // The concatenated parts of a content.
  std::string text(int content) const {
    std::string text;
    for (const linnet::v1::TextPart& part : parts) {
      if (part.content_index() == content) text += part.text();
    }
    return text;
  }
};

inline Received Stream(TextCalls& calls, const linnet::v1::TranslateRequest& request,
                       const CallContext& context = {.arrived = absl::Now()}) {
  Received received;
  test::Notification done;
  calls.StreamTranslate(
      request, received.response, context,
      [&](linnet::v1::TextPart part) { received.parts.push_back(std::move(part)); },
      [&](absl::Status status) {
        received.status = std::move(status);
        done.Open();
      });
  done.Pass();
  return received;
}

// The server without gRPC, with one engine for each of two bundles. With echo engines each answer
// is its request.
class TextFixture {
 public:
  explicit TextFixture(test::EchoEngine::Options engine = {}, AdmissionLimits admission_limits = {},
                       TextLimits limits = {})
      : TextFixture(
            [engine](const model::Bundle&) mutable {
              engine.limits = kTinyLimits;
              return std::make_unique<test::EchoEngine>(engine);
            },
            admission_limits, limits) {}

  template <std::invocable<const model::Bundle&> Factory>
  explicit TextFixture(Factory factory, AdmissionLimits admission_limits = {},
                       TextLimits limits = {}, BatcherOptions batcher_options = {},
                       absl::Duration slow_call = absl::InfiniteDuration(),
                       AnswerCache* cache = nullptr, const Supervision& supervision = {})
      : admission(admission_limits, metrics) {
    WriteBundles(folder.path());
    auto loaded = Catalog::Load(
        folder.path(), factory, batcher_options, metrics,
        [this](const std::string& model, const StepReport& report, absl::Duration cycle) {
          admission.StepMade(model, report, cycle);
        },
        /*max_bytes=*/0, supervision, /*bundle_keys=*/{}, cache);
    EXPECT_THAT(loaded, IsOk());
    catalog = *std::move(loaded);
    calls = std::make_unique<TextCalls>(*catalog, admission, pool, metrics, limits, slow_call);
  }

  static void WriteBundles(const std::filesystem::path& folder) {
    auto translator = test::TinyManifest("en-de", linnet::v1::TASK_TRANSLATE, "en", "de");
    auto& golden = *translator.add_golden_examples();
    golden.set_source_text("The dog runs.");
    golden.set_target_text("The dog runs.");
    test::WriteBundle(folder / "en-de", translator);
    test::WriteBundle(folder / "en-summary",
                      test::TinyManifest("en-summary", linnet::v1::TASK_SUMMARIZE, "en", "en"));
  }

  // MakeCall, which must leave nothing admitted.
  template <typename Request, typename Response>
  absl::Status Call(void (TextCalls::*method)(const Request&, Response&, const CallContext&,
                                              TextCalls::Done),
                    const Request& request, Response& response,
                    const CallContext& context = {.arrived = absl::Now()}) {
    absl::Status result = MakeCall(*calls, method, request, response, context);
    EXPECT_EQ(admission.tokens(), 0) << "a permit was not released";
    EXPECT_EQ(admission.bytes(), 0) << "a permit was not released";
    return result;
  }

  test::TemporaryFolder folder;
  Metrics metrics;
  TextPool pool{2};
  Admission admission;
  std::unique_ptr<Catalog> catalog;
  std::unique_ptr<TextCalls> calls;
};

// A permit of another client for all memory of the server but `left` bytes.
inline absl::StatusOr<Permit> FillMemory(Admission& admission, int64_t left) {
  auto permit = admission.Enter({.client = "other"}, 0);
  EXPECT_THAT(permit, IsOk());
  if (permit.ok())
    permit->SetBytes(admission.limits().max_bytes - admission.bytes() - left + permit->bytes());
  return permit;
}

inline linnet::v1::TranslateRequest ToGerman(std::vector<std::string> contents) {
  linnet::v1::TranslateRequest request;
  for (std::string& text : contents) request.add_contents(std::move(text));
  request.set_source_language_code("en");
  request.set_target_language_code("de");
  return request;
}

inline linnet::v1::SummarizeRequest SummaryOf(std::string text) {
  linnet::v1::SummarizeRequest request;
  request.add_contents(std::move(text));
  request.set_language_code("en");
  return request;
}

}  // namespace linnet::server
