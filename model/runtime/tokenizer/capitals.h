#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace linnet::model {

// Inline casing: the model reads a text in capitals as a mark and the text in lower case, and its
// answer is converted back to capitals.
//
// A vocabulary trained on running text spells THE DOG letter by letter. With the mark, a piece of
// the vocabulary, the model reads "THE DOG RUNS." as "<ph7> The dog runs.", and its answer "<ph7>
// Der Hund läuft." becomes "DER HUND LÄUFT.". The mark is part of the text, so no state is kept
// between reading and answering. Source: Berard et al. 2019, Naver Labs Europe's Systems for the
// WMT19 Machine Translation Robustness Task, section 4. model/linnet_model/capitals.py is the same
// for the trainer.

// The text before and after a text, as far as a caller knows it.
struct TextAround {
  absl::string_view before = {};
  absl::string_view after = {};
};

// Returns the text for the model: the mark and `text` in lower case if at least two words have
// capitals and no letter is lower case, otherwise `text`. A single word may be an abbreviation, so
// the two words before or after it decide: "IMPORTANT!" is marked in "IMPORTANT! READ THIS!" and
// not in "IMPORTANT! Read this!". They must be on one line, since the cells of a table may all be
// abbreviations. `text` and what is around it are valid UTF-8.
std::string MarkCapitals(absl::string_view text, absl::string_view mark,
                         const TextAround& around = {});

// True for a text that MarkCapitals marks.
bool IsInCapitals(absl::string_view text, const TextAround& around = {});

// Converts an answer of the model: if it starts with the mark, removes it and returns the rest in
// capitals. The conversion of a prefix is a prefix of the conversion, so it can be streamed.
std::string RestoreCapitals(absl::string_view text, absl::string_view mark);

}  // namespace linnet::model
