#include "model/ops/cpu/packed_matrix.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <new>

#include "model/ops/huge_pages.h"

namespace linnet::ops {
namespace {

constexpr size_t kCopyAlignment = 64;  // a line of the cache

// Zeroed memory of the heap, for what lives as long as a sequence.
std::shared_ptr<std::byte> ZerosOnHeap(size_t bytes) {
  const size_t whole = (bytes + kCopyAlignment - 1) / kCopyAlignment * kCopyAlignment;
  void* const memory = std::aligned_alloc(kCopyAlignment, std::max(whole, kCopyAlignment));
  if (memory == nullptr) throw std::bad_alloc();
  std::memset(memory, 0, whole);
  return {static_cast<std::byte*>(memory), std::free};
}

}  // namespace

PackedMatrix::PackedMatrix(Type type, int64_t outputs, int64_t inputs, const ReadOutputs& read,
                           std::span<const float> scales)
    : type_(type), outputs_(outputs), inputs_(inputs) {
  const bool int8 = type == Type::kInt8;
  panels_ = ZerosInHugePages(padded_outputs() * depth() * (int8 ? sizeof(int8_t) : sizeof(float)));
  if (int8) {
    scales_.resize(padded_outputs());
    corrections_.resize(padded_outputs());
  }
  for (int64_t panel = 0; panel < panels(); ++panel) {
    const int64_t first = panel * kPanel, count = std::min(kPanel, outputs - first);
    const float* weight = read(first, count);
    const float* factors = scales.empty() ? nullptr : scales.data() + first;
    if (int8) {
      PackInt8(panel, weight, count, factors);
    } else {
      PackFloat32(panel, weight, count, factors);
    }
  }
}

PackedMatrix::PackedMatrix(const PackedMatrix& from, std::span<const int32_t> outputs)
    : type_(from.type_), outputs_(std::ssize(outputs)), inputs_(from.inputs_) {
  // The bytes of one output that lie side by side, and the distance between such pieces.
  const size_t piece = type_ == Type::kFloat32 ? sizeof(float) : kGroup;
  const size_t stride = kPanel * piece;
  const int64_t pieces = type_ == Type::kFloat32 ? inputs_ : depth() / kGroup;
  // A sequence has such a copy, of some 300 KB: huge pages are never used twice, and would grow to
  // 64 MB before they are given back.
  panels_ = ZerosOnHeap(panels() * pieces * stride);
  const auto column = [&](const PackedMatrix& matrix, int64_t n) {
    return matrix.panels_.get() + n / kPanel * pieces * stride + n % kPanel * piece;
  };
  for (int64_t n = 0; n < outputs_; ++n) {
    const std::byte* source = column(from, outputs[n]);
    std::byte* target = column(*this, n);
    static_assert(sizeof(float) == kGroup);  // one copy size for both, known at compile time
    for (int64_t k = 0; k < pieces; ++k) {
      std::memcpy(target + k * stride, source + k * stride, sizeof(float));
    }
  }
  if (type_ == Type::kFloat32) return;
  scales_.resize(padded_outputs());
  corrections_.resize(padded_outputs());
  for (int64_t n = 0; n < outputs_; ++n) {
    scales_[n] = from.scales_[outputs[n]];
    corrections_[n] = from.corrections_[outputs[n]];
  }
}

int64_t PackedMatrix::depth() const {
  return type_ == Type::kFloat32 ? inputs_ : (inputs_ + kGroup - 1) / kGroup * kGroup;
}

const float* PackedMatrix::float_panel(int64_t panel) const {
  return reinterpret_cast<const float*>(panels_.get()) + panel * kPanel * inputs_;
}

const int8_t* PackedMatrix::int8_panel(int64_t panel) const {
  return reinterpret_cast<const int8_t*>(panels_.get()) + panel * kPanel * depth();
}

void PackedMatrix::CopyOutput(int64_t output, float* out) const {
  const int64_t panel = output / kPanel, column = output % kPanel;
  if (type_ == Type::kFloat32) {
    const float* from = float_panel(panel) + column;
    for (int64_t k = 0; k < inputs_; ++k) out[k] = from[k * kPanel];
    return;
  }
  const int8_t* from = int8_panel(panel) + column * kGroup;
  const float scale = scales_[output];
  for (int64_t k = 0; k < inputs_; ++k) {
    const int64_t at = k / kGroup * kPanel * kGroup + k % kGroup;
    out[k] = scale * from[at];
  }
}

void PackedMatrix::PackFloat32(int64_t panel, const float* weight, int64_t count,
                               const float* scales) {
  float* packed = reinterpret_cast<float*>(panels_.get()) + panel * kPanel * inputs_;
  for (int64_t n = 0; n < count; ++n) {
    const float scale = scales == nullptr ? 1 : scales[n];
    for (int64_t k = 0; k < inputs_; ++k) packed[k * kPanel + n] = scale * weight[n * inputs_ + k];
  }
}

namespace {

constexpr int kMaxLevel = 127;

// Returns the step of QuantizeOutput. The weights of a model that was quantised before, with the
// scale of one row or of a whole matrix, so keep their integers.
//
// A multiple of a step, divided by another one of at most 127 steps and not an integer, is at least
// 1 / 127 from the next integer; float32 moves it by 2e-5 at most. Other weights fail within a few
// numbers for each of the 127 steps.
float FindQuantizationStep(std::span<const float> row) {
  constexpr double kDistance = 1e-4;
  float max = 0;
  for (float w : row) max = std::max(max, std::abs(w));
  if (max == 0) return 0;
  for (int level = 1; level <= kMaxLevel; ++level) {
    const double inverse = level / double{max};
    const auto is_multiple = [inverse](float w) {
      return std::abs(w * inverse - std::rint(w * inverse)) <= kDistance;
    };
    if (std::all_of(row.begin(), row.end(), is_multiple)) return max / level;
  }
  return max / kMaxLevel;
}

}  // namespace

float QuantizeOutput(std::span<const float> weights, int8_t* values) {
  const float scale = FindQuantizationStep(weights);
  for (float weight : weights) {
    const long rounded = scale > 0 ? std::lrint(weight / scale) : 0;
    *values++ = static_cast<int8_t>(std::clamp<long>(rounded, -kMaxLevel, kMaxLevel));
  }
  return scale;
}

void PackedMatrix::PackInt8(int64_t panel, const float* weight, int64_t count,
                            const float* scales) {
  auto* packed = reinterpret_cast<int8_t*>(panels_.get()) + panel * kPanel * depth();
  std::vector<int8_t> values(inputs_);
  for (int64_t n = 0; n < count; ++n) {
    const float scale =
        QuantizeOutput({weight + n * inputs_, static_cast<size_t>(inputs_)}, values.data());
    int8_t* column = packed + n * kGroup;
    int32_t sum = 0;
    for (int64_t k = 0; k < inputs_; ++k) {
      column[k / kGroup * kPanel * kGroup + k % kGroup] = values[k];
      sum += values[k];
    }
    scales_[panel * kPanel + n] = scales == nullptr ? scale : scale * scales[n];
    corrections_[panel * kPanel + n] = -128 * sum;
  }
}

}  // namespace linnet::ops
