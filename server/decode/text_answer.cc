#include "server/decode/text_answer.h"

#include <cstdint>

#include "proto/status_macros.h"
#include "server/decode/json_line.h"
#include "server/text/text_preparer.h"
#include "server/text/text_reply.h"
#include "server/text/text_warnings.h"

namespace linnet::server {

absl::StatusOr<std::unique_ptr<TextAnswer>> TextAnswer::Prepare(TextRequest request,
                                                                std::string text) {
  auto answer = std::unique_ptr<TextAnswer>(new TextAnswer(std::move(request), std::move(text)));
  const TextItem item = {.path = "text", .text = &answer->text_};
  const PrepareLimits limits = {.hold = [](int64_t) { return absl::OkStatus(); }};
  ASSIGN_OR_RETURN(answer->prepared_, PrepareText(answer->request_, item, nullptr, limits));
  SequenceResult copied;
  copied.hypotheses.assign(1, {});
  answer->results_.assign(answer->prepared_.segments.size(), copied);
  return answer;
}

std::vector<std::pair<size_t, model::SequenceInput>> TextAnswer::MakeInputs() const {
  std::vector<std::pair<size_t, model::SequenceInput>> inputs;
  for (size_t i = 0; i < prepared_.segments.size(); ++i) {
    const PreparedSegment& segment = prepared_.segments[i];
    if (!segment.copied) inputs.emplace_back(i, MakeInput(request_, segment));
  }
  return inputs;
}

void TextAnswer::SetResult(size_t segment, absl::StatusOr<SequenceResult> result) {
  if (result.ok())
    results_[segment] = *std::move(result);
  else
    error_.Update(result.status());
}

absl::StatusOr<std::string> TextAnswer::Format() const {
  RETURN_IF_ERROR(error_);
  TranslationLine line;
  Findings findings;
  for (size_t i = 0; i < results_.size(); ++i) {
    line.text += prepared_.segments[i].gap;
    const SegmentReply reply =
        MakeReply(request_, prepared_.segments[i], results_[i], static_cast<int>(line.text.size()));
    line.text += reply.text;
    line.score += reply.segment.score();
    line.tokens += std::ssize(results_[i].hypotheses.front().tokens);
    line.ended_by_limit |= reply.segment.finish_reason() == linnet::v1::FINISH_REASON_LENGTH;
    findings.Append(reply.findings);
  }
  line.text += prepared_.tail;
  if (!results_.empty()) line.score /= static_cast<double>(results_.size());
  google::protobuf::RepeatedPtrField<linnet::v1::Warning> warnings;
  if (prepared_.other_language.has_value())
    *warnings.Add() = LanguageWarning(request_, *prepared_.other_language);
  if (prepared_.prose_share.has_value()) *warnings.Add() = ProseWarning(*prepared_.prose_share);
  AddWarnings(findings, warnings);
  for (const linnet::v1::Warning& warning : warnings) line.warnings.push_back(warning.reason());
  return FormatTranslation(line);
}

}  // namespace linnet::server
