#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "server/schedule/sequence.h"

namespace linnet::test {

// Records the result of a sequence, and fails the test if Done is called twice.
struct Outcome {
  std::optional<absl::StatusOr<server::SequenceResult>> result;

  bool done() const { return result.has_value(); }
  absl::StatusCode code() const { return result->status().code(); }
  std::vector<model::TokenId> tokens() const { return (*result)->hypotheses.front().tokens; }
};

class RecordingSink : public server::Sink {
 public:
  explicit RecordingSink(Outcome& outcome) : outcome_(outcome) {}
  void Done(absl::StatusOr<server::SequenceResult> result) override {
    EXPECT_FALSE(outcome_.done()) << "a sequence ended twice";
    outcome_.result = std::move(result);
  }

 private:
  Outcome& outcome_;
};

// Returns a sequence with the source `words` and eos.
inline std::unique_ptr<server::Sequence> Say(std::vector<model::TokenId> words, Outcome& outcome,
                                             int beam_size = 1) {
  auto sequence = std::make_unique<server::Sequence>();
  words.push_back(model::SpecialTokens{}.eos);
  sequence->input.source = std::move(words);
  sequence->input.options.beam_size = beam_size;
  sequence->input.options.max_target_tokens = 100;
  sequence->sink = std::make_unique<RecordingSink>(outcome);
  return sequence;
}

}  // namespace linnet::test
