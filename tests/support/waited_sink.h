#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/support/notification.h"
#include "tests/support/recording_sink.h"

namespace linnet::test {

// The result of a sequence, for a thread that waits for its end.
struct Waited {
  Outcome outcome;
  Notification done;

  absl::Status status() {
    done.Pass();
    return outcome.result->status();
  }
};

class WaitedSink : public server::Sink {
 public:
  explicit WaitedSink(Waited& waited) : waited_(waited) {}
  void Done(absl::StatusOr<server::SequenceResult> result) override {
    EXPECT_FALSE(waited_.outcome.done()) << "a sequence ended twice";
    waited_.outcome.result = std::move(result);
    waited_.done.Open();
  }

 private:
  Waited& waited_;
};

inline std::unique_ptr<server::Sequence> Say(std::vector<model::TokenId> words, Waited& waited) {
  auto sequence = Say(std::move(words), waited.outcome);
  sequence->sink = std::make_unique<WaitedSink>(waited);
  return sequence;
}

}  // namespace linnet::test
