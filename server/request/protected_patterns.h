#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/repeated_field.h"

namespace re2 {
class RE2;
}

namespace linnet::server {

// What a translation must not change: variables of printf, Python, Rust, ICU's MessageFormat,
// mustache, i18next and MediaWiki, tags of templates, escapes, commands and formulas of LaTeX,
// URLs, e-mail addresses, paths, @names, #tags, long digit strings, IBAN, IP addresses, versions
// and codes of letters and digits, and what the patterns of a request match. Thread-safe.
class ProtectedPatterns {
 public:
  // Those that every request has.
  ProtectedPatterns();
  // With those of TranslateRequest.protected_patterns; INVALID_ARGUMENT names the one that is none
  // or too large.
  static absl::StatusOr<std::shared_ptr<const ProtectedPatterns>> Make(
      const google::protobuf::RepeatedPtrField<std::string>& patterns);
  ~ProtectedPatterns();

  // Bytes [begin, end) of a text.
  struct Match {
    // A tag, such as {% if x %} or <b> at a word, is no part of the word that it touches, nor of
    // the sentence that it begins or ends. An ending or unit at a variable is a part of it ("%ds",
    // "%spx"). A match of a pattern of the request takes in every word that it touches, and so
    // does a letter that is written as a reference: "M&uuml;nchen".
    enum class Kind { kTag, kVariable, kWord };
    int begin = 0;
    int end = 0;
    Kind kind = Kind::kVariable;
  };

  // Finds them in a text of about 4 KiB, in any order; they may overlap. The limit on the matches
  // of the patterns of a request is for each text.
  std::vector<Match> Find(absl::string_view text) const;
  // The work of a search (model::TextSplitter::Step): a quarter of that of tokenising the text, and
  // more with the patterns of a request.
  int64_t SearchWork(int64_t bytes) const { return bytes / 4 + bytes * instructions_ / 256; }
  // Upper bound on the memory of the patterns of the request.
  int64_t bytes() const;

 private:
  void FindOwn(absl::string_view text, std::vector<Match>& found) const;

  std::vector<std::unique_ptr<const re2::RE2>> own_;
  int64_t instructions_ = 0;  // of own_
};

}  // namespace linnet::server
