// model::Tokenizer of each kind: encodes any text and decodes any tokens.
#include <filesystem>
#include <memory>
#include <vector>

#include "model/runtime/text/segmenter.h"
#include "model/runtime/tokenizer/tokenizer.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/valid_utf8.h"
#include "tests/support/places.h"

using linnet::model::FirstInvalidUtf8;
using linnet::model::SpecialTokens;
using linnet::model::TokenId;
using linnet::model::Tokenizer;
using linnet::model::TokenizerSpec;

namespace {

std::vector<std::unique_ptr<Tokenizer>> LoadAll() {
  const auto data = linnet::SourceDir() / "tests/data";
  const auto codes = [&](const char* language) {
    return TokenizerSpec{.subword_file = data / "v0.2.codes",
                         .subword_kind = linnet::v1::SUBWORD_KIND_BPE_CODES,
                         .vocabulary_file = linnet::SourceDir() / "tests/fuzz/pieces.txt",
                         .word_tokenizer = linnet::v1::WORD_TOKENIZER_MOSES,
                         .language_code = language};
  };
  std::vector<std::unique_ptr<Tokenizer>> all;
  for (const TokenizerSpec& spec :
       {TokenizerSpec{.subword_file = data / "tiny.spm"},
        TokenizerSpec{.subword_file = data / "tiny.spm", .capitals_mark = "<ph0>"}, codes("en"),
        codes("fr"), codes("zh"),
        TokenizerSpec{.subword_file = data / "byte_level/merges.txt",
        .subword_kind = linnet::v1::SUBWORD_KIND_BYTE_LEVEL_BPE,
        .vocabulary_file = data / "byte_level/pieces.vocab"}}) {
    auto tokenizer = Tokenizer::Load(spec, {});
    if (!tokenizer.ok()) std::fprintf(stderr, "%s\n", tokenizer.status().ToString().c_str());
    FUZZ_CHECK(tokenizer.ok());
    all.push_back(*std::move(tokenizer));
  }
  return all;
}

void CheckTokens(const Tokenizer& tokenizer, const std::vector<TokenId>& tokens) {
  const SpecialTokens special;
  for (TokenId token : tokens) {
    FUZZ_CHECK(token >= 0 && token < tokenizer.pieces());
    FUZZ_CHECK(token != special.bos && token != special.pad && token != special.eos);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const auto& tokenizers = *new auto(LoadAll());
  linnet::fuzz::Input input(data, size);
  const Tokenizer& tokenizer = *tokenizers[input.Choose(static_cast<int>(tokenizers.size()))];
  std::string text = input.Rest();

  // As tokens: pairs of bytes, including invalid ids.
  std::vector<TokenId> any;
  for (size_t i = 0; i + 1 < text.size(); i += 2)
    any.push_back(
        (static_cast<unsigned char>(text[i]) << 8 | static_cast<unsigned char>(text[i + 1])) % 512);
  FUZZ_CHECK(FirstInvalidUtf8(tokenizer.Decode(any)) == -1);

  text = linnet::fuzz::ReplaceInvalidUtf8(std::move(text));  // the caller checks
  const auto tokens = tokenizer.Encode(text);
  if (!tokens.ok()) {
    FUZZ_CHECK(tokens.status().code() == absl::StatusCode::kInvalidArgument);
    return 0;
  }
  CheckTokens(tokenizer, *tokens);
  const std::string said = tokenizer.Decode(*tokens);
  FUZZ_CHECK(FirstInvalidUtf8(said) == -1);
  const auto again = tokenizer.Encode(said);
  FUZZ_CHECK(again.ok());
  CheckTokens(tokenizer, *again);
  return 0;
}
