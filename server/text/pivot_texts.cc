#include "server/text/pivot_texts.h"

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

// The text between the translations of two segments. The gap of the second may have the blank that
// the language in between needs.
std::string GapBetween(const PreparedSegment& before, absl::string_view pivot_before,
                       const PreparedSegment& segment, const std::string& target_language) {
  const bool touches = before.text.data() + before.text.size() == segment.text.data();
  if (touches && model::IsUnspacedLanguage(target_language)) return "";
  return GapAfter(pivot_before, segment.gap, target_language);
}

}  // namespace

int64_t PivotTexts::bytes() const {
  int64_t bytes = sizeof(*this) + VectorBytes(contents) + VectorBytes(segments);
  for (const Content& content : contents) {
    bytes += static_cast<int64_t>(content.tail.capacity());
    if (content.warning.has_value())
      bytes += static_cast<int64_t>(content.warning->SpaceUsedLong());
  }
  for (const PivotSegment& segment : segments) {
    bytes += static_cast<int64_t>(segment.gap.capacity() + segment.text.capacity()) +
             segment.attention.bytes() + segment.pieces.bytes();
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
    if (first.alignments) {
      kept.attention = MakeAttentionTable(first, segment, results[i], restored, WordUnit::kWord);
      kept.attention.source = InSource(segment, std::move(kept.attention.source));
    }
    if (first.markup.has_value() && !segment.copied)
      kept.pieces = MakeAttentionTable(first, segment, results[i], restored, WordUnit::kPiece);
    Findings findings = CompareWithSource(first, segment, restored, 0);
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
