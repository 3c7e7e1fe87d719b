#include "server/text/pivot_texts.h"

#include <algorithm>
#include <utility>

#include "model/runtime/bundle/languages.h"
#include "server/text/memory_cost.h"

namespace linnet::server {
namespace {

// Words of a segment's text as bytes of the request's text, counted from the place of the segment.
std::vector<WordRange> InSource(const PreparedSegment& work, std::vector<WordRange> words) {
  for (WordRange& word : words) {
    const auto [begin, end] = SourceRange(work, word.begin, word.end);
    word = {begin - work.place.begin, end - work.place.begin};
  }
  return words;
}

PivotAttention KeepAttention(const TextRequest& first, const PreparedSegment& work,
                             const SequenceResult& result, const model::RestoredText& text) {
  PivotAttention kept;
  const std::vector<AlignedWord> words =
      AlignedWords(*first.model->target_tokenizer, result.hypotheses.front().tokens, text,
                   TargetCapitals(first, work));
  if (work.copied) {  // each word is aligned to itself
    for (const AlignedWord& word : words) kept.pivot.push_back({word.begin, word.end});
    kept.source = InSource(work, kept.pivot);
    kept.weights.resize(words.size() * words.size());
    for (size_t i = 0; i < words.size(); ++i) kept.weights[i * words.size() + i] = 1;
    return kept;
  }
  const std::vector<AlignedWord> source =
      SourceWords(*first.model->source_tokenizer, work.source, work.text, work.spans,
                  SourceCapitals(first, work));
  const WordAttention attention(source, work.source.size(), result.attention);
  kept.source = InSource(work, attention.source());
  for (const AlignedWord& word : words) {
    const std::vector<float> weights = attention.SourceWeights(word);
    kept.pivot.push_back({word.begin, word.end});
    kept.weights.insert(kept.weights.end(), weights.begin(), weights.end());
  }
  return kept;
}

// The text between the translations of two segments. The gap of the second may have the blank that
// the language in between needs.
std::string GapBetween(const PreparedSegment& before, absl::string_view pivot_before,
                       const PreparedSegment& segment, const std::string& target_language) {
  const bool touches = before.text.data() + before.text.size() == segment.text.data();
  if (touches && model::IsUnspacedLanguage(target_language)) return "";
  return GapAfter(pivot_before, segment.gap, target_language);
}

}  // namespace

std::vector<float> PivotAttention::Compose(std::span<const WordRange> words, int begin,
                                           std::span<const float> row) const {
  std::vector<double> sums(source.size());
  for (size_t i = 0; i < words.size(); ++i) {
    // The last word that begins at this one or before it.
    const int at = begin + words[i].begin;
    const auto after =
        std::upper_bound(pivot.begin(), pivot.end(), at,
                         [](int at, const WordRange& word) { return at < word.begin; });
    if (after == pivot.begin()) continue;
    const float* const weight = weights.data() + (after - pivot.begin() - 1) * source.size();
    for (size_t s = 0; s < sums.size(); ++s) sums[s] += static_cast<double>(row[i]) * weight[s];
  }
  return {sums.begin(), sums.end()};
}

int64_t PivotTexts::bytes() const {
  int64_t bytes = sizeof(*this) + VectorBytes(contents) + VectorBytes(segments);
  for (const Content& content : contents) {
    bytes += static_cast<int64_t>(content.tail.capacity());
    if (content.warning.has_value())
      bytes += static_cast<int64_t>(content.warning->SpaceUsedLong());
  }
  for (const PivotSegment& segment : segments) {
    bytes += static_cast<int64_t>(segment.gap.capacity() + segment.text.capacity()) +
             VectorBytes(segment.attention.source) + VectorBytes(segment.attention.pivot) +
             VectorBytes(segment.attention.weights);
  }
  return bytes;
}

PivotTexts::PivotTexts(const TextRequest& first)
    : language_code(first.languages->target_language_code()),
      model(first.model->name()),
      model_version(first.model->bundle.manifest.version()) {}

void PivotTexts::Add(const TextRequest& first, const DecodedText& text) {
  const std::string& target = first.second->languages->target_language_code();
  const auto& [work, results] = text;
  Content& content = contents.emplace_back();
  content.tail = work.tail;
  if (work.other_language.has_value())
    content.warning = LanguageWarning(first, *work.other_language);
  for (size_t i = 0; i < results.size(); ++i) {
    const PreparedSegment& segment = work.segments[i];
    const model::Hypothesis& best = results[i].hypotheses.front();
    std::string gap = i == 0
                          ? segment.gap
                          : GapBetween(work.segments[i - 1], segments.back().text, segment, target);
    PivotSegment& kept = segments.emplace_back();
    kept.content = static_cast<int>(contents.size()) - 1;
    kept.index = static_cast<int>(i);
    kept.last = i + 1 == results.size();
    kept.place = segment.place;
    kept.gap = std::move(gap);
    model::RestoredText restored = RestoredHypothesis(first, segment, best);
    if (first.alignments) kept.attention = KeepAttention(first, segment, results[i], restored);
    Findings findings = FindingsOf(first, segment, restored, 0);
    findings.added.clear();  // bytes of the text in the third language
    contents.back().findings.Append(findings);
    kept.text = std::move(restored.text);
    kept.score = best.score;
    kept.ended_by_limit = best.ended_by_limit;
    kept.copied = segment.copied;
    kept.source_tokens = static_cast<int>(segment.source.size());
    kept.target_tokens = static_cast<int>(best.tokens.size());
  }
}

}  // namespace linnet::server
