#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "model/runtime/engine.h"
#include "server/request/text_request.h"
#include "server/schedule/sequence.h"
#include "server/text/prepared_text.h"

namespace linnet::server {

// The answer to a text, made as the server makes it: of segments, with protected spans and
// warnings. The stream that decodes the segments owns it.
class TextAnswer {
 public:
  // `request` has a model, its languages and options, and no texts.
  static absl::StatusOr<std::unique_ptr<TextAnswer>> Prepare(TextRequest request, std::string text);

  // The segments to decode, by their numbers. A segment without a letter is its own translation.
  std::vector<std::pair<size_t, model::SequenceInput>> MakeInputs() const;
  void SetResult(size_t segment, absl::StatusOr<SequenceResult> result);
  // {"translation":{"text":…,"score":…,"tokens":…,"finish_reason":…,"warnings":[…]}} when all
  // segments have a result; or the first error of one.
  absl::StatusOr<std::string> Format() const;

 private:
  TextAnswer(TextRequest request, std::string text)
      : request_(std::move(request)), text_(std::move(text)) {}

  const TextRequest request_;
  const std::string text_;  // the segments borrow it
  PreparedText prepared_;
  std::vector<SequenceResult> results_;  // of the segments
  absl::Status error_;
};

}  // namespace linnet::server
