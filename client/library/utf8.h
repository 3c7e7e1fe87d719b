#pragma once

#include <cstddef>
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace linnet::client {

// Where the first byte stands that is not part of well-formed UTF-8 (Unicode 15, table 3-7: no
// overlong forms, no surrogates, nothing above U+10FFFF); nothing if there is none.
std::optional<size_t> FindInvalidUtf8(absl::string_view text);

// What Windows' Notepad puts in front of UTF-8: U+FEFF.
inline constexpr absl::string_view kByteOrderMark = "\xEF\xBB\xBF";

// INVALID_ARGUMENT "NAME is not UTF-8: byte 0xff at offset 17". protobuf would send the bytes and
// the server fail to parse them. Of a text that begins as UTF-16 does, the message says so.
absl::Status CheckUtf8(absl::string_view name, absl::string_view text);

}  // namespace linnet::client
