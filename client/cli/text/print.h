// Writes the answers to texts on standard output.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>

#include "absl/status/status.h"
#include "client/command/text/text_source.h"
#include "google/protobuf/message.h"
#include "linnet/v1/text_service.pb.h"

namespace linnet::client {

enum class Form {
  kText,
  kScored,          // the score, a tab and the text
  kJson,            // the response
  kJsonLines,       // the input's object with the answer added
  kJsonLinesWhole,  // the input's object with the whole response added
};

// True if answers are JSON, one per line.
bool IsJson(Form form);

// The message as JSON on one line, with the field names of the proto; default values are written.
std::string JsonLine(const google::protobuf::Message& message);

// Replaces line ends in the answer to a single line, so that lines of input and output match up.
std::string KeepLineCount(const std::string& answer, const Text& text);

// "\n  3 texts were answered before", the last line of an error; empty for 0.
std::string AnsweredNote(int64_t answered);

// Writes the answer to one text. As JSON it is the response with that answer alone. As text it is
// the answer with the text's line end, followed by a line of words and confidences for each segment
// if word scores were requested, and by a line for each word with its aligned source words if
// alignments were. If hypotheses were requested, it is each source segment and below it its
// hypotheses, best first. kScored puts the score of the weakest segment and a tab before the text.
// In an input's object, "translation" or "summary" is the text, and "segments" has the rest.
void PrintAnswer(const Text& text, const v1::TranslateResponse& response, int index, Form form,
                 std::ostream& out);
void PrintAnswer(const Text& text, const v1::SummarizeResponse& response, int index, Form form,
                 std::ostream& out);

// For the text "SOURCE<tab>TARGET", writes the score, a tab and the target, and below it the words
// if their scores were requested. A blank line stays blank.
void PrintAnswer(const Text& text, const v1::ScoreResponse& response, int index, Form form,
                 std::ostream& out);

// Writes, separated by tabs, the most likely language ("und" if undetermined, with a "?" if it is a
// guess), its confidence, and the text, or its name if it has several lines. In an input's object,
// "languages" and "reliable" are those of the API.
void PrintAnswer(const Text& text, const v1::DetectLanguageResponse& response, int index, Form form,
                 std::ostream& out);

// The message of an error about one text, without the text's index in its request.
std::string RefusalText(const absl::Status& why);

// Writes a placeholder for a refused text: its line end alone, or, as JSON, an object with an
// "error" of code, reason and message, or the input's object with that "error" added.
void PrintRefused(const Text& text, const absl::Status& why, Form form, std::ostream& out);

}  // namespace linnet::client
