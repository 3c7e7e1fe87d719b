#pragma once

#include <cstdio>
#include <deque>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "linnet/v1/text_service.pb.h"
#include "model/runtime/engine.h"
#include "server/decode/json_line.h"
#include "server/decode/line_reader.h"
#include "server/decode/text_answer.h"
#include "server/models/served_model.h"
#include "server/request/protected_patterns.h"
#include "server/schedule/batcher.h"

namespace linnet::server {

// Decodes JSON lines as they arrive and prints the answers in the order of the lines.
//
// At most `batch` sequences are in flight, and a bounded number of answers waits for an earlier one
// that takes longer. An interactive line is decoded at once: the reader blocks only if there is
// nothing to decode.
class DecodeStream {
 public:
  // The model has no scheduler, and no tokenizers if its bundle has none. The engine must outlive
  // the stream. With `split` texts are answered as the server answers them (TextAnswer).
  DecodeStream(std::shared_ptr<ServedModel> model, model::Engine& engine,
               const linnet::v1::DecodingOptions& overrides, int batch, bool split);

  // Runs until the input ends. Returns true if every line was decoded, or an error if the output
  // cannot be written.
  absl::StatusOr<bool> Run(LineReader& input, std::FILE* output);

 private:
  struct Answer {
    std::unique_ptr<TextAnswer> text = nullptr;  // of a line that is answered as by the server
    size_t left = 0;                             // its segments without a result
    std::string line = {};                       // when it is ready
  };
  class AnswerSink;

  // Reads available lines up to the limits. Returns false at the end of the input.
  bool ReadLines(LineReader& input);
  absl::Status Start(const std::string& line, Answer& answer);
  absl::Status StartText(InputLine line, Answer& answer);
  absl::Status StartSequence(model::SequenceInput input, size_t segment, Answer& answer);
  // Takes the result of a sequence of an answer. `constraints` are those of the line.
  void Deliver(Answer& answer, size_t segment, absl::StatusOr<SequenceResult> result,
               const model::Constraints& constraints);
  void Finish(Answer& answer, absl::StatusOr<std::string> line);
  absl::StatusOr<model::SequenceInput> MakeInput(const InputLine& line) const;
  // The pair and style that a line names, or the first ones.
  absl::StatusOr<const linnet::v1::LanguageTokens*> FindLanguages(const InputLine& line) const;
  linnet::v1::DecodingOptions OptionsOf(const InputLine& line) const;
  absl::Status PrintReady(std::FILE* output);

  const std::shared_ptr<ServedModel> model_;
  const linnet::v1::DecodingOptions overrides_;
  const int batch_;
  const std::shared_ptr<const ProtectedPatterns> protects_;  // null: texts are not split
  bool all_decoded_ = true;
  std::deque<Answer>
      answers_;  // in the order of the lines; declared before the batcher, whose sinks write here
  Batcher batcher_;
};

}  // namespace linnet::server
