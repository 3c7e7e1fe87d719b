#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <span>
#include <vector>

#include "model/ops/cpu/log_sum.h"
#include "model/ops/cpu/packed_linear.h"
#include "model/ops/cpu/parallel.h"
#include "model/ops/cpu/vectors.h"
#include "model/ops/params.h"

namespace linnet::ops {
namespace {

constexpr int64_t kPanel = PackedMatrix::kPanel;
static_assert(kPieceTokens % kPanel == 0);
// Rows whose logits of one piece, 2 KB each, are computed before they are read.
constexpr int64_t kBlockRows = 96;

// A logit and its token as one integer with the order of candidates: the higher logit is larger, of
// equal ones the lower token. Integers, since the heap code runs between vector code, where scalar
// floats of the baseline instruction set stall (a row took four times as long).
using Entry = int64_t;

LINNET_INLINE Entry MakeEntry(float logit, int64_t token) {
  const float plain = logit + 0.0f;  // -0 is 0
  int32_t bits;
  std::memcpy(&bits, &plain, sizeof(bits));
  bits ^= (bits >> 31) & 0x7fffffff;  // negative floats order against their bits
  return static_cast<int64_t>(bits) * (int64_t{1} << 32) + (0x7fffffff - token);
}

int32_t TokenOf(Entry entry) { return 0x7fffffff - static_cast<int32_t>(entry & 0xffffffff); }

float ReadLogit(Entry entry) {
  int32_t bits = static_cast<int32_t>(entry >> 32);
  bits ^= (bits >> 31) & 0x7fffffff;
  float logit;
  std::memcpy(&logit, &bits, sizeof(logit));
  return logit;
}

// The highest logits of one row among those that a thread has read. Tokens are pushed in ascending
// order.
class TopLogits {
 public:
  TopLogits(Entry* entries, int64_t wanted) : entries_(entries), wanted_(wanted) {}

  std::span<const Entry> entries() const { return {entries_, static_cast<size_t>(size_)}; }

  // Logits above it are pushed: of equal logits the first one is kept. NaN and -infinity never are.
  float threshold() const { return threshold_; }

  // `logit` is above the threshold.
  void Push(float logit, int64_t token) {
    if (size_ == wanted_) std::pop_heap(entries_, entries_ + size_--, std::greater<>());
    entries_[size_++] = MakeEntry(logit, token);
    std::push_heap(entries_, entries_ + size_, std::greater<>());
    if (size_ == wanted_) threshold_ = ReadLogit(entries_[0]);
  }

 private:
  Entry* entries_;  // a heap, the lowest in front
  int64_t wanted_;
  int64_t size_ = 0;
  float threshold_ = std::numeric_limits<float>::infinity() * (wanted_ > 0 ? -1 : 1);
};

// Bit i is set if v[i] > threshold.
template <int W>
LINNET_INLINE uint32_t LanesAbove(typename Vectors<W>::Floats v, float threshold) {
#ifndef __clang__  // see gemm.cc
  if constexpr (W == 16) {
    constexpr int kGreater = 30;  // false of NaN
    uint16_t lanes;
    __asm__("vcmpps %3, %2, %1, %0"
            : "=k"(lanes)
            : "v"(v), "v"(threshold + typename Vectors<W>::Floats{}), "i"(kGreater));
    return lanes;
  }
#endif
  uint32_t lanes = 0;
  for (int i = 0; i < W; ++i) lanes |= static_cast<uint32_t>(v[i] > threshold) << i;
  return lanes;
}

// Sums one piece of one row and keeps its highest logits.
struct ReadPiece {
  template <int W>
  static LINNET_INLINE void Run(const float* logits, int64_t count, int64_t first, float scale,
                                PartialSum* sum, TopLogits* highest) {
    *sum = SumPiece<W>(logits, count, scale);
    if (!(sum->highest > highest->threshold())) return;
    const int64_t whole = count / W * W;
    for (int64_t i = 0; i < whole; i += W) {
      uint32_t lanes = LanesAbove<W>(Vectors<W>::Load(logits + i), highest->threshold());
      for (; lanes != 0; lanes &= lanes - 1) {
        const int64_t at = i + __builtin_ctz(lanes);
        if (logits[at] > highest->threshold()) highest->Push(logits[at], first + at);
      }
    }
    for (int64_t at = whole; at < count; ++at) {
      if (logits[at] > highest->threshold()) highest->Push(logits[at], first + at);
    }
  }
};

struct JoinRow {
  template <int W>
  static LINNET_INLINE void Run(const PartialSum* pieces, int64_t count, float scale, float* out) {
    *out = JoinPieces<W>(pieces, count, scale);
  }
};

// The highest logits in the pieces that one thread read.
struct Share {
  std::vector<Entry> entries;      // [rows, width]
  std::vector<TopLogits> highest;  // [rows]
};

// One scan of the vocabulary for all rows: computes or reads the logits piece by piece.
class LogitScan {
 public:
  explicit LogitScan(const BestLogitsParams& params)
      : p_(params),
        pieces_((p_.tokens + kPieceTokens - 1) / kPieceTokens),
        sums_(p_.rows * pieces_),
        shares_(pieces_) {}

  void Run() {
    std::fill_n(p_.logits, p_.rows * p_.width, -std::numeric_limits<float>::infinity());
    std::fill_n(p_.found, p_.rows * p_.width, -1);
    if (p_.weight != nullptr) {
      Compute();
    } else {
      ParallelFor(pieces_, 16 * p_.rows * kPieceTokens, [&](int64_t begin, int64_t end) {
        Share& share = Begin(begin);
        for (int64_t piece = begin; piece < end; ++piece) {
          Read(share, piece, 0, p_.rows, p_.given + piece * kPieceTokens, p_.tokens);
        }
      });
    }
    ParallelFor(p_.rows, 64 * (pieces_ + p_.width), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) Finish(row);
    });
  }

 private:
  void Compute() {
    const PackedLinear layer(*p_.weight, p_.x, p_.bias);
    const int64_t depth = layer.weight.depth();
    uint8_t* values = Scratch<uint8_t, LogitScan, 0>(layer.int8 ? p_.rows * depth : 0);
    float* scales = Scratch<float, LogitScan, 1>(layer.int8 ? p_.rows : 0);
    if (layer.int8) {
      ParallelFor(p_.rows, depth / 2, [&](int64_t begin, int64_t end) {
        layer.Rows(begin, end, values + begin * depth, scales + begin);
      });
    }
    const int64_t flops = layer.flops_per_row() * p_.rows / pieces_;
    ParallelFor(pieces_, flops, [&](int64_t begin, int64_t end) {
      Share& share = Begin(begin);
      float* logits = Scratch<float, LogitScan, 2>(std::min(p_.rows, kBlockRows) * kPieceTokens);
      for (int64_t piece = begin; piece < end; ++piece) {
        for (int64_t row = 0; row < p_.rows; row += kBlockRows) {
          const int64_t last = std::min(row + kBlockRows, p_.rows);
          Gemm({.weight = &layer.weight,
                .x = p_.x + row * layer.weight.inputs(),
                .values = layer.int8 ? values + row * depth : nullptr,
                .row_scales = layer.int8 ? scales + row : nullptr,
                .bias = layer.bias,
                .rows = last - row,
                .begin = piece * (kPieceTokens / kPanel),
                .end = std::min((piece + 1) * (kPieceTokens / kPanel), layer.weight.panels()),
                .out = logits,
                .out_stride = kPieceTokens});
          Read(share, piece, row, last, logits, kPieceTokens);
        }
      }
    });
  }

  // Initialises the share of the thread whose first piece this is.
  Share& Begin(int64_t piece) {
    Share& share = shares_[piece];
    share.entries.resize(p_.rows * p_.width);
    for (int64_t row = 0; row < p_.rows; ++row) {
      share.highest.emplace_back(share.entries.data() + row * p_.width, p_.counts[row]);
    }
    return share;
  }

  // `logits` are those of rows [row, last), `stride` apart, from the first token of the piece on.
  void Read(Share& share, int64_t piece, int64_t row, int64_t last, const float* logits,
            int64_t stride) {
    const int64_t first = piece * kPieceTokens;
    const int64_t count = std::min(kPieceTokens, p_.tokens - first);
    for (; row < last; ++row, logits += stride) {
      RunBest<ReadPiece>(logits, count, first, 1.0f / p_.temperatures[row],
                         &sums_[row * pieces_ + piece], &share.highest[row]);
      const int64_t also = p_.also[row] - first;
      if (0 <= also && also < count) p_.logits[row * p_.width + p_.counts[row]] = logits[also];
    }
  }

  void Finish(int64_t row) {
    RunBest<JoinRow>(sums_.data() + row * pieces_, pieces_, 1.0f / p_.temperatures[row],
                     p_.log_normalizers + row);
    float* logits = p_.logits + row * p_.width;
    int32_t* found = p_.found + row * p_.width;
    const int32_t count = p_.counts[row];
    if (p_.also[row] >= 0) found[count] = p_.also[row];
    if (count == 0) return;
    auto& all = *Merged();
    all.clear();
    for (const Share& share : shares_) {
      if (share.highest.empty()) continue;
      const auto entries = share.highest[row].entries();
      all.insert(all.end(), entries.begin(), entries.end());
    }
    const int64_t kept = std::min<int64_t>(count, all.size());
    std::partial_sort(all.begin(), all.begin() + kept, all.end(), std::greater<>());
    for (int64_t i = 0; i < kept; ++i) {
      logits[i] = ReadLogit(all[i]);
      found[i] = TokenOf(all[i]);
    }
  }

  static std::vector<Entry>* Merged() {
    thread_local std::vector<Entry> merged;
    return &merged;
  }

  const BestLogitsParams& p_;
  const int64_t pieces_;
  std::vector<PartialSum> sums_;  // [rows, pieces]
  std::vector<Share> shares_;     // by the first piece of each thread
};

}  // namespace

void BestLogitsCpu(const BestLogitsParams& params) { LogitScan(params).Run(); }

}  // namespace linnet::ops
