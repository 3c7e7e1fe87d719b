#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>

#include "model/ops/attention.h"
#include "model/ops/cpu/vectors.h"

// Attention of a few rows to the same keys and values, which are read once for all of them.
namespace linnet::ops {

// The sums of more rows would not fit into the registers.
constexpr int kAttendingRows = 5;

template <class T>
struct AttendingRows {
  const T* query;  // of the first row, all heads
  int64_t query_stride;
  T* y;
  int64_t y_stride;
  int count;  // of rows, at most kAttendingRows
  int64_t length, head_size;
  int64_t to_value;  // from a key to its value, in elements
};

// Memory of a thread, for a group of rows and `together` of its heads at a time.
template <class T>
struct AttendScratch {
  int64_t together;
  int64_t stride;
  std::unique_ptr<float[]> queries;  // [together, kAttendingRows, head size]
  std::unique_ptr<float[]> scores;   // [together, kAttendingRows, stride]
  std::unique_ptr<const T*[]> keys;  // [the longest source]
};

template <class T>
AttendScratch<T> NewAttendScratch(int64_t longest, int64_t heads, int64_t head_size) {
  constexpr int64_t kFloats = 1 << 14;  // scores that stay in the cache nearby
  const int64_t stride = PaddedWidth(longest);
  const int64_t together =
      std::clamp<int64_t>(kFloats / (kAttendingRows * std::max<int64_t>(stride, 1)), 1, heads);
  return {.together = together,
          .stride = stride,
          .queries = std::unique_ptr<float[]>(new float[together * kAttendingRows * head_size]),
          .scores = std::unique_ptr<float[]>(new float[together * kAttendingRows * stride]),
          .keys = std::unique_ptr<const T*[]>(new const T*[longest])};
}

template <class T>
LINNET_INLINE void Prefetch(const T* from, int64_t count) {
  constexpr int64_t kLine = 64 / sizeof(T);
  for (int64_t i = 0; i < count; i += kLine) __builtin_prefetch(from + i, /*rw=*/0, /*locality=*/2);
}

// Heads [begin, end) of G rows or, if there are fewer, of the instance for that many; scratch.keys
// points at the keys. A row's result has the same bits beside any others.
//
// A full batch has more keys and values than a cache holds, and each lies in a page of memory of
// its own. So they are read token by token with all heads, and those needed next are fetched
// meanwhile: head by head the processor would wait for memory most of the time.
template <int W, int G, class T>
LINNET_INLINE void AttendHeads(const AttendingRows<T>& rows, float scale, int64_t begin,
                               int64_t end, const AttendScratch<T>& scratch) {
  if constexpr (G > 1) {
    if (rows.count < G) return AttendHeads<W, G - 1>(rows, scale, begin, end, scratch);
  }
  const int64_t head_size = rows.head_size, length = rows.length;
  const int64_t channel = begin * head_size, channels = (end - begin) * head_size;
  const auto queries = [&](int64_t h) __attribute__((always_inline)) {
    return scratch.queries.get() + (h - begin) * G * head_size;
  };
  const auto scores = [&](int64_t h) __attribute__((always_inline)) {
    return scratch.scores.get() + (h - begin) * G * scratch.stride;
  };
  for (int64_t h = begin; h < end; ++h) {
    for (int g = 0; g < G; ++g) {
      LoadQuery<W>(rows.query + g * rows.query_stride + h * head_size, head_size, scale,
                   queries(h) + g * head_size);
    }
  }
  const T* const* const keys = scratch.keys.get();
  for (int64_t s = 0; s < length; ++s) {
    if (s + 1 < length) Prefetch(keys[s + 1] + channel, channels);
    Prefetch(keys[s] + rows.to_value + channel, channels);
    for (int64_t h = begin; h < end; ++h) {
      Dots<W, 1, G>(queries(h), keys + s, h * head_size, head_size, scores(h) + s, scratch.stride);
    }
  }
  for (int64_t h = begin; h < end; ++h) {
    for (int g = 0; g < G; ++g) {
      float* const of_row = scores(h) + g * scratch.stride;
      Softmax<W>(of_row, length, length, of_row);
    }
    const auto values = [&](int64_t s) __attribute__((always_inline)) {
      return keys[s] + rows.to_value + h * head_size;
    };
    WeightedSums<W, G>(scores(h), scratch.stride, length, values, head_size, rows.y + h * head_size,
                       rows.y_stride);
  }
}

}  // namespace linnet::ops
