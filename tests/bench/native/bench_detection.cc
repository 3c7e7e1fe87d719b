// Detects the language of texts for tests/bench/server/detection.py.
//
// Reads lines of candidates, which are separated by commas, a tab and a text. Writes a JSON object
// for each, and the time per text at the end.
#include <algorithm>
#include <cstdio>  // before CLD2's header, which needs it
#include <ctime>
#include <iostream>
#include <string>
#include <vector>

#include <cld2/public/compact_lang_det.h>
#include <cld2/public/encodings.h>

#include "absl/strings/str_split.h"
#include "server/request/language_detector.h"

namespace {

// What CLD2 itself answers.
std::string AnswerOfCld2(const std::string& text, int flags) {
  const CLD2::CLDHints no_hints = {nullptr, nullptr, CLD2::UNKNOWN_ENCODING,
                                   CLD2::UNKNOWN_LANGUAGE};
  CLD2::Language languages[3];
  int percents[3], bytes = 0;
  double scores[3];
  bool reliable = false;
  CLD2::ExtDetectLanguageSummary(text.data(), static_cast<int>(text.size()), true, &no_hints, flags,
                                 languages, percents, scores, nullptr, &bytes, &reliable);
  return CLD2::LanguageCode(languages[0]);
}

}  // namespace

int main() {
  std::clock_t spent = 0;  // CPU time: the machine may be busy
  int texts = 0;
  for (std::string line; std::getline(std::cin, line);) {
    const size_t tab = line.find('\t');
    const std::vector<std::string> served = absl::StrSplit(line.substr(0, tab), ',');
    const std::string text = line.substr(tab + 1);
    const linnet::server::LanguageChooser chooser(served);
    const std::clock_t before = std::clock();
    const linnet::server::LanguageChoice choice = chooser.Choose(text);
    spent += std::clock() - before;
    ++texts;
    std::cout << R"({"code": ")" << choice.code << R"(", "reliable": )"
              << (choice.reliable ? "true" : "false") << R"(, "other": ")"
              << (choice.other.has_value() ? choice.other->code : "") << R"(", "cld2": ")"
              << AnswerOfCld2(text, 0) << R"(", "cld2_best_effort": ")"
              << AnswerOfCld2(text, CLD2::kCLDFlagBestEffort) << "\"}\n";
  }
  const double microseconds = 1e6 * static_cast<double>(spent) / CLOCKS_PER_SEC;
  std::cout << R"({"microseconds": )" << microseconds / std::max(texts, 1) << "}\n";
}
