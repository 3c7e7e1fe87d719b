#include "server/text/text_reply.h"

#include <algorithm>
#include <span>

#include "server/text/aligned_words.h"

namespace linnet::server {
namespace {

void FillHypotheses(const TextRequest& request, const PreparedSegment& work,
                    const SequenceResult& result, linnet::v1::Segment& segment) {
  for (const model::Hypothesis& hypothesis : result.hypotheses) {
    linnet::v1::Hypothesis& reply = *segment.add_hypotheses();
    reply.set_text(HypothesisText(request, work, hypothesis));
    reply.set_score(hypothesis.score);
    reply.mutable_token_scores()->Add(hypothesis.token_scores.begin(),
                                      hypothesis.token_scores.end());
    reply.set_tokens(static_cast<int>(hypothesis.tokens.size()));
  }
}

// Adds each word with the mean score of its tokens.
void FillWords(const std::vector<AlignedWord>& words, const model::Hypothesis& hypothesis,
               linnet::v1::Segment& segment) {
  for (const AlignedWord& range : words) {
    double sum = 0;
    for (size_t i = range.first_token; i < range.end_token; ++i) sum += hypothesis.token_scores[i];
    const size_t count = std::max<size_t>(range.end_token - range.first_token, 1);
    linnet::v1::Word& word = *segment.add_words();
    word.set_target_begin(segment.target_begin() + range.begin);
    word.set_target_end(segment.target_begin() + range.end);
    word.set_score(static_cast<float>(sum / count));
  }
}

// Aligns the words of the answer to those of the source, or through a third language to those of
// the pivot's source. Each word of a copied segment is aligned to itself.
void FillAlignments(const TextRequest& request, const PreparedSegment& work,
                    const SequenceResult& result, const std::vector<AlignedWord>& words, int begin,
                    const PivotSegment* pivot, linnet::v1::Segment& segment) {
  const std::vector<AlignedWord> source =
      work.copied ? std::vector<AlignedWord>()
                  : SourceWords(*request.model->source_tokenizer, work.source, work.text,
                                work.spans, SourceCapitals(request, work));
  const WordAttention attention(source, work.source.size(), result.attention);
  std::vector<WordRange> ranges = attention.source();
  if (work.copied) {
    for (const AlignedWord& word : words) ranges.push_back({word.begin, word.end});
  }
  if (ranges.empty()) return;  // the model has no alignments
  for (size_t i = 0; i < words.size(); ++i) {
    std::span<const WordRange> from = ranges;
    std::vector<float> weights = {1};
    if (work.copied) {
      from = from.subspan(i, 1);
    } else {
      weights = attention.SourceWeights(words[i]);
    }
    if (pivot != nullptr) weights = pivot->attention.Compose(from, work.place.begin, weights);
    AddWordAlignments(pivot == nullptr ? from : pivot->attention.source, weights,
                      pivot == nullptr ? work.place.begin : pivot->place.begin, words[i], begin,
                      *segment.mutable_word_alignments());
  }
}

// Moves the offsets of words and terms of the source from a text with joined lines to the text of
// the request.
void MoveToSource(const PreparedSegment& work, linnet::v1::Segment& segment) {
  const auto move = [&work](auto& place) {
    const auto [begin, end] = SourceRange(work, place.source_begin() - work.place.begin,
                                          place.source_end() - work.place.begin);
    place.set_source_begin(begin);
    place.set_source_end(end);
  };
  for (auto& alignment : *segment.mutable_word_alignments()) move(alignment);
  for (auto& term : *segment.mutable_glossary_terms()) move(term);
}

}  // namespace

linnet::v1::FinishReason ToFinishReason(bool ended_by_limit) {
  return ended_by_limit ? linnet::v1::FINISH_REASON_LENGTH : linnet::v1::FINISH_REASON_STOP;
}

SegmentReply MakeReply(const TextRequest& request, const PreparedSegment& work,
                       const SequenceResult& result, int begin, const PivotSegment* pivot) {
  const model::Tokenizer& tokenizer = *request.model->target_tokenizer;
  const model::Hypothesis& best = result.hypotheses.front();
  SegmentReply reply;
  const model::RestoredText restored = RestoredHypothesis(request, work, best);
  reply.text = restored.text;
  linnet::v1::Segment& segment = reply.segment;
  segment.set_source_begin(work.place.begin);
  segment.set_source_end(work.place.end);
  segment.set_target_begin(begin);
  segment.set_target_end(begin + static_cast<int>(reply.text.size()));
  segment.set_score(best.score);
  segment.set_finish_reason(ToFinishReason(best.ended_by_limit));
  segment.set_part_of_sentence(work.place.part_of_sentence);
  segment.set_copied(work.copied);
  if (request.list_hypotheses) FillHypotheses(request, work, result, segment);
  if (request.word_scores || request.alignments) {
    const std::vector<AlignedWord> words =
        AlignedWords(tokenizer, best.tokens, restored, TargetCapitals(request, work));
    if (request.word_scores) FillWords(words, best, segment);
    if (request.alignments) FillAlignments(request, work, result, words, begin, pivot, segment);
  }
  FillTerms(work.terms, reply.text, work.place.begin, begin, segment);
  reply.findings = CompareWithSource(request, work, restored, begin);
  if (work.joined != nullptr) MoveToSource(work, segment);
  return reply;
}

SegmentReply MakeReply(const TextRequest& request, const PivotSegment& pivot,
                       const DecodedText& translated, int begin) {
  SegmentReply reply;
  linnet::v1::Segment& segment = reply.segment;
  segment.set_source_begin(pivot.place.begin);
  segment.set_source_end(pivot.place.end);
  segment.set_part_of_sentence(pivot.place.part_of_sentence);
  segment.set_copied(pivot.copied);
  float score = pivot.score;
  bool limited = pivot.ended_by_limit;
  for (size_t i = 0; i < translated.results.size(); ++i) {
    const PreparedSegment& sentence = translated.prepared.segments[i];
    reply.text += sentence.gap;
    SegmentReply part = MakeReply(request, sentence, translated.results[i],
                                  begin + static_cast<int>(reply.text.size()), &pivot);
    reply.text += part.text;
    // What the second model lost is somewhere in the source segment.
    for (auto* runs : {&part.findings.unread, &part.findings.forced, &part.findings.lost}) {
      if (!runs->empty()) *runs = {{pivot.place.begin, pivot.place.end}};
    }
    reply.findings.Append(part.findings);
    score += part.segment.score();
    limited |= part.segment.finish_reason() == linnet::v1::FINISH_REASON_LENGTH;
    segment.mutable_words()->MergeFrom(part.segment.words());
    segment.mutable_word_alignments()->MergeFrom(part.segment.word_alignments());
  }
  reply.text += translated.prepared.tail;
  segment.set_target_begin(begin);
  segment.set_target_end(begin + static_cast<int>(reply.text.size()));
  segment.set_score(score);
  segment.set_finish_reason(ToFinishReason(limited));
  return reply;
}

}  // namespace linnet::server
