#include "model/runtime/tokenizer.h"

#include <fstream>
#include <iterator>
#include <mutex>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "model/runtime/capitals.h"
#include "model/runtime/characters.h"
#include "model/runtime/moses.h"
#include "model/runtime/subwords.h"
#include "model/runtime/terms.h"

namespace linnet::model {
namespace {

namespace fs = std::filesystem;

absl::StatusOr<std::string> Contents(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  std::string contents((std::istreambuf_iterator<char>(stream)), {});
  if (!stream.is_open() || stream.bad()) {
    return absl::FailedPreconditionError(absl::StrCat(file.string(), " cannot be read"));
  }
  if (contents.empty()) {
    return absl::FailedPreconditionError(absl::StrCat(file.string(), " is empty"));
  }
  return contents;
}

// `status` says what is wrong with the file.
absl::Status At(const fs::path& file, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat(file.string(), " ", status.message()));
}

// A vocabulary without its special tokens, or of another model, has every id wrong: then it is
// better to serve nothing.
absl::Status CheckSpecialTokens(const Vocabulary& vocabulary, const SpecialTokens& special) {
  const struct {
    const char* piece;
    TokenId expected;
  } known[] = {{"<pad>", special.pad}, {"</s>", special.eos}, {"<unk>", special.unk}};
  for (const auto& token : known) {
    const std::optional<TokenId> id = vocabulary.Find(token.piece);
    if (id.value_or(token.expected) != token.expected) {
      return absl::FailedPreconditionError(
          absl::StrCat("has id ", *id, " for ", token.piece, ", the model's is ", token.expected));
    }
  }
  if (vocabulary.Piece(special.eos).empty() || vocabulary.Piece(special.unk).empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("has ", vocabulary.size(), " lines and no pieces for eos (id ", special.eos,
                     ") and unk (id ", special.unk,
                     "): it must hold every piece of the model, special tokens included"));
  }
  return absl::OkStatus();
}

absl::StatusOr<Vocabulary> LoadVocabulary(const fs::path& file, const SpecialTokens& special) {
  const absl::StatusOr<std::string> contents = Contents(file);
  if (!contents.ok()) return contents.status();
  absl::StatusOr<Vocabulary> vocabulary = Vocabulary::Parse(*contents);
  if (!vocabulary.ok()) return At(file, vocabulary.status());
  if (absl::Status status = CheckSpecialTokens(*vocabulary, special); !status.ok()) {
    return At(file, status);
  }
  return vocabulary;
}

// Is `text` a single piece, but for a blank before it?
bool IsPiece(const Subwords& subwords, std::string_view text, TokenId unk) {
  const absl::StatusOr<std::vector<TokenId>> tokens = subwords.Encode(text);
  return tokens.ok() && !tokens->empty() && tokens->size() <= 2 && tokens->back() != unk &&
         subwords.Decode({&tokens->back(), 1}) == text;
}

absl::StatusOr<std::unique_ptr<Subwords>> LoadSubwords(const TokenizerSpec& spec,
                                                       const SpecialTokens& special) {
  const fs::path& file = spec.subword_file;
  const absl::StatusOr<std::string> contents = Contents(file);
  if (!contents.ok()) return contents.status();
  std::optional<Vocabulary> vocabulary;
  if (!spec.vocabulary_file.empty()) {
    absl::StatusOr<Vocabulary> loaded = LoadVocabulary(spec.vocabulary_file, special);
    if (!loaded.ok()) return loaded.status();
    vocabulary = *std::move(loaded);
  }
  if (spec.subword_kind == linnet::v1::SUBWORD_KIND_BPE_CODES) {
    if (!vocabulary.has_value()) {
      return absl::FailedPreconditionError(
          absl::StrCat(file.string(), " has BPE codes, which need a vocabulary file"));
    }
    absl::StatusOr<BpeCodes> codes = BpeCodes::Parse(*contents);
    if (!codes.ok()) return At(file, codes.status());
    return MakeBytePairs(*std::move(codes), *std::move(vocabulary), special);
  }
  auto made = vocabulary.has_value()
                  ? MakeMappedSentencePiece(*contents, *std::move(vocabulary), special)
                  : MakeSentencePiece(*contents, special);
  if (!made.ok()) return At(file, made.status());
  return made;
}

}  // namespace

struct Tokenizer::Impl {
  std::unique_ptr<Subwords> subwords;
  std::optional<MosesWords> words;
  std::string capitals_mark;
  SpecialTokens special;
  std::once_flag made_continuations;
  std::shared_ptr<const std::vector<TokenId>> continuations;
};

Tokenizer::Tokenizer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Tokenizer::~Tokenizer() = default;

absl::StatusOr<std::unique_ptr<Tokenizer>> Tokenizer::Load(const fs::path& file,
                                                           const SpecialTokens& special) {
  return Load(TokenizerSpec{.subword_file = file}, special);
}

absl::StatusOr<std::unique_ptr<Tokenizer>> Tokenizer::Load(const TokenizerSpec& spec,
                                                           const SpecialTokens& special) {
  absl::StatusOr<std::unique_ptr<Subwords>> subwords = LoadSubwords(spec, special);
  if (!subwords.ok()) return subwords.status();
  if (spec.vocabulary_size > 0 && (*subwords)->pieces() > spec.vocabulary_size) {
    const fs::path& file = spec.vocabulary_file.empty() ? spec.subword_file : spec.vocabulary_file;
    return absl::FailedPreconditionError(absl::StrCat(file.string(), " has ", (*subwords)->pieces(),
                                                      " pieces, the model's vocabulary has ",
                                                      spec.vocabulary_size));
  }
  if (!spec.capitals_mark.empty() && !IsPiece(**subwords, spec.capitals_mark, special.unk)) {
    return absl::FailedPreconditionError(
        absl::StrCat(spec.subword_file.string(), " has no piece ", spec.capitals_mark,
                     ", which the manifest names as capitals_mark: name a piece, or leave it out"));
  }
  auto impl = std::make_unique<Impl>();
  impl->capitals_mark = spec.capitals_mark;
  impl->subwords = *std::move(subwords);
  impl->special = special;
  if (spec.word_tokenizer == linnet::v1::WORD_TOKENIZER_MOSES) {
    impl->words.emplace(spec.language_code);
  }
  return std::unique_ptr<Tokenizer>(new Tokenizer(std::move(impl)));
}

absl::StatusOr<std::vector<TokenId>> Tokenizer::Encode(std::string_view text) const {
  return EncodePart(MarkCapitals(text, impl_->capitals_mark));
}

absl::StatusOr<std::vector<TokenId>> Tokenizer::EncodePart(std::string_view text) const {
  if (!impl_->words.has_value()) return impl_->subwords->Encode(text);
  return impl_->subwords->Encode(impl_->words->Tokenize(text));
}

std::shared_ptr<const std::vector<TokenId>> Tokenizer::Continuations() const {
  std::call_once(impl_->made_continuations, [this] {
    auto made = std::make_shared<std::vector<TokenId>>();
    constexpr UChar32 kIncomplete = 0xFFFD;
    // A word that the vocabulary has, whatever its script.
    std::string word = "a";
    std::vector<TokenId> tokens = EncodePart(word).value_or(std::vector<TokenId>{});
    for (TokenId token = 0; Decode(tokens) != word && token < pieces(); ++token) {
      tokens = {token};
      const std::string text = Decode(tokens);
      if (EndsInWord(text)) word = text;
    }
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

std::string Tokenizer::Decode(std::span<const TokenId> tokens) const {
  const SpecialTokens& special = impl_->special;
  std::vector<TokenId> said;
  said.reserve(tokens.size());
  for (TokenId token : tokens) {
    if (token != special.eos && token != special.pad && token != special.bos) said.push_back(token);
  }
  std::string text = impl_->subwords->Decode(said);
  if (impl_->words.has_value()) text = impl_->words->Detokenize(text);
  return RestoreCapitals(text, impl_->capitals_mark);
}

int Tokenizer::pieces() const { return impl_->subwords->pieces(); }

}  // namespace linnet::model
