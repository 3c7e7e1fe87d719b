#include "server/text_request.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "model/runtime/segmenter.h"
#include "server/errors.h"

namespace linnet::server {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::internal::WireFormatLite;
using linnet::v1::DecodingOptions;

std::string Item(absl::string_view field, int index) {
  return absl::StrCat(field, "[", index, "]");
}

// Walks the top level of a message that protobuf refused, and says where a text is not UTF-8.
absl::Status FindInvalidText(absl::string_view bytes,
                             const google::protobuf::Descriptor& descriptor) {
  google::protobuf::io::CodedInputStream in(reinterpret_cast<const uint8_t*>(bytes.data()),
                                            static_cast<int>(bytes.size()));
  std::map<int, int> seen;
  while (const uint32_t tag = in.ReadTag()) {
    const FieldDescriptor* field =
        descriptor.FindFieldByNumber(WireFormatLite::GetTagFieldNumber(tag));
    if (field == nullptr || field->type() != FieldDescriptor::TYPE_STRING ||
        WireFormatLite::GetTagWireType(tag) != WireFormatLite::WIRETYPE_LENGTH_DELIMITED) {
      if (!WireFormatLite::SkipField(&in, tag)) break;
      continue;
    }
    uint32_t size = 0;
    std::string text;
    if (!in.ReadVarint32(&size) || !in.ReadString(&text, static_cast<int>(size))) break;
    const int index = seen[field->number()]++;
    const int byte = model::FirstInvalidUtf8(text);
    if (byte < 0) continue;
    return BadField(field->is_repeated() ? Item(field->name(), index) : field->name(),
                    "INVALID_UTF8", absl::StrCat("text must be UTF-8, byte ", byte, " is not"),
                    {{"byte", absl::StrCat(byte)}});
  }
  return BadField("request", "MALFORMED",
                  absl::StrCat("the bytes are no ", descriptor.full_name()));
}

// Options of the request that are set, in an order in which each can be checked against those
// before it.
constexpr int kOptionOrder[] = {
    DecodingOptions::kBeamSizeFieldNumber,         DecodingOptions::kNBestFieldNumber,
    DecodingOptions::kLengthPenaltyFieldNumber,    DecodingOptions::kUnknownPenaltyFieldNumber,
    DecodingOptions::kTemperatureFieldNumber,      DecodingOptions::kNormalizeScoresFieldNumber,
    DecodingOptions::kMaxTargetTokensFieldNumber,  DecodingOptions::kMinTargetTokensFieldNumber,
    DecodingOptions::kNoRepeatNgramSizeFieldNumber};

// Sets the options one by one, so that the first that model::CheckOptions refuses is the one to
// name. `paths` says what the request calls an option, where that is not options.<name>.
absl::Status CheckDecodingOptions(const DecodingOptions& options, const ServedModel& model,
                                  const std::map<int, std::string>& paths) {
  const google::protobuf::Reflection& reflection = *options.GetReflection();
  DecodingOptions so_far;
  for (int number : kOptionOrder) {
    const FieldDescriptor* field = DecodingOptions::descriptor()->FindFieldByNumber(number);
    if (!reflection.HasField(options, field)) continue;
    const std::string path =
        paths.contains(number) ? paths.at(number) : absl::StrCat("options.", field->name());
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_FLOAT) {
      reflection.SetFloat(&so_far, field, reflection.GetFloat(options, field));
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_BOOL) {
      reflection.SetBool(&so_far, field, reflection.GetBool(options, field));
    } else {
      reflection.SetInt32(&so_far, field, reflection.GetInt32(options, field));
    }
    const model::SearchOptions merged =
        MergeOptions(model.bundle, so_far, model.bundle.manifest.limits().max_source_tokens());
    if (auto status = model::CheckOptions(merged, model.scheduler->engine_info().limits);
        !status.ok()) {
      absl::string_view message = status.message();
      absl::ConsumePrefix(&message, field->name() + " ");  // the path says it, and better
      return BadField(path, "BAD_OPTION", message);
    }
  }
  return absl::OkStatus();
}

absl::Status CheckContents(const google::protobuf::RepeatedPtrField<std::string>& contents,
                           const TextLimits& limits, int64_t& text_bytes) {
  if (contents.empty()) return BadField("contents", "EMPTY", "at least one text is needed");
  if (contents.size() > limits.max_contents) {
    return BadField("contents", "TOO_MANY_TEXTS",
                    absl::StrCat("holds ", contents.size(), " texts, at most ", limits.max_contents,
                                 " go into one call: send the rest in another"),
                    {{"texts", absl::StrCat(contents.size())},
                     {"maxTexts", absl::StrCat(limits.max_contents)}});
  }
  text_bytes = 0;
  for (const std::string& text : contents) text_bytes += static_cast<int64_t>(text.size());
  if (text_bytes > limits.max_text_bytes) {
    return BadField(
        "contents", "TOO_MANY_BYTES",
        absl::StrCat("holds ", text_bytes, " bytes of text, at most ", limits.max_text_bytes,
                     " go into one call: send the rest in another"),
        {{"bytes", absl::StrCat(text_bytes)}, {"maxBytes", absl::StrCat(limits.max_text_bytes)}});
  }
  for (int i = 0; i < contents.size(); ++i) {
    if (const int byte = model::FirstInvalidUtf8(contents[i]); byte >= 0) {
      return BadField(Item("contents", i), "INVALID_UTF8",
                      absl::StrCat("text must be UTF-8, byte ", byte, " is not"),
                      {{"byte", absl::StrCat(byte)}});
    }
    if (absl::StripAsciiWhitespace(contents[i]).empty()) {
      return BadField(Item("contents", i), "EMPTY",
                      contents[i].empty() ? "text is empty" : "text is nothing but white space");
    }
  }
  return absl::OkStatus();
}

// What both requests have in common, once the model is known.
absl::StatusOr<TextRequest> Check(const google::protobuf::RepeatedPtrField<std::string>& contents,
                                  const DecodingOptions& options,
                                  const std::map<int, std::string>& paths,
                                  absl::StatusOr<ServedModel*> model, bool split,
                                  const TextLimits& limits) {
  TextRequest checked;
  if (auto status = CheckContents(contents, limits, checked.text_bytes); !status.ok())
    return status;
  if (!model.ok()) return model.status();
  if (auto status = CheckDecodingOptions(options, **model, paths); !status.ok()) return status;
  checked.model = *model;
  checked.contents = &contents;
  checked.language_code = (*model)->bundle.manifest.source_language_code();
  checked.options = options;
  checked.split = split;
  return checked;
}

}  // namespace

absl::Status ParseRequest(absl::string_view bytes, google::protobuf::Message& message) {
  if (bytes.size() <= std::numeric_limits<int>::max() &&
      message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return absl::OkStatus();
  }
  return FindInvalidText(bytes, *message.GetDescriptor());
}

absl::StatusOr<TextRequest> CheckRequest(const linnet::v1::TranslateRequest& request,
                                         const Catalog& catalog, const TextLimits& limits) {
  if (!request.mime_type().empty() && request.mime_type() != "text/plain") {
    return BadField("mime_type", "UNSUPPORTED",
                    absl::StrCat("\"", absl::CHexEscape(request.mime_type().substr(0, 80)),
                                 "\" is not supported: there is text/plain"));
  }
  if (request.target_language_code().empty())
    return BadField("target_language_code", "MISSING", "is required");
  return Check(
      request.contents(), request.options(), {},
      catalog.Find(linnet::v1::TASK_TRANSLATE, request.model(), request.source_language_code(),
                   request.target_language_code(), "source_language_code"),
      /*split=*/true, limits);
}

absl::StatusOr<TextRequest> CheckRequest(const linnet::v1::SummarizeRequest& request,
                                         const Catalog& catalog, const TextLimits& limits) {
  DecodingOptions options = request.options();
  std::map<int, std::string> paths;
  auto twice = [](absl::string_view field, absl::string_view option) {
    return BadField(field, "SET_TWICE",
                    absl::StrCat("says the same as options.", option, ": set one of them"));
  };
  if (request.has_min_summary_tokens()) {
    if (options.has_min_target_tokens()) return twice("min_summary_tokens", "min_target_tokens");
    options.set_min_target_tokens(request.min_summary_tokens());
    paths[DecodingOptions::kMinTargetTokensFieldNumber] = "min_summary_tokens";
  }
  if (request.has_max_summary_tokens()) {
    if (options.has_max_target_tokens()) return twice("max_summary_tokens", "max_target_tokens");
    options.set_max_target_tokens(request.max_summary_tokens());
    paths[DecodingOptions::kMaxTargetTokensFieldNumber] = "max_summary_tokens";
  }
  return Check(request.contents(), options, paths,
               catalog.Find(linnet::v1::TASK_SUMMARIZE, request.model(), request.language_code(),
                            "", "language_code"),
               /*split=*/false, limits);
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
