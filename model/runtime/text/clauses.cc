#include "model/runtime/text/clauses.h"

#include <unicode/brkiter.h>
#include <unicode/locid.h>
#include <unicode/utext.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "model/runtime/text/characters.h"
#include "proto/status_macros.h"

namespace linnet::model {
namespace {

constexpr UChar32 kEmDash = 0x2014;
constexpr int kMinBytes = 16;   // of the first text that is tried
constexpr int kMaxGrowth = 4;   // of the text that is tried next
constexpr int kNearClause = 8;  // share of a text that is tried, by which a clause end is near
constexpr int kMaxGuesses = 3;  // of a place before halves are tried
constexpr int kLeftOver = 8;    // share of the tokens that a part may lack that is full

bool IsClauseMark(UChar32 c) {
  return c == ',' || c == ';' || c == ':' || c == 0x2013 || c == kEmDash || c == 0x060C ||
         c == 0x061B;
}

// Marks that are written without a space after them.
bool IsCloseClauseMark(UChar32 c) {
  return c == 0x3001 || c == 0xFF0C || c == 0xFF1A || c == 0xFF1B || c == kEmDash;
}

bool IsQuote(UChar32 c) {
  const int8_t type = u_charType(c);
  return c == '"' || c == '\'' || type == U_INITIAL_PUNCTUATION || type == U_FINAL_PUNCTUATION;
}

bool EndsClause(absl::string_view text, int begin, int end) {
  while (end > begin && IsQuote(CharacterBefore(text, end).code_point)) {
    end = CharacterBefore(text, end).begin;
  }
  if (end == begin) return false;
  const UChar32 last = CharacterBefore(text, end).code_point;
  return IsClauseMark(last) || u_charType(last) == U_END_PUNCTUATION;
}

// The cuts in (begin, before).
std::span<const int> Between(const std::vector<int>& cuts, int begin, int before) {
  const auto first = std::upper_bound(cuts.begin(), cuts.end(), begin);
  const auto last = std::lower_bound(first, cuts.end(), before);
  return {first, last};
}

}  // namespace

// The boundaries of graphemes, found as far as they are needed.
struct SentenceCutter::Graphemes {
  std::unique_ptr<icu::BreakIterator> icu;
  std::unique_ptr<UText, decltype(&utext_close)> utext{nullptr, &utext_close};
  int begin = 0;
  std::vector<int> cuts;
};

SentenceCutter::SentenceCutter(absl::string_view text, int begin, int max_tokens,
                               const TokenCounter& count_tokens, PartLength& length)
    : text_(text),
      sentence_begin_(begin),
      max_tokens_(max_tokens),
      max_bytes_(MaxSegmentBytes(max_tokens)),
      count_tokens_(count_tokens),
      length_(length),
      cuts_known_(begin) {
  StartPart(begin, length.known() ? length.Guess() : max_bytes_);
}

SentenceCutter::~SentenceCutter() = default;

void SentenceCutter::FindCuts(int known, bool ends) {
  if (end_known_) return;
  while (cuts_known_ < known) {
    const Character character = CharacterAt(text_, cuts_known_);
    int at = character.end;
    if (IsWhiteSpace(character.code_point)) {
      at = SkipWhiteSpace(text_, at);
      if (!ends && at >= known) return;
      words_.push_back(character.begin);
      const bool bracket_follows =
          at < known && u_charType(CharacterAt(text_, at).code_point) == U_START_PUNCTUATION &&
          !IsQuote(CharacterAt(text_, at).code_point);
      if (bracket_follows || EndsClause(text_, sentence_begin_, character.begin))
        clauses_.push_back(character.begin);
    } else if (IsCloseClauseMark(character.code_point)) {
      if (!ends && at >= known) return;
      if (at < known && !IsWhiteSpace(CharacterAt(text_, at).code_point)) clauses_.push_back(at);
    }
    cuts_known_ = at;
  }
  if (!ends) return;
  clauses_.push_back(known);
  words_.push_back(known);
  end_known_ = true;
}

void SentenceCutter::StartPart(int begin, int64_t bytes) {
  begin_ = fitting_ = begin;
  bytes_ = std::clamp<int64_t>(bytes, kMinBytes, max_bytes_);
  step_ = 1;
}

bool SentenceCutter::Fits(int end) {
  if (end - begin_ > max_bytes_) return false;
  const int tokens = count_tokens_(text_.substr(begin_, end - begin_));
  length_.Add(end - begin_, tokens);
  if (tokens > max_tokens_) return false;
  fitting_ = std::max(fitting_, end);
  fills_ = tokens >= max_tokens_ - max_tokens_ / kLeftOver;
  return true;
}

// One of `cuts` (ascending) that fills the part, otherwise the last that fits, or -1. Assumes that
// a longer text has no fewer tokens; otherwise the result fits but may not be the last. Counts few
// texts if tokens are about equally long.
int SentenceCutter::CutThatFits(std::span<const int> cuts) {
  auto fit = std::upper_bound(cuts.begin(), cuts.end(), fitting_);  // those before it fit
  auto unfit = cuts.end();
  for (int i = 0; fit != unfit; ++i) {
    auto cut = fit + (unfit - fit) / 2;
    if (i < kMaxGuesses) {
      cut = std::upper_bound(fit, unfit, begin_ + length_.Guess());
      if (cut != fit) --cut;
    }
    if (Fits(*cut)) {
      if (fills_) return *cut;
      fit = cut + 1;
    } else {
      unfit = cut;
    }
  }
  if (fit == cuts.begin()) return -1;
  const int last = *(fit - 1);
  if (last == fitting_ || Fits(last)) return last;
  fitting_ = begin_;  // a shorter text has more tokens
  return CutThatFits({cuts.begin(), fit - 1});
}

// Returns an end that does not fit, soon after the longest that does, or the byte behind one that
// fills the part, or known + 1 if the whole rest fits. Text far behind it is never tokenised, so
// the work depends on `max_tokens` and not on the length of the rest. Prefers ends of words, since
// half a word may have more tokens than the whole, and before those the end of a clause, where the
// part may end. Nothing if more of the sentence must be known.
std::optional<int> SentenceCutter::FindLimit(int known, bool ends) {
  const int64_t last = begin_ + max_bytes_;
  while (true) {
    if (ends && begin_ + bytes_ >= known) return Fits(known) ? known + 1 : known;
    if (!ends && begin_ + 2 * bytes_ >= cuts_known_) return std::nullopt;
    int probe = static_cast<int>(begin_ + bytes_);
    // The last cut in (begin, probe], or the first one in [probe, end).
    const auto near_probe = [&](const std::vector<int>& cuts, int64_t begin, int64_t end) {
      const auto behind = std::upper_bound(cuts.begin(), cuts.end(), probe);
      if (behind != cuts.begin() && *(behind - 1) > begin) return *(behind - 1);
      return behind != cuts.end() && *behind < std::min(end, last) ? *behind : -1;
    };
    const int64_t near = bytes_ / kNearClause;
    const int64_t least = std::max<int64_t>(fitting_, probe - bytes_ / 2);
    if (const int clause_end = near_probe(clauses_, std::max(least, probe - near), probe + near);
        clause_end >= 0) {
      probe = clause_end;
    } else if (const int word_end = near_probe(words_, least, probe + bytes_); word_end >= 0) {
      probe = word_end;
    } else if (probe == last) {
      while (U8_IS_TRAIL(text_[probe])) --probe;
      return Fits(probe) ? probe + 1 : probe;
    } else {
      while (U8_IS_TRAIL(text_[probe])) ++probe;
    }
    if (!Fits(probe)) return probe;
    if (fills_) return probe + 1;
    const int64_t tried = std::max<int64_t>(bytes_, probe - begin_);
    bytes_ = std::clamp(length_.Guess(), tried + step_, kMaxGrowth * tried + step_);
    bytes_ = std::min(bytes_, max_bytes_);
    step_ *= 2;
  }
}

// Finds the boundaries before `to`, and one more.
absl::Status SentenceCutter::FindGraphemes(int to) {
  if (graphemes_ == nullptr) {
    auto made = std::make_unique<Graphemes>();
    UErrorCode error = U_ZERO_ERROR;
    made->icu.reset(icu::BreakIterator::createCharacterInstance(icu::Locale::getRoot(), error));
    made->utext.reset(utext_openUTF8(nullptr, text_.data() + begin_,
                                     static_cast<int64_t>(text_.size()) - begin_, &error));
    if (U_SUCCESS(error)) made->icu->setText(made->utext.get(), error);
    if (U_FAILURE(error)) return absl::InternalError(absl::StrCat("ICU: ", u_errorName(error)));
    made->begin = begin_;
    graphemes_ = std::move(made);
  }
  std::vector<int>& cuts = graphemes_->cuts;
  while (cuts.empty() || cuts.back() < to) {
    const int at = graphemes_->icu->next();
    if (at == icu::BreakIterator::DONE) break;
    cuts.push_back(graphemes_->begin + at);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::optional<int>> SentenceCutter::CutBetweenGraphemes(int known, bool ends,
                                                                       int unfit) {
  // A grapheme may contain white space; then the end of the word comes first.
  const auto word = std::upper_bound(words_.begin(), words_.end(), begin_);
  const int word_end = word == words_.end() ? std::numeric_limits<int>::max() - 1 : *word;
  const int before = std::min(unfit, word_end + 1);
  RETURN_IF_ERROR(FindGraphemes(std::max(before, begin_ + 1)));
  std::vector<int>& graphemes = graphemes_->cuts;
  if (ends && graphemes.back() > known) graphemes.back() = known;
  const int first =
      std::min(word_end, *std::upper_bound(graphemes.begin(), graphemes.end(), begin_));
  if (!ends && first >= cuts_known_) return std::nullopt;
  const int cut = CutThatFits(Between(graphemes, begin_, before));
  if (cut >= 0) return cut;
  if (Fits(first)) return first;
  const std::string bytes =
      absl::StrCat("the character at byte ", begin_, " has ", first - begin_, " bytes");
  if (first - begin_ > max_bytes_)
    return absl::InvalidArgumentError(absl::StrCat(bytes, ", at most ", max_bytes_, " are read"));
  return absl::InvalidArgumentError(
      absl::StrCat(bytes, " and ", count_tokens_(text_.substr(begin_, first - begin_)),
                   " tokens, this model reads at most ", max_tokens_, " at once"));
}

absl::StatusOr<std::optional<TextSegment>> SentenceCutter::Next(int known, bool ends) {
  if (ends && begin_ >= known) return std::nullopt;
  FindCuts(known, ends);
  const std::optional<int> limit = FindLimit(known, ends);
  if (!limit.has_value()) return std::nullopt;
  int cut = *limit > known ? known : CutThatFits(Between(clauses_, begin_, *limit));
  if (cut < 0) cut = CutThatFits(Between(words_, begin_, *limit));
  if (cut < 0) {
    ASSIGN_OR_RETURN(const std::optional<int> found, CutBetweenGraphemes(known, ends, *limit));
    if (!found.has_value()) return std::nullopt;
    cut = *found;
  }
  const TextSegment part = {.begin = begin_, .end = cut, .part_of_sentence = true};
  // The next part is probably as long.
  const int begin = SkipWhiteSpace(text_, cut);
  length_.StartNext();
  StartPart(ends ? std::min(begin, known) : begin, cut - begin_);
  return part;
}

}  // namespace linnet::model
