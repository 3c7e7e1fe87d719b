#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace linnet::model {

// SentencePiece in standard types alone: its header brings an `absl` namespace of its own and may
// not meet abseil's, so this header includes no library and sentencepiece_adapter.cc nothing but
// SentencePiece. For subwords.cc only.
//
// Functions that can fail return what is wrong, or an empty string.
class SentencePieceModel {
 public:
  SentencePieceModel();
  ~SentencePieceModel();

  std::string Load(std::string_view serialized);
  std::string Encode(std::string_view text, std::vector<int>& ids) const;
  std::string EncodeAsPieces(std::string_view text, std::vector<std::string>& pieces) const;
  // Every id lies in [0, pieces()).
  std::string Decode(const std::vector<int>& ids, std::string& text) const;
  // A piece that the model does not know is text as it stands.
  std::string DecodePieces(const std::vector<std::string>& pieces, std::string& text) const;

  int pieces() const;
  // Of an id in [0, pieces()): a piece that is no text (control, unused or unknown); the byte of a
  // byte piece, or -1.
  bool is_control(int id) const;
  int byte(int id) const;
  // -1 where there is no such piece.
  int Find(std::string_view piece) const;
  // -1 where the model has none.
  int bos() const;
  int pad() const;
  int eos() const;
  int unk() const;
  std::string_view unk_piece() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace linnet::model
