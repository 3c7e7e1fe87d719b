#include "model/runtime/text/segmenter.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "model/runtime/text/characters.h"
#include "model/runtime/text/clauses.h"
#include "model/runtime/text/sentences.h"
#include "proto/status_macros.h"

namespace linnet::model {
namespace {

// Offset of the first new line or tab at or after `at`, or text.size().
int BreakAfter(absl::string_view text, int at) {
  while (at < text.size()) {
    const Character character = CharacterAt(text, at);
    if (IsBreak(character.code_point)) break;
    at = character.end;
  }
  return at;
}

// The unit of work is the time to tokenise a byte of prose, which has a token for every four.
constexpr int64_t kWorkOfToken = 2;
constexpr int64_t kBytesPerWork = 2;         // that are tokenised, beside their tokens
constexpr int64_t kScannedBytesPerWork = 8;  // by ICU
constexpr int64_t kWorkOfPlace = 8;
constexpr int64_t kWorkOfCount = 8;
constexpr int kPlacesPerTurn = 256;
// Of a sentence of which this many bytes have too many tokens the rest is not waited for. The
// server tokenises no more than 16 KiB to see that a text is too long.
constexpr int kLongSentence = (16 << 10) + 8;

}  // namespace

struct TextSplitter::State {
  State(absl::string_view text, absl::string_view language_code, int max_tokens,
        TokenCounter count_tokens, size_t max_segments)
      : text(text),
        max_tokens(max_tokens),
        max_segments(max_segments),
        count_tokens(std::move(count_tokens)),
        count([this](absl::string_view part) {
          const int tokens = this->count_tokens(part);
          worked += std::min<int64_t>(std::ssize(part), kLongSentence) / kBytesPerWork +
                    tokens * kWorkOfToken + kWorkOfCount;
          return tokens;
        }),
        scanner(language_code) {}

  absl::Status Check();
  absl::Status Continue();
  absl::Status StartLine();
  absl::Status Scan();
  absl::Status Add(TextSegment segment);
  // True if the sentence, of which at least text[begin, end) is known, has too many tokens.
  bool StartCutterIfTooLong(int end);
  // Cuts the next part of a long sentence.
  absl::Status Cut(int known, bool ends);
  void EndSentence();

  const absl::string_view text;
  const int max_tokens;
  const size_t max_segments;
  const TokenCounter count_tokens, count;
  SentenceScanner scanner;
  std::vector<TextSegment> segments;
  int64_t worked = 0;
  bool checked = false;
  bool done = false;
  bool in_line = false;
  int line = 0;  // its begin
  int line_end = 0;
  int begin = 0;                    // of the sentence
  std::optional<int> sentence_end;  // with the white space behind it
  bool tried = false;               // the start of the sentence was counted
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
  line = SkipWhiteSpace(text, ByteOrderMarkBytes(text));
  return absl::OkStatus();
}

absl::Status TextSplitter::State::StartLine() {
  done = line >= std::ssize(text);
  if (done) return absl::OkStatus();
  line_end = BreakAfter(text, line);
  worked += (line_end - line) / kScannedBytesPerWork;
  in_line = true;
  begin = line;
  return scanner.Start(text.substr(line, line_end - line));
}

absl::Status TextSplitter::State::Add(TextSegment segment) {
  segments.push_back(segment);
  if (segments.size() <= max_segments) return absl::OkStatus();
  return absl::OutOfRangeError(absl::StrCat("text has more than ", max_segments, " segments"));
}

void TextSplitter::State::EndSentence() {
  cutter = nullptr;
  tried = false;
  begin = SkipWhiteSpace(text, line + *sentence_end);
  sentence_end.reset();
}

bool TextSplitter::State::StartCutterIfTooLong(int end) {
  const int tokens = count(text.substr(begin, end - begin));
  if (tokens <= max_tokens) return false;
  const int64_t counted = std::min(end - begin, kLongSentence);
  cutter = std::make_unique<SentenceCutter>(text, begin, max_tokens, count,
                                            counted * max_tokens / tokens);
  return true;
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

// Looks for the next end of a sentence.
absl::Status TextSplitter::State::Scan() {
  const int64_t before = scanner.places();
  ASSIGN_OR_RETURN(sentence_end, scanner.Next(kPlacesPerTurn));
  worked += (scanner.places() - before) * kWorkOfPlace;
  if (sentence_end.has_value() || cutter != nullptr || tried) return absl::OkStatus();
  if (line + scanner.scanned() - begin < 2 * kLongSentence) return absl::OkStatus();
  tried = true;
  int end = begin + kLongSentence;
  while (U8_IS_TRAIL(text[end])) --end;
  StartCutterIfTooLong(end);
  return absl::OkStatus();
}

absl::Status TextSplitter::State::Continue() {
  if (!in_line) return StartLine();
  if (sentence_end.has_value()) {
    const int end = SkipWhiteSpaceBefore(text, line + *sentence_end);
    if (cutter != nullptr) return Cut(end, /*ends=*/true);
    if (end > begin) {
      if (StartCutterIfTooLong(end)) return absl::OkStatus();
      RETURN_IF_ERROR(Add({.begin = begin, .end = end}));
    }
    // White space alone belongs to the next sentence.
    if (end > begin) {
      EndSentence();
    } else {
      sentence_end.reset();
    }
    return absl::OkStatus();
  }
  if (scanner.done()) {
    in_line = false;
    line = SkipWhiteSpace(text, line_end);
    return absl::OkStatus();
  }
  return cutter != nullptr ? Cut(line + scanner.scanned(), /*ends=*/false) : Scan();
}

TextSplitter::TextSplitter(absl::string_view text, absl::string_view language_code, int max_tokens,
                           TokenCounter count_tokens, size_t max_segments)
    : state_(std::make_unique<State>(text, language_code, max_tokens, std::move(count_tokens),
                                     max_segments)) {}
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
  for (int at = 0; at < text.size();) {
    const Character character = CharacterAt(text, at);
    if (character.code_point < 0) return at;
    at = character.end;
  }
  return -1;
}

}  // namespace linnet::model
