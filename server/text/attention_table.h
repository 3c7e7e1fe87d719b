#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "server/text/aligned_words.h"
#include "server/text/prepared_text.h"

namespace linnet::server {

// The attention of the words of an answer on the words of its source.
struct AttentionTable {
  std::vector<WordRange> source;  // words of the source segment
  std::vector<WordRange> target;  // words of the answer, in order
  std::vector<float> weights;     // [target, source], row-major

  // The product of a row of attention on words of this answer, which another model has read, and
  // these weights: a row of attention on the source. `row` is parallel to `words`, whose ranges are
  // shifted by `begin` in the answer. A word there that is a part of a word here takes the weights
  // of that.
  std::vector<float> Compose(std::span<const WordRange> words, int begin,
                             std::span<const float> row) const;
  int64_t bytes() const;
};

// That of the best hypothesis of a segment, whose text is `answer`, in bytes of both texts. Without
// words of the source if the model has no alignments. Each word of a copied segment is aligned to
// itself.
AttentionTable MakeAttentionTable(const TextRequest& request, const PreparedSegment& segment,
                                  const SequenceResult& result, const model::RestoredText& answer,
                                  WordUnit unit);

}  // namespace linnet::server
