// Writes where the sentences of texts end, for tests/bench/text/sentences.py.
//
//   bench_sentences LANGUAGE [--icu] < LINES
//
// For each line the byte offsets of its ends, separated by blanks; --icu: those of ICU's rules
// without abbreviations. The CPU time of the splitting is written to stderr, in seconds.

#include <unicode/brkiter.h>
#include <unicode/locid.h>
#include <unicode/utext.h>

#include <ctime>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "model/runtime/text/sentences.h"

namespace {

std::vector<int> EndsByIcu(icu::BreakIterator& icu, const std::string& line) {
  UErrorCode error = U_ZERO_ERROR;
  const std::unique_ptr<UText, decltype(&utext_close)> text(
      utext_openUTF8(nullptr, line.data(), static_cast<int64_t>(line.size()), &error),
      &utext_close);
  icu.setText(text.get(), error);
  std::vector<int> ends;
  for (int end = icu.next(); end != icu::BreakIterator::DONE; end = icu.next()) ends.push_back(end);
  icu.setText(icu::UnicodeString());
  return ends;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2 && (argc != 3 || std::string(argv[2]) != "--icu")) {
    std::cerr << "usage: bench_sentences LANGUAGE [--icu] < LINES\n";
    return 2;
  }
  UErrorCode error = U_ZERO_ERROR;
  const std::unique_ptr<icu::BreakIterator> icu(icu::BreakIterator::createSentenceInstance(
      icu::Locale::forLanguageTag(argv[1], error), error));
  if (U_FAILURE(error)) {
    std::cerr << "ICU has no rules for " << argv[1] << ": " << u_errorName(error) << "\n";
    return 1;
  }
  std::clock_t spent = 0;
  for (std::string line; std::getline(std::cin, line);) {
    const std::clock_t start = std::clock();
    std::vector<int> ends;
    if (argc == 3) {
      ends = EndsByIcu(*icu, line);
    } else if (auto found = linnet::model::SentenceEnds(line, argv[1]); found.ok()) {
      ends = *std::move(found);
    } else {
      std::cerr << found.status() << "\n";
      return 1;
    }
    spent += std::clock() - start;
    for (size_t i = 0; i < ends.size(); ++i) std::cout << (i == 0 ? "" : " ") << ends[i];
    std::cout << "\n";
  }
  std::cerr << static_cast<double>(spent) / CLOCKS_PER_SEC << "\n";
}
