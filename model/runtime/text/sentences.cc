#include "model/runtime/text/sentences.h"

#include <unicode/brkiter.h>
#include <unicode/locid.h>
#include <unicode/utext.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "model/runtime/text/abbreviations.h"
#include "model/runtime/text/characters.h"
#include "model/runtime/text/sentence_places.h"
#include "model/runtime/text/words_around.h"
#include "proto/status_macros.h"

namespace linnet::model {
namespace {

using Kind = Abbreviations::Kind;

constexpr int kMaxWordsOfAbbreviation = 4;  // "u. v. a. m."
constexpr int kLongestLinkedWord = 8;   // max bytes of a later word in an abbreviation: "i. Allg."
constexpr int kLongestListNumber = 64;  // bytes, with the white space before it
constexpr int kLongestOpening = 64;     // bytes of brackets that open beside each other
constexpr int kShortestWord = 4;  // letters of a word that is hardly an abbreviation if unknown

// Describes the text behind a possible end of a sentence.
struct Follower {
  explicit Follower(absl::string_view after, const Abbreviations& table) : word(FirstWord(after)) {
    const size_t end = word.empty() ? 0 : word.data() + word.size() - after.data();
    const bool stop = end < after.size() && after[end] == '.';
    const UChar32 first = after.empty() ? -1 : CharacterAt(after, 0).code_point;
    const bool one_letter = !word.empty() && CharacterAt(word, 0).end == std::ssize(word);
    initial = one_letter && stop;
    starter = table.IsStarter(word) && !initial;
    number = (!word.empty() && u_isdigit(CharacterAt(word, 0).code_point)) || first == 0x2116 ||
             first == '#' || first == 0xA7;
    day_or_month_number = number && word.size() <= 2 && stop;
    capital = !word.empty() && u_isupper(CharacterAt(word, 0).code_point);
    numeral = one_letter || (word.find_first_not_of("IVXLC") == absl::string_view::npos);
  }

  absl::string_view word;
  bool starter = false;
  bool initial = false;
  bool capital = false;
  bool number = false;               // "5", "№ 5"
  bool day_or_month_number = false;  // "5."
  bool numeral = false;              // "A", "IV"
};

// True for text such as: "Are you there?" she asked. In some languages also without quotes.
bool GoesOnAfterMark(absl::string_view before, absl::string_view after,
                     const Abbreviations& table) {
  const int end = SkipWhiteSpaceBefore(before, static_cast<int>(before.size()));
  return end > 0 && u_islower(CharacterAt(after, 0).code_point) &&
         (table.goes_on_after_mark() || IsClosing(CharacterBefore(before, end).code_point));
}

// Japanese quotes what was said with a particle: 「行こう。」と彼は言った。
bool GoesOnAfterJapaneseQuote(absl::string_view before, absl::string_view after) {
  if (before.empty() ||
      u_charType(CharacterBefore(before, static_cast<int>(before.size())).code_point) !=
          U_END_PUNCTUATION)
    return false;
  for (absl::string_view starter :
       {"とて", "とこ", "とに", "とき", "とう", "とり", "とも", "のち", "のど", "をと"}) {
    if (absl::StartsWith(after, starter)) return false;
  }
  for (absl::string_view particle : {"と", "って", "など", "なんて", "を", "の", "だの"}) {
    if (absl::StartsWith(after, particle)) return true;
  }
  return false;
}

// "10:00 a.m." ends the sentence unless a day or a time zone follows, or the sentence has hardly
// begun: "At 5 p.m. London sleeps."
bool IsTimeOfDay(absl::string_view word) {
  for (absl::string_view time : {"a.m.", "p.m.", "A.M.", "P.M."}) {
    if (word == time) return true;
  }
  return false;
}

int CountWords(absl::string_view text, int limit) {
  int words = 0;
  for (int at = SkipWhiteSpace(text, 0); at < std::ssize(text) && words < limit; ++words) {
    while (at < std::ssize(text) && !IsWhiteSpace(CharacterAt(text, at).code_point)) {
      at = CharacterAt(text, at).end;
    }
    at = SkipWhiteSpace(text, at);
  }
  return words;
}

bool GoesOnAfterTime(absl::string_view before, const Follower& next, const Abbreviations& table) {
  constexpr int kWordsOfATime = 4;  // "At 5 p.m."
  return CountWords(before, kWordsOfATime) < kWordsOfATime || table.IsDay(next.word) ||
         table.IsMonth(next.word) || IsAllCapitals(next.word) || next.number;
}

// True if a number, or another measure behind a number, precedes: "30 tys. zł.".
bool IsAfterNumber(absl::string_view before, int begin, const Abbreviations& table) {
  absl::string_view previous = WordBefore(before, begin, begin);
  if (table.KindOf(previous) == Kind::kMeasure) previous = WordBefore(before, begin, begin);
  return !previous.empty() &&
         (previous.find_first_not_of("IVXLC") == absl::string_view::npos ||
          u_isdigit(CharacterBefore(previous, static_cast<int>(previous.size())).code_point));
}

// True if a number with a stop is an ordinal, a part of a date or the number of an item of a list.
bool GoesOnAfterNumber(absl::string_view before, absl::string_view last, int begin,
                       const Follower& next, const Abbreviations& table) {
  int previous_begin = begin;
  const absl::string_view previous = WordBefore(before, begin, previous_begin);
  if (IsRomanNumber(last)) {
    // "po II. Vaticanskom": behind a name it is more often the end, but not where nouns are written
    // with a capital.
    const bool name = !previous.empty() && u_isupper(CharacterAt(previous, 0).code_point) &&
                      !table.IsStarter(previous);
    return table.roman_ordinals_with_stop() && (table.nouns_with_capital() || !name);
  }
  if (!IsNumbering(last, 2)) return false;
  if (table.nouns_with_capital()) return true;
  const int mark = SkipWhiteSpaceBefore(before, begin);
  const bool after_colon =
      mark > 0 &&
      (before[mark - 1] == ';' ||
       (before[mark - 1] == ':' && !(mark > 1 && absl::ascii_isdigit(before[mark - 2]))));
  if (std::count(last.begin(), last.end(), '.') > 1)  // "18.30." or the number of a section
    return after_colon || (table.ordinals_with_stop() && IsAllCapitals(previous));
  if (next.day_or_month_number) return true;  // "21. 5."
  if (table.dates_with_stop() && table.IsMonth(next.word)) return true;
  return after_colon ||
         (table.ordinals_with_stop() && table.KindOf(previous) != Kind::kBeforeNumber);
}

// True for one capital letter, and a comma behind it if `comma`.
bool IsCapitalLetter(absl::string_view word, bool comma) {
  if (comma && !absl::ConsumeSuffix(&word, ",")) return false;
  return !word.empty() && CharacterAt(word, 0).end == std::ssize(word) &&
         u_isupper(CharacterAt(word, 0).code_point);
}

// True if a letter that begins at `begin` is the last of three or more that are listed: "curves A,
// B and C." or "A, B, C.". Two letters may be a word and an initial: "I, J. Smith".
bool IsListedLetter(absl::string_view before, int begin) {
  absl::string_view previous = WordBefore(before, begin, begin);
  const bool comma = IsCapitalLetter(previous, true);
  if (!comma) {  // a conjunction
    previous = WordBefore(before, begin, begin);
    if (!IsCapitalLetter(previous, false) && !IsCapitalLetter(previous, true)) return false;
  }
  return IsCapitalLetter(WordBefore(before, begin, begin), true);
}

// True for initials. In scripts without capitals, where a letter is as often a word, a single one
// counts only beside another.
bool IsInitialOfName(absl::string_view before, absl::string_view last, int begin,
                     const Follower& next, const Abbreviations& table) {
  if (!IsInitials(last) ||
      (IsCapitalLetter(last.substr(0, last.size() - 1), false) && IsListedLetter(before, begin)))
    return false;
  const Character first = CharacterAt(last, 0);
  if (u_islower(first.code_point) && table.IsLowerCaseStarter(last.substr(0, last.size() - 1)))
    return false;  // a word of one letter
  if (u_hasBinaryProperty(first.code_point, UCHAR_CASED) || next.initial) return true;
  return std::count(last.begin(), last.end(), '.') > 1 ||
         IsInitials(WordBefore(before, begin, begin));
}

// True if the sentence continues in `after`; `before` ends with a full stop.
bool GoesOn(absl::string_view before, absl::string_view after, const Abbreviations& table) {
  int begin = 0;
  const absl::string_view last = WordBefore(before, static_cast<int>(before.size()), begin);
  if (last.empty() || last.back() != '.' || absl::EndsWith(last, "..")) return false;
  const int last_begin = begin;

  const Follower next(after, table);
  if (IsTimeOfDay(last)) return GoesOnAfterTime(before, next, table);

  // "B.", then "z.B.", and so on to the left.
  std::string joined(last);
  const bool number = u_isdigit(CharacterAt(last, 0).code_point);
  for (int words = 1; words <= kMaxWordsOfAbbreviation && !number; ++words) {
    const Kind kind = table.KindOf(joined);
    if (kind == Kind::kNeverLast) return true;
    if (kind == Kind::kClosing) return !next.capital;
    if (kind == Kind::kMeasure && next.capital && IsAfterNumber(before, begin, table))
      return IsAllCapitals(next.word);  // "54 mln. EUR"
    if (kind == Kind::kSeldomLast || kind == Kind::kMeasure) return !next.starter;
    if (kind == Kind::kBeforeNumber &&
        (next.number || (next.numeral && u_isupper(CharacterAt(joined, 0).code_point))))
      return true;
    const absl::string_view previous = WordBefore(before, begin, begin);
    if (previous.size() < 2 || previous.size() > kLongestLinkedWord || previous.back() != '.')
      break;
    joined = absl::StrCat(previous, joined);
  }
  if (next.starter) return false;
  if (IsInitialOfName(before, last, last_begin, next, table) || HasInnerStops(last) ||
      GoesOnAfterNumber(before, last, last_begin, next, table))
    return true;
  if (!table.vowelless_words() && IsVowelless(last)) return true;
  // "art. 57": a short word before a number is hardly the last one.
  const int letters = LettersBeforeStop(last);
  return next.number && !next.day_or_month_number && letters > 0 && letters < kShortestWord &&
         u_islower(CharacterBefore(last, static_cast<int>(last.size()) - 1).code_point) &&
         !table.IsLowerCaseStarter(last.substr(0, last.size() - 1));
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

// True if a Latin "!" or "?" stands between unspaced letters, where it ends a sentence: そうか?はい
bool IsBetweenUnspaced(absl::string_view sentence, UChar32 next) {
  int end = static_cast<int>(sentence.size());
  while (end > 0 && (sentence[end - 1] == '?' || sentence[end - 1] == '!')) --end;
  return end > 0 && end < std::ssize(sentence) && IsUnspacedScript(next) &&
         IsUnspacedScript(CharacterBefore(sentence, end).code_point);
}

// "1.", "a." or "iv." alone is the number of what follows. A long text is none, and is not searched
// for the begin of a word that may be as long.
bool IsListNumber(absl::string_view sentence) {
  int begin = 0;
  if (SkipWhiteSpaceBefore(sentence, static_cast<int>(sentence.size())) > kLongestListNumber)
    return false;
  const absl::string_view word = WordBefore(sentence, static_cast<int>(sentence.size()), begin);
  return SkipWhiteSpaceBefore(sentence, begin) == 0 &&
         (IsNumbering(word, 3) || IsInitials(word) || IsSmallRomanNumber(word));
}

// True if a sentence ends at a place where ICU sees no end: `end` is behind the white space after
// a mark.
bool EndsWithoutIcu(absl::string_view line, int begin, int end, const Abbreviations& table) {
  const absl::string_view before = line.substr(begin, end - begin);
  const absl::string_view after = line.substr(end);
  const UChar32 first = CharacterAt(after, 0).code_point;
  const int mark = SkipWhiteSpaceBefore(before, static_cast<int>(before.size()));
  int last = mark;
  while (last > 0 && IsClosing(CharacterBefore(before, last).code_point)) {
    last = CharacterBefore(before, last).begin;
  }
  if (last == 0) return false;
  const UChar32 terminal = CharacterBefore(before, last).code_point;

  const absl::string_view next = FirstWord(after);
  const bool capital = !next.empty() && u_isupper(CharacterAt(next, 0).code_point);
  if (IsDash(first) || absl::StartsWith(after, ",,"))
    return capital || (terminal != '.' && IsQuoteAfterDash(after));
  if (terminal != '.') return capital && (terminal == kEllipsis || IsSmiley(before, mark));
  if (mark != last) return false;  // a quote before a digit or a small letter

  // A stop after a word that is no abbreviation, before a digit or a word that starts sentences.
  int word_begin = 0;
  const absl::string_view word = WordBefore(before, mark, word_begin);
  const int letters = LettersBeforeStop(word);
  if (letters == 0 || table.KindOf(word) != Kind::kNone) return false;
  const Character last_letter = CharacterBefore(word, static_cast<int>(word.size()) - 1);
  if (u_isdigit(first))
    return letters >= kShortestWord || !u_hasBinaryProperty(last_letter.code_point, UCHAR_CASED);
  if (letters < kShortestWord || !u_islower(last_letter.code_point) || !u_islower(first))
    return false;
  const bool list_number = next.size() > 1 && IsSmallRomanNumber(after.substr(0, next.size() + 1));
  return list_number || table.IsLowerCaseStarter(next);
}

}  // namespace

// ICU's sentence iterator of one language. Making one takes a while, so each thread keeps the last
// one that it used.
struct SentenceIterator {
  std::string language_code;
  const Abbreviations* table = nullptr;
  bool japanese = false;
  std::unique_ptr<icu::BreakIterator> icu;
};

namespace {

absl::StatusOr<SentenceIterator> MakeIterator(absl::string_view language_code) {
  SentenceIterator iterator;
  iterator.language_code = std::string(language_code);
  UErrorCode error = U_ZERO_ERROR;
  icu::Locale locale = icu::Locale::forLanguageTag(iterator.language_code, error);
  if (U_FAILURE(error) || locale.isBogus()) locale = icu::Locale::getRoot();
  error = U_ZERO_ERROR;
  iterator.table = &Abbreviations::Of(locale.getLanguage());
  iterator.japanese = absl::string_view(locale.getLanguage()) == "ja";
  iterator.icu.reset(icu::BreakIterator::createSentenceInstance(locale, error));
  if (U_FAILURE(error)) {
    return absl::InternalError(absl::StrCat("ICU has no sentence rules for \"",
                                            iterator.language_code, "\": ", u_errorName(error)));
  }
  return iterator;
}

// The iterator that this thread used last.
SentenceIterator& Kept() {
  thread_local SentenceIterator last;
  return last;
}

// Takes the thread's iterator, or makes one.
absl::StatusOr<SentenceIterator> TakeIterator(absl::string_view language_code) {
  if (Kept().icu != nullptr && Kept().language_code == language_code)
    return std::exchange(Kept(), {});
  return MakeIterator(language_code);
}

}  // namespace

struct SentenceScanner::State {
  // Returns the end of the sentence from `begin` on that the place is, or -1.
  int EndAt(int end, bool by_icu);

  std::string language_code;
  SentenceIterator iterator;
  std::unique_ptr<UText, decltype(&utext_close)> utext{nullptr, &utext_close};
  absl::string_view line;
  std::optional<QuoteCounter> quotes;
  int begin = 0;     // of the sentence
  int icu_end = 0;   // ICU's next end, or DONE
  int searched = 0;  // places before it are known
  int scanned = 0;
  int64_t places = 0;
  bool done = true;
};

SentenceScanner::SentenceScanner(absl::string_view language_code)
    : state_(std::make_unique<State>()) {
  state_->language_code = std::string(language_code);
}

SentenceScanner::~SentenceScanner() {
  if (state_->iterator.icu == nullptr) return;
  // The iterator outlives the line and must not keep a pointer into it.
  state_->iterator.icu->setText(icu::UnicodeString());
  Kept() = std::move(state_->iterator);
}

bool SentenceScanner::done() const { return state_->done; }
int64_t SentenceScanner::places() const { return state_->places; }

int SentenceScanner::scanned() const {
  // A later end may lie before the brackets that open here (BeforeOpening).
  int at = state_->scanned;
  while (at > state_->begin) {
    const Character character = CharacterBefore(state_->line, at);
    const int8_t type = u_charType(character.code_point);
    if (type != U_START_PUNCTUATION && type != U_INITIAL_PUNCTUATION) return at;
    if (state_->scanned - at > kLongestOpening) return state_->begin;
    at = character.begin;
  }
  return at;
}

absl::Status SentenceScanner::Start(absl::string_view line) {
  State& state = *state_;
  if (state.iterator.icu == nullptr) {
    ASSIGN_OR_RETURN(state.iterator, TakeIterator(state.language_code));
  }
  UErrorCode error = U_ZERO_ERROR;
  std::unique_ptr<UText, decltype(&utext_close)> utext(
      utext_openUTF8(nullptr, line.data(), static_cast<int64_t>(line.size()), &error),
      &utext_close);
  state.iterator.icu->setText(utext.get(), error);
  if (U_FAILURE(error)) return absl::InternalError(absl::StrCat("ICU: ", u_errorName(error)));
  state.utext = std::move(utext);
  state.line = line;
  state.quotes.emplace(line);
  state.begin = state.searched = state.scanned = 0;
  state.icu_end = state.iterator.icu->next();
  state.done = state.icu_end == icu::BreakIterator::DONE;
  return absl::OkStatus();
}

int SentenceScanner::State::EndAt(int end, bool by_icu) {
  if (end <= begin) return -1;  // behind a mark that was taken along
  const auto size = static_cast<int>(line.size());
  if (by_icu && end < size) end = BeforeOpening(line, begin, end);
  const absl::string_view sentence = line.substr(begin, end - begin);
  if (end == size) return end;
  if (by_icu && IsInsideWord(sentence) &&
      !IsBetweenUnspaced(sentence, CharacterAt(line, end).code_point))
    return -1;
  const Abbreviations& table = *iterator.table;
  if (!by_icu && !EndsWithoutIcu(line, begin, end, table)) return -1;
  const QuotesBefore marks = quotes->At(begin, end);
  const bool dash = IsDash(CharacterAt(line, end).code_point);
  if (dash && marks.open_brackets > 0) return -1;  // "(next year. — Ed.)"
  const int closed = BehindClosing(line, end, marks);
  if (closed < 0) return -1;
  const absl::string_view rest = line.substr(closed);
  if (!rest.empty() &&
      (IsListNumber(sentence) || GoesOnAfterMark(line.substr(begin, closed - begin), rest, table) ||
       (iterator.japanese && GoesOnAfterJapaneseQuote(sentence, rest)) ||
       ((by_icu || IsDash(CharacterAt(rest, 0).code_point)) && GoesOn(sentence, rest, table))))
    return -1;
  return closed;
}

absl::StatusOr<std::optional<int>> SentenceScanner::Next(int max_places) {
  State& state = *state_;
  for (int i = 0; i < max_places && !state.done; ++i) {
    const int place = state.searched < state.icu_end
                          ? NextPlace(state.line, state.searched, state.icu_end)
                          : state.icu_end;
    ++state.places;
    state.searched = place;
    const bool by_icu = place == state.icu_end;
    if (by_icu) {
      state.icu_end = state.iterator.icu->next();
      state.done = state.icu_end == icu::BreakIterator::DONE;
    }
    const int end = state.EndAt(place, by_icu);
    state.scanned = place;
    if (end < 0) continue;
    state.begin = end;
    state.scanned = std::max(place, end);
    return end;
  }
  return std::nullopt;
}

absl::StatusOr<std::vector<int>> SentenceEnds(absl::string_view line,
                                              absl::string_view language_code) {
  SentenceScanner scanner(language_code);
  RETURN_IF_ERROR(scanner.Start(line));
  std::vector<int> ends;
  while (!scanner.done()) {
    ASSIGN_OR_RETURN(const std::optional<int> end, scanner.Next(std::numeric_limits<int>::max()));
    if (end.has_value()) ends.push_back(*end);
  }
  return ends;
}

}  // namespace linnet::model
