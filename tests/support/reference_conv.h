#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "model/ops/params.h"

// Reference implementations of the operators: plain loops in double over float32 arrays. The
// kernels are compared with them.
namespace linnet::ops {

inline std::vector<double> ReferenceSoftmax(const float* scores, int64_t count) {
  const float highest = *std::max_element(scores, scores + count);
  std::vector<double> taps(count);
  double sum = 0.0;
  for (int64_t k = 0; k < count; ++k) sum += taps[k] = std::exp(double{scores[k]} - highest);
  for (double& tap : taps) tap /= sum;
  return taps;
}

inline std::vector<double> ReferenceConvolution(const ConvolutionParams& p) {
  const auto* x = static_cast<const float*>(p.x);
  const auto* weight = static_cast<const float*>(p.weight);
  std::vector<double> y(p.batch * p.time * p.channels);
  for (int64_t b = 0; b < p.batch; ++b) {
    for (int64_t t = 0; t < p.lengths[b]; ++t) {
      for (int64_t c = 0; c < p.channels; ++c) {
        const int64_t position = b * p.time + t;
        const int64_t head = (p.dynamic ? position * p.heads : 0) + c / (p.channels / p.heads);
        const std::vector<double> taps = ReferenceSoftmax(weight + head * p.width, p.width);
        for (int64_t k = 0; k < p.width; ++k) {
          const int64_t s = t + k - p.padding_left;
          if (s < 0 || s >= p.lengths[b]) continue;
          y[position * p.channels + c] += taps[k] * x[(b * p.time + s) * p.channels + c];
        }
      }
    }
  }
  return y;
}

inline std::vector<double> ReferenceDepthwise(const DepthwiseConvParams& p) {
  const auto* x = static_cast<const float*>(p.x);
  const auto* taps = static_cast<const float*>(p.taps);
  std::vector<double> y(p.batch * p.time * p.channels);
  for (int64_t b = 0; b < p.batch; ++b) {
    for (int64_t t = 0; t < p.lengths[b]; ++t) {
      for (int64_t c = 0; c < p.channels; ++c) {
        for (int64_t k = 0; k < p.width; ++k) {
          const int64_t s = t + k * p.dilation - p.padding_left;
          if (s < 0 || s >= p.lengths[b]) continue;
          y[(b * p.time + t) * p.channels + c] +=
              double{taps[k * p.channels + c]} * x[(b * p.time + s) * p.channels + c];
        }
      }
    }
  }
  return y;
}

inline bool ReferenceIdle(const Ring& ring, int64_t row) {
  return ring.backpointers[row * ring.backpointers_stride] < 0;
}

inline float* ReferenceEntry(const Ring& ring, int64_t row, int64_t j) {
  const int64_t slot = ring.backpointers[row * ring.backpointers_stride + j];
  const int64_t turn = (ring.positions[row] - j) % ring.depth;
  return static_cast<float*>(ring.data) + (turn * ring.slots + slot) * ring.size;
}

// Changes p.window as the step does.
inline std::vector<double> ReferenceStep(const ConvolutionStepParams& p) {
  const auto* x = static_cast<const float*>(p.x);
  const auto* weight = static_cast<const float*>(p.weight);
  std::vector<double> y(p.rows * p.channels);
  for (int64_t r = 0; r < p.rows; ++r) {
    if (ReferenceIdle(p.state, r)) continue;
    std::copy_n(x + r * p.channels, p.channels, ReferenceEntry(p.state, r, 0));
  }
  for (int64_t r = 0; r < p.rows; ++r) {
    for (int64_t c = 0; c < p.channels && !ReferenceIdle(p.state, r); ++c) {
      const int64_t head = (p.dynamic ? r * p.heads : 0) + c / (p.channels / p.heads);
      const std::vector<double> taps = ReferenceSoftmax(weight + head * p.width, p.width);
      for (int64_t j = 0; j <= std::min<int64_t>(p.width - 1, p.state.positions[r]); ++j) {
        y[r * p.channels + c] += taps[p.width - 1 - j] * ReferenceEntry(p.state, r, j)[c];
      }
    }
  }
  return y;
}

// Changes p.window as the step does.
inline std::vector<double> ReferenceDepthwiseStep(const DepthwiseConvStepParams& p) {
  const auto* x = static_cast<const float*>(p.x);
  const auto* taps = static_cast<const float*>(p.taps);
  std::vector<double> y(p.rows * p.channels);
  for (int64_t r = 0; r < p.rows; ++r) {
    if (ReferenceIdle(p.state, r)) continue;
    std::copy_n(x + r * p.channels, p.channels, ReferenceEntry(p.state, r, 0));
  }
  for (int64_t r = 0; r < p.rows; ++r) {
    for (int64_t k = 0; k < p.width && !ReferenceIdle(p.state, r); ++k) {
      const int64_t j = (p.width - 1 - k) * p.dilation;
      if (j > p.state.positions[r]) continue;
      for (int64_t c = 0; c < p.channels; ++c) {
        y[r * p.channels + c] +=
            double{taps[k * p.channels + c]} * ReferenceEntry(p.state, r, j)[c];
      }
    }
  }
  return y;
}

// Changes p.cache as the step does.
inline std::vector<double> ReferenceSelfAttention(const SelfAttentionStepParams& p) {
  const auto* query = static_cast<const float*>(p.query);
  const int64_t head_size = p.size / p.heads;
  for (int64_t r = 0; r < p.rows; ++r) {
    if (ReferenceIdle(p.cache, r)) continue;
    float* entry = ReferenceEntry(p.cache, r, 0);
    std::copy_n(static_cast<const float*>(p.key) + r * p.size, p.size, entry);
    std::copy_n(static_cast<const float*>(p.value) + r * p.size, p.size, entry + p.size);
  }
  std::vector<double> y(p.rows * p.size);
  for (int64_t r = 0; r < p.rows; ++r) {
    for (int64_t h = 0; h < p.heads && !ReferenceIdle(p.cache, r); ++h) {
      std::vector<const float*> keys;  // keys of head h at the positions in its window
      for (int64_t j = 0; j < p.cache.depth && j <= p.cache.positions[r]; ++j) {
        for (int64_t g = 0; g < p.heads; ++g) {
          if (std::abs(g - h) > p.neighbour_heads / 2) continue;
          keys.push_back(ReferenceEntry(p.cache, r, j) + g * head_size);
        }
      }
      std::vector<float> scores;
      for (const float* key : keys) {
        double score = 0.0;
        for (int64_t c = 0; c < head_size; ++c) {
          score += double{query[r * p.size + h * head_size + c]} * key[c];
        }
        scores.push_back(score / std::sqrt(static_cast<double>(head_size)));
      }
      const std::vector<double> shares = ReferenceSoftmax(scores.data(), scores.size());
      for (size_t i = 0; i < keys.size(); ++i) {
        for (int64_t c = 0; c < head_size; ++c) {
          y[r * p.size + h * head_size + c] += shares[i] * keys[i][p.size + c];
        }
      }
    }
  }
  return y;
}

inline std::vector<double> ReferenceAttention(const SourceAttentionParams& p) {
  const auto* query = static_cast<const float*>(p.query);
  const auto* cache = static_cast<const float*>(p.encoder_cache);
  const int64_t head_size = p.size / p.heads;
  std::vector<double> y(p.rows * p.size);
  for (int64_t r = 0; r < p.rows; ++r) {
    for (int64_t head = 0; head < p.heads && p.lengths[r] > 0; ++head) {
      const auto key = [&](int64_t s) {
        const int64_t block = p.blocks[r * p.row_blocks + s / p.block_tokens];
        return cache + (block * p.block_tokens + s % p.block_tokens) * 2 * p.size +
               head * head_size;
      };
      std::vector<float> scores(p.lengths[r]);
      for (int64_t s = 0; s < p.lengths[r]; ++s) {
        double score = 0.0;
        for (int64_t c = 0; c < head_size; ++c) {
          score += double{query[r * p.size + head * head_size + c]} * key(s)[c];
        }
        scores[s] = score / std::sqrt(static_cast<double>(head_size));
      }
      const std::vector<double> shares = ReferenceSoftmax(scores.data(), p.lengths[r]);
      for (int64_t s = 0; s < p.lengths[r]; ++s) {
        for (int64_t c = 0; c < head_size; ++c) {
          y[r * p.size + head * head_size + c] += shares[s] * key(s)[p.size + c];
        }
      }
    }
  }
  return y;
}

}  // namespace linnet::ops
