#include "server/text/given_start.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "model/runtime/bundle/languages.h"
#include "model/runtime/text/segmenter.h"
#include "model/runtime/text/white_space.h"
#include "proto/status_macros.h"
#include "server/text/memory_cost.h"
#include "server/text/prepared_text.h"

namespace linnet::server {
namespace {

constexpr absl::string_view kField = "target_prefix";
// Tokens at the end of a start that the model may write in another way. It begins with a word.
constexpr int kMaxSpelled = 8;

// The sentences of a prefix, in order. Behind the last one stands only white space.
struct Sentences {
  std::vector<model::TextSegment> places;
  bool ended = false;  // the last one is complete: what follows begins another one
};

absl::StatusOr<Sentences> SplitPrefix(absl::string_view prefix, absl::string_view language) {
  // A sentence that follows shows whether the last one has ended.
  const std::string with_next = absl::StrCat(prefix, "X.");
  auto places = model::SplitText(with_next, language, std::numeric_limits<int>::max(),
                                 [](auto) { return 1; });
  if (!places.ok()) return Unreadable(kField, places.status());
  Sentences found = {.places = *std::move(places)};
  found.ended = std::cmp_equal(found.places.back().begin, prefix.size());
  if (found.ended) found.places.pop_back();
  const auto last = model::Trimmed(prefix);
  if (!found.places.empty())
    found.places.back().end = static_cast<int>(last.data() + last.size() - prefix.data());
  return found;
}

absl::Status TooLong(const GivenStart& start, size_t tokens, int max) {
  return TooManyTokens(kField, start.text.size(), tokens, max,
                       absl::StrCat("the translation of a sentence has at most ", max,
                                    " (options.max_target_tokens): shorten it"));
}

// The first of the last tokens that a search may replace by others: the begin of the last word.
size_t BeginOfSpelled(const model::Tokenizer& tokenizer,
                      const std::vector<model::TokenId>& tokens) {
  const auto marks = tokenizer.WordMarks();
  const size_t least = tokens.size() - std::min<size_t>(tokens.size(), kMaxSpelled);
  for (size_t begin = tokens.size(); begin-- > least;) {
    if (marks->begins_word(tokens[begin])) return begin;
  }
  return least;
}

// Reads a start whose text is set, up to its tokens.
absl::Status ReadGiven(const TextRequest& request, const PreparedSegment& segment,
                       GivenStart& start) {
  const model::Tokenizer& tokenizer = *request.model->target_tokenizer;
  std::string text = model::OneLine(start.text);
  for (const model::ProtectedSpan& span : segment.spans) {
    if (span.stand_in >= 0)
      text = absl::StrReplaceAll(text, {{span.text, tokenizer.StandIn(span.stand_in)}});
  }
  auto read = tokenizer.Read(
      text, {.language_code = request.languages->target_language_code(), .lower = segment.lowered});
  if (!read.ok()) return Unreadable(kField, read.status());
  start.tokens = std::move(read->tokens);
  start.as_read = tokenizer.Decode(start.tokens, TargetCapitals(request, segment));
  return absl::OkStatus();
}

// The answer begins with the start; `ends` if it may be the whole answer although it ends with
// white space.
absl::Status GiveOpen(const TextRequest& request, bool ends, PreparedSegment& segment) {
  GivenStart& start = *segment.start;
  const int max =
      request.options.ForSource(static_cast<int>(segment.source.size())).max_target_tokens;
  if (std::cmp_greater(start.tokens.size(), max)) return TooLong(start, start.tokens.size(), max);
  if (request.options.sampling()) return absl::OkStatus();
  const model::Tokenizer& tokenizer = *request.model->target_tokenizer;
  const bool then_word = model::EndsInWhiteSpace(start.text) && !ends &&
                         !model::IsUnspacedLanguage(request.languages->target_language_code());
  const size_t begin = BeginOfSpelled(tokenizer, start.tokens);
  start.spelled = tokenizer.Spell(std::span(start.tokens).subspan(begin), then_word);
  if (start.spelled != nullptr) start.tokens.resize(begin);
  return absl::OkStatus();
}

// The start is the whole answer, which the model scores.
absl::Status GiveWhole(const TextRequest& request, PreparedSegment& segment) {
  const auto& manifest = request.model->bundle.manifest;
  const int max = manifest.limits().max_target_tokens();
  std::vector<model::TokenId> target = std::exchange(segment.start->tokens, {});
  if (std::cmp_greater(target.size(), max)) return TooLong(*segment.start, target.size(), max);
  target.push_back(request.model->bundle.special_tokens().eos);
  segment.target = std::move(target);
  return absl::OkStatus();
}

int64_t StartBytes(const PreparedSegment& segment) {
  const GivenStart& start = *segment.start;
  int64_t bytes = start.text.capacity() + start.as_read.capacity() + VectorBytes(start.tokens);
  if (segment.target.has_value()) bytes += VectorBytes(*segment.target);
  if (start.spelled == nullptr) return bytes;
  bytes += sizeof(model::SpelledStart) + start.spelled->text.capacity() +
           VectorBytes(start.spelled->places);
  for (const auto& place : start.spelled->places)
    bytes += VectorBytes(place.tokens) + VectorBytes(place.spelled);
  return bytes;
}

}  // namespace

absl::StatusOr<int64_t> GiveStarts(const TextRequest& request, const HoldMemory& hold,
                                   PreparedText& text) {
  const absl::string_view prefix = request.target_prefix;
  RETURN_IF_ERROR(hold(EncodeBytes(std::ssize(prefix))));
  ASSIGN_OR_RETURN(const Sentences sentences,
                   SplitPrefix(prefix, request.languages->target_language_code()));
  const size_t given = std::min(sentences.places.size(), text.segments.size());
  const bool next_begins =
      sentences.ended && given == sentences.places.size() && given < text.segments.size();
  int end = 0;
  for (size_t i = 0; i < given; ++i) {
    PreparedSegment& segment = text.segments[i];
    const bool last = i + 1 == given, whole = !last || next_begins;
    const int begin = sentences.places[i].begin;
    segment.gap = std::string(prefix.substr(end, begin - end));
    end = whole ? sentences.places[i].end : static_cast<int>(prefix.size());
    segment.start.emplace().text = std::string(prefix.substr(begin, end - begin));
    segment.copied = false;
    RETURN_IF_ERROR(ReadGiven(request, segment, *segment.start));
    RETURN_IF_ERROR(whole ? GiveWhole(request, segment)
                          : GiveOpen(request, sentences.ended, segment));
    RETURN_IF_ERROR(hold(StartBytes(segment)));
  }
  if (next_begins) text.segments[given].gap = std::string(prefix.substr(end));
  for (PreparedSegment& segment : text.segments) {
    if (segment.copied) segment.ClearSource();
  }
  return std::ssize(prefix);
}

void BeginWith(const GivenStart& start, absl::string_view decoded, model::RestoredText& answer) {
  // A search that ended at its limit may not have spelled all of it.
  size_t raw =
      std::mismatch(decoded.begin(), decoded.end(), start.as_read.begin(), start.as_read.end())
          .first -
      decoded.begin();
  while (raw > 0 && raw < decoded.size() && (decoded[raw] & 0xC0) == 0x80) --raw;
  int place = answer.PlaceOf(static_cast<int>(raw));
  const std::string old = std::exchange(answer.text, {});
  if (model::EndsInWhiteSpace(start.text)) {
    for (; std::cmp_less(place, old.size()) && old[place] == ' '; ++place) ++raw;
  }
  std::string lost;  // spans that were forced within the start
  std::erase_if(answer.edits, [&](const model::RestoredText::Edit& edit) {
    if (std::cmp_greater(edit.raw_end, raw)) return false;
    if (edit.raw_begin == edit.raw_end)
      absl::StrAppend(&lost, " ", model::Trimmed(old.substr(edit.begin, edit.end - edit.begin)));
    return true;
  });
  if (model::EndsInWhiteSpace(start.text)) lost = std::string(model::Trimmed(lost));
  const auto size = static_cast<int>(start.text.size() + lost.size());
  for (model::RestoredText::Edit& edit : answer.edits) {
    edit.begin += size - place;
    edit.end += size - place;
  }
  answer.edits.insert(answer.edits.begin(), {0, static_cast<int>(raw), 0, size});
  answer.text = absl::StrCat(start.text, lost, old.substr(place));
}

}  // namespace linnet::server
