#include "server/text/part_writer.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/text/stable_text.h"
#include "server/text/text_reply.h"

namespace linnet::server {

PartWriter::PartWriter(const TextRequest& request, const std::vector<DecodedText>& texts)
    : request_(request), texts_(texts) {}

linnet::v1::TextPart PartWriter::MakePart(std::string text) {
  const std::vector<PreparedSegment>& segments = texts_[content_].prepared.segments;
  linnet::v1::TextPart part;
  part.set_content_index(static_cast<int>(content_));
  part.set_segment_index(static_cast<int>(segment_));
  if (!std::exchange(gap_sent_, true) && !segments.empty()) text.insert(0, segments[segment_].gap);
  part.set_text(std::move(text));
  return part;
}

std::optional<linnet::v1::TextPart> PartWriter::Stable(std::span<const model::TokenId> tokens) {
  const PreparedSegment& segment = texts_[content_].prepared.segments[segment_];
  // A span that the model leaves out may stand anywhere.
  if (!segment.spans.empty()) return std::nullopt;
  std::string text = StableText(*request_.model->target_tokenizer,
                                request_.model->bundle.manifest.word_tokenizer(), tokens,
                                TargetCapitals(request_, segment));
  if (segment.start.has_value()) {
    if (!absl::StartsWith(text, segment.start->as_read)) return std::nullopt;
    model::RestoredText begun = {.text = text};
    BeginWith(*segment.start, text, begun);
    text = std::move(begun.text);
  }
  // It may be the full stop at the end of the title, which is left out.
  if (segment.is_title && text.ends_with('.')) text.pop_back();
  // Nothing is sent if the text does not extend what was sent. Done reports an error if it never
  // does.
  if (text.size() <= sent_.size() || !text.starts_with(sent_)) return std::nullopt;
  const size_t old = sent_.size();
  sent_ = std::move(text);
  return MakePart(sent_.substr(old));
}

absl::StatusOr<linnet::v1::TextPart> PartWriter::Done() {
  const auto& [text, results] = texts_[content_];
  const bool last = segment_ + 1 >= text.segments.size();
  std::string rest;
  std::optional<linnet::v1::Segment> written;
  if (!text.segments.empty()) {
    const PreparedSegment& segment = text.segments[segment_];
    SegmentReply reply = MakeReply(request_, segment, results[segment_],
                                   begin_ + static_cast<int>(segment.gap.size()));
    if (!reply.text.starts_with(sent_)) {
      return absl::InternalError(absl::StrCat(
          "a stream would have to take back text: it sent ", sent_.size(), " bytes of content ",
          content_, ", segment ", segment_, " that its result does not start with"));
    }
    begin_ = reply.segment.target_end();
    rest = reply.text.substr(sent_.size());
    written = std::move(reply.segment);
    ++next_;
  }
  if (last) rest += text.tail;
  linnet::v1::TextPart part = MakePart(std::move(rest));
  if (written.has_value()) *part.mutable_segment() = *std::move(written);

  sent_.clear();
  gap_sent_ = false;
  ++segment_;
  if (last) {
    ++content_;
    segment_ = 0;
    begin_ = 0;
  }
  return part;
}

}  // namespace linnet::server
