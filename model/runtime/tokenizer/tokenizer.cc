#include "model/runtime/tokenizer/tokenizer.h"

#include <algorithm>
#include <mutex>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "model/runtime/text/characters.h"
#include "model/runtime/text/invisible.h"
#include "model/runtime/tokenizer/apostrophes.h"
#include "model/runtime/tokenizer/capitals.h"
#include "model/runtime/tokenizer/copied_runs.h"
#include "model/runtime/tokenizer/load_subwords.h"
#include "model/runtime/tokenizer/lower_capitals.h"
#include "model/runtime/tokenizer/moses.h"
#include "model/runtime/tokenizer/names.h"
#include "model/runtime/tokenizer/spellings.h"
#include "model/runtime/tokenizer/subwords.h"
#include "model/runtime/tokenizer/terms.h"
#include "proto/status_macros.h"

namespace linnet::model {
namespace {

namespace fs = std::filesystem;

// True if `text` is a single piece, apart from a blank before it.
bool IsPiece(const Subwords& subwords, absl::string_view text, TokenId unk) {
  const absl::StatusOr<std::vector<TokenId>> tokens = subwords.Encode(text);
  return tokens.ok() && !tokens->empty() && tokens->size() <= 2 && tokens->back() != unk &&
         subwords.Decode({&tokens->back(), 1}) == text;
}

// Hyphens that look like the one of the keyboard and have no meaning beyond it.
bool IsTypographicHyphen(UChar32 c) { return c == 0x2010 || c == 0x2011; }

// True for full stops and the like, and for marks that may follow them.
bool MayEndSentence(UChar32 c) {
  constexpr uint32_t kClosing = U_GC_PE_MASK | U_GC_PF_MASK;
  return u_hasBinaryProperty(c, UCHAR_S_TERM) || (U_GET_GC_MASK(c) & kClosing) != 0 || c == '"' ||
         c == '\'';
}

// True if the run is inside one of the spans, which are in order and do not overlap.
bool IsInside(const TextRun& run, std::span<const ProtectedSpan> spans) {
  const auto span = std::ranges::lower_bound(spans, run.end, {}, &ProtectedSpan::end);
  return span != spans.end() && span->begin <= run.begin;
}

}  // namespace

struct Tokenizer::Impl {
  std::unique_ptr<Subwords> subwords;
  std::optional<Spellings> spellings;  // by the subwords
  std::optional<MosesWords> words;
  std::string capitals_mark;
  Names stand_ins;                          // the placeholders, then those of CodeStandIns
  Names read_apart;                         // the placeholders and the capitals mark
  std::vector<TokenId> placeholder_tokens;  // of the first ones
  std::vector<TokenId> control_ids;         // ascending
  SpecialTokens special;

  bool IsControl(TokenId token) const {
    return std::binary_search(control_ids.begin(), control_ids.end(), token);
  }

  // The text as Read describes it. `whole` contains it.
  std::string Readable(absl::string_view whole, int begin, int end) const;
  // The parts of a text to protect, in order, with their stand-ins.
  std::vector<ProtectedSpan> FindSpans(absl::string_view text, const ReadOptions& options) const;
  std::vector<TextRun> Unspellable(absl::string_view text) const;
  // Ids of a text, with its capitals marked.
  absl::StatusOr<std::vector<TokenId>> EncodeMarked(absl::string_view text) const;
  bool separates_words = true;
  std::once_flag made_continuations;
  std::shared_ptr<const std::vector<TokenId>> continuations;
  std::once_flag made_marks;
  std::shared_ptr<const TokenMarks> marks;
  std::once_flag made_spellings;
  std::vector<std::string> spelled;                     // by token: what it adds to a text
  std::vector<std::pair<std::string, TokenId>> spells;  // the same without empty ones, ascending
};

std::string Tokenizer::Impl::Readable(absl::string_view whole, int begin, int end) const {
  std::string read;
  read.reserve(end - begin);
  while (begin < end) {
    const Character character = CharacterAt(whole, begin);
    const UChar32 c = character.code_point;
    const absl::string_view part = whole.substr(begin, character.end - begin);
    begin = character.end;
    if (const size_t behind = EndOfApostrophe(whole, character.begin);
        c < 0x80 && std::cmp_greater(behind, character.begin) && std::cmp_less_equal(behind, end)) {
      read += '\'';
      begin = static_cast<int>(behind);
    } else if (c < 0x80) {
      read += whole[character.begin];
    } else if (IsInvisible(c)) {
      if (IsNeededJoiner(whole, character) && spellings->Of(part) == Spelling::kSpelled)
        absl::StrAppend(&read, part);
    } else if (IsTypographicHyphen(c)) {
      read += '-';
    } else {
      const bool rare = IsWhiteSpace(c) && spellings->Of(part) == Spelling::kUnspellable;
      absl::StrAppend(&read, rare ? " " : part);
    }
  }
  return read;
}

std::vector<TextRun> Tokenizer::Impl::Unspellable(absl::string_view text) const {
  return FindUnspellable(text, read_apart, [&](absl::string_view part) {
    // No model has learnt what a control character does in a text.
    if (std::any_of(part.begin(), part.end(), absl::ascii_iscntrl)) return Spelling::kUnspellable;
    // SentencePiece reads this block, of a chart in text, as a blank.
    if (part == "\u2581") return Spelling::kUnspellable;
    if (std::all_of(part.begin(), part.end(), absl::ascii_isprint)) return Spelling::kSpelled;
    const UChar32 first = CharacterAt(part, 0).code_point;
    if (IsInvisible(first)) return Spelling::kNothing;
    return IsTypographicHyphen(first) ? Spelling::kSpelled : spellings->Of(part);
  });
}

std::vector<ProtectedSpan> Tokenizer::Impl::FindSpans(absl::string_view text,
                                                      const ReadOptions& options) const {
  const std::span<const ProtectedSpan> asked = options.spans;
  std::vector<ProtectedSpan> spans(asked.begin(), asked.end());
  for (const TextRun& run : options.protects ? Unspellable(text) : std::vector<TextRun>()) {
    if (!IsInside(run, asked))
      spans.push_back(
          {run.begin, run.end, std::string(text.substr(run.begin, run.end - run.begin))});
  }
  if (spans.empty()) return spans;
  spans = MergeSpans(text, std::move(spans));
  const std::vector<bool> in_text = stand_ins.In(text);
  int next = 0;
  for (size_t i = 0; i < spans.size(); ++i) {
    // A code that the text has already stands for itself.
    while (next < stand_ins.size() && next >= std::ssize(placeholder_tokens) && in_text[next])
      ++next;
    if (next == stand_ins.size()) {
      spans.resize(i);
      break;
    }
    spans[i].stand_in = next++;
  }
  return spans;
}

Tokenizer::Tokenizer(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
Tokenizer::~Tokenizer() = default;

absl::StatusOr<std::unique_ptr<Tokenizer>> Tokenizer::Load(const fs::path& file,
                                                           const SpecialTokens& special) {
  return Load(TokenizerSpec{.subword_file = file}, special);
}

absl::StatusOr<std::unique_ptr<Tokenizer>> Tokenizer::Load(const TokenizerSpec& spec,
                                                           const SpecialTokens& special) {
  ASSIGN_OR_RETURN(std::unique_ptr<Subwords> subwords, LoadSubwords(spec, special));
  if (spec.vocabulary_size > 0 && subwords->pieces() > spec.vocabulary_size) {
    const fs::path& file = spec.vocabulary_file.empty() ? spec.subword_file : spec.vocabulary_file;
    return absl::FailedPreconditionError(absl::StrCat(file.string(), " has ", subwords->pieces(),
                                                      " pieces, the model's vocabulary has ",
                                                      spec.vocabulary_size));
  }
  if (!spec.capitals_mark.empty() && !IsPiece(*subwords, spec.capitals_mark, special.unk)) {
    return absl::FailedPreconditionError(
        absl::StrCat(spec.subword_file.string(), " has no piece ", spec.capitals_mark,
                     ", which the manifest names as capitals_mark: name a piece, or leave it out"));
  }
  auto impl = std::make_shared<Impl>();
  std::vector<std::string> stand_ins;
  for (const std::string& name : spec.placeholders) {
    if (!IsPiece(*subwords, name, special.unk)) {
      return absl::FailedPreconditionError(absl::StrCat(
          spec.subword_file.string(), " has no piece ", name,
          ", which the manifest names among its placeholders: name pieces, or leave them out"));
    }
    stand_ins.push_back(name);
    impl->placeholder_tokens.push_back(subwords->Encode(name)->back());
  }
  std::vector<std::string> read_apart = stand_ins;
  if (!spec.capitals_mark.empty()) read_apart.push_back(spec.capitals_mark);
  impl->read_apart = Names(std::move(read_apart));
  impl->capitals_mark = spec.capitals_mark;
  impl->control_ids = spec.control_ids;
  impl->subwords = std::move(subwords);
  impl->spellings.emplace(*impl->subwords);
  impl->special = special;
  for (const char* code : CodeStandIns()) {
    if (impl->spellings->Of(code) == Spelling::kSpelled) stand_ins.emplace_back(code);
  }
  impl->stand_ins = Names(std::move(stand_ins));
  if (spec.word_tokenizer == linnet::v1::WORD_TOKENIZER_MOSES) {
    impl->words.emplace(spec.language_code);
  }
  impl->separates_words =
      !impl->words.has_value() && spec.subword_kind != linnet::v1::SUBWORD_KIND_BPE_CODES;
  return std::unique_ptr<Tokenizer>(new Tokenizer(std::move(impl)));
}

absl::StatusOr<std::vector<TokenId>> Tokenizer::Encode(absl::string_view text,
                                                       const TextAround& around) const {
  return impl_->EncodeMarked(MarkCapitals(text, impl_->capitals_mark, around));
}

absl::StatusOr<TokenizedText> Tokenizer::Read(absl::string_view text,
                                              const ReadOptions& options) const {
  const Impl& impl = *impl_;
  const std::string& mark = impl.capitals_mark;
  const auto capitals = [&](absl::string_view in) -> std::optional<std::string> {
    if (mark.empty())
      return options.lower ? LowerCapitals(in, options.language_code, options.around)
                           : std::nullopt;
    std::string marked = MarkCapitals(in, mark, options.around);
    if (marked == in) return std::nullopt;
    return marked;
  };
  TokenizedText read;
  read.spans = impl.FindSpans(text, options);
  // The text as the model reads it, without the spans and with their stand-ins.
  std::string words, all;
  int begin = 0;
  for (const ProtectedSpan& span : read.spans) {
    const std::string before = impl.Readable(text, begin, span.begin);
    const std::string& name = impl.stand_ins[span.stand_in];
    // A code within a word would be none, and a word beside a placeholder no word.
    const bool code = absl::ascii_isalnum(name.front());
    const auto apart = [&](int at, bool side) {
      return TouchesWord(text, at, side) &&
             (code || !absl::ascii_isdigit(text[side ? at - 1 : at]));
    };
    absl::StrAppend(&words, before);
    absl::StrAppend(&all, before, apart(span.begin, true) ? " " : "", name,
                    apart(span.end, false) ? " " : "");
    begin = span.end;
  }
  const std::string rest = impl.Readable(text, begin, static_cast<int>(text.size()));
  absl::StrAppend(&words, rest);
  absl::StrAppend(&all, rest);
  if (capitals(words).has_value()) {
    // Stand-ins in a text of capitals are in capitals as well, so that it is still one.
    const auto named = [&](const std::string& in, bool upper) {
      std::string out;
      for (size_t at = 0; at < in.size();) {
        const int number = impl.stand_ins.StartOf(absl::string_view(in).substr(at));
        if (number < 0 || std::ranges::count(read.spans, number, &ProtectedSpan::stand_in) == 0) {
          out += in[at++];
          continue;
        }
        const std::string& name = impl.stand_ins[number];
        out += upper ? absl::AsciiStrToUpper(name) : name;
        at += name.size();
      }
      return out;
    };
    all = named(all, true);
    all = named(capitals(all).value_or(all), false);
    read.lowered = mark.empty();
  }
  ASSIGN_OR_RETURN(read.tokens, impl.EncodeMarked(all));
  if (std::count(read.tokens.begin(), read.tokens.end(), impl.special.unk) > 0) {
    for (const TextRun& run : impl.Unspellable(text)) {
      if (!IsInside(run, read.spans)) read.unread.push_back(run);
    }
  }
  return read;
}

absl::StatusOr<std::vector<TokenId>> Tokenizer::Impl::EncodeMarked(absl::string_view text) const {
  const std::string in_words = words.has_value() ? words->Tokenize(text) : std::string(text);
  ASSIGN_OR_RETURN(std::vector<TokenId> tokens, subwords->Encode(in_words));
  if (!control_ids.empty()) {
    std::replace_if(
        tokens.begin(), tokens.end(), [&](TokenId token) { return IsControl(token); }, special.unk);
  }
  return tokens;
}

std::pair<std::string, std::vector<TokenId>> Tokenizer::AnyWord() const {
  // "a", or one in another script.
  std::string word = "a";
  std::vector<TokenId> tokens = Encode(word).value_or(std::vector<TokenId>{});
  for (TokenId token = 0; Decode(tokens) != word && token < pieces(); ++token) {
    tokens = {token};
    const std::string text = Decode(tokens);
    if (EndsInWord(text)) word = text;
  }
  return {word, tokens};
}

std::shared_ptr<const std::vector<TokenId>> Tokenizer::Continuations() const {
  std::call_once(impl_->made_continuations, [this] {
    auto made = std::make_shared<std::vector<TokenId>>();
    constexpr UChar32 kIncomplete = 0xFFFD;
    auto [word, tokens] = AnyWord();
    tokens.push_back(0);
    for (TokenId token = 0; token < pieces(); ++token) {
      tokens.back() = token;
      const std::string text = Decode(tokens);
      if (text.size() <= word.size() || !text.starts_with(word)) continue;
      const UChar32 next = CharacterAt(text, static_cast<int>(word.size())).code_point;
      if (SameWord('a', next) || next == kIncomplete) made->push_back(token);
    }
    impl_->continuations = std::move(made);
  });
  return impl_->continuations;
}

void Tokenizer::MakeSpelledTexts() const {
  auto [word, tokens] = AnyWord();
  tokens.push_back(0);
  impl_->spelled.resize(pieces());
  for (TokenId token = 0; token < pieces(); ++token) {
    const TokenGrammar::Class kind = impl_->subwords->ClassOf(token);
    const bool is_text = kind == TokenGrammar::kText || kind == TokenGrammar::kBlank;
    if (!is_text || impl_->IsControl(token)) continue;
    tokens.back() = token;
    const std::string text = Decode(tokens);
    // Some tokenizers drop a blank at the end of a text.
    std::string own = kind == TokenGrammar::kBlank ? " " : "";
    if (text.size() > word.size() && text.starts_with(word)) own = text.substr(word.size());
    // The blank piece is lost at the start of a text; a byte that is a blank would stay.
    if (own == " " && !Decode({&token, 1}).empty()) continue;
    if (!own.empty()) impl_->spells.emplace_back(own, token);
    impl_->spelled[token] = std::move(own);
  }
  std::ranges::sort(impl_->spells);
}

std::shared_ptr<const SpelledStart> Tokenizer::Spell(std::span<const TokenId> tokens,
                                                     bool then_word) const {
  if (!separates_words()) return nullptr;
  std::call_once(impl_->made_spellings, [this] { MakeSpelledTexts(); });
  const auto& spells = impl_->spells;
  auto start = std::make_shared<SpelledStart>();
  for (TokenId token : tokens) {
    if (token < 0 || token >= pieces() || impl_->spelled[token].empty()) return nullptr;
    start->text += impl_->spelled[token];
  }
  if (then_word) start->text += ' ';
  const auto from = [&spells](absl::string_view text) {
    return std::ranges::lower_bound(spells, text, {}, &std::pair<std::string, TokenId>::first);
  };
  const auto size = static_cast<int>(start->text.size());
  start->places.resize(size);
  for (int begin = size - 1; begin >= 0; --begin) {  // so that no place leads to a dead end
    const absl::string_view left = absl::string_view(start->text).substr(begin);
    std::vector<std::pair<TokenId, int>> next;
    for (int end = begin + 1; end < size; ++end) {
      if (start->places[end].tokens.empty()) continue;
      const absl::string_view part = left.substr(0, end - begin);
      for (auto at = from(part); at != spells.end() && at->first == part; ++at)
        next.emplace_back(at->second, end);
    }
    for (auto at = from(left); at != spells.end() && absl::StartsWith(at->first, left); ++at)
      next.emplace_back(at->second, size);
    std::ranges::sort(next);
    SpelledStart::Place& place = start->places[begin];
    for (const auto& [token, spelled] : next) {
      place.tokens.push_back(token);
      place.spelled.push_back(spelled);
    }
  }
  return size == 0 || start->places.front().tokens.empty() ? nullptr : start;
}

bool TokenMarks::begins_word(TokenId token) const {
  return std::binary_search(word_starts.begin(), word_starts.end(), token);
}

bool TokenMarks::may_end_sentence(TokenId token) const {
  return std::binary_search(sentence_ends.begin(), sentence_ends.end(), token);
}

bool Tokenizer::separates_words() const { return impl_->separates_words; }

std::shared_ptr<const TokenMarks> Tokenizer::WordMarks() const {
  std::call_once(impl_->made_marks, [this] {
    auto made = std::make_shared<TokenMarks>();
    auto [word, tokens] = AnyWord();
    const int end = static_cast<int>(word.size());
    tokens.push_back(0);
    for (TokenId token = 0; token < pieces(); ++token) {
      tokens.back() = token;
      const std::string text = Decode(tokens);
      const int size = static_cast<int>(text.size());
      const bool more = size > end && text.starts_with(word);
      // Some tokenizers drop a blank at the end of a text.
      if (impl_->subwords->ClassOf(token) == TokenGrammar::kBlank ||
          (more && IsWhiteSpace(CharacterAt(text, end).code_point)))
        made->word_starts.push_back(token);
      if (more && MayEndSentence(CharacterBefore(text, size).code_point))
        made->sentence_ends.push_back(token);
    }
    impl_->marks = std::move(made);
  });
  return impl_->marks;
}

std::string Tokenizer::Decode(std::span<const TokenId> tokens, absl::string_view capitals) const {
  const SpecialTokens& special = impl_->special;
  std::vector<TokenId> said;
  said.reserve(tokens.size());
  for (TokenId token : tokens) {
    const bool silent = token == special.eos || token == special.pad || token == special.bos;
    if (!silent && !impl_->IsControl(token)) said.push_back(token);
  }
  std::string text = impl_->subwords->Decode(said);
  if (impl_->words.has_value()) text = impl_->words->Detokenize(text);
  text = RestoreCapitals(text, impl_->capitals_mark);
  return capitals.empty() ? text : ToCapitals(text, capitals);
}

RestoredText Tokenizer::Restore(absl::string_view decoded, std::span<const ProtectedSpan> spans,
                                absl::string_view source, bool once) const {
  return RestoreSpans(decoded, impl_->stand_ins, spans, source, once);
}

const std::string& Tokenizer::StandIn(int number) const { return impl_->stand_ins[number]; }

TokenGrammar Tokenizer::Grammar(int vocabulary) const {
  std::vector<TokenGrammar::Class> classes;
  for (TokenId token = 0; token < vocabulary; ++token)
    classes.push_back(impl_->subwords->ClassOf(token));
  const SpecialTokens& special = impl_->special;
  for (TokenId token : {special.bos, special.pad, special.unk})
    classes[token] = TokenGrammar::kControl;
  classes[special.eos] = TokenGrammar::kEnd;
  for (TokenId token : impl_->control_ids) {
    if (token < vocabulary && token != special.eos) classes[token] = TokenGrammar::kControl;
  }
  if (!impl_->capitals_mark.empty()) {
    const auto mark = impl_->subwords->Encode(impl_->capitals_mark);
    classes[mark->back()] = TokenGrammar::kFirstControl;  // Load has checked that
  }
  return TokenGrammar(std::move(classes));
}

int Tokenizer::pieces() const { return impl_->subwords->pieces(); }

}  // namespace linnet::model
