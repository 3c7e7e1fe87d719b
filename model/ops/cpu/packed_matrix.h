#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>

namespace linnet::ops {

// The weights of a linear layer [outputs, inputs] in the layout of the CPU's gemm (gemm.h),
// quantised for int8. Made when a model is loaded. The bytes are the same on every processor.
//
// Panel p holds the outputs 64 p … 64 p + 63, zeros after the last one:
//   float32  panels[p][input][64]
//   int8     panels[p][input / 4][64][4]: four inputs of one output side by side, as the int8 dot
//            product instructions read them
//
// int8: weight[n, k] ~ scales[n] * panel value, as QuantizeOutput rounds it. The other factor is
// unsigned and 128 too high (gemm.h), which corrections[n] = -128 * sum_k panel value cancels.
class PackedMatrix {
 public:
  enum class Type { kFloat32, kInt8 };

  static constexpr int64_t kPanel = 64;
  static constexpr int64_t kGroup = 4;
  // With more inputs a sum of int8 products could overflow int32.
  static constexpr int64_t kMaxInputs = 1 << 16;

  // Returns the weights of `count` outputs from `first` on, [count, inputs] and finite, valid until
  // the next call. Each output is read once, in ascending order.
  using ReadOutputs = std::function<const float*(int64_t first, int64_t count)>;

  // 1 <= inputs <= kMaxInputs. scales: empty, or for each output a factor of what `read` returns.
  // For int8, integers that QuantizeOutput made are packed as they are.
  PackedMatrix(Type type, int64_t outputs, int64_t inputs, const ReadOutputs& read,
               std::span<const float> scales = {});
  // Copies these outputs of `from`, each from 0 to outputs() - 1, in this order, to the heap. Their
  // results are the same bits as with `from`.
  PackedMatrix(const PackedMatrix& from, std::span<const int32_t> outputs);

  Type type() const { return type_; }
  int64_t outputs() const { return outputs_; }
  int64_t inputs() const { return inputs_; }
  int64_t panels() const { return (outputs_ + kPanel - 1) / kPanel; }
  int64_t padded_outputs() const { return panels() * kPanel; }
  // Writes the weights of one output to out[inputs()]: those that were packed, rounded for int8.
  void CopyOutput(int64_t output, float* out) const;
  // Elements in a row of the other factor: inputs(), for int8 rounded up to whole groups.
  int64_t depth() const;

  const float* float_panel(int64_t panel) const;
  const int8_t* int8_panel(int64_t panel) const;
  const float* scales() const;         // [padded_outputs], int8 only
  const int32_t* corrections() const;  // likewise

  // Panels, scales and corrections, one behind the other.
  std::span<const std::byte> bytes() const;
  // Takes other memory with the same bytes instead of its own.
  void MoveTo(std::shared_ptr<const std::byte> memory) { memory_ = std::move(memory); }

 private:
  size_t scales_at() const;  // the size of the panels
  // In memory that is being filled, as scales() and corrections().
  float* Scales(std::byte* memory) const;
  int32_t* Corrections(std::byte* memory) const;
  // weight: [count, inputs], the outputs of one panel; scales: [count] or null.
  void PackFloat32(std::byte* memory, int64_t panel, const float* weight, int64_t count,
                   const float* scales) const;
  void PackInt8(std::byte* memory, int64_t panel, const float* weight, int64_t count,
                const float* scales) const;

  Type type_;
  int64_t outputs_, inputs_;
  std::shared_ptr<const std::byte> memory_;
};

// Rounds the weights of an output, which are finite, to integers in [-127, 127] and returns their
// scale: weight ~ scale * value. The scale is the largest magnitude / 127. Weights that are
// multiples of a step, because the model was quantised before, have that step as their scale and
// are not rounded again.
float QuantizeOutput(std::span<const float> weights, int8_t* values);

}  // namespace linnet::ops
