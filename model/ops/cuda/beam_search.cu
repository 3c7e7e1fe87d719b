#include "model/ops/cuda/device.cuh"
#include "model/ops/search/beam_body.h"

namespace linnet::ops {
namespace {

constexpr int kRowWarps = 16;
constexpr int kRowThreads = kRowWarps * kWarp;
// Loads of N logits that a thread begins before it reads the first one.
template <int N>
constexpr int kLoads = N <= 4 ? 4 : 2;
constexpr int kSearchThreads = 128;
static_assert(kMaxFound == kWarp, "a warp keeps one of its best in each lane");

// The team of one search is a block.
struct Block {
  __device__ int index() const { return threadIdx.x; }
  __device__ int size() const { return blockDim.x; }
  __device__ void Sync() const { __syncthreads(); }
};

__global__ void FillRows(BeamInputsParams p) { FillRow(p, blockIdx.x, Block()); }

__global__ void __launch_bounds__(kSearchThreads) AdvanceSearches(BeamStepParams p) {
  __shared__ BeamScratch scratch;
  AdvanceSearch(p, blockIdx.x, scratch, Block());
}

// A logit and its token as one integer with the order of candidates: the higher logit is larger, of
// equal ones the lower token. Above 0 for all logits; NaN is not allowed.
using Key = unsigned long long;

__device__ __forceinline__ Key MakeKey(float logit, int token) {
  const unsigned bits = __float_as_uint(logit + 0.0f);  // -0 is 0
  const unsigned ordered = bits & 0x80000000u ? ~bits : bits | 0x80000000u;
  return Key(ordered) << 32 | (0x7fffffffu - unsigned(token));
}

__device__ __forceinline__ int TokenOf(Key key) { return 0x7fffffff - int(key & 0xffffffffu); }

__device__ __forceinline__ float ReadLogit(Key key) {
  const unsigned ordered = unsigned(key >> 32);
  return __uint_as_float(ordered & 0x80000000u ? ordered & 0x7fffffffu : ~ordered);
}

// Running log-sum of one thread: the highest logit so far and the sum of exp(scale * (logit - it)).
struct RunningSum {
  float highest = -FLT_MAX;
  float sum = 0.0f;

  __device__ void Add(float other_highest, float other_sum, float scale) {
    const float now = fmaxf(highest, other_highest);
    sum = sum * __expf(scale * (highest - now)) + other_sum * __expf(scale * (other_highest - now));
    highest = now;
  }
};

// The row's highest logits among those that one warp has read: lane i keeps the i-th best.
class WarpBest {
 public:
  __device__ explicit WarpBest(int wanted) : wanted_(wanted) {}

  // True if a logit as high as that of some lane would be kept.
  __device__ bool Wants(float highest) const {
    return __any_sync(kWholeWarp, MakeKey(highest, 0) > lowest_);
  }

  // Adds the logit and the token of each lane; NaN is ignored. The whole warp calls
  // `allowed(token)` for each token that would be kept.
  template <class Allowed>
  __device__ void Take(float logit, int token, const Allowed& allowed) {
    const Key own = logit == logit ? MakeKey(logit, token) : 0;
    unsigned waiting = __ballot_sync(kWholeWarp, own > lowest_);
    while (waiting != 0) {
      const int from = __ffs(waiting) - 1;
      const Key key = __shfl_sync(kWholeWarp, own, from);
      waiting &= waiting - 1;
      if (key > lowest_ && allowed(TokenOf(key))) Insert(key);
    }
  }

  // 0 in lanes without an entry.
  __device__ Key key() const { return threadIdx.x % kWarp < wanted_ ? key_ : 0; }

 private:
  __device__ void Insert(Key key) {
    const int lane = threadIdx.x % kWarp;
    const int place = __popc(__ballot_sync(kWholeWarp, key_ > key));
    const Key above = __shfl_up_sync(kWholeWarp, key_, 1);
    key_ = lane < place ? key_ : lane == place ? key : above;
    lowest_ = __shfl_sync(kWholeWarp, key_, wanted_ - 1);
  }

  int wanted_;
  Key key_ = 0;
  Key lowest_ = 0;  // smaller keys are not kept
};

// One block computes one row. One pass over the vocabulary gives the log normalizer and the highest
// logits that are not forbidden: each warp keeps those of its part, and they are ranked at the end.
// N logits per load.
template <class T, int N>
__global__ void __launch_bounds__(kRowThreads) FindBest(BeamStepParams p) {
  extern __shared__ int repeated[];  // tokens that would repeat an n-gram
  __shared__ int repeats, unknown_repeats;
  __shared__ Key keys[kRowWarps][kMaxFound];
  __shared__ RunningSum sums[kRowWarps];
  const int64_t row = blockIdx.x;
  const int32_t number = PlanAt(p.plan, p.plan_stride, row).search;
  if (number < 0) return;
  const BeamPlan& plan = PlanAt(p.plan, p.plan_stride, number);
  const int hypothesis = int(row) - plan.first_row;
  if (hypothesis >= LiveHypotheses(plan, p.tables)) return;

  const bool searches = plan.forced < 0;
  const int32_t state = GrammarState(plan, p.tables, plan.slots[hypothesis]);
  const int warp = threadIdx.x / kWarp;
  const int lane = threadIdx.x % kWarp;
  if (threadIdx.x == 0) repeats = unknown_repeats = 0;
  __syncthreads();
  if (ForbidsRepeats(plan) && searches && !InCharacter(p.grammar, state)) {
    const int32_t* history = plan.position == 0
                                 ? &p.special.start
                                 : HistoryAt(p.tables, plan.position, plan.slots[hypothesis]);
    ForRepeats(plan, p.special, history, threadIdx.x, kRowThreads, [&](int32_t token) {
      repeated[atomicAdd(&repeats, 1)] = token;
      if (token == p.special.unk) unknown_repeats = 1;
    });
  }
  __syncthreads();
  const auto allowed = [&](int token) {
    bool set_aside = IsSetAside(plan, p.special, token) || IsBarred(p.grammar, plan, state, token);
    for (int i = lane; i < repeats; i += kWarp) set_aside |= repeated[i] == token;
    return !__any_sync(kWholeWarp, set_aside);
  };

  const T* logits = static_cast<const T*>(p.logits) + row * p.vocabulary;
  const float scale = 1.0f / plan.temperature;
  RunningSum sum;
  WarpBest best(2 * plan.beam);
  // All lanes of a warp do the same number of rounds, since WarpBest uses warp shuffles. A round
  // begins with all its loads, which then wait for the memory together.
  constexpr int64_t kStride = int64_t(kRowThreads) * N;
  for (int64_t at = int64_t(warp) * kWarp * N; at < p.vocabulary; at += kLoads<N> * kStride) {
    const int64_t first = at + int64_t(lane) * N;
    Pack<T, N> packs[kLoads<N>];
#pragma unroll
    for (int load = 0; load < kLoads<N>; ++load) {
      const int64_t own = first + load * kStride;
      if (own < p.vocabulary) packs[load] = *reinterpret_cast<const Pack<T, N>*>(logits + own);
    }
#pragma unroll
    for (int load = 0; load < kLoads<N>; ++load) {
      const int64_t own = first + load * kStride;
      const bool exists = own < p.vocabulary;
      float values[N], highest = -FLT_MAX;
#pragma unroll
      for (int i = 0; i < N; ++i) {
        values[i] = exists ? ToFloat(packs[load].at[i]) : NAN;
        highest = fmaxf(highest, values[i]);
      }
      if (exists) {
        float part = 0.0f;
#pragma unroll
        for (int i = 0; i < N; ++i) part += __expf(scale * (values[i] - highest));
        sum.Add(highest, part, scale);
      }
      if (!searches || !best.Wants(highest)) continue;
#pragma unroll
      for (int i = 0; i < N; ++i) best.Take(values[i], int(own) + i, allowed);
    }
  }

#pragma unroll
  for (int offset = kWarp / 2; offset > 0; offset /= 2) {
    const float highest = __shfl_xor_sync(kWholeWarp, sum.highest, offset);
    const float part = __shfl_xor_sync(kWholeWarp, sum.sum, offset);
    sum.Add(highest, part, scale);
  }
  if (lane == 0) sums[warp] = sum;
  keys[warp][lane] = best.key();
  if (threadIdx.x < kMaxFound) p.found_tokens[row * kMaxFound + threadIdx.x] = -1;
  __syncthreads();

  if (searches) {
    const Key own = keys[warp][lane];
    int rank = own == 0 ? kMaxFound : 0;
    for (int w = 0; w < kRowWarps && own != 0; ++w) {
      for (int i = 0; i < 2 * plan.beam; ++i) rank += keys[w][i] > own;
    }
    if (rank < 2 * plan.beam) {
      p.found[row * kMaxFound + rank] = ReadLogit(own);
      p.found_tokens[row * kMaxFound + rank] = TokenOf(own);
    }
  }
  if (threadIdx.x > 0) return;
  for (int w = 1; w < kRowWarps; ++w) sum.Add(sums[w].highest, sums[w].sum, scale);
  // NaN and +infinity make the sum NaN; a row of -infinity only has the sum 0.
  p.log_normalizers[row] = sum.sum > 0 ? sum.highest * scale + logf(sum.sum) : NAN;
  const int32_t also = ExtraToken(plan, p.special);
  const bool counts =
      also >= 0 && !(searches && (unknown_repeats != 0 || IsBarred(p.grammar, plan, state, also)));
  p.also[row] = counts ? ToFloat(logits[also]) : -INFINITY;
}

}  // namespace

void BeamInputsCuda(const BeamInputsParams& p, void* stream) {
  FillRows<<<p.rows, kWarp, 0, static_cast<cudaStream_t>(stream)>>>(p);
}

void BeamStepCuda(const BeamStepParams& p, void* stream) {
  const auto cuda_stream = static_cast<cudaStream_t>(stream);
  const int64_t shared_bytes = (p.tables.longest + kMaxRepeatedNgram) * sizeof(int);
  DispatchType(p.type, [&](auto element) {
    using T = decltype(element);
    constexpr int kMany = 16 / sizeof(T);
    const auto address = reinterpret_cast<uintptr_t>(p.logits);
    if (p.vocabulary % kMany == 0 && address % 16 == 0) {
      FindBest<T, kMany><<<p.rows, kRowThreads, shared_bytes, cuda_stream>>>(p);
    } else {
      FindBest<T, 1><<<p.rows, kRowThreads, shared_bytes, cuda_stream>>>(p);
    }
  });
  AdvanceSearches<<<p.rows, kSearchThreads, 0, cuda_stream>>>(p);
}

}  // namespace linnet::ops
