#include "client/command/help.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace linnet::client {

std::string ValuePlaceholder(const CLI::Option& option) {
  if (option.get_items_expected_max() == 0) return "";
  std::string type = option.get_type_name();
  // CLI11 appends the checks of a value to its type: "INT:INT in [1 - 9]", "TEXT:{one,other}".
  if (const size_t choices = type.find(":{"); choices != std::string::npos) {
    return absl::StrReplaceAll(type.substr(choices + 2, type.size() - choices - 3), {{",", "|"}});
  }
  for (const char* check : {":INT in [", ":FLOAT in [", ":FILE"}) {
    type = type.substr(0, type.find(check));
  }
  if (type == "INT" || type == "UINT") return "N";
  return type == "FLOAT" ? "X" : type;
}

std::string Help::make_option(const CLI::Option* option, bool is_positional) const {
  constexpr size_t kWidth = 80;
  const std::string whole = CLI::Formatter::make_option(option, is_positional);
  std::string wrapped;
  for (absl::string_view part : absl::StrSplit(whole, '\n')) {
    std::string line(part);
    while (line.size() > kWidth) {
      const size_t end = line.rfind(' ', kWidth);
      if (end == std::string::npos || end <= get_column_width()) break;
      absl::StrAppend(&wrapped, line.substr(0, end), "\n");
      line = std::string(get_column_width(), ' ') + line.substr(end + 1);
    }
    absl::StrAppend(&wrapped, line, "\n");
  }
  wrapped.pop_back();  // the line end after the last line
  return wrapped;
}

std::string Help::make_option_opts(const CLI::Option* option) const {
  const std::string value = ValuePlaceholder(*option);
  std::string text = value.empty() ? "" : " " + value;
  if (option->get_expected_max() == CLI::detail::expected_max_vector_size) text += " ...";
  if (option->get_required() && !option->get_positional()) text += " (required)";
  return text;
}

std::string Help::make_option_desc(const CLI::Option* option) const {
  const std::string by_default = option->get_default_str();
  return option->get_description() + (by_default.empty() ? "" : " [" + by_default + "]");
}

}  // namespace linnet::client
