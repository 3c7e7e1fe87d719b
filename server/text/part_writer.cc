#include "server/text/part_writer.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "server/text/stable_text.h"
#include "server/text/text_reply.h"

namespace linnet::server {

PartWriter::PartWriter(const TextRequest& request, const std::vector<PreparedText>& prepared,
                       const PivotTexts* pivot)
    : request_(request), prepared_(prepared), pivot_(pivot) {}

linnet::v1::TextPart PartWriter::PartOf(std::string text) {
  const PreparedText& work = prepared_[content_];
  linnet::v1::TextPart part;
  part.set_content_index(static_cast<int>(content_));
  part.set_segment_index(static_cast<int>(segment_));
  if (!std::exchange(gap_sent_, true) && !work.segments.empty())
    text.insert(0, work.segments[segment_].gap);
  if (pivot_ != nullptr) {
    const PivotSegment& segment = pivot_->segments[content_];
    part.set_content_index(segment.content);
    part.set_segment_index(segment.index);
    if (!std::exchange(pivot_gap_sent_, true)) text.insert(0, segment.gap);
  }
  part.set_text(std::move(text));
  return part;
}

std::optional<linnet::v1::TextPart> PartWriter::Stable(std::span<const model::TokenId> tokens) {
  const PreparedSegment& segment = prepared_[content_].segments[segment_];
  std::string text = StableText(*request_.model->target_tokenizer,
                                request_.model->bundle.manifest.word_tokenizer(), tokens,
                                segment.copies, TargetCapitals(request_, segment));
  // It may be the full stop at the end of the title, which is left out.
  if (segment.is_title && text.ends_with('.')) text.pop_back();
  // Nothing is sent if the text does not extend what was sent. Done reports an error if it never
  // does.
  if (text.size() <= sent_.size() || !text.starts_with(sent_)) return std::nullopt;
  const size_t old = sent_.size();
  sent_ = std::move(text);
  return PartOf(sent_.substr(old));
}

absl::StatusOr<linnet::v1::TextPart> PartWriter::Done() {
  const PreparedText& work = prepared_[content_];
  if (pivot_ != nullptr && segment_ == 0) {
    text_begin_ = begin_ + static_cast<int>(pivot_->segments[content_].gap.size());
    begin_ = text_begin_;
  }
  const bool last = segment_ + 1 >= work.segments.size();
  std::string rest;
  std::optional<linnet::v1::Segment> written;
  if (!work.segments.empty()) {
    const PreparedSegment& segment = work.segments[segment_];
    SegmentReply reply = ReplyOf(request_, segment, begin_ + static_cast<int>(segment.gap.size()));
    if (!reply.text.starts_with(sent_)) {
      return absl::InternalError(absl::StrCat(
          "a stream would have to take back text: it sent ", sent_.size(), " bytes of content ",
          content_, ", segment ", segment_, " that its result does not start with"));
    }
    begin_ = reply.segment.target_end();
    rest = reply.text.substr(sent_.size());
    if (pivot_ == nullptr) written = std::move(reply.segment);
    ++next_;
  }
  if (last) rest += work.tail;
  bool content_ends = last;
  if (last && pivot_ != nullptr) {
    const PivotSegment& segment = pivot_->segments[content_];
    written = ReplyOf(request_, segment, work, text_begin_).segment;
    begin_ = written->target_end();
    content_ends = segment.last;
    if (segment.last) rest += pivot_->contents[segment.content].tail;
  }
  linnet::v1::TextPart part = PartOf(std::move(rest));
  if (written.has_value()) *part.mutable_segment() = *std::move(written);

  sent_.clear();
  gap_sent_ = false;
  ++segment_;
  if (last) {
    ++content_;
    segment_ = 0;
    pivot_gap_sent_ = false;
  }
  if (content_ends) begin_ = 0;
  return part;
}

}  // namespace linnet::server
