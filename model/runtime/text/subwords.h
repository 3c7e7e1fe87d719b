#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "model/runtime/search/search.h"
#include "model/runtime/search/token_grammar.h"
#include "model/runtime/text/bpe.h"
#include "model/runtime/text/vocabulary.h"

namespace linnet::model {

// Text to the ids of subwords and back, in one of the ways that models come with. For tokenizer.cc.
class Subwords {
 public:
  virtual ~Subwords() = default;

  virtual absl::StatusOr<std::vector<TokenId>> Encode(std::string_view text) const = 0;
  // Without special tokens among them, except unk.
  virtual std::string Decode(std::span<const TokenId> tokens) const = 0;
  virtual int pieces() const = 0;
  // What a token is to a grammar; special tokens are control pieces. Of any id.
  virtual TokenGrammar::Class ClassOf(TokenId token) const = 0;
};

// A SentencePiece model whose own ids are the model's. `serialized` is the file's contents; errors
// speak of it without its name.
absl::StatusOr<std::unique_ptr<Subwords>> MakeSentencePiece(std::string_view serialized,
                                                            const SpecialTokens& special);

// A SentencePiece model with ids of a vocabulary file, as Marian and fairseq have it. A text that
// begins with a piece like ">>fra<<", if the vocabulary knows it, says the target language with
// that to a model that has several.
absl::StatusOr<std::unique_ptr<Subwords>> MakeMappedSentencePiece(std::string_view serialized,
                                                                  Vocabulary vocabulary,
                                                                  const SpecialTokens& special);

// Byte pairs of the words between white space; "@@" stands behind a piece that the word goes on
// after.
std::unique_ptr<Subwords> MakeBytePairs(BpeCodes codes, Vocabulary vocabulary,
                                        const SpecialTokens& special);

}  // namespace linnet::model
