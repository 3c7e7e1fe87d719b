#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "linnet/v1/bundle.pb.h"
#include "model/runtime/search/spelled_start.h"
#include "model/runtime/search/token.h"
#include "model/runtime/search/token_grammar.h"
#include "model/runtime/tokenizer/capitals.h"
#include "model/runtime/tokenizer/protected_spans.h"

namespace linnet::model {

// The tokenizer settings of one side of a model, from the bundle's manifest.
struct TokenizerSpec {
  std::filesystem::path subword_file = {};
  linnet::v1::SubwordKind subword_kind = linnet::v1::SUBWORD_KIND_UNSPECIFIED;
  std::filesystem::path vocabulary_file = {};  // empty: ids are those of the SentencePiece model
  linnet::v1::WordTokenizer word_tokenizer = linnet::v1::WORD_TOKENIZER_UNSPECIFIED;
  std::string language_code = {};              // for the word tokenizer
  std::vector<std::string> placeholders = {};  // pieces that are stand-ins (protected_spans.h)
  std::string capitals_mark = {};              // a piece; empty: no inline casing (capitals.h)
  std::vector<TokenId> control_ids = {};       // ids that are no text, ascending
  int vocabulary_size = 0;                     // of the model, max number of pieces; 0: not checked
};

// A text as tokens.
struct TokenizedText {
  std::vector<TokenId> tokens;  // without eos
  // Each has a stand-in in the tokens.
  std::vector<ProtectedSpan> spans = {};
  // What the vocabulary cannot spell and has no stand-in: the tokens have unk for it.
  std::vector<TextRun> unread = {};
  // The text was in capitals and the tokens spell it in lower case (lower_capitals.h), so that the
  // answer is to be converted to capitals.
  bool lowered = false;
};

// How a server reads a text.
struct ReadOptions {
  TextAround around = {};
  absl::string_view language_code = {};
  // Spans of the text, without overlap and in order, to put stand-ins in place of, as long as some
  // are left.
  std::span<const ProtectedSpan> spans = {};
  // Does the same with what the vocabulary cannot spell, control characters and names of control
  // pieces.
  bool protects = false;
  // A model without a capitals mark reads a text in capitals in lower case (lower_capitals.h).
  bool lower = true;
};

// TokenMarks lists the tokens that begin words, and those that may end sentences.
struct TokenMarks {
  // Both ascending. A word start begins with white space, so the word before it has ended; a
  // sentence end ends in a full stop or the like, or in a closing mark.
  std::vector<TokenId> word_starts;
  std::vector<TokenId> sentence_ends;

  bool begins_word(TokenId token) const;
  bool may_end_sentence(TokenId token) const;
};

// Converts text to token ids and back: inline casing (capitals.h) and word tokenization if the
// model needs them, subwords, and ids of the vocabulary. Immutable after Load, so thread-safe.
// Copies share their tables.
class Tokenizer {
 public:
  // Returns FailedPreconditionError with the file if it does not match the spec, if its special ids
  // are not `special`, or if it has more pieces than the model.
  static absl::StatusOr<std::unique_ptr<Tokenizer>> Load(const TokenizerSpec& spec,
                                                         const SpecialTokens& special);
  // Loads a SentencePiece model without other settings.
  static absl::StatusOr<std::unique_ptr<Tokenizer>> Load(const std::filesystem::path& file,
                                                         const SpecialTokens& special);
  ~Tokenizer();

  // Token ids of valid UTF-8, without eos. The ids of bos, pad and eos, and control ids, never
  // occur: a text that looks like a language token (">>fra<<") is text.
  // `around` decides whether a single word in capitals is read as one (capitals.h).
  absl::StatusOr<std::vector<TokenId>> Encode(absl::string_view text,
                                              const TextAround& around = {}) const;
  // As Encode, with these options. Invisible characters (invisible.h) are read as absent,
  // typographic hyphens as hyphens, and a blank that the vocabulary could only spell in bytes
  // (U+00A0, U+3000) as a plain one.
  absl::StatusOr<TokenizedText> Read(absl::string_view text, const ReadOptions& options) const;
  // The tokens, ascending, that continue a word when they follow one: they begin with a letter, a
  // digit, a combining mark or bytes of a character, but not of unspaced scripts. Computed at the
  // first call, which takes some milliseconds.
  std::shared_ptr<const std::vector<TokenId>> Continuations() const;
  // What `tokens` spell, for a search that may spell it in others (spelled_start.h). With
  // `then_word` it ends with the blank of the next word. Null if their text depends on their
  // neighbours (separates_words), or one of them is no whole text: a byte, an unknown or a control
  // piece; or if there are none. Computes a table at the first call, which takes some milliseconds.
  std::shared_ptr<const SpelledStart> Spell(std::span<const TokenId> tokens, bool then_word) const;
  // True if the tokens alone tell where words begin. With SUBWORD_KIND_BPE_CODES their neighbours
  // do, and a word tokenizer moves blanks.
  bool separates_words() const;
  // Computed at the first call, which takes some milliseconds.
  std::shared_ptr<const TokenMarks> WordMarks() const;
  // The text of token ids. Skips eos, pad, bos and control ids. Byte pieces that do not form a
  // character become U+FFFD, ids without a piece the unknown token. With `capitals`, a language
  // code, the text is in capitals.
  std::string Decode(std::span<const TokenId> tokens, absl::string_view capitals = {}) const;
  // The decoded text with the spans of `source` in place of their stand-ins (RestoreSpans).
  RestoredText Restore(absl::string_view decoded, std::span<const ProtectedSpan> spans,
                       absl::string_view source, bool once) const;

  // What a text has in place of a span with this stand-in.
  const std::string& StandIn(int number) const;

  // The grammar of targets (token_grammar.h) for a vocabulary of that many tokens. A target may
  // begin with the capitals mark.
  TokenGrammar Grammar(int vocabulary) const;

  // Number of pieces: ids from here on have none.
  int pieces() const;

 private:
  struct Impl;
  explicit Tokenizer(std::shared_ptr<Impl> impl);
  // A word that the vocabulary can spell, and its tokens.
  std::pair<std::string, std::vector<TokenId>> AnyWord() const;
  void MakeSpelledTexts() const;
  std::shared_ptr<Impl> impl_;
};

}  // namespace linnet::model
