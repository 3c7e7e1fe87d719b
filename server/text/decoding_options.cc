#include "server/text/decoding_options.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "server/base/errors.h"

namespace linnet::server {
namespace {

using google::protobuf::FieldDescriptor;
using linnet::v1::DecodingOptions;

// The order of the checks: each option is checked together with those before it.
constexpr int kOptionOrder[] = {
    DecodingOptions::kTopKFieldNumber,
    DecodingOptions::kTopPFieldNumber,
    DecodingOptions::kSeedFieldNumber,  // sampling or not decides how n_best and beam_size relate
    DecodingOptions::kBeamSizeFieldNumber,
    DecodingOptions::kNBestFieldNumber,
    DecodingOptions::kLengthPenaltyFieldNumber,
    DecodingOptions::kUnknownPenaltyFieldNumber,
    DecodingOptions::kTemperatureFieldNumber,
    DecodingOptions::kNormalizeScoresFieldNumber,
    DecodingOptions::kMaxTargetTokensFieldNumber,
    DecodingOptions::kMinTargetTokensFieldNumber,
    DecodingOptions::kNoRepeatNgramSizeFieldNumber};

}  // namespace

// Sets the options one by one, so that the first one rejected by model::CheckOptions is the one to
// name.
absl::Status CheckDecodingOptions(const DecodingOptions& options, const ServedModel& model,
                                  const std::map<int, std::string>& paths) {
  const google::protobuf::Reflection& reflection = *options.GetReflection();
  DecodingOptions so_far;
  for (int number : kOptionOrder) {
    const FieldDescriptor* field = DecodingOptions::descriptor()->FindFieldByNumber(number);
    if (!reflection.HasField(options, field)) continue;
    const std::string path =
        paths.contains(number) ? paths.at(number) : absl::StrCat("options.", field->name());
    switch (field->cpp_type()) {
      case FieldDescriptor::CPPTYPE_FLOAT:
        reflection.SetFloat(&so_far, field, reflection.GetFloat(options, field));
        break;
      case FieldDescriptor::CPPTYPE_BOOL:
        reflection.SetBool(&so_far, field, reflection.GetBool(options, field));
        break;
      case FieldDescriptor::CPPTYPE_UINT64:
        reflection.SetUInt64(&so_far, field, reflection.GetUInt64(options, field));
        break;
      default:
        reflection.SetInt32(&so_far, field, reflection.GetInt32(options, field));
    }
    const model::SearchOptions merged =
        MergeOptions(model.bundle, so_far, model.bundle.manifest.limits().max_source_tokens());
    if (auto status = model::CheckOptions(merged, model.scheduler->engine_info().limits);
        !status.ok()) {
      absl::string_view message = status.message();
      absl::ConsumePrefix(&message, field->name() + " ");  // the path names it already
      return BadField(path, Reason::kBadOption, message);
    }
  }
  return absl::OkStatus();
}

model::SearchOptions MergeOptions(const model::Bundle& bundle, const DecodingOptions& options,
                                  int source_tokens) {
  model::SearchOptions merged = bundle.default_options(source_tokens);
  if (options.has_beam_size()) merged.beam_size = options.beam_size();
  if (options.has_length_penalty()) merged.length_penalty = options.length_penalty();
  if (options.has_unknown_penalty()) merged.unknown_penalty = options.unknown_penalty();
  if (options.has_no_repeat_ngram_size())
    merged.no_repeat_ngram_size = options.no_repeat_ngram_size();
  if (options.has_n_best()) merged.n_best = options.n_best();
  if (options.has_normalize_scores()) merged.normalize_scores = options.normalize_scores();
  if (options.has_temperature()) merged.temperature = options.temperature();
  if (options.has_top_k()) merged.top_k = options.top_k();
  if (options.has_top_p()) merged.top_p = options.top_p();
  if (options.has_seed()) merged.seed = options.seed();
  // The model's default beam is for beam search. When sampling, draw only as many targets as
  // requested.
  if (merged.sampling() && !options.has_beam_size()) merged.beam_size = merged.n_best;
  if (options.has_min_target_tokens()) {
    merged.min_target_tokens = options.min_target_tokens();
    merged.max_target_tokens =
        std::max(merged.max_target_tokens,
                 std::min(merged.min_target_tokens, bundle.manifest.limits().max_target_tokens()));
  }
  if (options.has_max_target_tokens()) {
    merged.max_target_tokens = options.max_target_tokens();
    if (!options.has_min_target_tokens()) {
      merged.min_target_tokens = std::min(merged.min_target_tokens, merged.max_target_tokens);
    }
  }
  return merged;
}

}  // namespace linnet::server
