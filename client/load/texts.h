// The texts that linnet-load sends.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace linnet::client {

// Reads the lines of a file that are not blank. INVALID_ARGUMENT if the file cannot be read, is not
// UTF-8 or has none.
absl::StatusOr<std::vector<std::string>> ReadSentences(const std::string& file);

// The number of sentences that are generated for a run.
inline constexpr int kMadeUpSentences = 1000;

// Generates sentences of made-up words with lengths uniformly distributed from min_words to
// max_words. The same seed gives the same sentences. 1 <= min_words <= max_words.
std::vector<std::string> MadeUpSentences(int count, int min_words, int max_words, uint64_t seed);

}  // namespace linnet::client
