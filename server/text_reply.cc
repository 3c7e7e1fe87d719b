#include "server/text_reply.h"

#include <string_view>
#include <unordered_map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/errors.h"

namespace linnet::server {
namespace {

using linnet::v1::FinishReason;

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

// Translation and Summary have the same fields.
template <typename Reply>
void FillText(const TextRequest& request, const std::string& source, const TextWork& work,
              Reply& reply) {
  const model::Tokenizer& tokenizer = *request.model->target_tokenizer;
  std::string text;
  bool limited = false;
  int source_tokens = 0;
  int target_tokens = 0;
  int copied = 0;  // bytes of the source that are in the answer or behind it
  for (const SegmentWork& work_segment : work.segments) {
    const model::Hypothesis& best = work_segment.result.hypotheses.front();
    // Summaries stand for the whole text: white space around it is no part of the answer.
    if (request.split) text.append(source, copied, work_segment.place.begin - copied);
    linnet::v1::Segment& segment = *reply.add_segments();
    segment.set_source_begin(work_segment.place.begin);
    segment.set_source_end(work_segment.place.end);
    segment.set_target_begin(static_cast<int>(text.size()));
    text += tokenizer.Decode(best.tokens);
    segment.set_target_end(static_cast<int>(text.size()));
    segment.set_score(best.score);
    segment.set_finish_reason(best.ended_by_limit ? linnet::v1::FINISH_REASON_LENGTH
                                                  : linnet::v1::FINISH_REASON_STOP);
    segment.set_part_of_sentence(work_segment.place.part_of_sentence);
    if (request.options.has_n_best())
      FillHypotheses(tokenizer, work_segment.result.hypotheses, segment);
    limited |= best.ended_by_limit;
    source_tokens += static_cast<int>(work_segment.source.size());
    target_tokens += static_cast<int>(best.tokens.size());
    copied = work_segment.place.end;
  }
  if (request.split) text.append(source, copied, std::string::npos);
  reply.set_text(std::move(text));
  reply.set_finish_reason(limited ? linnet::v1::FINISH_REASON_LENGTH
                                  : linnet::v1::FINISH_REASON_STOP);
  reply.mutable_usage()->set_source_tokens(source_tokens);
  reply.mutable_usage()->set_target_tokens(target_tokens);
}

template <typename Response>
void FillModel(const TextRequest& request, Response& response) {
  response.set_model(request.model->name());
  response.set_model_version(request.model->bundle.manifest.version());
}

// A part of a text that was tokenised to see whether it fits.
struct Counted {
  int end = 0;
  std::vector<model::TokenId> tokens;
};

}  // namespace

absl::StatusOr<TextWork> PrepareText(const TextRequest& request, const std::string& text,
                                     absl::string_view field) {
  const ServedModel& model = *request.model;
  const int max_tokens = model.bundle.manifest.limits().max_source_tokens();
  std::vector<model::TextSegment> places = {{.begin = 0, .end = static_cast<int>(text.size())}};
  // By where the parts begin: of those that fit, the last one that is asked for becomes the
  // segment.
  std::unordered_map<int, Counted> counted;
  if (request.split) {
    auto count_tokens = [&](std::string_view part) {
      auto tokens = model.source_tokenizer->Encode(part);
      if (!tokens.ok()) return 0;  // the error comes back below
      const int count = static_cast<int>(tokens->size()) + 1;
      const int begin = static_cast<int>(part.data() - text.data());
      if (count <= max_tokens) {
        counted[begin] = {.end = begin + static_cast<int>(part.size()),
                          .tokens = *std::move(tokens)};
      }
      return count;
    };
    auto split = model::SplitText(text, request.language_code, max_tokens, count_tokens);
    if (!split.ok()) return AtField(field, "UNREADABLE_TEXT", split.status());
    places = *std::move(split);
  }
  TextWork work;
  for (const model::TextSegment& place : places) {
    absl::StatusOr<std::vector<model::TokenId>> tokens;
    if (Counted& known = counted[place.begin]; known.end == place.end) {
      tokens = std::move(known.tokens);
    } else {
      tokens = model.source_tokenizer->Encode(text.substr(place.begin, place.end - place.begin));
    }
    if (!tokens.ok()) return AtField(field, "UNREADABLE_TEXT", tokens.status());
    // What normalises to nothing (a zero-width blank) is kept as it is, like white space.
    if (tokens->empty()) continue;
    tokens->push_back(model.bundle.special_tokens().eos);
    if (static_cast<int>(tokens->size()) > max_tokens) {
      return BadField(
          field, "TEXT_TOO_LONG",
          absl::StrCat("text has ", tokens->size(), " tokens, model \"", model.name(),
                       "\" reads at most ", max_tokens, ": shorten it"),
          {{"tokens", absl::StrCat(tokens->size())}, {"maxTokens", absl::StrCat(max_tokens)}});
    }
    work.segments.push_back({.place = place, .source = *std::move(tokens), .result = {}});
  }
  if (work.segments.empty()) return BadField(field, "EMPTY", "text is nothing but white space");
  return work;
}

void FillReply(const TextRequest& request, const std::vector<TextWork>& works,
               linnet::v1::TranslateResponse& response) {
  FillModel(request, response);
  for (size_t i = 0; i < works.size(); ++i) {
    FillText(request, (*request.contents)[static_cast<int>(i)], works[i],
             *response.add_translations());
  }
}

void FillReply(const TextRequest& request, const std::vector<TextWork>& works,
               linnet::v1::SummarizeResponse& response) {
  FillModel(request, response);
  for (size_t i = 0; i < works.size(); ++i) {
    FillText(request, (*request.contents)[static_cast<int>(i)], works[i],
             *response.add_summaries());
  }
}

}  // namespace linnet::server
