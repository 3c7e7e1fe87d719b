#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "model/runtime/tokenizer/subwords.h"
#include "model/runtime/tokenizer/tokenizer.h"

namespace linnet::model {

// Reads the files of a tokenizer: a SentencePiece model, or BPE codes with their vocabulary.
// FAILED_PRECONDITION, with the file, if one cannot be read or is not that of the model.
absl::StatusOr<std::unique_ptr<Subwords>> LoadSubwords(const TokenizerSpec& spec,
                                                       const SpecialTokens& special);

}  // namespace linnet::model
