#include "server/text/text_preparer.h"

#include <algorithm>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "model/runtime/text/letters.h"
#include "model/runtime/text/prose.h"
#include "model/runtime/text/segmenter.h"
#include "model/runtime/text/white_space.h"
#include "proto/status_macros.h"
#include "server/base/errors.h"
#include "server/request/summary_length.h"
#include "server/text/memory_cost.h"
#include "server/text/text_warnings.h"

namespace linnet::server {

// A part of a text with its tokens, without eos.
struct TokenizedPart {
  model::TextSegment place;
  std::vector<model::TokenId> tokens;
  std::vector<std::string> copies = {};
  bool lowered = false;
};

namespace {

// Work on a segment beside its tokens (model::TextSplitter::Step).
constexpr int64_t kWorkOfSegment = 8;

using Tokens = std::vector<model::TokenId>;

absl::string_view TextOf(const std::string& text, const model::TextSegment& place) {
  return absl::string_view(text).substr(place.begin, place.end - place.begin);
}

int Length(const TokenizedPart& part) {
  return static_cast<int>(part.tokens.size()) + 1;
}  // with eos

// Returns the limit on a text with eos: what the language tokens leave.
int MaxTokens(const TextRequest& request) {
  return request.model->bundle.manifest.limits().max_source_tokens() -
         request.languages->before_source_ids_size() - request.languages->after_source_ids_size();
}

// True if text without tokens is copied to the translation. Neither sampling nor a search whose
// steps have room for one hypothesis alone can be constrained to copies.
bool Copies(const TextRequest& request) {
  return request.split && request.model->scheduler->engine_info().limits.max_beam_size > 1 &&
         !request.options.sampling();
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

// True if the text of a segment is its own translation: a time, a number, a rule, emoji. A model
// would change some of them, also numbers that its language writes in another way, so a number
// alone stays as it is. A glossary may say otherwise.
bool IsOwnTranslation(const PreparedSegment& segment) {
  const bool replaced =
      std::any_of(segment.terms.begin(), segment.terms.end(), [&](const TermUse& term) {
        return term.target != segment.text.substr(term.begin, term.end - term.begin);
      });
  return !replaced && !model::HasLetter(segment.text);
}

// Gives the segments of a joined text their places in its source.
void UseJoined(std::shared_ptr<const model::JoinedText> joined, PreparedText& work) {
  work.joined = std::move(joined);
  for (PreparedSegment& segment : work.segments) {
    segment.joined = work.joined.get();
    const auto [begin, end] = SourceRange(segment, 0, static_cast<int>(segment.text.size()));
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

struct TextPreparer::State {
  enum class Phase { kStart, kSplit, kChunk, kAdd, kFinish, kDone };
  // A part that was tokenised to see whether it fits.
  struct Counted {
    int end = 0;
    model::CopyingText read;
  };

  State(const TextRequest& request, const TextItem& item, const Glossary* glossary,
        PrepareLimits limits)
      : request(request),
        item(item),
        glossary(glossary),
        limits(std::move(limits)),
        max_tokens(MaxTokens(request)),
        copies(Copies(request)) {}

  absl::Status Continue(int64_t budget);
  absl::Status Start();
  // Reads the text as one source, or begins to split it if it is too long and the request allows
  // it.
  absl::Status StartWhole();
  void StartSplit(size_t max_segments);
  absl::StatusOr<model::CopyingText> Encode(absl::string_view part);
  int CountTokens(absl::string_view part);
  absl::Status Split(int64_t budget);
  absl::Status ReadSentence(const model::TextSegment& place);
  void StartChunks();
  absl::Status Chunk();
  absl::Status AddSegment(TokenizedPart part);
  absl::Status Finish();
  absl::Status SetLengths();
  absl::Status CheckLanguage();

  const TextRequest& request;
  const TextItem& item;
  const Glossary* const glossary;
  const PrepareLimits limits;
  const int max_tokens;
  const bool copies;

  Phase phase = Phase::kStart;
  int64_t worked = 0;
  std::shared_ptr<const model::JoinedText> joined;
  const std::string* text = nullptr;
  // By their begin. The last one counted at a begin becomes the segment.
  std::unordered_map<int, Counted> counted;
  absl::Status held;
  std::optional<model::TextSplitter> splitter;
  size_t read = 0;  // sentences of the splitter
  // Of a text that is not split into segments.
  std::vector<TokenizedPart> sentences;
  int64_t sentence_tokens = 0;
  size_t first = 0, end = 0;  // sentences of the next chunk
  int64_t chunk_length = 0;   // aimed at
  std::vector<TokenizedPart> parts;
  size_t added = 0;  // parts
  PreparedText work;
  int copied = 0;  // bytes of the text up to the end of the last segment
};

absl::Status TextPreparer::State::Start() {
  if (limits.max_segments <= 0) return TooManySegments(item.path, 0);
  if (request.join_lines) {
    RETURN_IF_ERROR(limits.hold(model::JoinedText::MaxBytes(*item.text)));
    joined = std::make_shared<const model::JoinedText>(model::JoinParagraphs(*item.text));
    if (joined->text() == *item.text) joined = nullptr;
  }
  text = joined != nullptr ? &joined->text() : item.text;
  RETURN_IF_ERROR(limits.hold(PrepareBytes(std::ssize(*text))));
  if (!request.split) return StartWhole();
  StartSplit(limits.max_segments);
  return absl::OkStatus();
}

absl::Status TextPreparer::State::StartWhole() {
  phase = Phase::kAdd;
  if (model::IsBlank(*text)) return absl::OkStatus();
  const absl::string_view trimmed = model::Trimmed(*text);
  const auto begin = static_cast<int>(trimmed.data() - text->data());
  const model::TextSegment all = {.begin = begin, .end = begin + static_cast<int>(trimmed.size())};
  worked += std::min<int64_t>(all.end - all.begin, kMaxEncodedBytes);
  auto whole = ReadStart(*request.model->source_tokenizer, model::OneLine(trimmed),
                         SourceReading(request, item), max_tokens, limits);
  if (!whole.ok()) return Unreadable(item.path, whole.status());
  if (whole->tokens.empty()) return absl::OkStatus();
  RETURN_IF_ERROR(limits.hold(SegmentBytes(std::ssize(whole->tokens))));
  TokenizedPart part = {all, std::move(whole->tokens), {}, whole->lowered};
  if (Length(part) <= max_tokens || request.long_input == linnet::v1::LONG_INPUT_REJECT) {
    parts.push_back(std::move(part));
    return absl::OkStatus();
  }
  // The chunks are the segments of the call; of sentences it has as many as its memory.
  StartSplit(std::numeric_limits<int>::max());
  return absl::OkStatus();
}

void TextPreparer::State::StartSplit(size_t max_segments) {
  splitter.emplace(
      *text, request.language_code, max_tokens,
      [this](absl::string_view part) { return CountTokens(part); }, max_segments);
  phase = Phase::kSplit;
}

absl::StatusOr<model::CopyingText> TextPreparer::State::Encode(absl::string_view part) {
  const size_t begin = part.data() - text->data();
  const absl::string_view all = *text;
  model::ReadOptions options = SourceReading(request, item);
  options.around = {.before = all.substr(0, begin), .after = all.substr(begin + part.size())};
  options.copies = copies && std::ssize(part) <= kMaxEncodedBytes;
  return ReadStart(*request.model->source_tokenizer, part, options, max_tokens, limits);
}

int TextPreparer::State::CountTokens(absl::string_view part) {
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
  // Truncating leaves only the first chunk, which later sentences do not change.
  const bool enough = !request.split && request.long_input == linnet::v1::LONG_INPUT_TRUNCATE &&
                      sentence_tokens >= max_tokens;
  if (!enough) {
    if (absl::IsOutOfRange(split.status())) return TooManySegments(item.path, limits.max_segments);
    if (!split.ok()) return Unreadable(item.path, split.status());
    if (!splitter->done()) return absl::OkStatus();
  }
  counted = {};
  splitter.reset();
  if (request.split) {
    phase = Phase::kFinish;
  } else {
    StartChunks();
  }
  return absl::OkStatus();
}

absl::Status TextPreparer::State::ReadSentence(const model::TextSegment& place) {
  absl::StatusOr<model::CopyingText> source;
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
  TokenizedPart part = {place, std::move(source->tokens), std::move(source->copies),
                        source->lowered};
  sentence_tokens += std::ssize(part.tokens);
  if (request.split) return AddSegment(std::move(part));
  sentences.push_back(std::move(part));
  return absl::OkStatus();
}

// Joins the sentences into chunks that the model reads at once, of about equal length: the min
// number of chunks, or one more. When truncating, returns the first chunk only, as long as
// possible.
void TextPreparer::State::StartChunks() {
  const bool truncate = request.long_input == linnet::v1::LONG_INPUT_TRUNCATE;
  const int room = max_tokens - 1;  // for eos
  const int64_t min_chunks = (sentence_tokens + room - 1) / room;
  chunk_length =
      truncate ? room : (sentence_tokens + min_chunks - 1) / std::max<int64_t>(min_chunks, 1);
  phase = Phase::kChunk;
}

absl::Status TextPreparer::State::Chunk() {
  if (first >= sentences.size()) {
    sentences = {};
    phase = Phase::kAdd;
    return absl::OkStatus();
  }
  const int room = max_tokens - 1;
  if (end <= first) {
    end = first;
    for (int64_t length = 0; end < sentences.size() && length < chunk_length; ++end) {
      length += std::ssize(sentences[end].tokens);
      if (length > room && end > first) break;
    }
  }
  TokenizedPart chunk;
  chunk.place = sentences[first].place;
  chunk.place.end = sentences[end - 1].place.end;
  chunk.place.part_of_sentence |= sentences[end - 1].place.part_of_sentence;
  worked += chunk.place.end - chunk.place.begin + kWorkOfSegment;
  auto joined_text = request.model->source_tokenizer->Read(
      model::OneLine(TextOf(*text, chunk.place)), SourceReading(request, item));
  if (!joined_text.ok()) return Unreadable(item.path, joined_text.status());
  chunk.tokens = std::move(joined_text->tokens);
  chunk.lowered = joined_text->lowered;
  // Tokens of the joined text may differ from those of its sentences.
  if (std::ssize(chunk.tokens) > room && end - 1 > first) {
    --end;
    return absl::OkStatus();
  }
  if (std::ssize(parts) == limits.max_segments)
    return TooManySegments(item.path, limits.max_segments);
  parts.push_back(std::move(chunk));
  const bool truncate = request.long_input == linnet::v1::LONG_INPUT_TRUNCATE;
  first = truncate ? sentences.size() : end;
  end = 0;
  return absl::OkStatus();
}

absl::Status TextPreparer::State::AddSegment(TokenizedPart part) {
  const ServedModel& model = *request.model;
  if (Length(part) > max_tokens) {
    return BadField(
        item.path, Reason::kTextTooLong,
        absl::StrCat("text has ", CountOf(Length(part), part.place.end - part.place.begin),
                     " tokens, model \"", model.name(), "\" reads at most ", max_tokens,
                     ": shorten it",
                     request.split || item.target != nullptr ? "" : ", or set long_input to chunk"),
        {{"tokens", absl::StrCat(Length(part))}, {"maxTokens", absl::StrCat(max_tokens)}});
  }
  worked += kWorkOfSegment;
  part.tokens.push_back(model.bundle.special_tokens().eos);
  // A summary replaces the whole text, so white space around it is not part of the answer. Before
  // it stands the last segment alone: looking back further may be quadratic in the text.
  const absl::string_view before =
      work.segments.empty() ? absl::string_view() : work.segments.back().text;
  std::string gap = request.split
                        ? GapAfter(before, text->substr(copied, part.place.begin - copied),
                                   request.languages->target_language_code())
                    : work.segments.empty() ? ""
                                            : " ";
  copied = part.place.end;
  PreparedSegment& segment = work.segments.emplace_back();
  segment.place = part.place;
  segment.gap = std::move(gap);
  segment.source = std::move(part.tokens);
  segment.copies = std::move(part.copies);
  segment.lowered = part.lowered;
  segment.text = TextOf(*text, part.place);
  if (glossary != nullptr) {
    worked += part.place.end - part.place.begin;
    const auto source = static_cast<int>(segment.source.size());
    ASSIGN_OR_RETURN(
        segment.terms,
        glossary->Find(segment.text, request.options.ForSource(source).max_target_tokens));
    int64_t bytes = 0;
    for (const TermUse& use : segment.terms) bytes += TermBytes(use);
    RETURN_IF_ERROR(limits.hold(bytes));
  }
  segment.copied = request.split && IsOwnTranslation(segment);
  if (!segment.copied) return absl::OkStatus();
  segment.source = {};
  segment.copies = {};
  return absl::OkStatus();
}

absl::Status TextPreparer::State::SetLengths() {
  const ServedModel& model = *request.model;
  if (request.length.has_value()) {
    const auto chunks = static_cast<int>(work.segments.size());
    for (int i = 0; i < chunks; ++i) {
      ASSIGN_OR_RETURN(work.segments[i].length,
                       LengthOfChunk(*request.length, model, request.language_code, i, chunks));
    }
  }
  if (request.split || item.target != nullptr) return absl::OkStatus();
  const linnet::v1::SummaryStyle style = request.languages->style();
  for (PreparedSegment& segment : work.segments) {
    if (style != linnet::v1::SUMMARY_STYLE_UNSPECIFIED && segment.length == nullptr)
      segment.length = LengthOfStyle(style, model, request.language_code);
    // The titles of chunks stand in one line, where their full stops separate them.
    segment.is_title = style == linnet::v1::SUMMARY_STYLE_TITLE && std::ssize(work.segments) == 1;
  }
  if (const double share = model::ProseShare(*text); share < kMinProseShare) {
    RETURN_IF_ERROR(limits.hold(kWarningBytes));
    work.prose_share = share;
  }
  return absl::OkStatus();
}

absl::Status TextPreparer::State::CheckLanguage() {
  if (request.language_check == LanguageCheck::kOff) return absl::OkStatus();
  work.other_language = OtherLanguage(*text, request.language_code);
  if (!work.other_language.has_value()) return absl::OkStatus();
  if (request.language_check == LanguageCheck::kRefuse)
    return RefuseLanguage(request, item.path, *work.other_language);
  return limits.hold(kWarningBytes);
}

absl::Status TextPreparer::State::Finish() {
  phase = Phase::kDone;
  if (work.segments.empty() && !request.may_be_empty) {
    return BadField(item.path, Reason::kEmpty,
                    model::IsBlank(*text) ? "text is only white space"
                                          : "text has no character that the model reads");
  }
  if (item.target != nullptr && !work.segments.empty()) {
    worked += std::ssize(*item.target);
    ASSIGN_OR_RETURN(work.segments.front().target,
                     Target(request, item, work.segments.front().lowered, limits));
  }
  RETURN_IF_ERROR(SetLengths());
  RETURN_IF_ERROR(CheckLanguage());
  if (request.split) work.tail = text->substr(copied);
  work.truncated = request.long_input == linnet::v1::LONG_INPUT_TRUNCATE &&
                   !model::Trimmed(absl::string_view(*text).substr(copied)).empty();
  if (joined != nullptr) UseJoined(std::move(joined), work);
  return absl::OkStatus();
}

absl::Status TextPreparer::State::Continue(int64_t budget) {
  switch (phase) {
    case Phase::kStart:
      return Start();
    case Phase::kSplit:
      return Split(budget);
    case Phase::kChunk:
      return Chunk();
    case Phase::kAdd:
      if (added < parts.size()) return AddSegment(std::move(parts[added++]));
      phase = Phase::kFinish;
      return absl::OkStatus();
    case Phase::kFinish:
      return Finish();
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
std::vector<PreparedSegment>& TextPreparer::segments() { return state_->work.segments; }
PreparedText TextPreparer::Take() { return std::move(state_->work); }

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
