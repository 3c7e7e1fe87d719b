#include "client/cli/text/print.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "client/command/text/json_lines.h"
#include "client/library/client.h"
#include "google/protobuf/util/json_util.h"

namespace linnet::client {
namespace {

// `text` [begin, end), clamped to the text: the offsets come from a server.
absl::string_view Slice(absl::string_view text, int32_t begin, int32_t end) {
  const size_t size = text.size();
  const size_t from = std::min<size_t>(std::max(begin, 0), size);
  const size_t to = std::min<size_t>(std::max(end, 0), size);
  return to <= from ? absl::string_view() : text.substr(from, to - from);
}

// The width of UTF-8 text on a terminal, if all characters have width 1: continuation bytes count
// 0.
size_t Columns(absl::string_view text) {
  return std::count_if(text.begin(), text.end(), [](char byte) { return (byte & 0xC0) != 0x80; });
}

// Writes "  Ein 99%  Hund 87%" for words [begin, end) of `text`.
void PrintWords(absl::string_view text, const google::protobuf::RepeatedPtrField<v1::Word>& words,
                std::ostream& out) {
  if (words.empty()) return;
  for (const v1::Word& word : words) {
    out << absl::StrFormat("  %s %.0f%%", Slice(text, word.target_begin(), word.target_end()),
                           100 * std::exp(word.score()));
  }
  out << "\n";
}

// Writes "  Guten     Good 92%, morning. 7%" for each word of `target` that is aligned, in order.
void PrintWordAlignments(
    absl::string_view source, absl::string_view target,
    const google::protobuf::RepeatedPtrField<v1::WordAlignment>& word_alignments,
    std::ostream& out) {
  size_t width = 0;
  const auto word_of = [target](const v1::WordAlignment& word_alignment) {
    return Slice(target, word_alignment.target_begin(), word_alignment.target_end());
  };
  for (const v1::WordAlignment& word_alignment : word_alignments)
    width = std::max(width, Columns(word_of(word_alignment)));
  const v1::WordAlignment* last = nullptr;
  for (const v1::WordAlignment& word_alignment : word_alignments) {
    const bool same = last != nullptr && last->target_begin() == word_alignment.target_begin();
    if (same) {
      out << ", ";
    } else {
      const absl::string_view word = word_of(word_alignment);
      out << (last == nullptr ? "  " : "\n  ") << word
          << std::string(width - Columns(word) + 2, ' ');
    }
    out << Slice(source, word_alignment.source_begin(), word_alignment.source_end())
        << absl::StrFormat(" %.0f%%", 100 * word_alignment.weight());
    last = &word_alignment;
  }
  if (last != nullptr) out << "\n";
}

template <typename Answer>  // v1::Translation or v1::Summary
void PrintText(const Text& text, const Answer& answer, Form form, std::ostream& out) {
  bool listed = false;
  for (const v1::Segment& segment : answer.segments()) {
    if (segment.hypotheses().empty()) continue;
    listed = true;
    out << Slice(text.content, segment.source_begin(), segment.source_end()) << "\n";
    int rank = 0;
    for (const v1::Hypothesis& hypothesis : segment.hypotheses()) {
      out << absl::StrFormat("%4d %9.4f  %s\n", ++rank, hypothesis.score(), hypothesis.text());
    }
  }
  if (!listed) {
    if (form == Form::kScored && !answer.segments().empty()) {
      const auto weakest = std::min_element(
          answer.segments().begin(), answer.segments().end(),
          [](const v1::Segment& a, const v1::Segment& b) { return a.score() < b.score(); });
      out << absl::StrFormat("%.4f\t", weakest->score());
    }
    out << KeepLineCount(answer.text(), text) << text.ending;
  }
  for (const v1::Segment& segment : answer.segments()) {
    PrintWords(answer.text(), segment.words(), out);
    PrintWordAlignments(text.content, answer.text(), segment.word_alignments(), out);
  }
}

std::string InOneLine(const google::protobuf::Message& message) {
  std::string json = JsonLine(message);
  json.pop_back();
  return json;
}

bool IsRecord(Form form) { return form == Form::kJsonLines || form == Form::kJsonLinesWhole; }

// Writes an empty line between objects unchanged.
bool PrintNoRecord(const Text& text, std::ostream& out) {
  if (text.record.empty()) out << text.content << text.ending;
  return text.record.empty();
}

template <typename Answer>
void PrintRecord(const Text& text, const Answer& answer, Form form, std::ostream& out) {
  if (PrintNoRecord(text, out)) return;
  const std::string& key = text.key;
  if (form == Form::kJsonLinesWhole) {
    out << WithMember(text.record, key, InOneLine(answer)) << text.ending;
    return;
  }
  std::string record = WithMember(text.record, key, JsonString(answer.text()));
  std::vector<std::string> segments;
  for (const v1::Segment& segment : answer.segments()) {
    if (segment.hypotheses().empty() && segment.words().empty() &&
        segment.word_alignments().empty()) {
      continue;
    }
    segments.push_back(InOneLine(segment));
  }
  if (!segments.empty()) {
    record = WithMember(record, "segments", absl::StrCat("[", absl::StrJoin(segments, ","), "]"));
  }
  out << record << text.ending;
}

// The field of a response that holds its answers.
template <typename Response, typename Answer>
using Answers = google::protobuf::RepeatedPtrField<Answer>* (Response::*)();

// Writes the response with one of its answers alone as JSON.
template <typename Response, typename Answer>
void PrintAlone(Response response, Answers<Response, Answer> answers, const Answer& answer,
                std::ostream& out) {
  (response.*answers)()->Clear();
  *(response.*answers)()->Add() = answer;
  out << JsonLine(response);
}

template <typename Response, typename Answer>
void PrintTextAnswer(const Text& text, const Response& response, Answers<Response, Answer> answers,
                     const Answer& answer, Form form, std::ostream& out) {
  if (IsRecord(form)) return PrintRecord(text, answer, form, out);
  if (form != Form::kJson) return PrintText(text, answer, form, out);
  PrintAlone(response, answers, answer, out);
}

}  // namespace

bool IsJson(Form form) { return form == Form::kJson || IsRecord(form); }

std::string JsonLine(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.always_print_primitive_fields = true;
  options.preserve_proto_field_names = true;
  std::string json;
  // This fails only for an Any of an unknown type, which our messages do not contain.
  (void)google::protobuf::util::MessageToJsonString(message, &json, options);
  return json + "\n";
}

std::string KeepLineCount(const std::string& answer, const Text& text) {
  if (absl::StrContains(text.content, '\n')) return answer;
  return absl::StrReplaceAll(answer, {{"\n", " "}});
}

std::string AnsweredNote(int64_t answered) {
  if (answered == 0) return "";
  return absl::StrCat("\n  ", answered, answered == 1 ? " text was" : " texts were",
                      " answered before");
}

void PrintAnswer(const Text& text, const v1::TranslateResponse& response, int index, Form form,
                 std::ostream& out) {
  PrintTextAnswer(text, response, &v1::TranslateResponse::mutable_translations,
                  response.translations(index), form, out);
}

void PrintAnswer(const Text& text, const v1::SummarizeResponse& response, int index, Form form,
                 std::ostream& out) {
  PrintTextAnswer(text, response, &v1::SummarizeResponse::mutable_summaries,
                  response.summaries(index), form, out);
}

void PrintAnswer(const Text& text, const v1::ScoreResponse& response, int index, Form form,
                 std::ostream& out) {
  const v1::TargetScore& score = response.scores(index);
  if (form == Form::kJson)
    return PrintAlone(response, &v1::ScoreResponse::mutable_scores, score, out);
  if (IsBlank(text)) {
    out << text.content << text.ending;
    return;
  }
  out << absl::StrFormat("%.4f\t%s\n", score.score(),
                         text.content.substr(text.content.find('\t') + 1));
  PrintWords(score.text(), score.words(), out);
  PrintWordAlignments(text.content, score.text(), score.word_alignments(), out);
}

void PrintAnswer(const Text& text, const v1::DetectLanguageResponse& response, int index, Form form,
                 std::ostream& out) {
  const v1::LanguageDetection& detection = response.detections(index);
  if (form == Form::kJson)
    return PrintAlone(v1::DetectLanguageResponse(), &v1::DetectLanguageResponse::mutable_detections,
                      detection, out);
  if (IsRecord(form)) {
    if (PrintNoRecord(text, out)) return;
    std::vector<std::string> languages;
    for (const v1::DetectedLanguage& language : detection.languages()) {
      languages.push_back(InOneLine(language));
    }
    const std::string record =
        WithMember(text.record, text.key, absl::StrCat("[", absl::StrJoin(languages, ","), "]"));
    out << WithMember(record, "reliable", detection.reliable() ? "true" : "false") << text.ending;
    return;
  }
  const v1::DetectedLanguage likeliest =
      detection.languages().empty() ? v1::DetectedLanguage() : detection.languages(0);
  const bool none = likeliest.language_code().empty();
  out << (none ? "und" : likeliest.language_code()) << (none || detection.reliable() ? "" : "?")
      << absl::StrFormat("\t%.2f\t", likeliest.confidence())
      << (absl::StrContains(text.content, '\n') ? text.name : text.content) << "\n";
}

std::string RefusalText(const absl::Status& why) {
  const std::string field = DetailsOf(why).field;
  absl::string_view text = why.message();
  if (!field.empty()) absl::ConsumePrefix(&text, field + ": ");
  return std::string(text);
}

void PrintRefused(const Text& text, const absl::Status& why, Form form, std::ostream& out) {
  if (IsJson(form)) {
    const std::string reason = DetailsOf(why).reason;
    const std::string error =
        absl::StrCat("{\"code\": ", JsonString(absl::StatusCodeToString(why.code())),
                     reason.empty() ? "" : absl::StrCat(", \"reason\": ", JsonString(reason)),
                     ", \"message\": ", JsonString(RefusalText(why)), "}");
    out << WithError(text.record, error);
  }
  out << text.ending;
}

}  // namespace linnet::client
