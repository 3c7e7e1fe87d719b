#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "model/runtime/text/text_run.h"

namespace linnet::model {

// A text, its language (BCP-47) and the places in it, in order, that are not compared.
struct FactText {
  absl::string_view text;
  absl::string_view language_code;
  std::vector<TextRun> apart = {};
};

struct FactDifferences {
  std::vector<TextRun> lost;   // of the source
  std::vector<TextRun> added;  // of the answer
};

// Compares what a translation must keep: numbers by their value, and how many brackets and
// quotation marks of each kind there are. A summary (`whole` is false) may leave out anything, and
// must not add a number.
//
// A number is written in the way of either language (1,234.56 and 1.234,56), in digits of any
// script, in words (ICU's rules for the language), with a word of scale (5 million and 5,000,000)
// or as an hour of twelve or of twenty-four. Dates and other lists are compared number by number.
// The time is linear in the texts, and the square of the number of differences, of which at most 64
// are looked at.
FactDifferences CompareFacts(const FactText& source, const FactText& answer, bool whole = true);

}  // namespace linnet::model
