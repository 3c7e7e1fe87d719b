#include "model/runtime/tokenizer/protected_spans.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "model/runtime/text/characters.h"

namespace linnet::model {
namespace {

constexpr int kCodeCount = 25;
constexpr const char* kCodes[kCodeCount] = {
    "KX7", "ZB4", "WT9", "QJ2", "VH5", "GP8", "XD3", "YN6", "FK4", "HZ7", "BW2", "JG5", "TV8",
    "RQ6", "MC3", "LY9", "DN5", "SX8", "PV3", "UK2", "CT6", "AJ4", "EZ9", "NB7", "OX1"};
constexpr int kMaxEnding = 2;  // letters of a plural or genitive

// The stand-in at byte `at` of a decoded text. A placeholder that stands for nothing has no span.
struct Found {
  static constexpr int kNone = -1;
  int span = kNone;
  int end = 0;  // of the stand-in and its ending
};

// A digit may follow that of a `loose` span.
std::optional<Found> FindStandIn(absl::string_view raw, int at, const Names& names,
                                 std::span<const ProtectedSpan> spans,
                                 const std::vector<bool>& loose) {
  const int number = names.StartOf(raw.substr(at));
  if (number < 0) return std::nullopt;
  const std::string& name = names[number];
  int end = at + static_cast<int>(name.size());
  const auto span = std::ranges::find(spans, number, &ProtectedSpan::stand_in);
  const int index = span == spans.end() ? Found::kNone : static_cast<int>(span - spans.begin());
  if (!absl::ascii_isalnum(name.front())) return Found{index, end};
  if (index == Found::kNone || (at > 0 && absl::ascii_isalnum(raw[at - 1]))) return std::nullopt;
  int letters = 0;
  while (end + letters < std::ssize(raw) && absl::ascii_isalnum(raw[end + letters])) ++letters;
  if (letters > 0 && absl::ascii_isdigit(raw[end])) {
    if (!loose[index]) return std::nullopt;
    letters = 0;
  }
  return Found{index, letters <= kMaxEnding ? end + letters : end};
}

// The kind of the character before or behind byte `at`.
enum class Neighbour { kOther, kLetter, kDigit };
Neighbour NeighbourOf(absl::string_view text, int at, bool before) {
  if (!TouchesWord(text, at, before)) return Neighbour::kOther;
  return absl::ascii_isdigit(text[before ? at - 1 : at]) ? Neighbour::kDigit : Neighbour::kLetter;
}

// True if letters are beside both places, or digits.
bool Touches(absl::string_view source, int at, absl::string_view text, int place, bool before) {
  const Neighbour neighbour = NeighbourOf(source, at, before);
  return neighbour != Neighbour::kOther && neighbour == NeighbourOf(text, place, before);
}

// True for what variables have between them that belong together: "%s:%d", "{a}/{b}".
bool AreMarks(absl::string_view text) {
  constexpr size_t kMax = 3;
  return text.size() <= kMax && text.find_first_not_of("/:.-_+=*|&~@#") == absl::string_view::npos;
}

bool HasWord(absl::string_view text) {
  return std::any_of(text.begin(), text.end(),
                     [](unsigned char c) { return absl::ascii_isalnum(c) || c >= 0x80; });
}

// Where a span that was left out goes: to the same share of the text between its neighbours as in
// the source, between words and outside other spans.
int PlaceOfForced(absl::string_view text, absl::string_view source, const ProtectedSpan& span,
                  std::span<const ProtectedSpan> spans,
                  std::span<const std::optional<TextRun>> places) {
  int source_begin = 0, source_end = static_cast<int>(source.size());
  int begin = 0, end = static_cast<int>(text.size());
  while (end > 0 && !HasWord(text.substr(end - 1))) --end;  // before the full stop
  const int last = end;
  for (int i = 0; i < std::ssize(spans); ++i) {
    if (!places[i].has_value()) continue;
    if (spans[i].end <= span.begin) {
      source_begin = spans[i].end;
      begin = places[i]->end;
    } else if (spans[i].begin >= span.end && places[i]->begin >= begin) {
      source_end = spans[i].begin;
      end = places[i]->begin;
      break;
    }
  }
  end = std::max(begin, end);
  if (!HasWord(source.substr(source_begin, span.begin - source_begin))) return begin;
  if (!HasWord(source.substr(span.end, source_end - span.end))) return end;
  const int64_t offset =
      int64_t{end - begin} * (span.begin - source_begin) / std::max(source_end - source_begin, 1);
  const auto is_free = [&](int at) {
    const bool between = at == 0 || at >= last || text[at] == ' ';
    return between && std::none_of(places.begin(), places.end(), [&](const auto& place) {
             return place.has_value() && place->begin < at && at < place->end;
           });
  };
  const int wished = begin + static_cast<int>(offset);
  for (int away = 0; away <= end - begin; ++away) {
    if (wished - away >= begin && is_free(wished - away)) return wished - away;
    if (wished + away <= end && is_free(wished + away)) return wished + away;
  }
  return end;
}

}  // namespace

std::span<const char* const> CodeStandIns() { return kCodes; }

bool TouchesWord(absl::string_view text, int at, bool before) {
  if (at == (before ? 0 : std::ssize(text))) return false;
  const UChar32 c = (before ? CharacterBefore(text, at) : CharacterAt(text, at)).code_point;
  return InWord(c) && !IsUnspacedScript(c);
}

void GrowToWords(absl::string_view text, ProtectedSpan& span, int max_letters) {
  int begin = span.begin, end = span.end, before = 0, behind = 0;
  for (; TouchesWord(text, begin, /*before=*/true); ++before)
    begin = CharacterBefore(text, begin).begin;
  for (; TouchesWord(text, end, /*before=*/false); ++behind) end = CharacterAt(text, end).end;
  const bool within = before > 0 && behind > 0;
  if (before > max_letters && !within) begin = span.begin;
  if (behind > max_letters && !within) end = span.end;
  span.text = absl::StrCat(text.substr(begin, span.begin - begin), span.text,
                           text.substr(span.end, end - span.end));
  span.begin = begin;
  span.end = end;
}

std::vector<ProtectedSpan> MergeSpans(absl::string_view text, std::vector<ProtectedSpan> spans) {
  std::vector<ProtectedSpan> merged;
  AddSpans(text, std::move(spans), merged);
  return merged;
}

int64_t AddSpans(absl::string_view text, std::vector<ProtectedSpan> spans,
                 std::vector<ProtectedSpan>& merged) {
  std::stable_sort(spans.begin(), spans.end(), [](const auto& a, const auto& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end > b.end;
  });
  const auto part = [&](int begin, int end) { return text.substr(begin, end - begin); };
  const auto joined = [&](const ProtectedSpan& before, const ProtectedSpan& next) {
    return next.begin <= before.end ||
           (!before.tag && !next.tag && AreMarks(part(before.end, next.begin))) ||
           (SkipWhiteSpace(text, before.end) >= next.begin &&
            !absl::StrContains(part(before.end, next.begin), '\n'));
  };
  int64_t added = 0;
  for (ProtectedSpan& span : spans) {
    if (merged.empty() || !joined(merged.back(), span)) {
      added += std::ssize(span.text);
      merged.push_back(std::move(span));
      continue;
    }
    ProtectedSpan& before = merged.back();
    if (span.end <= before.end) continue;
    const int64_t size = std::ssize(before.text);
    if (span.begin >= before.end) {
      absl::StrAppend(&before.text, part(before.end, span.begin), span.text);
    } else {  // the rest of what overlaps
      absl::StrAppend(&before.text, part(before.end, span.end));
    }
    added += std::ssize(before.text) - size;
    before.end = span.end;
    before.tag = before.tag && span.tag;
  }
  return added;
}

std::vector<ProtectedSpan> SpansWithin(absl::string_view text, std::span<const ProtectedSpan> spans,
                                       int begin, int end) {
  auto next = std::lower_bound(spans.begin(), spans.end(), begin,
                               [](const auto& span, int at) { return span.end <= at; });
  std::vector<ProtectedSpan> within;
  for (; next != spans.end() && next->begin < end; ++next) {
    const int from = std::max(next->begin, begin), to = std::min(next->end, end);
    const bool whole = from == next->begin && to == next->end;
    within.push_back({from - begin, to - begin,
                      whole ? next->text : std::string(text.substr(from, to - from)),
                      next->stand_in, next->tag});
  }
  return within;
}

int RestoredText::PlaceOf(int raw) const {
  int place = raw;
  for (const Edit& edit : edits) {
    if (raw <= edit.raw_begin && edit.raw_begin < edit.raw_end) break;
    if (raw < edit.raw_begin) break;
    if (raw < edit.raw_end) return edit.begin;
    place = edit.end + raw - edit.raw_end;
  }
  return place;
}

RestoredText RestoreSpans(absl::string_view raw, const Names& names,
                          std::span<const ProtectedSpan> spans, absl::string_view source,
                          bool once) {
  RestoredText restored;
  std::string& text = restored.text;
  std::vector<std::optional<TextRun>> places(spans.size());
  // "10⁻³" becomes "10 KX73": a stand-in without another place may have a digit behind it.
  std::vector<bool> loose(spans.size());
  std::vector<bool> occurs(spans.size());
  for (int at = 0; once && at < std::ssize(raw); ++at) {
    const auto found = FindStandIn(raw, at, names, spans, loose);
    if (found.has_value() && found->span != Found::kNone) occurs[found->span] = true;
  }
  for (size_t i = 0; once && i < loose.size(); ++i) loose[i] = !occurs[i];
  for (int at = 0; at < std::ssize(raw);) {
    const auto found = FindStandIn(raw, at, names, spans, loose);
    if (!found.has_value()) {
      text += raw[at++];
      continue;
    }
    auto begin = static_cast<int>(text.size());
    int raw_begin = at;
    int raw_end = found->end;
    if (found->span != Found::kNone && (!once || !places[found->span].has_value())) {
      // At a word or number the stand-in had a blank that the source has not.
      const ProtectedSpan& span = spans[found->span];
      if (begin > 0 && text.back() == ' ' &&
          Touches(source, span.begin, text, begin - 1, /*before=*/true)) {
        text.pop_back();
        --begin;
        --raw_begin;
      }
      if (raw_end < std::ssize(raw) && raw[raw_end] == ' ' &&
          Touches(source, span.end, raw, raw_end + 1, /*before=*/false))
        ++raw_end;
      text += spans[found->span].text;
      places[found->span] = {begin, static_cast<int>(text.size())};
    } else if (begin > 0 && text.back() == ' ') {  // it stands there already
      text.pop_back();
      --begin;
      --raw_begin;
    }
    restored.edits.push_back({raw_begin, raw_end, begin, static_cast<int>(text.size())});
    at = raw_end;
  }
  for (int i = 0; once && i < std::ssize(spans); ++i) {
    if (places[i].has_value()) continue;
    restored.forced.push_back(i);
    int at = PlaceOfForced(text, source, spans[i], spans, places);
    const bool joins_next = at < std::ssize(text) && text[at] == ' ' &&
                            Touches(source, spans[i].end, text, at + 1, /*before=*/false);
    if (joins_next) ++at;
    const bool blank_before = at > 0 && text[at - 1] != ' ' &&
                              !IsUnspacedScript(CharacterBefore(text, at).code_point) &&
                              !Touches(source, spans[i].begin, text, at, /*before=*/true);
    const bool blank_after = TouchesWord(text, at, /*before=*/false) &&
                             !Touches(source, spans[i].end, text, at, /*before=*/false);
    const std::string put =
        absl::StrCat(blank_before ? " " : "", spans[i].text, blank_after ? " " : "");
    const auto size = static_cast<int>(put.size());
    text.insert(at, put);
    for (auto& place : places) {
      if (place.has_value() && place->begin >= at) place = {place->begin + size, place->end + size};
    }
    const int begin = at + (blank_before ? 1 : 0);
    places[i] = {begin, begin + static_cast<int>(spans[i].text.size())};
    auto later = std::find_if(restored.edits.begin(), restored.edits.end(),
                              [&](const RestoredText::Edit& edit) { return edit.begin >= at; });
    const int raw_at = later == restored.edits.begin()
                           ? at
                           : at - std::prev(later)->end + std::prev(later)->raw_end;
    for (auto edit = later; edit != restored.edits.end(); ++edit) {
      edit->begin += size;
      edit->end += size;
    }
    restored.edits.insert(later, {raw_at, raw_at, at, at + size});
  }
  return restored;
}

}  // namespace linnet::model
