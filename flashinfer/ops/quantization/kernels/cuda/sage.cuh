// SPDX-License-Identifier: Apache-2.0
// Queries, keys and values for SageAttention on a GPU, with the CPU's codes and scales (kernels/cpu/sage.h): largest
// magnitudes have no order, divisions are rounded as such, and sums for the mean have the CPU's order.
#pragma once
#include "flashinfer/core/int_math.h"
#include "flashinfer/kernels/cuda/block_quantize.h"
#include "flashinfer/kernels/cuda/cluster.h"
#include "flashinfer/kernels/cuda/page_table.h"
#include "flashinfer/kernels/cuda/rows.h"
#include "flashinfer/kernels/cuda/warp.h"
#include "flashinfer/ops/quantization/kernels/sage_params.h"

namespace flashinfer::cu {

template <DType T>
struct SageCode : scalar_of<T> {};
template <>
struct SageCode<DType::kI8> {
  using type = int8_t;
};

template <SageCudaConfig C>
FI_GLOBAL_FN float sage_scale(float largest) {
  return largest > 0.0f ? largest / (C.out == DType::kI8 ? 127.0f : 448.0f) : 1.0f;
}
/// N elements from `at` on of a row of `d`, minus the mean.
template <SageCudaConfig C, int N, class T>
FI_GLOBAL_FN void sage_load(const T* x, const float* mean, int64_t at, int64_t d, float (&v)[N]) {
  load_piece<C.aligned != 0, N>(x, at, d, v);
  if (!mean) return;
  float m[N];
  load_piece<C.aligned != 0, N>(mean, at, d, m);
#pragma unroll
  for (int i = 0; i < N; ++i) v[i] -= m[i];
}
template <SageCudaConfig C, int N>
FI_GLOBAL_FN void sage_store(uint8_t* q, int64_t at, int64_t d, const float (&v)[N]) {
  uint32_t words[N / 4];
  narrow<typename SageCode<C.out>::type>(v, words);
  if constexpr (C.aligned != 0) {
    store_codes<true, N>(q + at, words);
  } else {
#pragma unroll
    for (int i = 0; i < N; ++i)
      if (at + i < d) q[at + i] = static_cast<uint8_t>(words[i / 4] >> (8 * (i % 4)));
  }
}

/// A warp processes a block of tokens of one head: column c of the scales, which belongs to the last request whose
/// first column is at most c. Columns without tokens have scale 0.
template <SageCudaConfig C>
FI_GLOBAL_FN void sage_blocks(const SageCudaParams& p) {
  using T = scalar_of_t<C.dtype>;
  constexpr int N = C.aligned ? kPiece<T> : 4;
  depend_wait();
  const int64_t item = static_cast<int64_t>(block_x()) * (C.threads / 32) + warp();
  if (item < p.columns * p.heads) {
    // 32-bit: a 64-bit division is a call.
    const uint32_t heads = static_cast<uint32_t>(p.heads), h = static_cast<uint32_t>(item % heads),
                   column = static_cast<uint32_t>(item / heads), block = static_cast<uint32_t>(p.block);
    const auto start = [&](int64_t b) { return static_cast<uint32_t>(strided_index(p.cum, b)); };
    uint32_t begin = 0, end = static_cast<uint32_t>(p.tokens), first_column = 0;
    if (p.cum.data) {
      int64_t b = 0, high = p.requests;
      while (high - b > 1) {
        const int64_t middle = (b + high) / 2;
        (start(middle) / block + middle <= column ? b : high) = middle;
      }
      begin = start(b), end = start(b + 1), first_column = begin / block + static_cast<uint32_t>(b);
    }
    const uint32_t first = begin + (column - first_column) * block, last = first + block < end ? first + block : end,
                   units = static_cast<uint32_t>(ceil_div(p.dim, N)), tokens = first < last ? last - first : 0;
    const int64_t step = p.heads * p.dim;
    const T* const x = static_cast<const T*>(p.x) + first * step + h * p.dim;
    uint8_t* const q = static_cast<uint8_t*>(p.q) + first * step + h * p.dim;
    const float* const mean = p.mean ? p.mean + h * p.dim : nullptr;
    const auto each = [&](auto f) {
      for (uint32_t i = lane(); i < tokens * units; i += 32) {
        const int64_t at = static_cast<int64_t>(i % units) * N;
        float v[N];
        sage_load<C, N>(x + i / units * step, mean, at, p.dim, v);
        f(i / units * step, at, v);
      }
    };
    float most = 0.0f;
    each([&](int64_t, int64_t at, const float(&v)[N]) {
#pragma unroll
      for (int i = 0; i < N; ++i) most = at + i < p.dim ? Max{}(fabsf(v[i]), most) : most;
    });
    const float scale = sage_scale<C>(warp_reduce(most, Max{}));
    if (lane() == 0) p.scales[h * p.columns + column] = tokens == 0 ? 0.0f : scale;
    const Divisor divisor = divisor_of(scale);
    each([&](int64_t row, int64_t at, float(&v)[N]) {
#pragma unroll
      for (int i = 0; i < N; ++i) v[i] = divide(v[i], divisor);
      sage_store<C, N>(q + row, at, p.dim, v);
    });
  }
  depend_launch();
}

/// The largest magnitude, or with C.mean the sum, of the tokens of a chunk (block_y) for N channels a thread.
template <SageCudaConfig C>
FI_GLOBAL_FN void sage_partials(const SageCudaParams& p) {
  using T = scalar_of_t<C.dtype>;
  constexpr int N = C.aligned ? kPiece<T> : 1;
  depend_wait();
  const int64_t channels = p.heads * p.dim, at = (static_cast<int64_t>(block_x()) * C.threads + thread_x()) * N;
  if (at < channels) {
    const int64_t first = block_y() * p.chunk, end = first + p.chunk < p.tokens ? first + p.chunk : p.tokens;
    float all[N];
#pragma unroll
    for (int i = 0; i < N; ++i) all[i] = 0.0f;
    for (int64_t t = first; t < end; ++t) {
      float v[N];
      load_piece<C.aligned != 0, N>(static_cast<const T*>(p.x) + t * channels, at, channels, v);
#pragma unroll
      for (int i = 0; i < N; ++i) all[i] = C.mean ? all[i] + v[i] : Max{}(fabsf(v[i]), all[i]);
    }
    store_piece<C.aligned != 0, N>(p.partials + block_y() * channels, at, channels, all);
  }
  depend_launch();
}
/// A thread a channel: its scale, or its mean, from the partial results of all chunks in ascending order.
template <SageCudaConfig C>
FI_GLOBAL_FN void sage_finish(const SageCudaParams& p) {
  depend_wait();
  const int64_t channels = p.heads * p.dim, c = static_cast<int64_t>(block_x()) * C.threads + thread_x();
  if (c < channels) {
    float all = 0.0f;
    for (int64_t i = 0; i < p.chunks; ++i) {
      const float x = p.partials[i * channels + c];
      all = C.mean ? all + x : Max{}(x, all);
    }
    p.scales[c] = C.mean ? all / (p.tokens ? static_cast<float>(p.tokens) : 1.0f) : sage_scale<C>(all);
  }
  depend_launch();
}
/// Codes with a scale for each channel: a thread takes the same channels of the tokens of a chunk (block_y).
template <SageCudaConfig C>
FI_GLOBAL_FN void sage_channels(const SageCudaParams& p) {
  using T = scalar_of_t<C.dtype>;
  constexpr int N = C.aligned ? kPiece<T> : 4;
  depend_wait();
  const int64_t channels = p.heads * p.dim, at = (static_cast<int64_t>(block_x()) * C.threads + thread_x()) * N;
  if (at < channels) {
    const int64_t first = block_y() * p.chunk, end = first + p.chunk < p.tokens ? first + p.chunk : p.tokens;
    Divisor divisors[N];
#pragma unroll
    for (int i = 0; i < N; ++i) divisors[i] = divisor_of(at + i < channels ? p.scales[at + i] : 1.0f);
    for (int64_t t = first; t < end; ++t) {
      float v[N];
      load_piece<C.aligned != 0, N>(static_cast<const T*>(p.x) + t * channels, at, channels, v);
#pragma unroll
      for (int i = 0; i < N; ++i) v[i] = divide(v[i], divisors[i]);
      sage_store<C, N>(static_cast<uint8_t*>(p.q) + t * channels, at, channels, v);
    }
  }
  depend_launch();
}

}  // namespace flashinfer::cu
