#include "client/cli/print_models.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "client/command/source_language.h"
#include "google/protobuf/text_format.h"

namespace linnet::client {
namespace {

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
