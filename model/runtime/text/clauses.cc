#include "model/runtime/text/clauses.h"

#include <unicode/brkiter.h>
#include <unicode/locid.h>
#include <unicode/utext.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <span>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "model/runtime/text/characters.h"
#include "proto/status_macros.h"

namespace linnet::model {
namespace {

constexpr UChar32 kEmDash = 0x2014;

bool IsClauseMark(UChar32 c) {
  return c == ',' || c == ';' || c == ':' || c == 0x2013 || c == kEmDash || c == 0x060C ||
         c == 0x061B;
}

// Marks that are written without a space after them.
bool IsCloseClauseMark(UChar32 c) {
  return c == 0x3001 || c == 0xFF0C || c == 0xFF1A || c == 0xFF1B || c == kEmDash;
}

bool IsQuote(UChar32 c) {
  const int8_t type = u_charType(c);
  return c == '"' || c == '\'' || type == U_INITIAL_PUNCTUATION || type == U_FINAL_PUNCTUATION;
}

// Offsets at which a sentence may be split, ascending, the end of the sentence last. None follows
// white space.
struct Cuts {
  std::vector<int> clauses;
  std::vector<int> words;
};

bool EndsClause(absl::string_view text, int begin, int end) {
  while (end > begin && IsQuote(CharacterBefore(text, end).code_point)) {
    end = CharacterBefore(text, end).begin;
  }
  if (end == begin) return false;
  const UChar32 last = CharacterBefore(text, end).code_point;
  return IsClauseMark(last) || u_charType(last) == U_END_PUNCTUATION;
}

Cuts FindCuts(absl::string_view text, int begin, int end) {
  Cuts cuts;
  for (int at = begin; at < end;) {
    const Character character = CharacterAt(text, at);
    at = character.end;
    if (IsWhiteSpace(character.code_point)) {
      at = SkipWhiteSpace(text, at);
      cuts.words.push_back(character.begin);
      const bool bracket_follows =
          at < end && u_charType(CharacterAt(text, at).code_point) == U_START_PUNCTUATION &&
          !IsQuote(CharacterAt(text, at).code_point);
      if (bracket_follows || EndsClause(text, begin, character.begin)) {
        cuts.clauses.push_back(character.begin);
      }
    } else if (IsCloseClauseMark(character.code_point) && at < end &&
               !IsWhiteSpace(CharacterAt(text, at).code_point)) {
      cuts.clauses.push_back(at);
    }
  }
  cuts.clauses.push_back(end);
  cuts.words.push_back(end);
  return cuts;
}

absl::StatusOr<std::vector<int>> FindGraphemes(absl::string_view text, int begin, int end) {
  UErrorCode error = U_ZERO_ERROR;
  const std::unique_ptr<icu::BreakIterator> graphemes(
      icu::BreakIterator::createCharacterInstance(icu::Locale::getRoot(), error));
  const std::unique_ptr<UText, decltype(&utext_close)> utext(
      utext_openUTF8(nullptr, text.data() + begin, end - begin, &error), &utext_close);
  if (U_SUCCESS(error)) graphemes->setText(utext.get(), error);
  if (U_FAILURE(error)) return absl::InternalError(absl::StrCat("ICU: ", u_errorName(error)));
  std::vector<int> cuts;
  for (int at = graphemes->next(); at != icu::BreakIterator::DONE; at = graphemes->next()) {
    cuts.push_back(begin + at);
  }
  return cuts;
}

using Fits =
    std::function<bool(int)>;  // true if the text from the current begin to this offset fits

// Returns an end that does not fit, found by doubling, or end + 1 if the whole rest fits. Text
// after it is never tokenised, so the work depends on `max_tokens` and not on the length of the
// rest. Prefers ends of words, since half a word may have more tokens than the whole.
int FirstThatDoesNotFit(absl::string_view text, int begin, int end, int max_tokens,
                        const std::vector<int>& words, const Fits& fits) {
  for (int64_t bytes = std::max(max_tokens, 16);; bytes *= 2) {
    if (begin + bytes >= end) return fits(end) ? end + 1 : end;
    int probe = static_cast<int>(begin + bytes);
    const int word_end = *std::lower_bound(words.begin(), words.end(), probe);
    if (word_end < probe + bytes) {
      probe = word_end;
    } else {
      while (U8_IS_TRAIL(text[probe])) --probe;
    }
    if (!fits(probe)) return probe;
  }
}

// The last of `cuts` (ascending) that fits, or -1. Assumes that a longer text has no fewer tokens;
// otherwise the result fits but may not be the last.
int LastThatFits(std::span<const int> cuts, const Fits& fits) {
  const auto end = std::partition_point(cuts.begin(), cuts.end(), fits);
  return end == cuts.begin() ? -1 : *(end - 1);
}

// The cuts in (begin, before).
std::span<const int> Between(const std::vector<int>& cuts, int begin, int before) {
  const auto first = std::upper_bound(cuts.begin(), cuts.end(), begin);
  const auto last = std::lower_bound(first, cuts.end(), before);
  return {first, last};
}

}  // namespace

absl::StatusOr<std::vector<TextSegment>> CutSentence(absl::string_view text, int begin, int end,
                                                     int max_tokens,
                                                     const TokenCounter& count_tokens) {
  const Cuts cuts = FindCuts(text, begin, end);
  std::vector<int> graphemes;  // computed when first needed
  std::vector<TextSegment> parts;
  while (begin < end) {
    const Fits fits = [&](int cut) {
      return count_tokens(text.substr(begin, cut - begin)) <= max_tokens;
    };
    const int unfit = FirstThatDoesNotFit(text, begin, end, max_tokens, cuts.words, fits);
    int cut = unfit > end ? end : LastThatFits(Between(cuts.clauses, begin, unfit), fits);
    if (cut < 0) cut = LastThatFits(Between(cuts.words, begin, unfit), fits);
    if (cut < 0) {
      if (graphemes.empty()) {
        ASSIGN_OR_RETURN(graphemes, FindGraphemes(text, begin, end));
      }
      // A grapheme may contain white space; then the end of the word comes first.
      const int word_end = *std::upper_bound(cuts.words.begin(), cuts.words.end(), begin);
      const int first =
          std::min(word_end, *std::upper_bound(graphemes.begin(), graphemes.end(), begin));
      cut = LastThatFits(Between(graphemes, begin, std::min(unfit, word_end + 1)), fits);
      if (cut < 0 && fits(first)) cut = first;
      if (cut < 0) {
        return absl::InvalidArgumentError(
            absl::StrCat("the character at byte ", begin, " has ", first - begin, " bytes and ",
                         count_tokens(text.substr(begin, first - begin)),
                         " tokens, this model reads at most ", max_tokens, " at once"));
      }
    }
    parts.push_back({.begin = begin, .end = cut, .part_of_sentence = true});
    begin = std::min(SkipWhiteSpace(text, cut), end);
  }
  return parts;
}

}  // namespace linnet::model
