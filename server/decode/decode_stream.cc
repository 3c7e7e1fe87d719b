#include "server/decode/decode_stream.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "proto/status_macros.h"

namespace linnet::server {
namespace {

// Max answers that wait for an earlier one.
int MaxAnswers(int batch) { return std::max(1024, 4 * batch); }

}  // namespace

class DecodeStream::AnswerSink final : public Sink {
 public:
  AnswerSink(DecodeStream& stream, Answer& answer, model::Constraints constraints)
      : stream_(stream), answer_(answer), constraints_(std::move(constraints)) {}

  void Done(absl::StatusOr<SequenceResult> result) override {
    answer_.ready = true;
    if (result.ok()) {
      answer_.line = FormatHypotheses(result->hypotheses, stream_.target_tokenizer_,
                                      result->attention, constraints_);
    } else {
      answer_.line = FormatError(result.status());
      stream_.all_decoded_ = false;
    }
  }

 private:
  DecodeStream& stream_;
  Answer& answer_;
  const model::Constraints constraints_;
};

DecodeStream::DecodeStream(const model::Bundle& bundle, model::Engine& engine,
                           const model::Tokenizer* source_tokenizer,
                           const model::Tokenizer* target_tokenizer,
                           const linnet::v1::DecodingOptions& overrides, int batch)
    : bundle_(bundle),
      languages_(bundle.manifest),
      source_tokenizer_(source_tokenizer),
      target_tokenizer_(target_tokenizer),
      overrides_(overrides),
      batch_(batch),
      batcher_(engine, {.max_sequences = batch}) {}

absl::StatusOr<bool> DecodeStream::Run(LineReader& input, std::FILE* output) {
  bool more = true;
  while (more || !batcher_.idle()) {
    if (more) more = ReadLines(input);
    if (!batcher_.idle()) batcher_.Step([] { return absl::Now(); });
    RETURN_IF_ERROR(PrintReady(output));
  }
  RETURN_IF_ERROR(input.status());
  return all_decoded_;
}

bool DecodeStream::ReadLines(LineReader& input) {
  std::string line;
  while (batcher_.waiting() + batcher_.running() < batch_ &&
         std::ssize(answers_) < MaxAnswers(batch_)) {
    // Ready answers must be printed before the reader blocks.
    const bool wait = batcher_.idle() && answers_.empty();
    const LineReader::Result result = input.Next(wait, line);
    if (result == LineReader::Result::kEnd) return false;
    if (result == LineReader::Result::kNothingYet) return true;
    Answer& answer = answers_.emplace_back();
    absl::Status status =
        result == LineReader::Result::kTooLong
            ? absl::InvalidArgumentError(absl::StrCat(
                  "the line has more than ", input.max_line_bytes(), " bytes: split its text"))
            : Start(line, answer);
    if (!status.ok()) {
      answer = {.ready = true, .line = FormatError(status)};
      all_decoded_ = false;
    }
  }
  return true;
}

absl::Status DecodeStream::Start(const std::string& line, Answer& answer) {
  ASSIGN_OR_RETURN(model::SequenceInput input, MakeInput(line));
  auto sequence = std::make_unique<Sequence>();
  sequence->input = std::move(input);
  sequence->sink = std::make_unique<AnswerSink>(
      *this, answer,
      model::Constraints(sequence->input.constraints, sequence->input.continuations));
  return batcher_.Add(sequence, absl::Now());
}

absl::StatusOr<model::SequenceInput> DecodeStream::MakeInput(const std::string& line) const {
  ASSIGN_OR_RETURN(InputLine parsed, ParseInputLine(line));
  model::SequenceInput input;
  input.prefix = std::move(parsed.prefix_ids);
  input.constraints = std::move(parsed.constraint_ids);
  if (!input.constraints.empty() && target_tokenizer_ != nullptr)
    input.continuations = target_tokenizer_->Continuations();
  input.align = parsed.align;
  if (parsed.text.has_value()) {
    if (source_tokenizer_ == nullptr) {
      return absl::InvalidArgumentError(
          "the bundle has no tokenizer: give source_ids instead of text");
    }
    ASSIGN_OR_RETURN(std::vector<model::TokenId> tokens, source_tokenizer_->Encode(*parsed.text));
    if (tokens.empty()) return absl::InvalidArgumentError("text is empty");
    input.source = std::move(tokens);
    input.source.push_back(bundle_.special_tokens().eos);
  } else {
    input.source = std::move(parsed.source_ids);
  }
  input.target = std::move(parsed.target_ids);
  if (parsed.target.has_value()) {
    if (target_tokenizer_ == nullptr) {
      return absl::InvalidArgumentError(
          "the bundle has no tokenizer: give target_ids instead of target");
    }
    ASSIGN_OR_RETURN(input.target, target_tokenizer_->Encode(*parsed.target));
    input.target->push_back(bundle_.special_tokens().eos);
  }
  linnet::v1::DecodingOptions overrides = overrides_;
  overrides.MergeFrom(parsed.options);
  input.options =
      model::ApplyOverrides(bundle_.default_options(static_cast<int>(input.source.size())),
                            overrides, bundle_.manifest.limits().max_target_tokens());
  RETURN_IF_ERROR(AddLanguages(parsed, input));
  return input;
}

// A text has language tokens in any case, ids only if the line names a language or a style.
absl::Status DecodeStream::AddLanguages(const InputLine& line, model::SequenceInput& input) const {
  const bool named = line.source_language.has_value() || line.target_language.has_value() ||
                     line.style.has_value();
  if (!named && !line.text.has_value()) return absl::OkStatus();
  const linnet::v1::LanguageTokens& own = languages_.own();
  const std::string source = line.source_language.value_or(own.source_language_code());
  const std::string target = line.target_language.value_or(own.target_language_code());
  const linnet::v1::LanguageTokens* pair = languages_.Find(source, target);
  if (pair == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("the bundle has no pair \"", source, "\" to \"",
                                                   target, "\", it has ", languages_.Summary()));
  }
  if (line.style.has_value()) {
    const std::vector<linnet::v1::SummaryStyle> styles = languages_.Styles(*pair);
    const std::optional<linnet::v1::SummaryStyle> style = model::StyleNamed(*line.style);
    pair = style.has_value() ? languages_.WithStyle(*pair, *style) : nullptr;
    if (pair == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("the bundle has no style \"", *line.style,
                       "\", its styles: ", model::StyleNames(styles)));
    }
  }
  model::AddLanguageTokens(*pair, input);
  return absl::OkStatus();
}

absl::Status DecodeStream::PrintReady(std::FILE* output) {
  bool printed = false;
  for (; !answers_.empty() && answers_.front().ready; answers_.pop_front()) {
    answers_.front().line.push_back('\n');
    const std::string& line = answers_.front().line;
    if (std::fwrite(line.data(), 1, line.size(), output) != line.size()) {
      return absl::UnavailableError(
          absl::StrCat("cannot write the output: ", std::strerror(errno)));
    }
    printed = true;
  }
  if (printed && std::fflush(output) != 0) {
    return absl::UnavailableError(absl::StrCat("cannot write the output: ", std::strerror(errno)));
  }
  return absl::OkStatus();
}

}  // namespace linnet::server
