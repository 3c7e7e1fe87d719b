#pragma once

#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace linnet::model {

// Returns the canonical BCP-47 form of a language code, or nothing if it is none. It reads what
// people and systems write: any case, underscores ("pt_br" is "pt-BR"), codes of POSIX with an
// encoding ("de_DE.UTF-8" is "de-DE", "sr_RS@latin" is "sr-Latn-RS"), codes that were renamed ("iw"
// is "he", "in" is "id") and those of three letters where there are two ("deu" is "de"). The names
// are those of CLDR, in ICU.
std::optional<std::string> CanonicalLanguage(absl::string_view written);

// A language code with what CLDR expects of the parts that it leaves out: the script and the region
// of "zh-TW" are Hant and TW, those of "pt" are Latn and BR.
struct LanguageParts {
  explicit LanguageParts(absl::string_view code);

  std::string language;  // "nb" is "no"; the code as it is if it is not one
  std::string script, region;
  bool names_script = false, names_region = false;  // the code itself has it
};

// Measures how well a model for the language `offered` answers a request for `asked`: 0 for the
// same code, more for one that is farther away, and nothing if it is another language, script or
// region.
//
//   1  the same script and region, where both leave out what CLDR expects: zh-Hans for zh-CN, pt-BR
//      for pt
//   2  the same script without a region: zh-Hant for zh-HK, en for en-GB
//   3  the language alone in spite of another script: zh for zh-TW
//   4  a region that was not asked for: pt-PT for pt
std::optional<int> LanguageDistance(const LanguageParts& offered, const LanguageParts& asked);

}  // namespace linnet::model
