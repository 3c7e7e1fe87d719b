#include "server/request/summary_length.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "model/runtime/tokenizer/text_length.h"
#include "server/base/errors.h"

namespace linnet::server {
namespace {

using linnet::v1::SummaryLength;

// A bound on a summary's tokens, and so on its cost. Subwords of a trained vocabulary are fewer
// than two a word; rare words and long sentences have room.
constexpr int64_t kTokensPerWord = 4, kTokensPerSentence = 100, kMoreTokens = 16;

struct Wish {
  absl::string_view field;
  absl::string_view unit;
  int count;
  int64_t tokens;  // a bound
};

Wish ReadWish(const SummaryLength& length) {
  if (length.has_words()) {
    return {"length.words", "words", length.words(), kTokensPerWord * length.words() + kMoreTokens};
  }
  return {"length.sentences", "sentences", length.sentences(),
          kTokensPerSentence * length.sentences()};
}

}  // namespace

absl::Status ApplySummaryLength(const SummaryLength& length, const ServedModel& model,
                                const std::string& language_code,
                                linnet::v1::DecodingOptions& options) {
  if (length.unit_case() == SummaryLength::UNIT_NOT_SET)
    return BadField("length", Reason::kBadSetting, "has neither words nor sentences: set one");
  const Wish wish = ReadWish(length);
  const int limit = model.bundle.manifest.limits().max_target_tokens();
  if (wish.count < 1 || wish.count > limit) {
    return BadField(wish.field, Reason::kBadSetting,
                    absl::StrCat("is ", wish.count, ", it must be from 1 to ", limit,
                                 ", the tokens that model \"", model.name(), "\" writes at most"));
  }
  if (model::IsUnspacedLanguage(language_code)) {
    return BadField("length", Reason::kBadSetting,
                    absl::StrCat("is set for a text in \"", language_code,
                                 "\", whose words no blank separates: set max_summary_tokens"));
  }
  if (model.target_tokenizer == nullptr || !model.target_tokenizer->separates_words()) {
    return BadField("length", Reason::kBadSetting,
                    absl::StrCat("is set, and the tokens of model \"", model.name(),
                                 "\" do not tell where words begin: set max_summary_tokens"));
  }
  if (!options.has_min_target_tokens()) {
    const bool none = options.has_max_target_tokens() && options.max_target_tokens() == 0;
    options.set_min_target_tokens(none ? 0 : 1);
  }
  if (!options.has_max_target_tokens()) {
    const int64_t wanted = std::max<int64_t>(wish.tokens, options.min_target_tokens());
    options.set_max_target_tokens(static_cast<int>(std::min<int64_t>(wanted, limit)));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const model::TargetLength>> LengthOfChunk(
    const SummaryLength& length, const ServedModel& model, const std::string& language_code,
    int chunk, int chunks) {
  const Wish wish = ReadWish(length);
  if (wish.count < chunks) {
    return BadField(wish.field, Reason::kBadSetting,
                    absl::StrCat("is ", wish.count, ", and a text is read in ", chunks,
                                 " chunks, which have one at least: ask for ", chunks,
                                 " or more, or set long_input to truncate"));
  }
  const auto until = [&](int64_t end) { return static_cast<int>(wish.count * end / chunks); };
  const int share = until(chunk + 1) - until(chunk);
  if (length.has_words())
    return model::LengthInWords(*model.target_tokenizer, (share * 3 + 3) / 4, share);
  return model::LengthInSentences(*model.target_tokenizer, share, language_code);
}

std::shared_ptr<const model::TargetLength> LengthOfStyle(linnet::v1::SummaryStyle style,
                                                         const ServedModel& model,
                                                         const std::string& language_code) {
  if (model::IsUnspacedLanguage(language_code) || model.target_tokenizer == nullptr ||
      !model.target_tokenizer->separates_words())
    return nullptr;
  const bool one =
      style == linnet::v1::SUMMARY_STYLE_TITLE || style == linnet::v1::SUMMARY_STYLE_SENTENCE;
  return model::LengthUpToSentences(*model.target_tokenizer, one ? 1 : 0, language_code);
}

}  // namespace linnet::server
