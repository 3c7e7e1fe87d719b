#pragma once

#include <string>
#include <string_view>

namespace linnet::model {

// A text in capitals is read in small letters behind a mark, and answered in capitals.
//
// A vocabulary learnt from running text spells THE DOG letter by letter. With the mark, a piece of
// the vocabulary, the model reads what it knows: "THE DOG RUNS." as "<ph7> The dog runs.", and its
// answer "<ph7> Der Hund läuft." is shown as "DER HUND LÄUFT.". The mark is part of the text, so
// nothing has to be remembered between reading and answering (inline casing: Berard et al. 2019,
// Naver Labs Europe's Systems for the WMT19 Machine Translation Robustness Task, section 4).
// model/linnet_model/capitals.py is the same for the trainer.

// What the model reads in the place of `text`, which is valid UTF-8: the text itself, or behind the
// mark in small letters, if two words or more have capitals and no letter is small. One word alone
// may be an abbreviation.
std::string MarkCapitals(std::string_view text, std::string_view mark);

// What an answer of the model says: in capitals without the mark, if the mark is what it starts
// with. The restored start of a text is a start of the restored text, so it may be streamed.
std::string RestoreCapitals(std::string_view text, std::string_view mark);

}  // namespace linnet::model
