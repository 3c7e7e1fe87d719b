#include "model/runtime/text/sentences.h"

#include <unicode/brkiter.h>
#include <unicode/filteredbrk.h>
#include <unicode/locid.h>
#include <unicode/utext.h>

#include <algorithm>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "model/runtime/text/abbreviations.h"
#include "model/runtime/text/characters.h"
#include "proto/status_macros.h"

namespace linnet::model {
namespace {

constexpr int kMaxWordsOfAbbreviation = 4;  // "u. v. a. m."
constexpr int kLongestListNumber = 64;      // bytes, with the white space before it
constexpr int kLongestLinkedWord = 8;  // max bytes of a later word in an abbreviation: "i. Allg."

bool IsOpening(UChar32 c) {
  const int8_t type = u_charType(c);
  return type == U_START_PUNCTUATION || type == U_INITIAL_PUNCTUATION ||
         type == U_FINAL_PUNCTUATION || c == '"' || c == '\'';
}

// The last word of text[0, end) without brackets and quotes around it; `begin` is where it starts
// with them.
absl::string_view WordBefore(absl::string_view text, int end, int& begin) {
  end = SkipWhiteSpaceBefore(text, end);
  begin = end;
  while (begin > 0) {
    const Character character = CharacterBefore(text, begin);
    if (IsWhiteSpace(character.code_point)) break;
    begin = character.begin;
  }
  int first = begin;
  while (first < end && IsOpening(CharacterAt(text, first).code_point)) {
    first = CharacterAt(text, first).end;
  }
  while (end > first && IsClosing(CharacterBefore(text, end).code_point)) {
    end = CharacterBefore(text, end).begin;
  }
  return text.substr(first, end - first);
}

// The first word of the text: letters and digits after brackets and quotes.
absl::string_view FirstWord(absl::string_view text) {
  int begin = SkipWhiteSpace(text, 0);
  while (begin < text.size() && IsOpening(CharacterAt(text, begin).code_point)) {
    begin = CharacterAt(text, begin).end;
  }
  int end = begin;
  while (end < text.size() && u_isalnum(CharacterAt(text, end).code_point)) {
    end = CharacterAt(text, end).end;
  }
  return text.substr(begin, end - begin);
}

// "J.", "J.R.R.": initials, or the last letter of something like "z. B.".
bool IsInitials(absl::string_view word) {
  int at = 0;
  while (at < word.size() && u_isalpha(CharacterAt(word, at).code_point)) {
    at = CharacterAt(word, at).end;
    if (at == word.size() || word[at++] != '.') return false;
  }
  return !word.empty() && at == word.size();
}

// "3.", "3.10.": groups of one to `longest` digits, each with its stop.
bool IsNumbering(absl::string_view word, int longest) {
  int digits = 0;
  for (char c : word) {
    if (absl::ascii_isdigit(c)) {
      if (++digits > longest) return false;
    } else if (c == '.' && digits > 0) {
      digits = 0;
    } else {
      return false;
    }
  }
  return !word.empty() && word.back() == '.';
}

// "XIV."
bool IsRomanNumber(absl::string_view word) {
  return word.size() > 2 && word.back() == '.' &&
         word.substr(0, word.size() - 1).find_first_not_of("IVXLC") == absl::string_view::npos;
}

// True if `word` is an entry, or an entry with a capital first letter.
bool Holds(std::span<const absl::string_view> entries, absl::string_view word) {
  return std::any_of(entries.begin(), entries.end(), [word](absl::string_view entry) {
    return entry.size() == word.size() && entry.substr(1) == word.substr(1) &&
           (entry[0] == word[0] || absl::ascii_toupper(entry[0]) == word[0]);
  });
}

// True for text such as: "Are you there?" she asked.
bool GoesOnAfterQuote(absl::string_view before, absl::string_view after) {
  const int end = SkipWhiteSpaceBefore(before, static_cast<int>(before.size()));
  return end > 0 && IsClosing(CharacterBefore(before, end).code_point) &&
         u_islower(CharacterAt(after, 0).code_point);
}

// True if the sentence continues in `after`; `before` ends with a full stop.
bool GoesOn(absl::string_view before, absl::string_view after, const Abbreviations& table) {
  int begin = 0;
  const absl::string_view last = WordBefore(before, static_cast<int>(before.size()), begin);
  if (last.empty() || last.back() != '.') return false;

  const absl::string_view next = FirstWord(after);
  const bool starter =
      std::find(table.starters.begin(), table.starters.end(), next) != table.starters.end();
  const bool number = !next.empty() && absl::ascii_isdigit(next[0]);

  // "B.", then "z.B.", and so on to the left.
  std::string joined(last);
  for (int words = 1; words <= kMaxWordsOfAbbreviation; ++words) {
    if (Holds(table.never_last, joined)) return true;
    if (Holds(table.seldom_last, joined)) return !starter;
    if (Holds(table.before_number, joined) && number) return true;
    const absl::string_view previous = WordBefore(before, begin, begin);
    if (previous.size() < 2 || previous.size() > kLongestLinkedWord || previous.back() != '.')
      break;
    joined = absl::StrCat(previous, joined);
  }
  if (starter) return false;
  return IsInitials(last) ||
         (table.ordinals_with_stop && (IsNumbering(last, 2) || IsRomanNumber(last)));
}

// True if the sentence ends with a Latin mark and no white space. ICU would split
// "https://a.org/?q=1" and "v2.Build" there.
bool IsInsideWord(absl::string_view sentence) {
  int end = static_cast<int>(sentence.size());
  while (end > 0 && IsClosing(CharacterBefore(sentence, end).code_point)) {
    end = CharacterBefore(sentence, end).begin;
  }
  return end > 0 &&
         (sentence[end - 1] == '.' || sentence[end - 1] == '?' || sentence[end - 1] == '!');
}

// "1." or "a." alone is the number of what follows. A long text is none, and is not searched for
// the begin of a word that may be as long.
bool IsListNumber(absl::string_view sentence) {
  int begin = 0;
  if (SkipWhiteSpaceBefore(sentence, static_cast<int>(sentence.size())) > kLongestListNumber)
    return false;
  const absl::string_view word = WordBefore(sentence, static_cast<int>(sentence.size()), begin);
  return SkipWhiteSpaceBefore(sentence, begin) == 0 && (IsNumbering(word, 3) || IsInitials(word));
}

// ICU's sentence iterator of one language. Building its filter takes milliseconds, so each thread
// keeps the last one that it used.
struct SentenceIterator {
  std::string language_code;
  const Abbreviations* table = nullptr;
  std::unique_ptr<icu::BreakIterator> icu;
};

absl::StatusOr<SentenceIterator> MakeIterator(absl::string_view language_code) {
  SentenceIterator iterator;
  iterator.language_code = std::string(language_code);
  UErrorCode error = U_ZERO_ERROR;
  icu::Locale locale = icu::Locale::forLanguageTag(iterator.language_code, error);
  if (U_FAILURE(error) || locale.isBogus()) locale = icu::Locale::getRoot();
  error = U_ZERO_ERROR;
  iterator.table = AbbreviationsOf(locale.getLanguage());
  iterator.icu.reset(icu::BreakIterator::createSentenceInstance(locale, error));
  if (U_SUCCESS(error) && iterator.table == nullptr) {
    const std::unique_ptr<icu::FilteredBreakIteratorBuilder> filter(
        icu::FilteredBreakIteratorBuilder::createInstance(locale, error));
    if (U_SUCCESS(error)) {
      iterator.icu.reset(filter->build(iterator.icu.release(), error));
    } else if (error == U_MISSING_RESOURCE_ERROR) {
      error = U_ZERO_ERROR;  // no list for this language: use the rules only
    }
  }
  if (U_FAILURE(error)) {
    return absl::InternalError(absl::StrCat("ICU has no sentence rules for \"",
                                            iterator.language_code, "\": ", u_errorName(error)));
  }
  return iterator;
}

absl::StatusOr<SentenceIterator*> IteratorOf(absl::string_view language_code) {
  thread_local SentenceIterator last;
  if (last.icu == nullptr || last.language_code != language_code) {
    ASSIGN_OR_RETURN(last, MakeIterator(language_code));
  }
  return &last;
}

}  // namespace

absl::StatusOr<std::vector<int>> SentenceEnds(absl::string_view line,
                                              absl::string_view language_code) {
  ASSIGN_OR_RETURN(SentenceIterator* const iterator, IteratorOf(language_code));
  UErrorCode error = U_ZERO_ERROR;
  const std::unique_ptr<UText, decltype(&utext_close)> utext(
      utext_openUTF8(nullptr, line.data(), static_cast<int64_t>(line.size()), &error),
      &utext_close);
  iterator->icu->setText(utext.get(), error);
  if (U_FAILURE(error)) return absl::InternalError(absl::StrCat("ICU: ", u_errorName(error)));

  constexpr Abbreviations kNone;
  const Abbreviations& table = iterator->table != nullptr ? *iterator->table : kNone;
  std::vector<int> ends;
  int begin = 0;
  // NOLINTNEXTLINE(bugprone-infinite-loop): the loop's own increment changes `end`
  for (int end = iterator->icu->next(); end != icu::BreakIterator::DONE;
       end = iterator->icu->next()) {
    const absl::string_view sentence = line.substr(begin, end - begin);
    const absl::string_view rest = line.substr(end);
    if (!rest.empty() && (IsInsideWord(sentence) || IsListNumber(sentence) ||
                          GoesOnAfterQuote(sentence, rest) || GoesOn(sentence, rest, table))) {
      continue;
    }
    ends.push_back(end);
    begin = end;
  }
  // The iterator outlives the line and must not keep a pointer into it.
  iterator->icu->setText(icu::UnicodeString());
  return ends;
}

}  // namespace linnet::model
