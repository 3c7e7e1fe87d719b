#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace linnet::model {

// Wraps SentencePiece in standard types. Its header defines its own `absl` namespace and must not
// be included together with abseil's, so this header includes no library and
// sentencepiece_adapter.cc only SentencePiece. Only subwords.cc uses it. const methods are
// thread-safe.
//
// Functions that can fail return an error message, empty on success.
class SentencePieceModel {
 public:
  SentencePieceModel();
  ~SentencePieceModel();

  std::string Load(std::string_view serialized);
  std::string Encode(std::string_view text, std::vector<int>& ids) const;
  std::string EncodeAsPieces(std::string_view text, std::vector<std::string>& pieces) const;
  // Every id must be in [0, pieces()).
  std::string Decode(const std::vector<int>& ids, std::string& text) const;
  // Unknown pieces are copied as text.
  std::string DecodePieces(const std::vector<std::string>& pieces, std::string& text) const;

  int pieces() const;
  // For an id in [0, pieces()): the piece, which starts with U+2581 for a blank.
  std::string_view piece(int id) const;
  // For an id in [0, pieces()): true if the piece is not text (control, unused or unknown); and the
  // byte of a byte piece, or -1.
  bool is_control(int id) const;
  int byte(int id) const;
  // -1 if there is no such piece.
  int Find(std::string_view piece) const;
  // Special ids, -1 if the model has none.
  int bos() const;
  int pad() const;
  int eos() const;
  int unk() const;
  std::string unk_piece() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace linnet::model
