#include "server/text/text_reading.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "model/runtime/text/first_bytes.h"
#include "model/runtime/text/segmenter.h"
#include "model/runtime/text/white_space.h"
#include "proto/status_macros.h"
#include "server/base/errors.h"
#include "server/text/memory_cost.h"

namespace linnet::server {

absl::Status Unreadable(absl::string_view field, absl::Status status) {
  if (!ErrorReason(status).empty()) return status;  // there is no memory to read it
  return AtField(field, Reason::kUnreadableText, std::move(status));
}

absl::StatusOr<model::TokenizedText> ReadStart(const model::Tokenizer& tokenizer,
                                               absl::string_view text,
                                               const model::ReadOptions& options, int max_tokens,
                                               const HoldMemory& hold) {
  if (std::ssize(text) > kMaxEncodedBytes) {
    // Each start is twice as long as the one before, so that few bytes are tokenised at once.
    for (int64_t bytes = kMaxEncodedBytes / 16; bytes <= kMaxEncodedBytes; bytes *= 2) {
      const absl::string_view first = model::FirstBytes(text, bytes);
      model::ReadOptions of_first = options;
      const auto spans = model::SpansWithin(text, options.spans, 0, static_cast<int>(first.size()));
      of_first.spans = spans;
      auto start = tokenizer.Read(first, of_first);
      if (!start.ok() || std::ssize(start->tokens) > max_tokens) return start;
      if (bytes == kMaxEncodedBytes && std::ssize(text) > model::MaxSegmentBytes(max_tokens))
        return start;
    }
    RETURN_IF_ERROR(hold(kEncodeBytesPerByte * std::ssize(text)));
  }
  return tokenizer.Read(text, options);
}

model::ReadOptions SourceReading(const TextRequest& request, const TextItem& item) {
  const bool lower =
      item.target == nullptr || model::IsInCapitals(*item.target, {.before = *item.text});
  return {.language_code = request.language_code, .lower = lower};
}

absl::Status TooManyTokens(absl::string_view field, size_t text_bytes, size_t tokens, int max,
                           absl::string_view limit) {
  const bool start_alone = std::cmp_greater(text_bytes, kMaxEncodedBytes);
  return BadField(field, Reason::kTextTooLong,
                  absl::StrCat("text has ", start_alone ? "more than " : "",
                               start_alone ? tokens - 1 : tokens, " tokens, ", limit),
                  {{"tokens", absl::StrCat(tokens)}, {"maxTokens", absl::StrCat(max)}});
}

absl::Status TooManyBytes(absl::string_view field, size_t text_bytes, int64_t max) {
  return BadField(field, Reason::kTextTooLong,
                  absl::StrCat("text has ", text_bytes, " bytes, at most ", max,
                               " are read at once: shorten it, or split it"));
}

absl::StatusOr<std::vector<model::TokenId>> ReadTarget(const TextRequest& request,
                                                       const TextItem& item, bool lowered,
                                                       const HoldMemory& hold) {
  const ServedModel& model = *request.model;
  const int max = model.bundle.manifest.limits().max_target_tokens();
  const model::ReadOptions options = {.around = {.before = *item.text},
                                      .language_code = request.languages->target_language_code(),
                                      .lower = lowered};
  auto read = ReadStart(*model.target_tokenizer, model::OneLine(*item.target), options, max, hold);
  if (!read.ok()) return Unreadable(item.target_path, read.status());
  std::vector<model::TokenId>* const tokens = &read->tokens;
  if (std::ssize(*tokens) > max) {
    return TooManyTokens(
        item.target_path, item.target->size(), tokens->size(), max,
        absl::StrCat("model \"", model.name(), "\" writes at most ", max, ": shorten it"));
  }
  if (const int64_t max_bytes = model::MaxSegmentBytes(max);
      std::cmp_greater(item.target->size(), max_bytes))
    return TooManyBytes(item.target_path, item.target->size(), max_bytes);
  tokens->push_back(model.bundle.special_tokens().eos);
  return std::move(*tokens);
}

}  // namespace linnet::server
