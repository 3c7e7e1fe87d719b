#include "server/text/text_warnings.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "model/runtime/text/facts.h"
#include "model/runtime/tokenizer/apostrophes.h"

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

void Findings::Append(const Findings& other) {
  constexpr size_t kMaxRanges = 32;
  const auto append = [](std::vector<model::TextRun>& to, const std::vector<model::TextRun>& from) {
    const size_t count = std::min(from.size(), kMaxRanges - to.size());
    to.insert(to.end(), from.begin(), from.begin() + count);
  };
  append(unread, other.unread);
  append(forced, other.forced);
  append(lost, other.lost);
  append(added, other.added);
}

void Findings::Move(absl::FunctionRef<model::TextRun(model::TextRun)> in_source,
                    absl::FunctionRef<model::TextRun(model::TextRun)> in_answer) {
  for (std::vector<model::TextRun>* runs : {&unread, &forced, &lost}) {
    for (model::TextRun& run : *runs) run = in_source(run);
  }
  for (model::TextRun& run : added) run = in_answer(run);
}

Findings CompareWithSource(const TextRequest& request, const PreparedSegment& segment,
                           const model::RestoredText& answer, int begin) {
  Findings findings;
  if (segment.copied) return findings;
  const auto in_source = [&](int from, int to) {
    const auto place = SourceRange(segment, from, to);
    return model::TextRun{place.begin, place.end};
  };
  for (const auto& [from, to] : segment.unread) findings.unread.push_back(in_source(from, to));
  for (const int i : answer.forced)
    findings.forced.push_back(in_source(segment.spans[i].begin, segment.spans[i].end));
  if (request.protects == nullptr) return findings;
  model::FactText read = {segment.text, request.language_code};
  model::FactText written = {answer.text, request.languages->target_language_code()};
  for (const model::ProtectedSpan& span : segment.spans)
    read.apart.push_back({span.begin, span.end});
  // A number such as the 39 of "don&#39;t" is none.
  for (size_t at = 0; at < segment.text.size(); ++at) {
    if (const size_t end = model::EndOfApostrophe(segment.text, at); end > at)
      read.apart.push_back({static_cast<int>(at), static_cast<int>(end)});
  }
  std::ranges::sort(read.apart, {}, &model::TextRun::begin);
  for (const model::RestoredText::Edit& edit : answer.edits)
    written.apart.push_back({edit.begin, edit.end});
  const model::FactDifferences differences =
      model::CompareFacts(read, written, /*whole=*/request.split);
  for (const auto& [from, to] : differences.lost) findings.lost.push_back(in_source(from, to));
  for (const auto& [from, to] : differences.added)
    findings.added.push_back({begin + from, begin + to});
  return findings;
}

void AddWarnings(const Findings& findings,
                 google::protobuf::RepeatedPtrField<linnet::v1::Warning>& warnings) {
  const auto ranges = [](const std::vector<model::TextRun>& runs) {
    return absl::StrJoin(runs, " ", [](std::string* out, const model::TextRun& run) {
      absl::StrAppend(out, run.begin, "-", run.end);
    });
  };
  const auto add = [&](const char* reason, std::string message,
                       const std::vector<model::TextRun>& source,
                       const std::vector<model::TextRun>& target) {
    linnet::v1::Warning& warning = *warnings.Add();
    warning.set_reason(reason);
    warning.set_message(std::move(message));
    if (!source.empty()) (*warning.mutable_metadata())["sourceRanges"] = ranges(source);
    if (!target.empty()) (*warning.mutable_metadata())["targetRanges"] = ranges(target);
  };
  if (!findings.unread.empty()) {
    add("UNREAD_TEXT",
        absl::StrCat("the model cannot read bytes ", ranges(findings.unread),
                     " of the text, so its answer may lack them"),
        findings.unread, {});
  }
  if (!findings.forced.empty()) {
    add("SPAN_FORCED",
        absl::StrCat("the model left out bytes ", ranges(findings.forced),
                     " of the text, which are protected: they are in the answer, perhaps not where "
                     "they belong"),
        findings.forced, {});
  }
  if (!findings.lost.empty() || !findings.added.empty()) {
    add("FACTS_DIFFER",
        absl::StrCat(
            "numbers, brackets or quotation marks differ:",
            findings.lost.empty() ? "" : " only the text has bytes ", ranges(findings.lost),
            findings.lost.empty() || findings.added.empty() ? "" : ",",
            findings.added.empty() ? "" : " only the answer has bytes ", ranges(findings.added)),
        findings.lost, findings.added);
  }
}

void CountWarnings(const google::protobuf::RepeatedPtrField<linnet::v1::Warning>& warnings,
                   Metrics& metrics) {
  for (const linnet::v1::Warning& warning : warnings) {
    for (const WarningReason reason : kWarningReasons) {
      if (ReasonName(reason) == warning.reason()) metrics.Warned(reason);
    }
  }
}

}  // namespace linnet::server
