#include "server/markup/marked_text.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace linnet::server {
namespace {

template <typename T>
int64_t CapacityBytes(const std::vector<T>& items) {
  return static_cast<int64_t>(items.capacity() * sizeof(T));
}

}  // namespace

bool MarkedText::AreWords(char before, char behind) {
  const auto in_word = [](char c) {
    return absl::ascii_isalnum(c) || static_cast<uint8_t>(c) >= 0x80;
  };
  return (in_word(before) || absl::StrContains(".,:;!?", before)) && in_word(behind);
}

char32_t MarkedText::StandInAt(absl::string_view text, size_t at) {
  if (text.size() - at < kStandInBytes || text[at] != '\xF3') return 0;
  const auto bits = [&](size_t i) { return static_cast<char32_t>(text[at + i]) & 0x3F; };
  const char32_t c = 3U << 18 | bits(1) << 12 | bits(2) << 6 | bits(3);
  return c >= kFirstStandIn && c <= kLastStandIn ? c : 0;
}

ByteRange MarkedText::SourceRange(int begin, int end) const {
  const auto piece_at = [&](int at) -> const Piece& {
    return *std::prev(
        std::upper_bound(pieces_.begin(), pieces_.end(), at,
                         [](int place, const Piece& piece) { return place < piece.begin; }));
  };
  const Piece& first = piece_at(begin);
  const Piece& last = piece_at(end - 1);
  return {first.source.begin + (first.same ? begin - first.begin : 0),
          last.same ? last.source.begin + end - last.begin : last.source.end};
}

const AttributeText* MarkedText::AttributeAt(int at) const {
  const auto after = std::upper_bound(
      attributes_.begin(), attributes_.end(), at,
      [](int place, const AttributeText& attribute) { return place < attribute.plain.begin; });
  if (after == attributes_.begin() || std::prev(after)->plain.end <= at) return nullptr;
  return &*std::prev(after);
}

bool MarkedText::HasCodes(int begin, int end) const {
  auto next = std::upper_bound(codes_.begin(), codes_.end(), begin,
                               [](int at, const Code& code) { return at < code.at; });
  while (next != codes_.end() && next->at < end && next->stand_in != 0) ++next;
  return next != codes_.end() && next->at < end;
}

SegmentCodes MarkedText::FindCodes(absl::string_view fragment, int begin, int end, int previous_end,
                                   int next_begin) const {
  const auto index = [this](auto code) { return static_cast<int>(code - codes_.begin()); };
  const int inner_begin = index(std::upper_bound(
      codes_.begin(), codes_.end(), begin, [](int at, const Code& code) { return at < code.at; }));
  const int inner_end = std::max(
      inner_begin, index(std::lower_bound(codes_.begin(), codes_.end(), end,
                                          [](const Code& code, int at) { return code.at < at; })));
  SegmentCodes found = {.begin = inner_begin, .end = inner_end};
  // Tags at the edge come with the segment if the other one of their pair is inside of it, and no
  // tag of a template is between them and its text.
  const auto blank = [&](int from, int to) {
    return std::all_of(text_.begin() + from, text_.begin() + to, absl::ascii_isspace);
  };
  for (int i = inner_begin; i < inner_end; ++i) {
    const int partner = codes_[i].partner;
    if (partner < 0 || codes_[partner].line != codes_[i].line) continue;
    const int at = codes_[partner].at;
    if (partner < found.begin && at >= previous_end && blank(at, begin)) found.begin = partner;
    if (partner >= found.end && at <= next_begin && blank(end, at)) found.end = partner + 1;
  }
  const ByteRange text = SourceRange(begin, end);
  found.source = text;
  if (found.begin < inner_begin) found.source.begin = codes_[found.begin].source.begin;
  if (found.end > inner_end) found.source.end = codes_[found.end - 1].source.end;
  const auto append_between = [&](int from, int to, int code, int last, std::string& out) {
    for (; code < last; ++code) {
      absl::StrAppend(&out, fragment.substr(from, codes_[code].source.begin - from));
      from = codes_[code].source.end;
    }
    absl::StrAppend(&out, fragment.substr(from, to - from));
  };
  append_between(found.source.begin, text.begin, found.begin, inner_begin, found.before);
  append_between(text.end, found.source.end, inner_end, found.end, found.behind);
  return found;
}

int64_t MarkedText::bytes() const {
  return static_cast<int64_t>(text_.capacity()) + CapacityBytes(pieces_) + CapacityBytes(codes_) +
         CapacityBytes(attributes_);
}

int64_t MarkedText::MaxBytes(int64_t fragment_bytes) {
  // A code has at least three bytes ("<b>"), a piece two; vectors may hold twice what they need,
  // and an element that is open has a name in two places.
  constexpr int64_t kBytesPerByte =
      2 * (static_cast<int64_t>(sizeof(Code) + sizeof(std::string) * 2) / 3 +
           static_cast<int64_t>(sizeof(Piece)) + 1);
  return 4096 + kBytesPerByte * fragment_bytes;
}

}  // namespace linnet::server
