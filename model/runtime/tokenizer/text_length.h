#pragma once

#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "model/runtime/search/target_length.h"
#include "model/runtime/tokenizer/tokenizer.h"

namespace linnet::model {

// Rules by which the text of a target has a wished length. They need a tokenizer that
// separates_words(), and keep a copy of it, which shares its tables: an engine that stalls may
// outlive the model.

// At least `min` words and at most `max`, as WordsIn counts them. 1 <= min <= max.
std::shared_ptr<const TargetLength> LengthInWords(const Tokenizer& tokenizer, int min, int max);
// That many sentences, at least 1, by SplitText's rules for the language. After the last one no
// further word begins; a mark or a digit may still follow it ("3." becomes "3.5", which is no end).
std::shared_ptr<const TargetLength> LengthInSentences(const Tokenizer& tokenizer, int sentences,
                                                      std::string language_code);

// Any length up to so many sentences (0: any number), which ends with a sentence or without a mark:
// not behind the full stop of an abbreviation ("because Mr."). After the last sentence no further
// word begins.
std::shared_ptr<const TargetLength> LengthUpToSentences(const Tokenizer& tokenizer, int max,
                                                        std::string language_code);

// The words of a text: what white space separates.
int WordsIn(absl::string_view text);
// The sentences of a text of valid UTF-8, if its last one has ended; otherwise 0.
int CompleteSentencesIn(absl::string_view text, absl::string_view language_code);

}  // namespace linnet::model
