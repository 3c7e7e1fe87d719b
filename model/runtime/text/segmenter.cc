#include "model/runtime/text/segmenter.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "model/runtime/text/characters.h"
#include "model/runtime/text/clauses.h"
#include "model/runtime/text/part_length.h"
#include "model/runtime/text/sentences.h"
#include "proto/status_macros.h"

namespace linnet::model {
namespace {

// Offset of the first new line or tab at or after `at`, or text.size().
int BreakAfter(absl::string_view text, int at) {
  for (; at < text.size(); ++at) {
    // The breaks beyond ASCII begin with 0xC2 or 0xE2, which no other byte of a character is.
    const auto byte = static_cast<uint8_t>(text[at]);
    if (byte > '\r' && byte != 0xC2 && byte != 0xE2) continue;
    if (IsBreak(CharacterAt(text, at).code_point)) break;
  }
  return at;
}

// Offset of the first byte at or after `at` that is not ASCII, or of one of the seven before it.
int SkipAscii(absl::string_view text, int at) {
  constexpr uint64_t kOthers = 0x8080808080808080;
  uint64_t word = 0;
  for (; at + sizeof(word) <= text.size(); at += sizeof(word)) {
    std::memcpy(&word, text.data() + at, sizeof(word));
    if ((word & kOthers) != 0) break;
  }
  return at;
}

// How many of the tokens of a text probably spell single bytes of characters: those beyond one for
// each character that is not ASCII, and one for four of the others.
int64_t TokensOfBytes(absl::string_view text, int64_t tokens) {
  const auto others =
      std::count_if(text.begin(), text.end(), [](char c) { return !U8_IS_SINGLE(c); });
  if (others == 0) return 0;
  const auto characters =
      std::count_if(text.begin(), text.end(), [](char c) { return U8_IS_LEAD(c); });
  const int64_t ascii = std::ssize(text) - others;
  return std::clamp<int64_t>(tokens - characters - ascii / 4, 0, others);
}

// The unit of work is the time to tokenise a byte of prose, which has a token for every four.
constexpr int64_t kWorkOfToken = 2;
constexpr int64_t kWorkOfTokenOfByte = 12;  // beside that
constexpr int64_t kBytesPerWork = 2;        // that are tokenised, beside their tokens
constexpr int64_t kCheckedBytesPerWork = 64;
constexpr int64_t kScannedBytesPerWork = 8;  // by ICU
constexpr int64_t kWorkOfPlace = 8;
constexpr int64_t kWorkOfCount = 8;
constexpr int kPlacesPerTurn = 256;
// The end of a sentence is not waited for if this many bytes of it have too many tokens.
constexpr int kLongSentence = 16 << 10;
constexpr int64_t kMaxBytesPerToken = 32;  // of a segment
// The sentences of a text are counted before any is tokenised, as long as it seems to have too
// many: by so many bytes at least, and if it does not take long, with few places that are no end.
constexpr int64_t kBytesThatTell = 4 << 10;
constexpr int64_t kPlacesOfSentence = 8;
// The first start of a sentence that is counted to see whether it is that long. Each other one is
// at most four times as long as the one before, so that little is tokenised at once, and no longer
// than what is expected to have a quarter too many tokens.
constexpr int kFirstStart = kLongSentence / 16;
constexpr int64_t kStartGrowth = 4;
constexpr double kTooManyTokens = 1.25;

}  // namespace

int64_t MaxSegmentBytes(int max_tokens) {
  return std::max<int64_t>(kLongSentence, kMaxBytesPerToken * max_tokens);
}

struct TextSplitter::State {
  State(absl::string_view text, absl::string_view language_code, int max_tokens,
        TokenCounter count_tokens, size_t max_segments, SpanEnd span_end)
      : text(text),
        max_tokens(max_tokens),
        max_segments(max_segments),
        count_tokens(std::move(count_tokens)),
        count([this](absl::string_view part) {
          const int tokens = this->count_tokens(part);
          worked += std::ssize(part) / kBytesPerWork + tokens * kWorkOfToken +
                    TokensOfBytes(part, tokens) * kWorkOfTokenOfByte + kWorkOfCount;
          return tokens;
        }),
        span_end(std::move(span_end)),
        scanner(language_code),
        counting(text.size() / 2 > max_segments) {}

  absl::Status Check();
  absl::Status Continue();
  void StartText();
  absl::Status StartLine();
  void EndLine();
  // Looks for the next end of a sentence and counts it. Goes back to the begin of the text at its
  // end, or when it has hardly too many.
  absl::Status CountSentence();
  bool HasHardlyTooMany() const;
  // Looks for the next end of a sentence.
  absl::Status FindEnd();
  absl::Status Scan();
  absl::Status CheckSegments(int64_t count) const;
  absl::Status Add(TextSegment segment);
  // The end of the protected span that goes on behind a sentence or line and the white space at its
  // end, or `end` if there is none.
  int EndOfSpan(int end);
  // Starts to cut a sentence that is known to go on to text[end) if it is too long already.
  void CutIfLong(int end);
  // Counts the next start of the sentence, of which text[begin, end) is known, or all of that. True
  // if all of it fits; starts the cutter if there are too many tokens or bytes.
  bool CountStart(int end);
  // Cuts the next part of a long sentence.
  absl::Status Cut(int known, bool ends);
  void EndSentence();

  const absl::string_view text;
  const int max_tokens;
  const int64_t max_bytes = MaxSegmentBytes(max_tokens);
  const size_t max_segments;
  const TokenCounter count_tokens, count;
  const SpanEnd span_end;
  SentenceScanner scanner;
  std::vector<TextSegment> segments;
  int64_t worked = 0;
  bool checked = false;
  bool done = false;
  bool counting;          // the sentences of all the text, before the first one is tokenised
  int64_t sentences = 0;  // that were counted
  bool in_line = false;
  int line = 0;  // its begin
  int line_end = 0;
  int begin = 0;                    // of the sentence
  std::optional<int> sentence_end;  // with the white space behind it
  int counted = 0;                  // bytes of its longest start that was counted
  PartLength length{max_tokens};    // of the sentence or its next part
  std::unique_ptr<SentenceCutter> cutter;
};

absl::Status TextSplitter::State::Check() {
  if (text.size() > std::numeric_limits<int>::max()) {
    return absl::InvalidArgumentError(absl::StrCat("text has ", text.size(), " bytes, at most ",
                                                   std::numeric_limits<int>::max(), " are read"));
  }
  if (const int invalid = FirstInvalidUtf8(text); invalid >= 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("text is not UTF-8: byte ", invalid, " is wrong"));
  }
  worked += std::ssize(text) / kCheckedBytesPerWork;
  StartText();
  return absl::OkStatus();
}

void TextSplitter::State::StartText() { line = SkipWhiteSpace(text, ByteOrderMarkBytes(text)); }

absl::Status TextSplitter::State::StartLine() {
  done = line >= std::ssize(text);
  if (done) return absl::OkStatus();
  line_end = BreakAfter(text, line);
  for (int end = 0; (end = EndOfSpan(line_end)) > line_end;) line_end = BreakAfter(text, end);
  worked += (line_end - line) / kScannedBytesPerWork;
  in_line = true;
  begin = line;
  return scanner.Start(text.substr(line, line_end - line));
}

void TextSplitter::State::EndLine() {
  in_line = false;
  line = SkipWhiteSpace(text, line_end);
}

absl::Status TextSplitter::State::CheckSegments(int64_t count) const {
  if (std::cmp_less_equal(count, max_segments)) return absl::OkStatus();
  return absl::OutOfRangeError(absl::StrCat("text has more than ", max_segments, " segments"));
}

absl::Status TextSplitter::State::Add(TextSegment segment) {
  segments.push_back(segment);
  return CheckSegments(std::ssize(segments));
}

void TextSplitter::State::EndSentence() {
  cutter = nullptr;
  counted = 0;
  length.StartNext();
  begin = SkipWhiteSpace(text, line + *sentence_end);
  sentence_end.reset();
}

bool TextSplitter::State::CountStart(int end) {
  int64_t start = kFirstStart;
  bool all = end - begin < 2 * start;
  if (counted > 0) {
    start = std::min({kStartGrowth * counted, length.Bytes(kTooManyTokens * max_tokens),
                      int64_t{kLongSentence}});
    all = counted >= kLongSentence || end - begin <= start;
  }
  if (!all) {
    counted = static_cast<int>(start);
    end = begin + counted;
    while (U8_IS_TRAIL(text[end])) --end;
  }
  const bool too_long = end - begin > max_bytes;
  if (!too_long) {
    const int tokens = count(text.substr(begin, end - begin));
    length.Add(end - begin, tokens);
    if (tokens <= max_tokens) return all;
  }
  cutter = std::make_unique<SentenceCutter>(text, begin, max_tokens, count, length);
  return false;
}

int TextSplitter::State::EndOfSpan(int end) {
  if (span_end == nullptr) return end;
  return std::max(end, span_end(SkipWhiteSpaceBefore(text, end)));
}

void TextSplitter::State::CutIfLong(int end) {
  if (cutter == nullptr && end - begin >= 2 * kLongSentence &&
      (counted < kLongSentence || end - begin > max_bytes))
    CountStart(end);
}

absl::Status TextSplitter::State::Cut(int known, bool ends) {
  ASSIGN_OR_RETURN(const std::optional<TextSegment> part, cutter->Next(known, ends));
  if (part.has_value()) return Add(*part);
  if (ends) {
    EndSentence();
    return absl::OkStatus();
  }
  return Scan();
}

absl::Status TextSplitter::State::FindEnd() {
  const int64_t before = scanner.places();
  ASSIGN_OR_RETURN(sentence_end, scanner.Next(kPlacesPerTurn));
  worked += (scanner.places() - before) * kWorkOfPlace;
  if (!sentence_end.has_value()) return absl::OkStatus();
  const int end = line + *sentence_end;
  // White space alone belongs to the next sentence.
  if (SkipWhiteSpaceBefore(text, end) <= begin || EndOfSpan(end) > end) sentence_end.reset();
  return absl::OkStatus();
}

absl::Status TextSplitter::State::Scan() {
  RETURN_IF_ERROR(FindEnd());
  if (!sentence_end.has_value()) CutIfLong(line + scanner.scanned());
  return absl::OkStatus();
}

bool TextSplitter::State::HasHardlyTooMany() const {
  const int64_t scanned = line + scanner.scanned();
  if (scanned < kBytesThatTell) return false;
  const double expected =
      static_cast<double>(sentences) * static_cast<double>(text.size()) / scanned;
  return expected < static_cast<double>(max_segments) * 7 / 8 ||
         scanner.places() > kPlacesOfSentence * sentences;
}

absl::Status TextSplitter::State::CountSentence() {
  if (!in_line) {
    RETURN_IF_ERROR(StartLine());
    if (!done) return absl::OkStatus();
  } else {
    RETURN_IF_ERROR(FindEnd());
    const bool go_back = HasHardlyTooMany();
    if (sentence_end.has_value()) {
      EndSentence();
      RETURN_IF_ERROR(CheckSegments(++sentences));
    } else if (scanner.done()) {
      EndLine();
    }
    if (!go_back) return absl::OkStatus();
  }
  counting = done = in_line = false;
  StartText();
  return absl::OkStatus();
}

absl::Status TextSplitter::State::Continue() {
  if (counting) return CountSentence();
  if (!in_line) return StartLine();
  if (sentence_end.has_value()) {
    const int end = SkipWhiteSpaceBefore(text, line + *sentence_end);
    if (cutter != nullptr) return Cut(end, /*ends=*/true);
    if (!CountStart(end)) return absl::OkStatus();
    RETURN_IF_ERROR(Add({.begin = begin, .end = end}));
    EndSentence();
    return absl::OkStatus();
  }
  if (scanner.done()) {
    EndLine();
    return absl::OkStatus();
  }
  return cutter != nullptr ? Cut(line + scanner.scanned(), /*ends=*/false) : Scan();
}

TextSplitter::TextSplitter(absl::string_view text, absl::string_view language_code, int max_tokens,
                           TokenCounter count_tokens, size_t max_segments, SpanEnd span_end)
    : state_(std::make_unique<State>(text, language_code, max_tokens, std::move(count_tokens),
                                     max_segments, std::move(span_end))) {}
TextSplitter::~TextSplitter() = default;

bool TextSplitter::done() const { return state_->done; }
const std::vector<TextSegment>& TextSplitter::segments() const { return state_->segments; }
std::vector<TextSegment> TextSplitter::TakeSegments() { return std::move(state_->segments); }

absl::StatusOr<int64_t> TextSplitter::Step(int64_t work) {
  State& state = *state_;
  state.worked = 0;
  if (!std::exchange(state.checked, true)) RETURN_IF_ERROR(state.Check());
  while (!state.done && state.worked < work) RETURN_IF_ERROR(state.Continue());
  return state.worked;
}

absl::StatusOr<std::vector<TextSegment>> SplitText(absl::string_view text,
                                                   absl::string_view language_code, int max_tokens,
                                                   const TokenCounter& count_tokens,
                                                   size_t max_segments) {
  TextSplitter splitter(text, language_code, max_tokens, count_tokens, max_segments);
  while (!splitter.done()) RETURN_IF_ERROR(splitter.Step(kLongSentence).status());
  return splitter.TakeSegments();
}

int ByteOrderMarkBytes(absl::string_view text) {
  return absl::StartsWith(text, "\xEF\xBB\xBF") ? 3 : 0;
}

bool IsBlank(absl::string_view text) {
  return SkipWhiteSpace(text, ByteOrderMarkBytes(text)) == std::ssize(text);
}

int FirstInvalidUtf8(absl::string_view text) {
  for (int at = SkipAscii(text, 0); at < text.size();) {
    const Character character = CharacterAt(text, at);
    if (character.code_point < 0) return at;
    at = character.end;
    if (character.code_point < 0x80) at = SkipAscii(text, at);
  }
  return -1;
}

}  // namespace linnet::model
