#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace linnet::model {

struct TextHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
};

// A map from strings to values with look-up by std::string_view without a copy. abseil's maps do
// not support that if absl::string_view is a separate class, as in Debian 12. Only for keys from
// trusted files: the hash is not seeded against chosen collisions.
template <typename Value>
using TextMap = std::unordered_map<std::string, Value, TextHash, std::equal_to<>>;

}  // namespace linnet::model
