#include "server/text/text_reply.h"

#include <algorithm>
#include <span>
#include <string_view>
#include <utility>

#include "absl/strings/ascii.h"

namespace linnet::server {
namespace {

using linnet::v1::FinishReason;

FinishReason ReasonOf(bool limited) {
  return limited ? linnet::v1::FINISH_REASON_LENGTH : linnet::v1::FINISH_REASON_STOP;
}

void FillHypotheses(const model::Tokenizer& tokenizer,
                    const std::vector<model::Hypothesis>& hypotheses,
                    linnet::v1::Segment& segment) {
  for (const model::Hypothesis& hypothesis : hypotheses) {
    linnet::v1::Hypothesis& reply = *segment.add_hypotheses();
    reply.set_text(tokenizer.Decode(hypothesis.tokens));
    reply.set_score(hypothesis.score);
    reply.mutable_token_scores()->Add(hypothesis.token_scores.begin(),
                                      hypothesis.token_scores.end());
    reply.set_tokens(static_cast<int>(hypothesis.tokens.size()));
  }
}

// How much of `text` the first tokens say already, for each number of them: what their own text has
// in common with it. Never shrinks.
std::vector<size_t> Ends(const model::Tokenizer& tokenizer, std::span<const model::TokenId> tokens,
                         std::string_view text) {
  std::vector<size_t> ends;
  size_t end = 0;
  for (size_t count = 1; count <= tokens.size(); ++count) {
    const std::string start = tokenizer.Decode(tokens.first(count));
    const auto common = std::mismatch(text.begin(), text.end(), start.begin(), start.end());
    end = std::max<size_t>(end, common.first - text.begin());
    ends.push_back(end);
  }
  return ends;
}

// The words of a segment's text, each with the mean of the tokens that say some of it.
void FillWords(const model::Tokenizer& tokenizer, const model::Hypothesis& hypothesis,
               std::string_view text, linnet::v1::Segment& segment) {
  const std::vector<size_t> ends = Ends(tokenizer, hypothesis.tokens, text);
  const auto start = [&](size_t i) { return i == 0 ? 0 : ends[i - 1]; };
  size_t token = 0;  // the first that says some of the word, or begins a character of it
  for (size_t begin = 0; begin < text.size();) {
    if (absl::ascii_isspace(static_cast<unsigned char>(text[begin]))) {
      ++begin;
      continue;
    }
    size_t end = begin;
    while (end < text.size() && !absl::ascii_isspace(static_cast<unsigned char>(text[end]))) ++end;
    while (token + 1 < ends.size() && ends[token] <= begin && start(token) < begin) ++token;
    double sum = 0;
    int count = 0;
    for (size_t i = token; i < ends.size() && (count == 0 || start(i) < end); ++i, ++count) {
      sum += hypothesis.token_scores[i];
    }
    linnet::v1::Word& word = *segment.add_words();
    word.set_target_begin(segment.target_begin() + static_cast<int>(begin));
    word.set_target_end(segment.target_begin() + static_cast<int>(end));
    word.set_score(static_cast<float>(sum / std::max(count, 1)));
    begin = end;
  }
}

// Translation and Summary have these fields in common.
template <typename Reply>
void FillText(const TextRequest& request, const TextWork& work, Reply& reply) {
  std::string text;
  bool limited = false;
  int source_tokens = 0;
  int target_tokens = 0;
  for (const SegmentWork& segment : work.segments) {
    const model::Hypothesis& best = segment.result.hypotheses.front();
    text += segment.gap;
    SegmentReply said = ReplyOf(request, segment, static_cast<int>(text.size()));
    text += said.text;
    *reply.add_segments() = std::move(said.segment);
    limited |= best.ended_by_limit;
    source_tokens += static_cast<int>(segment.source.size());
    target_tokens += static_cast<int>(best.tokens.size());
  }
  text += work.tail;
  reply.set_text(std::move(text));
  reply.set_finish_reason(ReasonOf(limited));
  reply.mutable_usage()->set_source_tokens(source_tokens);
  reply.mutable_usage()->set_target_tokens(target_tokens);
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

SegmentReply ReplyOf(const TextRequest& request, const SegmentWork& work, int begin) {
  const model::Tokenizer& tokenizer = *request.model->target_tokenizer;
  const model::Hypothesis& best = work.result.hypotheses.front();
  SegmentReply reply;
  reply.text = tokenizer.Decode(best.tokens);
  linnet::v1::Segment& segment = reply.segment;
  segment.set_source_begin(work.place.begin);
  segment.set_source_end(work.place.end);
  segment.set_target_begin(begin);
  segment.set_target_end(begin + static_cast<int>(reply.text.size()));
  segment.set_score(best.score);
  segment.set_finish_reason(ReasonOf(best.ended_by_limit));
  segment.set_part_of_sentence(work.place.part_of_sentence);
  if (request.options.has_n_best()) FillHypotheses(tokenizer, work.result.hypotheses, segment);
  if (request.word_scores) FillWords(tokenizer, best, reply.text, segment);
  return reply;
}

void FillReply(const TextRequest& request, const std::vector<TextWork>& works,
               linnet::v1::TranslateResponse& response) {
  FillModel(request, response);
  FillLanguage(request, response);
  for (const TextWork& work : works) FillText(request, work, *response.add_translations());
}

void FillReply(const TextRequest& request, const std::vector<TextWork>& works,
               linnet::v1::SummarizeResponse& response) {
  FillModel(request, response);
  FillLanguage(request, response);
  for (const TextWork& work : works) {
    linnet::v1::Summary& summary = *response.add_summaries();
    FillText(request, work, summary);
    summary.set_truncated(work.truncated);
  }
}

void FillReply(const TextRequest& request, const std::vector<TextWork>& works,
               linnet::v1::ScoreResponse& response) {
  FillModel(request, response);
  for (const TextWork& work : works) {
    const SegmentWork& segment = work.segments.front();
    const model::Hypothesis& target = segment.result.hypotheses.front();
    SegmentReply said = ReplyOf(request, segment, 0);
    linnet::v1::TargetScore& score = *response.add_scores();
    score.set_score(target.score);
    score.mutable_token_scores()->Add(target.token_scores.begin(), target.token_scores.end());
    score.set_text(std::move(said.text));
    score.mutable_words()->Swap(said.segment.mutable_words());
    score.mutable_usage()->set_source_tokens(static_cast<int>(segment.source.size()));
    score.mutable_usage()->set_target_tokens(static_cast<int>(target.tokens.size()));
  }
}

}  // namespace linnet::server
