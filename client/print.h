// What the commands write on standard output.
#pragma once

#include <ostream>
#include <string>

#include "absl/status/status.h"
#include "client/text_source.h"
#include "google/protobuf/message.h"
#include "linnet/v1/text_service.pb.h"

namespace linnet::client {

enum class Form { kText, kJson };

// The message on one line, with the names of the proto, every field that is not optional present.
std::string JsonLine(const google::protobuf::Message& message);

// The answer to one text. As JSON it is the response with that answer alone; as text it is the
// answer with the text's line end, or, if hypotheses were asked for, each segment of the source and
// below it its hypotheses, best first.
void PrintAnswer(const Text& text, const v1::TranslateResponse& response, int index, Form form,
                 std::ostream& out);
void PrintAnswer(const Text& text, const v1::SummarizeResponse& response, int index, Form form,
                 std::ostream& out);

// A table with a line for each model, or as JSON an object for each.
void PrintModels(const v1::ListModelsResponse& response, Form form, std::ostream& out);

}  // namespace linnet::client
