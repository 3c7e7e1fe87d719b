// The calls that carry texts, seen alike: how a text gets into the request, and its answer out of
// the response.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "client/cli/text_source.h"
#include "client/library/client.h"
#include "linnet/v1/text_service.pb.h"

namespace linnet::client {

struct Translating {
  using Request = v1::TranslateRequest;
  using Response = v1::TranslateResponse;
  static constexpr const char* kResultKey = "translation";
  static constexpr auto kCall = &Client::Translate;
  static constexpr auto kStream = &Client::StreamTranslate;
  static constexpr const char* kField = "contents";
  static absl::Status Check(const Text&) { return absl::OkStatus(); }
  static void Add(const Text& text, Request* request) { request->add_contents(text.content); }
  static void AddBlank(const Text& text, Response* response) {
    response->add_translations()->set_text(text.content);
  }
  // What is to be said of an answer; empty: nothing.
  static std::string Note(const Response& response, int index) {
    if (response.translations(index).finish_reason() != v1::FINISH_REASON_LENGTH) return "";
    return "the answer was ended by the limit on target tokens";
  }
};

struct Summarizing {
  using Request = v1::SummarizeRequest;
  using Response = v1::SummarizeResponse;
  static constexpr const char* kResultKey = "summary";
  static constexpr auto kCall = &Client::Summarize;
  static constexpr auto kStream = &Client::StreamSummarize;
  static constexpr const char* kField = "contents";
  static absl::Status Check(const Text&) { return absl::OkStatus(); }
  static void Add(const Text& text, Request* request) { request->add_contents(text.content); }
  static void AddBlank(const Text& text, Response* response) {
    response->add_summaries()->set_text(text.content);
  }
  static std::string Note(const Response& response, int index) {
    const v1::Summary& summary = response.summaries(index);
    if (summary.truncated() && !summary.segments().empty()) {
      return absl::StrCat("only the first ", summary.segments().rbegin()->source_end(),
                          " bytes were read");
    }
    if (summary.finish_reason() != v1::FINISH_REASON_LENGTH) return "";
    return "the answer was ended by the limit on target tokens";
  }
};

// A text is a source, a tab and a target.
struct Scoring {
  using Request = v1::ScoreRequest;
  using Response = v1::ScoreResponse;
  static constexpr const char* kResultKey = "";  // objects are not scored
  static constexpr auto kCall = &Client::Score;
  static constexpr const char* kField = "pairs";
  static absl::Status Check(const Text& text) {
    const size_t tab = text.content.find('\t');
    if (tab != std::string::npos && text.content.find('\t', tab + 1) == std::string::npos) {
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError(
        absl::StrCat(text.name, " is not a source, one tab and a target"));
  }
  static void Add(const Text& text, Request* request) {
    const size_t tab = text.content.find('\t');
    v1::ScorePair& pair = *request->add_pairs();
    pair.set_source_text(text.content.substr(0, tab));
    pair.set_target_text(text.content.substr(tab + 1));
  }
  static void AddBlank(const Text& text, Response* response) {
    response->add_scores()->set_text(text.content);
  }
  static std::string Note(const Response&, int) { return ""; }
};

struct Detecting {
  using Request = v1::DetectLanguageRequest;
  using Response = v1::DetectLanguageResponse;
  static constexpr const char* kResultKey = "languages";
  static constexpr auto kCall = &Client::DetectLanguage;
  static constexpr const char* kField = "contents";
  static absl::Status Check(const Text&) { return absl::OkStatus(); }
  static void Add(const Text& text, Request* request) { request->add_contents(text.content); }
  static void AddBlank(const Text&, Response* response) { response->add_detections(); }
  static std::string Note(const Response&, int) { return ""; }
};

}  // namespace linnet::client
