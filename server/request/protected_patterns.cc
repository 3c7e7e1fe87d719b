#include "server/request/protected_patterns.h"

#include <re2/re2.h>

#include <algorithm>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "model/runtime/tokenizer/apostrophes.h"
#include "model/runtime/tokenizer/protected_spans.h"
#include "server/base/errors.h"

namespace linnet::server {
namespace {

// Limits on the patterns of a request, so that a search takes no longer than the translation: the
// worst patterns that were found take 30 s per MB, a translation 50 s.
constexpr int kMaxPatterns = 16;
constexpr size_t kMaxPatternBytes = 256;
constexpr int kMaxInstructions = 4096;  // of all together
constexpr int kMaxMatches = 256;        // in a text
constexpr size_t kMaxMatchBytes = 512;
constexpr int64_t kMaxPatternMemory = 512 << 10;  // while it searches

// One alternation, of which the first that matches counts. Where a match may begin, and which
// matches are none, Accepted decides, since RE2 does not look around.
constexpr const char* kBuiltIn =
    // Mustache, i18next, and templates: {{name}}, {{{name}}}, ${name}, %{name}, #{name}, @{name},
    // $t(key), {% if x %}, <%= name %>, [% name %], {!! $name !!}, [[name]].
    R"re(\{\{(?:[^{}\n]|\{\{[^{}\n]+\}\}|\{[^{}\n]*\})+\}\}\}?|\{\{\{[^{}\n]+\}\}\}|[$%#@]\{[^{}\n]+\}|\$t\([^()\n]+\))re"
    R"re(|\{%(?:[^%{\n]|%[^}\n]|\{[^%\n])*%\}|<%[^%\n]*%>|\[%[^%\n]*%\]|\{!![^{}\n]*!!\}|\[\[[^\[\]\s]+\]\])re"
    // PHP, FreeMarker, Jinja's comments, Svelte and Smarty: <?= $x ?>, <#if x>, {# x #}, {#if x},
    // {if $x}.
    R"re(|<\?(?:php\b|=)[^\n]*?\?>|</?#[a-z]\w*[^<>\n]*>|\{#[^{}\n]*#\}|\{[#:/][a-z]+ [^{}\n]*\})re"
    R"re(|\{(?:else)?(?:if|for|foreach) [^{}\n]*\$[^{}\n]*\})re"
    // BBCode: [b], [/b], [url=a], [*].
    R"re(|\[/?(?:[bius*]|url|img|code|quote|colou?r|size|font|list|email|attachment|center|spoiler)(?:=[^\[\]\n]*)?\])re"
    // LaTeX and escapes: $x_i$, $$x$$, \(x\), \alpha, \n.
    R"re(|\$\$[^$\n]+\$\$|\$[^\s$](?:[^$\n]*[^\s$])?\$\B|\\\((?:[^\\\n]|\\[^()\n])*\\\))re"
    R"re(|\\(?:[A-Za-z][a-z]|[A-Z]{2})[A-Za-z]*\*?|(?:\\[nrt])+)re"
    // $name, $1, %name%, %%name%%, ##name##, $NAME$, :name, and names and tags in angle brackets:
    // <name>, </b>, <a b="c">, <0>.
    R"re(|\$[1-9]\b|\$[A-Za-z_]\w+\$?|%%[A-Za-z_]\w+%%|%[A-Za-z_]\w+%|##[A-Za-z_]\w+##|:[A-Za-z_]\w+:?)re"
    R"re(|<</?[A-Za-z][\w:.\-]*>>|</?[A-Za-z][\w:.\-]*(?:[ \t]+[\w:.\-]+=(?:"[^"<>\n]*"|'[^'<>\n]*'))*[ \t]*/?>|</?\d{1,2}/?>)re"
    // Code in marks, and references: `name`, ``name``, `name`_, &amp;. Marks of a wiki: '''a'''.
    R"re(|``[^`\n]+``|`[^`\s](?:[^`\n]{0,100}[^`\s])?`_{0,2}|'{2,5}|&(?:[A-Za-z]\w{1,30}|#[0-9A-Fa-fx]{1,8});)re"
    // Lines to fill in, and leaders of dots.
    R"re(|_{3,}(?:[-/. ]_{2,})*|\.{4,})re"
    // ICU, Python and Rust: {}, {0}, {name!r:>8}, {n, plural, one {# file} other {# files}}.
    R"re(|\{[ \t]*[\w.$:!?<>^#+\-\[\]@/*|&=~()]*[ \t]*(?:,[^{}]*(?:\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\}[^{}]*)*)?\})re"
    // printf, strftime, Qt, Python, Ruby, Mozilla: %s, %-5.2f, %1$s, %lld, %(name)s, %<name>s, %@,
    // %Y-%m-%d, %1, %S, %%.
    R"re(|%[A-Za-z](?:[-/:. ]?%[A-Za-z])+)re"
    R"re(|%(?:\d{1,2}\$|\(\w+\)|<\w+>)?[-+0#]{0,4}(?:\d{1,4}|\*)?(?:\.(?:\d{1,4}|\*))?(?:hh?|ll?|[qLjzt])?[diouxXeEfFgGaAcrsSpmn@]|%L?[1-9]\b|%%)re"
    R"re(|(?:https?|ftp|file|mailto|git|ssh)://?[^\s<>"“”«»]+|www\.[^\s<>"“”«»]+)re"
    R"re(|[\w.+\-]+@[\w\-]+(?:\.[\w\-]+)+)re"
    // Paths: /etc/passwd, ./a, ~/a, C:\a.
    R"re(|(?:~|\.{1,2})?/[\w.@+\-${}]+(?:/[\w.@+\-${}]*)*|[A-Za-z]:\\[^\s<>"|?*]+)re"
    R"re(|[@#][\pL_][\pL\pN_]*)re"
    // Phone numbers, cards and IBANs in groups of digits; codes.
    R"re(|\b[A-Z]{2}\d{2}(?: [A-Z0-9]{4}){2,7}(?: [A-Z0-9]{1,3})?\b)re"
    R"re(|\+\d{1,3}(?:[ \-]?\(?\d{1,8}\)?){1,6}\b|\(0?\d{2,4}\) ?\d{3,8}(?:[ \-]\d{2,8})*\b)re"
    R"re(|\b\d{4}(?:[ \-]\d{4}){2,4}\b|\b97[89] \d{1,5} \d{1,7} \d{1,7} [\dX]\b)re"
    R"re(|(?:[A-Za-z]+[-_./:])*[A-Za-z]*[0-9][A-Za-z0-9]*(?:[-_./:][A-Za-z0-9]+)*|[A-Za-z]\w*_\w+)re";

// The tags among them, which decide what of a text is shown. They match at their start.
constexpr const char* kTags =
    R"re(^(?:\{%|\{\{[-~]?\s*(?:[#/^!]|else\b|(?:if|range|with|block|define)\s)|\{#|\{/|\{:(?:else|then|catch)\b)re"
    R"re(|\{(?:else\}|(?:else)?(?:if|for|foreach) )|<%(?:[^=\-]|-\s*(?:if|unless|el|end|for|while|case|when)\b))re"
    R"re(|<\?php\s*(?:if|else|end|for|while|switch|case|\})|</?#)re"
    // </b>, <b x="y">, <b>; <file>, <x/> and <x y="z"/> may stand for words.
    R"re(|</\w|<[A-Za-z][^<>]*=[^<>]*[^/<>]>|<(?:abbr|[abiqspu]|big|br|cite|code|d[dlt]|div|em|font|h[1-6r])re"
    R"re(|kbd|li|[ou]l|pre|small|span|strong|su[bp]|t[dhrt]|table)\s*/?>))re";

// Tags that fill in something: {% url 'home' %}.
constexpr const char* kValues =
    R"re(^\{%[-+~]?\s*(?:trans|translate|url|static|now|cycle|firstof|include|get_\w+|asset|path|echo|print|t|_))re"
    R"re([\s(]+[^\s%\-+~])re";

// References that are no letters, and letters.
constexpr const char* kPunctuation =
    R"re(^&(?:#\w+|lt|gt|amp|quot|apos|nbsp|[lr][sd]quo|hellip|[mn]dash|middot|bull|copy|reg|trade);)re";
constexpr const char* kLetter =
    R"re(^&(?:[A-Za-z](?:grave|acute|circ|tilde|uml|ring|cedil|caron|slash)|[A-Za-z]{2}lig|shy)re"
    R"re(|#(?:19[2-9]|2\d\d|[xX][c-fC-F][0-9a-fA-F]));)re";

bool Matches(absl::string_view text, const RE2& pattern) {
  return RE2::PartialMatch(re2::StringPiece(text.data(), text.size()), pattern);
}

// False for a letter, and for what may be no reference: "R&Ds;".
bool IsPunctuation(absl::string_view reference) {
  static const RE2& punctuation = *new RE2(kPunctuation);
  return Matches(reference, punctuation);
}

bool IsLetter(absl::string_view reference) {
  static const RE2& letter = *new RE2(kLetter);
  return Matches(reference, letter);
}

// False for "[[name]]" and "[% name %]".
bool IsBbCode(absl::string_view match) {
  return match[0] == '[' && !absl::StrContains("[%", match[1]);
}

// Tells whether the other end of a tag of BBCode is in a text, "[/b]" for "[b]" or the other way
// round: a[i] is no tag. Looks for each once.
class OtherEnds {
 public:
  explicit OtherEnds(absl::string_view text) : text_(text) {}
  bool Has(absl::string_view tag) {
    std::string end = "[/list";  // of "[*]"
    if (tag[1] == '/') {
      end = absl::StrCat("[", tag.substr(2, tag.size() - 3));
    } else if (tag != "[*]") {
      end = absl::StrCat("[/", tag.substr(1, tag.find_first_of("=]") - 1), "]");
    }
    const auto [found, is_new] = found_.try_emplace(std::move(end), false);
    if (is_new) found->second = absl::StrContains(text_, found->first);
    return found->second;
  }

 private:
  const absl::string_view text_;
  absl::flat_hash_map<std::string, bool> found_;
};

// True for "\n", and false for "\nu" of LaTeX.
bool IsEscape(absl::string_view match) {
  return match.size() > 1 && match[0] == '\\' && absl::StrContains("nrt", match[1]) &&
         (match.size() == 2 || match[2] == '\\');
}

// True for "$x_i$" and "$f : A$", but not for "$5 or 6$" and "$name is the name of $".
bool IsFormula(absl::string_view match) {
  if (!absl::StrContains(match, ' ')) return true;
  if (absl::ascii_isdigit(match[1]) && match.find_first_of("\\^_=<>+") == match.npos) return false;
  constexpr size_t kShortWord = 3;
  const std::vector<absl::string_view> words = absl::StrSplit(match, ' ');
  return std::count_if(words.begin(), words.end(), [](absl::string_view word) {
           return word.size() >= kShortWord &&
                  std::all_of(word.begin(), word.end(), absl::ascii_isalpha);
         }) < 2;
}

// "$name" of "$name is the name of $"; empty if it begins with no name.
absl::string_view NameOf(absl::string_view match) {
  size_t end = 1;
  while (end < match.size() && (absl::ascii_isalnum(match[end]) || match[end] == '_')) ++end;
  return end > 2 && !absl::ascii_isdigit(match[1]) ? match.substr(0, end) : "";
}

bool IsDigits(absl::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), absl::ascii_isdigit);
}

// True for snake_case, but not for "Leser_innen" of German.
bool IsIdentifier(absl::string_view word) {
  return absl::StrContains(word, '_') && !absl::StrContains(word, "___") &&
         !absl::EndsWith(word, "_in") && !absl::EndsWith(word, "_innen");
}

// A word of letters, digits and the marks of codes: true for one that is no word, number, date or
// amount, which a language writes in its own way.
bool IsCode(absl::string_view word) {
  const auto digits = std::count_if(word.begin(), word.end(), absl::ascii_isdigit);
  const auto letters = std::count_if(word.begin(), word.end(), absl::ascii_isalpha);
  if (letters > 0 && IsIdentifier(word)) return true;
  if (digits == 0) return false;
  const std::vector<absl::string_view> groups = absl::StrSplit(word, absl::ByAnyChar("-_./:"));
  if (letters == 0) {
    if (groups.size() == 1) return digits >= 6;
    const bool dots = std::count(word.begin(), word.end(), '.') + 1 == std::ssize(groups);
    const bool hyphens = std::count(word.begin(), word.end(), '-') + 1 == std::ssize(groups);
    if (dots) {
      const bool byte_groups = std::all_of(groups.begin(), groups.end(), [](absl::string_view g) {
        return g.size() <= 3 && (g.size() < 3 || g <= "255");
      });
      if (groups.size() == 4 && byte_groups) return true;  // an IP address
      const bool thousands = std::all_of(groups.begin() + 1, groups.end(),
                                         [](absl::string_view g) { return g.size() == 3; });
      const bool date = groups.size() == 3 && groups[0].size() <= 2 && groups[1].size() <= 2 &&
                        (groups[2].size() == 4 || groups[2].size() == 2) && groups[0] <= "31";
      return groups.size() >= 3 && !thousands && (!date || groups[2].size() != 4);
    }
    return hyphens ? groups.size() >= 3 || digits >= 9 : digits >= 9;
  }
  // 5kg, 20th and 1990s are words, v1.2, BE0768880101 and x86_64 are codes.
  size_t number = 0;
  while (number < word.size() && (absl::ascii_isdigit(word[number]) || word[number] == '.'))
    ++number;
  const absl::string_view unit = word.substr(number);
  if (number > 0 && unit.size() <= 3 && std::all_of(unit.begin(), unit.end(), absl::ascii_isalpha))
    return number >= 6;
  const bool version =
      (word[0] == 'v' || word[0] == 'V') && groups.size() > 1 && IsDigits(groups[0].substr(1));
  int changes = 0;
  for (size_t i = 1; i < word.size(); ++i) {
    if (absl::ascii_isalnum(word[i]) && absl::ascii_isalnum(word[i - 1]))
      changes += absl::ascii_isdigit(word[i]) != absl::ascii_isdigit(word[i - 1]) ? 1 : 0;
  }
  return version || digits >= 3 || changes >= 2;
}

// Cuts what ends a sentence or a bracket off a URL or a path.
absl::string_view Trimmed(absl::string_view match) {
  constexpr absl::string_view kOpening = "([{", kClosing = ")]}", kMarks = ".,;:!?'";
  int64_t unopened[3] = {};
  for (const char c : match) {
    if (const size_t kind = kClosing.find(c); kind != absl::string_view::npos) ++unopened[kind];
    if (const size_t kind = kOpening.find(c); kind != absl::string_view::npos) --unopened[kind];
  }
  while (match.size() > 1) {
    const size_t kind = kClosing.find(match.back());
    const bool closes = kind != absl::string_view::npos && unopened[kind]-- > 0;
    if (!closes && kMarks.find(match.back()) == absl::string_view::npos) break;
    match.remove_suffix(1);
  }
  return match;
}

// The part of a match that is protected; empty if none is.
absl::string_view Accepted(absl::string_view text, absl::string_view match, OtherEnds& ends) {
  const size_t begin = match.data() - text.data();
  const unsigned char before = begin == 0 ? ' ' : text[begin - 1];
  const size_t end = begin + match.size();
  const unsigned char after = end == text.size() ? ' ' : text[end];
  const auto in_word = [](unsigned char c) {
    return absl::ascii_isalnum(c) || c == '_' || c >= 0x80;
  };
  const char first = match.front(), second = match.size() > 1 ? match[1] : ' ';
  if (first == '{' || second == '{' || absl::StartsWith(match, "$t(")) return match;
  if (IsBbCode(match)) return ends.Has(match) ? match : "";
  if (first == '[' || IsEscape(match)) return match;
  if (first == '$' && match.size() == 2 && absl::StrContains(",.-", after) &&
      end + 1 < text.size() && absl::ascii_isdigit(text[end + 1]))
    return "";  // $5.20
  if (first == '$' && second != '$' && match.back() == '$' && !IsFormula(match))
    match = NameOf(match);
  if (first == '$' || first == '`') return in_word(before) ? "" : match;
  if (first == '\'') {
    const bool opens = !absl::StrContains(" \t\n\"),;.:!?]", after);
    const bool closes = !absl::StrContains(" \t\n\"(=[,", before);
    return opens != closes ? match : "";
  }
  if (first == '\\') return in_word(before) || before == '\\' ? "" : match;
  if (first == ':') return before == ' ' || before == '(' || before == '"' ? match : "";
  if (first == '&') {
    if (model::EndOfApostrophe(text, begin) > begin) return "";
    const bool apart = !in_word(before) && !in_word(after);
    return apart || IsPunctuation(match) || IsLetter(match) ? match : "";
  }
  if (first == '<' || (first == '.' && absl::StartsWith(match, "...."))) return match;
  if (first == '_') return in_word(before) || in_word(after) ? "" : match;
  if (first == '%') {
    const bool variable = second == '(' || match.find('$') != absl::string_view::npos ||
                          match == "%s" || match == "%d";
    const bool amount = absl::ascii_isdigit(before) && match != "%%";  // 50% de
    return amount || (!variable && in_word(after)) ? "" : match;
  }
  if (first == '@' || first == '#') return in_word(before) || before == '&' ? "" : match;
  if (match.find("://") != absl::string_view::npos || absl::StartsWith(match, "www.") ||
      match.find('@') != absl::string_view::npos || match.find('\\') != absl::string_view::npos)
    return in_word(before) ? "" : Trimmed(match);
  if (first == '/' || first == '~' || (first == '.' && match.find('/') < 3)) {
    const bool several = std::count(match.begin(), match.end(), '/') > 1;
    const bool fits = !in_word(before) && before != ')' && before != '<';
    return fits && (several || first != '/' || match.size() > 3) ? Trimmed(match) : "";
  }
  if (in_word(before) || in_word(after)) return "";
  if (match.find(' ') != absl::string_view::npos || first == '+' || first == '(') {
    const auto digits = std::count_if(match.begin(), match.end(), absl::ascii_isdigit);
    return digits >= 6 ? match : "";
  }
  return IsCode(match) ? match : "";
}

bool TouchesWord(absl::string_view text, absl::string_view match) {
  const size_t begin = match.data() - text.data(), end = begin + match.size();
  return model::TouchesWord(text, static_cast<int>(begin), /*before=*/true) ||
         model::TouchesWord(text, static_cast<int>(end), /*before=*/false);
}

// True for "\n" as a word of a sentence: "a tab (\t)".
bool IsMentioned(absl::string_view text, absl::string_view match) {
  const size_t begin = match.data() - text.data(), end = begin + match.size();
  return begin > 0 && absl::StrContains(" ([\"'`", text[begin - 1]) &&
         (end == text.size() || absl::StrContains(" )],;.:\"'`", text[end]));
}

using Kind = ProtectedPatterns::Match::Kind;

Kind KindOf(absl::string_view text, absl::string_view match) {
  static const RE2& tags = *new RE2(kTags);
  static const RE2& values = *new RE2(kValues);
  const char first = match[0];
  if (first == '&' && IsLetter(match)) return Kind::kWord;
  if (first == '&') return TouchesWord(text, match) ? Kind::kTag : Kind::kVariable;
  if (IsEscape(match) && IsMentioned(text, match)) return Kind::kVariable;
  if (first == '\'' || IsBbCode(match) || IsEscape(match)) return Kind::kTag;
  if (first != '<' && first != '{') return Kind::kVariable;
  if (Matches(match, tags)) return Matches(match, values) ? Kind::kVariable : Kind::kTag;
  // <b> where it touches a word: <file> may stand for one.
  const bool angled = match.size() > 2 && first == '<' && match[1] != '%' && match[1] != '?';
  return angled && match[1] != '<' && TouchesWord(text, match) ? Kind::kTag : Kind::kVariable;
}

absl::Status BadPattern(int index, const std::string& message) {
  return BadField(absl::StrCat("protected_patterns[", index, "]"), Reason::kBadSetting, message);
}

}  // namespace

ProtectedPatterns::ProtectedPatterns() = default;
ProtectedPatterns::~ProtectedPatterns() = default;

absl::StatusOr<std::shared_ptr<const ProtectedPatterns>> ProtectedPatterns::Make(
    const google::protobuf::RepeatedPtrField<std::string>& patterns) {
  if (patterns.size() > kMaxPatterns) {
    return BadField("protected_patterns", Reason::kBadSetting,
                    absl::StrCat("holds ", patterns.size(), " patterns, at most ", kMaxPatterns,
                                 " are accepted: join some with |"));
  }
  auto made = std::make_shared<ProtectedPatterns>();
  RE2::Options options;
  options.set_log_errors(false);
  options.set_never_capture(true);
  options.set_max_mem(kMaxPatternMemory);
  for (int i = 0; i < patterns.size(); ++i) {
    const std::string& pattern = patterns[i];
    if (pattern.empty()) return BadPattern(i, "is empty: write a pattern, or leave it out");
    if (pattern.size() > kMaxPatternBytes) {
      return BadPattern(i, absl::StrCat("has ", pattern.size(), " bytes, at most ",
                                        kMaxPatternBytes, " are accepted: shorten it"));
    }
    auto own = std::make_unique<const RE2>(pattern, options);
    const bool too_large = own->error_code() == RE2::ErrorPatternTooLarge;
    if (!own->ok() && !too_large) {
      return BadPattern(i, absl::StrCat("is no regular expression of RE2: ", own->error(),
                                        ": write it in the syntax of RE2, which has neither "
                                        "look-around nor back-references"));
    }
    made->instructions_ += too_large ? kMaxInstructions : own->ProgramSize();
    if (too_large || made->instructions_ > kMaxInstructions) {
      return BadPattern(
          i, absl::StrCat("is too large: all patterns together may have ", kMaxInstructions,
                          " instructions: use fewer repetitions and classes of Unicode"));
    }
    made->own_.push_back(std::move(own));
  }
  return made;
}

int64_t ProtectedPatterns::bytes() const { return std::ssize(own_) * kMaxPatternMemory; }

void ProtectedPatterns::FindOwn(absl::string_view text, std::vector<Match>& found) const {
  const re2::StringPiece all(text.data(), text.size());
  const size_t size = text.size();
  int matches = 0;
  for (const auto& pattern : own_) {
    re2::StringPiece match;
    for (size_t at = 0; at < size;) {
      // A search reads no further than a match may, since one that reads to the end of the text for
      // each match takes quadratic time.
      const size_t end = std::min(at + kMaxMatchBytes, size);
      if (!pattern->Match(all, at, end, RE2::UNANCHORED, &match, 1)) {
        at = end == size ? size : at + kMaxMatchBytes / 2;
        continue;
      }
      auto begin = static_cast<size_t>(match.data() - text.data());
      if (begin > at + kMaxMatchBytes / 2 && end < size) {  // it may be longer
        at = begin;
        continue;
      }
      size_t behind = begin + match.size();
      at = std::max(behind, begin + 1);
      if (match.empty()) continue;
      // "\C" matches a part of a character.
      const auto in_character = [&](size_t place) {
        return place < size && (static_cast<unsigned char>(text[place]) & 0xC0) == 0x80;
      };
      while (begin > 0 && in_character(begin)) --begin;
      while (in_character(behind)) ++behind;
      const bool rest = ++matches > kMaxMatches;
      found.push_back(
          {static_cast<int>(begin), static_cast<int>(rest ? size : behind), Match::Kind::kWord});
      if (rest) return;
    }
  }
}

std::vector<ProtectedPatterns::Match> ProtectedPatterns::Find(absl::string_view text) const {
  static const RE2& built_in = *new RE2(kBuiltIn);
  std::vector<Match> found;
  const re2::StringPiece all(text.data(), text.size());
  re2::StringPiece match;
  OtherEnds ends(text);
  for (size_t at = 0;
       at < text.size() && built_in.Match(all, at, text.size(), RE2::UNANCHORED, &match, 1);) {
    const size_t begin = match.data() - text.data();
    const absl::string_view whole(match.data(), match.size());
    const absl::string_view accepted = Accepted(text, whole, ends);
    if (!accepted.empty()) {
      const auto end = static_cast<int>(begin + accepted.size());
      found.push_back({static_cast<int>(begin), end, KindOf(text, accepted)});
    }
    // "$5" is not a part of "$5 or $name$", which is no formula.
    const bool skips = accepted.empty() && whole[0] != '$';
    at = begin + std::max<size_t>(skips ? whole.size() : accepted.size(), 1);
  }
  // "$5" is a price in a text without "$1".
  static const RE2& first = *new RE2(R"re(\$1(?:[^\w.,]|[.,](?:\D|$)|$))re");
  if (!Matches(text, first)) {
    std::erase_if(found, [&](const Match& each) {
      return each.end == each.begin + 2 && text[each.begin] == '$' &&
             absl::ascii_isdigit(text[each.begin + 1]);
    });
  }
  FindOwn(text, found);
  return found;
}

}  // namespace linnet::server
