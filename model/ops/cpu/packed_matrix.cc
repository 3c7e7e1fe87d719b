#include "model/ops/cpu/packed_matrix.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <new>
#include <vector>

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
  const std::shared_ptr<std::byte> memory = ZerosInHugePages(bytes().size());
  for (int64_t panel = 0; panel < panels(); ++panel) {
    const int64_t first = panel * kPanel, count = std::min(kPanel, outputs - first);
    const float* weight = read(first, count);
    const float* factors = scales.empty() ? nullptr : scales.data() + first;
    if (type == Type::kInt8) {
      PackInt8(memory.get(), panel, weight, count, factors);
    } else {
      PackFloat32(memory.get(), panel, weight, count, factors);
    }
  }
  memory_ = memory;
}

PackedMatrix::PackedMatrix(const PackedMatrix& from, std::span<const int32_t> outputs)
    : type_(from.type_), outputs_(std::ssize(outputs)), inputs_(from.inputs_) {
  // The bytes of one output that lie side by side, and the distance between such pieces.
  const size_t piece = type_ == Type::kFloat32 ? sizeof(float) : kGroup;
  const size_t stride = kPanel * piece;
  const int64_t pieces = type_ == Type::kFloat32 ? inputs_ : depth() / kGroup;
  // A sequence has such a copy, of some 300 KB: huge pages are never used twice, and would grow to
  // 64 MB before they are given back.
  const std::shared_ptr<std::byte> memory = ZerosOnHeap(bytes().size());
  const auto column = [&](int64_t n) { return n / kPanel * pieces * stride + n % kPanel * piece; };
  for (int64_t n = 0; n < outputs_; ++n) {
    const std::byte* source = from.memory_.get() + column(outputs[n]);
    std::byte* target = memory.get() + column(n);
    static_assert(sizeof(float) == kGroup);  // one copy size for both, known at compile time
    for (int64_t k = 0; k < pieces; ++k) {
      std::memcpy(target + k * stride, source + k * stride, sizeof(float));
    }
  }
  memory_ = memory;
  if (type_ == Type::kFloat32) return;
  for (int64_t n = 0; n < outputs_; ++n) {
    Scales(memory.get())[n] = from.scales()[outputs[n]];
    Corrections(memory.get())[n] = from.corrections()[outputs[n]];
  }
}

int64_t PackedMatrix::depth() const {
  return type_ == Type::kFloat32 ? inputs_ : (inputs_ + kGroup - 1) / kGroup * kGroup;
}

size_t PackedMatrix::scales_at() const {
  return padded_outputs() * depth() * (type_ == Type::kFloat32 ? sizeof(float) : sizeof(int8_t));
}

std::span<const std::byte> PackedMatrix::bytes() const {
  const size_t behind =
      type_ == Type::kFloat32 ? 0 : padded_outputs() * (sizeof(float) + sizeof(int32_t));
  return {memory_.get(), scales_at() + behind};
}

float* PackedMatrix::Scales(std::byte* memory) const {
  return reinterpret_cast<float*>(memory + scales_at());
}

int32_t* PackedMatrix::Corrections(std::byte* memory) const {
  return reinterpret_cast<int32_t*>(Scales(memory) + padded_outputs());
}

const float* PackedMatrix::scales() const {
  return reinterpret_cast<const float*>(memory_.get() + scales_at());
}

const int32_t* PackedMatrix::corrections() const {
  return reinterpret_cast<const int32_t*>(scales() + padded_outputs());
}

const float* PackedMatrix::float_panel(int64_t panel) const {
  return reinterpret_cast<const float*>(memory_.get()) + panel * kPanel * inputs_;
}

const int8_t* PackedMatrix::int8_panel(int64_t panel) const {
  return reinterpret_cast<const int8_t*>(memory_.get()) + panel * kPanel * depth();
}

void PackedMatrix::CopyOutput(int64_t output, float* out) const {
  const int64_t panel = output / kPanel, column = output % kPanel;
  if (type_ == Type::kFloat32) {
    const float* from = float_panel(panel) + column;
    for (int64_t k = 0; k < inputs_; ++k) out[k] = from[k * kPanel];
    return;
  }
  const int8_t* from = int8_panel(panel) + column * kGroup;
  const float scale = scales()[output];
  for (int64_t k = 0; k < inputs_; ++k) {
    const int64_t at = k / kGroup * kPanel * kGroup + k % kGroup;
    out[k] = scale * from[at];
  }
}

void PackedMatrix::PackFloat32(std::byte* memory, int64_t panel, const float* weight, int64_t count,
                               const float* scales) const {
  float* packed = reinterpret_cast<float*>(memory) + panel * kPanel * inputs_;
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
  // These loops are written so that the compiler vectorises them.
  uint32_t max_bits = 0;  // magnitudes are ordered as their bits
  for (float w : row) max_bits = std::max(max_bits, std::bit_cast<uint32_t>(w) & 0x7fffffff);
  const auto max = std::bit_cast<float>(max_bits);
  if (max == 0) return 0;
  for (int level = 1; level <= kMaxLevel; ++level) {
    const double inverse = level / double{max};
    const auto others = [inverse](std::span<const float> weights) {
      int count = 0;
      for (float w : weights) count += std::abs(w * inverse - std::rint(w * inverse)) > kDistance;
      return count;
    };
    if (others(row.first(std::min<size_t>(row.size(), 4))) == 0 && others(row) == 0) {
      return max / level;
    }
  }
  return max / kMaxLevel;
}

}  // namespace

float QuantizeOutput(std::span<const float> weights, int8_t* values) {
  const float scale = FindQuantizationStep(weights);
  for (float weight : weights) {
    const float rounded = scale > 0 ? std::rint(weight / scale) : 0;
    *values++ = static_cast<int8_t>(std::clamp<float>(rounded, -kMaxLevel, kMaxLevel));
  }
  return scale;
}

void PackedMatrix::PackInt8(std::byte* memory, int64_t panel, const float* weight, int64_t count,
                            const float* scales) const {
  auto* packed = reinterpret_cast<int8_t*>(memory) + panel * kPanel * depth();
  std::vector<int8_t> values(depth());
  for (int64_t n = 0; n < count; ++n) {
    const float scale =
        QuantizeOutput({weight + n * inputs_, static_cast<size_t>(inputs_)}, values.data());
    int8_t* column = packed + n * kGroup;
    int32_t sum = 0;
    for (int64_t k = 0; k < depth(); k += kGroup) {
      std::memcpy(column + k * kPanel, &values[k], kGroup);
    }
    for (const int8_t value : values) sum += value;
    Scales(memory)[panel * kPanel + n] = scales == nullptr ? scale : scale * scales[n];
    Corrections(memory)[panel * kPanel + n] = -128 * sum;
  }
}

}  // namespace linnet::ops
