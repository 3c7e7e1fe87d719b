#pragma once

#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "model/runtime/tokenizer/capitals.h"

namespace linnet::model {

// Capitals for models without a capitals mark (capitals.h), which are those of other toolkits: such
// a model gets a text in capitals in lower case, and the caller converts its answer back. The text
// itself does not say so to the model, so the caller keeps the fact beside the tokens.

// Returns the text in lower case by the rules of its language if it is in capitals, by the rule of
// MarkCapitals, and nothing if it is not. The first letter of a sentence stays a capital, and so do
// words that are no shouting: English "I", words with digits (B2B, COVID-19), words without a vowel
// (BBC), and abbreviations that stand alone among lower-case words in the text around ("The EU
// agreed. EU AGREES ON RULES"). A text of such words alone is not in capitals.
//
// Firefox's en-pt gives 94 of 100 sentences in capitals the answer of normal case (none without
// this), and of 45 short sentences with an abbreviation en-pt and pt-en give 24, or 43 if the text
// around has it too (tests/bench/results/capitals.json).
std::optional<std::string> LowerCapitals(absl::string_view text, absl::string_view language_code,
                                         const TextAround& around = {});

// Returns an answer in capitals by the rules of its language: Turkish "i" becomes "İ", German "ß"
// becomes "SS", Greek loses its accents. The conversion of a prefix is a prefix of the conversion,
// except for the last letter of a Greek one.
std::string ToCapitals(absl::string_view text, absl::string_view language_code);

}  // namespace linnet::model
