#include "model/ops/cuda/device.cuh"
#include "model/ops/search/beam_body.h"

namespace linnet::ops {
namespace {

// A row of logits is read as columns of packs, each by one thread: column c has the packs c,
// c + kColumns, … Therefore the results do not depend on the number of blocks that read a row.
constexpr int kColumns = kLogitColumns;
constexpr int kColumnWarps = kColumns / kWarp;
constexpr int kLoads = 8;       // packs that a thread requests before it reads the first one
constexpr int kReaders = 1024;  // rows are split among so many blocks if there are fewer rows
constexpr int kSearchWarps = 8;
constexpr int kSearchThreads = kSearchWarps * kWarp;
static_assert(kMaxFound == kWarp, "a warp keeps one of its best in each lane");

// The team of one search is a block.
struct Block {
  __device__ int index() const { return threadIdx.x; }
  __device__ int size() const { return blockDim.x; }
  __device__ void Sync() const { __syncthreads(); }
};

__global__ void FillRows(BeamInputsParams p) { FillRow(p, blockIdx.x, Block()); }

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

// First half of a step: the log-sum of each warp's columns, and the highest logit of each column.
// A block reads a row or a part of one. N logits per load.
template <class T, int N>
__global__ void __launch_bounds__(kColumns) ReadRows(BeamStepParams p) {
  const int parts = kColumns / blockDim.x;
  const int64_t row = blockIdx.x / parts;
  const int32_t number = PlanAt(p.plan, p.plan_stride, row).search;
  if (number < 0) return;
  const BeamPlan& plan = PlanAt(p.plan, p.plan_stride, number);
  if (row - plan.first_row >= LiveHypotheses(plan, p.tables)) return;

  const T* logits = static_cast<const T*>(p.logits) + row * p.vocabulary;
  const float scale = 1.0f / plan.temperature;
  const int column = blockIdx.x % parts * blockDim.x + threadIdx.x;
  constexpr int64_t kStride = int64_t(kColumns) * N;
  RunningSum sum;
  for (int64_t first = int64_t(column) * N; first < p.vocabulary; first += kLoads * kStride) {
    Pack<T, N> packs[kLoads];
#pragma unroll
    for (int load = 0; load < kLoads; ++load) {
      const int64_t own = first + load * kStride;
      if (own < p.vocabulary) packs[load] = *reinterpret_cast<const Pack<T, N>*>(logits + own);
    }
#pragma unroll
    for (int load = 0; load < kLoads; ++load) {
      if (first + load * kStride >= p.vocabulary) break;
      float values[N], highest = -FLT_MAX, part = 0.0f;
#pragma unroll
      for (int i = 0; i < N; ++i) {
        values[i] = ToFloat(packs[load].at[i]);
        highest = fmaxf(highest, values[i]);
      }
#pragma unroll
      for (int i = 0; i < N; ++i) part += __expf(scale * (values[i] - highest));
      sum.Add(highest, part, scale);
    }
  }
  p.column_highest[row * kColumns + column] = sum.highest;
#pragma unroll
  for (int offset = kWarp / 2; offset > 0; offset /= 2) {
    const float highest = __shfl_xor_sync(kWholeWarp, sum.highest, offset);
    const float part = __shfl_xor_sync(kWholeWarp, sum.sum, offset);
    sum.Add(highest, part, scale);
  }
  if (column % kWarp > 0) return;
  float* of_warp = p.column_sums + 2 * (row * kColumnWarps + column / kWarp);
  of_warp[0] = sum.highest;
  of_warp[1] = sum.sum;
}

// A row of a search, and what its ranking leaves out. `repeated` lists the tokens that would repeat
// an n-gram.
struct SearchRow {
  const BeamStepParams& p;
  const BeamPlan& plan;
  int64_t row;
  int32_t state;
  const int32_t* repeated;
  int repeats;

  __device__ bool Allows(int token) const {
    bool forbidden =
        IsSetAside(plan, p.special, token) || IsForbiddenByGrammar(p.grammar, plan, state, token);
    for (int i = 0; i < repeats; ++i) forbidden |= repeated[i] == token;
    return !forbidden;
  }
  __device__ void Write(int rank, Key key) const {
    p.found[row * kMaxFound + rank] = ReadLogit(key);
    p.found_tokens[row * kMaxFound + rank] = TokenOf(key);
  }
};

// Columns are ranked in groups; at most so many groups get a rank.
constexpr int kGroups = 2 * kWarp;
constexpr int kMaxRank = 48;
constexpr int kMaxKept = 256;

// Shared memory of a warp that finds the best logits of a row.
struct RowScratch {
  Key keys[kMaxKept];
  uint16_t columns[kColumns];
  int kept, chosen, repeats, unknown_repeats;
};

// Finds the row's highest logits with one warp; returns false if they must be found by
// FindBestOfAll.
//
// The `wanted`-th highest of the groups' highest logits is a lower bound: at least `wanted` logits
// reach it. Only columns that reach it are read again, and few logits have to be ranked.
template <class T, int N>
__device__ bool FindBest(const SearchRow& r, RowScratch& s) {
  constexpr int kColumnsOfGroup = kColumns / kGroups;
  const BeamStepParams& p = r.p;
  const int lane = threadIdx.x % kWarp, best = 2 * r.plan.beam;
  const int set_aside = 3 + r.repeats;  // at most, without a grammar: see IsSetAside
  const int wanted = InCharacter(p.grammar, r.state) ? kMaxRank : min(best + set_aside, kMaxRank);
  float highest[kColumns / kWarp], group[2] = {-FLT_MAX, -FLT_MAX};
#pragma unroll
  for (int i = 0; i < kColumns / kWarp; ++i) {
    highest[i] = p.column_highest[r.row * kColumns + i * kWarp + lane];
    group[i / kColumnsOfGroup] = fmaxf(group[i / kColumnsOfGroup], highest[i]);
  }
  int higher[2] = {0, 0};  // groups
  for (int other = 0; other < kWarp; ++other) {
    const float first = __shfl_sync(kWholeWarp, group[0], other);
    const float second = __shfl_sync(kWholeWarp, group[1], other);
#pragma unroll
    for (int i = 0; i < 2; ++i) higher[i] += (first > group[i]) + (second > group[i]);
  }
  const float bound = -WarpMax(fmaxf(higher[0] < wanted ? -group[0] : -INFINITY,
                                     higher[1] < wanted ? -group[1] : -INFINITY));
  if (bound <= -FLT_MAX) return false;  // a column without logits, or with -infinity alone

  if (lane == 0) s.kept = s.chosen = 0;
  __syncwarp();
#pragma unroll
  for (int i = 0; i < kColumns / kWarp; ++i) {
    if (highest[i] >= bound) s.columns[atomicAdd(&s.chosen, 1)] = i * kWarp + lane;
  }
  __syncwarp();
  if (s.chosen > kMaxKept) return false;  // too many equal logits
  const T* logits = static_cast<const T*>(p.logits) + r.row * p.vocabulary;
  const int vocabulary = int(p.vocabulary);
  const int depth = (vocabulary + kColumns * N - 1) / (kColumns * N);  // packs of a column
  constexpr int kAtOnce = 4;
  static_assert(kAtOnce * N <= 32);
  for (int first = lane; first < s.chosen * depth; first += kAtOnce * kWarp) {
    // The first token of a pack, or the vocabulary where there is none.
    const auto token_of = [&](int load) {
      const int pack = first + load * kWarp, column = pack / depth;
      if (column >= s.chosen) return vocabulary;
      return min((s.columns[column] + pack % depth * kColumns) * N, vocabulary);
    };
    Pack<T, N> packs[kAtOnce] = {};
    bool exists[kAtOnce];
#pragma unroll
    for (int load = 0; load < kAtOnce; ++load) {
      const int token = token_of(load);
      exists[load] = token < vocabulary;
      if (exists[load]) packs[load] = *reinterpret_cast<const Pack<T, N>*>(logits + token);
    }
    unsigned reach = 0;  // a bit for each logit
#pragma unroll
    for (int i = 0; i < kAtOnce * N; ++i) {
      reach |= unsigned(exists[i / N] && ToFloat(packs[i / N].at[i % N]) >= bound) << i;
    }
    for (; reach != 0; reach &= reach - 1) {
      const int i = __ffs(reach) - 1, token = token_of(i / N) + i % N;
      if (!r.Allows(token)) continue;
      const int place = atomicAdd(&s.kept, 1);
      if (place < kMaxKept) s.keys[place] = MakeKey(ToFloat(logits[token]), token);
    }
  }
  __syncwarp();
  if (s.kept < best || s.kept > kMaxKept) return false;
  for (int i = lane; i < s.kept; i += kWarp) {
    const Key own = s.keys[i];
    int rank = 0;
    for (int j = 0; j < s.kept; ++j) rank += s.keys[j] > own;
    if (rank < best) r.Write(rank, own);
  }
  if (lane >= best) p.found_tokens[r.row * kMaxFound + lane] = -1;
  return true;
}

// The highest logits among those that one warp has read: lane i keeps the i-th best.
class WarpBest {
 public:
  __device__ explicit WarpBest(int wanted) : wanted_(wanted) {}

  // Adds a logit and its token of each lane; NaN and what the row forbids are ignored.
  __device__ void Take(float logit, int token, const SearchRow& row) {
    Key own = logit == logit ? MakeKey(logit, token) : 0;
    if (own <= lowest_ || !row.Allows(token)) own = 0;
    unsigned waiting = __ballot_sync(kWholeWarp, own > lowest_);
    while (waiting != 0) {
      const int from = __ffs(waiting) - 1;
      const Key key = __shfl_sync(kWholeWarp, own, from);
      waiting &= waiting - 1;
      if (key > lowest_) Insert(key);
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

// Finds the row's highest logits with the whole block, whatever the row forbids: each warp keeps
// those of its part, and they are ranked at the end.
template <class T>
__device__ void FindBestOfAll(const SearchRow& r, RowScratch* of_warps) {
  const BeamStepParams& p = r.p;
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp, best = 2 * r.plan.beam;
  const T* logits = static_cast<const T*>(p.logits) + r.row * p.vocabulary;
  WarpBest kept(best);
  // All lanes of a warp do the same number of rounds, since WarpBest uses warp shuffles.
  for (int64_t at = warp * kWarp; at < p.vocabulary; at += kSearchThreads) {
    const int64_t own = at + lane;
    kept.Take(own < p.vocabulary ? ToFloat(logits[own]) : NAN, int(own), r);
  }
  const Key own = of_warps[warp].keys[lane] = kept.key();
  if (threadIdx.x < kMaxFound) p.found_tokens[r.row * kMaxFound + threadIdx.x] = -1;
  __syncthreads();
  int rank = own == 0 ? kMaxFound : 0;
  for (int w = 0; w < kSearchWarps && own != 0; ++w) {
    for (int i = 0; i < best; ++i) rank += of_warps[w].keys[i] > own;
  }
  if (rank < best) r.Write(rank, own);
  __syncthreads();
}

// Writes the row's normalizer and the logit of its extra token. One thread calls it.
__device__ void WriteNormalizer(const SearchRow& r, float logit, bool unknown_repeats) {
  const float scale = 1.0f / r.plan.temperature;
  const float* sums = r.p.column_sums + 2 * r.row * kColumnWarps;
  RunningSum sum = {sums[0], sums[1]};
  for (int w = 1; w < kColumnWarps; ++w) sum.Add(sums[2 * w], sums[2 * w + 1], scale);
  // NaN and +infinity make the sum NaN; a row of -infinity only has the sum 0.
  r.p.log_normalizers[r.row] = sum.sum > 0 ? sum.highest * scale + logf(sum.sum) : NAN;
  const int32_t also = ExtraToken(r.plan, r.p.special);
  const bool forbidden =
      r.plan.forced < 0 &&
      (unknown_repeats || (also >= 0 && IsForbiddenByGrammar(r.p.grammar, r.plan, r.state, also)));
  r.p.also[r.row] = also >= 0 && !forbidden ? logit : -INFINITY;
}

// Second half of a step: a block finds the best logits of its search's rows, a warp those of a row,
// and advances the search.
template <class T, int N>
__global__ void __launch_bounds__(kSearchThreads) AdvanceSearches(BeamStepParams p) {
  __shared__ RowScratch of_warps[kSearchWarps];
  __shared__ BeamScratch scratch;
  __shared__ bool found[kMaxBeam];
  __shared__ int repeats[kMaxBeam];
  const BeamPlan& plan = PlanAt(p.plan, p.plan_stride, blockIdx.x);
  if (plan.beam == 0) return;
  const int live = LiveHypotheses(plan, p.tables);
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  const bool searches = plan.forced < 0;
  const int64_t max_repeats = p.tables.longest + kMaxRepeatedNgram;
  const auto row_of = [&](int i, int count) {
    const int64_t row = plan.first_row + i;
    return SearchRow{p,
                     plan,
                     row,
                     GrammarState(plan, p.tables, plan.slots[i]),
                     p.repeated + row * max_repeats,
                     count};
  };
  for (int i = warp; i < live; i += kSearchWarps) {
    RowScratch& s = of_warps[warp];
    SearchRow r = row_of(i, 0);
    if (lane == 0) s.repeats = s.unknown_repeats = 0;
    __syncwarp();
    if (ForbidsRepeats(plan) && searches && !InCharacter(p.grammar, r.state)) {
      const int32_t* history =
          plan.position == 0 ? &p.special.start : HistoryAt(p.tables, plan.position, plan.slots[i]);
      int32_t* repeated = p.repeated + r.row * max_repeats;
      ForRepeats(plan, p.special, history, lane, kWarp, [&](int32_t token) {
        repeated[atomicAdd(&s.repeats, 1)] = token;
        if (token == p.special.unk) s.unknown_repeats = 1;
      });
    }
    __syncwarp();
    r.repeats = s.repeats;
    const bool done = !searches || FindBest<T, N>(r, s);
    if (!searches) p.found_tokens[r.row * kMaxFound + lane] = -1;
    if (lane > 0) continue;
    found[i] = done;
    repeats[i] = r.repeats;
    const int32_t also = ExtraToken(plan, p.special);
    const T* logits = static_cast<const T*>(p.logits) + r.row * p.vocabulary;
    WriteNormalizer(r, also >= 0 ? ToFloat(logits[also]) : 0.0f, s.unknown_repeats != 0);
  }
  __syncthreads();
  for (int i = 0; i < live; ++i) {
    if (!found[i]) FindBestOfAll<T>(row_of(i, repeats[i]), of_warps);
  }
  AdvanceSearch(p, blockIdx.x, scratch, Block());
}

template <class T, int N>
void LaunchStep(const BeamStepParams& p, cudaStream_t stream) {
  int threads = kColumns;  // of a block that reads logits
  while (threads > kWarp && p.rows * (kColumns / threads) * 2 <= kReaders) threads /= 2;
  const int64_t readers = p.rows * (kColumns / threads);
  ReadRows<T, N><<<readers, threads, 0, stream>>>(p);
  AdvanceSearches<T, N><<<p.rows, kSearchThreads, 0, stream>>>(p);
}

}  // namespace

void BeamInputsCuda(const BeamInputsParams& p, void* stream) {
  FillRows<<<p.rows, kWarp, 0, static_cast<cudaStream_t>(stream)>>>(p);
}

void BeamStepCuda(const BeamStepParams& p, void* stream) {
  const auto cuda_stream = static_cast<cudaStream_t>(stream);
  DispatchType(p.type, [&](auto element) {
    using T = decltype(element);
    constexpr int kMany = 16 / sizeof(T);
    const auto address = reinterpret_cast<uintptr_t>(p.logits);
    if (p.vocabulary % kMany == 0 && address % 16 == 0) {
      LaunchStep<T, kMany>(p, cuda_stream);
    } else {
      LaunchStep<T, 1>(p, cuda_stream);
    }
  });
}

}  // namespace linnet::ops
