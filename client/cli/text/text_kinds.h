// One interface to the calls that carry texts: each struct adds a text to a request and reads the
// answer from a response.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "client/cli/text/text_parts.h"
#include "client/command/text/text_source.h"
#include "client/library/client.h"
#include "linnet/v1/text_service.pb.h"

namespace linnet::client {

// Appends to a note, which is a list separated by semicolons.
inline void AddNote(absl::string_view more, std::string& note) {
  absl::StrAppend(&note, note.empty() ? "" : "; ", more);
}
template <typename Answer>
std::string AnswerNote(const Answer& answer) {
  std::string note;
  for (const v1::Warning& warning : answer.warnings()) AddNote(warning.message(), note);
  if (answer.finish_reason() == v1::FINISH_REASON_LENGTH)
    AddNote("the answer was cut at the limit of target tokens", note);
  return note;
}

// The part of a kind whose requests have texts in `contents`.
template <typename Request>
struct WithContents {
  static constexpr const char* kField = "contents";
  static absl::Status Check(const Text&) { return absl::OkStatus(); }
  static void Add(const Text& text, Request* request) { request->add_contents(text.content); }
};

struct Translating : WithContents<v1::TranslateRequest> {
  using Request = v1::TranslateRequest;
  using Response = v1::TranslateResponse;
  static constexpr const char* kResultKey = "translation";
  static absl::StatusOr<Response> Call(Client& client, const Request& request,
                                       const CallOptions& options) {
    return TranslateInParts(client, request, options);
  }
  static constexpr auto kStream = &Client::StreamTranslate;
  // Splits a text into parts for one call each; together they are answered like the whole text.
  static std::vector<absl::string_view> Parts(absl::string_view text, const Request& request,
                                              size_t max_bytes = kBytesPerPart) {
    return SplitAtLines(text, max_bytes, JoinsLines(request));
  }
  // Prepares a request for a text's next part.
  static void UsePartBefore(const Response& response, Request* request) {
    UseDetectedLanguage(response, request);
  }
  static void AddBlank(const Text& text, Response* response) {
    response->add_translations()->set_text(text.content);
  }
  // A note about the answer for the user; empty: none.
  static std::string Note(const Response& response, int index) {
    const v1::Translation& answer = response.translations(index);
    std::string note = AnswerNote(answer);
    int unmet = 0;
    for (const v1::Segment& segment : answer.segments()) {
      for (const v1::GlossaryTerm& term : segment.glossary_terms()) unmet += term.met() ? 0 : 1;
    }
    if (unmet > 0) {
      AddNote(absl::StrCat(unmet, unmet == 1 ? " term" : " terms",
                           " of the glossary could not be applied"),
              note);
    }
    return note;
  }
};

struct Summarizing : WithContents<v1::SummarizeRequest> {
  using Request = v1::SummarizeRequest;
  using Response = v1::SummarizeResponse;
  static constexpr const char* kResultKey = "summary";
  static absl::StatusOr<Response> Call(Client& client, const Request& request,
                                       const CallOptions& options) {
    return client.Summarize(request, options);
  }
  static constexpr auto kStream = &Client::StreamSummarize;
  static std::vector<absl::string_view> Parts(absl::string_view text, const Request&, size_t = 0) {
    return {text};
  }
  static void UsePartBefore(const Response&, Request*) {}
  static void AddBlank(const Text& text, Response* response) {
    response->add_summaries()->set_text(text.content);
  }
  static std::string Note(const Response& response, int index) {
    const v1::Summary& summary = response.summaries(index);
    std::string note = AnswerNote(summary);
    if (summary.truncated() && !summary.segments().empty()) {
      AddNote(absl::StrCat("only the first ", summary.segments().rbegin()->source_end(),
                           " bytes were read"),
              note);
    }
    return note;
  }
};

// A text is a source, a tab and a target.
struct Scoring {
  using Request = v1::ScoreRequest;
  using Response = v1::ScoreResponse;
  static constexpr const char* kResultKey = "";  // objects are not scored
  static absl::StatusOr<Response> Call(Client& client, const Request& request,
                                       const CallOptions& options) {
    return client.Score(request, options);
  }
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

struct Detecting : WithContents<v1::DetectLanguageRequest> {
  using Request = v1::DetectLanguageRequest;
  using Response = v1::DetectLanguageResponse;
  static constexpr const char* kResultKey = "languages";
  static absl::StatusOr<Response> Call(Client& client, const Request& request,
                                       const CallOptions& options) {
    return client.DetectLanguage(request, options);
  }
  static void AddBlank(const Text&, Response* response) { response->add_detections(); }
  static std::string Note(const Response&, int) { return ""; }
};

}  // namespace linnet::client
