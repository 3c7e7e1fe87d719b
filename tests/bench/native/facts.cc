// Compares the facts of texts with those of their translations: each line of standard input is
//
//   language TAB text TAB language TAB translation
//
// and a line of output has the parts of the text that are lost, a tab, and those of the translation
// that are added, with blanks between them.
#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "model/runtime/text/facts.h"

namespace {

std::string Parts(const std::string& text, const std::vector<linnet::model::TextRun>& runs) {
  std::string parts;
  for (const auto& [begin, end] : runs)
    parts += (parts.empty() ? "" : " ") + text.substr(begin, end - begin);
  return parts;
}

}  // namespace

int main() {
  for (std::string line; std::getline(std::cin, line);) {
    const std::vector<std::string> fields = absl::StrSplit(line, '\t');
    if (fields.size() != 4) {
      std::cerr << "a line has " << fields.size() << " fields, it must have 4\n";
      return 2;
    }
    const linnet::model::FactDifferences found =
        linnet::model::CompareFacts({.text = fields[1], .language_code = fields[0]},
                                    {.text = fields[3], .language_code = fields[2]});
    std::cout << Parts(fields[1], found.lost) << '\t' << Parts(fields[3], found.added) << '\n';
  }
}
