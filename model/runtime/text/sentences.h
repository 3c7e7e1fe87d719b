#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace linnet::model {

// The ends of the sentences in a line (valid UTF-8 without new lines): ascending byte offsets, the
// last one line.size(). White space after a sentence belongs to it.
//
// Starts from ICU's rules for the language. A break is left out after an abbreviation, an initial,
// an ordinal or a list number, by whole words of the tables of abbreviations.h, and before text
// that goes on in lower case after a quote. A break is added where ICU sees none: before a dash of
// dialogue, a digit, or a small word that starts sentences, and after "…" and smileys. Quotes and
// brackets that close stay with their sentence. tests/bench/text/sentences.py measures the result.
//
// Takes linear time for any line.
absl::StatusOr<std::vector<int>> SentenceEnds(absl::string_view line,
                                              absl::string_view language_code);

// Finds the ends that SentenceEnds returns, a few places at a time. Threads may take turns to call
// it.
class SentenceScanner {
 public:
  explicit SentenceScanner(absl::string_view language_code);
  ~SentenceScanner();

  // Begins with a line, which must outlive its scan.
  absl::Status Start(absl::string_view line);
  // Returns the next end, or nothing if `max_places` places are not one, or if done().
  absl::StatusOr<std::optional<int>> Next(int max_places);
  // True if the end of the line was returned.
  bool done() const;
  // No end will be before this offset.
  int scanned() const;
  // Number of places that were examined in all lines.
  int64_t places() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace linnet::model
