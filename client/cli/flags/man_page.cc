#include "client/cli/flags/man_page.h"

#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "client/command/help.h"
#include "client/library/client.h"

namespace linnet::client {
namespace {

// Escapes text for troff, which would interpret backslashes, print - as a hyphen and take a dot at
// the start of a line for a request.
std::string Escaped(absl::string_view text) {
  std::string escaped = absl::StrReplaceAll(text, {{"\\", "\\e"}, {"-", "\\-"}, {"…", "..."}});
  if (!escaped.empty() && (escaped[0] == '.' || escaped[0] == '\'')) escaped.insert(0, "\\&");
  return escaped;
}

std::string Bold(absl::string_view text) { return absl::StrCat("\\fB", Escaped(text), "\\fR"); }
std::string Italic(absl::string_view text) { return absl::StrCat("\\fI", Escaped(text), "\\fR"); }

std::string Sentence(std::string text) {
  if (!text.empty()) text[0] = absl::ascii_toupper(text[0]);
  return text;
}

// Keeps indented lines as they are and fills the others.
std::string Prose(absl::string_view text) {
  std::string out;
  bool literal = false;
  for (absl::string_view line : absl::StrSplit(absl::StripAsciiWhitespace(text), '\n')) {
    const bool indented = absl::StartsWith(line, "  ");
    if (indented != literal)
      absl::StrAppend(&out, indented ? ".PP\n.nf\n.RS 4\n" : ".RE\n.fi\n.PP\n");
    literal = indented;
    if (line.empty()) {
      absl::StrAppend(&out, ".PP\n");
    } else {
      absl::StrAppend(&out, Escaped(absl::StripAsciiWhitespace(line)), "\n");
    }
  }
  if (literal) absl::StrAppend(&out, ".RE\n.fi\n");
  return out;
}

std::string OptionText(const CLI::Option& option) {
  std::vector<std::string> names;
  if (option.get_positional()) names.push_back(Italic(option.get_name()));
  for (const std::string& name : option.get_snames()) names.push_back(Bold("-" + name));
  for (const std::string& name : option.get_lnames()) names.push_back(Bold("--" + name));
  std::string head = absl::StrJoin(names, ", ");
  if (!option.get_positional() && option.get_items_expected_max() > 0) {
    absl::StrAppend(&head, " ", Italic(ValuePlaceholder(option)));
  }
  std::string about = option.get_description();
  if (!option.get_default_str().empty())
    absl::StrAppend(&about, " [", option.get_default_str(), "]");
  return absl::StrCat(".TP\n", head, "\n", Escaped(Sentence(about)), "\n");
}

std::string CommandText(const CLI::App& command) {
  std::string usage = Bold("linnet " + command.get_name()) + " [" + Italic("flags") + "]";
  std::string text;
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_positional()) absl::StrAppend(&usage, " [", Italic(option->get_name()), "]");
    // All commands share these options; they are listed once.
    if (option->get_group() == "Connection" || option->get_name() == "--help") continue;
    absl::StrAppend(&text, OptionText(*option));
  }
  return absl::StrCat(".SS \"linnet ", Escaped(command.get_name()), "\"\n",
                      Escaped(command.get_description()), ".\n.PP\n", usage, "\n", text, ".PP\n",
                      Prose(command.get_footer()));
}

}  // namespace

std::string ManPage(const CLI::App& app) {
  std::string commands, connection;
  for (const CLI::App* command : app.get_subcommands({})) {
    if (command->get_group().empty()) continue;
    absl::StrAppend(&commands, CommandText(*command));
    for (const CLI::Option* option : command->get_options()) {
      if (command->get_name() == "models" && option->get_group() == "Connection") {
        absl::StrAppend(&connection, OptionText(*option));
      }
    }
  }
  return absl::StrCat(
      ".TH LINNET 1 \"\" \"linnet ", Version(), "\" \"User Commands\"\n", ".SH NAME\n",
      "linnet \\- translate and summarise text with a Linnet server\n", ".SH SYNOPSIS\n",
      Bold("linnet"), " ", Italic("command"), " [", Italic("flags"), "] [", Italic("text"),
      " ...]\n", ".SH DESCRIPTION\n",
      "Texts come from the arguments, from files or from standard input. Answers, and nothing "
      "else, go\n"
      "to standard output or to the file that \\fB\\-\\-output\\fR names.\n",
      ".SH COMMANDS\n", commands, ".SH \"FLAGS OF EVERY COMMAND\"\n", connection,
      ".TP\n\\fB\\-h\\fR, \\fB\\-\\-help\\fR\nTell what the command can do\n",
      ".SH \"EXAMPLES AND SETTINGS\"\n", Prose(app.get_footer()), ".SH \"SEE ALSO\"\n",
      "\\fBlinnet\\-load\\fR \\-\\-help, \\fBlinnet\\-server\\fR \\-\\-help\n");
}

}  // namespace linnet::client
