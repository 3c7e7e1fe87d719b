#pragma once

#include <string>
#include <unordered_map>
#include <unordered_set>

#include "absl/hash/hash.h"
#include "absl/strings/string_view.h"
#include "model/runtime/text/abbreviation_lists.h"

namespace linnet::model {

// Tells words with a full stop apart by the lists of a language. Words are compared as a whole; an
// entry in lower case also matches a word with a capital, and an entry with one capital a word in
// capitals. Immutable, so thread-safe.
class Abbreviations {
 public:
  enum class Kind {
    kNone,
    kNeverLast,     // "Dr.": another word always follows
    kSeldomLast,    // "Inc.": ends a sentence only where a starter follows
    kBeforeNumber,  // "No.": an abbreviation only where a number follows
    kClosing,       // "etc.": ends a sentence where a capital follows
    kMeasure,       // "mln.": like kClosing behind a number, otherwise like kSeldomLast
  };

  // The lists of a language (primary subtag) and what CLDR adds to them. They are made at the first
  // call for a language and kept. A language that nobody knows has empty ones.
  static const Abbreviations& Of(absl::string_view language);

  Abbreviations(const AbbreviationLists& lists, absl::string_view language);

  // The kind of a word with its stop and without white space: "z.B." also stands for "z. B.". Of a
  // compound ("Kunden-Nr.") the last part counts.
  Kind KindOf(absl::string_view word) const;
  // True for a word that often starts a sentence: "The", or "the".
  bool IsStarter(absl::string_view word) const { return starters_.contains(word); }
  absl::string_view any_starter() const { return any_starter_; }
  bool IsLowerCaseStarter(absl::string_view word) const { return small_starters_.contains(word); }
  // True for the full name of a month or of a day of the week, in any case.
  bool IsMonth(absl::string_view word) const;
  bool IsDay(absl::string_view word) const;

  bool ordinals_with_stop() const { return ordinals_with_stop_; }
  bool roman_ordinals_with_stop() const { return roman_ordinals_with_stop_; }
  bool dates_with_stop() const { return dates_with_stop_; }
  bool nouns_with_capital() const { return nouns_with_capital_; }
  bool goes_on_after_mark() const { return goes_on_after_mark_; }
  bool vowelless_words() const { return vowelless_words_; }

 private:
  void Add(absl::string_view words, Kind kind);
  void AddFromCldr(const std::string& language, absl::string_view excluded);

  // The containers of the standard library: they stay valid if memory runs out while they grow.
  struct Hash {
    using is_transparent = void;
    size_t operator()(absl::string_view word) const { return absl::HashOf(word); }
  };
  struct Equal {
    using is_transparent = void;
    bool operator()(absl::string_view a, absl::string_view b) const { return a == b; }
  };
  using Words = std::unordered_set<std::string, Hash, Equal>;

  std::unordered_map<std::string, Kind, Hash, Equal> words_;
  Words suffixes_before_number_;  // "str." of "Hauptstr."
  Words starters_;
  Words small_starters_;
  absl::string_view any_starter_ = "The";
  Words months_;
  Words days_;
  bool ordinals_with_stop_ = false;
  bool roman_ordinals_with_stop_ = false;
  bool dates_with_stop_ = false;
  bool nouns_with_capital_ = false;
  bool goes_on_after_mark_ = false;
  bool vowelless_words_ = false;
};

}  // namespace linnet::model
