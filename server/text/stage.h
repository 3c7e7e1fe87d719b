#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "linnet/v1/text_service.pb.h"
#include "server/admission/admission.h"
#include "server/request/text_request.h"
#include "server/text/attention_table.h"
#include "server/text/prepared_text.h"
#include "server/text/text_warnings.h"

namespace linnet::server {

// A part of a call: its texts go through one model. A call is a list of stages (MakeStages), which
// StagedCall runs one after the other; the last one fills the response.
//
// StagedCall owns it. One thread at a time calls it, a thread of the text pool except for Begin of
// the first stage.
class Stage {
 public:
  explicit Stage(TextRequest request) : request_(std::move(request)) {}
  virtual ~Stage() = default;

  // The model, the options and the texts. Until Begin a stage has no texts if an earlier one writes
  // them.
  const TextRequest& request() const { return request_; }

  // The turn of this stage has come: sets its texts, and holds memory for them.
  virtual absl::Status Begin(Permit& /*permit*/) { return absl::OkStatus(); }
  // Reads the texts before they are split, for about that much work, which it counts down
  // (model::TextSplitter::Step). True if all are read: request() has them.
  virtual bool Read(Permit& /*permit*/, int64_t& /*work*/) { return true; }
  // A segment of a text is tokenised, and not decoded yet. May change it.
  virtual absl::Status SegmentPrepared(const TextItem& /*item*/, PreparedSegment& /*segment*/) {
    return absl::OkStatus();
  }
  // What is sent for a part of the stream; nothing if the part is kept for a later one. Only for
  // the last stage.
  virtual std::optional<linnet::v1::TextPart> Stream(linnet::v1::TextPart part,
                                                     const std::vector<DecodedText>& /*texts*/) {
    return part;
  }
  // How the pieces of the answer to a segment are aligned to those of its source; without any if
  // the segment is not aligned. Only of the last stage of a translation.
  virtual AttentionTable AlignPieces(const std::vector<DecodedText>& /*texts*/, int /*content*/,
                                     int /*segment*/) const {
    return {};
  }
  // What the answer to a text lacks, where the response has no warnings of it yet. Only of the last
  // stage of a translation of markup, whose places in the answer are not known before.
  virtual Findings TakeFindings(int /*content*/) { return {}; }
  // Makes the result of this stage from its decoded texts, in steps of about that much work, in
  // bytes of text without alignments. True if it is complete.
  virtual bool Assemble(const std::vector<DecodedText>& texts, int64_t work) = 0;
  // Memory of the result.
  virtual int64_t bytes() const = 0;

 protected:
  TextRequest request_;
};

using Stages = std::vector<std::unique_ptr<Stage>>;

// The stages of a call that fills this response, which must outlive them.
Stages MakeStages(TextRequest request, linnet::v1::TranslateResponse& response);
Stages MakeStages(TextRequest request, linnet::v1::SummarizeResponse& response);
Stages MakeStages(TextRequest request, linnet::v1::ScoreResponse& response);

}  // namespace linnet::server
