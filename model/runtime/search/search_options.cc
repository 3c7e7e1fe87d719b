#include "model/runtime/search/search_options.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <type_traits>

#include "absl/strings/str_cat.h"

namespace linnet::model {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using linnet::v1::DecodingOptions;

// A value of any field. Counts the fields of SearchOptions: a field that is not in kSearchOptions
// stops the build.
struct AnyValue {
  template <class Value>
  requires std::is_arithmetic_v<Value>
  operator Value() const;
};
template <class... Values>
constexpr size_t FieldCount() {
  if constexpr (requires { SearchOptions{Values{}..., AnyValue{}}; }) {
    return FieldCount<Values..., AnyValue>();
  } else {
    return sizeof...(Values);
  }
}
static_assert(FieldCount<>() == std::size(kSearchOptions));

template <class Number>
std::optional<BadOption> OutOfRange(const SearchOption& option, Number value) {
  const auto& [min, max, above_min, note] = option.range;
  if ((above_min ? value > min : value >= min) && value <= max && std::isfinite(value))
    return std::nullopt;
  const std::string wanted =
      above_min ? absl::StrCat("above ", min, " and at most ", max)
      : std::isfinite(max)
          ? absl::StrCat("between ", min, " and ", max)
          : absl::StrCat(std::is_floating_point_v<Number> ? "a finite number of " : "", "at least ",
                         min);
  return BadOption{option.name, absl::StrCat("is ", value, ", it must be ", wanted,
                                             *note == 0 ? "" : ", ", note)};
}

std::optional<BadOption> CheckRange(const char* name, int value, int min, const char* max_name,
                                    int max) {
  if (value >= min && value <= max) return std::nullopt;
  return BadOption{name, absl::StrCat("is ", value, ", it must be between ", min, " and ", max_name,
                                      ", which is ", max)};
}

// Calls visit(field, member) for each option that the message has a field for.
template <class Visit>
void ForEachField(const google::protobuf::Descriptor& message, const Visit& visit) {
  for (const SearchOption& option : kSearchOptions) {
    const FieldDescriptor* field = message.FindFieldByName(option.name);
    if (field == nullptr) continue;
    std::visit([&](auto member) { visit(*field, member); }, option.field);
  }
}

template <class Value>
Value Get(const Message& message, const FieldDescriptor& field) {
  const google::protobuf::Reflection& reflection = *message.GetReflection();
  if constexpr (std::is_same_v<Value, int>) return reflection.GetInt32(message, &field);
  if constexpr (std::is_same_v<Value, float>) return reflection.GetFloat(message, &field);
  if constexpr (std::is_same_v<Value, bool>) return reflection.GetBool(message, &field);
  if constexpr (std::is_same_v<Value, std::optional<uint64_t>>)
    return reflection.GetUInt64(message, &field);
}

void Set(int value, const FieldDescriptor& field, Message& message) {
  message.GetReflection()->SetInt32(&message, &field, value);
}
void Set(float value, const FieldDescriptor& field, Message& message) {
  message.GetReflection()->SetFloat(&message, &field, value);
}
void Set(bool value, const FieldDescriptor& field, Message& message) {
  message.GetReflection()->SetBool(&message, &field, value);
}
void Set(std::optional<uint64_t> value, const FieldDescriptor& field, Message& message) {
  if (value.has_value()) message.GetReflection()->SetUInt64(&message, &field, *value);
}

}  // namespace

std::optional<BadOption> FindBadOption(const SearchOptions& options, const SearchLimits& limits) {
  std::optional<BadOption> bad;
  for (const SearchOption& option : kSearchOptions) {
    if (const auto* field = std::get_if<int SearchOptions::*>(&option.field))
      bad = OutOfRange(option, options.**field);
    if (const auto* field = std::get_if<float SearchOptions::*>(&option.field))
      bad = OutOfRange(option, options.**field);
    if (bad.has_value()) return bad;
  }
  // An error names the cause: options that others depend on come first.
  const SearchOption beam_size = {"beam_size", {}, 1, static_cast<double>(limits.max_beam_size)};
  const SearchOption max_target_tokens = {
      "max_target_tokens", {}, 0, static_cast<double>(limits.max_target_tokens)};
  if (!bad) bad = OutOfRange(beam_size, options.beam_size);
  if (!bad) bad = CheckRange("n_best", options.n_best, 1, "beam_size", options.beam_size);
  if (!bad) bad = OutOfRange(max_target_tokens, options.max_target_tokens);
  if (!bad) {
    bad = CheckRange("min_target_tokens", options.min_target_tokens, 0, "max_target_tokens",
                     options.max_target_tokens);
  }
  return bad;
}

absl::Status CheckOptions(const SearchOptions& options, const SearchLimits& limits) {
  const std::optional<BadOption> bad = FindBadOption(options, limits);
  if (!bad.has_value()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(bad->option, " ", bad->message));
}

std::string NamesOfSampling() {
  std::string names, last;
  for (const SearchOption& option : kSearchOptions) {
    if (!option.samples) continue;
    if (!last.empty()) absl::StrAppend(&names, names.empty() ? "" : ", ", last);
    last = option.name;
  }
  return absl::StrCat(names, " or ", last);
}

void SetOptions(const Message& message, SearchOptions& options) {
  ForEachField(*message.GetDescriptor(), [&](const FieldDescriptor& field, auto member) {
    using Value = std::remove_cvref_t<decltype(options.*member)>;
    if (message.GetReflection()->HasField(message, &field))
      options.*member = Get<Value>(message, field);
  });
}

SearchOptions ApplyOverrides(SearchOptions defaults, const DecodingOptions& overrides,
                             int max_target_tokens) {
  SearchOptions merged = defaults;
  SetOptions(overrides, merged);
  // The default beam is for beam search. When sampling, draw only as many targets as requested.
  if (merged.sampling() && !overrides.has_beam_size()) merged.beam_size = merged.n_best;
  if (overrides.has_min_target_tokens() && !overrides.has_max_target_tokens()) {
    merged.max_target_tokens =
        std::max(merged.max_target_tokens, std::min(merged.min_target_tokens, max_target_tokens));
  }
  if (overrides.has_max_target_tokens() && !overrides.has_min_target_tokens())
    merged.min_target_tokens = std::min(merged.min_target_tokens, merged.max_target_tokens);
  return merged;
}

DecodingOptions AsRequest(const SearchOptions& options) {
  DecodingOptions request;
  ForEachField(*DecodingOptions::descriptor(), [&](const FieldDescriptor& field, auto member) {
    Set(options.*member, field, request);
  });
  return request;
}

}  // namespace linnet::model
