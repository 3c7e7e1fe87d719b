#include "client/load/texts.h"

#include <array>
#include <fstream>
#include <optional>
#include <random>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "client/command/text/text_source.h"
#include "proto/status_macros.h"

namespace linnet::client {
namespace {

constexpr std::array<const char*, 24> kSyllables = {
    "ba", "de", "fi", "go", "lu", "ma", "ne",  "pi",  "ro",  "su",  "ta",  "ve",
    "an", "el", "in", "or", "un", "as", "ter", "lin", "mor", "sel", "tan", "ger"};

}  // namespace

absl::StatusOr<std::vector<std::string>> ReadSentences(const std::string& file) {
  std::ifstream unused;
  Input input;
  input.files = {file};
  input.shape = Shape::kLines;
  TextSource source(std::move(input), unused);
  std::vector<std::string> sentences;
  while (true) {
    ASSIGN_OR_RETURN(std::optional<Text> text, source.Next());
    if (!text.has_value()) break;
    RETURN_IF_ERROR(text->problem);
    if (!IsBlank(*text)) sentences.push_back(std::move(text->content));
  }
  if (sentences.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(file, " has no line with text in it"));
  }
  return sentences;
}

std::vector<std::string> MadeUpSentences(int count, int min_words, int max_words, uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto pick = [&random](uint64_t choices) { return random() % choices; };
  std::vector<std::string> sentences(count);
  for (std::string& sentence : sentences) {
    const uint64_t words = min_words + pick(max_words - min_words + 1);
    for (uint64_t word = 0; word < words; ++word) {
      if (word > 0) sentence += ' ';
      for (uint64_t left = 1 + pick(3); left > 0; --left) {
        sentence += kSyllables[pick(kSyllables.size())];
      }
    }
    sentence[0] = absl::ascii_toupper(static_cast<unsigned char>(sentence[0]));
    sentence += '.';
  }
  return sentences;
}

}  // namespace linnet::client
