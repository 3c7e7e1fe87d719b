#pragma once

#include <map>
#include <memory>
#include <random>
#include <vector>

#include "model/torch/torch_engine.h"

// Random decoding, for comparing two engines.
namespace linnet::model::testing {

// LINNET_TEST_DEVICE, or the CPU. On a GPU the last bits of floating point sums depend on the
// number of rows, so answers are compared with a tolerance.
Device TestDevice();

TorchEngineOptions SmallEngine(SearchPlace search);
// An engine on TinyBundle; on failure null, and the test fails.
std::unique_ptr<Engine> MakeEngine(SearchPlace search);

// A random sequence, determined by the id; some need a search on the host.
SequenceInput AnySequence(SequenceId id);

struct Answer {
  std::vector<Hypothesis> hypotheses;
  std::vector<std::vector<TokenId>> stable;  // whenever it grew
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
