#include "server/text/prepared_text.h"

#include <algorithm>
#include <span>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "model/runtime/bundle/languages.h"
#include "model/runtime/text/white_space.h"
#include "model/runtime/tokenizer/copied_runs.h"

namespace linnet::server {
namespace {

using Tokens = std::vector<model::TokenId>;

bool IsLetter(unsigned char c) { return absl::ascii_isalnum(c) || c >= 0x80; }

// The places of the copies in the text of their segment.
std::vector<model::TextRun> PlacesOfCopies(const PreparedSegment& segment) {
  std::vector<model::TextRun> places;
  size_t end = 0;
  for (const std::string& copy : segment.copies) {
    const size_t begin = segment.text.find(copy, end);
    end = begin + copy.size();
    places.push_back({static_cast<int>(begin), static_cast<int>(end)});
  }
  return places;
}

// True if a copy writes the target of the term: a term that is kept and lies within the copy.
bool IsCopied(const TermUse& term, const PreparedSegment& segment,
              std::span<const model::TextRun> copies) {
  return term.target == segment.text.substr(term.begin, term.end - term.begin) &&
         std::any_of(copies.begin(), copies.end(), [&](const model::TextRun& copy) {
           return copy.begin <= term.begin && term.end <= copy.end;
         });
}

// Adds constraints so that the target contains all copies, within the limits on constraints, each
// after a space and before the end of a word if it is so in the source. Of a copy within a term the
// translation of the term takes the place. Greedy search cannot be constrained, so its beam becomes
// two. Returns true if a copy ends a word.
bool RequireCopies(const TextRequest& request, const PreparedSegment& segment,
                   std::span<const model::TextRun> places, model::SequenceInput& input) {
  if (segment.copies.empty()) return false;
  input.options.beam_size = std::max(input.options.beam_size, 2);
  int64_t tokens = 0;
  for (const Tokens& phrase : input.constraints) tokens += std::ssize(phrase);
  bool end_in_word = false;
  for (int i = 0; i < std::ssize(places); ++i) {
    const auto [begin, end] = places[i];
    const bool in_term = std::any_of(
        segment.terms.begin(), segment.terms.end(), [&, copy = places[i]](const TermUse& term) {
          return !term.tokens.empty() && term.begin <= copy.begin && copy.end <= term.end &&
                 !IsCopied(term, segment, places);
        });
    if (in_term) continue;
    const bool after_space =
        begin == 0 || model::EndsInWhiteSpace(absl::string_view(segment.text).substr(0, begin));
    Tokens phrase = request.model->target_tokenizer->CopyPhrase(i, after_space);
    tokens += std::ssize(phrase);
    if (tokens > input.options.max_target_tokens ||
        std::ssize(input.constraints) == model::Constraints::kMaxPhrases)
      break;
    input.constraints.push_back(std::move(phrase));
    end_in_word |= end == std::ssize(segment.text) || !IsLetter(segment.text[end]);
  }
  return end_in_word;
}

}  // namespace

model::JoinedText::Range SourceRange(const PreparedSegment& segment, int begin, int end) {
  if (segment.joined == nullptr) return {segment.place.begin + begin, segment.place.begin + end};
  const auto at = static_cast<int>(segment.text.data() - segment.joined->text().data());
  return segment.joined->SourceOf(at + begin, at + end);
}

absl::string_view SourceCapitals(const TextRequest& request, const PreparedSegment& segment) {
  if (!segment.lowered) return {};
  return request.language_code.empty() ? "und" : absl::string_view(request.language_code);
}

absl::string_view TargetCapitals(const TextRequest& request, const PreparedSegment& segment) {
  const std::string& language = request.languages->target_language_code();
  if (language.empty()) return SourceCapitals(request, segment);
  return segment.lowered ? absl::string_view(language) : absl::string_view();
}

std::string HypothesisText(const TextRequest& request, const PreparedSegment& segment,
                           const model::Hypothesis& hypothesis) {
  if (segment.copied) return std::string(segment.text);
  std::string text = request.model->target_tokenizer->Decode(hypothesis.tokens, segment.copies,
                                                             TargetCapitals(request, segment));
  if (segment.is_title && text.size() > 1 && absl::EndsWith(text, ".") &&
      !absl::EndsWith(text, ".."))
    text.pop_back();
  return text;
}

std::string GapAfter(absl::string_view before, std::string gap,
                     const std::string& target_language_code) {
  const bool joined = gap.empty() && !before.empty() &&
                      !model::IsUnspacedLanguage(target_language_code) &&
                      model::EndsInUnspacedScript(before);
  return joined ? " " : gap;
}

model::SequenceInput MakeInput(const TextRequest& request, const PreparedSegment& segment) {
  model::SequenceInput input;
  input.source = segment.source;
  input.options = request.options.ForSource(static_cast<int>(segment.source.size()));
  input.align = request.alignments && segment.align;
  input.length = segment.length;
  const std::vector<model::TextRun> copies = PlacesOfCopies(segment);
  bool end_in_word = false;
  for (const TermUse& term : segment.terms) {
    if (term.tokens.empty() || IsCopied(term, segment, copies)) continue;
    input.constraints.push_back(term.tokens);
    end_in_word |= model::EndsInWord(term.target);
  }
  end_in_word |= RequireCopies(request, segment, copies, input);
  if (end_in_word) input.continuations = request.model->target_tokenizer->Continuations();
  if (segment.target.has_value()) {
    input.target = segment.target;
    // So that the cost is that of the target.
    input.options.max_target_tokens = static_cast<int>(segment.target->size()) - 1;
    input.options.min_target_tokens =
        std::min(input.options.min_target_tokens, input.options.max_target_tokens);
  }
  model::AddLanguageTokens(*request.languages, input);
  return input;
}

}  // namespace linnet::server
