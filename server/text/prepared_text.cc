#include "server/text/prepared_text.h"

#include <algorithm>
#include <span>
#include <unordered_map>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "model/runtime/bundle/languages.h"
#include "model/runtime/text/letters.h"
#include "model/runtime/text/prose.h"
#include "model/runtime/text/white_space.h"
#include "model/runtime/tokenizer/copied_runs.h"
#include "proto/status_macros.h"
#include "server/base/errors.h"
#include "server/request/decoding_options.h"
#include "server/request/summary_length.h"
#include "server/text/memory_cost.h"
#include "server/text/text_warnings.h"

namespace linnet::server {
namespace {

using Tokens = std::vector<model::TokenId>;

// A part of a text with its tokens, without eos.
struct Part {
  model::TextSegment place;
  Tokens tokens;
  std::vector<std::string> copies = {};
  bool lowered = false;
};

absl::string_view TextOf(const std::string& text, const model::TextSegment& place) {
  return absl::string_view(text).substr(place.begin, place.end - place.begin);
}

int Length(const Part& part) { return static_cast<int>(part.tokens.size()) + 1; }  // with eos

// Returns the limit on a text with eos: what the language tokens leave.
int MaxTokens(const TextRequest& request) {
  return request.model->bundle.manifest.limits().max_source_tokens() -
         request.languages->before_source_ids_size() - request.languages->after_source_ids_size();
}

// True if text without tokens is copied to the translation. Neither sampling nor a search whose
// steps have room for one hypothesis alone can be constrained to copies.
bool Copies(const TextRequest& request) {
  return request.split && request.model->scheduler->engine_info().limits.max_beam_size > 1 &&
         !MergeOptions(request.model->bundle, request.options, 1).sampling();
}

absl::Status Unreadable(absl::string_view field, absl::Status status) {
  if (!ErrorReason(status).empty()) return status;  // there is no memory to read it
  return AtField(field, Reason::kUnreadableText, std::move(status));
}

absl::Status TooManySegments(absl::string_view field, int max_segments) {
  return BadField(field, Reason::kTooManySegments,
                  absl::StrCat("text has more segments than the ", max_segments,
                               " that this call may still add: send the rest in another call"),
                  {{"maxSegments", absl::StrCat(max_segments)}});
}

// Tokenises a text, or only its start if that alone has more than `max_tokens`. Few texts are so
// long and have so few tokens; their memory is held until the call ends.
absl::StatusOr<model::CopyingText> ReadStart(const model::Tokenizer& tokenizer,
                                             absl::string_view text,
                                             const model::ReadOptions& options, int max_tokens,
                                             const PrepareLimits& limits) {
  if (std::ssize(text) > kMaxEncodedBytes) {
    size_t end = kMaxEncodedBytes;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
    auto start = tokenizer.Read(text.substr(0, end), options);
    if (!start.ok() || std::ssize(start->tokens) > max_tokens) return start;
    RETURN_IF_ERROR(limits.hold(kEncodeBytesPerByte * std::ssize(text)));
  }
  return tokenizer.Read(text, options);
}

// How the source of an item is read. A pair to be scored is read in lower case if both texts are
// in capitals, so that the score of a translation in capitals is that of its search.
model::ReadOptions SourceReading(const TextRequest& request, const TextItem& item) {
  const bool lower =
      item.target == nullptr || model::IsInCapitals(*item.target, {.before = *item.text});
  return {.language_code = request.language_code, .lower = lower};
}

// Returns "912", or "more than 900" if only the start of a long text was tokenised.
std::string CountOf(size_t tokens, size_t text_bytes) {
  const bool start_alone = static_cast<int64_t>(text_bytes) > kMaxEncodedBytes;
  return start_alone ? absl::StrCat("more than ", tokens - 1) : absl::StrCat(tokens);
}

// Splits the text into sentences, and sentences that are too long into parts.
absl::StatusOr<std::vector<Part>> Sentences(const TextRequest& request, const std::string& text,
                                            const TextItem& item, const PrepareLimits& limits) {
  const model::Tokenizer& tokenizer = *request.model->source_tokenizer;
  const int max_tokens = MaxTokens(request);
  const bool copies = Copies(request);
  const auto encode = [&](absl::string_view part) {
    const size_t begin = part.data() - text.data();
    model::ReadOptions options = SourceReading(request, item);
    options.around = {.before = absl::string_view(text).substr(0, begin),
                      .after = absl::string_view(text).substr(begin + part.size())};
    options.copies = copies && std::ssize(part) <= kMaxEncodedBytes;
    return ReadStart(tokenizer, part, options, max_tokens, limits);
  };
  // Parts that were tokenised to see whether they fit, by their begin. The last one counted at a
  // begin becomes the segment.
  struct Counted {
    int end = 0;
    model::CopyingText read;
  };
  std::unordered_map<int, Counted> counted;
  absl::Status held;
  auto count_tokens = [&](absl::string_view part) {
    auto read = encode(part);
    if (!read.ok()) {  // the error is returned below
      if (!ErrorReason(read.status()).empty() && held.ok()) held = read.status();
      return 0;
    }
    const int count = static_cast<int>(read->tokens.size()) + 1;
    const int begin = static_cast<int>(part.data() - text.data());
    if (count <= max_tokens && held.ok()) {
      if (!counted.contains(begin)) held = limits.hold(SegmentBytes(count));
      counted[begin] = {.end = begin + static_cast<int>(part.size()), .read = *std::move(read)};
    }
    return count;
  };
  auto places =
      model::SplitText(text, request.language_code, max_tokens, count_tokens, limits.max_segments);
  RETURN_IF_ERROR(held);
  if (absl::IsOutOfRange(places.status())) return TooManySegments(item.path, limits.max_segments);
  if (!places.ok()) return Unreadable(item.path, places.status());
  std::vector<Part> parts;
  for (const model::TextSegment& place : *places) {
    absl::StatusOr<model::CopyingText> read;
    if (Counted& known = counted[place.begin]; known.end == place.end) {
      read = std::move(known.read);
    } else {
      read = encode(TextOf(text, place));
    }
    if (!read.ok()) return Unreadable(item.path, read.status());
    // Text that normalises to nothing (a zero-width space) is kept unchanged, like white space.
    if (!read->tokens.empty())
      parts.push_back({place, std::move(read->tokens), std::move(read->copies), read->lowered});
  }
  return parts;
}

// Joins the sentences into chunks that the model reads at once, of about equal length: the min
// number of chunks, or one more. When truncating, returns the first chunk only, as long as
// possible. The chunks are the segments of the call; of sentences it has as many as its memory.
absl::StatusOr<std::vector<Part>> Chunks(const TextRequest& request, const std::string& text,
                                         const TextItem& item, const PrepareLimits& limits) {
  ASSIGN_OR_RETURN(auto sentences, Sentences(request, text, item, {.hold = limits.hold}));
  const bool truncate = request.long_input == linnet::v1::LONG_INPUT_TRUNCATE;
  const int room = MaxTokens(request) - 1;  // for eos
  int64_t total = 0;
  for (const Part& sentence : sentences) total += std::ssize(sentence.tokens);
  const int64_t min_chunks = (total + room - 1) / room;
  const int64_t target_length =
      truncate ? room : (total + min_chunks - 1) / std::max<int64_t>(min_chunks, 1);

  std::vector<Part> chunks;
  for (size_t first = 0; first < sentences.size();) {
    size_t end = first;
    for (int64_t length = 0; end < sentences.size() && length < target_length; ++end) {
      length += std::ssize(sentences[end].tokens);
      if (length > room && end > first) break;
    }
    // Tokens of the joined text may differ from those of its sentences.
    Part chunk;
    for (;; --end) {
      chunk.place = sentences[first].place;
      chunk.place.end = sentences[end - 1].place.end;
      chunk.place.part_of_sentence |= sentences[end - 1].place.part_of_sentence;
      auto read = request.model->source_tokenizer->Read(model::OneLine(TextOf(text, chunk.place)),
                                                        SourceReading(request, item));
      if (!read.ok()) return Unreadable(item.path, read.status());
      chunk.tokens = std::move(read->tokens);
      chunk.lowered = read->lowered;
      if (std::ssize(chunk.tokens) <= room || end - 1 == first) break;
    }
    if (std::ssize(chunks) == limits.max_segments)
      return TooManySegments(item.path, limits.max_segments);
    chunks.push_back(std::move(chunk));
    if (truncate) break;
    first = end;
  }
  return chunks;
}

// Reads the text as one source, or in chunks or truncated if it is too long and the request allows
// it.
absl::StatusOr<std::vector<Part>> Whole(const TextRequest& request, const std::string& text,
                                        const TextItem& item, const PrepareLimits& limits) {
  if (model::IsBlank(text)) return std::vector<Part>{};
  const absl::string_view trimmed = model::Trimmed(text);
  const auto begin = static_cast<int>(trimmed.data() - text.data());
  const model::TextSegment all = {.begin = begin, .end = begin + static_cast<int>(trimmed.size())};
  auto read = ReadStart(*request.model->source_tokenizer, model::OneLine(trimmed),
                        SourceReading(request, item), MaxTokens(request), limits);
  if (!read.ok()) return Unreadable(item.path, read.status());
  std::vector<Part> parts;
  if (read->tokens.empty()) return parts;
  RETURN_IF_ERROR(limits.hold(SegmentBytes(std::ssize(read->tokens))));
  parts.push_back({all, std::move(read->tokens), {}, read->lowered});
  if (Length(parts.front()) <= MaxTokens(request) ||
      request.long_input == linnet::v1::LONG_INPUT_REJECT)
    return parts;
  return Chunks(request, text, item, limits);
}

// Tokenises a target, in lower case if its source is; eos is last.
absl::StatusOr<Tokens> Target(const TextRequest& request, const TextItem& item, bool lowered,
                              const PrepareLimits& limits) {
  const ServedModel& model = *request.model;
  const int max = model.bundle.manifest.limits().max_target_tokens();
  const model::ReadOptions options = {.around = {.before = *item.text},
                                      .language_code = request.languages->target_language_code(),
                                      .lower = lowered};
  auto read =
      ReadStart(*model.target_tokenizer, model::OneLine(*item.target), options, max, limits);
  if (!read.ok()) return Unreadable(item.target_path, read.status());
  Tokens* const tokens = &read->tokens;
  if (std::ssize(*tokens) > max) {
    return BadField(
        item.target_path, Reason::kTextTooLong,
        absl::StrCat("text has ", CountOf(tokens->size(), item.target->size()), " tokens, model \"",
                     model.name(), "\" writes at most ", max, ": shorten it"),
        {{"tokens", absl::StrCat(tokens->size())}, {"maxTokens", absl::StrCat(max)}});
  }
  tokens->push_back(model.bundle.special_tokens().eos);
  return std::move(*tokens);
}

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

// Marks the segments whose text is its own translation: a time, a number, a rule, emoji. A model
// would change some of them, also numbers that its language writes in another way, so a number
// alone stays as it is. A glossary may say otherwise.
void MarkCopied(PreparedText& work) {
  for (PreparedSegment& segment : work.segments) {
    const bool replaced =
        std::any_of(segment.terms.begin(), segment.terms.end(), [&](const TermUse& term) {
          return term.target != segment.text.substr(term.begin, term.end - term.begin);
        });
    segment.copied = !replaced && !model::HasLetter(segment.text);
    if (!segment.copied) continue;
    segment.source = {};
    segment.copies = {};
    segment.result.hypotheses.assign(1, {});
  }
}

// Gives the segments of a joined text their places in its source.
void UseJoined(std::shared_ptr<const model::JoinedText> joined, PreparedText& work) {
  work.joined = std::move(joined);
  for (PreparedSegment& segment : work.segments) {
    segment.joined = work.joined.get();
    const auto [begin, end] = SourceOf(segment, 0, static_cast<int>(segment.text.size()));
    segment.place.begin = begin;
    segment.place.end = end;
  }
}

absl::Status RefuseLanguage(const TextRequest& request, absl::string_view field,
                            const LanguageGuess::Language& seen) {
  LanguageMismatch mismatch(request, seen);
  return BadField(
      field, Reason::kLanguageMismatch,
      absl::StrCat(mismatch.message, ": send text in that language, or name a model for this one"),
      std::move(mismatch.metadata));
}

}  // namespace

absl::StatusOr<PreparedText> PrepareText(const TextRequest& request, const TextItem& item,
                                         const Glossary* glossary, const PrepareLimits& limits) {
  const ServedModel& model = *request.model;
  const std::string& field = item.path;
  if (limits.max_segments <= 0) return TooManySegments(field, 0);
  std::shared_ptr<const model::JoinedText> joined;
  if (request.join_lines) {
    RETURN_IF_ERROR(limits.hold(model::JoinedText::MaxBytes(*item.text)));
    joined = std::make_shared<const model::JoinedText>(model::JoinParagraphs(*item.text));
    if (joined->text() == *item.text) joined = nullptr;
  }
  const std::string& text = joined != nullptr ? joined->text() : *item.text;
  RETURN_IF_ERROR(limits.hold(PrepareBytes(std::ssize(text))));
  ASSIGN_OR_RETURN(auto parts, request.split ? Sentences(request, text, item, limits)
                                             : Whole(request, text, item, limits));
  PreparedText work;
  int copied = 0;  // bytes of the text up to the end of the last segment
  for (Part& part : parts) {
    if (Length(part) > MaxTokens(request)) {
      return BadField(
          field, Reason::kTextTooLong,
          absl::StrCat(
              "text has ", CountOf(Length(part), part.place.end - part.place.begin),
              " tokens, model \"", model.name(), "\" reads at most ", MaxTokens(request),
              ": shorten it",
              request.split || item.target != nullptr ? "" : ", or set long_input to chunk"),
          {{"tokens", absl::StrCat(Length(part))},
           {"maxTokens", absl::StrCat(MaxTokens(request))}});
    }
    part.tokens.push_back(model.bundle.special_tokens().eos);
    // A summary replaces the whole text, so white space around it is not part of the answer.
    // Before it stands the last segment alone: looking back further may be quadratic in the text.
    const absl::string_view before =
        work.segments.empty() ? absl::string_view() : work.segments.back().text;
    std::string gap = request.split
                          ? GapAfter(before, text.substr(copied, part.place.begin - copied),
                                     request.languages->target_language_code())
                      : work.segments.empty() ? ""
                                              : " ";
    copied = part.place.end;
    work.segments.push_back({.place = part.place,
                             .gap = std::move(gap),
                             .source = std::move(part.tokens),
                             .copies = std::move(part.copies),
                             .lowered = part.lowered,
                             .target = std::nullopt,
                             .text = TextOf(text, part.place),
                             .result = {}});
  }
  if (work.segments.empty() && !request.may_be_empty) {
    return BadField(field, Reason::kEmpty,
                    model::IsBlank(text) ? "text is only white space"
                                         : "text has no character that the model reads");
  }
  if (item.target != nullptr && !work.segments.empty()) {
    ASSIGN_OR_RETURN(work.segments.front().target,
                     Target(request, item, work.segments.front().lowered, limits));
  }
  if (request.length.has_value()) {
    const auto chunks = static_cast<int>(work.segments.size());
    for (int i = 0; i < chunks; ++i) {
      ASSIGN_OR_RETURN(work.segments[i].length,
                       LengthOfChunk(*request.length, model, request.language_code, i, chunks));
    }
  }
  if (!request.split && item.target == nullptr) {
    const linnet::v1::SummaryStyle style = request.languages->style();
    for (PreparedSegment& segment : work.segments) {
      if (style != linnet::v1::SUMMARY_STYLE_UNSPECIFIED && segment.length == nullptr)
        segment.length = LengthOfStyle(style, model, request.language_code);
      // The titles of chunks stand in one line, where their full stops separate them.
      segment.is_title = style == linnet::v1::SUMMARY_STYLE_TITLE && std::ssize(work.segments) == 1;
    }
    if (const double share = model::ProseShare(text); share < kMinProseShare) {
      RETURN_IF_ERROR(limits.hold(kWarningBytes));
      work.prose_share = share;
    }
  }
  if (glossary != nullptr) {
    for (PreparedSegment& segment : work.segments) {
      ASSIGN_OR_RETURN(
          auto terms,
          glossary->Find(segment.text, InputOf(request, segment).options.max_target_tokens));
      int64_t bytes = 0;
      for (const TermUse& use : terms) bytes += TermBytes(use);
      RETURN_IF_ERROR(limits.hold(bytes));
      segment.terms = std::move(terms);
    }
  }
  if (request.split) MarkCopied(work);
  if (request.language_check != LanguageCheck::kOff) {
    work.other_language = OtherLanguage(text, request.language_code);
    if (work.other_language.has_value()) {
      if (request.language_check == LanguageCheck::kRefuse)
        return RefuseLanguage(request, field, *work.other_language);
      RETURN_IF_ERROR(limits.hold(kWarningBytes));
    }
  }
  if (request.split) work.tail = text.substr(copied);
  if (joined != nullptr) UseJoined(std::move(joined), work);
  work.truncated = request.long_input == linnet::v1::LONG_INPUT_TRUNCATE &&
                   !model::Trimmed(absl::string_view(text).substr(copied)).empty();
  return work;
}

model::JoinedText::Range SourceOf(const PreparedSegment& segment, int begin, int end) {
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

model::SequenceInput InputOf(const TextRequest& request, const PreparedSegment& segment) {
  model::SequenceInput input;
  input.source = segment.source;
  input.options =
      MergeOptions(request.model->bundle, request.options, static_cast<int>(segment.source.size()));
  input.align = request.alignments;
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
