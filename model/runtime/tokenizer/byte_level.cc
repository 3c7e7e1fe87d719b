#include "model/runtime/tokenizer/byte_level.h"

#include <array>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "model/runtime/text/characters.h"

namespace linnet::model {
namespace {

enum class Kind { kWhiteSpace, kLetter, kNumber, kOther };

Kind KindOf(UChar32 c) {
  if (c < 0) return Kind::kOther;
  if (IsWhiteSpace(c)) return Kind::kWhiteSpace;
  const uint32_t category = U_GET_GC_MASK(c);
  if ((category & U_GC_L_MASK) != 0) return Kind::kLetter;
  return (category & U_GC_N_MASK) != 0 ? Kind::kNumber : Kind::kOther;
}

// Offset after the characters of that kind from `at` on.
int EndOfKind(absl::string_view text, int at, Kind kind) {
  while (at < std::ssize(text)) {
    const Character character = CharacterAt(text, at);
    if (KindOf(character.code_point) != kind) break;
    at = character.end;
  }
  return at;
}

// Length of the English contraction at the beginning of the text, 0 if there is none.
int ContractionLength(absl::string_view text) {
  for (absl::string_view contraction : {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"}) {
    if (absl::StartsWith(text, contraction)) return static_cast<int>(contraction.size());
  }
  return 0;
}

// Offset after the word that begins at `at`.
int WordEndForByteLevel(absl::string_view text, int at) {
  if (const int length = ContractionLength(text.substr(at)); length > 0) return at + length;
  const int behind_blank = text[at] == ' ' ? at + 1 : at;
  if (behind_blank < std::ssize(text)) {
    const Kind kind = KindOf(CharacterAt(text, behind_blank).code_point);
    if (kind != Kind::kWhiteSpace) return EndOfKind(text, behind_blank, kind);
  }
  const int end = EndOfKind(text, at, Kind::kWhiteSpace);
  if (end == std::ssize(text)) return end;
  const int last = CharacterBefore(text, end).begin;
  return last > at ? last : end;
}

// GPT-2's bytes_to_unicode: printable bytes of Latin-1 stand for themselves, the other 68 for the
// characters from U+0100 on.
class ByteCharacters {
 public:
  ByteCharacters() {
    int others = 0;
    for (int byte = 0; byte < 256; ++byte) {
      const bool itself =
          (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
      const UChar32 c = itself ? byte : 0x100 + others++;
      char buffer[U8_MAX_LENGTH];
      int length = 0;
      U8_APPEND_UNSAFE(buffer, length, c);
      characters_[byte].assign(buffer, length);
      bytes_.emplace(c, static_cast<char>(byte));
    }
  }

  std::string Write(absl::string_view bytes) const {
    std::string written;
    for (char byte : bytes) written += characters_[static_cast<uint8_t>(byte)];
    return written;
  }

  // Appends the bytes that a piece stands for; a character of none stands for itself.
  void Read(absl::string_view piece, std::string& bytes) const {
    for (int at = 0; at < std::ssize(piece);) {
      const Character character = CharacterAt(piece, at);
      if (const auto byte = bytes_.find(character.code_point); byte != bytes_.end()) {
        bytes += byte->second;
      } else {
        absl::StrAppend(&bytes, piece.substr(at, character.end - at));
      }
      at = character.end;
    }
  }

 private:
  std::array<std::string, 256> characters_;
  absl::flat_hash_map<UChar32, char> bytes_;
};

// Replaces each longest beginning of a character that is not continued, and each other byte that is
// not UTF-8, by U+FFFD, as the decoders of Python and of Rust do (the Unicode Standard, 3.9).
std::string ValidUtf8(absl::string_view bytes) {
  std::string text;
  for (int at = 0; at < std::ssize(bytes);) {
    const Character character = CharacterAt(bytes, at);
    absl::StrAppend(&text, character.code_point < 0 ? absl::string_view("\uFFFD")
                                                    : bytes.substr(at, character.end - at));
    at = character.end;
  }
  return text;
}

class ByteLevel final : public Subwords {
 public:
  ByteLevel(BpeCodes codes, Vocabulary vocabulary, const SpecialTokens& special)
      : codes_(std::move(codes)), vocabulary_(std::move(vocabulary)), special_(special) {}

  absl::StatusOr<std::vector<TokenId>> Encode(absl::string_view text) const override {
    std::vector<TokenId> tokens;
    std::vector<absl::string_view> pieces;
    for (absl::string_view word : SplitForByteLevel(text)) {
      const std::string written = characters_.Write(word);
      pieces.clear();
      codes_.Split(written, pieces);
      for (absl::string_view piece : pieces) tokens.push_back(Id(piece));
    }
    return tokens;
  }

  std::string Decode(std::span<const TokenId> tokens) const override {
    std::string bytes;
    for (TokenId token : tokens) {
      const absl::string_view piece = vocabulary_.Piece(token);
      if (token == special_.unk || piece.empty()) {
        absl::StrAppend(&bytes, vocabulary_.Piece(special_.unk));
      } else {
        characters_.Read(piece, bytes);
      }
    }
    return ValidUtf8(bytes);
  }

  int pieces() const override { return vocabulary_.size(); }

  absl::string_view Piece(TokenId token) const override { return vocabulary_.Piece(token); }

  TokenGrammar::Class ClassOf(TokenId token) const override {
    return token == special_.unk || vocabulary_.Piece(token).empty() ? TokenGrammar::kControl
                                                                     : TokenGrammar::kText;
  }

 private:
  // No text becomes a special token.
  TokenId Id(absl::string_view piece) const {
    const TokenId id = vocabulary_.Find(piece).value_or(special_.unk);
    const bool reserved = id == special_.bos || id == special_.pad || id == special_.eos;
    return reserved ? special_.unk : id;
  }

  const ByteCharacters characters_;
  BpeCodes codes_;
  Vocabulary vocabulary_;
  SpecialTokens special_;
};

}  // namespace

std::vector<absl::string_view> SplitForByteLevel(absl::string_view text) {
  std::vector<absl::string_view> words;
  for (int at = 0; at < std::ssize(text);) {
    const int end = WordEndForByteLevel(text, at);
    words.push_back(text.substr(at, end - at));
    at = end;
  }
  return words;
}

std::unique_ptr<Subwords> MakeByteLevel(BpeCodes codes, Vocabulary vocabulary,
                                        const SpecialTokens& special) {
  return std::make_unique<ByteLevel>(std::move(codes), std::move(vocabulary), special);
}

}  // namespace linnet::model
