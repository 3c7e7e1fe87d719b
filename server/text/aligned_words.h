#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "linnet/v1/text_service.pb.h"
#include "model/runtime/text/tokenizer.h"

namespace linnet::server {

// A word of a text, what stands between white space, and the tokens [first_token, end_token) that
// say some of it.
struct AlignedWord {
  int begin = 0;  // bytes
  int end = 0;
  size_t first_token = 0;
  size_t end_token = 0;
};

// The words of `text`, which is what the tokens say, placeholders for `copies` among them. A token
// may say some of two words.
std::vector<AlignedWord> AlignedWords(const model::Tokenizer& tokenizer,
                                      std::span<const model::TokenId> tokens, std::string_view text,
                                      std::span<const std::string> copies = {});

// The words of a source, as it was written: what its tokens say is normalised, so that its words
// are put down to those of `text`, one to one where they are as many, else by the fewest words
// changed, lost and added. In the order of the tokens; several may have the same bytes.
std::vector<AlignedWord> SourceWords(const model::Tokenizer& tokenizer,
                                     std::span<const model::TokenId> tokens, std::string_view text,
                                     std::span<const std::string> copies = {});

// Adds to `links` those of each word of a target: the source's word of the most weight, and all of
// at least kMinAlignmentWeight. `attention` is [target tokens, source tokens], row-major.
inline constexpr float kMinAlignmentWeight = 0.1f;
void FillWordAlignments(
    std::span<const AlignedWord> source, size_t source_tokens, int source_begin,
    std::span<const AlignedWord> target, int target_begin, std::span<const float> attention,
    google::protobuf::RepeatedPtrField<linnet::v1::WordAlignment>& word_alignments);

}  // namespace linnet::server
