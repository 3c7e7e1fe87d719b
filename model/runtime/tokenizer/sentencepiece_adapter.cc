#include "model/runtime/tokenizer/sentencepiece_adapter.h"

#include <sentencepiece_processor.h>

namespace linnet::model {

struct SentencePieceModel::Impl {
  sentencepiece::SentencePieceProcessor processor;
};

namespace {

std::string Wrong(const sentencepiece::util::Status& status) {
  return status.ok() ? "" : status.ToString();
}

}  // namespace

SentencePieceModel::SentencePieceModel() : impl_(std::make_unique<Impl>()) {}
SentencePieceModel::~SentencePieceModel() = default;

std::string SentencePieceModel::Load(std::string_view serialized) {
  return Wrong(impl_->processor.LoadFromSerializedProto(serialized));
}
std::string SentencePieceModel::Encode(std::string_view text, std::vector<int>& ids) const {
  return Wrong(impl_->processor.Encode(text, &ids));
}
std::string SentencePieceModel::EncodeAsPieces(std::string_view text,
                                               std::vector<std::string>& pieces) const {
  return Wrong(impl_->processor.Encode(text, &pieces));
}
std::string SentencePieceModel::Decode(const std::vector<int>& ids, std::string& text) const {
  return Wrong(impl_->processor.Decode(ids, &text));
}
std::string SentencePieceModel::DecodePieces(const std::vector<std::string>& pieces,
                                             std::string& text) const {
  return Wrong(impl_->processor.Decode(pieces, &text));
}

int SentencePieceModel::pieces() const { return impl_->processor.GetPieceSize(); }
std::string_view SentencePieceModel::piece(int id) const { return impl_->processor.IdToPiece(id); }
bool SentencePieceModel::is_control(int id) const {
  const auto& processor = impl_->processor;
  return processor.IsControl(id) || processor.IsUnused(id) || processor.IsUnknown(id);
}
int SentencePieceModel::byte(int id) const {
  if (!impl_->processor.IsByte(id)) return -1;
  return std::stoi(impl_->processor.IdToPiece(id).substr(3, 2), nullptr, 16);  // "<0xE4>"
}
int SentencePieceModel::Find(std::string_view piece) const {
  const int id = impl_->processor.PieceToId(piece);
  return id == unk() && piece != unk_piece() ? -1 : id;
}
int SentencePieceModel::bos() const { return impl_->processor.bos_id(); }
int SentencePieceModel::pad() const { return impl_->processor.pad_id(); }
int SentencePieceModel::eos() const { return impl_->processor.eos_id(); }
int SentencePieceModel::unk() const { return impl_->processor.unk_id(); }
std::string SentencePieceModel::unk_piece() const { return impl_->processor.IdToPiece(unk()); }

}  // namespace linnet::model
