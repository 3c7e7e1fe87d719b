#pragma once

#include <span>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "server/markup/marked_text.h"

namespace linnet::server {

// A link between two words: its weight is the share of the attention of the target word that is on
// the source word.
struct WordLink {
  int source = 0;  // indices of words
  int target = 0;
  float weight = 0;
};

// The words of a segment and of its translation, each in order and not overlapping, as bytes of
// their texts, and how they are aligned.
struct WordLinks {
  std::vector<ByteRange> source;
  std::vector<ByteRange> target;
  std::vector<WordLink> links;
};

// True of a word without letters, digits or symbols of its own: ",", "“".
bool IsMark(absl::string_view word);

// The place of a code in a translation.
struct PlacedCode {
  int code = 0;         // index in MarkedText::codes
  int at = 0;           // byte of the translation
  bool behind = false;  // it belongs to the word on its left, otherwise to the one on its right
};

// Places codes [begin, end) of a segment, whose text starts at byte `base` of the plain text, in
// its translation. Returns each of them once, in the order of the answer.
//
// The elements keep their tree: each is within those that it is within in the source, and no two
// overlap. From the outside to the inside, an element gets the run of words of its parent's run
// that maximises the sum of (weight within the element - weight outside of it) over its words, less
// half for each word that it has more or less than the element; of siblings the one with the
// greatest sum chooses first. A weight counts by its square, relative to that of all target words
// on the source word (tests/bench/results/projection.json). An element of more than marks gets more
// than marks. A mark at its edge is dropped unless it has one there in the source. A word that a
// tag splits belongs to the element as a whole. An element that began in an earlier segment gets a
// run from the first word on, and one that ends in a later segment one up to the last word.
//
// An element whose words all belong to others too, as in "<b>un</b><i>able</i>" and in a glossary
// term, or for which its siblings leave no word, goes into the sibling that has the words that it
// would get alone: "<b><i>…</i></b>". No link of HTML goes into a link, and no element of XML into
// one of its name.
//
// An element without words, and every other code, stands before the word with the greatest weight
// on its right neighbour, or, if it is attached to its left neighbour alone, behind that of the
// left one; without such a word, behind the code before it.
//
// The words of the source and the target are bytes of `source` and `target`.
std::vector<PlacedCode> ProjectCodes(std::span<const Code> codes, int begin, int end, int base,
                                     const WordLinks& words, absl::string_view source,
                                     absl::string_view target);

}  // namespace linnet::server
