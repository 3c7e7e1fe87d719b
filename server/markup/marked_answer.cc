#include "server/markup/marked_answer.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <span>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace linnet::server {
namespace {

// A place in the source of a segment and one in its translation that belong together.
struct Match {
  int source = 0;
  int target = 0;
};

// The words, each without or with cuts at these bytes behind its begin, and the index of the first
// piece of each.
std::vector<ByteRange> CutAt(const std::vector<ByteRange>& words,
                             const std::map<int, std::vector<int>>& cuts, std::vector<int>& first) {
  std::vector<ByteRange> pieces;
  for (int i = 0; i < std::ssize(words); ++i) {
    first.push_back(static_cast<int>(pieces.size()));
    int begin = words[i].begin;
    if (const auto own = cuts.find(i); own != cuts.end()) {
      for (const int cut : own->second) {
        pieces.push_back({begin, words[i].begin + cut});
        begin = words[i].begin + cut;
      }
    }
    pieces.push_back({begin, words[i].end});
  }
  return pieces;
}

// The words and links, where a word that stands once in each text, such as a name, is linked with
// itself alone. A model that would rather have written another word looks elsewhere there. Such a
// word is cut where a code is in it, as in a URL or between two variables; `codes` are these
// places, in order.
WordLinks WithEqualWords(const WordLinks& words, absl::string_view source,
                         absl::string_view translation, const std::vector<int>& codes) {
  std::map<absl::string_view, std::pair<std::vector<int>, std::vector<int>>> found;
  const auto find = [&](const std::vector<ByteRange>& ranges, absl::string_view text, auto places) {
    for (int i = 0; i < std::ssize(ranges); ++i) {
      const absl::string_view word =
          absl::ClippedSubstr(text, ranges[i].begin, ranges[i].end - ranges[i].begin);
      if (!IsMark(word)) (found[word].*places).push_back(i);
    }
  };
  using Places = decltype(found)::mapped_type;
  find(words.source, source, &Places::first);
  find(words.target, translation, &Places::second);
  std::map<int, std::vector<int>> source_cuts, target_cuts;
  std::vector<std::pair<int, int>> equal;
  std::vector<bool> equal_source(words.source.size()), equal_target(words.target.size());
  for (const auto& [word, places] : found) {
    if (places.first.size() != 1 || places.second.size() != 1) continue;
    equal.emplace_back(places.first[0], places.second[0]);
    equal_source[equal.back().first] = equal_target[equal.back().second] = true;
    const ByteRange& range = words.source[equal.back().first];
    std::vector<int> cuts;
    for (auto at = std::upper_bound(codes.begin(), codes.end(), range.begin);
         at != codes.end() && *at < range.end; at = std::upper_bound(at, codes.end(), *at))
      cuts.push_back(*at - range.begin);
    if (cuts.empty()) continue;
    source_cuts[equal.back().first] = cuts;
    target_cuts[equal.back().second] = std::move(cuts);
  }
  std::vector<int> source_first, target_first;
  WordLinks all;
  all.source = CutAt(words.source, source_cuts, source_first);
  all.target = CutAt(words.target, target_cuts, target_first);
  for (const auto& [from, to] : equal) {
    const auto cuts = source_cuts.find(from);
    const int pieces = cuts == source_cuts.end() ? 1 : static_cast<int>(cuts->second.size()) + 1;
    for (int i = 0; i < pieces; ++i)
      all.links.push_back({source_first[from] + i, target_first[to] + i, 1});
  }
  for (const WordLink& link : words.links) {
    if (!equal_source[link.source] && !equal_target[link.target])
      all.links.push_back({source_first[link.source], target_first[link.target], link.weight});
  }
  return all;
}

// The words, of which each stand-in is one: what is beside it in a word keeps the links of that
// word.
std::vector<ByteRange> CutOut(const std::vector<ByteRange>& words, std::vector<int> stand_ins,
                              std::vector<std::vector<int>>& pieces) {
  std::sort(stand_ins.begin(), stand_ins.end());
  std::vector<ByteRange> cut;
  auto next = stand_ins.begin();
  const auto add_before = [&](int end) {
    for (; next != stand_ins.end() && *next < end; ++next)
      cut.push_back({*next, *next + MarkedText::kStandInBytes});
  };
  for (const ByteRange& word : words) {
    add_before(word.begin);
    std::vector<int>& own = pieces.emplace_back();
    int begin = word.begin;
    const auto keep = [&](int end) {
      if (begin >= end) return;
      own.push_back(static_cast<int>(cut.size()));
      cut.push_back({begin, end});
    };
    for (; next != stand_ins.end() && *next < word.end; ++next) {
      keep(*next);
      begin = *next + MarkedText::kStandInBytes;
      cut.push_back({*next, begin});
    }
    keep(word.end);
  }
  if (!stand_ins.empty()) add_before(stand_ins.back() + 1);
  return cut;
}

// The words and links with the stand-ins as words that are linked with each other alone.
WordLinks WithStandIns(const WordLinks& words, const std::vector<Match>& matches) {
  std::vector<int> sources, targets;
  for (const Match& match : matches) {
    sources.push_back(match.source);
    targets.push_back(match.target);
  }
  std::vector<std::vector<int>> source_pieces, target_pieces;
  WordLinks all = {.source = CutOut(words.source, sources, source_pieces),
                   .target = CutOut(words.target, targets, target_pieces),
                   .links = {}};
  for (const WordLink& link : words.links) {
    for (const int source : source_pieces[link.source]) {
      for (const int target : target_pieces[link.target])
        all.links.push_back({source, target, link.weight});
    }
  }
  const auto word_at = [](const std::vector<ByteRange>& in, int at) {
    const auto found = std::lower_bound(
        in.begin(), in.end(), at, [](const ByteRange& word, int to) { return word.begin < to; });
    return static_cast<int>(found - in.begin());
  };
  for (const Match& match : matches)
    all.links.push_back({word_at(all.source, match.source), word_at(all.target, match.target), 1});
  return all;
}

// A code with a stand-in, and the byte of the translation where that is; -1 if it is lost.
struct StandIn {
  const Code* code = nullptr;
  int at = -1;
};

std::map<char32_t, StandIn> FindStandIns(std::span<const Code> codes,
                                         absl::string_view translation) {
  std::map<char32_t, StandIn> found;
  for (const Code& code : codes) {
    if (code.stand_in != 0) found[code.stand_in] = {.code = &code};
  }
  for (int at = 0; !found.empty() && at < std::ssize(translation); ++at) {
    const auto here = found.find(MarkedText::StandInAt(translation, at));
    if (here != found.end() && here->second.at < 0) here->second.at = at;
  }
  return found;
}

// The other side of the blank between two words that begins or ends at byte `at`; `at` if there is
// none.
size_t BlankBetween(absl::string_view text, size_t at) {
  const auto is_blank = [&](size_t place) {
    return place > 0 && place + 1 < text.size() && text[place] == ' ' &&
           MarkedText::AreWords(text[place - 1], text[place + 1]);
  };
  if (is_blank(at)) return at + 1;
  return at > 0 && is_blank(at - 1) ? at - 1 : at;
}

// Appends a character of a translation, as a reference if it would be markup.
void AppendCharacter(char c, bool as_is, std::string& out) {
  if (as_is) {
    out.push_back(c);
  } else {
    AppendEscaped(c, out);
  }
}

// The tags of templates in a text, such as "{{ a && b }}", "{% if a < 5 %}" and "${a > b}".
std::vector<ByteRange> FindTemplateTags(absl::string_view text) {
  std::vector<ByteRange> tags;
  size_t at = 0;
  while ((at = text.find('{', at)) != text.npos) {
    const char second = at + 1 < text.size() ? text[at + 1] : '\0';
    const bool dollar = at > 0 && absl::StrContains("$#%@", text[at - 1]);
    if (second != '{' && second != '%' && !dollar) {
      ++at;
      continue;
    }
    const absl::string_view close = second == '{' ? "}}" : second == '%' ? "%}" : "}";
    const size_t end = text.find(close, at + 1);
    if (end == text.npos) break;
    tags.push_back({static_cast<int>(at), static_cast<int>(end + close.size())});
    at = end + close.size();
  }
  return tags;
}

}  // namespace

ByteRange MarkedAnswer::Part::PlaceInPart(int begin, int end) const {
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
    codes.source = text_.SourceRange(segment.begin, segment.end);
  } else {
    codes =
        text_.FindCodes(fragment_, segment.begin, segment.end, previous_end_, segment.next_begin);
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
    const ByteRange source = text_.SourceRange(segment.begin, segment.end);
    return std::string(fragment_.substr(source.begin, source.end - source.begin));
  }
  if (text_.AttributeAt(segment.begin) != nullptr) {
    const std::vector<bool> as_is = FindAsIs(segment);
    std::string escaped;
    for (size_t at = 0; at < segment.translation.size(); ++at)
      AppendCharacter(segment.translation[at], as_is[at], escaped);
    return escaped;
  }
  Part part;
  WriteTranslation(
      segment,
      text_.FindCodes(fragment_, segment.begin, segment.end, previous_end_, segment.next_begin),
      part);
  return part.text_;
}

std::vector<bool> MarkedAnswer::FindAsIs(const Segment& segment) const {
  const absl::string_view source =
      absl::string_view(text_.text()).substr(segment.begin, segment.end - segment.begin);
  std::vector<bool> as_is(segment.translation.size());
  for (const ByteRange& tag : FindTemplateTags(source)) {
    const absl::string_view read = source.substr(tag.begin, tag.end - tag.begin);
    if (read.find_first_of("&<>") == read.npos) continue;
    const ByteRange place = text_.SourceRange(segment.begin + tag.begin, segment.begin + tag.end);
    if (fragment_.substr(place.begin, place.end - place.begin) != read) continue;
    for (size_t at = segment.translation.find(read); at != read.npos;
         at = segment.translation.find(read, at + read.size()))
      std::fill_n(as_is.begin() + static_cast<std::ptrdiff_t>(at), read.size(), true);
  }
  return as_is;
}

void MarkedAnswer::WriteTranslation(const Segment& segment, const SegmentCodes& codes,
                                    Part& part) const {
  std::string& out = part.text_;
  const absl::string_view translation = segment.translation;
  const std::map<char32_t, StandIn> stand_ins = FindStandIns(
      std::span(text_.codes()).subspan(codes.begin, codes.end - codes.begin), translation);
  const std::vector<bool> as_is = FindAsIs(segment);
  size_t written = 0;                       // bytes of the translation
  size_t without_blank = translation.npos;  // where a code between words took its place
  const auto write_to = [&](size_t end) {
    while (written < end) {
      if (stand_ins.contains(MarkedText::StandInAt(translation, written))) {
        written += MarkedText::kStandInBytes;
        // Where its code has gone elsewhere, one of the blanks around it goes as well.
        if (absl::EndsWith(out, " ") && absl::StartsWith(translation.substr(written), " "))
          ++written;
        part.AddPiece(static_cast<int>(written), static_cast<int>(out.size()));
        continue;
      }
      const size_t before = out.size();
      AppendCharacter(translation[written], as_is[written], out);
      ++written;
      if (out.size() > before + 1)
        part.AddPiece(static_cast<int>(written), static_cast<int>(out.size()));
    }
  };
  if (codes.begin < codes.end) {
    const absl::string_view source =
        absl::string_view(text_.text()).substr(segment.begin, segment.end - segment.begin);
    std::vector<int> places;
    for (int i = codes.begin; i < codes.end; ++i) {
      if (text_.codes()[i].stand_in == 0) places.push_back(text_.codes()[i].at - segment.begin);
    }
    const WordLinks words = WithEqualWords(segment.words, source, translation, places);
    std::vector<Match> matches;
    for (const auto& [character, stand_in] : stand_ins) {
      if (stand_in.at >= 0) matches.push_back({stand_in.code->at - 1 - segment.begin, stand_in.at});
    }
    for (const PlacedCode& placed : ProjectCodes(
             text_.codes(), codes.begin, codes.end, segment.begin,
             matches.empty() ? words : WithStandIns(words, matches), source, translation)) {
      const Code& code = text_.codes()[placed.code];
      write_to(placed.at);
      const auto before = static_cast<int>(out.size());
      if (code.stand_in != 0 && stand_ins.at(code.stand_in).at == placed.at) {
        part.AddPiece(static_cast<int>(written),
                      before);  // the range of the stand-in is that of the code
        out += Copy(code.source.begin, code.source.end);
        continue;
      }
      const size_t blank = code.between_words ? BlankBetween(translation, written) : written;
      if (blank > written || (blank < written && absl::EndsWith(out, " "))) {  // it goes there
        if (blank < written) out.pop_back();
        written = without_blank = std::max(written, blank);
        const auto place = static_cast<int>(out.size());
        out += Copy(code.source.begin, code.source.end);
        part.AddPiece(static_cast<int>(written), place);
        continue;
      }
      const bool joins = written == without_blank ||
                         (written > 0 && written < translation.size() &&
                          translation[written - 1] != ' ' && translation[written] != ' ');
      if (code.visible && code.space_before && (placed.behind || joins)) out += ' ';
      out += Copy(code.source.begin, code.source.end);
      // A comma behind it needs no blank.
      if (code.visible && code.space_after &&
          (joins ? absl::ascii_isalnum(translation[written]) : !placed.behind))
        out += ' ';
      part.AddPiece(static_cast<int>(written), before);
    }
  }
  write_to(translation.size());
}

void MarkedAnswer::AddToAttribute(const AttributeText& attribute, const Segment& segment) {
  AttributeValue& value = attributes_[&attribute - text_.attributes().data()];
  const ByteRange source = text_.SourceRange(segment.begin, segment.end);
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
