#include "server/text/attention_table.h"

#include <algorithm>

#include "server/text/memory_cost.h"

namespace linnet::server {

std::vector<float> AttentionTable::Compose(std::span<const WordRange> words, int begin,
                                           std::span<const float> row) const {
  std::vector<double> sums(source.size());
  for (size_t i = 0; i < words.size(); ++i) {
    // The last word that begins at this one or before it.
    const int at = begin + words[i].begin;
    const auto after =
        std::upper_bound(target.begin(), target.end(), at,
                         [](int at, const WordRange& word) { return at < word.begin; });
    if (after == target.begin()) continue;
    const float* const weight = weights.data() + (after - target.begin() - 1) * source.size();
    for (size_t s = 0; s < sums.size(); ++s) sums[s] += static_cast<double>(row[i]) * weight[s];
  }
  return {sums.begin(), sums.end()};
}

int64_t AttentionTable::bytes() const {
  constexpr int64_t kAllocations = 3 * 32;  // the overhead of the allocator
  return kAllocations + VectorBytes(source) + VectorBytes(target) + VectorBytes(weights);
}

AttentionTable MakeAttentionTable(const TextRequest& request, const PreparedSegment& segment,
                                  const SequenceResult& result, const model::RestoredText& answer,
                                  WordUnit unit) {
  AttentionTable table;
  const std::vector<AlignedWord> words =
      AlignedWords(*request.model->target_tokenizer, result.hypotheses.front().tokens, answer,
                   TargetCapitals(request, segment), unit);
  for (const AlignedWord& word : words) table.target.push_back({word.begin, word.end});
  if (segment.copied) {
    table.source = table.target;
    table.weights.resize(words.size() * words.size());
    for (size_t i = 0; i < words.size(); ++i) table.weights[i * words.size() + i] = 1;
    return table;
  }
  const std::vector<AlignedWord> source =
      SourceWords(*request.model->source_tokenizer, segment.source, segment.text, segment.spans,
                  SourceCapitals(request, segment), unit);
  const WordAttention attention(source, segment.source.size(), result.attention);
  table.source = attention.source();
  for (const AlignedWord& word : words) {
    const std::vector<float> weights = attention.SourceWeights(word);
    table.weights.insert(table.weights.end(), weights.begin(), weights.end());
  }
  return table;
}

}  // namespace linnet::server
