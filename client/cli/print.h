// What the commands write on standard output.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>

#include "absl/status/status.h"
#include "client/cli/text_source.h"
#include "google/protobuf/message.h"
#include "linnet/v1/admin_service.pb.h"
#include "linnet/v1/text_service.pb.h"

namespace linnet::client {

enum class Form {
  kText,
  kScored,          // text behind its score
  kJson,            // the response
  kJsonLines,       // the object that the text stood in, with the answer
  kJsonLinesWhole,  // the same with all that the response says of it
};

// Answers are JSON, one on a line each.
bool IsJson(Form form);

// The message on one line, with the names of the proto, every field that is not optional present.
std::string JsonLine(const google::protobuf::Message& message);

// A line stays one line, whatever the model wrote: whoever pairs lines up relies on it.
std::string OnAsManyLines(const std::string& answer, const Text& text);

// "\n  3 texts were answered before", for the end of an error; empty for none.
std::string AnsweredNote(int64_t answered);

// The answer to one text. As JSON it is the response with that answer alone; as text it is the
// answer with the text's line end and, if word scores were asked for, a line for each segment with
// its words and their confidence; if alignments, a line for each word with the words of the source
// that it comes from; or, if hypotheses were asked for, each segment of the source and below it its
// hypotheses, best first. kScored puts the score of the weakest segment and a tab before it.
// In an object, "translation" or "summary" is the text, and "segments" has what else was asked for.
void PrintAnswer(const Text& text, const v1::TranslateResponse& response, int index, Form form,
                 std::ostream& out);
void PrintAnswer(const Text& text, const v1::SummarizeResponse& response, int index, Form form,
                 std::ostream& out);

// A text that is "SOURCE<tab>TARGET": the score, a tab and the target, below it its words if their
// scores were asked for. A blank line stays one.
void PrintAnswer(const Text& text, const v1::ScoreResponse& response, int index, Form form,
                 std::ostream& out);

// The likeliest language, "und" where there is none, with a "?" where it is a guess; its
// confidence; the text, or its name if it has several lines. Tabs between them. In an object,
// "languages" and "reliable" are those of the API.
void PrintAnswer(const Text& text, const v1::DetectLanguageResponse& response, int index, Form form,
                 std::ostream& out);

// What an error says of one text, without the number that the text had in its request.
std::string RefusalText(const absl::Status& why);

// Keeps the place of a text that was refused: nothing but its line end, or, as JSON, an object with
// an "error" of code, reason and message; in an object, the "error" comes to what it has.
void PrintRefused(const Text& text, const absl::Status& why, Form form, std::ostream& out);

// A table with a line for each model, or as JSON an object for each.
void PrintModels(const v1::ListModelsResponse& response, Form form, std::ostream& out);

// A line for each folder: what became of it, the model and its version, or why it failed.
void PrintReload(const v1::ReloadResponse& response, Form form, std::ostream& out);

// One model with its limits, its defaults and where it comes from, a line each.
void PrintModel(const v1::GetModelResponse& response, Form form, std::ostream& out);

}  // namespace linnet::client
