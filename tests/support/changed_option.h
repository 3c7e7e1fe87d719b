#pragma once

#include <cstdint>
#include <optional>
#include <type_traits>
#include <variant>

#include "model/runtime/search/search_options.h"

namespace linnet::test {

// Gives an option another value, within its range.
inline void ChangeOption(const model::SearchOption& option, model::SearchOptions& options) {
  const auto change = [&](auto field) {
    auto& value = options.*field;
    using Value = std::remove_reference_t<decltype(value)>;
    if constexpr (std::is_same_v<Value, bool>) {
      value = !value;
    } else if constexpr (std::is_same_v<Value, std::optional<uint64_t>>) {
      value = 9;
    } else {
      const Value half = value / 2, more = 2 * value + 3;
      const auto fits = [&](Value other) {
        return other != value && other > option.range.min && other <= option.range.max;
      };
      value = fits(more) ? more : fits(half) ? half : static_cast<Value>(option.range.max);
    }
  };
  std::visit(change, option.field);
}

}  // namespace linnet::test
