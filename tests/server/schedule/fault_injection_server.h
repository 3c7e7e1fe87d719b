#pragma once

#include <atomic>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/time/clock.h"
#include "tests/server/schedule/faulty_engine.h"
#include "tests/server/text/text_fixture.h"

// A whole server without the network, with engines that may fail, and its answers without faults.
namespace linnet::server {

namespace fs = std::filesystem;
namespace v1 = linnet::v1;

inline const char* const kVersions[] = {"one", "two", "three"};
inline const char* const kTexts[] = {"The dog runs.",
                                     "A bird sings. The window is open.",
                                     "She writes a letter",
                                     "Please open the window. A bird sings. The dog runs.",
                                     "a",
                                     "  \n The dog runs through the garden.  ",
                                     "A bird sings in the garden of the old dog.",
                                     "Letters, windows and dogs: 1, 2, 3."};

// A server with a translation model of three versions; the label `stable` selects the default one.
class FaultInjectionServer {
 public:
  // `faults`: engines fail; with odd seeds they also stall. With
  // every second pair of seeds answers are cached.
  explicit FaultInjectionServer(bool faults, unsigned seed)
      : plan_(faults, faults && seed % 2 == 1) {
    plan_.seed = seed * 1000;
    for (const char* version : kVersions) {
      auto manifest = test::TinyManifest("en-de", v1::TASK_TRANSLATE, "en", "de");
      manifest.set_version(version);
      test::WriteBundle(root() / "en-de" / version, manifest);
    }
    Point("stable", 0);
    Point("canary", 1);
    test::WriteBundle(root() / "en-summary",
                      test::TinyManifest("en-summary", v1::TASK_SUMMARIZE, "en", "en"));
    auto loaded = Catalog::Load(
        root(),
        [this](const model::Bundle& bundle) -> absl::StatusOr<std::unique_ptr<model::Engine>> {
          if (refuse_) return absl::InternalError("no memory for another engine");
          return std::make_unique<FaultInjectionEngine>(plan_, Options(), Signature(bundle));
        },
        BatcherOptions{
            .max_encode_tokens = 64,
            .shed = {.interval = absl::Milliseconds(200), .max_wait = absl::Milliseconds(100)}},
        metrics,
        [this](const std::string& model, const StepReport& report, absl::Duration cycle) {
          admission.StepMade(model, report, cycle);
        },
        /*max_bytes=*/0,
        {.stall_timeout = plan_.stalls ? kStallTimeout : absl::InfiniteDuration(),
         .supervisor = &supervisor},
        /*bundle_keys=*/{}, faults&& seed / 2 % 2 == 1 ? &cache : nullptr);
    EXPECT_THAT(loaded, IsOk());
    catalog = *std::move(loaded);
    calls = std::make_unique<TextCalls>(*catalog, admission, pool, metrics,
                                        TextLimits{.max_inflight_lines = 4});
  }
  ~FaultInjectionServer() {
    calls = nullptr;
    catalog = nullptr;
    EXPECT_EQ(plan_.alive, 0) << "an engine was not destroyed";
    EXPECT_EQ(plan_.left_behind, 0) << "an engine still held sequences that were not released";
  }

  FaultPlan& plan() { return plan_; }
  void RefuseEngines(bool refuse) { refuse_ = refuse; }
  void Point(const std::string& label, int version) {
    const fs::path link = root() / "en-de" / label;
    fs::remove(root() / "next");
    fs::create_directory_symlink(kVersions[version], root() / "next");
    fs::rename(root() / "next", link);
  }

  test::TemporaryFolder folder;
  Metrics metrics;
  TextPool pool{2};
  AnswerCache cache{6000, CacheTenant::kToken};  // for some answers, in half of the servers
  Supervisor supervisor{[] {}};
  Admission admission{{.max_tokens = 4000, .max_bytes = 2'000'000}, metrics};
  std::unique_ptr<Catalog> catalog;
  std::unique_ptr<TextCalls> calls;

 private:
  const fs::path& root() const { return folder.path(); }
  static test::EchoEngine::Options Options() {
    return {.rows = 24, .encoder_cache_tokens = 200, .limits = kTinyLimits};
  }
  // The token that a version appends to every answer.
  static model::TokenId Signature(const model::Bundle& bundle) {
    for (int i = 0; i < 3; ++i) {
      if (bundle.manifest.version() == kVersions[i]) return 100 + i;
    }
    return 103;
  }

  FaultPlan plan_;
  std::atomic<bool> refuse_ = false;
};

// The answer of each version to each text with a beam of 2, from a server without faults.
using Answers = std::map<std::pair<std::string, std::string>, std::string>;
inline const Answers& ExpectedAnswers() {
  static const Answers& answers = *[] {
    auto* found = new Answers;
    FaultInjectionServer server(/*faults=*/false, 0);
    auto ask = [](auto& server, auto method, const auto& request, auto response) {
      test::Notification done;
      absl::Status status;
      ((*server.calls).*method)(request, response, {.arrived = absl::Now()}, [&](absl::Status s) {
        status = std::move(s);
        done.Open();
      });
      done.Pass();
      EXPECT_THAT(status, IsOk());
      return response;
    };
    for (int version = 0; version < 3; ++version) {
      server.Point("stable", version);
      EXPECT_TRUE(server.catalog->Reload().ok());
      for (const char* text : kTexts) {
        const auto response =
            ask(server, &TextCalls::Translate, ToGerman({text}), v1::TranslateResponse());
        EXPECT_EQ(response.model_version(), kVersions[version]);
        (*found)[{kVersions[version], text}] = response.translations(0).text();
      }
    }
    for (const char* text : kTexts) {
      const auto response =
          ask(server, &TextCalls::Summarize, SummaryOf(text), v1::SummarizeResponse());
      (*found)[{"test", text}] = response.summaries(0).text();
    }
    return found;
  }();
  return answers;
}

}  // namespace linnet::server
