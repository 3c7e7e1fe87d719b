#include "server/text/prepared_text.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "model/runtime/bundle/languages.h"
#include "model/runtime/text/white_space.h"
#include "model/runtime/tokenizer/copied_runs.h"

namespace linnet::server {

model::JoinedText::Range SourceRange(const PreparedSegment& segment, int begin, int end) {
  if (segment.joined == nullptr) return {segment.place.begin + begin, segment.place.begin + end};
  const auto at = static_cast<int>(segment.text.data() - segment.joined->text().data());
  return segment.joined->SourceOf(at + begin, at + end);
}

absl::string_view SourceCapitals(const TextRequest& request, const PreparedSegment& segment) {
  if (!segment.lowered) return {};
  return request.language_code.empty() ? "und" : absl::string_view(request.language_code);
}

absl::string_view TargetCapitals(const TextRequest& request, const PreparedSegment& segment) {
  const std::string& language = request.languages->target_language_code();
  if (language.empty()) return SourceCapitals(request, segment);
  return segment.lowered ? absl::string_view(language) : absl::string_view();
}

model::RestoredText RestoredHypothesis(const TextRequest& request, const PreparedSegment& segment,
                                       const model::Hypothesis& hypothesis) {
  if (segment.copied) return {.text = std::string(segment.text)};
  const model::Tokenizer& tokenizer = *request.model->target_tokenizer;
  const std::string decoded = tokenizer.Decode(hypothesis.tokens, TargetCapitals(request, segment));
  model::RestoredText restored =
      tokenizer.Restore(decoded, segment.spans, segment.text, /*once=*/request.split);
  if (segment.start.has_value()) BeginWith(*segment.start, decoded, restored);
  std::string& text = restored.text;
  if (segment.is_title && text.size() > 1 && absl::EndsWith(text, ".") &&
      !absl::EndsWith(text, ".."))
    text.pop_back();
  return restored;
}

std::string HypothesisText(const TextRequest& request, const PreparedSegment& segment,
                           const model::Hypothesis& hypothesis) {
  return RestoredHypothesis(request, segment, hypothesis).text;
}

std::string GapAfter(absl::string_view before, std::string gap,
                     const std::string& target_language_code) {
  const bool joined = gap.empty() && !before.empty() &&
                      !model::IsUnspacedLanguage(target_language_code) &&
                      model::EndsInUnspacedScript(before);
  return joined ? " " : gap;
}

model::SequenceInput MakeInput(const TextRequest& request, const PreparedSegment& segment) {
  model::SequenceInput input;
  input.source = segment.source;
  input.options = request.options.ForSource(static_cast<int>(segment.source.size()));
  input.align = segment.align;
  input.length = segment.length;
  if (segment.start.has_value()) {
    input.prefix = segment.start->tokens;
    input.start = segment.start->spelled;
  }
  if (segment.target.has_value()) {
    input.target = segment.target;
    input.options = input.options.WithoutSampling();
    // So that the cost is that of the target.
    input.options.max_target_tokens = static_cast<int>(segment.target->size()) - 1;
    input.options.min_target_tokens =
        std::min(input.options.min_target_tokens, input.options.max_target_tokens);
  }
  model::AddLanguageTokens(*request.languages, input);
  return input;
}

}  // namespace linnet::server
