#include "model/runtime/tokenizer/lower_capitals.h"

#include <unicode/locid.h>
#include <unicode/uchar.h>
#include <unicode/unistr.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <vector>

#include "absl/strings/ascii.h"
#include "model/runtime/text/characters.h"
#include "model/runtime/text/words_around.h"

namespace linnet::model {
namespace {

constexpr int kMaxBytesAround = 512;  // that are searched for abbreviations

// Letters, digits and combining marks in a row.
struct CasedWord {
  absl::string_view text = {};
  bool begins_sentence = false;
  bool begins_with_letter = false;
  int capitals = 0;
  bool has_lower = false;
  bool has_digit = false;
  bool may_have_vowel = false;  // always true in a script without vowels
};

// Includes the consonants that are the only vowels of "prst" and "vlk".
bool MayBeVowel(UChar32 c) {
  static constexpr UChar32 kSyllabic[] = {'r', 'l', 0x440, 0x43B, 0x3C1, 0x3BB};  // р л ρ λ
  return !HasVowels(c) || IsVowel(c) ||
         std::find(std::begin(kSyllabic), std::end(kSyllabic), u_tolower(c)) != std::end(kSyllabic);
}

std::vector<CasedWord> FindCasedWords(absl::string_view text) {
  std::vector<CasedWord> words;
  bool in_word = false;
  bool ended = false;  // a full stop or the like, and closing marks after it
  bool begins_sentence = true;
  for (int at = 0; at < std::ssize(text);) {
    const Character character = CharacterAt(text, at);
    const UChar32 c = character.code_point;
    at = character.end;
    if (!InWord(c)) {
      in_word = false;
      if (IsBreak(c) || (ended && IsWhiteSpace(c))) begins_sentence = true;
      ended = u_hasBinaryProperty(c, UCHAR_S_TERM) != 0 || (ended && IsClosing(c));
      continue;
    }
    if (!in_word) {
      words.push_back(
          {.begins_sentence = begins_sentence, .begins_with_letter = u_isalpha(c) != 0});
      words.back().text = text.substr(character.begin, 0);
    }
    in_word = true;
    begins_sentence = ended = false;
    CasedWord& word = words.back();
    word.text = {word.text.data(), word.text.size() + (character.end - character.begin)};
    word.capitals += u_isUUppercase(c) != 0 ? 1 : 0;
    word.has_lower |= u_isULowercase(c) || u_istitle(c);
    word.has_digit |= u_isdigit(c) != 0;
    word.may_have_vowel |= u_isalpha(c) && MayBeVowel(c);
  }
  return words;
}

// Adds the words in capitals that stand alone in a sentence that is mostly in lower case. One that
// stands beside another may be shouted: "BREAKING NEWS from Rome".
void AddAbbreviations(absl::string_view text, std::set<std::string>& abbreviations) {
  const std::vector<CasedWord> words = FindCasedWords(text);
  for (auto begin = words.begin(); begin != words.end();) {
    const auto end = std::find_if(begin + 1, words.end(),
                                  [](const CasedWord& word) { return word.begins_sentence; });
    const auto in_capitals = [](const CasedWord& word) {
      return word.capitals >= 2 && !word.has_lower;
    };
    const auto lower = std::count_if(begin, end, [](const CasedWord& w) { return w.has_lower; });
    const auto capitals = std::count_if(begin, end, in_capitals);
    for (auto word = begin; word != end && lower >= 2 * capitals; ++word) {
      const bool beside = (word != begin && in_capitals(*(word - 1))) ||
                          (word + 1 != end && in_capitals(*(word + 1)));
      if (in_capitals(*word) && !beside) abbreviations.emplace(word->text);
    }
    begin = end;
  }
}

std::set<std::string> AbbreviationsIn(const TextAround& around) {
  std::set<std::string> abbreviations;
  absl::string_view before = around.before;
  if (before.size() > kMaxBytesAround) before.remove_prefix(before.size() - kMaxBytesAround);
  AddAbbreviations(before, abbreviations);
  AddAbbreviations(around.after.substr(0, kMaxBytesAround), abbreviations);
  return abbreviations;
}

// True for a word that is in capitals in every text. `after` is the text after it.
bool StaysInCapitals(const CasedWord& word, absl::string_view after, bool english,
                     const std::set<std::string>& abbreviations) {
  if (english && word.text == "I") return true;
  if (!word.begins_with_letter || word.capitals == 0) return false;
  const bool number_follows = after.size() > 1 && after[0] == '-' && absl::ascii_isdigit(after[1]);
  if (word.has_digit || (number_follows && word.capitals >= 2)) return true;
  return word.capitals >= 2 &&
         (!word.may_have_vowel || abbreviations.contains(std::string(word.text)));
}

icu::Locale MakeLocale(absl::string_view language_code) {
  UErrorCode error = U_ZERO_ERROR;
  icu::Locale locale = icu::Locale::forLanguageTag(
      {language_code.data(), static_cast<int32_t>(language_code.size())}, error);
  return U_FAILURE(error) || locale.isBogus() ? icu::Locale::getRoot() : locale;
}

icu::UnicodeString ToUtf16(absl::string_view text) {
  return icu::UnicodeString::fromUTF8({text.data(), static_cast<int32_t>(text.size())});
}

}  // namespace

std::optional<std::string> LowerCapitals(absl::string_view text, absl::string_view language_code,
                                         const TextAround& around) {
  if (!IsInCapitals(text, around)) return std::nullopt;
  const icu::Locale locale = MakeLocale(language_code);
  const bool english = absl::string_view(locale.getLanguage()) == "en";
  const std::set<std::string> abbreviations = AbbreviationsIn(around);
  std::string lower;
  lower.reserve(text.size());
  bool shouted = false;
  size_t copied = 0;
  for (const CasedWord& word : FindCasedWords(text)) {
    const size_t begin = word.text.data() - text.data();
    const size_t end = begin + word.text.size();
    lower.append(text.data() + copied, begin - copied);
    copied = end;
    if (StaysInCapitals(word, text.substr(end), english, abbreviations)) {
      lower.append(word.text.data(), word.text.size());
      continue;
    }
    shouted |= word.capitals >= 2;
    icu::UnicodeString wide = ToUtf16(word.text);
    const UChar32 first = wide.char32At(0);
    wide.toLower(locale);
    if (word.begins_sentence) {
      const int old = U16_LENGTH(wide.char32At(0));
      wide.replace(0, old, icu::UnicodeString(u_totitle(first)));
    }
    wide.toUTF8String(lower);
  }
  if (!shouted) return std::nullopt;
  lower.append(text.data() + copied, text.size() - copied);
  return lower;
}

std::string ToCapitals(absl::string_view text, absl::string_view language_code) {
  std::string capitals;
  return ToUtf16(text).toUpper(MakeLocale(language_code)).toUTF8String(capitals);
}

}  // namespace linnet::model
