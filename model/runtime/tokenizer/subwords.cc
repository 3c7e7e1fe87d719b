#include "model/runtime/tokenizer/subwords.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "model/runtime/text/characters.h"
#include "model/runtime/tokenizer/sentencepiece_adapter.h"
#include "proto/status_macros.h"

namespace linnet::model {
namespace {

constexpr absl::string_view kContinues = "@@";
constexpr absl::string_view kReplacement = "\uFFFD";
// SentencePiece's sign for a blank.
constexpr absl::string_view kBlankSign = "\u2581";

absl::Status CannotEncode(const std::string& wrong) {
  return absl::InternalError(absl::StrCat("SentencePiece could not encode: ", wrong));
}

TokenGrammar::Class ClassOfPiece(const SentencePieceModel& model, int id) {
  if (id == model.Find({kBlankSign.data(), kBlankSign.size()})) return TokenGrammar::kBlank;
  if (model.is_control(id)) return TokenGrammar::kControl;
  const int byte = model.byte(id);
  return byte >= 0 ? TokenGrammar::OfByte(static_cast<uint8_t>(byte)) : TokenGrammar::kText;
}

class SentencePiece final : public Subwords {
 public:
  explicit SentencePiece(const SpecialTokens& special) : special_(special) {}

  absl::Status Load(absl::string_view serialized) {
    if (const std::string wrong = model_.Load({serialized.data(), serialized.size()});
        !wrong.empty()) {
      return absl::FailedPreconditionError(absl::StrCat("is not a SentencePiece model: ", wrong));
    }
    const struct {
      const char* name;
      int in_file, expected;
    } ids[] = {{"bos", model_.bos(), special_.bos},
               {"pad", model_.pad(), special_.pad},
               {"eos", model_.eos(), special_.eos},
               {"unk", model_.unk(), special_.unk}};
    for (const auto& id : ids) {
      if (id.in_file != id.expected) {
        return absl::FailedPreconditionError(absl::StrCat("has id ", id.in_file, " for ", id.name,
                                                          ", the vocabulary says ", id.expected));
      }
    }
    classes_.reserve(model_.pieces());
    for (int id = 0; id < model_.pieces(); ++id) classes_.push_back(ClassOfPiece(model_, id));
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<TokenId>> Encode(absl::string_view text) const override {
    std::vector<TokenId> tokens;
    if (const std::string wrong = model_.Encode({text.data(), text.size()}, tokens);
        !wrong.empty()) {
      return CannotEncode(wrong);
    }
    return tokens;
  }

  std::string Decode(std::span<const TokenId> tokens) const override {
    std::vector<int> ids;
    ids.reserve(tokens.size());
    // The model's output may have more rows than there are pieces.
    for (TokenId token : tokens) {
      ids.push_back(token >= 0 && token < pieces() ? token : special_.unk);
    }
    std::string text;
    // Decode fails only for ids without a piece, which were replaced above.
    if (!model_.Decode(ids, text).empty()) return std::string(kReplacement);
    return text;
  }

  int pieces() const override { return model_.pieces(); }

  absl::string_view Piece(TokenId token) const override {
    const auto piece = model_.piece(token);
    return {piece.data(), piece.size()};
  }

  TokenGrammar::Class ClassOf(TokenId token) const override {
    return token < 0 || token >= pieces() ? TokenGrammar::kControl : classes_[token];
  }

 private:
  SentencePieceModel model_;
  std::vector<TokenGrammar::Class> classes_;  // by token
  SpecialTokens special_;
};

// The ids of pieces. Text never encodes to a special token, so that "</s>" in a text does not end a
// sequence.
class PieceIds {
 public:
  PieceIds(Vocabulary vocabulary, const SpecialTokens& special)
      : vocabulary_(std::move(vocabulary)), special_(special) {}

  TokenId Id(absl::string_view piece) const { return Find(piece).value_or(special_.unk); }

  std::optional<TokenId> Find(absl::string_view piece) const {
    const std::optional<TokenId> id = vocabulary_.Find(piece);
    if (id == special_.bos || id == special_.pad || id == special_.eos) return std::nullopt;
    return id;
  }

  // Empty for the unknown token and for ids that have none.
  absl::string_view Piece(TokenId id) const {
    return id == special_.unk ? absl::string_view() : vocabulary_.Piece(id);
  }

  // The unknown token's own name, "<unk>".
  absl::string_view unknown() const { return vocabulary_.Piece(special_.unk); }
  TokenId unknown_id() const { return special_.unk; }
  int size() const { return vocabulary_.size(); }

 private:
  Vocabulary vocabulary_;
  SpecialTokens special_;
};

class MappedSentencePiece final : public Subwords {
 public:
  MappedSentencePiece(Vocabulary vocabulary, const SpecialTokens& special)
      : ids_(std::move(vocabulary), special) {}

  absl::Status Load(absl::string_view serialized) {
    if (const std::string wrong = model_.Load({serialized.data(), serialized.size()});
        !wrong.empty()) {
      return absl::FailedPreconditionError(absl::StrCat("is not a SentencePiece model: ", wrong));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<TokenId>> Encode(absl::string_view text) const override {
    std::vector<TokenId> tokens;
    std::vector<std::string> pieces;
    if (const std::string wrong = model_.EncodeAsPieces({text.data(), text.size()}, pieces);
        !wrong.empty()) {
      return CannotEncode(wrong);
    }
    tokens.reserve(pieces.size());
    for (const std::string& piece : pieces)
      tokens.push_back(IsLanguageName(piece) ? ids_.unknown_id() : ids_.Id(piece));
    return tokens;
  }

  std::string Decode(std::span<const TokenId> tokens) const override {
    std::vector<std::string> pieces;
    pieces.reserve(tokens.size());
    for (TokenId token : tokens) {
      const absl::string_view piece = ids_.Piece(token);
      pieces.push_back(piece.empty() ? model_.unk_piece() : std::string(piece));
    }
    std::string text;
    if (!model_.DecodePieces(pieces, text).empty()) return std::string(kReplacement);
    return Blanks(text);
  }

  int pieces() const override { return ids_.size(); }

  absl::string_view Piece(TokenId token) const override { return ids_.Piece(token); }

  TokenGrammar::Class ClassOf(TokenId token) const override {
    const absl::string_view piece = ids_.Piece(token);
    if (piece.empty() || IsLanguageName(piece)) return TokenGrammar::kControl;
    const int id = model_.Find(
        {piece.data(), piece.size()});  // pieces of the other language are not in this file
    return id < 0 ? TokenGrammar::kText : ClassOfPiece(model_, id);
  }

 private:
  // True for ">>fra<<".
  static bool IsLanguageName(absl::string_view piece) {
    return absl::StartsWith(piece, ">>") && absl::EndsWith(piece, "<<") && piece.size() > 4;
  }

  // Replaces the blank signs in pieces of the other language's model, which it decodes unchanged.
  static std::string Blanks(absl::string_view text) {
    std::string out;
    out.reserve(text.size());
    for (size_t at = 0; at < text.size();) {
      const bool sign = absl::StartsWith(text.substr(at), kBlankSign);
      out += sign ? ' ' : text[at];
      at += sign ? kBlankSign.size() : 1;
    }
    const size_t begin = std::min(out.find_first_not_of(' '), out.size());
    return out.substr(begin, out.find_last_not_of(' ') + 1 - begin);
  }

  SentencePieceModel model_;
  PieceIds ids_;
};

class BytePairs final : public Subwords {
 public:
  BytePairs(BpeCodes codes, Vocabulary vocabulary, const SpecialTokens& special)
      : codes_(std::move(codes)), ids_(std::move(vocabulary), special) {}

  absl::StatusOr<std::vector<TokenId>> Encode(absl::string_view text) const override {
    std::vector<TokenId> tokens;
    std::vector<absl::string_view> pieces;
    const int size = static_cast<int>(text.size());
    for (int begin = SkipWhiteSpace(text, 0); begin < size;) {
      const int end = WordEnd(text, begin);
      pieces.clear();
      codes_.Split(text.substr(begin, end - begin), pieces);
      for (size_t i = 0; i + 1 < pieces.size(); ++i) {
        tokens.push_back(ids_.Id(absl::StrCat(pieces[i], kContinues)));
      }
      tokens.push_back(ids_.Id(pieces.back()));
      begin = SkipWhiteSpace(text, end);
    }
    return tokens;
  }

  std::string Decode(std::span<const TokenId> tokens) const override {
    std::string text;
    for (TokenId token : tokens) {
      absl::string_view piece = ids_.Piece(token);
      if (piece.empty()) piece = ids_.unknown();
      const char* blank = absl::ConsumeSuffix(&piece, kContinues) ? "" : " ";
      absl::StrAppend(&text, piece, blank);
    }
    if (text.ends_with(' ')) text.pop_back();
    return text;
  }

  int pieces() const override { return ids_.size(); }

  absl::string_view Piece(TokenId token) const override { return ids_.Piece(token); }

  TokenGrammar::Class ClassOf(TokenId token) const override {
    return ids_.Piece(token).empty() ? TokenGrammar::kControl : TokenGrammar::kText;
  }

 private:
  static int WordEnd(absl::string_view text, int at) {
    while (at < std::ssize(text) && !IsWhiteSpace(CharacterAt(text, at).code_point)) {
      at = CharacterAt(text, at).end;
    }
    return at;
  }

  BpeCodes codes_;
  PieceIds ids_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Subwords>> MakeSentencePiece(absl::string_view serialized,
                                                            const SpecialTokens& special) {
  auto subwords = std::make_unique<SentencePiece>(special);
  RETURN_IF_ERROR(subwords->Load(serialized));
  return subwords;
}

absl::StatusOr<std::unique_ptr<Subwords>> MakeMappedSentencePiece(absl::string_view serialized,
                                                                  Vocabulary vocabulary,
                                                                  const SpecialTokens& special) {
  auto subwords = std::make_unique<MappedSentencePiece>(std::move(vocabulary), special);
  RETURN_IF_ERROR(subwords->Load(serialized));
  return subwords;
}

std::unique_ptr<Subwords> MakeBytePairs(BpeCodes codes, Vocabulary vocabulary,
                                        const SpecialTokens& special) {
  return std::make_unique<BytePairs>(std::move(codes), std::move(vocabulary), special);
}

}  // namespace linnet::model
