#include "client/cli/text/glossary_file.h"

#include <fstream>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/command/text/text_source.h"
#include "proto/status_macros.h"

namespace linnet::client {
namespace {

// True for "dog,Hund" and for "dog;Hund"; a term such as "Acme, Inc." has a blank there.
bool HasCells(absl::string_view line) {
  const size_t at = line.find_first_of(",;");
  return at != absl::string_view::npos && at > 0 && at + 1 < line.size() && line[at + 1] != ' ';
}

}  // namespace

absl::Status ReadGlossary(const std::string& file, v1::Glossary* glossary) {
  if (file == "-") {
    return absl::InvalidArgumentError(
        "a glossary is not read from standard input, which the texts come from: give a file");
  }
  std::ifstream unused;
  Input input;
  input.files = {file};
  input.shape = Shape::kLines;
  TextSource source(std::move(input), unused);
  std::map<std::string, std::string> seen;  // the line of each term
  bool is_csv = true;                       // so far
  while (true) {
    ASSIGN_OR_RETURN(const std::optional<Text> line, source.Next());
    if (!line.has_value()) break;
    const Text& text = *line;
    RETURN_IF_ERROR(text.problem);
    if (text.content.empty()) continue;
    is_csv = is_csv && HasCells(text.content) && !absl::StrContains(text.content, '\t');
    const std::vector<std::string> columns = absl::StrSplit(text.content, '\t');
    if (columns.size() > 2 || columns[0].empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat(text.name, " is not a term, a tab and what becomes of it"));
    }
    const auto [first, is_new] = seen.insert({columns[0], text.name});
    if (!is_new) {
      return absl::InvalidArgumentError(
          absl::StrCat(text.name, " has the term of ", first->second, " again"));
    }
    v1::GlossaryEntry& entry = *glossary->add_entries();
    entry.set_source_text(columns[0]);
    if (columns.size() == 2) entry.set_target_text(columns[1]);
  }
  if (glossary->entries().empty()) {
    return absl::InvalidArgumentError(absl::StrCat("\"", file, "\" has no term in it"));
  }
  if (is_csv) {
    const std::string& line = glossary->entries(0).source_text();
    return absl::InvalidArgumentError(absl::StrCat(
        "\"", file, "\" seems to be CSV: each line has a \"",
        line.substr(line.find_first_of(",;"), 1),
        "\" and none has a tab; write a tab between a term and its translation, or save the table "
        "as TSV"));
  }
  return absl::OkStatus();
}

}  // namespace linnet::client
