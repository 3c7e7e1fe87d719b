#include "model/runtime/tokenizer/text_length.h"

#include <limits>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "model/runtime/text/abbreviations.h"
#include "model/runtime/text/segmenter.h"
#include "model/runtime/text/white_space.h"

namespace linnet::model {
namespace {

class WordLength final : public TargetLength {
 public:
  WordLength(const Tokenizer& tokenizer, int min, int max)
      : tokenizer_(tokenizer), marks_(tokenizer.WordMarks()), min_(min), max_(max) {}

  State After(std::span<const TokenId> target) const override {
    // No text has more words than tokens that begin one, and a first one.
    int most = 1;
    for (TokenId token : target) most += marks_->begins_word(token) ? 1 : 0;
    if (most < min_) return State::kShort;
    const int words = WordsIn(tokenizer_.Decode(target));
    if (words < min_) return State::kShort;
    return words < max_ ? State::kEnough : State::kFull;
  }

  std::span<const TokenId> word_starts() const override { return marks_->word_starts; }
  std::string name() const override { return absl::StrCat(min_, " to ", max_, " words"); }

 private:
  const Tokenizer tokenizer_;
  const std::shared_ptr<const TokenMarks> marks_;
  const int min_, max_;
};

class SentenceLength final : public TargetLength {
 public:
  SentenceLength(const Tokenizer& tokenizer, int sentences, std::string language_code)
      : tokenizer_(tokenizer),
        marks_(tokenizer.WordMarks()),
        sentences_(sentences),
        language_code_(std::move(language_code)) {}

  State After(std::span<const TokenId> target) const override {
    if (target.empty() || !marks_->may_end_sentence(target.back())) return State::kShort;
    const int complete = CompleteSentencesIn(tokenizer_.Decode(target), language_code_);
    return complete < sentences_ ? State::kShort : State::kFull;
  }

  std::span<const TokenId> word_starts() const override { return marks_->word_starts; }
  std::string name() const override {
    return absl::StrCat(sentences_, " sentences in ", language_code_);
  }

 private:
  const Tokenizer tokenizer_;
  const std::shared_ptr<const TokenMarks> marks_;
  const int sentences_;
  const std::string language_code_;
};

class UpToSentences final : public TargetLength {
 public:
  UpToSentences(const Tokenizer& tokenizer, int max, std::string language_code)
      : tokenizer_(tokenizer),
        marks_(tokenizer.WordMarks()),
        max_(max),
        language_code_(std::move(language_code)) {}

  State After(std::span<const TokenId> target) const override {
    if (target.empty()) return State::kEnough;
    const std::string text = tokenizer_.Decode(target);
    if (!marks_->may_end_sentence(target.back()))
      return EndsInAbbreviation(text) ? State::kShort : State::kEnough;
    const int complete = CompleteSentencesIn(text, language_code_);
    // A closing bracket may end a phrase as well.
    if (complete == 0) return EndsWithStop(text) ? State::kShort : State::kEnough;
    return max_ > 0 && complete >= max_ ? State::kFull : State::kEnough;
  }

  std::span<const TokenId> word_starts() const override { return marks_->word_starts; }
  std::string name() const override {
    return absl::StrCat("up to ", max_, " sentences in ", language_code_);
  }

 private:
  // True if a full stop behind the last word would be that of an abbreviation: a target that must
  // not end behind "Mr." would end before the stop otherwise.
  bool EndsInAbbreviation(absl::string_view text) const {
    const absl::string_view word = LastWord(text);
    if (word.size() < 2 || !absl::ascii_isalpha(word.back())) return false;  // "vitamin C"
    return CompleteSentencesIn(absl::StrCat("The ", word, "."), language_code_) == 0;
  }

  static absl::string_view LastWord(absl::string_view text) {
    return text.substr(text.find_last_of(' ') + 1);
  }
  // A single letter may be an initial, and the last word as well: "vitamin C.".
  static bool EndsWithStop(absl::string_view text) {
    return absl::EndsWith(text, ".") && LastWord(text).size() > 2;
  }

  const Tokenizer tokenizer_;
  const std::shared_ptr<const TokenMarks> marks_;
  const int max_;
  const std::string language_code_;
};

}  // namespace

std::shared_ptr<const TargetLength> LengthInWords(const Tokenizer& tokenizer, int min, int max) {
  return std::make_shared<WordLength>(tokenizer, min, max);
}

std::shared_ptr<const TargetLength> LengthInSentences(const Tokenizer& tokenizer, int sentences,
                                                      std::string language_code) {
  return std::make_shared<SentenceLength>(tokenizer, sentences, std::move(language_code));
}

std::shared_ptr<const TargetLength> LengthUpToSentences(const Tokenizer& tokenizer, int max,
                                                        std::string language_code) {
  return std::make_shared<UpToSentences>(tokenizer, max, std::move(language_code));
}

int WordsIn(absl::string_view text) { return static_cast<int>(WordsOf(text).size()); }

int CompleteSentencesIn(absl::string_view text, absl::string_view language_code) {
  // The text behind a sentence decides whether it has ended: "Dr." ends none, "home." does, and
  // "30." does before a word that starts a German sentence.
  const absl::string_view next =
      Abbreviations::Of(language_code.substr(0, language_code.find('-'))).any_starter();
  const std::string followed = absl::StrCat(text, " ", next);
  const auto segments = SplitText(followed, language_code, std::numeric_limits<int>::max(),
                                  [](absl::string_view) { return 1; });
  if (!segments.ok() || segments->empty()) return 0;
  const TextSegment& last = segments->back();
  const bool ended = absl::string_view(followed).substr(last.begin) == next;
  return ended ? static_cast<int>(segments->size()) - 1 : 0;
}

}  // namespace linnet::model
