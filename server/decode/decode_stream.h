#pragma once

#include <cstdio>
#include <deque>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "model/runtime/bundle/bundle.h"
#include "model/runtime/bundle/languages.h"
#include "model/runtime/engine.h"
#include "model/runtime/tokenizer/tokenizer.h"
#include "server/decode/json_line.h"
#include "server/decode/line_reader.h"
#include "server/schedule/batcher.h"

namespace linnet::server {

// Decodes JSON lines as they arrive and prints the answers in the order of the lines.
//
// At most `batch` sequences are in flight, and a bounded number of answers waits for an earlier one
// that takes longer. An interactive line is decoded at once: the reader blocks only if there is
// nothing to decode.
class DecodeStream {
 public:
  // All arguments must outlive the stream. The tokenizers are null if the bundle has none.
  DecodeStream(const model::Bundle& bundle, model::Engine& engine,
               const model::Tokenizer* source_tokenizer, const model::Tokenizer* target_tokenizer,
               const linnet::v1::DecodingOptions& overrides, int batch);

  // Runs until the input ends. Returns true if every line was decoded, or an error if the output
  // cannot be written.
  absl::StatusOr<bool> Run(LineReader& input, std::FILE* output);

 private:
  struct Answer {
    bool ready = false;
    std::string line;
  };
  class AnswerSink;

  // Reads available lines up to the limits. Returns false at the end of the input.
  bool ReadLines(LineReader& input);
  absl::Status Start(const std::string& line, Answer& answer);
  absl::StatusOr<model::SequenceInput> MakeInput(const std::string& line) const;
  absl::Status AddLanguages(const InputLine& line, model::SequenceInput& input) const;
  absl::Status PrintReady(std::FILE* output);

  const model::Bundle& bundle_;
  const model::LanguagePairs languages_;
  const model::Tokenizer* source_tokenizer_;
  const model::Tokenizer* target_tokenizer_;
  linnet::v1::DecodingOptions overrides_;
  int batch_;
  bool all_decoded_ = true;
  std::deque<Answer>
      answers_;  // in the order of the lines; declared before the batcher, whose sinks write here
  Batcher batcher_;
};

}  // namespace linnet::server
