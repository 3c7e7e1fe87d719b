#include "model/runtime/tokenizer.h"

#include <fstream>
#include <iterator>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "model/runtime/sentencepiece_adapter.h"

namespace linnet::model {

struct Tokenizer::Impl {
  SentencePieceModel model;
  SpecialTokens special;
};

Tokenizer::Tokenizer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Tokenizer::~Tokenizer() = default;

absl::StatusOr<std::unique_ptr<Tokenizer>> Tokenizer::Load(const std::filesystem::path& file,
                                                           const SpecialTokens& special) {
  std::ifstream stream(file, std::ios::binary);
  const std::string serialized((std::istreambuf_iterator<char>(stream)), {});
  if (!stream.is_open() || stream.bad()) {
    return absl::FailedPreconditionError(absl::StrCat(file.string(), " cannot be read"));
  }
  if (serialized.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat(file.string(), " is empty, not a SentencePiece model"));
  }
  auto impl = std::make_unique<Impl>();
  impl->special = special;
  if (const std::string wrong = impl->model.Load(serialized); !wrong.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat(file.string(), " is not a SentencePiece model: ", wrong));
  }
  struct {
    const char* name;
    int in_file, expected;
  } ids[] = {{"bos", impl->model.bos(), special.bos},
             {"pad", impl->model.pad(), special.pad},
             {"eos", impl->model.eos(), special.eos},
             {"unk", impl->model.unk(), special.unk}};
  for (const auto& id : ids) {
    if (id.in_file != id.expected) {
      return absl::FailedPreconditionError(absl::StrCat(file.string(), " has id ", id.in_file,
                                                        " for ", id.name, ", the vocabulary says ",
                                                        id.expected));
    }
  }
  return std::unique_ptr<Tokenizer>(new Tokenizer(std::move(impl)));
}

absl::StatusOr<std::vector<TokenId>> Tokenizer::Encode(std::string_view text) const {
  std::vector<TokenId> tokens;
  if (const std::string wrong = impl_->model.Encode(text, tokens); !wrong.empty()) {
    return absl::InternalError(absl::StrCat("SentencePiece could not encode: ", wrong));
  }
  return tokens;
}

std::string Tokenizer::Decode(std::span<const TokenId> tokens) const {
  const SpecialTokens& special = impl_->special;
  std::vector<int> ids;
  ids.reserve(tokens.size());
  for (TokenId token : tokens) {
    if (token == special.eos || token == special.pad || token == special.bos) continue;
    // The model's output may have more rows than there are pieces.
    ids.push_back(token >= 0 && token < pieces() ? token : special.unk);
  }
  std::string text;
  // It fails for ids without a piece alone, and there are none left.
  if (const std::string wrong = impl_->model.Decode(ids, text); !wrong.empty()) return "\uFFFD";
  return text;
}

int Tokenizer::pieces() const { return impl_->model.pieces(); }

}  // namespace linnet::model
