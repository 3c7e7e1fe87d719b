#include "server/decode/json_line.h"

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "proto/status_macros.h"

namespace linnet::server {
namespace {

using linnet::v1::DecodingOptions;
using Json = nlohmann::ordered_json;

// Arrays and objects inside one another; an input line needs three.
constexpr int kMaxDepth = 64;

// Bytes that are not UTF-8 become U+FFFD, because an error message quotes the input.
std::string Dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

const char* FinishReason(bool ended_by_limit) { return ended_by_limit ? "LENGTH" : "STOP"; }

absl::Status WrongType(const std::string& name, const Json& value, const char* wanted) {
  std::string shown = Dump(value);
  if (shown.size() > 40) shown = absl::StrCat(value.type_name(), " of ", shown.size(), " bytes");
  return absl::InvalidArgumentError(absl::StrCat(name, " is ", shown, ", it must be ", wanted));
}

absl::Status Read(const std::string& name, const Json& value, int32_t& out) {
  constexpr auto kMin = std::numeric_limits<int32_t>::min();
  constexpr auto kMax = std::numeric_limits<int32_t>::max();
  if (!value.is_number_integer()) return WrongType(name, value, "an integer");
  const bool fits = value.is_number_unsigned()
                        ? value.get<uint64_t>() <= uint64_t{kMax}
                        : value.get<int64_t>() >= kMin && value.get<int64_t>() <= kMax;
  if (!fits) return WrongType(name, value, "an integer of 32 bits");
  out = value.get<int32_t>();
  return absl::OkStatus();
}

absl::Status Read(const std::string& name, const Json& value, uint64_t& out) {
  if (!value.is_number_unsigned())
    return WrongType(name, value, "an integer from 0 to 18446744073709551615");
  out = value.get<uint64_t>();
  return absl::OkStatus();
}

absl::Status Read(const std::string& name, const Json& value, float& out) {
  if (!value.is_number()) return WrongType(name, value, "a number");
  out = value.get<float>();
  return absl::OkStatus();
}

absl::Status Read(const std::string& name, const Json& value, bool& out) {
  if (!value.is_boolean()) return WrongType(name, value, "true or false");
  out = value.get<bool>();
  return absl::OkStatus();
}

absl::Status Read(const std::string& name, const Json& value, std::string& out) {
  if (!value.is_string()) return WrongType(name, value, "a string");
  out = value.get<std::string>();
  return absl::OkStatus();
}

template <typename T>
absl::Status Read(const std::string& name, const Json& value, std::vector<T>& out) {
  constexpr bool ids = std::is_same_v<T, model::TokenId>;
  if (!value.is_array())
    return WrongType(name, value, ids ? "a list of token ids" : "a list of lists of token ids");
  out.reserve(value.size());
  for (size_t i = 0; i < value.size(); ++i) {
    RETURN_IF_ERROR(Read(absl::StrCat(name, "[", i, "]"), value[i], out.emplace_back()));
  }
  return absl::OkStatus();
}

template <typename T>
absl::Status Read(const std::string& name, const Json& value, std::optional<T>& out) {
  return Read(name, value, out.emplace());
}

// The allowed keys of an object, with the reader of each value.
using Fields =
    std::map<std::string, std::function<absl::Status(const std::string& name, const Json& value)>>;

template <typename T>
Fields::mapped_type Into(T& out) {
  return [&out](const std::string& name, const Json& value) { return Read(name, value, out); };
}

absl::Status ReadObject(const std::string& what, const Json& object, const Fields& fields) {
  if (!object.is_object()) return WrongType(what, object, "a JSON object");
  for (const auto& [key, value] : object.items()) {
    const auto field = fields.find(key);
    if (field == fields.end()) {
      std::string known;
      for (const auto& [name, read] : fields)
        absl::StrAppend(&known, known.empty() ? "" : ", ", name);
      return absl::InvalidArgumentError(
          absl::StrCat(what, " has the unknown key ", Dump(key), ", known are ", known));
    }
    RETURN_IF_ERROR(field->second(key, value));
  }
  return absl::OkStatus();
}

// Reads the value of an option into its field.
absl::Status ReadOption(const std::string& name, const Json& value,
                        const google::protobuf::FieldDescriptor& field, DecodingOptions& options) {
  const auto& reflection = *options.GetReflection();
  const auto read = [&]<typename T>(T out, auto set) {
    const absl::Status status = Read(name, value, out);
    if (status.ok()) (reflection.*set)(&options, &field, out);
    return status;
  };
  using google::protobuf::FieldDescriptor;
  using google::protobuf::Reflection;
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return read(int32_t{}, &Reflection::SetInt32);
    case FieldDescriptor::CPPTYPE_UINT64:
      return read(uint64_t{}, &Reflection::SetUInt64);
    case FieldDescriptor::CPPTYPE_FLOAT:
      return read(float{}, &Reflection::SetFloat);
    case FieldDescriptor::CPPTYPE_BOOL:
      return read(bool{}, &Reflection::SetBool);
    default:
      return absl::UnimplementedError(
          absl::StrCat(name, " has the type ", field.type_name(), ", which no line can set"));
  }
}

absl::Status ReadOptions(const std::string& what, const Json& object, DecodingOptions& options) {
  Fields fields;
  const auto& message = *DecodingOptions::descriptor();
  for (int i = 0; i < message.field_count(); ++i) {
    fields[message.field(i)->name()] = [&options, field = message.field(i)](const std::string& name,
                                                                            const Json& value) {
      return ReadOption(name, value, *field, options);
    };
  }
  return ReadObject(what, object, fields);
}

// nlohmann silently takes the last of two equal keys; here a duplicate is an error.
absl::StatusOr<Json> ParseJson(const std::string& line) {
  std::vector<std::set<std::string>> open;
  std::string twice;
  bool too_deep = false;  // Dump is recursive
  const auto watch = [&](int depth, Json::parse_event_t event, Json& parsed) {
    too_deep = too_deep || depth > kMaxDepth;
    if (event == Json::parse_event_t::object_start) open.emplace_back();
    if (event == Json::parse_event_t::object_end) open.pop_back();
    if (event == Json::parse_event_t::key &&
        !open.back().insert(parsed.get<std::string>()).second) {
      twice = Dump(parsed);
    }
    return true;
  };
  try {
    Json json = Json::parse(line, watch);
    if (too_deep) {
      return absl::InvalidArgumentError(
          absl::StrCat("the line is nested more than ", kMaxDepth, " deep"));
    }
    if (!twice.empty())
      return absl::InvalidArgumentError(absl::StrCat("the key ", twice, " is there twice"));
    return json;
  } catch (const Json::exception& error) {
    // "[json.exception.parse_error.101] parse error at line 1, column 9: …"
    const std::string text = error.what();
    const size_t end = text.find("] ");
    return absl::InvalidArgumentError(absl::StrCat(
        "the line is not JSON: ", end == std::string::npos ? text : text.substr(end + 2)));
  }
}

}  // namespace

absl::StatusOr<InputLine> ParseInputLine(const std::string& line) {
  ASSIGN_OR_RETURN(const Json json, ParseJson(line));
  InputLine input;
  std::optional<std::vector<model::TokenId>> source_ids;
  RETURN_IF_ERROR(ReadObject("the line", json,
                             {{"text", Into(input.text)},
                              {"source_ids", Into(source_ids)},
                              {"source_language", Into(input.source_language)},
                              {"target_language", Into(input.target_language)},
                              {"style", Into(input.style)},
                              {"prefix_ids", Into(input.prefix_ids)},
                              {"constraint_ids", Into(input.constraint_ids)},
                              {"align", Into(input.align)},
                              {"target", Into(input.target)},
                              {"target_ids", Into(input.target_ids)},
                              {"options", [&](const std::string& name, const Json& value) {
                                 return ReadOptions(name, value, input.options);
                               }}}));
  if (input.text.has_value() == source_ids.has_value()) {
    return absl::InvalidArgumentError(
        input.text.has_value() ? "the line has both text and source_ids, it must have one of them"
                               : "the line has neither text nor source_ids");
  }
  if (input.target.has_value() && input.target_ids.has_value()) {
    return absl::InvalidArgumentError(
        "the line has both target and target_ids, it may have one of them");
  }
  if (source_ids.has_value()) input.source_ids = std::move(*source_ids);
  return input;
}

std::string FormatHypotheses(std::span<const model::Hypothesis> hypotheses,
                             const model::Tokenizer* tokenizer, std::span<const float> attention,
                             const model::Constraints& constraints) {
  Json list = Json::array();
  for (const model::Hypothesis& hypothesis : hypotheses) {
    Json entry;
    entry["ids"] = hypothesis.tokens;
    entry["text"] =
        tokenizer != nullptr ? Json(tokenizer->Decode(hypothesis.tokens)) : Json(nullptr);
    entry["score"] = hypothesis.score;
    entry["token_scores"] = hypothesis.token_scores;
    entry["finish_reason"] = FinishReason(hypothesis.ended_by_limit);
    if (!constraints.empty()) {
      // All tokens except the end token.
      const auto tokens = std::span(hypothesis.tokens).first(hypothesis.tokens.size() - 1);
      entry["unmet_constraints"] = constraints.UnmetBy(tokens);
    }
    list.push_back(std::move(entry));
  }
  if (!attention.empty() && !hypotheses.empty()) {
    const size_t target = hypotheses.front().tokens.size();
    const size_t source = attention.size() / target;
    Json rows = Json::array();
    for (size_t t = 0; t < target; ++t) {
      const auto row = attention.subspan(t * source, source);
      rows.push_back(std::vector<float>(row.begin(), row.end()));
    }
    list[0]["attention"] = std::move(rows);
  }
  return Dump({{"hypotheses", std::move(list)}});
}

std::string FormatTranslation(const TranslationLine& line) {
  return Dump({{"translation",
                {{"text", line.text},
                 {"score", line.score},
                 {"tokens", line.tokens},
                 {"finish_reason", FinishReason(line.ended_by_limit)},
                 {"warnings", line.warnings}}}});
}

std::string FormatError(const absl::Status& status) {
  const Json error = {{"code", absl::StatusCodeToString(status.code())},
                      {"message", std::string(status.message())}};
  return Dump({{"error", error}});
}

}  // namespace linnet::server
