#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "linnet/v1/bundle.pb.h"
#include "model/runtime/search/search.h"
#include "model/runtime/search/token_grammar.h"

namespace linnet::model {

// How one side of a model reads and writes text: as its bundle's manifest says.
struct TokenizerSpec {
  std::filesystem::path subword_file = {};
  linnet::v1::SubwordKind subword_kind = linnet::v1::SUBWORD_KIND_UNSPECIFIED;
  std::filesystem::path vocabulary_file = {};  // empty: ids are those of the SentencePiece model
  linnet::v1::WordTokenizer word_tokenizer = linnet::v1::WORD_TOKENIZER_UNSPECIFIED;
  std::string language_code = {};              // for the word tokenizer
  std::vector<std::string> placeholders = {};  // pieces that stand for what is copied
  std::string capitals_mark = {};  // a piece; empty: capitals are read and written as they are
  int vocabulary_size = 0;  // that the model has, which pieces may not exceed; 0: not checked
};

// A text as a model reads it. Placeholder i of the tokenizer's stands for copies[i].
struct CopyingText {
  std::vector<TokenId> tokens;  // without eos
  std::vector<std::string> copies = {};
};

// Text to token ids and back: capitals (capitals.h) and words where the model wants them, subwords,
// and the vocabulary's numbers. Thread-safe: nothing changes after Load.
class Tokenizer {
 public:
  // FailedPreconditionError, naming the file, if it is not what the spec says, if its special ids
  // are not `special`, or if it has more pieces than the model.
  static absl::StatusOr<std::unique_ptr<Tokenizer>> Load(const TokenizerSpec& spec,
                                                         const SpecialTokens& special);
  // Of a SentencePiece model alone.
  static absl::StatusOr<std::unique_ptr<Tokenizer>> Load(const std::filesystem::path& file,
                                                         const SpecialTokens& special);
  ~Tokenizer();

  // Token ids of valid UTF-8, without eos. No text has the ids of bos, pad or eos in it.
  absl::StatusOr<std::vector<TokenId>> Encode(std::string_view text) const;
  // The same with placeholders for what the vocabulary cannot spell, and for the names of control
  // pieces, as far as there are placeholders.
  absl::StatusOr<CopyingText> EncodeCopying(std::string_view text) const;
  // What a translation of them must contain: placeholder i, behind a blank or not.
  std::vector<TokenId> CopyPhrase(int i, bool behind_blank) const;
  // Of whole words that stand within another text: their capitals are read as they are.
  absl::StatusOr<std::vector<TokenId>> EncodePart(std::string_view text) const;
  // The tokens, ascending, that go on with a word when they follow one: with a letter, a digit, a
  // mark or bytes of a character, but not of scripts that put nothing between words. Made when it
  // is first asked for, which takes some milliseconds.
  std::shared_ptr<const std::vector<TokenId>> Continuations() const;
  // Text of token ids; eos, pad and bos say nothing. Byte pieces that do not form a character
  // become U+FFFD, ids without a piece read as the unknown token. Placeholder i says copies[i].
  std::string Decode(std::span<const TokenId> tokens,
                     std::span<const std::string> copies = {}) const;

  // Which of `vocabulary` tokens may follow which in a target that is text (token_grammar.h). The
  // capitals mark may begin it.
  TokenGrammar Grammar(int vocabulary) const;

  // Ids from here on have no piece.
  int pieces() const;

 private:
  struct Impl;
  explicit Tokenizer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace linnet::model
