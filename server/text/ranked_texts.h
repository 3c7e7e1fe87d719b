#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "linnet/v1/text_service.pb.h"
#include "server/request/text_request.h"
#include "server/text/prepared_text.h"

namespace linnet::server {

// A segment as the target that its hypotheses are to explain.
struct RankedSegment {
  int content = 0;  // index of its text in the request
  std::string source;
  std::vector<std::string> hypotheses;  // their texts, best first as the search has them
};

// The texts of a call with reranking, between the model that searched for their hypotheses and the
// one that scores them. Written by the call of the first model; the result of the second orders
// the hypotheses.
struct RankedTexts {
  TextRequest request;  // of the first model, with the n_best of its client and without items
  std::vector<PreparedText> prepared;   // with the results of the search
  std::vector<RankedSegment> segments;  // of all texts, in order

  // Their memory, and that of the items of the second request.
  int64_t bytes() const;
};

// From the results of the first model.
RankedTexts RankedTextsOf(const TextRequest& first, std::vector<PreparedText> prepared);
// The request for the second model, with one item for each hypothesis: its text is the source, and
// that of its segment the target. `items` are those of the first request. Borrows the texts.
TextRequest RequestOf(const TextRequest& second, const RankedTexts& texts,
                      const std::vector<TextItem>& items);
// Orders the hypotheses of each segment: those that meet more constraints first, then those with a
// score of the second model, then by
//
//   log p(y|x) / |y| + channel_weight * log p(x|y) / |x|
//
// and keeps as many as the client asked for. `scored` are parallel to the items; one without a
// segment could not be scored.
void Rerank(const std::vector<PreparedText>& scored, RankedTexts& texts);

}  // namespace linnet::server
