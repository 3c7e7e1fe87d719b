#pragma once

#include <cstddef>
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace linnet::client {

// The offset of the first byte that is not part of well-formed UTF-8 (Unicode 15, table 3-7: no
// overlong forms, no surrogates, nothing above U+10FFFF), or nullopt.
std::optional<size_t> FindInvalidUtf8(absl::string_view text);

// U+FEFF, which Windows' Notepad puts in front of UTF-8.
inline constexpr absl::string_view kByteOrderMark = "\xEF\xBB\xBF";

// INVALID_ARGUMENT "NAME is not UTF-8: byte 0xff at offset 17". Without this check protobuf would
// send the bytes and the server would fail to parse them. The message mentions UTF-16 if the text
// begins like it.
absl::Status CheckUtf8(absl::string_view name, absl::string_view text);

}  // namespace linnet::client
