#pragma once

#include <memory>
#include <vector>

#include "absl/strings/string_view.h"
#include "model/runtime/search/token.h"
#include "model/runtime/tokenizer/bpe.h"
#include "model/runtime/tokenizer/subwords.h"
#include "model/runtime/tokenizer/vocabulary.h"

namespace linnet::model {

// The words of a text, which together are the text, as GPT-2 splits it before the merges:
//
//   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
//
// A blank belongs to the letters, digits or other signs that follow it; of longer white space the
// last character stands alone, unless it is such a blank. White space is the property White_Space
// of Unicode. `text` is UTF-8; characters that are not are other signs. Takes linear time.
//
// Source: Radford et al. 2019, Language Models are Unsupervised Multitask Learners, its encoder.py.
std::vector<absl::string_view> SplitForByteLevel(absl::string_view text);

// Byte-level BPE: merges of the bytes of each word, all 256 of which are pieces, so that every text
// can be spelled. `codes` and `vocabulary` write a byte as one of 256 printable characters. Pieces
// may hold parts of characters, so there are no classes of a grammar for them.
std::unique_ptr<Subwords> MakeByteLevel(BpeCodes codes, Vocabulary vocabulary,
                                        const SpecialTokens& special);

}  // namespace linnet::model
