#include "model/runtime/tokenizer/moses.h"

#include <unicode/utf8.h>

#include <algorithm>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "model/runtime/text/characters.h"
#include "model/runtime/tokenizer/moses_letters.h"
#include "model/runtime/tokenizer/moses_prefixes.h"

namespace linnet::model {
namespace {

using Word = std::span<const Letter>;

constexpr Letter kSpace = {.code = ' ', .classes = kSpaceClass};
constexpr Letter kComma = {.code = ','};
constexpr Letter kApostrophe = {.code = '\''};
// One of several full stops in a row; the rules for a full stop do not apply to it.
constexpr Letter kHeldStop = {.code = 0x110000};

void AppendUtf8(UChar32 c, std::string& text) {
  char bytes[U8_MAX_LENGTH];
  int size = 0;
  U8_APPEND_UNSAFE(bytes, size, c);
  text.append(bytes, size);
}

std::string Utf8(Word word) {
  std::string text;
  for (const Letter& letter : word) AppendUtf8(letter.code, text);
  return text;
}

std::vector<Word> WordsOf(const Letters& text) {
  std::vector<Word> words;
  for (size_t at = 0; at < text.size();) {
    while (at < text.size() && text[at].is(kSpaceClass)) ++at;
    const size_t begin = at;
    while (at < text.size() && !text[at].is(kSpaceClass)) ++at;
    if (at > begin) words.emplace_back(text.data() + begin, at - begin);
  }
  return words;
}

// --- Tokenizer ----------------------------------------------------------------------------------

// Replaces white space by single blanks, trims it, and removes other ASCII control characters.
Letters CleanUp(const Letters& text) {
  Letters clean;
  clean.reserve(text.size());
  bool space = false;
  for (const Letter& letter : text) {
    if (letter.is(kSpaceClass)) {
      space = true;
    } else if (letter.code >= 0x20) {
      if (space && !clean.empty()) clean.push_back(kSpace);
      space = false;
      clean.push_back(letter);
    }
  }
  return clean;
}

// Puts blanks around every character that is no letter, digit or mark of the later rules, replaces
// hyphens within words by "@-@", and keeps full stops in a row together.
Letters SeparateMarks(const Letters& text) {
  Letters out;
  out.reserve(text.size() * 2);
  for (size_t i = 0; i < text.size(); ++i) {
    const Letter& letter = text[i];
    const UChar32 c = letter.code;
    if (c == '-' && i > 0 && i + 1 < text.size() && text[i - 1].is(kAlnumClass) &&
        text[i + 1].is(kAlnumClass)) {
      for (UChar32 mark : {' ', '@', '-', '@', ' '}) {
        out.push_back(mark == ' ' ? kSpace : Letter{.code = mark});
      }
    } else if (c == '.' && i + 1 < text.size() && text[i + 1].code == '.') {
      out.push_back(kSpace);
      for (; i < text.size() && text[i].code == '.'; ++i) out.push_back(kHeldStop);
      --i;
      out.push_back(kSpace);
    } else if (letter.is(kAlnumClass) || letter.is(kSpaceClass) || c == '.' || c == '\'' ||
               c == '`' || c == ',' || c == '-') {
      out.push_back(letter);
    } else {
      out.insert(out.end(), {kSpace, letter, kSpace});
    }
  }
  return out;
}

// A regular expression of fixed width, applied from left to right: a match begins after the last
// one.
template <size_t width, typename Matches, typename Write>
Letters Substitute(const Letters& text, const Matches& matches, const Write& write) {
  Letters out;
  out.reserve(text.size() + text.size() / 4);
  size_t at = 0;
  while (at + width <= text.size()) {
    if (matches(&text[at])) {
      write(&text[at], out);
      at += width;
    } else {
      out.push_back(text[at++]);
    }
  }
  out.insert(out.end(), text.begin() + at, text.end());
  return out;
}

// Separates commas except within numbers.
Letters SeparateCommas(const Letters& text) {
  Letters out = Substitute<2>(
      text, [](const Letter* at) { return !at[0].is(kNumberClass) && at[1].code == ','; },
      [](const Letter* at, Letters& to) {
        to.insert(to.end(), {at[0], kSpace, kComma, kSpace});
      });
  out = Substitute<2>(
      out, [](const Letter* at) { return at[0].code == ',' && !at[1].is(kNumberClass); },
      [](const Letter* at, Letters& to) {
        to.insert(to.end(), {kSpace, kComma, kSpace, at[1]});
      });
  if (out.size() >= 2 && out.back().code == ',' && out[out.size() - 2].is(kNumberClass)) {
    out.back() = kSpace;
    out.insert(out.end(), {kComma, kSpace});
  }
  return out;
}

// Puts blanks before and/or after apostrophes between two characters for which `fits` is true.
template <typename Fits>
Letters SeparateApostrophes(const Letters& text, bool before, bool after, const Fits& fits) {
  return Substitute<3>(
      text, [&](const Letter* at) { return at[1].code == '\'' && fits(at[0], at[2]); },
      [&](const Letter* at, Letters& to) {
        to.push_back(at[0]);
        if (before) to.push_back(kSpace);
        to.push_back(kApostrophe);
        if (after) to.push_back(kSpace);
        to.push_back(at[2]);
      });
}

bool IsAlpha(const Letter& letter) { return letter.is(kAlphaClass) || letter.is(kWordMarkClass); }

// "they 're" (English); "l' eau" (French, Italian); separates the apostrophe in other languages.
Letters SeparateApostrophes(const Letters& text, absl::string_view language) {
  const auto around = [](const Letters& in, const auto& fits) {
    return SeparateApostrophes(in, true, true, fits);
  };
  const auto neither = [](const Letter& a, const Letter& b) { return !IsAlpha(a) && !IsAlpha(b); };
  const auto first = [](const Letter& a, const Letter& b) { return IsAlpha(a) && !IsAlpha(b); };
  const auto both = [](const Letter& a, const Letter& b) { return IsAlpha(a) && IsAlpha(b); };
  if (language == "en") {
    Letters out = around(text, neither);
    out = around(out, [](const Letter& a, const Letter& b) {
      return !IsAlpha(a) && !a.is(kNumberClass) && IsAlpha(b);
    });
    out = around(out, first);
    out = SeparateApostrophes(out, true, false, both);
    // "the 1990 's"
    return SeparateApostrophes(out, true, false, [](const Letter& a, const Letter& b) {
      return a.is(kNumberClass) && b.code == 's';
    });
  }
  if (language == "fr" || language == "it") {
    Letters out = around(text, neither);
    out = around(out, [](const Letter& a, const Letter& b) { return !IsAlpha(a) && IsAlpha(b); });
    out = around(out, first);
    return SeparateApostrophes(out, false, true, both);
  }
  return Substitute<1>(
      text, [](const Letter* at) { return at[0].code == '\''; },
      [](const Letter*, Letters& to) {
        to.insert(to.end(), {kSpace, kApostrophe, kSpace});
      });
}

void AppendEscaped(Word word, std::string& text) {
  for (const Letter& letter : word) {
    switch (letter.code) {
      case '&':
        text += "&amp;";
        break;
      case '|':
        text += "&#124;";
        break;
      case '<':
        text += "&lt;";
        break;
      case '>':
        text += "&gt;";
        break;
      case '\'':
        text += "&apos;";
        break;
      case '"':
        text += "&quot;";
        break;
      case '[':
        text += "&#91;";
        break;
      case ']':
        text += "&#93;";
        break;
      case kHeldStop.code:
        text += '.';
        break;
      default:
        AppendUtf8(letter.code, text);
    }
  }
}

// --- Detokenizer --------------------------------------------------------------------------------

constexpr std::pair<absl::string_view, char> kEntities[] = {
    {"&amp;", '&'}, {"&#124;", '|'},  {"&bar;", '|'},  {"&lt;", '<'},
    {"&gt;", '>'},  {"&apos;", '\''}, {"&quot;", '"'}, {"&#91;", '['},
    {"&bra;", '['}, {"&#93;", ']'},   {"&ket;", ']'},
};

std::string Unescape(absl::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const auto* entity = std::end(kEntities);
    if (text[at] == '&') {
      entity = std::find_if(std::begin(kEntities), std::end(kEntities), [&](const auto& candidate) {
        return text.substr(at, candidate.first.size()) == candidate.first;
      });
    }
    if (entity == std::end(kEntities)) {
      out += text[at++];
    } else {
      out += entity->second;
      at += entity->first.size();
    }
  }
  return out;
}

// Joins words at "@-@". The second of two in a row is a word, since the first has used its blank.
std::string JoinHyphens(const std::vector<Word>& words) {
  std::string text = " ";
  for (Word word : words) {
    const std::string written = Utf8(word);
    if (written == "@-@" && text.back() == ' ') {
      text.back() = '-';
    } else {
      text.append(written).append(" ");
    }
  }
  return text;
}

bool IsMark(UChar32 c, std::u32string_view marks) {
  return marks.find(static_cast<char32_t>(c)) != std::u32string_view::npos;
}

bool HasOnlyMarks(Word word, std::u32string_view marks) {
  return std::all_of(word.begin(), word.end(),
                     [&](const Letter& letter) { return IsMark(letter.code, marks); });
}

// True for opening brackets and the currencies of sacremoses: no blank follows them.
bool IsOpening(Word word) {
  return std::all_of(word.begin(), word.end(), [](const Letter& letter) {
    UVersionInfo age;
    u_charAge(letter.code, age);
    return IsMark(letter.code, U"([{¿¡") ||
           (u_charType(letter.code) == U_CURRENCY_SYMBOL && age[0] <= 7);
  });
}

std::string PrimaryLanguage(absl::string_view code) {
  std::string language(code.substr(0, code.find('-')));
  absl::AsciiStrToLower(&language);
  return language;
}

// Number of quotes of each kind so far: odd ones open, even ones close.
using QuoteCounts = std::map<std::string, int>;

}  // namespace

MosesWords::MosesWords(absl::string_view language_code)
    : language_(PrimaryLanguage(language_code)) {
  const MosesPrefixes& list = FindMosesPrefixes(language_);
  for (absl::string_view word : PartsOf(list.always, ' ')) prefixes_.try_emplace(word, false);
  for (char letter : list.single_letters) prefixes_.try_emplace(std::string(1, letter), false);
  for (int i = 1; i <= list.largest_number; ++i) prefixes_.try_emplace(absl::StrCat(i), false);
  for (absl::string_view word : PartsOf(list.before_number, ' ')) prefixes_.try_emplace(word, true);
}

std::string MosesWords::Tokenize(absl::string_view text) const {
  Letters letters = CleanUp(DecodeLetters(text, language_));
  letters = SeparateMarks(letters);
  letters = SeparateCommas(letters);
  letters = SeparateApostrophes(letters, language_);
  const std::vector<Word> words = WordsOf(letters);

  // True if the full stop at the end of the word belongs to it.
  const auto keeps_stop = [&](size_t i, Word prefix) {
    const bool has_stop = std::any_of(prefix.begin(), prefix.end(),
                                      [](const Letter& letter) { return letter.code == '.'; });
    if (has_stop && std::any_of(prefix.begin(), prefix.end(), IsAlpha)) return true;
    if (i + 1 < words.size() && words[i + 1].front().is(kLowerClass)) return true;
    const auto known = prefixes_.find(Utf8(prefix));
    if (known == prefixes_.end()) return false;
    const bool only_before_number = known->second;
    return !only_before_number || (i + 1 < words.size() && words[i + 1].front().code >= '0' &&
                                   words[i + 1].front().code <= '9');
  };

  std::string out;
  out.reserve(text.size() + text.size() / 2);
  for (size_t i = 0; i < words.size(); ++i) {
    Word word = words[i];
    // Number of letters to split off: a full stop, or at the end of the text also an apostrophe.
    size_t tail = 0;
    if (word.size() > 1 && word.back().code == '.' && !keeps_stop(i, word.first(word.size() - 1))) {
      tail = 1;
    } else if (i + 1 == words.size() && word.size() > 1 && word.back().code == '\'' &&
               word[word.size() - 2].code == '.') {
      tail = 2;
    }
    if (!out.empty()) out += ' ';
    AppendEscaped(word.first(word.size() - tail), out);
    for (const Letter& letter : word.last(tail)) {
      if (!out.empty() && out.back() != ' ') out += ' ';
      AppendEscaped({&letter, 1}, out);
    }
  }
  return out;
}

std::string MosesWords::Detokenize(absl::string_view text) const {
  const Letters tokenized = DecodeLetters(text, language_);
  const Letters letters = DecodeLetters(Unescape(JoinHyphens(WordsOf(tokenized))), language_);
  const std::vector<Word> words = WordsOf(letters);
  const bool takes_apostrophe = language_ == "fr" || language_ == "it" || language_ == "ga";
  QuoteCounts quotes;
  std::string out;
  absl::string_view blank = " ";  // before the next word
  for (size_t i = 0; i < words.size(); ++i) {
    const Word word = words[i];
    const UChar32 first = word.front().code;
    bool left = false;   // no blank before this word
    bool right = false;  // no blank after it
    if (IsCjk(first) && language_ != "ko") {
      left = i > 0 && IsCjk(words[i - 1].back().code);
    } else if (IsOpening(word)) {
      right = true;
    } else if (HasOnlyMarks(word, U",.?!:;\\%}])")) {
      left = true;
      if (language_ == "fr" && word.size() == 1 && IsMark(first, U"?!:;\\%")) out += ' ';
    } else if (language_ == "en" && i > 0 && first == '\'' && word.size() > 1 &&
               word[1].is(kAlphaClass)) {
      left = true;
    } else if (takes_apostrophe && i + 1 < words.size() && word.size() > 1 &&
               word.back().code == '\'' && word[word.size() - 2].is(kAlphaClass) &&
               words[i + 1].front().is(kAlphaClass)) {
      right = true;
    } else if (HasOnlyMarks(word, U"'\"„“`")) {
      // „ and “ count as one kind of quote.
      int& count = quotes[HasOnlyMarks(word, U"„“") ? "\"" : Utf8(word)];
      if (count % 2 == 1) {
        left = true;
        ++count;
      } else if (language_ == "en" && word.size() == 1 && first == '\'' && i > 0 &&
                 words[i - 1].back().code == 's') {
        left = true;  // "the Jones' car"
      } else {
        right = true;
        ++count;
      }
    }
    absl::StrAppend(&out, left ? "" : blank, Utf8(word));
    blank = right ? "" : " ";
  }
  // Removes blanks at the start, and double blanks from the French rules.
  std::string clean;
  clean.reserve(out.size());
  for (char c : out) {
    if (c != ' ' || (!clean.empty() && clean.back() != ' ')) clean += c;
  }
  return clean;
}

}  // namespace linnet::model
