#pragma once

#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>

#include "model/ops/cpu/isa.h"
#include "model/ops/params.h"

// Vector code of the CPU kernels: a softmax over a few scores, and a sum of rows of channels
// weighted by it. Sums are kept in float32.
//
// The vectors are those of GCC's and clang's vector extension, with W floats, the size of a
// register of the instruction set. Everything here is inlined into the three instances of RunBest:
// otherwise the linker could pick a copy compiled for an instruction set that the processor lacks.
//
// The same softmax and sum with Google Highway 1.0.3 (Debian 12's) took .75 to .97 of the time for
// 160 rows of 512 channels and 3 to 31 taps on a Zen 5 core, with equal bits where one vector holds
// the taps. The convolution is 3 % of a step, so it is not worth a library by which every kernel
// file is compiled once per instruction set through an include of itself.
namespace linnet::ops {

#define LINNET_INLINE inline __attribute__((always_inline))

struct BFloat16 {
  uint16_t bits;
};

LINNET_INLINE float ToFloat(float value) { return value; }

LINNET_INLINE float ToFloat(BFloat16 value) {
  const uint32_t bits = static_cast<uint32_t>(value.bits) << 16;
  float wide;
  std::memcpy(&wide, &bits, sizeof(wide));
  return wide;
}

LINNET_INLINE void FromFloat(float value, float* to) { *to = value; }

// Rounds to nearest, ties to even; NaN stays NaN.
LINNET_INLINE void FromFloat(float value, BFloat16* to) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  to->bits = value == value ? (bits + 0x7fff + ((bits >> 16) & 1)) >> 16 : 0x7fc0;
}

template <int W>
struct VectorTypes;

template <>
struct VectorTypes<4> {
  typedef float Floats __attribute__((vector_size(16)));
  typedef uint32_t Bits __attribute__((vector_size(16)));
  typedef uint16_t Halves __attribute__((vector_size(8)));
};

template <>
struct VectorTypes<8> {
  typedef float Floats __attribute__((vector_size(32)));
  typedef uint32_t Bits __attribute__((vector_size(32)));
  typedef uint16_t Halves __attribute__((vector_size(16)));
};

template <>
struct VectorTypes<16> {
  typedef float Floats __attribute__((vector_size(64)));
  typedef uint32_t Bits __attribute__((vector_size(64)));
  typedef uint16_t Halves __attribute__((vector_size(32)));
};

template <int W>
struct Vectors {
  using Floats = typename VectorTypes<W>::Floats;
  using Bits = typename VectorTypes<W>::Bits;
  using Halves = typename VectorTypes<W>::Halves;

  static LINNET_INLINE Floats Load(const float* from) {
    Floats v;
    std::memcpy(&v, from, sizeof(v));
    return v;
  }

  static LINNET_INLINE Floats Load(const BFloat16* from) {
    Halves halves;
    std::memcpy(&halves, from, sizeof(halves));
    return (Floats)(__builtin_convertvector(halves, Bits) << 16);
  }

  static LINNET_INLINE void Store(Floats v, float* to) { std::memcpy(to, &v, sizeof(v)); }

  static LINNET_INLINE void Store(Floats v, BFloat16* to) {
    const Halves halves = __builtin_convertvector(Round(v) >> 16, Halves);
    std::memcpy(to, &halves, sizeof(halves));
  }

  // Returns v in bfloat16 in the upper halves. Rounds like FromFloat.
  static LINNET_INLINE Bits Round(Floats v) {
    const Bits bits = (Bits)v;
    return v == v ? bits + 0x7fff + ((bits >> 16) & 1) : Bits{} + 0x7fc00000;
  }

  // 0, 1 … W - 1.
  static LINNET_INLINE Floats Lanes() {
    Floats v;
    for (int i = 0; i < W; ++i) v[i] = i;
    return v;
  }

  // Loads N vectors of neighbouring elements. bfloat16 is loaded in pairs of vectors, even elements
  // in the first and odd ones in the second: that takes a shift and a mask, where GCC 12 needs five
  // instructions to keep them in order.
  template <int N>
  static LINNET_INLINE void LoadMany(const float* from, Floats* to) {
    for (int i = 0; i < N; ++i) to[i] = Load(from + i * W);
  }

  template <int N>
  static LINNET_INLINE void LoadMany(const BFloat16* from, Floats* to) {
    if constexpr (N == 1) {
      to[0] = Load(from);
    } else {
      static_assert(N % 2 == 0);
      for (int i = 0; i < N; i += 2) {
        Bits pairs;
        std::memcpy(&pairs, from + i * W, sizeof(pairs));
        to[i] = (Floats)(pairs << 16);
        to[i + 1] = (Floats)(pairs & 0xffff0000);
      }
    }
  }

  // The reverse of LoadMany.
  template <int N>
  static LINNET_INLINE void StoreMany(const Floats* from, float* to) {
    for (int i = 0; i < N; ++i) Store(from[i], to + i * W);
  }

  template <int N>
  static LINNET_INLINE void StoreMany(const Floats* from, BFloat16* to) {
    if constexpr (N == 1) {
      Store(from[0], to);
    } else {
      for (int i = 0; i < N; i += 2) {
        const Bits pairs = Round(from[i]) >> 16 | (Round(from[i + 1]) & 0xffff0000);
        std::memcpy(to + i * W, &pairs, sizeof(pairs));
      }
    }
  }

  // The lower (0) or upper half, in registers: a copy through memory would take longer.
  template <int Upper>
  static LINNET_INLINE auto Half(Floats v) {
    constexpr int k = Upper * W / 2;
    if constexpr (W == 16) {
      return __builtin_shufflevector(v, v, k, k + 1, k + 2, k + 3, k + 4, k + 5, k + 6, k + 7);
    } else {
      return __builtin_shufflevector(v, v, k, k + 1, k + 2, k + 3);
    }
  }

  static LINNET_INLINE float Sum(Floats v) {
    if constexpr (W > 4) {
      return Vectors<W / 2>::Sum(Half<0>(v) + Half<1>(v));
    } else {
      return (v[0] + v[2]) + (v[1] + v[3]);
    }
  }

  // Ignores NaN in `a`; the sum of exponentials becomes NaN anyway. (With more than one comparison
  // in the selection GCC 12 splits vectors of 512 bits.)
  static LINNET_INLINE Floats Max(Floats a, Floats b) { return a > b ? a : b; }

  static LINNET_INLINE float Max(Floats v) {
    if constexpr (W > 4) {
      using Narrow = Vectors<W / 2>;
      return Narrow::Max(Narrow::Max(Half<0>(v), Half<1>(v)));
    } else {
      const float a = v[0] > v[2] ? v[0] : v[2], b = v[1] > v[3] ? v[1] : v[3];
      return a > b ? a : b;
    }
  }

  // e^v for v <= 0 within 2 units in the last place; below -87 (e^v < 2e-38) it is 0.
  // e^v = 2^n e^r with n = round(v / ln 2), |r| <= ln(2) / 2, and the Taylor series of e^r to r^7.
  static LINNET_INLINE Floats Exp(Floats v) {
    constexpr float kLowest = -87.0f;
    constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: adding it leaves no bits for a fraction
    constexpr float kLog2E = 1.44269504f;
    constexpr float kLn2High = 0.693359375f, kLn2Low = -2.12194440e-4f;  // high: 9 bits, exact in n
    const Floats bounded = v < kLowest ? Floats{} + kLowest : v;
    const Floats shifted = bounded * kLog2E + kRound;
    const Floats n = shifted - kRound;
    const Floats r = (bounded - n * kLn2High) - n * kLn2Low;
    Floats series = Floats{} + 1.0f / 5040;
    series = series * r + 1.0f / 720;
    series = series * r + 1.0f / 120;
    series = series * r + 1.0f / 24;
    series = series * r + 1.0f / 6;
    series = series * r + 0.5f;
    series = series * r + 1.0f;
    series = series * r + 1.0f;
    const Floats power = (Floats)(((Bits)shifted + 127) << 23);  // the low bits of shifted are n
    return v < kLowest ? Floats{} : series * power;
  }

  // 1 / (1 + e^-v); the exponential never overflows.
  static LINNET_INLINE Floats Sigmoid(Floats v) {
    const Floats e = Exp(v < 0 ? v : -v);
    const Floats s = 1.0f / (1.0f + e);
    return v < 0 ? e * s : s;
  }
};

// Rounds up to whole vectors of any width.
LINNET_INLINE int64_t PaddedWidth(int64_t width) { return (width + 15) / 16 * 16; }

// out[i] = exp(scores[i]) / sum_i exp(scores[i]) for i < count. out has PaddedWidth(count) floats;
// those after count become zero up to a whole vector. out and scores may be the same. `readable`
// elements of scores may be read; the rest of them has no effect.
//
// A partial last vector is read so that it ends with the last score; it overlaps the one before,
// and overlapping scores are summed once. It stays in a register and is stored last: a load that
// spans two recent stores waits until both have reached the cache.
template <int W, class T>
LINNET_INLINE void Softmax(const T* scores, int64_t count, int64_t readable, float* out) {
  using V = Vectors<W>;
  const auto min = typename V::Floats{} - std::numeric_limits<float>::infinity();
  const auto lanes = V::Lanes();
  const int64_t rest = count % W, whole = count - rest;
  auto last = min;
  if (rest > 0 && whole > 0) {
    last = V::Load(scores + count - W);
  } else if (rest > 0 && readable >= W) {
    last = lanes < static_cast<float>(count) ? V::Load(scores) : min;
  } else if (rest > 0) {
    // Short copies that are loaded as one vector wait until they have reached the cache.
    T few[W] = {};
    std::memcpy(few, scores, count * sizeof(T));
    last = lanes < static_cast<float>(count) ? V::Load(few) : min;
  }
  auto max = last;
  for (int64_t i = 0; i < whole; i += W) max = V::Max(V::Load(scores + i), max);
  const float highest = V::Max(max);
  typename V::Floats sums = {};
  for (int64_t i = 0; i < whole; i += W) {
    const auto e = V::Exp(V::Load(scores + i) - highest);
    V::Store(e, out + i);
    sums += e;
  }
  if (rest > 0) {
    last = V::Exp(last - highest);
    const float again = whole > 0 ? W - rest : 0;
    sums += lanes < again ? typename V::Floats{} : last;
  }
  const float scale = 1.0f / V::Sum(sums);
  for (int64_t i = 0; i < whole; i += W) V::Store(V::Load(out + i) * scale, out + i);
  if (rest > 0) {
    V::Store(typename V::Floats{}, out + whole);
    V::Store(last * scale, whole > 0 ? out + count - W : out);
  }
}

// The filters of a light convolution, the same at all positions: `count` softmaxes, `stride` floats
// apart.
template <class T>
struct SoftmaxRows {
  template <int W>
  static LINNET_INLINE void Run(const T* scores, int64_t count, int64_t width, int64_t stride,
                                float* out) {
    for (int64_t i = 0; i < count; ++i) {
      Softmax<W>(scores + i * width, width, (count - i) * width, out + i * stride);
    }
  }
};

// Weights of a sum of rows: one number for all channels of row j (from a softmax), or one number
// per channel (`stride` of them per row).
struct RowWeights {
  const float* at;

  LINNET_INLINE float One(int64_t j, int64_t) const { return at[j]; }

  template <int W, int N>
  LINNET_INLINE void Load(int64_t j, int64_t, typename Vectors<W>::Floats* to) const {
    for (int i = 0; i < N; ++i) to[i] = typename Vectors<W>::Floats{} + at[j];
  }
};

template <class T>
struct ChannelWeights {
  const T* at;
  int64_t stride;

  LINNET_INLINE float One(int64_t j, int64_t c) const { return ToFloat(at[j * stride + c]); }

  template <int W, int N>
  LINNET_INLINE void Load(int64_t j, int64_t c, typename Vectors<W>::Floats* to) const {
    Vectors<W>::template LoadMany<N>(at + j * stride + c, to);  // in the order of the rows
  }
};

// out[c] = sum_j weight(j, c) * rows(j)[c] for N vectors of channels from c on, added in order of
// j.
template <int W, int N, class Weights, class T, class Rows>
LINNET_INLINE void WeightedSumBlock(const Weights& weights, int64_t count, const Rows& rows,
                                    int64_t c, T* out) {
  using V = Vectors<W>;
  typename V::Floats sums[N] = {};
  for (int64_t j = 0; j < count; ++j) {
    typename V::Floats row[N], weight[N];
    V::template LoadMany<N>(rows(j) + c, row);
    weights.template Load<W, N>(j, c, weight);
    for (int i = 0; i < N; ++i) sums[i] += weight[i] * row[i];
  }
  V::template StoreMany<N>(sums, out + c);
}

// out[c] = sum_j weight(j, c) * rows(j)[c] for c < channels, j < count; `rows` maps j to a pointer.
// Every sum uses vector operations: GCC compiles a scalar loop with or without FMA, depending on
// the surrounding code, and steps would then differ from whole sequences in the last bit.
template <int W, class Weights, class T, class Rows>
LINNET_INLINE void WeightedSum(const Weights& weights, int64_t count, const Rows& rows,
                               int64_t channels, T* out) {
  constexpr int kMany = W == 16 ? 4 : 8;  // enough independent sums to hide the latency of an FMA
  int64_t c = 0;
  for (; c + kMany * W <= channels; c += kMany * W) {
    WeightedSumBlock<W, kMany>(weights, count, rows, c, out);
  }
  for (; c + W <= channels; c += W) WeightedSumBlock<W, 1>(weights, count, rows, c, out);
  if (c == channels) return;
  if (channels >= W) {  // the last vector again covers some channels of the one before
    WeightedSumBlock<W, 1>(weights, count, rows, channels - W, out);
  } else if constexpr (W > 4) {
    WeightedSum<W / 2>(weights, count, rows, channels, out);
  } else {
    for (; c < channels; ++c) {
      Vectors<4>::Floats sum = {};
      for (int64_t j = 0; j < count; ++j) {
        sum += weights.One(j, c) * Vectors<4>::Floats{ToFloat(rows(j)[c])};
      }
      FromFloat(sum[0], out + c);
    }
  }
}

template <class Kernel, class... Args>
__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma"))) void RunAvx512(
    const Args&... args) {
  Kernel::template Run<16>(args...);
}

template <class Kernel, class... Args>
__attribute__((target("avx2,fma"))) void RunAvx2(const Args&... args) {
  Kernel::template Run<8>(args...);
}

// Calls Kernel::Run<W>(args...), which must be LINNET_INLINE, compiled for this processor.
template <class Kernel, class... Args>
void RunBest(const Args&... args) {
  switch (HostIsa()) {
    case Isa::kAvx512:
      return RunAvx512<Kernel>(args...);
    case Isa::kAvx2:
      return RunAvx2<Kernel>(args...);
    case Isa::kBaseline:
      return Kernel::template Run<4>(args...);
  }
}

// Calls run(T()) with the type of an operator. Its checks allow no third one on the CPU.
template <class Run>
void DispatchCpuType(FloatType type, const Run& run) {
  if (type == FloatType::kFloat32) {
    run(float{});
  } else {
    run(BFloat16{});
  }
}

// The filters of a convolution, `stride` floats apart; null if they are dynamic.
template <class T, class Params>
std::unique_ptr<float[]> LightFilters(const Params& p, int64_t stride) {
  if (p.dynamic) return nullptr;
  std::unique_ptr<float[]> filters(new float[p.heads * stride]);
  RunBest<SoftmaxRows<T>>(static_cast<const T*>(p.weight), p.heads, p.width, stride, filters.get());
  return filters;
}

}  // namespace linnet::ops
