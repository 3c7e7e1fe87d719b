#include "server/text/text_preparer.h"

#include <algorithm>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "model/runtime/text/first_bytes.h"
#include "model/runtime/text/paragraphs.h"
#include "model/runtime/text/segmenter.h"
#include "model/runtime/text/white_space.h"
#include "proto/status_macros.h"
#include "server/base/errors.h"
#include "server/text/memory_cost.h"
#include "server/text/text_assembler.h"
#include "server/text/text_chunks.h"

namespace linnet::server {
namespace {

// Work on a chunk beside its tokens (model::TextSplitter::Step), and on a protected span.
constexpr int64_t kWorkOfChunk = 8;
constexpr int64_t kWorkOfSpan = 4;
constexpr int64_t kBlankedBytesPerWork = 64;  // that are copied in the time to tokenise one
// Letters of a unit or an ending behind a variable, or of a short name before it: SIG%s. Of 56,000
// messages of programs 85 have longer words there, nearly all of them to be translated.
constexpr int kMaxEnding = 3;

absl::string_view TextOf(const std::string& text, const model::TextSegment& place) {
  return absl::string_view(text).substr(place.begin, place.end - place.begin);
}

// Returns the limit on a text with eos: what the language tokens leave.
int MaxTokens(const TextRequest& request) {
  return request.model->bundle.manifest.limits().max_source_tokens() -
         request.languages->before_source_ids_size() - request.languages->after_source_ids_size();
}

absl::Status TooManySegments(absl::string_view field, int max_segments) {
  return BadField(field, Reason::kTooManySegments,
                  absl::StrCat("text has more segments than the ", max_segments,
                               " that this call may still add: send the rest in another call"),
                  {{"maxSegments", absl::StrCat(max_segments)}});
}

// Returns where the part of a text ends in which protected spans are searched at once, and which
// begins at `begin`: at the end of a line, or before a word of a long one.
int EndOfSearch(absl::string_view text, int begin) {
  constexpr size_t kAbout = 4 << 10;
  const absl::string_view rest = text.substr(begin);
  if (rest.size() <= kAbout) return static_cast<int>(text.size());
  size_t end = rest.rfind('\n', kAbout);
  if (end == absl::string_view::npos || end == 0) end = rest.rfind(' ', kAbout);
  if (end == absl::string_view::npos || end == 0)
    end = rest.substr(0, kMaxEncodedBytes).find(' ', kAbout);
  if (end == absl::string_view::npos) end = model::FirstBytes(rest, kMaxEncodedBytes).size();
  return begin + static_cast<int>(end);
}

// In any order; they may overlap.
std::vector<model::ProtectedSpan> FindProtected(const ProtectedPatterns& patterns,
                                                absl::string_view text) {
  std::vector<model::ProtectedSpan> spans;
  using Kind = ProtectedPatterns::Match::Kind;
  for (const auto& [begin, end, kind] : patterns.Find(text)) {
    model::ProtectedSpan& span = spans.emplace_back(model::ProtectedSpan{
        .begin = begin, .end = end, .text = std::string(text.substr(begin, end - begin))});
    span.tag = kind == Kind::kTag;
    if (kind == Kind::kVariable) model::GrowToWords(text, span, kMaxEnding);
    if (kind == Kind::kWord) model::GrowToWords(text, span);
  }
  return spans;
}

}  // namespace

struct TextPreparer::State {
  enum class Phase { kStart, kJoin, kBegin, kTerms, kSpans, kSplit, kChunk, kAdd, kFinish, kDone };
  // A part that was tokenised to see whether it fits.
  struct Counted {
    int end = 0;
    model::TokenizedText read;
  };

  State(const TextRequest& request, const TextItem& item, const Glossary* glossary,
        PrepareLimits limits)
      : request(request),
        item(item),
        glossary(glossary),
        limits(std::move(limits)),
        max_tokens(MaxTokens(request)),
        max_bytes(model::MaxSegmentBytes(max_tokens)),
        chunks(max_tokens - 1, max_bytes, request.long_input == linnet::v1::LONG_INPUT_TRUNCATE),
        assembler(request, item, glossary, this->limits.hold, max_tokens) {}

  absl::Status Continue(int64_t budget);
  absl::Status Start();
  absl::Status Join(int64_t budget);
  absl::Status Begin();
  // Reads the text as one source, or begins to split it if it is too long and the request allows
  // it.
  absl::Status StartWhole();
  void StartSplit(size_t max_segments);
  absl::StatusOr<model::TokenizedText> Encode(absl::string_view part);
  // Tokenises a part of a text that is not split, on one line.
  absl::StatusOr<model::TokenizedText> ReadWhole(absl::string_view part);
  // Searches the next part of the text for entries of the glossary.
  void FindTerms(int64_t budget);
  // Searches the next part of the text for protected spans, and merges them with the terms that
  // begin there; behind the last one begins to split.
  absl::Status FindSpans();
  absl::Status BlankTags();
  int EndOfSpan(int at);  // model::SpanEnd
  int CountTokens(absl::string_view part);
  absl::Status Split(int64_t budget);
  absl::Status ReadSentence(const model::TextSegment& place);
  absl::Status Chunk();
  absl::Status AddSegment(TokenizedPart part);

  const TextRequest& request;
  const TextItem& item;
  const Glossary* const glossary;
  const PrepareLimits limits;
  const int max_tokens;
  const int64_t max_bytes;  // of a segment

  Phase phase = Phase::kStart;
  int64_t worked = 0;
  std::optional<model::ParagraphJoiner> joiner;
  const std::string* text = nullptr;  // with joined lines
  // By their begin. The last one counted at a begin becomes the segment.
  std::unordered_map<int, Counted> counted;
  absl::Status held;
  std::optional<model::TextSplitter> splitter;
  int searched = 0;                              // bytes, for entries, then for protected spans
  size_t read = 0;                               // sentences of the splitter
  std::vector<model::ProtectedSpan> terms = {};  // of the glossary, ascending
  int64_t next_term = 0;                         // the first one that is not in `spans`
  std::vector<model::ProtectedSpan> spans = {};  // of a text that is split
  // The text with blanks in place of its tags, so that sentences end and begin at these, and those
  // between two of them are copied as white space is. Empty if it has none, or nothing else.
  std::string blanked;
  // For a text that is not split into segments.
  TextChunks chunks;
  std::vector<TokenizedPart> parts;
  size_t added = 0;  // parts
  TextAssembler assembler;
};

absl::Status TextPreparer::State::Start() {
  if (limits.max_segments <= 0) return TooManySegments(item.path, 0);
  phase = request.join_lines ? Phase::kJoin : Phase::kBegin;
  if (!request.join_lines) return absl::OkStatus();
  joiner.emplace(*item.text);
  return limits.hold(model::JoinedText::MaxBytes(*item.text));
}

absl::Status TextPreparer::State::Join(int64_t budget) {
  worked += joiner->Step(budget);
  if (joiner->done()) phase = Phase::kBegin;
  return absl::OkStatus();
}

absl::Status TextPreparer::State::Begin() {
  std::shared_ptr<const model::JoinedText> joined;
  if (joiner.has_value()) {
    joined = std::make_shared<const model::JoinedText>(joiner->Take());
    joiner.reset();
    if (joined->text() == *item.text) joined = nullptr;
  }
  assembler.Start(std::move(joined));
  text = &assembler.text();
  RETURN_IF_ERROR(limits.hold(PrepareBytes(std::ssize(*text))));
  if (!request.split) return StartWhole();
  phase = glossary != nullptr ? Phase::kTerms : Phase::kSpans;
  return absl::OkStatus();
}

void TextPreparer::State::FindTerms(int64_t budget) {
  std::vector<TermUse> uses;
  int64_t left = budget;
  searched = glossary->FindPart(*text, searched, left, uses);
  worked += budget - left;
  for (TermUse& use : uses) terms.push_back({use.begin, use.end, std::move(use.target)});
  if (std::cmp_less(searched, text->size())) return;
  searched = 0;
  phase = Phase::kSpans;
}

absl::Status TextPreparer::State::StartWhole() {
  phase = Phase::kAdd;
  if (model::IsBlank(*text)) return absl::OkStatus();
  const absl::string_view trimmed = model::Trimmed(*text);
  const auto begin = static_cast<int>(trimmed.data() - text->data());
  const model::TextSegment all = {.begin = begin, .end = begin + static_cast<int>(trimmed.size())};
  worked += std::min<int64_t>(all.end - all.begin, kMaxEncodedBytes);
  auto whole = ReadWhole(trimmed);
  if (!whole.ok()) return Unreadable(item.path, whole.status());
  const bool large = std::ssize(trimmed) > max_bytes;
  if (whole->tokens.empty() && !large) return absl::OkStatus();
  RETURN_IF_ERROR(limits.hold(SegmentBytes(std::ssize(whole->tokens))));
  TokenizedPart part = {all, *std::move(whole)};
  const bool few_tokens = std::ssize(part.read.tokens) < max_tokens;
  if (large && few_tokens && request.long_input == linnet::v1::LONG_INPUT_REJECT)
    return TooManyBytes(item.path, trimmed.size(), max_bytes);
  if ((few_tokens && !large) || request.long_input == linnet::v1::LONG_INPUT_REJECT) {
    parts.push_back(std::move(part));
    return absl::OkStatus();
  }
  // The chunks are the segments of the call; of sentences it has as many as its memory.
  StartSplit(std::numeric_limits<int>::max());
  return absl::OkStatus();
}

void TextPreparer::State::StartSplit(size_t max_segments) {
  const absl::string_view all = blanked.empty() ? *text : blanked;
  splitter.emplace(
      all, request.language_code, max_tokens,
      [this, all](absl::string_view part) {
        return CountTokens(absl::string_view(*text).substr(part.data() - all.data(), part.size()));
      },
      max_segments, [this](int at) { return EndOfSpan(at); });
  phase = Phase::kSplit;
}

absl::StatusOr<model::TokenizedText> TextPreparer::State::Encode(absl::string_view part) {
  const size_t begin = part.data() - text->data();
  const absl::string_view all = *text;
  model::ReadOptions options = SourceReading(request, item);
  options.around = {.before = all.substr(0, begin), .after = all.substr(begin + part.size())};
  options.protects = request.protects != nullptr && std::ssize(part) <= kMaxEncodedBytes;
  const std::vector<model::ProtectedSpan> own = model::SpansWithin(
      all, spans, static_cast<int>(begin), static_cast<int>(begin + part.size()));
  options.spans = own;
  return ReadStart(*request.model->source_tokenizer, part, options, max_tokens, limits.hold);
}

absl::StatusOr<model::TokenizedText> TextPreparer::State::ReadWhole(absl::string_view part) {
  const std::string line = model::OneLine(part);
  model::ReadOptions options = SourceReading(request, item);
  options.protects = request.protects != nullptr && std::ssize(line) <= kMaxEncodedBytes;
  std::vector<model::ProtectedSpan> own;
  if (options.protects) own = FindProtected(*request.protects, line);
  options.spans = own;
  return ReadStart(*request.model->source_tokenizer, line, options, max_tokens, limits.hold);
}

absl::Status TextPreparer::State::FindSpans() {
  if (std::cmp_greater_equal(searched, text->size()) ||
      (request.protects == nullptr && next_term == std::ssize(terms))) {
    terms = {};
    RETURN_IF_ERROR(BlankTags());
    StartSplit(limits.max_segments);
    return absl::OkStatus();
  }
  const int begin = std::exchange(searched, EndOfSearch(*text, searched));
  std::vector<model::ProtectedSpan> found;
  for (; next_term < std::ssize(terms) && terms[next_term].begin < searched; ++next_term)
    found.push_back(std::move(terms[next_term]));
  if (request.protects != nullptr) {
    worked += request.protects->SearchWork(searched - begin);
    for (model::ProtectedSpan& span : FindProtected(
             *request.protects, absl::string_view(*text).substr(begin, searched - begin))) {
      span.begin += begin;
      span.end += begin;
      found.push_back(std::move(span));
    }
  }
  worked += std::ssize(found) * kWorkOfSpan;
  const int64_t before = VectorBytes(spans);
  const int64_t bytes = model::AddSpans(*text, std::move(found), spans);
  return limits.hold(2 * (VectorBytes(spans) - before + bytes));
}

absl::Status TextPreparer::State::BlankTags() {
  if (std::ranges::none_of(spans, &model::ProtectedSpan::tag)) return absl::OkStatus();
  RETURN_IF_ERROR(limits.hold(std::ssize(*text)));
  blanked = *text;
  for (const model::ProtectedSpan& span : spans) {
    // A tag, or "\n" of a program, which ends a line.
    const char blank = span.text[0] == '\\' ? '\n' : ' ';
    if (span.tag) std::fill(blanked.begin() + span.begin, blanked.begin() + span.end, blank);
  }
  worked += std::ssize(*text) / kBlankedBytesPerWork;
  if (model::IsBlank(blanked)) blanked.clear();
  return absl::OkStatus();
}

int TextPreparer::State::EndOfSpan(int at) {
  const auto span = std::lower_bound(spans.begin(), spans.end(), at,
                                     [](const auto& each, int begin) { return each.end <= begin; });
  return span == spans.end() || span->begin >= at ? at : span->end;
}

int TextPreparer::State::CountTokens(absl::string_view part) {
  if (std::ssize(part) > max_bytes) return max_tokens + 1;
  auto result = Encode(part);
  if (!result.ok()) {  // Split returns the error
    if (!ErrorReason(result.status()).empty() && held.ok()) held = result.status();
    return 0;
  }
  const int count = static_cast<int>(result->tokens.size()) + 1;
  const int begin = static_cast<int>(part.data() - text->data());
  if (count <= max_tokens && held.ok()) {
    if (!counted.contains(begin)) held = limits.hold(SegmentBytes(count));
    counted[begin] = {.end = begin + static_cast<int>(part.size()), .read = *std::move(result)};
  }
  return count;
}

absl::Status TextPreparer::State::Split(int64_t budget) {
  const absl::StatusOr<int64_t> split = splitter->Step(budget);
  RETURN_IF_ERROR(held);
  worked += split.value_or(budget);
  for (; read < splitter->segments().size(); ++read)
    RETURN_IF_ERROR(ReadSentence(splitter->segments()[read]));
  if (!chunks.full()) {
    if (absl::IsOutOfRange(split.status())) return TooManySegments(item.path, limits.max_segments);
    if (!split.ok()) return Unreadable(item.path, split.status());
    if (!splitter->done()) return absl::OkStatus();
  }
  counted = {};
  splitter.reset();
  phase = request.split ? Phase::kFinish : Phase::kChunk;
  return absl::OkStatus();
}

absl::Status TextPreparer::State::ReadSentence(const model::TextSegment& place) {
  absl::StatusOr<model::TokenizedText> source;
  if (const auto known = counted.find(place.begin);
      known != counted.end() && known->second.end == place.end) {
    source = std::move(known->second.read);
    counted.erase(known);
  } else {
    source = Encode(TextOf(*text, place));
    worked += place.end - place.begin;
  }
  if (!source.ok()) return Unreadable(item.path, source.status());
  // Text that normalises to nothing (a zero-width space) is kept unchanged, like white space.
  if (source->tokens.empty()) return absl::OkStatus();
  if (request.split) return AddSegment({place, *std::move(source)});
  chunks.Add(place, std::ssize(source->tokens));
  return absl::OkStatus();
}

absl::Status TextPreparer::State::Chunk() {
  const std::optional<model::TextSegment> place = chunks.Next();
  if (!place.has_value()) {
    phase = Phase::kAdd;
    return absl::OkStatus();
  }
  worked += place->end - place->begin + kWorkOfChunk;
  auto chunk = ReadWhole(TextOf(*text, *place));
  if (!chunk.ok()) return Unreadable(item.path, chunk.status());
  if (!chunks.Accept(std::ssize(chunk->tokens))) return absl::OkStatus();
  if (std::ssize(parts) == limits.max_segments)
    return TooManySegments(item.path, limits.max_segments);
  parts.push_back({*place, *std::move(chunk)});
  return absl::OkStatus();
}

absl::Status TextPreparer::State::AddSegment(TokenizedPart part) {
  ASSIGN_OR_RETURN(const int64_t work, assembler.Add(std::move(part)));
  worked += work;
  return absl::OkStatus();
}

absl::Status TextPreparer::State::Continue(int64_t budget) {
  switch (phase) {
    case Phase::kStart:
      return Start();
    case Phase::kJoin:
      return Join(budget);
    case Phase::kBegin:
      return Begin();
    case Phase::kTerms:
      FindTerms(budget);
      return absl::OkStatus();
    case Phase::kSpans:
      return FindSpans();
    case Phase::kSplit:
      return Split(budget);
    case Phase::kChunk:
      return Chunk();
    case Phase::kAdd:
      if (added < parts.size()) return AddSegment(std::move(parts[added++]));
      phase = Phase::kFinish;
      return absl::OkStatus();
    case Phase::kFinish: {
      ASSIGN_OR_RETURN(const int64_t work, assembler.Finish());
      worked += work;
      phase = Phase::kDone;
      return absl::OkStatus();
    }
    case Phase::kDone:
      break;
  }
  return absl::OkStatus();
}

TextPreparer::TextPreparer(const TextRequest& request, const TextItem& item,
                           const Glossary* glossary, PrepareLimits limits)
    : state_(std::make_unique<State>(request, item, glossary, std::move(limits))) {}
TextPreparer::~TextPreparer() = default;

bool TextPreparer::done() const { return state_->phase == State::Phase::kDone; }
std::vector<PreparedSegment>& TextPreparer::segments() { return state_->assembler.segments(); }
PreparedText TextPreparer::Take() { return state_->assembler.Take(); }

absl::StatusOr<int64_t> TextPreparer::Step(int64_t work) {
  State& state = *state_;
  state.worked = 0;
  while (!done() && state.worked < work) RETURN_IF_ERROR(state.Continue(work - state.worked));
  return state.worked;
}

absl::StatusOr<PreparedText> PrepareText(const TextRequest& request, const TextItem& item,
                                         const Glossary* glossary, const PrepareLimits& limits) {
  TextPreparer preparer(request, item, glossary, limits);
  while (!preparer.done()) RETURN_IF_ERROR(preparer.Step(kMaxEncodedBytes).status());
  return preparer.Take();
}

}  // namespace linnet::server
