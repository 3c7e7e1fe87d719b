// Prints how often the lanes of a warp exchange values in a step of CUDA's beam search, on emulated
// threads: count_exchanges ROWS VOCABULARY <LOGITS, with float32 logits. Built by
// tests/gpu/kernel_counts.py, also with the kernels and headers of an earlier commit.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <vector>

#include "model/ops/search/beam_params.h"
#include "tests/ops/cuda/emulation.h"

namespace linnet::ops {
namespace {

constexpr int kBeam = 5, kReach = 4, kLongest = 64, kColumns = 512, kBlocks = 4;
constexpr int kStride = kPlanWords + kBlocks;

// Searches in the middle of a target, as those of tests/gpu/op_times.py.
std::vector<int32_t> PlanOf(int rows) {
  std::vector<int32_t> words(rows * kStride);
  for (int r = 0; r < rows; ++r) {
    const auto plan = [&](int row) -> BeamPlan& {
      return *reinterpret_cast<BeamPlan*>(words.data() + row * kStride);
    };
    plan(r).search = r / kBeam;
    if (r * kBeam + kBeam > rows) continue;
    BeamPlan& own = plan(r);
    own.beam = kBeam;
    own.first_row = r * kBeam;
    own.position = 7;
    own.forced = -1;
    own.may_end = 1;
    own.temperature = 1.0f;
    own.source_tokens = 30;
    own.left = 50;
    std::iota(own.slots, own.slots + kBeam, own.first_row);
  }
  return words;
}

// Memory of the kernel that the earlier commit's does not need.
template <class Params>
void GiveScratch(Params& p, std::vector<float>& highest, std::vector<float>& sums,
                 std::vector<int32_t>& repeated) {
  if constexpr (requires { p.column_highest; }) {
    p.column_highest = highest.data();
    p.column_sums = sums.data();
    p.repeated = repeated.data();
  }
}

int Count(int rows, int vocabulary) {
  std::vector<float> logits(int64_t{rows} * vocabulary);
  if (std::fread(logits.data(), sizeof(float), logits.size(), stdin) != logits.size()) {
    std::fprintf(stderr, "expected %d x %d logits\n", rows, vocabulary);
    return 1;
  }
  const std::vector<int32_t> plan = PlanOf(rows);
  std::vector<int32_t> tokens(rows), backpointers(rows * kReach), history(2 * rows * kLongest),
      counts(2 * rows), states(rows), found_tokens(rows * kMaxFound),
      repeated(rows * (kLongest + 64));
  for (int r = 0; r < rows; ++r) counts[2 * r] = kBeam;
  std::vector<float> sums(rows), found(rows * kMaxFound), also(rows), normalizers(rows),
      highest(rows * kColumns), column_sums(rows * kColumns / 16);
  std::vector<BeamRecord> record(rows);
  BeamStepParams p = {};
  p.plan = plan.data();
  p.tables = {tokens.data(),  sums.data(),   backpointers.data(),
              history.data(), counts.data(), states.data(),
              rows,           kReach,        kLongest};
  p.special = {2, 1, 2, 3};
  p.type = FloatType::kFloat32;
  p.logits = logits.data();
  p.backpointers = backpointers.data();
  p.record = record.data();
  p.found = found.data();
  p.found_tokens = found_tokens.data();
  p.also = also.data();
  p.log_normalizers = normalizers.data();
  p.rows = rows;
  p.plan_stride = kStride;
  p.vocabulary = vocabulary;
  GiveScratch(p, highest, column_sums, repeated);
  BeamStepCuda(p, nullptr);
  uint64_t hash = 1469598103934665603ull;  // FNV-1a of the record
  for (size_t i = 0; i < record.size() * sizeof(BeamRecord); ++i) {
    hash = (hash ^ reinterpret_cast<const uint8_t*>(record.data())[i]) * 1099511628211ull;
  }
  std::printf("{\"exchanges\": %lld, \"record\": \"%016llx\"}\n",
              static_cast<long long>(emulated::exchanges()), static_cast<unsigned long long>(hash));
  return 0;
}

}  // namespace
}  // namespace linnet::ops

int main(int count, char** words) {
  if (count != 3) return 2;
  return linnet::ops::Count(std::atoi(words[1]), std::atoi(words[2]));
}
