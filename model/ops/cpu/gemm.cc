#include "model/ops/cpu/gemm.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "model/ops/cpu/gemm_tiles.h"
#include "model/ops/cpu/vectors.h"

#ifdef __clang__
#define LINNET_UNROLL _Pragma("unroll")
#else
#define LINNET_UNROLL _Pragma("GCC unroll 8")
#endif

namespace linnet::ops {
namespace {

constexpr int64_t kPanel = PackedMatrix::kPanel;
constexpr int64_t kGroup = PackedMatrix::kGroup;
// Rows of a tile. Its sums, kTileRows x TileWidth vectors, fill the registers.
constexpr int kTileRows = 6;
// Rows that are multiplied with all panels before the next ones, so that they stay in the L2 cache.
constexpr int64_t kBlockRows = 96;

// Vectors side by side in a tile: 6 x 4 sums, 4 weights and a value fit AVX512's 32 registers,
// 6 x 2 the 16 of the others.
template <int W>
constexpr int TileWidth = W == 16 ? 4 : 2;

// Prefetches a part of the next panel while this one is multiplied, some cache lines per step of k.
// The weights of a model do not stay in the L2 cache from step to step, and without prefetching the
// processor waits for each new panel. On the machine of gemm.h with weights that are not in the
// cache, microseconds without and with it: 512 x 2048 float32, 5, 32 and 160 rows, 120 and 89, 344
// and 229, 1074 and 1011; int8 19 and 19, 57 and 45, 274 and 212.
struct ReadAhead {
  const char* at = nullptr;
  int lines = 0;

  LINNET_INLINE void Step() {
    constexpr int kCacheLine = 64, kSecondLevel = 2;
    for (int i = 0; i < lines; ++i, at += kCacheLine) __builtin_prefetch(at, 0, kSecondLevel);
  }
};

struct Float32 {
  static const char* PanelAt(const PackedMatrix& weight, int64_t panel) {
    return reinterpret_cast<const char*>(weight.float_panel(panel));
  }

  template <int W, int M>
  static LINNET_INLINE void Tile(const GemmParams& p, int64_t row, int64_t panel, int64_t column,
                                 ReadAhead ahead) {
    using V = Vectors<W>;
    constexpr int N = TileWidth<W>;
    const int64_t inputs = p.weight->inputs();
    const float* weight = p.weight->float_panel(panel) + column;
    const float* x = p.x + row * inputs;
    typename V::Floats sums[M][N];
    LINNET_UNROLL
    for (int i = 0; i < M; ++i) {
      LINNET_UNROLL
      for (int j = 0; j < N; ++j) sums[i][j] = typename V::Floats{};
    }
    for (int64_t k = 0; k < inputs; ++k, weight += kPanel) {
      ahead.Step();
      typename V::Floats weights[N];
      LINNET_UNROLL
      for (int j = 0; j < N; ++j) weights[j] = V::Load(weight + j * W);
      LINNET_UNROLL
      for (int i = 0; i < M; ++i) {
        const auto value = x[i * inputs + k] - typename V::Floats{};
        LINNET_UNROLL
        for (int j = 0; j < N; ++j) sums[i][j] += value * weights[j];
      }
    }
    const int64_t at = (panel - p.begin) * kPanel + column;
    LINNET_UNROLL
    for (int j = 0; j < N; ++j) {
      const auto bias =
          p.bias ? V::Load(p.bias + panel * kPanel + column + j * W) : typename V::Floats{};
      LINNET_UNROLL
      for (int i = 0; i < M; ++i) {
        V::Store(sums[i][j] + bias, p.out + (row + i) * p.out_stride + at + j * W);
      }
    }
  }
};

// Adds to each sum the products of four unsigned and four signed bytes, exactly.
#ifdef __clang__
// clang rejects assembly and builtins of an instruction set in a function that is only inlined into
// one that is compiled for it. Releases are built with GCC.
template <int Bytes>
struct AnyInstructions {
  typedef int32_t Ints __attribute__((vector_size(Bytes)));
  static LINNET_INLINE void Add(Ints& sums, Ints values, Ints weights) {
    for (int i = 0; i < 4; ++i) {
      sums += (Ints)(values >> 8 * i & 255) * (Ints)(weights << (24 - 8 * i) >> 24);
    }
  }
};
using Vnni = AnyInstructions<64>;
using Avx2 = AnyInstructions<32>;
using Baseline = AnyInstructions<16>;
#else
// In assembly: GCC 12 keeps the sums of its builtin in memory, at half the speed.
struct Vnni {
  typedef int32_t Ints __attribute__((vector_size(64)));
  static LINNET_INLINE void Add(Ints& sums, Ints values, Ints weights) {
    __asm__("vpdpbusd %2, %1, %0" : "+v"(sums) : "v"(values), "v"(weights));
  }
};

// Without VNNI: vpmaddubsw would saturate, so even and odd bytes are spread to 16 bits first.
template <int Bytes>
struct Spread {
  typedef int32_t Ints __attribute__((vector_size(Bytes)));
  typedef int16_t Shorts __attribute__((vector_size(Bytes)));
  typedef uint16_t Halves __attribute__((vector_size(Bytes)));
  static LINNET_INLINE Ints Even(Ints v) { return (Ints)((Shorts)((Halves)v << 8) >> 8); }
  static LINNET_INLINE Ints Odd(Ints v) { return (Ints)((Shorts)v >> 8); }
  static LINNET_INLINE Ints EvenUnsigned(Ints v) { return (Ints)((Halves)v & 255); }
  static LINNET_INLINE Ints OddUnsigned(Ints v) { return (Ints)((Halves)v >> 8); }
};

struct Avx2 : Spread<32> {
  static LINNET_INLINE void Add(Ints& sums, Ints values, Ints weights) {
    Ints even, odd;
    __asm__("vpmaddwd %2, %1, %0" : "=x"(even) : "x"(EvenUnsigned(values)), "x"(Even(weights)));
    __asm__("vpmaddwd %2, %1, %0" : "=x"(odd) : "x"(OddUnsigned(values)), "x"(Odd(weights)));
    sums += even + odd;
  }
};

struct Baseline : Spread<16> {
  static LINNET_INLINE void Add(Ints& sums, Ints values, Ints weights) {
    Ints even = EvenUnsigned(values), odd = OddUnsigned(values);
    __asm__("pmaddwd %1, %0" : "+x"(even) : "x"(Even(weights)));
    __asm__("pmaddwd %1, %0" : "+x"(odd) : "x"(Odd(weights)));
    sums += even + odd;
  }
};
#endif

template <int W>
struct Int8Instructions;
template <>
struct Int8Instructions<4> {
  using Type = Baseline;
};
template <>
struct Int8Instructions<8> {
  using Type = Avx2;
};
template <>
struct Int8Instructions<16> {
  using Type = Vnni;
};

struct Int8 {
  static const char* PanelAt(const PackedMatrix& weight, int64_t panel) {
    return reinterpret_cast<const char*>(weight.int8_panel(panel));
  }

  template <int W, int M>
  static LINNET_INLINE void Tile(const GemmParams& p, int64_t row, int64_t panel, int64_t column,
                                 ReadAhead ahead) {
    using V = Vectors<W>;
    using Instructions = typename Int8Instructions<W>::Type;
    using Ints = typename Instructions::Ints;
    constexpr int N = TileWidth<W>;
    const int64_t depth = p.weight->depth();
    const int8_t* weight = p.weight->int8_panel(panel) + column * kGroup;
    const uint8_t* x = p.values + row * depth;
    const int64_t first = panel * kPanel + column;
    Ints sums[M][N];
    LINNET_UNROLL
    for (int j = 0; j < N; ++j) {
      Ints corrections;
      std::memcpy(&corrections, p.weight->corrections() + first + j * W, sizeof(corrections));
      LINNET_UNROLL
      for (int i = 0; i < M; ++i) sums[i][j] = corrections;
    }
    for (int64_t k = 0; k < depth; k += kGroup, weight += kPanel * kGroup) {
      ahead.Step();
      Ints weights[N];
      LINNET_UNROLL
      for (int j = 0; j < N; ++j) std::memcpy(&weights[j], weight + j * W * kGroup, sizeof(Ints));
      LINNET_UNROLL
      for (int i = 0; i < M; ++i) {
        int32_t group;
        std::memcpy(&group, x + i * depth + k, sizeof(group));
        const Ints values = group + Ints{};
        LINNET_UNROLL
        for (int j = 0; j < N; ++j) Instructions::Add(sums[i][j], values, weights[j]);
      }
    }
    const int64_t at = (panel - p.begin) * kPanel + column;
    LINNET_UNROLL
    for (int j = 0; j < N; ++j) {
      const auto scales = V::Load(p.weight->scales() + first + j * W);
      const auto bias = p.bias ? V::Load(p.bias + first + j * W) : typename V::Floats{};
      LINNET_UNROLL
      for (int i = 0; i < M; ++i) {
        const auto sum = __builtin_convertvector(sums[i][j], typename V::Floats);
        V::Store(FinishInt8<W>(sum, p.row_scales[row + i], scales, bias),
                 p.out + (row + i) * p.out_stride + at + j * W);
      }
    }
  }
};

template <class Type>
struct Kernel {
  // The part of the next panel that tile `tile` of `tiles` prefetches: some cache lines per step of
  // k, whose weights are four cache lines.
  static LINNET_INLINE ReadAhead Ahead(const GemmParams& p, int64_t panel, int64_t tile,
                                       int64_t tiles) {
    constexpr int kLines = 4;
    const int64_t lines = tiles >= kLines ? 1 : tiles >= 2 ? 2 : kLines;
    // With one or two rows memory bandwidth is the limit, and prefetching does not help.
    if (p.rows <= 2 || panel + 1 >= p.weight->panels() || tile >= kLines / lines) return {};
    const char* next = Type::PanelAt(*p.weight, panel + 1);
    const int64_t bytes = next - Type::PanelAt(*p.weight, panel);
    return {next + bytes / kLines * lines * tile, static_cast<int>(lines)};
  }

  template <int W, int M>
  static LINNET_INLINE void Panel(const GemmParams& p, int64_t row, int64_t panel,
                                  ReadAhead ahead) {
    for (int64_t column = 0; column < kPanel; column += TileWidth<W> * W) {
      Type::template Tile<W, M>(p, row, panel, column, column == 0 ? ahead : ReadAhead{});
    }
  }

  template <int W>
  static LINNET_INLINE void Run(const GemmParams& p) {
    static_assert(kTileRows == 6);
    for (int64_t block = 0; block < p.rows; block += kBlockRows) {
      const int64_t end = std::min(p.rows, block + kBlockRows);
      // Tiles of equal height: for 8 rows, two of 4 are faster than one of 6 and one of 2.
      const int64_t tiles = (end - block + kTileRows - 1) / kTileRows;
      for (int64_t panel = p.begin; panel < p.end; ++panel) {
        int64_t row = block;
        for (int64_t tile = 0; tile < tiles; ++tile) {
          const int64_t rows = (end - row + tiles - tile - 1) / (tiles - tile);
          const ReadAhead ahead = Ahead(p, panel, tile, tiles);
          switch (rows) {
            case 1:
              Panel<W, 1>(p, row, panel, ahead);
              break;
            case 2:
              Panel<W, 2>(p, row, panel, ahead);
              break;
            case 3:
              Panel<W, 3>(p, row, panel, ahead);
              break;
            case 4:
              Panel<W, 4>(p, row, panel, ahead);
              break;
            case 5:
              Panel<W, 5>(p, row, panel, ahead);
              break;
            default:
              Panel<W, 6>(p, row, panel, ahead);
          }
          row += rows;
        }
      }
    }
  }
};

__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx2,fma"))) void RunVnni(
    const GemmParams& params) {
  Kernel<Int8>::Run<16>(params);
}

__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx2,fma"))) void RunAmx(
    const GemmParams& params) {
  TileKernel<AmxTiles>::Run<16>(params);
}

// Runs the gemm for the rows that AMX computes, and returns that of the others.
GemmParams RunInTiles(const GemmParams& params) {
  const int64_t done = HasAmx() ? RowsInTiles(params) : 0;
  if (done > 0) RunAmx(params);
  GemmParams rest = params;
  rest.values += done * params.weight->depth();
  rest.row_scales += done;
  rest.out += done * params.out_stride;
  rest.rows -= done;
  return rest;
}

void GemmInt8(const GemmParams& given) {
  const GemmParams params = RunInTiles(given);
  switch (HostIsa()) {
    case Isa::kAvx512:
      return HasVnni() ? RunVnni(params) : RunAvx2<Kernel<Int8>>(params);
    case Isa::kAvx2:
      return RunAvx2<Kernel<Int8>>(params);
    case Isa::kBaseline:
      return Kernel<Int8>::Run<4>(params);
  }
}

struct Quantize {
  template <int W>
  static LINNET_INLINE void Run(const float* x, int64_t rows, int64_t inputs, int64_t depth,
                                uint8_t* values, float* scales) {
    using V = Vectors<W>;
    typedef uint8_t Bytes __attribute__((vector_size(W)));
    constexpr float kMax = 127.0f;
    constexpr float kMin = 1e-30f;  // smaller rows become zero, since 1 / scale would be infinite
    // Adding 1.5 * 2^23 leaves no bits for a fraction; the last byte is the rounded number plus
    // 128.
    constexpr float kRound = 12582912.0f + 128.0f;
    constexpr uint32_t kMagnitude = 0x7fffffff;
    const int64_t whole = inputs / W * W;
    for (int64_t r = 0; r < rows; ++r, x += inputs, values += depth) {
      float rest[W] = {};
      std::copy(x + whole, x + inputs, rest);
      const auto last = V::Load(rest);
      // As integers, magnitudes order as floats do, with infinity and NaN above all finite ones.
      typename V::Bits largest = (typename V::Bits)last & kMagnitude;
      for (int64_t k = 0; k < whole; k += W) {
        const auto magnitude = (typename V::Bits)V::Load(x + k) & kMagnitude;
        largest = magnitude > largest ? magnitude : largest;
      }
      uint32_t bits = 0;
      for (int i = 0; i < W; ++i) bits = std::max<uint32_t>(bits, largest[i]);
      float max;
      std::memcpy(&max, &bits, sizeof(max));
      scales[r] = max < kMin           ? 0.0f
                  : std::isfinite(max) ? max / kMax
                                       : std::numeric_limits<float>::quiet_NaN();
      const float factor = max < kMin ? 0.0f : kMax / max;
      const auto quantized = [&](typename V::Floats v) __attribute__((always_inline)) {
        const auto bits = (typename V::Bits)(v * factor + kRound) & 255;
        return __builtin_convertvector(__builtin_convertvector(bits, typename V::Halves), Bytes);
      };
      for (int64_t k = 0; k < whole; k += W) {
        const Bytes bytes = quantized(V::Load(x + k));
        std::memcpy(values + k, &bytes, W);
      }
      const Bytes bytes = quantized(last);
      std::memcpy(values + whole, &bytes, inputs - whole);
      std::memset(values + inputs, 128, depth - inputs);
    }
  }
};

}  // namespace

bool HasVnni() {
  static const bool does = HostIsa() == Isa::kAvx512 && __builtin_cpu_supports("avx512vnni") != 0;
  return does;
}

void QuantizeRows(const float* x, int64_t rows, int64_t inputs, int64_t depth, uint8_t* values,
                  float* scales) {
  RunBest<Quantize>(x, rows, inputs, depth, values, scales);
}

void Gemm(const GemmParams& params) {
  if (params.weight->type() == PackedMatrix::Type::kFloat32) {
    RunBest<Kernel<Float32>>(params);
  } else {
    GemmInt8(params);
  }
}

}  // namespace linnet::ops
