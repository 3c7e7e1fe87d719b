#pragma once

#include <string>
#include <string_view>

#include "model/runtime/text/text_map.h"

namespace linnet::model {

// Splits text into words and puts it together again by the rules of Moses's tokenizer and
// detokenizer, as the models that were trained on such words need it: with aggressive splitting of
// hyphens ("@-@") and with characters escaped that Moses reads as its own ("&apos;").
//
// The rules are those of sacremoses 0.2.0, which fairseq serves its models with, to the byte,
// except that words which sacremoses uses as marks of its own ("DOTMULTI") are words like any other
// here, and that Czech and Finnish have no detokenizer rules of their own. Languages without a list
// of nonbreaking prefixes (all but English, German, French
// and Chinese) use the English one.
//
// Thread-safe: nothing changes after construction. Work is linear in the text.
class MosesWords {
 public:
  // A BCP-47 code; "de-AT" has the rules of "de".
  explicit MosesWords(std::string_view language_code);

  // Words with one blank between them. Bytes that are not UTF-8 read as U+FFFD.
  std::string Tokenize(std::string_view text) const;
  // Text of such words.
  std::string Detokenize(std::string_view words) const;

 private:
  std::string language_;
  // Words that keep their full stop, and whether they do so only before a number.
  TextMap<bool> prefixes_;
};

}  // namespace linnet::model
