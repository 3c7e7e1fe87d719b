#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "model/runtime/tokenizer/copied_runs.h"
#include "model/runtime/tokenizer/names.h"

namespace linnet::model {

// A part of a text that the model does not read: bytes [begin, end), of which the answer contains
// `text` instead. The model reads a stand-in, a word that it copies to its answer without being
// constrained, so that greedy search and a search on the device work as for other texts.
struct ProtectedSpan {
  int begin = 0;
  int end = 0;
  std::string text;
  int stand_in = -1;  // its number, once it has one
  bool tag = false;   // of no word and, where it begins or ends one, of no sentence
  bool operator==(const ProtectedSpan&) const = default;
};

// True if a letter, digit or mark of a script with blanks stands before or behind byte `at`.
bool TouchesWord(absl::string_view text, int at, bool before);
// Makes a span of the words that it touches, "%spx" for "%s", if they have up to that many
// characters, or if one of them ends at its begin and another one begins at its end.
void GrowToWords(absl::string_view text, ProtectedSpan& span,
                 int max_letters = std::numeric_limits<int>::max());
// The spans without overlap, in order: spans that overlap, touch or have only white space without a
// line end between them become one, and so do those with a few marks between them, as "%s:%d".
std::vector<ProtectedSpan> MergeSpans(absl::string_view text, std::vector<ProtectedSpan> spans);
// Adds spans, of which none begins before one of `merged`, so that a long text is merged in parts.
// Returns how many bytes of text that adds to `merged`.
int64_t AddSpans(absl::string_view text, std::vector<ProtectedSpan> spans,
                 std::vector<ProtectedSpan>& merged);
// Those of merged `spans` that are in bytes [begin, end) of the text, as bytes of that part. A span
// that goes beyond is cut, and stands for what is left of it.
std::vector<ProtectedSpan> SpansWithin(absl::string_view text, std::span<const ProtectedSpan> spans,
                                       int begin, int end);

// A decoded text with its spans in place.
struct RestoredText {
  // Bytes [raw_begin, raw_end) of the decoded text became bytes [begin, end) of `text`.
  struct Edit {
    int raw_begin = 0, raw_end = 0, begin = 0, end = 0;
  };

  std::string text;
  std::vector<Edit> edits = {};  // in order
  // Numbers of the spans that the decoded text left out, and that were put where they are in the
  // source, as a share of it.
  std::vector<int> forced = {};

  // The place in `text` of the end of the first `raw` bytes of the decoded text. Inside a stand-in
  // it is the begin of the span.
  int PlaceOf(int raw) const;
};

// Puts the spans of `source` into a decoded text in place of their stand-ins, `names`. With `once`
// each span occurs exactly once: its first stand-in counts, and a span without one is forced. A
// few letters after a stand-in, as of a plural or genitive, are removed.
RestoredText RestoreSpans(absl::string_view raw, const Names& names,
                          std::span<const ProtectedSpan> spans, absl::string_view source,
                          bool once);

// Words that models copy, because they look like codes and not like each other
// (tests/bench/results/protected-spans.json).
std::span<const char* const> CodeStandIns();

}  // namespace linnet::model
