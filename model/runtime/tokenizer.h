#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "model/runtime/search.h"

namespace linnet::model {

// SentencePiece behind plain types. Thread-safe: nothing changes after Load.
class Tokenizer {
 public:
  // FailedPreconditionError if the file is no SentencePiece model or its special ids are not
  // `special`.
  static absl::StatusOr<std::unique_ptr<Tokenizer>> Load(const std::filesystem::path& file,
                                                         const SpecialTokens& special);
  ~Tokenizer();

  // Token ids of valid UTF-8, without eos.
  absl::StatusOr<std::vector<TokenId>> Encode(std::string_view text) const;
  // Text of token ids; eos, pad and bos say nothing. Byte pieces that do not form a character
  // become U+FFFD, ids without a piece read as the unknown token.
  std::string Decode(std::span<const TokenId> tokens) const;

  int pieces() const;

 private:
  struct Impl;
  explicit Tokenizer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace linnet::model
