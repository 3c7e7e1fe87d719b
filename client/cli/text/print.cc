#include "client/cli/text/print.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "client/command/source_language.h"
#include "client/command/text/json_lines.h"
#include "client/library/client.h"
#include "google/protobuf/text_format.h"
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

std::string Millions(int64_t count) {
  if (count < 1000) return absl::StrCat(count);
  if (count < 1000000) return absl::StrFormat("%.1fK", count * 1e-3);
  return absl::StrFormat("%.1fM", count * 1e-6);
}

std::string TaskName(v1::Task task) {
  switch (task) {
    case v1::TASK_TRANSLATE:
      return "translate";
    case v1::TASK_SUMMARIZE:
      return "summarize";
    default:
      return absl::StrCat("task ", static_cast<int>(task));
  }
}

using Row = std::array<std::string, 7>;

using Pairs = std::vector<std::pair<std::string, std::string>>;

// "en to de/fr, de to en", or the languages of a summariser: "en/de".
std::string LanguageList(v1::Task task, const Pairs& pairs) {
  std::vector<std::string> sources;
  std::map<std::string, std::vector<std::string>> targets;  // by source
  for (const auto& [source, target] : pairs) {
    if (!targets.contains(source)) sources.push_back(source);
    targets[source].push_back(target);
  }
  if (task != v1::TASK_TRANSLATE) return absl::StrJoin(sources, "/");
  return absl::StrJoin(sources, ", ", [&](std::string* out, const std::string& source) {
    absl::StrAppend(out, source, " to ", absl::StrJoin(targets[source], "/"));
  });
}

// "title/sentence"
std::string StyleList(const v1::Model& model) {
  return absl::StrJoin(model.summary_styles(), "/", [](std::string* out, int style) {
    const std::string name = v1::SummaryStyle_Name(style);
    absl::StrAppend(out,
                    name.empty()  // of a later server
                        ? absl::StrCat("style ", style)
                        : absl::AsciiStrToLower(absl::StripPrefix(name, "SUMMARY_STYLE_")));
  });
}

// The pairs that a model answers for requests that name no model; the server chooses the first
// model of a pair, in the order of its list. Versions beside the default one have a name with "@".
Pairs ServedPairs(const v1::Model& model, std::set<std::pair<v1::Task, Pairs::value_type>>& seen) {
  Pairs served;
  if (absl::StrContains(model.name(), '@')) return served;
  for (const auto& pair : LanguagePairs(model)) {
    if (seen.emplace(model.task(), pair).second) served.push_back(pair);
  }
  return served;
}

// The languages in a table, where each pair is in the line of the model that serves it and a long
// list would make every line long, and the styles of summaries: "en (title/sentence)".
std::string ShortLanguageList(const v1::Model& model, const Pairs& served) {
  constexpr size_t kMaxWidth = 60;
  constexpr absl::string_view kByName = "by name only";
  std::string languages = LanguageList(model.task(), served);
  if (languages.size() > kMaxWidth) languages = absl::StrCat(served.size(), " pairs");
  if (served.empty()) {
    languages = std::string(kByName);
  } else if (served.size() < LanguagePairs(model).size()) {
    absl::StrAppend(&languages, ", others ", kByName);
  }
  if (model.summary_styles().empty()) return languages;
  return absl::StrCat(languages, " (", StyleList(model), ")");
}

Row Describe(const v1::Model& model, const Pairs& served) {
  return {model.name(),
          TaskName(model.task()),
          ShortLanguageList(model, served),
          absl::StrCat(model.version(), model.provisional() ? " (provisional)" : ""),
          Millions(model.parameters()),
          absl::StrCat(model.limits().max_source_tokens(), "/", model.limits().max_target_tokens()),
          absl::StrCat(model.device(), " ", model.compute_type(),
                       model.shortlist() ? ", shortlist" : "")};
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
  const v1::Translation& answer = response.translations(index);
  if (IsRecord(form)) return PrintRecord(text, answer, form, out);
  if (form != Form::kJson) return PrintText(text, answer, form, out);
  v1::TranslateResponse single = response;
  single.clear_translations();
  *single.add_translations() = answer;
  out << JsonLine(single);
}

void PrintAnswer(const Text& text, const v1::SummarizeResponse& response, int index, Form form,
                 std::ostream& out) {
  const v1::Summary& answer = response.summaries(index);
  if (IsRecord(form)) return PrintRecord(text, answer, form, out);
  if (form != Form::kJson) return PrintText(text, answer, form, out);
  v1::SummarizeResponse single = response;
  single.clear_summaries();
  *single.add_summaries() = answer;
  out << JsonLine(single);
}

void PrintAnswer(const Text& text, const v1::ScoreResponse& response, int index, Form form,
                 std::ostream& out) {
  const v1::TargetScore& score = response.scores(index);
  if (form == Form::kJson) {
    v1::ScoreResponse single = response;
    single.clear_scores();
    *single.add_scores() = score;
    out << JsonLine(single);
    return;
  }
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
  if (form == Form::kJson) {
    v1::DetectLanguageResponse single;
    *single.add_detections() = detection;
    out << JsonLine(single);
    return;
  }
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

void PrintModels(const v1::ListModelsResponse& response, Form form, std::ostream& out) {
  if (form == Form::kJson) {
    for (const v1::Model& model : response.models()) out << JsonLine(model);
    return;
  }
  std::vector<Row> rows = {{"NAME", "TASK", "LANGUAGES", "VERSION", "SIZE", "TOKENS", "RUNS ON"}};
  std::set<std::pair<v1::Task, Pairs::value_type>> seen;
  for (const v1::Model& model : response.models())
    rows.push_back(Describe(model, ServedPairs(model, seen)));
  std::array<size_t, std::tuple_size_v<Row>> widths = {};
  for (const Row& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  for (const Row& row : rows) {
    for (size_t i = 0; i + 1 < row.size(); ++i) {
      out << absl::StrFormat("%-*s  ", static_cast<int>(widths[i]), row[i]);
    }
    out << row.back() << "\n";
  }
}

void PrintReload(const v1::ReloadResponse& response, Form form, std::ostream& out) {
  if (form == Form::kJson) {
    for (const v1::ModelReload& reload : response.models()) out << JsonLine(reload);
    return;
  }
  for (const v1::ModelReload& reload : response.models()) {
    const std::string outcome = v1::ReloadOutcome_Name(reload.outcome());
    out << absl::StrFormat("%-9s  ",
                           absl::AsciiStrToLower(absl::StripPrefix(outcome, "RELOAD_OUTCOME_")))
        << (reload.model().empty() ? reload.folder() : reload.model());
    if (!reload.model_version().empty()) out << " " << reload.model_version();
    if (reload.has_error()) out << ": " << reload.error().message();
    out << "\n";
  }
}

void PrintModel(const v1::GetModelResponse& response, Form form, std::ostream& out) {
  const v1::Model& model = response.model();
  if (form == Form::kJson) {
    out << JsonLine(model);
    return;
  }
  const auto line = [&out](absl::string_view name, absl::string_view value) {
    if (!value.empty()) out << absl::StrFormat("%-14s  %s\n", name, value);
  };
  const Pairs pairs = LanguagePairs(model);
  const Row row = Describe(model, pairs);
  line("name", row[0]);
  line("task", row[1]);
  line("languages", LanguageList(model.task(), pairs));
  line("styles", StyleList(model));
  line("version", row[3]);
  line("parameters", row[4]);
  line("source tokens", absl::StrCat("at most ", model.limits().max_source_tokens()));
  line("target tokens", absl::StrCat("at most ", model.limits().max_target_tokens()));
  line("beam size", absl::StrCat("at most ", model.max_beam_size()));
  line("runs on", row[6]);
  line("description", model.description());
  line("license", model.license());
  line("sha256", model.sha256());
  out << "defaults\n";
  const v1::DecodingOptions& defaults = model.default_options();
  std::vector<const google::protobuf::FieldDescriptor*> fields;
  defaults.GetReflection()->ListFields(defaults, &fields);
  for (const auto* field : fields) {
    std::string value;
    google::protobuf::TextFormat::PrintFieldValueToString(defaults, field, -1, &value);
    out << absl::StrFormat("  %-20s  %s\n", field->name(), value);
  }
}

}  // namespace linnet::client
