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
#include "server/request/text_request.h"

namespace linnet::server {
namespace {

// Max answers that wait for an earlier one.
int MaxAnswers(int batch) { return std::max(1024, 4 * batch); }

}  // namespace

class DecodeStream::AnswerSink final : public Sink {
 public:
  AnswerSink(DecodeStream& stream, Answer& answer, size_t segment, model::Constraints constraints)
      : stream_(stream), answer_(answer), segment_(segment), constraints_(std::move(constraints)) {}

  void Done(absl::StatusOr<SequenceResult> result) override {
    stream_.Deliver(answer_, segment_, std::move(result), constraints_);
  }

 private:
  DecodeStream& stream_;
  Answer& answer_;
  const size_t segment_;
  const model::Constraints constraints_;
};

DecodeStream::DecodeStream(std::shared_ptr<ServedModel> model, model::Engine& engine,
                           const linnet::v1::DecodingOptions& overrides, int batch, bool split)
    : model_(std::move(model)),
      overrides_(overrides),
      batch_(batch),
      protects_(split ? std::make_shared<const ProtectedPatterns>() : nullptr),
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
    if (!status.ok()) Finish(answer, status);
  }
  return true;
}

absl::Status DecodeStream::Start(const std::string& line, Answer& answer) {
  ASSIGN_OR_RETURN(InputLine parsed, ParseInputLine(line));
  const bool scored = parsed.target.has_value() || parsed.target_ids.has_value();
  if (protects_ != nullptr && parsed.text.has_value() && !scored)
    return StartText(std::move(parsed), answer);
  ASSIGN_OR_RETURN(model::SequenceInput input, MakeInput(parsed));
  return StartSequence(std::move(input), 0, answer);
}

absl::Status DecodeStream::StartText(InputLine line, Answer& answer) {
  if (!line.prefix_ids.empty() || !line.constraint_ids.empty() || line.align) {
    return absl::InvalidArgumentError(
        "prefix_ids, constraint_ids and align need a text that is not split: leave out --split");
  }
  ASSIGN_OR_RETURN(const linnet::v1::LanguageTokens* const languages, FindLanguages(line));
  TextRequest request;
  request.model = model_;
  request.languages = languages;
  request.language_code = languages->source_language_code();
  request.options = ResolvedOptions(model_->bundle, OptionsOf(line));
  request.split = model_->bundle.manifest.task() != linnet::v1::TASK_SUMMARIZE;
  request.protects = protects_;
  request.language_check = LanguageCheck::kWarn;
  ASSIGN_OR_RETURN(answer.text, TextAnswer::Prepare(std::move(request), *std::move(line.text)));
  auto inputs = answer.text->MakeInputs();
  answer.left = inputs.size();
  if (inputs.empty()) Finish(answer, answer.text->Format());
  for (auto& [segment, input] : inputs) {
    if (absl::Status status = StartSequence(std::move(input), segment, answer); !status.ok())
      Deliver(answer, segment, status, {});
  }
  return absl::OkStatus();
}

absl::Status DecodeStream::StartSequence(model::SequenceInput input, size_t segment,
                                         Answer& answer) {
  auto sequence = std::make_unique<Sequence>();
  sequence->input = std::move(input);
  sequence->sink = std::make_unique<AnswerSink>(
      *this, answer, segment,
      model::Constraints(sequence->input.constraints, sequence->input.continuations));
  return batcher_.Add(sequence, absl::Now());
}

void DecodeStream::Deliver(Answer& answer, size_t segment, absl::StatusOr<SequenceResult> result,
                           const model::Constraints& constraints) {
  if (answer.text == nullptr) {
    if (!result.ok()) return Finish(answer, result.status());
    return Finish(answer, FormatHypotheses(result->hypotheses, model_->target_tokenizer.get(),
                                           result->attention, constraints));
  }
  answer.text->SetResult(segment, std::move(result));
  if (--answer.left == 0) Finish(answer, answer.text->Format());
}

void DecodeStream::Finish(Answer& answer, absl::StatusOr<std::string> line) {
  all_decoded_ &= line.ok();
  answer = {.line = line.ok() ? *std::move(line) : FormatError(line.status())};
}

absl::StatusOr<model::SequenceInput> DecodeStream::MakeInput(const InputLine& line) const {
  model::SequenceInput input;
  input.prefix = line.prefix_ids;
  input.constraints = line.constraint_ids;
  if (!input.constraints.empty() && model_->target_tokenizer != nullptr)
    input.continuations = model_->target_tokenizer->Continuations();
  input.align = line.align;
  if (line.text.has_value()) {
    if (model_->source_tokenizer == nullptr) {
      return absl::InvalidArgumentError(
          "the bundle has no tokenizer: give source_ids instead of text");
    }
    ASSIGN_OR_RETURN(std::vector<model::TokenId> tokens,
                     model_->source_tokenizer->Encode(*line.text));
    if (tokens.empty()) return absl::InvalidArgumentError("text is empty");
    input.source = std::move(tokens);
    input.source.push_back(model_->bundle.special_tokens().eos);
  } else {
    input.source = line.source_ids;
  }
  input.target = line.target_ids;
  if (line.target.has_value()) {
    if (model_->target_tokenizer == nullptr) {
      return absl::InvalidArgumentError(
          "the bundle has no tokenizer: give target_ids instead of target");
    }
    ASSIGN_OR_RETURN(input.target, model_->target_tokenizer->Encode(*line.target));
    input.target->push_back(model_->bundle.special_tokens().eos);
  }
  const model::Bundle& bundle = model_->bundle;
  input.options =
      model::ApplyOverrides(bundle.default_options(static_cast<int>(input.source.size())),
                            OptionsOf(line), bundle.manifest.limits().max_target_tokens());
  // A text has language tokens in any case, ids only if the line names a language or a style.
  if (line.text.has_value() || line.source_language.has_value() ||
      line.target_language.has_value() || line.style.has_value()) {
    ASSIGN_OR_RETURN(const linnet::v1::LanguageTokens* const languages, FindLanguages(line));
    model::AddLanguageTokens(*languages, input);
  }
  return input;
}

linnet::v1::DecodingOptions DecodeStream::OptionsOf(const InputLine& line) const {
  linnet::v1::DecodingOptions options = overrides_;
  options.MergeFrom(line.options);
  return options;
}

absl::StatusOr<const linnet::v1::LanguageTokens*> DecodeStream::FindLanguages(
    const InputLine& line) const {
  const model::LanguagePairs& languages = model_->languages;
  const linnet::v1::LanguageTokens& own = languages.own();
  const std::string source = line.source_language.value_or(own.source_language_code());
  const std::string target = line.target_language.value_or(own.target_language_code());
  const linnet::v1::LanguageTokens* pair = languages.Find(source, target);
  if (pair == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("the bundle has no pair \"", source, "\" to \"",
                                                   target, "\", it has ", languages.Summary()));
  }
  if (line.style.has_value()) {
    const std::vector<linnet::v1::SummaryStyle> styles = languages.Styles(*pair);
    const std::optional<linnet::v1::SummaryStyle> style = model::StyleNamed(*line.style);
    pair = style.has_value() ? languages.WithStyle(*pair, *style) : nullptr;
    if (pair == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("the bundle has no style \"", *line.style,
                       "\", its styles: ", model::StyleNames(styles)));
    }
  }
  return pair;
}

absl::Status DecodeStream::PrintReady(std::FILE* output) {
  bool printed = false;
  for (; !answers_.empty() && !answers_.front().line.empty(); answers_.pop_front()) {
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
