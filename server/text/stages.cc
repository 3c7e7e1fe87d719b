// The stages of which calls consist.
#include <algorithm>
#include <span>
#include <utility>

#include "proto/status_macros.h"
#include "server/text/language_groups.h"
#include "server/text/markup_stage.h"
#include "server/text/memory_cost.h"
#include "server/text/pivot_texts.h"
#include "server/text/stage.h"
#include "server/text/text_reply.h"
#include "server/text/text_warnings.h"

namespace linnet::server {
namespace {

using linnet::v1::ScoreResponse;
using linnet::v1::SummarizeResponse;
using linnet::v1::Summary;
using linnet::v1::TranslateResponse;
using linnet::v1::Translation;

// Memory of a response and of its serialised form.
int64_t ReplyBytes(const google::protobuf::Message& response) {
  return 2 * static_cast<int64_t>(response.SpaceUsedLong());
}

// The work to assemble a segment, in bytes of text without alignments.
int64_t AssemblyWork(const TextRequest& request, const PreparedSegment& segment,
                     const SequenceResult& result) {
  constexpr int64_t kSegment = 64;
  constexpr int64_t kToken = 4;       // its text
  constexpr int64_t kAttention = 16;  // weights in the time of a byte
  int64_t tokens = 0;
  for (const model::Hypothesis& hypothesis : result.hypotheses)
    tokens += std::ssize(hypothesis.tokens);
  if (segment.copied) tokens += std::ssize(segment.text) / kToken;
  const auto attention = static_cast<int64_t>(result.attention.size());
  return kSegment + tokens * kToken * (request.word_scores || segment.align ? 2 : 1) +
         attention / kAttention;
}

int64_t AssemblyWork(const TextRequest& request, const DecodedText& text) {
  int64_t work = 0;
  for (size_t i = 0; i < text.results.size(); ++i)
    work += AssemblyWork(request, text.prepared.segments[i], text.results[i]);
  return work;
}

// Adds a new text to the answer, and returns it; or the last one.
Translation& LastText(TranslateResponse& response, bool add) {
  auto& texts = *response.mutable_translations();
  return add ? *texts.Add() : texts[texts.size() - 1];
}
Summary& LastText(SummarizeResponse& response, bool add) {
  auto& texts = *response.mutable_summaries();
  return add ? *texts.Add() : texts[texts.size() - 1];
}

void AddUsage(int64_t source_tokens, const SequenceResult& result, linnet::v1::TokenUsage& usage) {
  const model::Hypothesis& best = result.hypotheses.front();
  usage.set_source_tokens(usage.source_tokens() + static_cast<int>(source_tokens));
  usage.set_target_tokens(usage.target_tokens() + static_cast<int>(best.tokens.size()));
}

// What the answers to texts lack: warnings of each answer, or kept for the stage of markup, which
// knows their places in the answer.
class TextFindings {
 public:
  explicit TextFindings(bool keep) : keep_(keep) {}

  void Append(const Findings& segment) { text_.Append(segment); }
  // The text has no further segments.
  void EndText(google::protobuf::RepeatedPtrField<linnet::v1::Warning>& warnings) {
    if (keep_)
      kept_.push_back(std::exchange(text_, {}));
    else
      AddWarnings(std::exchange(text_, {}), warnings);
  }
  Findings Take(int content) { return std::move(kept_[content]); }
  int64_t bytes() const { return VectorBytes(kept_); }

 private:
  const bool keep_;
  Findings text_;
  std::vector<Findings> kept_;  // of the texts before it
};

template <typename Reply>
void AddSegment(SegmentReply part, Reply& reply, TextFindings& findings) {
  *reply.mutable_text() += part.text;
  findings.Append(part.findings);
  if (part.segment.finish_reason() == linnet::v1::FINISH_REASON_LENGTH)
    reply.set_finish_reason(linnet::v1::FINISH_REASON_LENGTH);
  *reply.add_segments() = std::move(part.segment);
}

void AddTail(const PreparedText& text, Translation& reply) { *reply.mutable_text() += text.tail; }
void AddTail(const PreparedText& text, Summary& reply) { reply.set_truncated(text.truncated); }

template <typename Response>
void FillModel(const TextRequest& request, Response& response) {
  response.set_model(request.model->name());
  response.set_model_version(request.model->bundle.manifest.version());
  response.set_compute(request.model->scheduler->engine_info().compute);
}
template <typename Response>
void FillLanguages(const TextRequest& request, const std::vector<TextItem>& items,
                   Response& response) {
  if (request.detected.has_value()) *response.mutable_detected_language() = *request.detected;
  AddDetectedLanguages(items, response);
}

// Translates or summarises with one model. The answer to a text is the best hypothesis of each
// segment, separated by their gaps.
template <typename Response>
class AnswerStage final : public Stage {
 public:
  AnswerStage(TextRequest request, Response& response)
      : Stage(std::move(request)),
        response_(response),
        findings_(/*keep=*/request_.markup.has_value()) {}

  bool Assemble(const std::vector<DecodedText>& texts, int64_t work) override {
    for (; work > 0 && text_ < texts.size(); ++text_, segment_ = 0) {
      const auto& [text, results] = texts[text_];
      auto& reply = LastText(response_, /*add=*/segment_ == 0);
      for (; work > 0 && segment_ < results.size(); ++segment_) {
        const PreparedSegment& segment = text.segments[segment_];
        const SequenceResult& result = results[segment_];
        work -= AssemblyWork(request_, segment, result);
        *reply.mutable_text() += segment.gap;
        AddSegment(MakeReply(request_, segment, result, static_cast<int>(reply.text().size())),
                   reply, findings_);
        AddUsage(std::ssize(segment.source), result, *reply.mutable_usage());
      }
      if (segment_ < results.size()) return false;
      if (reply.finish_reason() == linnet::v1::FINISH_REASON_UNSPECIFIED)
        reply.set_finish_reason(linnet::v1::FINISH_REASON_STOP);
      AddTail(text, reply);
      if (text.other_language.has_value())
        *reply.add_warnings() = LanguageWarning(request_, *text.other_language);
      if (text.prose_share.has_value()) *reply.add_warnings() = ProseWarning(*text.prose_share);
      findings_.EndText(*reply.mutable_warnings());
    }
    if (text_ < texts.size()) return false;
    FillModel(request_, response_);
    FillLanguages(request_, request_.items, response_);
    return true;
  }
  AttentionTable AlignPieces(const std::vector<DecodedText>& texts, int content,
                             int segment) const override {
    const PreparedSegment& prepared = texts[content].prepared.segments[segment];
    const SequenceResult& result = texts[content].results[segment];
    return MakeAttentionTable(request_, prepared, result,
                              RestoredHypothesis(request_, prepared, result.hypotheses.front()),
                              WordUnit::kPiece);
  }
  Findings TakeFindings(int content) override { return findings_.Take(content); }
  int64_t bytes() const override { return ReplyBytes(response_) + findings_.bytes(); }

 private:
  Response& response_;
  size_t text_ = 0;     // the next one
  size_t segment_ = 0;  // of that text
  TextFindings findings_;
};

// Scores the target of each pair, which is one segment.
class ScoreStage final : public Stage {
 public:
  ScoreStage(TextRequest request, ScoreResponse& response)
      : Stage(std::move(request)), response_(response) {}

  bool Assemble(const std::vector<DecodedText>& texts, int64_t work) override {
    for (; work > 0 && text_ < texts.size(); ++text_) {
      const auto& [text, results] = texts[text_];
      work -= AssemblyWork(request_, texts[text_]);
      const PreparedSegment& segment = text.segments.front();
      const model::Hypothesis& target = results.front().hypotheses.front();
      SegmentReply part = MakeReply(request_, segment, results.front(), 0);
      linnet::v1::TargetScore& score = *response_.add_scores();
      score.set_score(target.score);
      score.mutable_token_scores()->Add(target.token_scores.begin(), target.token_scores.end());
      score.set_text(std::move(part.text));
      score.mutable_words()->Swap(part.segment.mutable_words());
      score.mutable_word_alignments()->Swap(part.segment.mutable_word_alignments());
      AddUsage(std::ssize(segment.source), results.front(), *score.mutable_usage());
    }
    if (text_ < texts.size()) return false;
    FillModel(request_, response_);
    AddDetectedLanguages(request_.items, response_);
    return true;
  }
  int64_t bytes() const override { return ReplyBytes(response_); }

 private:
  ScoreResponse& response_;
  size_t text_ = 0;  // the next one
};

// Translates into the third language of a translation by two models.
class ToPivotStage final : public Stage {
 public:
  explicit ToPivotStage(TextRequest request) : Stage(std::move(request)), pivot_(request_) {}

  const PivotTexts& pivot() const { return pivot_; }
  bool Assemble(const std::vector<DecodedText>& texts, int64_t work) override {
    for (; work > 0 && text_ < texts.size(); ++text_) {
      pivot_.Add(request_, texts[text_]);
      work -= AssemblyWork(request_, texts[text_]);
    }
    return text_ == texts.size();
  }
  int64_t bytes() const override { return pivot_.bytes(); }

 private:
  PivotTexts pivot_;
  size_t text_ = 0;  // the next one
};

// Translates from the third language: each segment of the source is a text here.
class FromPivotStage final : public Stage {
 public:
  FromPivotStage(TextRequest request, const ToPivotStage& before, TranslateResponse& response)
      : Stage(std::move(request)),
        before_(before),
        pivot_(before.pivot()),
        response_(response),
        findings_(/*keep=*/before.request().markup.has_value()) {}

  absl::Status Begin(Permit& permit) override {
    RETURN_IF_ERROR(permit.Hold(std::ssize(pivot_.segments) * kBytesPerItem));
    for (const PivotSegment& segment : pivot_.segments) {
      request_.items.push_back({.path = before_.request().items[segment.content].path,
                                .text = &segment.text,
                                .index = static_cast<int>(request_.items.size())});
      request_.text_bytes += std::ssize(segment.text);
    }
    return absl::OkStatus();
  }

  absl::Status SegmentPrepared(const TextItem& item, PreparedSegment& segment) override {
    segment.align |= !pivot_.segments[item.index].pieces.source.empty();
    return absl::OkStatus();
  }

  AttentionTable AlignPieces(const std::vector<DecodedText>& texts, int content,
                             int segment) const override {
    const auto found = std::lower_bound(
        pivot_.segments.begin(), pivot_.segments.end(), std::pair(content, segment),
        [](const PivotSegment& each, const std::pair<int, int>& place) {
          return std::pair(each.content, each.index) < place;
        });
    const AttentionTable& first = found->pieces;
    const DecodedText& text = texts[found - pivot_.segments.begin()];
    AttentionTable table;
    table.source = first.source;
    int begin = 0;
    for (size_t i = 0; i < text.results.size(); ++i) {
      const PreparedSegment& sentence = text.prepared.segments[i];
      const model::RestoredText answer =
          RestoredHypothesis(request_, sentence, text.results[i].hypotheses.front());
      const AttentionTable own =
          MakeAttentionTable(request_, sentence, text.results[i], answer, WordUnit::kPiece);
      begin += static_cast<int>(sentence.gap.size());
      for (size_t word = 0; word < own.target.size(); ++word) {
        table.target.push_back({begin + own.target[word].begin, begin + own.target[word].end});
        const std::vector<float> weights = first.Compose(
            own.source, sentence.place.begin,
            std::span(own.weights).subspan(word * own.source.size(), own.source.size()));
        table.weights.insert(table.weights.end(), weights.begin(), weights.end());
      }
      begin += static_cast<int>(answer.text.size());
    }
    return table;
  }

  // Writes a part of the text of a segment as one of the segment.
  std::optional<linnet::v1::TextPart> Stream(linnet::v1::TextPart part,
                                             const std::vector<DecodedText>& texts) override {
    const DecodedText& text = texts[part.content_index()];
    const PivotSegment& segment = pivot_.segments[part.content_index()];
    const bool complete =
        text.results.empty() ||
        (part.has_segment() && part.segment_index() + 1 == std::ssize(text.results));
    part.set_content_index(segment.content);
    part.set_segment_index(segment.index);
    part.clear_segment();
    if (!std::exchange(gap_sent_, true)) {
      part.mutable_text()->insert(0, segment.gap);
      begin_ += static_cast<int>(segment.gap.size());
    }
    if (!complete) return part;
    *part.mutable_segment() = MakeReply(request_, segment, text, begin_).segment;
    begin_ = part.segment().target_end();
    gap_sent_ = false;
    if (segment.last) {
      *part.mutable_text() += pivot_.contents[segment.content].tail;
      begin_ = 0;
    }
    return part;
  }

  bool Assemble(const std::vector<DecodedText>& texts, int64_t work) override {
    for (; work > 0 && next_ < texts.size(); ++next_) {
      const DecodedText& text = texts[next_];
      const PivotSegment& segment = pivot_.segments[next_];
      Translation& reply = LastText(response_, /*add=*/segment.index == 0);
      if (segment.index == 0) reply.set_finish_reason(linnet::v1::FINISH_REASON_STOP);
      *reply.mutable_text() += segment.gap;
      AddSegment(MakeReply(request_, segment, text, static_cast<int>(reply.text().size())), reply,
                 findings_);
      linnet::v1::TokenUsage& usage = *reply.mutable_usage();
      usage.set_source_tokens(usage.source_tokens() + segment.source_tokens);
      usage.set_target_tokens(usage.target_tokens() + segment.target_tokens);
      for (size_t i = 0; i < text.results.size(); ++i)
        AddUsage(std::ssize(text.prepared.segments[i].source), text.results[i], usage);
      work -= 1 + AssemblyWork(request_, text);
      if (!segment.last) continue;
      const PivotTexts::Content& content = pivot_.contents[segment.content];
      *reply.mutable_text() += content.tail;
      if (content.warning.has_value()) *reply.add_warnings() = *content.warning;
      findings_.Append(content.findings);
      findings_.EndText(*reply.mutable_warnings());
    }
    if (next_ < texts.size()) return false;
    FillModel(request_, response_);
    FillLanguages(request_, before_.request().items, response_);
    response_.mutable_pivot()->set_language_code(pivot_.language_code);
    response_.mutable_pivot()->set_model(pivot_.model);
    response_.mutable_pivot()->set_model_version(pivot_.model_version);
    return true;
  }
  Findings TakeFindings(int content) override { return findings_.Take(content); }
  int64_t bytes() const override { return ReplyBytes(response_) + findings_.bytes(); }

 private:
  const ToPivotStage& before_;
  const PivotTexts& pivot_;
  TranslateResponse& response_;
  size_t next_ = 0;  // text
  TextFindings findings_;
  // In a stream: bytes of the answer before the segment.
  int begin_ = 0;
  bool gap_sent_ = false;
};

}  // namespace

Stages MakeStages(TextRequest request, TranslateResponse& response) {
  const bool has_markup = request.markup.has_value();
  Stages stages;
  if (request.second == nullptr) {
    stages.push_back(
        std::make_unique<AnswerStage<TranslateResponse>>(std::move(request), response));
  } else {
    TextRequest second = *request.second;
    auto first = std::make_unique<ToPivotStage>(std::move(request));
    auto last = std::make_unique<FromPivotStage>(std::move(second), *first, response);
    stages.push_back(std::move(first));
    stages.push_back(std::move(last));
  }
  return has_markup ? WithMarkup(std::move(stages), response) : std::move(stages);
}

Stages MakeStages(TextRequest request, SummarizeResponse& response) {
  Stages stages;
  stages.push_back(std::make_unique<AnswerStage<SummarizeResponse>>(std::move(request), response));
  return stages;
}

Stages MakeStages(TextRequest request, ScoreResponse& response) {
  Stages stages;
  stages.push_back(std::make_unique<ScoreStage>(std::move(request), response));
  return stages;
}

}  // namespace linnet::server
