#pragma once

#include <map>
#include <memory>
#include <random>
#include <vector>

#include "model/torch/torch_engine.h"

// Random decoding that two engines are compared by.
namespace linnet::model::testing {

// LINNET_TEST_DEVICE, or the CPU. On a GPU floating point sums differ in their last bits with the
// number of rows, so that answers are compared as far as that goes.
Device TestDevice();

TorchEngineOptions SmallEngine(SearchPlace search);
// Of TinyBundle; null, and a failed test, if it cannot be made.
std::unique_ptr<Engine> MakeEngine(SearchPlace search);

// Any search, with some that only the host can do. The same id gives the same sequence.
SequenceInput AnySequence(SequenceId id);

struct Answer {
  std::vector<Hypothesis> hypotheses;
  std::vector<std::vector<TokenId>> stable;  // where it grew
};

// Decodes a sequence alone.
Answer Decode(Engine& engine, const SequenceInput& input);

// AnySequence(1) … AnySequence(count), added and removed at random; the results of those that were
// not removed.
std::map<SequenceId, std::vector<Hypothesis>> DecodeInBatches(Engine& engine, SequenceId count,
                                                              std::mt19937& random);

// The same bits; on a GPU the same tokens and nearly the same scores, or a tie.
bool SameAnswers(const std::vector<Hypothesis>& a, const std::vector<Hypothesis>& b);

}  // namespace linnet::model::testing
