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

// Texts to values, looked up by views without a copy. abseil's maps cannot do that where
// absl::string_view is a class of its own, as in Debian 12. For keys that come from files: the hash
// has no seed against keys that were chosen to collide.
template <typename Value>
using TextMap = std::unordered_map<std::string, Value, TextHash, std::equal_to<>>;

}  // namespace linnet::model
