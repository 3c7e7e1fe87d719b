#pragma once

#include <string>

#include "linnet/v1/text_service.pb.h"
#include "server/base/errors.h"
#include "server/request/language_detector.h"
#include "server/request/text_request.h"

namespace linnet::server {

// Below this share of prose (model::ProseShare) a text to summarise is mostly code, tables or
// links, of which no summary means much.
inline constexpr double kMinProseShare = 0.5;

// The detected language of a text and the language that its model reads: a message for people, and
// metadata of an error or a warning for programs.
struct LanguageMismatch {
  LanguageMismatch(const TextRequest& request, const LanguageGuess::Language& seen);
  std::string message;
  ErrorMetadata metadata;
};
linnet::v1::Warning LanguageWarning(const TextRequest& request,
                                    const LanguageGuess::Language& seen);

// NOT_PROSE, for a text of which the share is less than kMinProseShare.
linnet::v1::Warning ProseWarning(double share);

}  // namespace linnet::server
