#pragma once

#include "absl/strings/string_view.h"

namespace linnet::model {

// Words that keep a following full stop in Moses's tokenizer.
struct MosesPrefixes {
  absl::string_view always = {};          // separated by blanks
  absl::string_view before_number = {};   // only where a digit follows
  absl::string_view single_letters = {};  // each of these letters
  int largest_number = 0;                 // each number from 1 to this one
};

// The list of a language (primary subtag, lower case); as in Moses, English's if there is none.
//
// A model needs the list that its training data was tokenized with, so these are the entries of
// Moses's lists (scripts/share/nonbreaking_prefixes of sacremoses 0.2.0), in another order. The
// segmenter uses abbreviations.h instead.
const MosesPrefixes& FindMosesPrefixes(absl::string_view language);

}  // namespace linnet::model
