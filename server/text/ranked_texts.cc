#include "server/text/ranked_texts.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <span>
#include <tuple>
#include <utility>

#include "server/text/memory_cost.h"

namespace linnet::server {
namespace {

float MeanOf(std::span<const float> scores) {
  const double sum = std::accumulate(scores.begin(), scores.end(), 0.0);
  return static_cast<float>(sum / static_cast<double>(std::max<size_t>(scores.size(), 1)));
}

int64_t KeptBytes(const PreparedSegment& segment) {
  int64_t bytes = static_cast<int64_t>(segment.gap.capacity()) + BytesOf(segment.source) +
                  BytesOf(segment.copies) + BytesOf(segment.result.hypotheses);
  for (const std::string& copy : segment.copies) bytes += static_cast<int64_t>(copy.capacity());
  for (const TermUse& term : segment.terms) bytes += TermBytes(term);
  for (const model::Hypothesis& hypothesis : segment.result.hypotheses)
    bytes += BytesOf(hypothesis.tokens) + BytesOf(hypothesis.token_scores) + kBytesPerItem;
  return bytes;
}

// Orders the hypotheses of one segment. `scored` has the one of each.
void RerankSegment(std::span<const PreparedText> scored, const Reranking& reranking,
                   PreparedSegment& segment) {
  std::vector<model::Hypothesis>& hypotheses = segment.result.hypotheses;
  struct Rank {
    size_t index;
    int unmet;
    std::optional<float> channel;
    float score;
  };
  std::vector<Rank> ranks;
  for (size_t i = 0; i < hypotheses.size(); ++i) {
    Rank& rank = ranks.emplace_back(Rank{
        .index = i, .unmet = hypotheses[i].unmet_constraints, .channel = std::nullopt, .score = 0});
    if (scored[i].segments.empty()) continue;
    rank.channel = MeanOf(scored[i].segments.front().result.hypotheses.front().token_scores);
    rank.score = MeanOf(hypotheses[i].token_scores) + reranking.channel_weight * *rank.channel;
  }
  // Stable, so that the order of the search decides between equal ones.
  std::stable_sort(ranks.begin(), ranks.end(), [](const Rank& a, const Rank& b) {
    return std::tuple(a.unmet, !a.channel.has_value(), -a.score) <
           std::tuple(b.unmet, !b.channel.has_value(), -b.score);
  });
  ranks.resize(std::min<size_t>(ranks.size(), reranking.n_best.value_or(1)));
  std::vector<model::Hypothesis> best;
  segment.channel_scores.clear();
  for (const Rank& rank : ranks) {
    best.push_back(std::move(hypotheses[rank.index]));
    segment.channel_scores.push_back(rank.channel);
  }
  hypotheses = std::move(best);
}

}  // namespace

int64_t RankedTexts::bytes() const {
  int64_t bytes = sizeof(*this) + BytesOf(prepared) + BytesOf(segments);
  for (const PreparedText& work : prepared) {
    bytes += BytesOf(work.segments) + static_cast<int64_t>(work.tail.capacity());
    if (work.other_language.has_value()) bytes += kWarningBytes;
    if (work.joined != nullptr) bytes += work.joined->bytes();
    for (const PreparedSegment& segment : work.segments) bytes += KeptBytes(segment);
  }
  for (const RankedSegment& segment : segments) {
    bytes += static_cast<int64_t>(segment.source.capacity()) + BytesOf(segment.hypotheses);
    for (const std::string& text : segment.hypotheses)
      bytes += static_cast<int64_t>(text.capacity());
  }
  return bytes;
}

RankedTexts RankedTextsOf(const TextRequest& first, std::vector<PreparedText> prepared) {
  RankedTexts texts = {.request = first, .prepared = std::move(prepared), .segments = {}};
  texts.request.items = {};
  linnet::v1::DecodingOptions& options = texts.request.options;
  options.clear_n_best();
  if (first.reranking->n_best.has_value()) options.set_n_best(*first.reranking->n_best);
  for (int i = 0; i < std::ssize(texts.prepared); ++i) {
    for (const PreparedSegment& segment : texts.prepared[i].segments) {
      RankedSegment& ranked = texts.segments.emplace_back();
      ranked.content = i;
      ranked.source = std::string(segment.text);
      if (segment.copied) continue;  // nothing is to be chosen
      for (const model::Hypothesis& hypothesis : segment.result.hypotheses)
        ranked.hypotheses.push_back(HypothesisText(first, segment, hypothesis));
    }
  }
  return texts;
}

TextRequest RequestOf(const TextRequest& second, const RankedTexts& texts,
                      const std::vector<TextItem>& items) {
  TextRequest request = second;
  for (const RankedSegment& segment : texts.segments) {
    for (const std::string& text : segment.hypotheses) {
      const std::string& path = items[segment.content].path;
      request.items.push_back(
          {.path = path, .text = &text, .target_path = path, .target = &segment.source});
      request.text_bytes += request.items.back().bytes();
    }
  }
  return request;
}

void Rerank(const std::vector<PreparedText>& scored, RankedTexts& texts) {
  std::span<const PreparedText> rest = scored;
  for (PreparedText& work : texts.prepared) {
    for (PreparedSegment& segment : work.segments) {
      if (segment.copied) continue;
      const size_t count = segment.result.hypotheses.size();
      RerankSegment(rest.first(count), *texts.request.reranking, segment);
      rest = rest.subspan(count);
    }
  }
}

}  // namespace linnet::server
