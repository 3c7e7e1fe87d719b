#include "model/runtime/text/alphabet.h"

#include <unicode/uchar.h>
#include <unicode/ulocdata.h>
#include <unicode/uniset.h>
#include <unicode/uset.h>
#include <unicode/utf8.h>

#include <algorithm>
#include <cstdint>
#include <map>

namespace linnet::model {

LetterCounts CountLetters(absl::string_view text) {
  std::map<char32_t, int> counts;
  const auto size = static_cast<int32_t>(text.size());
  for (int32_t i = 0; i < size;) {
    UChar32 c = 0;
    U8_NEXT(text.data(), i, size, c);
    if (c >= 0 && u_isalpha(c)) ++counts[u_foldCase(c, U_FOLD_CASE_DEFAULT)];
  }
  return {counts.begin(), counts.end()};
}

struct Alphabet::Set {
  icu::UnicodeSet letters;
};

Alphabet::Alphabet(const std::string& language) {
  std::string locale = language;
  std::replace(locale.begin(), locale.end(), '-', '_');
  UErrorCode error = U_ZERO_ERROR;
  ULocaleData* const data = ulocdata_open(locale.c_str(), &error);
  auto set = std::make_unique<Set>();
  ulocdata_getExemplarSet(data, set->letters.toUSet(), 0, ULOCDATA_ES_STANDARD, &error);
  ulocdata_close(data);
  // For a language that it does not know, ICU has the set of the root, which is no alphabet.
  if (U_FAILURE(error) || error == U_USING_DEFAULT_WARNING || set->letters.isEmpty()) return;
  set->letters.freeze();
  set_ = std::move(set);
}

Alphabet::~Alphabet() = default;

int Alphabet::CountOutside(const LetterCounts& letters) const {
  if (set_ == nullptr) return 0;
  int outside = 0;
  for (const auto& [letter, count] : letters) {
    if (!set_->letters.contains(static_cast<UChar32>(letter))) outside += count;
  }
  return outside;
}

}  // namespace linnet::model
