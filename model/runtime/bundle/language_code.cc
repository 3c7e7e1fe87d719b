#include "model/runtime/bundle/language_code.h"

#include <unicode/locid.h>

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace linnet::model {
namespace {

// Longer codes are not read: RFC 5646, 4.4.1 has 35 characters, and POSIX adds an encoding.
constexpr size_t kMaxBytes = 64;

// Returns the locale of a code, which is bogus if it is none.
icu::Locale MakeLocale(absl::string_view written) {
  icu::Locale none;
  none.setToBogus();
  absl::string_view code = absl::StripAsciiWhitespace(written);
  if (code.empty() || code.size() > kMaxBytes) return none;
  // POSIX: language_REGION.encoding@modifier. Of the modifiers those of scripts are read.
  const absl::string_view tag = code.substr(0, code.find_first_of(".@"));
  std::string name(tag);
  if (const size_t at = code.find('@'); at != code.npos) {
    const absl::string_view modifier = code.substr(at + 1);
    const char* const script = absl::EqualsIgnoreCase(modifier, "latin")      ? "Latn"
                               : absl::EqualsIgnoreCase(modifier, "cyrillic") ? "Cyrl"
                                                                              : nullptr;
    if (script != nullptr) {
      const size_t language = std::min(tag.find_first_of("-_"), tag.size());
      name = absl::StrCat(tag.substr(0, language), "-", script, tag.substr(language));
    }
  }
  std::replace(name.begin(), name.end(), '_', '-');
  UErrorCode error = U_ZERO_ERROR;
  const icu::Locale parsed = icu::Locale::forLanguageTag(name, error);
  if (U_FAILURE(error) || parsed.isBogus()) return none;
  icu::Locale canonical = icu::Locale::createCanonical(parsed.getName());
  const size_t size = absl::string_view(canonical.getLanguage()).size();
  return size == 2 || size == 3 ? canonical : none;
}

}  // namespace

std::optional<std::string> CanonicalLanguage(absl::string_view written) {
  const icu::Locale locale = MakeLocale(written);
  if (locale.isBogus()) return std::nullopt;
  UErrorCode error = U_ZERO_ERROR;
  std::string tag = locale.toLanguageTag<std::string>(error);
  if (U_FAILURE(error) || tag.empty()) return std::nullopt;
  return tag;
}

LanguageParts::LanguageParts(absl::string_view code) {
  icu::Locale locale = MakeLocale(code);
  if (locale.isBogus()) {
    language = absl::AsciiStrToLower(code);
    return;
  }
  language = locale.getLanguage();
  // CLDR has both names for Bokmål, and "no" is that unless it says otherwise.
  if (language == "nb") language = "no";
  names_script = *locale.getScript() != '\0';
  names_region = *locale.getCountry() != '\0';
  UErrorCode error = U_ZERO_ERROR;
  locale.addLikelySubtags(error);  // on an error the locale stays as it is
  script = locale.getScript();
  region = locale.getCountry();
}

std::optional<int> LanguageDistance(const LanguageParts& offered, const LanguageParts& asked) {
  if (offered.language != asked.language) return std::nullopt;
  const bool same_region = offered.region == asked.region;
  if (offered.script != asked.script) {
    if (!offered.names_script && !offered.names_region) return 3;
    return std::nullopt;
  }
  if (same_region) {
    return offered.names_script == asked.names_script && offered.names_region == asked.names_region
               ? 0
               : 1;
  }
  if (!offered.names_region) return 2;
  if (!asked.names_region) return 4;
  return std::nullopt;
}

}  // namespace linnet::model
