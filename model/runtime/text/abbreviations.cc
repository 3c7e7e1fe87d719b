#include "model/runtime/text/abbreviations.h"

#include <unicode/dtfmtsym.h>
#include <unicode/resbund.h>
#include <unicode/ubrk.h>
#include <unicode/unistr.h>

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "model/runtime/text/characters.h"

namespace linnet::model {
namespace {

constexpr char kBreakRules[] = U_ICUDATA_NAME "-brkitr";

std::string Utf8(const icu::UnicodeString& text) {
  std::string utf8;
  text.toUTF8String(utf8);
  return utf8;
}

icu::UnicodeString Wide(absl::string_view text) {
  return icu::UnicodeString::fromUTF8({text.data(), static_cast<int32_t>(text.size())});
}

bool IsAscii(absl::string_view text) {
  return std::all_of(text.begin(), text.end(), absl::ascii_isascii);
}

// Short words in ASCII, which a text may repeat without end, take no UnicodeString.
std::string Lower(absl::string_view text) {
  if (IsAscii(text)) return absl::AsciiStrToLower(text);
  return Utf8(Wide(text).toLower(icu::Locale::getRoot()));
}

// The word with its first letter in lower case, and all others too if all of them are capitals.
std::string InTitleCase(absl::string_view word) {
  if (IsAscii(word)) {
    std::string title = absl::AsciiStrToLower(word);
    if (!title.empty()) title.front() = absl::ascii_toupper(title.front());
    return title;
  }
  icu::UnicodeString wide = Wide(word).toLower(icu::Locale::getRoot());
  const int32_t first = U16_LENGTH(wide.char32At(0));
  return Utf8(wide.replace(0, first, icu::UnicodeString(u_totitle(wide.char32At(0)))));
}

// The word with its first letter in lower case, or nothing if that is not a capital.
std::string WithSmallFirstLetter(absl::string_view word) {
  const Character first = CharacterAt(word, 0);
  const UChar32 small = u_tolower(first.code_point);
  if (small == first.code_point) return {};
  char bytes[U8_MAX_LENGTH];
  int size = 0;
  U8_APPEND_UNSAFE(bytes, size, small);
  return absl::StrCat(absl::string_view(bytes, size), word.substr(first.end));
}

bool IsInCapitals(absl::string_view word) {
  int capitals = 0;
  for (int at = 0; at < std::ssize(word);) {
    const Character character = CharacterAt(word, at);
    if (u_islower(character.code_point)) return false;
    capitals += static_cast<int>(u_isupper(character.code_point));
    at = character.end;
  }
  return capitals >= 2;
}

// The part after the last hyphen or apostrophe: "Nr." of "Kunden-Nr.", "art." of "l'art.".
absl::string_view LastPart(absl::string_view word) {
  size_t begin = 0;
  if (const size_t at = word.find_last_of("-'"); at != absl::string_view::npos) begin = at + 1;
  constexpr absl::string_view kApostrophe = "\u2019";
  if (const size_t at = word.rfind(kApostrophe); at != absl::string_view::npos)
    begin = std::max(begin, at + kApostrophe.size());
  return begin + 1 < word.size() ? word.substr(begin) : word;
}

const AbbreviationLists* FindLists(absl::string_view language) {
  if (language == "no" || language == "nn") language = "nb";
  if (language == "bs") language = "hr";
  for (const auto lists : {WesternAbbreviations(), EasternAbbreviations()}) {
    for (const AbbreviationLists& of_language : lists) {
      if (of_language.language == language) return &of_language;
    }
  }
  return nullptr;
}

std::vector<absl::string_view> ListedWords(absl::string_view list) {
  return absl::StrSplit(list, ' ', absl::SkipEmpty());
}

}  // namespace

Abbreviations::Abbreviations(const AbbreviationLists& lists, absl::string_view language)
    : ordinals_with_stop_(lists.ordinals_with_stop),
      roman_ordinals_with_stop_(lists.roman_ordinals_with_stop),
      dates_with_stop_(language != "en"),
      nouns_with_capital_(language == "de"),
      goes_on_after_mark_(lists.goes_on_after_mark),
      vowelless_words_(lists.vowelless_words) {
  Add(lists.never_last, Kind::kNeverLast);
  Add(lists.seldom_last, Kind::kSeldomLast);
  Add(lists.before_number, Kind::kBeforeNumber);
  Add(lists.closing, Kind::kClosing);
  Add(lists.measures, Kind::kMeasure);
  if (const auto words = ListedWords(lists.starters); !words.empty()) any_starter_ = words.front();
  for (absl::string_view word : ListedWords(lists.starters)) {
    starters_.insert(std::string(word));
    small_starters_.insert(Lower(word));
  }
  AddFromCldr(std::string(language), lists.without_cldr ? "*" : lists.not_abbreviations);
}

void Abbreviations::Add(absl::string_view words, Kind kind) {
  for (absl::string_view word : ListedWords(words)) {
    if (absl::ConsumePrefix(&word, "*")) {
      suffixes_before_number_.insert(std::string(word));
    } else {
      words_.try_emplace(std::string(word), kind);
    }
  }
}

// CLDR's suppressions are abbreviations that may end a sentence. Its short names of days and months
// are words as well ("mer." is Wednesday and the sea), so they count only before a number.
void Abbreviations::AddFromCldr(const std::string& language, absl::string_view excluded) {
  const icu::Locale locale(language.c_str());
  UErrorCode error = U_ZERO_ERROR;
  const icu::DateFormatSymbols dates(locale, error);
  if (U_SUCCESS(error)) {
    using Dates = icu::DateFormatSymbols;
    for (const auto context : {Dates::FORMAT, Dates::STANDALONE}) {
      int count = 0;
      for (const auto width : {Dates::WIDE, Dates::ABBREVIATED}) {
        const icu::UnicodeString* names = dates.getMonths(count, context, width);
        for (int i = 0; i < count; ++i) {
          const std::string name = Utf8(names[i]);
          if (absl::EndsWith(name, ".")) words_.try_emplace(name, Kind::kBeforeNumber);
          if (width == Dates::WIDE) months_.insert(Lower(name));
        }
      }
      for (const auto width : {Dates::WIDE, Dates::ABBREVIATED}) {
        const icu::UnicodeString* names = dates.getWeekdays(count, context, width);
        for (int i = 0; i < count; ++i) {
          if (names[i].isEmpty()) continue;
          const std::string name = Utf8(names[i]);
          if (absl::EndsWith(name, ".")) words_.try_emplace(name, Kind::kBeforeNumber);
          if (width == Dates::WIDE) days_.insert(Lower(name));
        }
      }
    }
  }
  if (excluded == "*") return;
  const std::vector<absl::string_view> words = ListedWords(excluded);
  const std::set<absl::string_view> not_abbreviations(words.begin(), words.end());
  error = U_ZERO_ERROR;
  const icu::ResourceBundle rules(kBreakRules, locale, error);
  // For a language without rules of its own ICU answers with those of the default locale.
  if (U_FAILURE(error) || language != rules.getLocale(ULOC_ACTUAL_LOCALE, error).getLanguage())
    return;
  icu::ResourceBundle suppressions = rules.get("exceptions", error).get("SentenceBreak", error);
  while (U_SUCCESS(error) && suppressions.hasNext()) {
    std::string word = Utf8(suppressions.getNextString(error));
    word.erase(std::remove(word.begin(), word.end(), ' '), word.end());
    if (U_SUCCESS(error) && absl::EndsWith(word, ".") && !not_abbreviations.contains(word))
      words_.try_emplace(word, Kind::kSeldomLast);
  }
}

const Abbreviations& Abbreviations::Of(absl::string_view language) {
  // Few languages have lists, and all others share an entry, so the table stays small.
  struct Table {
    std::mutex mutex;
    std::map<std::string, std::unique_ptr<const Abbreviations>> of;  // guarded by the mutex
  };
  static Table* const table = new Table;
  const AbbreviationLists* lists = FindLists(language);
  const std::string key(lists == nullptr ? "" : lists->language);
  const std::lock_guard<std::mutex> lock(table->mutex);
  std::unique_ptr<const Abbreviations>& entry = table->of[key];
  if (entry == nullptr)
    entry =
        std::make_unique<const Abbreviations>(lists == nullptr ? AbbreviationLists{} : *lists, key);
  return *entry;
}

Abbreviations::Kind Abbreviations::KindOf(absl::string_view word) const {
  for (absl::string_view form = word; !form.empty();) {
    if (const auto found = words_.find(form); found != words_.end()) return found->second;
    const std::string small = WithSmallFirstLetter(form);
    if (!small.empty()) {
      if (const auto found = words_.find(small); found != words_.end()) return found->second;
      if (IsInCapitals(form)) {
        for (const std::string& other : {Lower(form), InTitleCase(form)}) {
          if (const auto found = words_.find(other); found != words_.end()) return found->second;
        }
      }
    }
    const absl::string_view last = LastPart(form);
    form = last.size() == form.size() ? absl::string_view() : last;
  }
  for (const std::string& suffix : suffixes_before_number_) {
    if (absl::EndsWith(word, suffix)) return Kind::kBeforeNumber;
  }
  return Kind::kNone;
}

bool Abbreviations::IsMonth(absl::string_view word) const { return months_.contains(Lower(word)); }

bool Abbreviations::IsDay(absl::string_view word) const { return days_.contains(Lower(word)); }

}  // namespace linnet::model
