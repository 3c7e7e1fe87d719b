#include "server/text/text_warnings.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace linnet::server {

LanguageMismatch::LanguageMismatch(const TextRequest& request, const LanguageGuess::Language& seen)
    : message(absl::StrCat("text seems to be in \"", seen.code, "\", model \"",
                           request.model->name(), "\" reads \"", request.language_code, "\"")),
      metadata({{"detectedLanguage", seen.code},
                {"confidence", absl::StrCat(seen.share)},
                {"modelLanguage", request.language_code}}) {}

linnet::v1::Warning LanguageWarning(const TextRequest& request,
                                    const LanguageGuess::Language& seen) {
  LanguageMismatch mismatch(request, seen);
  linnet::v1::Warning warning;
  warning.set_reason(std::string(GetCondition(Reason::kLanguageMismatch).name));
  warning.set_message(std::move(mismatch.message));
  warning.mutable_metadata()->insert(mismatch.metadata.begin(), mismatch.metadata.end());
  return warning;
}

linnet::v1::Warning ProseWarning(double share) {
  linnet::v1::Warning warning;
  warning.set_reason("NOT_PROSE");
  warning.set_message(absl::StrFormat(
      "only %.0f %% of the text is prose, the rest looks like code, tables or links: the summary "
      "probably means little",
      100 * share));
  (*warning.mutable_metadata())["proseShare"] = absl::StrFormat("%.2f", share);
  return warning;
}

}  // namespace linnet::server
