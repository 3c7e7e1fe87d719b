#pragma once

#include <string_view>

namespace linnet::model {

// Words that keep a full stop behind them where Moses splits text into words.
struct MosesPrefixes {
  std::string_view always = {};          // separated by blanks
  std::string_view before_number = {};   // only where a digit follows
  std::string_view single_letters = {};  // each of these letters
  int largest_number = 0;                // each number from 1 to this one
};

// Of a language (primary subtag, lower case). English's where there is no list, as in Moses.
//
// A model is served right only with the list that its training data was split with, so these are
// the entries of Moses's own lists (scripts/share/nonbreaking_prefixes, as sacremoses 0.2.0 carries
// them), in an order of ours. Sentences are not split by them: see abbreviations.h for that.
const MosesPrefixes& MosesPrefixesOf(std::string_view language);

}  // namespace linnet::model
