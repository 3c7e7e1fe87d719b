#include "model/runtime/text/facts.h"

#include <unicode/locid.h>
#include <unicode/rbnf.h>
#include <unicode/unistr.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string_view>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "model/runtime/text/characters.h"

namespace linnet::model {
namespace {

constexpr size_t kMaxDifferences = 64;
constexpr size_t kMaxSpelled = 4;  // digits of a number that may be written in words

// A number and the values that it may have: "1.234" is 1234 or 1.234.
struct Number {
  TextRun place;
  std::string value;
  std::string other = {};
  std::vector<std::string> parts = {};  // of "10.30", which may be a time or of a date
  bool may_be_time = false;             // it has two digits behind the point
  // Of 10:30, in which this is a group; empty for other numbers.
  TextRun time = {};
  bool is_minutes = false;  // the last group of two

  bool Equals(const Number& number) const {
    return value == number.value || (!other.empty() && other == number.value) ||
           (!number.other.empty() && (value == number.other || other == number.other));
  }
};

// Without zeros that do not count.
std::string Value(absl::string_view whole, absl::string_view fraction) {
  while (whole.size() > 1 && whole.front() == '0') whole.remove_prefix(1);
  while (!fraction.empty() && fraction.back() == '0') fraction.remove_suffix(1);
  return fraction.empty() ? std::string(whole) : absl::StrCat(whole, ".", fraction);
}

// The digits of a text, one group for each run, and the character between two groups.
struct Groups {
  std::vector<std::string> digits;
  std::vector<TextRun> places;
  std::vector<UChar32> separators;
};

// True for groups as of 1,234,567: all but the first have three digits.
bool AreThousands(const std::vector<std::string>& digits, size_t begin, size_t end) {
  if (digits[begin].size() > 3) return false;
  for (size_t i = begin + 1; i < end; ++i) {
    if (digits[i].size() != 3) return false;
  }
  return end - begin > 1;
}

bool IsBlankSeparator(UChar32 c) {
  return c == ' ' || c == 0xA0 || c == 0x202F || c == '\'' || c == 0x2019;
}

void AddNumbers(const Groups& groups, std::vector<Number>& numbers) {
  const std::vector<std::string>& digits = groups.digits;
  for (size_t begin = 0, end = 0; begin < digits.size(); begin = end) {
    const auto join = [&](size_t from, size_t to) {
      std::string joined;
      for (size_t i = from; i < to; ++i) joined += digits[i];
      return joined;
    };
    // Groups with the same separator.
    end = begin + 1;
    while (end < digits.size() &&
           groups.separators[end - 1] == groups.separators[std::min(begin, end - 1)])
      ++end;
    const bool blanks = end - begin > 1 && IsBlankSeparator(groups.separators[begin]);
    if (!AreThousands(digits, begin, end)) end = begin + 1;
    const bool decimal =
        end < digits.size() && !IsBlankSeparator(groups.separators[end - 1]) &&
        (end + 1 == digits.size() || groups.separators[end] != groups.separators[end - 1]) &&
        (end - begin == 1 || groups.separators[end - 1] != groups.separators[begin]);
    Number& number = numbers.emplace_back();
    number.place = {groups.places[begin].begin, groups.places[end - 1].end};
    number.value = Value(join(begin, end), "");
    if (decimal) {
      number.value = Value(join(begin, end), digits[end]);
      if (end - begin == 1) number.parts = {Value(digits[begin], ""), Value(digits[end], "")};
      number.may_be_time = digits[end].size() == 2;
      number.place.end = groups.places[end++].end;
    } else if (end - begin == 2 && !blanks) {
      number.other = Value(digits[begin], digits[begin + 1]);
    }
  }
}

// Calls visit(character) for each character that is not in a part of the text that is apart, and
// skip() for each of these parts.
void Walk(const FactText& in, const auto& visit, const auto& skip) {
  auto apart = in.apart.begin();
  for (int at = 0; at < std::ssize(in.text);) {
    if (apart != in.apart.end() && at >= apart->begin) {
      skip();
      at = std::max(at, apart->end);
      ++apart;
      continue;
    }
    const Character character = CharacterAt(in.text, at);
    visit(character);
    at = character.end;
  }
}

// Marks the groups of times, durations and ratios: 10:30, 1:05:00, 16:9.
void MarkTimes(absl::string_view text, std::vector<Number>& numbers) {
  const auto joined = [&](size_t i) {
    const int from = numbers[i - 1].place.end, to = numbers[i].place.begin;
    const absl::string_view between = text.substr(from, to - from);
    return between == ":" || between == "\u2236" || between == "\uFF1A";
  };
  for (size_t begin = 0, end = 0; begin < numbers.size(); begin = end) {
    end = begin + 1;
    while (end < numbers.size() && joined(end)) ++end;
    if (end == begin + 1) continue;
    for (size_t i = begin; i < end; ++i)
      numbers[i].time = {numbers[begin].place.begin, numbers[end - 1].place.end};
    numbers[begin + 1].is_minutes = end == begin + 2;
  }
}

std::vector<Number> FindNumbers(const FactText& in) {
  std::vector<Number> numbers;
  Groups groups;
  bool open = false;  // the last group ended with the character before
  UChar32 separator = 0;
  int separated_at = -1;
  const auto finish = [&] {
    if (!groups.digits.empty()) AddNumbers(groups, numbers);
    groups = {};
    open = false;
  };
  const auto visit = [&](const Character& c) {
    const int digit =
        c.code_point < 0x80
            ? (absl::ascii_isdigit(static_cast<char>(c.code_point)) ? c.code_point - '0' : -1)
            : u_charDigitValue(c.code_point);
    if (digit >= 0) {
      if (!open) {
        if (separated_at != c.begin) finish();
        if (!groups.digits.empty()) groups.separators.push_back(separator);
        groups.digits.emplace_back();
        groups.places.push_back({c.begin, c.begin});
      }
      groups.digits.back() += static_cast<char>('0' + digit);
      groups.places.back().end = c.end;
      open = true;
    } else {
      const bool separates = c.code_point == '.' || c.code_point == ',' ||
                             IsBlankSeparator(c.code_point) || c.code_point == 0x66B ||
                             c.code_point == 0x66C;
      if (open && separates) {
        separator = c.code_point;
        separated_at = c.end;
      } else {
        separated_at = -1;
      }
      open = false;
    }
  };
  Walk(in, visit, finish);
  finish();
  MarkTimes(in.text, numbers);
  return numbers;
}

// The begin of the words for 30 and 15 minutes: "halb drei" is 2:30.
struct PartsOfAnHour {
  absl::string_view language;
  const char16_t* half;
  const char16_t* quarter;
};
constexpr PartsOfAnHour kPartsOfAnHour[] = {
    {"da", u"halv", u"kvart"},  {"de", u"halb", u"viertel"}, {"en", u"half", u"quarter"},
    {"es", u"medi", u"cuarto"}, {"fr", u"demi", u"quart"},   {"it", u"mezz", u"quart"},
    {"nb", u"halv", u"kvart"},  {"nl", u"half", u"kwart"},   {"pt", u"mei", u"quart"},
    {"sv", u"halv", u"kvart"}};

// Spells numbers in words.
class Speller {
 public:
  explicit Speller(absl::string_view language_code) : language_code_(language_code) {}

  // The text contains the number in words; that of a time also as a part of an hour.
  bool SpellsNumber(const std::string& text, const Number& number) {
    if (Spells(text, number.value)) return true;
    if (number.time == TextRun{}) return false;
    const bool half = HasPart(&PartsOfAnHour::half), quarter = HasPart(&PartsOfAnHour::quarter);
    if (number.value == "30") return half;
    if (number.value == "15" || number.value == "45") return quarter;
    const bool is_hour = number.time.begin == number.place.begin && number.value.size() <= 2;
    if (!is_hour || (!half && !quarter)) return false;
    const int hour = std::stoi(number.value) % 12;
    return Spells(text, absl::StrCat(hour + 1)) || (hour > 0 && Spells(text, absl::StrCat(hour)));
  }

 private:
  // The text contains the number in words, or the start of the ordinal ("drit" of "dritten").
  bool Spells(const std::string& text, const std::string& value) {
    if (value.size() > kMaxSpelled || value.find('.') != std::string::npos) return false;
    if (folded_.isEmpty()) {
      folded_ = icu::UnicodeString::fromUTF8(text).foldCase();
      UErrorCode error = U_ZERO_ERROR;
      rules_ = std::make_unique<icu::RuleBasedNumberFormat>(
          icu::URBNF_SPELLOUT, icu::Locale(std::string(language_code_).c_str()), error);
      if (U_FAILURE(error) != 0) rules_ = nullptr;
    }
    if (rules_ == nullptr) return false;
    const int number = std::stoi(value);
    for (int i = 0; i < rules_->getNumberOfRuleSetNames(); ++i) {
      const icu::UnicodeString name = rules_->getRuleSetName(i);
      UErrorCode error = U_ZERO_ERROR;
      icu::UnicodeString words;
      icu::FieldPosition position;
      rules_->format(number, name, words, position, error);
      words.foldCase().findAndReplace(u"\u00AD", u"");
      if (U_FAILURE(error) == 0 && words.length() > 1 && u_isalpha(words.char32At(0)) != 0 &&
          folded_.indexOf(words) >= 0)
        return true;
    }
    return false;
  }

  // A word of the text, which Spells has folded, begins with that of the part.
  bool HasPart(const char16_t* PartsOfAnHour::*part) const {
    for (const PartsOfAnHour& parts : kPartsOfAnHour) {
      if (!absl::StartsWith(language_code_, parts.language)) continue;
      const icu::UnicodeString word(parts.*part);
      for (int at = folded_.indexOf(word); at >= 0; at = folded_.indexOf(word, at + 1)) {
        if (at == 0 || u_isalpha(folded_.char32At(at - 1)) == 0) return true;
      }
    }
    return false;
  }

  absl::string_view language_code_;
  icu::UnicodeString folded_;
  std::unique_ptr<icu::RuleBasedNumberFormat> rules_;
};

// True for 2 and 14.
bool IsOtherHour(const std::string& a, const std::string& b) {
  if (a.size() > 2 || b.size() > 2 || a.find('.') < 2 || b.find('.') < 2) return false;
  const int hour = std::stoi(a), other = std::stoi(b);
  return std::min(hour, other) <= 12 && std::abs(hour - other) == 12;
}

// True for 5 and 5000000, and for 2 and 14.
bool IsOtherForm(const Number& a, const Number& b) {
  const auto scaled = [](std::string shorter, const std::string& longer) {
    constexpr size_t kMaxBeforeScale = 4;  // digits before "million" and the like
    const size_t dot = shorter.find('.');
    if (std::min(dot, shorter.size()) > kMaxBeforeScale) return false;
    if (dot != std::string::npos) {
      const size_t decimals = shorter.size() - dot - 1;
      if (decimals > 3) return false;
      shorter = absl::StrCat(shorter.substr(0, dot), shorter.substr(dot + 1),
                             std::string(3 - decimals, '0'));
      while (shorter.size() > 1 && shorter.front() == '0') shorter.erase(0, 1);
    }
    return longer.size() >= shorter.size() && longer.starts_with(shorter) &&
           longer.find_first_not_of('0', shorter.size()) == std::string::npos &&
           (longer.size() - shorter.size()) % 3 == 0;
  };
  return scaled(a.value, b.value) || scaled(b.value, a.value) || IsOtherHour(a.value, b.value);
}

// A time, duration or ratio, or a number like 10.30 that may be one: numbers [begin, end).
struct Time {
  std::vector<std::string> groups;  // without zeros before the first of two
  size_t begin = 0;
  size_t end = 0;
  bool has_colons = false;

  // True for 3:30 and 15:30, and for 0:05:00 and 5:00, but not for 5:00 and 5:00:00.
  bool IsSame(const Time& other) const {
    return groups.size() == other.groups.size() && (has_colons || other.has_colons) &&
           std::equal(groups.begin() + 1, groups.end(), other.groups.begin() + 1) &&
           (groups.front() == other.groups.front() ||
            IsOtherHour(groups.front(), other.groups.front()));
  }
};

std::vector<Time> FindTimes(const std::vector<Number>& numbers) {
  std::vector<Time> times;
  for (size_t begin = 0, end = 0; begin < numbers.size(); begin = end) {
    const TextRun place = numbers[begin].time;
    end = begin + 1;
    Time time;
    time.begin = begin;
    if (numbers[begin].may_be_time) time.groups = numbers[begin].parts;
    if (place != TextRun{}) {
      time.has_colons = true;
      time.groups = {numbers[begin].value};
      for (; end < numbers.size() && numbers[end].time == place; ++end) {
        if (time.groups.size() > 1 && time.groups.front() == "0")
          time.groups.erase(time.groups.begin());
        time.groups.push_back(numbers[end].value);
      }
    }
    time.end = end;
    if (!time.groups.empty()) times.push_back(std::move(time));
  }
  return times;
}

// Removes each time that both have. Those that are left may be written without their colons in the
// other text, but are no other times of it.
void RemoveTimes(std::vector<Number>& source, std::vector<Number>& answer) {
  std::vector<Time> others = FindTimes(answer);
  std::vector<bool> in_answer(source.size()), in_source(answer.size());
  for (const Time& time : FindTimes(source)) {
    const auto found =
        std::ranges::find_if(others, [&](const Time& other) { return time.IsSame(other); });
    if (found == others.end()) continue;
    std::fill(in_answer.begin() + time.begin, in_answer.begin() + time.end, true);
    std::fill(in_source.begin() + found->begin, in_source.begin() + found->end, true);
    others.erase(found);
  }
  const auto remove = [](std::vector<Number>& numbers, const std::vector<bool>& known) {
    std::erase_if(numbers, [&](const Number& number) { return known[&number - numbers.data()]; });
  };
  remove(source, in_answer);
  remove(answer, in_source);
}

// Removes each number that both have.
void RemoveCommon(std::vector<Number>& source, std::vector<Number>& answer, const auto& same) {
  std::erase_if(source, [&](const Number& number) {
    const auto found = std::find_if(answer.begin(), answer.end(),
                                    [&](const Number& other) { return same(number, other); });
    if (found == answer.end()) return false;
    answer.erase(found);
    return true;
  });
}

// Removes each number whose parts `others` have as numbers of their own.
void RemoveSplit(std::vector<Number>& numbers, std::vector<Number>& others) {
  std::erase_if(numbers, [&](const Number& number) {
    std::vector<Number> left = others;
    for (const std::string& part : number.parts) {
      const auto found = std::find_if(left.begin(), left.end(), [&](const Number& other) {
        return other.value == part && (number.may_be_time || other.time == TextRun{});
      });
      if (found == left.end()) return false;
      left.erase(found);
    }
    if (number.parts.empty()) return false;
    others = std::move(left);
    return true;
  });
}

// True for the minutes of "7:00", where another language writes "7".
bool IsFullHour(const Number& number) {
  return number.is_minutes && number.value == "0" && number.place.end - number.place.begin == 2;
}

// Brackets and quotation marks, by kind.
constexpr size_t kQuotes = 6, kSingleQuotes = 7;
constexpr std::array<std::u32string_view, 8> kMarks = {
    U"(\uFF08",
    U")\uFF09",
    U"[\uFF3B",
    U"]\uFF3D",
    U"{",
    U"}",
    U"\"\u201C\u201D\u201E\u00AB\u00BB\u300C\u300D\u300E\u300F",
    U"'\u2018\u2019\u201A\u2039\u203A"};
std::array<std::vector<TextRun>, kMarks.size()> FindMarks(const FactText& in) {
  std::array<std::vector<TextRun>, kMarks.size()> marks;
  const auto visit = [&](const Character& c) {
    for (size_t kind = 0; kind < kMarks.size(); ++kind) {
      if (kMarks[kind].find(static_cast<char32_t>(c.code_point)) == std::u32string_view::npos)
        continue;
      const bool apostrophe = kind == kSingleQuotes && c.begin > 0 &&
                              InWord(CharacterBefore(in.text, c.begin).code_point) &&
                              c.end < std::ssize(in.text) &&
                              InWord(CharacterAt(in.text, c.end).code_point);
      if (!apostrophe) marks[kind].push_back({c.begin, c.end});
    }
  };
  Walk(in, visit, [] {});
  return marks;
}

}  // namespace

FactDifferences CompareFacts(const FactText& source, const FactText& answer, bool whole) {
  FactDifferences differences;
  std::vector<Number> lost = FindNumbers(source), added = FindNumbers(answer);
  if (!whole) {  // a summary may repeat a number
    std::erase_if(added, [&](const Number& number) {
      return std::any_of(lost.begin(), lost.end(),
                         [&](const Number& other) { return number.Equals(other); });
    });
  }
  if (whole) RemoveTimes(lost, added);
  const auto compare = [](const auto& same) {
    return [&same](const Number& a, const Number& b) {
      return (a.time == TextRun{} || b.time == TextRun{}) && same(a, b);
    };
  };
  const auto equal = [](const Number& a, const Number& b) { return a.Equals(b); };
  RemoveCommon(lost, added, compare(equal));
  if (!lost.empty() || !added.empty()) {
    lost.resize(std::min(lost.size(), kMaxDifferences));
    added.resize(std::min(added.size(), kMaxDifferences));
    RemoveSplit(lost, added);
    RemoveSplit(added, lost);
    RemoveCommon(lost, added, compare(IsOtherForm));
    std::erase_if(lost, IsFullHour);
    std::erase_if(added, IsFullHour);
    Speller in_answer(answer.language_code), in_source(source.language_code);
    const std::string source_text(source.text), answer_text(answer.text);
    std::erase_if(lost, [&](const Number& n) { return in_answer.SpellsNumber(answer_text, n); });
    std::erase_if(added, [&](const Number& n) { return in_source.SpellsNumber(source_text, n); });
  }
  const auto append = [](const std::vector<Number>& numbers, std::vector<TextRun>& to) {
    for (const Number& number : numbers) {
      const TextRun place = number.time == TextRun{} ? number.place : number.time;
      if (to.empty() || to.back() != place) to.push_back(place);
    }
  };
  append(added, differences.added);
  if (!whole) return differences;
  append(lost, differences.lost);

  const auto of_source = FindMarks(source), of_answer = FindMarks(answer);
  // Adds what one text has more of a kind than the other. A quotation may be in single marks in one
  // of them; single marks that are lost are no difference, since they may be apostrophes.
  const auto add = [](const auto& in, const auto& other, size_t kind, std::vector<TextRun>& more) {
    size_t known = other[kind].size();
    if (kind == kQuotes && other[kSingleQuotes].size() > in[kSingleQuotes].size())
      known += other[kSingleQuotes].size() - in[kSingleQuotes].size();
    if (known < in[kind].size()) more.insert(more.end(), in[kind].begin() + known, in[kind].end());
  };
  for (size_t kind = 0; kind < kSingleQuotes; ++kind) {
    add(of_source, of_answer, kind, differences.lost);
    add(of_answer, of_source, kind, differences.added);
  }
  const auto by_place = [](const TextRun& a, const TextRun& b) { return a.begin < b.begin; };
  std::stable_sort(differences.lost.begin(), differences.lost.end(), by_place);
  std::stable_sort(differences.added.begin(), differences.added.end(), by_place);
  return differences;
}

}  // namespace linnet::model
