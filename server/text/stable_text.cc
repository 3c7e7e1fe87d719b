#include "server/text/stable_text.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"

namespace linnet::server {
namespace {

// Removes the last word and the space before it from the text, and returns the word.
std::string CutLastWord(std::string& text) {
  const size_t blank = text.rfind(' ');
  const bool only_word = blank == std::string::npos;
  std::string word = text.substr(only_word ? 0 : blank + 1);
  text.resize(only_word ? 0 : blank);
  return word;
}

void CutLastCharacter(std::string& text) {
  size_t size = text.size();
  while (size > 1 && (static_cast<unsigned char>(text[size - 1]) & 0xC0) == 0x80) --size;
  text.resize(size == 0 ? 0 : size - 1);
}

}  // namespace

std::string StableText(const model::Tokenizer& tokenizer, linnet::v1::WordTokenizer words,
                       std::span<const model::TokenId> tokens, absl::string_view capitals) {
  constexpr absl::string_view kReplacement = "\uFFFD";
  // Without placeholders, as the whole text.
  std::string text =
      tokenizer.Restore(tokenizer.Decode(tokens, capitals), {}, {}, /*once=*/true).text;
  while (absl::EndsWith(text, kReplacement)) {
    text.resize(text.size() - kReplacement.size());
  }
  if (words == linnet::v1::WORD_TOKENIZER_MOSES) {
    const bool may_join = CutLastWord(text).starts_with('@');
    if (may_join) CutLastWord(text);
  }
  if (!capitals.empty()) CutLastCharacter(text);
  absl::StripTrailingAsciiWhitespace(&text);
  return text;
}

}  // namespace linnet::server
