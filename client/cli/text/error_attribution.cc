#include "client/cli/text/error_attribution.h"

#include <algorithm>
#include <array>

#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"
#include "client/library/client.h"

namespace linnet::client {
namespace {

// The reasons for which fewer texts in a request help: those of docs/ERRORS.md and those of the
// library's NameTooLarge.
bool IsAboutSize(absl::string_view reason) {
  constexpr std::array<absl::string_view, 7> kReasons = {
      "TOO_MANY_TEXTS", "TEXT_TOO_LARGE",    "TOO_MANY_SEGMENTS", "CALL_TOO_LARGE",
      "BEYOND_ENGINE",  "MESSAGE_TOO_LARGE", "REPLY_TOO_LARGE"};
  return std::find(kReasons.begin(), kReasons.end(), reason) != kReasons.end();
}

}  // namespace

ErrorAttribution AttributeToTexts(const absl::Status& status, absl::string_view field,
                                  size_t texts) {
  const ErrorDetails details = DetailsOf(status);
  if (IsAboutSize(details.reason)) {
    return {texts > 1 ? Fault::kTooMuchTogether : Fault::kOneText, 0};
  }
  if (details.reason == "DEADLINE_TOO_CLOSE") return {Fault::kServerBusy, 0};
  if (absl::IsResourceExhausted(status) && !details.reason.empty()) return {Fault::kServerBusy, 0};
  if (absl::IsDeadlineExceeded(status)) return {Fault::kTooSlow, 0};
  if (!absl::IsInvalidArgument(status) && !absl::IsOutOfRange(status)) return {};
  absl::string_view rest = details.field;
  size_t text = 0;
  const bool named = absl::ConsumePrefix(&rest, field) && absl::ConsumePrefix(&rest, "[") &&
                     absl::SimpleAtoi(rest.substr(0, rest.find(']')), &text);
  if (!named || text >= texts) return {};
  return {Fault::kOneText, text};
}

}  // namespace linnet::client
