#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "linnet/v1/text_service.pb.h"
#include "server/request/text_request.h"
#include "server/text/pivot_texts.h"
#include "server/text/prepared_text.h"

namespace linnet::server {

// The reply for a segment and its text, which starts at byte `begin` of the answer. With a `pivot`
// the segment is a part of its text, and is aligned to the source of that.
struct SegmentReply {
  linnet::v1::Segment segment;
  std::string text;
};
SegmentReply ReplyOf(const TextRequest& request, const PreparedSegment& work, int begin,
                     const PivotSegment* pivot = nullptr);
// The same of a segment of the source whose pivot text the request's model has translated.
SegmentReply ReplyOf(const TextRequest& request, const PivotSegment& pivot,
                     const PreparedText& work, int begin);

// Assembles the texts of the answer in steps: the best hypothesis of each segment, separated by
// their gaps. `prepared` is parallel to the request's contents and has all their results. Request,
// texts and response must outlive it.
template <typename Response>
class ReplyFiller {
 public:
  ReplyFiller(const TextRequest& request, const std::vector<PreparedText>& prepared,
              Response& response);
  // Does about that much work, in bytes of text without alignments. True if the answer is complete.
  bool Step(int64_t work);

 private:
  // The text of which some segments are in the answer.
  struct Partial {
    std::string text;
    size_t segments = 0;
    bool limited = false;
    int source_tokens = 0;
    int target_tokens = 0;
  };
  template <typename Reply>
  bool StepText(const PreparedText& text, Reply& reply, int64_t& work);

  const TextRequest& request_;
  const std::vector<PreparedText>& prepared_;
  Response& response_;
  size_t next_ = 0;  // text
  Partial partial_;
};

// The same in one step.
void FillReply(const TextRequest& request, const std::vector<PreparedText>& prepared,
               linnet::v1::TranslateResponse& response);
// The same through a third language. `prepared` is parallel to the segments of the pivot, and the
// request is that of the second model.
void FillReply(const TextRequest& request, const PivotTexts& pivot,
               const std::vector<PreparedText>& prepared, linnet::v1::TranslateResponse& response);
void FillReply(const TextRequest& request, const std::vector<PreparedText>& prepared,
               linnet::v1::ScoreResponse& response);

}  // namespace linnet::server
