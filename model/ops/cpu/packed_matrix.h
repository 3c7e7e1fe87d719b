#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace linnet::ops {

// The weights of a linear layer [outputs, inputs], laid out for the CPU's products (product_cpu.h)
// and, for int8, quantised: made once when a model is loaded, in memory alone.
//
// Panel p holds the outputs 64 p … 64 p + 63, those behind the last one as zeros:
//   float32  panels[p][input][64]
//   int8     panels[p][input / 4][64][4]: four inputs of one output side by side, as the
//            instructions that multiply int8 read them
//
// int8: weight[n, k] ~ scales[n] * panel value, which lies in [-127, 127]: each output has a scale
// of its own, its largest weight over 127. What is multiplied with them is unsigned, 128 too high
// (product_cpu.h): corrections[n] = -128 * sum_k panel value takes that off again.
class PackedMatrix {
 public:
  enum class Type { kFloat32, kInt8 };

  static constexpr int64_t kPanel = 64;
  static constexpr int64_t kGroup = 4;
  // Beyond it a sum of int8 products could leave int32.
  static constexpr int64_t kMaxInputs = 1 << 16;

  // weight: [outputs, inputs], finite; 1 <= inputs <= kMaxInputs.
  PackedMatrix(Type type, const float* weight, int64_t outputs, int64_t inputs);
  // Of another matrix these outputs, each from 0 to outputs() - 1, in this order. Products with
  // them are, bit for bit, those of the other matrix.
  PackedMatrix(const PackedMatrix& from, std::span<const int32_t> outputs);

  Type type() const { return type_; }
  int64_t outputs() const { return outputs_; }
  int64_t inputs() const { return inputs_; }
  int64_t panels() const { return (outputs_ + kPanel - 1) / kPanel; }
  int64_t padded_outputs() const { return panels() * kPanel; }
  // Of a row that is multiplied with it: for int8 rounded up to whole groups.
  int64_t depth() const;

  const float* float_panel(int64_t panel) const;
  const int8_t* int8_panel(int64_t panel) const;
  const float* scales() const { return scales_.data(); }              // [padded_outputs], int8 only
  const int32_t* corrections() const { return corrections_.data(); }  // likewise

 private:
  struct Free {
    void operator()(std::byte* bytes) const;
  };
  std::unique_ptr<std::byte[], Free> Allocate(size_t bytes);
  void PackFloat32(const float* weight);
  void PackInt8(const float* weight);

  Type type_;
  int64_t outputs_, inputs_;
  std::unique_ptr<std::byte[], Free> panels_;
  std::vector<float> scales_;
  std::vector<int32_t> corrections_;
};

}  // namespace linnet::ops
