#include "proto/decoding_flags.h"

#include <cstdint>
#include <map>

#include "CLI/CLI.hpp"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"

namespace linnet {
namespace {

using google::protobuf::FieldDescriptor;
using v1::DecodingOptions;

struct Row {
  const char* alias;  // a second name, which comes first in help and error texts; or null
  const char* about;
};

const std::map<std::string, Row>& Table() {
  static const auto& table = *new std::map<std::string, Row>{
      {"beam_size", {"--beam", "hypotheses kept at each step; 1 is greedy"}},
      {"length_penalty", {nullptr, "exponent of the length in the score"}},
      {"min_target_tokens", {nullptr, "shortest answer to a segment"}},
      {"max_target_tokens", {nullptr, "longest answer to a segment"}},
      {"unknown_penalty", {nullptr, "subtracted from the score of the unknown token"}},
      {"no_repeat_ngram_size", {nullptr, "no sequence of N tokens occurs twice; 0: no limit"}},
      {"max_ngram_repeats",
       {nullptr, "no sequence of tokens occurs more than N times in a row; 0: no limit"}},
      {"repetition_penalty",
       {nullptr, "above 1: lower the scores of tokens that the answer already has"}},
      {"n_best", {nullptr, "list the N best hypotheses of each segment with their scores"}},
      {"normalize_scores", {nullptr, "false: scores are sums, not divided by length"}},
      {"temperature", {nullptr, "divides the logits"}},
      {"top_k", {nullptr, "sample from the N most probable tokens; 0 excludes none"}},
      {"top_p",
       {nullptr, "sample from the fewest tokens whose probabilities sum to this; 1 excludes none"}},
      {"min_p",
       {nullptr, "sample from the tokens at least this probable beside the best; 0 excludes none"}},
      {"seed",
       {nullptr,
        "sample with this seed; --n-best samples are listed, or the best of --beam is kept"}},
  };
  return table;
}

const char* ValuePlaceholder(const FieldDescriptor& field) {
  if (field.cpp_type() == FieldDescriptor::CPPTYPE_BOOL) return "BOOL";
  return field.cpp_type() == FieldDescriptor::CPPTYPE_FLOAT ? "X" : "N";
}

DecodingFlag MakeFlag(const FieldDescriptor* field) {
  const Row& row = Table().at(field->name());
  DecodingFlag flag = {
      .field = field, .names = {}, .value = ValuePlaceholder(*field), .about = row.about};
  if (row.alias != nullptr) flag.names.emplace_back(row.alias);
  flag.names.push_back(absl::StrCat("--", absl::StrReplaceAll(field->name(), {{"_", "-"}})));
  return flag;
}

// Sets the field to the value of its flag. Returns what is wrong with the value, or "".
std::string Set(const DecodingFlag& flag, const std::string& value, DecodingOptions* options) {
  const auto& reflection = *options->GetReflection();
  const auto wrong = [&](const char* wanted) {
    return absl::StrCat("\"", value, "\" is no ", wanted);
  };
  switch (flag.field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32: {
      int32_t number;
      if (!absl::SimpleAtoi(value, &number)) return wrong("whole number");
      reflection.SetInt32(options, flag.field, number);
      return "";
    }
    case FieldDescriptor::CPPTYPE_UINT64: {
      uint64_t number;
      if (!absl::SimpleAtoi(value, &number)) return wrong("whole number from 0 on");
      reflection.SetUInt64(options, flag.field, number);
      return "";
    }
    case FieldDescriptor::CPPTYPE_FLOAT: {
      float number;
      if (!absl::SimpleAtof(value, &number)) return wrong("number");
      reflection.SetFloat(options, flag.field, number);
      return "";
    }
    case FieldDescriptor::CPPTYPE_BOOL: {
      bool choice;
      if (!absl::SimpleAtob(value, &choice)) return wrong("choice of true and false");
      reflection.SetBool(options, flag.field, choice);
      return "";
    }
    default:
      return absl::StrCat("has the type ", flag.field->type_name(), ", which no flag can set");
  }
}

}  // namespace

const std::vector<DecodingFlag>& DecodingFlags() {
  static const auto& flags = *[] {
    auto* all = new std::vector<DecodingFlag>;
    const auto& message = *DecodingOptions::descriptor();
    for (int i = 0; i < message.field_count(); ++i) all->push_back(MakeFlag(message.field(i)));
    return all;
  }();
  return flags;
}

void AddDecodingFlags(CLI::App& command, const std::function<DecodingOptions*()>& options) {
  for (const DecodingFlag& flag : DecodingFlags()) {
    const auto set = [&flag, options](const std::string& value) {
      const std::string error = Set(flag, value, options());
      if (!error.empty()) throw CLI::ValidationError(flag.names.front(), error);
    };
    command.add_option_function<std::string>(absl::StrJoin(flag.names, ","), set, flag.about)
        ->type_name(flag.value)
        ->group("Decoding");
  }
}

}  // namespace linnet
