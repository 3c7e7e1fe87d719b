// Recognises files that are not plain text, in which a model would translate time codes, tags and
// keys.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace linnet::client {

// The name of the format that a file's name ends in ("SubRip subtitles" for "film.srt"), in any
// case of letters; nullopt for plain text and for endings that do not tell.
std::optional<absl::string_view> FormatOfName(absl::string_view file);

// The same by the first bytes of a text, only where they leave no doubt: a WEBVTT header, the two
// lines that begin SubRip subtitles, <!DOCTYPE html>, the header of a PO file, the magic number of
// ZIP (so of .docx), PDF or gzip. `start` may be cut anywhere.
inline constexpr size_t kFormatBytes = 1024;
std::optional<absl::string_view> FormatOfContent(absl::string_view start);

// INVALID_ARGUMENT that tells the format of `name` and the way out.
absl::Status UnsupportedFormat(absl::string_view name, absl::string_view format);

// The error for the first of these files whose name tells a format.
absl::Status CheckFormats(const std::vector<std::string>& files);

}  // namespace linnet::client
