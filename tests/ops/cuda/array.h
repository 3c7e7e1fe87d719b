#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <random>
#include <vector>

#include "model/ops/params.h"

namespace linnet::ops {

inline constexpr FloatType kTypes[] = {FloatType::kFloat32, FloatType::kBFloat16,
                                       FloatType::kFloat16};

// Values of one floating point type, and the same in float32.
struct Array {
  FloatType type;
  std::vector<float> floats;
  std::vector<uint16_t> halves;

  Array(FloatType type, int64_t size, std::mt19937& random) : type(type), floats(size) {
    std::normal_distribution<float> normal;
    for (float& value : floats) value = normal(random);
    halves.resize(size);
    Round();
  }

  void Scale(float factor) {
    for (float& value : floats) value *= factor;
    Round();
  }

  int64_t size() const { return static_cast<int64_t>(floats.size()); }
  bool wide() const { return type == FloatType::kFloat32; }
  void* data() { return wide() ? static_cast<void*>(floats.data()) : halves.data(); }
  float operator[](int64_t i) const {
    if (wide()) return floats[i];
    if (type == FloatType::kFloat16) return __half2float(__ushort_as_half(halves[i]));
    return __bfloat162float(__ushort_as_bfloat16(halves[i]));
  }

 private:
  // Rounds the floats to the type.
  void Round() {
    for (int64_t i = 0; i < size(); ++i) {
      if (type == FloatType::kFloat16) {
        halves[i] = __half_as_ushort(__float2half_rn(floats[i]));
      } else if (type == FloatType::kBFloat16) {
        halves[i] = __bfloat16_as_ushort(__float2bfloat16_rn(floats[i]));
      }
      if (!wide()) floats[i] = (*this)[i];
    }
  }
};

}  // namespace linnet::ops
