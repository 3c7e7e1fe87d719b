#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "linnet/v1/text_service.pb.h"
#include "model/runtime/text/paragraphs.h"
#include "model/runtime/text/segmenter.h"
#include "server/request/glossary.h"
#include "server/request/text_request.h"
#include "server/schedule/sequence.h"
#include "server/text/given_start.h"

namespace linnet::server {

// A segment of a text, as the engine reads it.
struct PreparedSegment {
  model::TextSegment place;            // position in its text
  std::string gap;                     // text before it in the answer
  std::vector<model::TokenId> source;  // of its text, eos last, without language tokens
  // Parts of its text that have stand-ins in the source, and those that the model cannot read.
  std::vector<model::ProtectedSpan> spans = {};
  std::vector<model::TextRun> unread = {};
  // The text is in capitals and the source in lower case; so is each hypothesis, whose text is then
  // converted (model/runtime/tokenizer/lower_capitals.h).
  bool lowered = false;
  std::optional<std::vector<model::TokenId>> target;  // to be scored
  std::optional<GivenStart> start = std::nullopt;     // of its answer
  // Borrowed from the request, or from PreparedText::joined.
  absl::string_view text = {};
  std::vector<TermUse> terms = {};                              // glossary entries that apply
  std::shared_ptr<const model::TargetLength> length = nullptr;  // of its summary
  bool align = false;  // the words of its answer to its own
  // The answer is a title, whose full stop is left out.
  bool is_title = false;
  // The text has no letter: it is its own translation, and is not decoded.
  bool copied = false;
  // Set if the lines of its text were joined: `text` is a part of it, and `place` that of the
  // source.
  const model::JoinedText* joined = nullptr;

  // Frees what only the decoding of the segment needs.
  void ClearSource() {
    source = {};
    spans = {};
    unread = {};
  }
};

// The place in the text of the request of bytes [begin, end) of a segment's text; not empty.
model::JoinedText::Range SourceRange(const PreparedSegment& segment, int begin, int end);

// The languages whose capitals the text of a segment and its hypotheses are written in; empty if
// its tokens are in the case of the text. For Tokenizer::Decode.
absl::string_view SourceCapitals(const TextRequest& request, const PreparedSegment& segment);
absl::string_view TargetCapitals(const TextRequest& request, const PreparedSegment& segment);

// The text of a hypothesis of a segment, with each protected span once; of a title without its full
// stop, which is no ellipsis.
model::RestoredText RestoredHypothesis(const TextRequest& request, const PreparedSegment& segment,
                                       const model::Hypothesis& hypothesis);
std::string HypothesisText(const TextRequest& request, const PreparedSegment& segment,
                           const model::Hypothesis& hypothesis);

// One text of a request.
struct PreparedText {
  std::vector<PreparedSegment> segments;
  std::string tail;        // text after the last segment in the answer
  bool truncated = false;  // the end of the text was dropped
  // The language of the text, if it is reliably not the model's.
  std::optional<LanguageGuess::Language> other_language = std::nullopt;
  // The share of prose in a text to summarise, if it is too small for a summary to mean much.
  std::optional<double> prose_share = std::nullopt;
  // The text with joined lines, if any are. Shared by copies of this object, because the segments
  // borrow it.
  std::shared_ptr<const model::JoinedText> joined = nullptr;
};

// A text and the results of its segments, parallel to them. A copied segment has one hypothesis
// without tokens, of score 0.
struct DecodedText {
  PreparedText prepared;
  std::vector<SequenceResult> results;
};

// The text between two segments of a translation: `gap`, the white space of the source. Languages
// without blanks have none between their sentences, so that a blank is added for a language with
// blanks where the segment before it is in a script without.
std::string GapAfter(absl::string_view before, std::string gap,
                     const std::string& target_language_code);

// The engine's input for a segment.
model::SequenceInput MakeInput(const TextRequest& request, const PreparedSegment& segment);

}  // namespace linnet::server
