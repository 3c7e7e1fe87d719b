#include "server/markup/marked_answer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace linnet::server {
namespace {

std::string Escaped(absl::string_view text) {
  std::string escaped;
  for (const char c : text) AppendEscaped(c, escaped);
  return escaped;
}

}  // namespace

ByteRange MarkedAnswer::Part::RangeOf(int begin, int end) const {
  const auto piece_at = [this](int at) {
    const auto after =
        std::upper_bound(pieces_.begin(), pieces_.end(), at,
                         [](int place, const Piece& piece) { return place < piece.begin; });
    return after == pieces_.begin() ? Piece{0, translation_.begin, translation_.begin}
                                    : *std::prev(after);
  };
  const Piece first = piece_at(begin);
  const Piece last = piece_at(end);
  const int range_end = last.begin == end && end > 0 ? last.before : last.place + end - last.begin;
  const auto within = [this](int at) {
    return std::clamp(at, translation_.begin, translation_.end);
  };
  return {within(first.place + begin - first.begin), within(range_end)};
}

void MarkedAnswer::Part::AddPiece(int begin, int before) {
  const auto place = static_cast<int>(text_.size());
  if (!pieces_.empty() && pieces_.back().begin == begin) {
    pieces_.back().place = place;
  } else {
    pieces_.push_back({begin, before, place});
  }
}

MarkedAnswer::Part MarkedAnswer::Add(const Segment& segment) {
  Part part;
  if (const AttributeText* const attribute = text_.AttributeAt(segment.begin);
      attribute != nullptr) {
    AddToAttribute(*attribute, segment);
    return part;
  }
  SegmentCodes codes;
  if (segment.copied) {
    codes.source = text_.SourceOf(segment.begin, segment.end);
  } else {
    codes = text_.CodesOf(fragment_, segment.begin, segment.end, previous_end_, segment.next_begin);
  }
  part.text_ = Copy(copied_, codes.source.begin) + codes.before;
  part.translation_.begin = static_cast<int>(part.text_.size());
  if (segment.copied) {
    part.text_ += Copy(codes.source.begin, codes.source.end);
  } else {
    WriteTranslation(segment, codes, part);
  }
  part.translation_.end = static_cast<int>(part.text_.size());
  part.text_ += codes.behind;
  copied_ = codes.source.end;
  previous_end_ = segment.end;
  return part;
}

std::string MarkedAnswer::Write(const Segment& segment) const {
  if (segment.copied) {
    const ByteRange source = text_.SourceOf(segment.begin, segment.end);
    return std::string(fragment_.substr(source.begin, source.end - source.begin));
  }
  if (text_.AttributeAt(segment.begin) != nullptr) return Escaped(segment.translation);
  Part part;
  WriteTranslation(
      segment,
      text_.CodesOf(fragment_, segment.begin, segment.end, previous_end_, segment.next_begin),
      part);
  return part.text_;
}

void MarkedAnswer::WriteTranslation(const Segment& segment, const SegmentCodes& codes,
                                    Part& part) const {
  std::string& out = part.text_;
  int written = 0;  // bytes of the translation
  const auto write_to = [&](int end) {
    for (; written < end; ++written) {
      const size_t before = out.size();
      AppendEscaped(segment.translation[written], out);
      if (out.size() > before + 1) part.AddPiece(written + 1, static_cast<int>(out.size()));
    }
  };
  if (codes.begin < codes.end) {
    for (const PlacedCode& placed :
         ProjectCodes(text_.codes(), codes.begin, codes.end, segment.begin, segment.words)) {
      const Code& code = text_.codes()[placed.code];
      write_to(placed.at);
      const auto before = static_cast<int>(out.size());
      if (code.visible && placed.behind && code.space_before) out += ' ';
      out += Copy(code.source.begin, code.source.end);
      if (code.visible && !placed.behind && code.space_after) out += ' ';
      part.AddPiece(written, before);
    }
  }
  write_to(static_cast<int>(segment.translation.size()));
}

void MarkedAnswer::AddToAttribute(const AttributeText& attribute, const Segment& segment) {
  AttributeValue& value = attributes_[&attribute - text_.attributes().data()];
  const ByteRange source = text_.SourceOf(segment.begin, segment.end);
  const int done = value.done == 0 ? attribute.source.begin : value.done;
  absl::StrAppend(&value.text, fragment_.substr(done, source.begin - done));
  value.text += Write(segment);
  value.done = source.end;
}

std::string MarkedAnswer::Copy(int begin, int end) const {
  const std::vector<AttributeText>& all = text_.attributes();
  auto next = std::lower_bound(
      all.begin(), all.end(), begin,
      [](const AttributeText& attribute, int at) { return attribute.source.begin < at; });
  std::string out;
  for (; next != all.end() && next->source.end <= end; ++next) {
    const AttributeValue& value = attributes_[next - all.begin()];
    if (value.done == 0) continue;
    absl::StrAppend(&out, fragment_.substr(begin, next->source.begin - begin));
    const std::string text =
        value.text + std::string(fragment_.substr(value.done, next->source.end - value.done));
    const char quote = next->quote == '\0' ? '"' : next->quote;
    if (next->quote == '\0') out += quote;
    for (const char c : text) {
      if (c == quote) {
        out += c == '"' ? "&quot;" : "&#39;";
      } else {
        out += c;
      }
    }
    if (next->quote == '\0') out += quote;
    begin = next->source.end;
  }
  absl::StrAppend(&out, fragment_.substr(begin, end - begin));
  return out;
}

std::string MarkedAnswer::Finish() {
  return Copy(std::exchange(copied_, static_cast<int>(fragment_.size())),
              static_cast<int>(fragment_.size()));
}

}  // namespace linnet::server
