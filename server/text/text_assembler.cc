#include "server/text/text_assembler.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "model/runtime/text/letters.h"
#include "model/runtime/text/prose.h"
#include "model/runtime/text/white_space.h"
#include "proto/status_macros.h"
#include "server/base/errors.h"
#include "server/request/language_detector.h"
#include "server/request/summary_length.h"
#include "server/text/memory_cost.h"
#include "server/text/text_warnings.h"

namespace linnet::server {
namespace {

// Work on a segment beside its tokens.
constexpr int64_t kWorkOfSegment = 8;
constexpr int64_t kProseBytesPerWork = 4;  // that are classified in the time to tokenise one

// True if the text of a segment is its own translation: a time, a number, a rule, emoji, or what is
// protected. A model would change some of them, also numbers that its language writes in another
// way, so a number alone stays as it is. A glossary may say otherwise.
bool IsOwnTranslation(const PreparedSegment& segment) {
  std::string rest;
  int begin = 0;
  for (const model::ProtectedSpan& span : segment.spans) {
    if (segment.text.substr(span.begin, span.end - span.begin) != span.text) return false;
    absl::StrAppend(&rest, segment.text.substr(begin, span.begin - begin));
    begin = span.end;
  }
  absl::StrAppend(&rest, segment.text.substr(begin));
  return !model::HasLetter(rest);
}

absl::Status RefuseLanguage(const TextRequest& request, absl::string_view field,
                            const LanguageGuess::Language& seen) {
  LanguageMismatch mismatch(request, seen);
  return BadField(
      field, Reason::kLanguageMismatch,
      absl::StrCat(mismatch.message, ": send text in that language, or name a model for this one"),
      std::move(mismatch.metadata));
}

}  // namespace

TextAssembler::TextAssembler(const TextRequest& request, const TextItem& item,
                             const Glossary* glossary, HoldMemory hold, int max_tokens)
    : request_(request),
      item_(item),
      glossary_(glossary),
      hold_(std::move(hold)),
      max_tokens_(max_tokens) {}

void TextAssembler::Start(std::shared_ptr<const model::JoinedText> joined) {
  prepared_.joined = std::move(joined);
  text_ = prepared_.joined != nullptr ? &prepared_.joined->text() : item_.text;
}

absl::StatusOr<int64_t> TextAssembler::Add(TokenizedPart part) {
  const ServedModel& model = *request_.model;
  if (const size_t tokens = part.read.tokens.size() + 1; std::cmp_greater(tokens, max_tokens_)) {
    return TooManyTokens(
        item_.path, part.place.end - part.place.begin, tokens, max_tokens_,
        absl::StrCat(
            "model \"", model.name(), "\" reads at most ", max_tokens_, ": shorten it",
            request_.split || item_.target != nullptr ? "" : ", or set long_input to chunk"));
  }
  int64_t worked = kWorkOfSegment;
  part.read.tokens.push_back(model.bundle.special_tokens().eos);
  // A summary replaces the whole text, so white space around it is not part of the answer. Before
  // it stands the last segment alone: looking back further may be quadratic in the text.
  const absl::string_view before =
      prepared_.segments.empty() ? absl::string_view() : prepared_.segments.back().text;
  std::string gap = request_.split
                        ? GapAfter(before, text_->substr(copied_, part.place.begin - copied_),
                                   request_.languages->target_language_code())
                    : prepared_.segments.empty() ? ""
                                                 : " ";
  copied_ = part.place.end;
  PreparedSegment& segment = prepared_.segments.emplace_back();
  segment.align = request_.alignments;
  segment.place = part.place;
  segment.gap = std::move(gap);
  segment.source = std::move(part.read.tokens);
  segment.spans = std::move(part.read.spans);
  segment.unread = std::move(part.read.unread);
  segment.lowered = part.read.lowered;
  segment.text =
      absl::string_view(*text_).substr(part.place.begin, part.place.end - part.place.begin);
  if (prepared_.joined != nullptr) {
    segment.joined = prepared_.joined.get();
    const auto [begin, end] = SourceRange(segment, 0, static_cast<int>(segment.text.size()));
    segment.place.begin = begin;
    segment.place.end = end;
  }
  int64_t bytes = VectorBytes(segment.spans) + VectorBytes(segment.unread);
  if (glossary_ != nullptr) {
    worked += part.place.end - part.place.begin;
    segment.terms = glossary_->Find(segment.text);
    for (const TermUse& use : segment.terms) bytes += TermBytes(use);
  }
  for (const model::ProtectedSpan& span : segment.spans) bytes += std::ssize(span.text);
  RETURN_IF_ERROR(hold_(bytes));
  segment.copied = request_.split && IsOwnTranslation(segment);
  // A segment that is given the start of its answer is decoded (GiveStarts).
  if (segment.copied && request_.target_prefix.empty()) segment.ClearSource();
  return worked;
}

absl::Status TextAssembler::SetLengths() {
  const ServedModel& model = *request_.model;
  if (request_.length.has_value()) {
    const auto chunks = static_cast<int>(prepared_.segments.size());
    for (int i = 0; i < chunks; ++i) {
      ASSIGN_OR_RETURN(prepared_.segments[i].length,
                       LengthOfChunk(*request_.length, model, request_.language_code, i, chunks));
    }
  }
  if (request_.split || item_.target != nullptr) return absl::OkStatus();
  const linnet::v1::SummaryStyle style = request_.languages->style();
  for (PreparedSegment& segment : prepared_.segments) {
    if (style != linnet::v1::SUMMARY_STYLE_UNSPECIFIED && segment.length == nullptr)
      segment.length = LengthOfStyle(style, model, request_.language_code);
    // The titles of chunks stand in one line, where their full stops separate them.
    segment.is_title =
        style == linnet::v1::SUMMARY_STYLE_TITLE && std::ssize(prepared_.segments) == 1;
  }
  if (const double share = model::ProseShare(*text_); share < kMinProseShare) {
    RETURN_IF_ERROR(hold_(kWarningBytes));
    prepared_.prose_share = share;
  }
  return absl::OkStatus();
}

absl::Status TextAssembler::CheckLanguage() {
  if (request_.language_check == LanguageCheck::kOff) return absl::OkStatus();
  prepared_.other_language = OtherLanguage(*text_, request_.language_code);
  if (!prepared_.other_language.has_value()) return absl::OkStatus();
  if (request_.language_check == LanguageCheck::kRefuse)
    return RefuseLanguage(request_, item_.path, *prepared_.other_language);
  return hold_(kWarningBytes);
}

absl::StatusOr<int64_t> TextAssembler::Finish() {
  if (prepared_.segments.empty() && !request_.may_be_empty) {
    return BadField(item_.path, Reason::kEmpty,
                    model::IsBlank(*text_) ? "text is only white space"
                                           : "text has no character that the model reads");
  }
  int64_t worked = std::min<int64_t>(std::ssize(*text_), kMaxBytesRead);
  if (item_.target != nullptr && !prepared_.segments.empty()) {
    worked += std::ssize(*item_.target);
    ASSIGN_OR_RETURN(prepared_.segments.front().target,
                     ReadTarget(request_, item_, prepared_.segments.front().lowered, hold_));
  }
  if (!request_.split)
    worked += std::min<int64_t>(std::ssize(*text_), model::kMaxProseBytes) / kProseBytesPerWork;
  RETURN_IF_ERROR(SetLengths());
  RETURN_IF_ERROR(CheckLanguage());
  if (!request_.target_prefix.empty()) {
    ASSIGN_OR_RETURN(const int64_t work, GiveStarts(request_, hold_, prepared_));
    worked += work;
  }
  if (request_.split) prepared_.tail = text_->substr(copied_);
  prepared_.truncated = request_.long_input == linnet::v1::LONG_INPUT_TRUNCATE &&
                        !model::Trimmed(absl::string_view(*text_).substr(copied_)).empty();
  return worked;
}

}  // namespace linnet::server
