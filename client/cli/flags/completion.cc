#include "client/cli/flags/completion.h"

#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"

namespace linnet::client {
namespace {

struct Flag {
  std::vector<std::string> names;  // "--output", "-o"
  std::string about;
  bool takes_value = false;
  bool takes_file = false;
  std::vector<std::string> choices;
};

struct Command {
  std::string name, about;
  std::vector<Flag> flags;
};

std::vector<Flag> ListFlags(const CLI::App& app) {
  std::vector<Flag> flags;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_positional()) continue;
    Flag flag;
    for (const std::string& name : option->get_lnames()) flag.names.push_back("--" + name);
    for (const std::string& name : option->get_snames()) flag.names.push_back("-" + name);
    flag.about = option->get_description();
    flag.takes_value = option->get_items_expected_max() > 0;
    flag.takes_file = option->get_type_name() == "FILE";
    if (absl::StrContains(option->get_type_name(), '|')) {
      flag.choices = absl::StrSplit(option->get_type_name(), '|');
    }
    flags.push_back(flag);
  }
  return flags;
}

std::vector<Command> ListCommands(const CLI::App& app) {
  std::vector<Command> commands;
  for (const CLI::App* command : app.get_subcommands({})) {
    if (command->get_group().empty()) continue;  // a hidden command
    commands.push_back({command->get_name(), command->get_description(), ListFlags(*command)});
  }
  return commands;
}

// A function for `complete -F`: bash needs no package for it, and zsh supports it too.
std::string Bash(const CLI::App& app) {
  std::vector<std::string> words, patterns_of_files, cases, flags_of_commands;
  for (const Flag& flag : ListFlags(app))
    words.insert(words.end(), flag.names.begin(), flag.names.end());
  std::vector<std::string> patterns_of_values;
  for (const Command& command : ListCommands(app)) {
    words.push_back(command.name);
    std::vector<std::string> flags;
    for (const Flag& flag : command.flags) {
      for (const std::string& name : flag.names) {
        flags.push_back(name);
        const std::string pattern = absl::StrCat(command.name, ":", name);
        if (flag.takes_file) {
          patterns_of_files.push_back(pattern);
        } else if (!flag.choices.empty()) {
          cases.push_back(absl::StrCat("    ", pattern, ") words=\"",
                                       absl::StrJoin(flag.choices, " "), "\" ;;"));
        } else if (flag.takes_value) {
          patterns_of_values.push_back(pattern);
        }
      }
    }
    flags_of_commands.push_back(
        absl::StrCat("        ", command.name, ") words=\"", absl::StrJoin(flags, " "), "\" ;;"));
  }
  return absl::StrCat(
      "# Completion of linnet for bash: source <(linnet completion bash)\n"
      "_linnet() {\n"
      "  local current=\"${COMP_WORDS[COMP_CWORD]}\" previous=\"${COMP_WORDS[COMP_CWORD-1]}\"\n"
      "  local command=\"${COMP_WORDS[1]}\" words='' prefix=''\n"
      "  COMPREPLY=()\n"
      "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
      "    COMPREPLY=($(compgen -W \"",
      absl::StrJoin(words, " "),
      "\" -- \"$current\"))\n"
      "    return\n"
      "  fi\n"
      "  # --flag=value comes as three words, in zsh as one\n"
      "  if [ \"$current\" = = ]; then current='';\n"
      "  elif [ \"$previous\" = = ]; then previous=\"${COMP_WORDS[COMP_CWORD-2]}\";\n"
      "  else case \"$current\" in --*=*)\n"
      "    previous=\"${current%%=*}\" prefix=\"${current%%=*}=\" current=\"${current#*=}\" ;;\n"
      "  esac; fi\n"
      "  case \"$command:$previous\" in\n    ",
      absl::StrJoin(patterns_of_files, "|\\\n    "),
      ")\n"
      "      local IFS=$'\\n'\n"
      "      COMPREPLY=($(compgen -P \"$prefix\" -f -- \"$current\"))\n"
      "      compopt -o filenames 2>/dev/null\n"
      "      return ;;\n",
      absl::StrJoin(cases, "\n"), cases.empty() ? "" : "\n", "    ",
      absl::StrJoin(patterns_of_values, "|\\\n    "),
      ") return ;;\n"
      "    completion:completion) words=\"bash zsh fish\" ;;\n"
      "    *)\n"
      "      case \"$command\" in\n",
      absl::StrJoin(flags_of_commands, "\n"),
      "\n"
      "      esac\n"
      "      # an argument without a dash is a text\n"
      "      case \"$current\" in -*) ;; *) words='' ;; esac ;;\n"
      "  esac\n"
      "  COMPREPLY=($(compgen -P \"$prefix\" -W \"$words\" -- \"$current\"))\n"
      "}\n"
      "complete -F _linnet linnet\n");
}

std::string Quoted(const std::string& text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"\\", "\\\\"}, {"'", "\\'"}}), "'");
}

std::string Fish(const CLI::App& app) {
  std::string text =
      "# Completion of linnet for fish: linnet completion fish | source\n"
      "complete -c linnet -f\n"
      "complete -c linnet -n '__fish_seen_subcommand_from completion' -a 'bash zsh fish'\n";
  for (const Flag& flag : ListFlags(app)) {
    absl::StrAppend(&text, "complete -c linnet -n __fish_use_subcommand");
    for (const std::string& name : flag.names) {
      absl::StrAppend(&text, absl::StartsWith(name, "--") ? " -l " : " -s ",
                      name.substr(absl::StartsWith(name, "--") ? 2 : 1));
    }
    absl::StrAppend(&text, " -d ", Quoted(flag.about), "\n");
  }
  for (const Command& command : ListCommands(app)) {
    absl::StrAppend(&text, "complete -c linnet -n __fish_use_subcommand -a ", command.name, " -d ",
                    Quoted(command.about), "\n");
    for (const Flag& flag : command.flags) {
      absl::StrAppend(&text, "complete -c linnet -n '__fish_seen_subcommand_from ", command.name,
                      "'");
      for (const std::string& name : flag.names) {
        const bool is_long = absl::StartsWith(name, "--");
        absl::StrAppend(&text, is_long ? " -l " : " -s ", name.substr(is_long ? 2 : 1));
      }
      if (flag.takes_value) absl::StrAppend(&text, flag.takes_file ? " -r -F" : " -x");
      if (!flag.choices.empty()) {
        absl::StrAppend(&text, " -a ", Quoted(absl::StrJoin(flag.choices, " ")));
      }
      absl::StrAppend(&text, " -d ", Quoted(flag.about), "\n");
    }
  }
  return text;
}

}  // namespace

std::string CompletionScript(const CLI::App& app, const std::string& shell) {
  if (shell == "fish") return Fish(app);
  if (shell == "zsh") {
    return "# Completion of linnet for zsh: source <(linnet completion zsh)\n"
           "(( $+functions[compdef] )) || { autoload -U compinit && compinit }\n"
           "autoload -U +X bashcompinit && bashcompinit\n" +
           Bash(app);
  }
  return Bash(app);
}

}  // namespace linnet::client
