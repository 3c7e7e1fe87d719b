#pragma once

#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"

namespace linnet::model {

// Moses's tokenizer and detokenizer, for models trained on their words: with aggressive splitting
// of hyphens ("@-@") and escaping of Moses's special characters ("&apos;").
//
// The rules are those of sacremoses 0.2.0, which fairseq uses with its models, byte for byte,
// except that words which sacremoses uses as internal marks ("DOTMULTI") are ordinary words here,
// and that Czech and Finnish have no separate detokenizer rules. Languages without a list of
// nonbreaking prefixes (all but English, German, French and Chinese) use the English one.
//
// Immutable, so thread-safe. Takes time linear in the text.
class MosesWords {
 public:
  // A BCP-47 code; "de-AT" has the rules of "de".
  explicit MosesWords(absl::string_view language_code);

  // Words with one blank between them. Bytes that are not UTF-8 read as U+FFFD.
  std::string Tokenize(absl::string_view text) const;
  // Joins such words to text.
  std::string Detokenize(absl::string_view words) const;

 private:
  std::string language_;
  // Words that keep their full stop; true: only before a number.
  absl::flat_hash_map<std::string, bool> prefixes_;
};

}  // namespace linnet::model
