#include "server/text/text_reply.h"

#include <algorithm>
#include <limits>
#include <span>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "server/text/aligned_words.h"
#include "server/text/text_warnings.h"

namespace linnet::server {
namespace {

using linnet::v1::FinishReason;

FinishReason ReasonOf(bool limited) {
  return limited ? linnet::v1::FINISH_REASON_LENGTH : linnet::v1::FINISH_REASON_STOP;
}

void FillHypotheses(const TextRequest& request, const PreparedSegment& work,
                    linnet::v1::Segment& segment) {
  for (const model::Hypothesis& hypothesis : work.result.hypotheses) {
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
                    const std::vector<AlignedWord>& words, int begin, const PivotSegment* pivot,
                    linnet::v1::Segment& segment) {
  const std::vector<AlignedWord> source =
      work.copied ? std::vector<AlignedWord>()
                  : SourceWords(*request.model->source_tokenizer, work.source, work.text,
                                work.copies, SourceCapitals(request, work));
  const WordAttention attention(source, work.source.size(), work.result.attention);
  std::vector<WordRange> ranges = attention.source();
  if (work.copied) {
    for (const AlignedWord& word : words) ranges.push_back({word.begin, word.end});
  }
  if (ranges.empty()) return;  // the model has no alignments
  for (size_t i = 0; i < words.size(); ++i) {
    std::vector<float> weights(ranges.size());
    if (work.copied) {
      weights[i] = 1;
    } else {
      weights = attention.WeightsOf(words[i]);
    }
    if (pivot != nullptr) weights = pivot->attention.Compose(ranges, work.place.begin, weights);
    AddWordAlignments(pivot == nullptr ? ranges : pivot->attention.source, weights,
                      pivot == nullptr ? work.place.begin : pivot->place.begin, words[i], begin,
                      *segment.mutable_word_alignments());
  }
}

// Moves the offsets of words and terms of the source from a text with joined lines to the text of
// the request.
void MoveToSource(const PreparedSegment& work, linnet::v1::Segment& segment) {
  const auto move = [&work](auto& place) {
    const auto [begin, end] = SourceOf(work, place.source_begin() - work.place.begin,
                                       place.source_end() - work.place.begin);
    place.set_source_begin(begin);
    place.set_source_end(end);
  };
  for (auto& alignment : *segment.mutable_word_alignments()) move(alignment);
  for (auto& term : *segment.mutable_glossary_terms()) move(term);
}

// The work to assemble a segment, in bytes of text without alignments.
int64_t AssemblyWork(const TextRequest& request, const PreparedSegment& segment) {
  constexpr int64_t kSegment = 64;
  constexpr int64_t kToken = 4;       // its text
  constexpr int64_t kAttention = 16;  // weights in the time of a byte
  int64_t tokens = 0;
  for (const model::Hypothesis& hypothesis : segment.result.hypotheses)
    tokens += std::ssize(hypothesis.tokens);
  if (segment.copied) tokens += std::ssize(segment.text) / kToken;
  const auto attention = static_cast<int64_t>(segment.result.attention.size());
  return kSegment + tokens * kToken * (request.word_scores || request.alignments ? 2 : 1) +
         (request.alignments ? attention / kAttention : 0);
}

// Adds a new text to the answer, and returns it; or the last one.
linnet::v1::Translation& LastText(linnet::v1::TranslateResponse& response, bool add) {
  auto& texts = *response.mutable_translations();
  return add ? *texts.Add() : texts[texts.size() - 1];
}
linnet::v1::Summary& LastText(linnet::v1::SummarizeResponse& response, bool add) {
  auto& texts = *response.mutable_summaries();
  return add ? *texts.Add() : texts[texts.size() - 1];
}

void FillRest(const PreparedText& /*text*/, linnet::v1::Translation& /*reply*/) {}
void FillRest(const PreparedText& text, linnet::v1::Summary& reply) {
  reply.set_truncated(text.truncated);
}

template <typename Response>
void FillModel(const TextRequest& request, Response& response) {
  response.set_model(request.model->name());
  response.set_model_version(request.model->bundle.manifest.version());
}
template <typename Response>
void FillLanguage(const TextRequest& request, Response& response) {
  if (request.detected.has_value()) *response.mutable_detected_language() = *request.detected;
}

}  // namespace

SegmentReply ReplyOf(const TextRequest& request, const PreparedSegment& work, int begin,
                     const PivotSegment* pivot) {
  const model::Tokenizer& tokenizer = *request.model->target_tokenizer;
  const model::Hypothesis& best = work.result.hypotheses.front();
  SegmentReply reply;
  reply.text = HypothesisText(request, work, best);
  linnet::v1::Segment& segment = reply.segment;
  segment.set_source_begin(work.place.begin);
  segment.set_source_end(work.place.end);
  segment.set_target_begin(begin);
  segment.set_target_end(begin + static_cast<int>(reply.text.size()));
  segment.set_score(best.score);
  segment.set_finish_reason(ReasonOf(best.ended_by_limit));
  segment.set_part_of_sentence(work.place.part_of_sentence);
  segment.set_copied(work.copied);
  if (request.options.has_n_best()) FillHypotheses(request, work, segment);
  if (request.word_scores || request.alignments) {
    const std::vector<AlignedWord> words = AlignedWords(tokenizer, best.tokens, reply.text,
                                                        work.copies, TargetCapitals(request, work));
    if (request.word_scores) FillWords(words, best, segment);
    if (request.alignments) FillAlignments(request, work, words, begin, pivot, segment);
  }
  FillTerms(work.terms, reply.text, work.place.begin, begin, segment);
  if (work.joined != nullptr) MoveToSource(work, segment);
  return reply;
}

SegmentReply ReplyOf(const TextRequest& request, const PivotSegment& pivot,
                     const PreparedText& work, int begin) {
  SegmentReply reply;
  linnet::v1::Segment& segment = reply.segment;
  segment.set_source_begin(pivot.place.begin);
  segment.set_source_end(pivot.place.end);
  segment.set_part_of_sentence(pivot.place.part_of_sentence);
  segment.set_copied(pivot.copied);
  float score = pivot.score;
  bool limited = pivot.ended_by_limit;
  for (const PreparedSegment& sentence : work.segments) {
    reply.text += sentence.gap;
    SegmentReply part =
        ReplyOf(request, sentence, begin + static_cast<int>(reply.text.size()), &pivot);
    reply.text += part.text;
    score += part.segment.score();
    limited |= part.segment.finish_reason() == linnet::v1::FINISH_REASON_LENGTH;
    segment.mutable_words()->MergeFrom(part.segment.words());
    segment.mutable_word_alignments()->MergeFrom(part.segment.word_alignments());
  }
  reply.text += work.tail;
  segment.set_target_begin(begin);
  segment.set_target_end(begin + static_cast<int>(reply.text.size()));
  segment.set_score(score);
  segment.set_finish_reason(ReasonOf(limited));
  return reply;
}

template <typename Response>
ReplyFiller<Response>::ReplyFiller(const TextRequest& request,
                                   const std::vector<PreparedText>& prepared, Response& response)
    : request_(request), prepared_(prepared), response_(response) {
  FillModel(request, response);
  FillLanguage(request, response);
}

template <typename Response>
bool ReplyFiller<Response>::Step(int64_t work) {
  while (work > 0 && next_ < prepared_.size()) {
    const bool begins = partial_.segments == 0;
    if (!StepText(prepared_[next_], LastText(response_, begins), work)) break;
    ++next_;
    partial_ = {};
  }
  return next_ == prepared_.size();
}

// Fills the fields that Translation and Summary have in common. True if the text is complete.
template <typename Response>
template <typename Reply>
bool ReplyFiller<Response>::StepText(const PreparedText& text, Reply& reply, int64_t& work) {
  while (work > 0 && partial_.segments < text.segments.size()) {
    const PreparedSegment& segment = text.segments[partial_.segments++];
    const model::Hypothesis& best = segment.result.hypotheses.front();
    work -= AssemblyWork(request_, segment);
    partial_.text += segment.gap;
    SegmentReply part = ReplyOf(request_, segment, static_cast<int>(partial_.text.size()));
    partial_.text += part.text;
    *reply.add_segments() = std::move(part.segment);
    partial_.limited |= best.ended_by_limit;
    partial_.source_tokens += static_cast<int>(segment.source.size());
    partial_.target_tokens += static_cast<int>(best.tokens.size());
  }
  if (partial_.segments < text.segments.size()) return false;
  reply.set_text(std::move(partial_.text) + text.tail);
  reply.set_finish_reason(ReasonOf(partial_.limited));
  reply.mutable_usage()->set_source_tokens(partial_.source_tokens);
  reply.mutable_usage()->set_target_tokens(partial_.target_tokens);
  if (text.other_language.has_value())
    *reply.add_warnings() = LanguageWarning(request_, *text.other_language);
  if (text.prose_share.has_value()) *reply.add_warnings() = ProseWarning(*text.prose_share);
  FillRest(text, reply);
  return true;
}

template class ReplyFiller<linnet::v1::TranslateResponse>;
template class ReplyFiller<linnet::v1::SummarizeResponse>;

void FillReply(const TextRequest& request, const std::vector<PreparedText>& prepared,
               linnet::v1::TranslateResponse& response) {
  ReplyFiller filler(request, prepared, response);
  filler.Step(std::numeric_limits<int64_t>::max());
}

void FillReply(const TextRequest& request, const PivotTexts& pivot,
               const std::vector<PreparedText>& prepared, linnet::v1::TranslateResponse& response) {
  FillModel(request, response);
  FillLanguage(request, response);
  response.mutable_pivot()->set_language_code(pivot.language_code);
  response.mutable_pivot()->set_model(pivot.model);
  response.mutable_pivot()->set_model_version(pivot.model_version);
  size_t next = 0;
  for (const PivotTexts::Content& content : pivot.contents) {
    linnet::v1::Translation& reply = *response.add_translations();
    linnet::v1::TokenUsage& usage = *reply.mutable_usage();
    std::string text;
    reply.set_finish_reason(linnet::v1::FINISH_REASON_STOP);
    for (const size_t end = next + content.segments; next < end; ++next) {
      const PivotSegment& segment = pivot.segments[next];
      text += segment.gap;
      SegmentReply part = ReplyOf(request, segment, prepared[next], static_cast<int>(text.size()));
      text += part.text;
      if (part.segment.finish_reason() == linnet::v1::FINISH_REASON_LENGTH)
        reply.set_finish_reason(linnet::v1::FINISH_REASON_LENGTH);
      *reply.add_segments() = std::move(part.segment);
      int source_tokens = segment.source_tokens;
      int target_tokens = segment.target_tokens;
      for (const PreparedSegment& work : prepared[next].segments) {
        source_tokens += static_cast<int>(work.source.size());
        target_tokens += static_cast<int>(work.result.hypotheses.front().tokens.size());
      }
      usage.set_source_tokens(usage.source_tokens() + source_tokens);
      usage.set_target_tokens(usage.target_tokens() + target_tokens);
    }
    reply.set_text(std::move(text) + content.tail);
    if (content.warning.has_value()) *reply.add_warnings() = *content.warning;
  }
}

void FillReply(const TextRequest& request, const std::vector<PreparedText>& prepared,
               linnet::v1::ScoreResponse& response) {
  FillModel(request, response);
  for (const PreparedText& work : prepared) {
    const PreparedSegment& segment = work.segments.front();
    const model::Hypothesis& target = segment.result.hypotheses.front();
    SegmentReply part = ReplyOf(request, segment, 0);
    linnet::v1::TargetScore& score = *response.add_scores();
    score.set_score(target.score);
    score.mutable_token_scores()->Add(target.token_scores.begin(), target.token_scores.end());
    score.set_text(std::move(part.text));
    score.mutable_words()->Swap(part.segment.mutable_words());
    score.mutable_word_alignments()->Swap(part.segment.mutable_word_alignments());
    score.mutable_usage()->set_source_tokens(static_cast<int>(segment.source.size()));
    score.mutable_usage()->set_target_tokens(static_cast<int>(target.tokens.size()));
  }
}

}  // namespace linnet::server
