#pragma once

#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "linnet/v1/text_service.pb.h"
#include "model/runtime/text/text_run.h"
#include "server/base/errors.h"
#include "server/metrics/metrics.h"
#include "server/request/language_detector.h"
#include "server/request/text_request.h"
#include "server/text/prepared_text.h"

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

// What the answer to a text lacks, as bytes of the source and, where it was added, of the answer.
struct Findings {
  std::vector<model::TextRun> unread;  // the model cannot read it, and it was not protected
  std::vector<model::TextRun> forced;  // protected, left out by the model, and put in by position
  std::vector<model::TextRun> lost;    // numbers, brackets and quotation marks of the source alone
  std::vector<model::TextRun> added;   // the same of the answer alone

  // Keeps as many ranges of each kind as a warning names.
  void Append(const Findings& other);
  // Gives the ranges other places in the source and the answer.
  void Move(absl::FunctionRef<model::TextRun(model::TextRun)> in_source,
            absl::FunctionRef<model::TextRun(model::TextRun)> in_answer);
  bool empty() const { return unread.empty() && forced.empty() && lost.empty() && added.empty(); }
};
// The findings of a segment, whose answer begins at byte `begin` of the answer.
Findings CompareWithSource(const TextRequest& request, const PreparedSegment& segment,
                           const model::RestoredText& answer, int begin);
// UNREAD_TEXT, SPAN_FORCED and FACTS_DIFFER, as they apply.
void AddWarnings(const Findings& findings,
                 google::protobuf::RepeatedPtrField<linnet::v1::Warning>& warnings);
// Counts the warnings of an answer.
void CountWarnings(const google::protobuf::RepeatedPtrField<linnet::v1::Warning>& warnings,
                   Metrics& metrics);

// NOT_PROSE, for a text of which the share is less than kMinProseShare.
linnet::v1::Warning ProseWarning(double share);

}  // namespace linnet::server
