// What a load generator sends.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace linnet::client {

// The lines of a file that are not blank. INVALID_ARGUMENT if it cannot be
// read, is not UTF-8 or has none.
absl::StatusOr<std::vector<std::string>> ReadSentences(const std::string& file);

// How many are made up for a run.
inline constexpr int kMadeUpSentences = 1000;

// Sentences of made-up words, all lengths from min_words to max_words alike
// often in the long run. The same seed gives the same ones. 1 <= min_words <=
// max_words.
std::vector<std::string> MadeUpSentences(int count, int min_words, int max_words, uint64_t seed);

}  // namespace linnet::client
