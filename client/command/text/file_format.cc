#include "client/command/text/file_format.h"

#include <algorithm>
#include <array>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "client/library/utf8.h"

namespace linnet::client {
namespace {

struct Ending {
  absl::string_view ending;
  absl::string_view format;
};

constexpr std::array kEndings = {
    Ending{"ass", "Advanced SubStation subtitles"},
    Ending{"bz2", "a compressed file"},
    Ending{"csv", "a table of comma-separated values"},
    Ending{"doc", "a Word document"},
    Ending{"docx", "a Word document"},
    Ending{"epub", "an EPUB book"},
    Ending{"gz", "a compressed file"},
    Ending{"htm", "HTML"},
    Ending{"html", "HTML"},
    Ending{"ini", "a file of settings"},
    Ending{"ipynb", "a Jupyter notebook"},
    Ending{"json", "JSON"},
    Ending{"markdown", "Markdown"},
    Ending{"md", "Markdown"},
    Ending{"odt", "an OpenDocument text"},
    Ending{"pdf", "PDF"},
    Ending{"po", "a catalogue of gettext"},
    Ending{"pot", "a catalogue of gettext"},
    Ending{"pptx", "a PowerPoint presentation"},
    Ending{"properties", "a file of Java properties"},
    Ending{"resx", "a file of .NET resources"},
    Ending{"rst", "reStructuredText"},
    Ending{"rtf", "RTF"},
    Ending{"srt", "SubRip subtitles"},
    Ending{"ssa", "SubStation subtitles"},
    Ending{"strings", "a file of Apple strings"},
    Ending{"svg", "SVG"},
    Ending{"tex", "LaTeX"},
    Ending{"tmx", "a translation memory"},
    Ending{"toml", "TOML"},
    Ending{"tsv", "a table of tab-separated values"},
    Ending{"vtt", "WebVTT subtitles"},
    Ending{"xhtml", "HTML"},
    Ending{"xlf", "XLIFF"},
    Ending{"xliff", "XLIFF"},
    Ending{"xlsx", "an Excel workbook"},
    Ending{"xml", "XML"},
    Ending{"xz", "a compressed file"},
    Ending{"yaml", "YAML"},
    Ending{"yml", "YAML"},
    Ending{"zip", "a ZIP archive"},
    Ending{"zst", "a compressed file"},
};

// Removes and returns the first line, without its end.
absl::string_view TakeLine(absl::string_view* text) {
  const size_t end = std::min(text->find('\n'), text->size());
  absl::string_view line = text->substr(0, end);
  text->remove_prefix(std::min(end + 1, text->size()));
  absl::ConsumeSuffix(&line, "\r");
  return line;
}

// True for "00:00:16,700 --> 00:00:18,000", with anything behind it.
bool IsSubRipTime(absl::string_view line) {
  constexpr absl::string_view kShape = "00:00:00,000 --> 00:00:00,000";
  if (line.size() < kShape.size()) return false;
  for (size_t i = 0; i < kShape.size(); ++i) {
    const bool fits = kShape[i] == '0' ? absl::ascii_isdigit(line[i]) : line[i] == kShape[i];
    if (!fits) return false;
  }
  return true;
}

bool IsSubRip(absl::string_view text) {
  const absl::string_view number = absl::StripAsciiWhitespace(TakeLine(&text));
  return !number.empty() && std::all_of(number.begin(), number.end(), absl::ascii_isdigit) &&
         IsSubRipTime(TakeLine(&text));
}

// A PO file begins with the entry of the empty text, after comments.
bool IsCatalogue(absl::string_view text) {
  while (absl::StartsWith(text, "#") || absl::StartsWith(text, "\n")) TakeLine(&text);
  return TakeLine(&text) == "msgid \"\"" && TakeLine(&text) == "msgstr \"\"";
}

}  // namespace

std::optional<absl::string_view> FormatOfName(absl::string_view file) {
  const size_t dot = file.rfind('.');
  if (dot == absl::string_view::npos) return std::nullopt;
  const absl::string_view ending = file.substr(dot + 1);
  for (const Ending& known : kEndings) {
    if (absl::EqualsIgnoreCase(ending, known.ending)) return known.format;
  }
  return std::nullopt;
}

std::optional<absl::string_view> FormatOfContent(absl::string_view start) {
  if (absl::StartsWith(start, "PK\x03\x04")) return "a ZIP archive or an office document";
  if (absl::StartsWith(start, "%PDF-")) return "PDF";
  if (absl::StartsWith(start, "\x1F\x8B")) return "a compressed file";
  if (absl::StartsWith(start, "{\\rtf")) return "RTF";
  absl::ConsumePrefix(&start, kByteOrderMark);
  absl::string_view first = start;
  const absl::string_view line = TakeLine(&first);
  if (line == "WEBVTT" || absl::StartsWith(line, "WEBVTT ") || absl::StartsWith(line, "WEBVTT\t"))
    return "WebVTT subtitles";
  if (absl::StartsWith(line, "<?xml ")) return "XML";
  for (const absl::string_view html : {"<!doctype html", "<html>", "<html "}) {
    if (absl::StartsWithIgnoreCase(absl::StripLeadingAsciiWhitespace(start), html)) return "HTML";
  }
  if (IsSubRip(start)) return "SubRip subtitles";
  if (IsCatalogue(start)) return "a catalogue of gettext";
  return std::nullopt;
}

absl::Status UnsupportedFormat(absl::string_view name, absl::string_view format) {
  return absl::InvalidArgumentError(
      absl::StrCat(name, " is ", format,
                   ", and only plain text is translated: linnet-file translates many formats "
                   "(docs/FILES.md); --as-text reads it as text, with all of its marks"));
}

absl::Status CheckFormats(const std::vector<std::string>& files) {
  for (const std::string& file : files) {
    if (const auto format = FormatOfName(file); format.has_value())
      return UnsupportedFormat(absl::StrCat("\"", file, "\""), *format);
  }
  return absl::OkStatus();
}

}  // namespace linnet::client
