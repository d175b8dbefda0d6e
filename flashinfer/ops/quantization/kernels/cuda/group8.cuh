// SPDX-License-Identifier: Apache-2.0
// Groups of rows, or whole tensors, to 8 bits on a GPU, with the CPU's codes and scales bit for bit. A group of up to
// `lanes` * `kept` pieces of 16 bytes is read once.
#pragma once
#include "flashinfer/kernels/cuda/block_quantize.h"
#include "flashinfer/kernels/cuda/cluster.h"
#include "flashinfer/kernels/cuda/rows.h"
#include "flashinfer/ops/quantization/kernels/cuda_params.h"

namespace flashinfer::cu {

template <DType T>
struct Code8 : scalar_of<T> {};
template <>
struct Code8<DType::kI8> {
  using type = int8_t;
};
template <DType T>
inline constexpr float kMost8 = T == DType::kI8       ? 127.0f
                                : T == DType::kF8E4M3 ? 448.0f
                                                      : 57344.0f;

struct Most {
  FI_GLOBAL_FN float operator()(float a, float b) const { return max_magnitude(a, b); }
};

/// N codes at q + at; those from `n` on are not written.
template <DType Out, bool kAligned, int N>
FI_GLOBAL_FN void store_group(void* q, int64_t at, int64_t n, const float (&v)[N], const Divisor& d) {
  float y[N];
#pragma unroll
  for (int i = 0; i < N; ++i) y[i] = divide(v[i], d);
  uint32_t words[N / 4];
  narrow<typename Code8<Out>::type>(y, words);
  uint8_t* const to = static_cast<uint8_t*>(q) + at;
  if constexpr (kAligned) {
    store_codes<true, N>(to, words);
  } else {
#pragma unroll
    for (int i = 0; i < N; ++i)
      if (at + i < n) to[i] = static_cast<uint8_t>(words[i / 4] >> (8 * (i % 4)));
  }
}

/// The scale of a group whose largest magnitude is `most`.
template <Group8CudaConfig C>
FI_GLOBAL_FN float group_scale(const Group8CudaParams& p, float most) {
  const float s = (most < p.eps ? p.eps : most) / kMost8<C.out>;
  return p.power ? e8m0_value(e8m0_code(s)) : s;
}
template <Group8CudaConfig C>
FI_GLOBAL_FN float group_most(float most) {
  if constexpr (C.lanes <= 32)
    return warp_reduce<C.lanes>(most, Most{});
  else
    return block_reduce<C.lanes>(most, Most{}, reinterpret_cast<float*>(shared()));
}

template <Group8CudaConfig C>
FI_GLOBAL_FN void group8(const Group8CudaParams& p) {
  using T = scalar_of_t<C.dtype>;
  constexpr int N = kPiece<T>, kKept = C.kept ? C.kept : 1;
  constexpr bool kAligned = C.aligned != 0;
  depend_wait();
  const uint32_t g = block_x() * (C.threads / C.lanes) + thread_x() / C.lanes, rank = thread_x() % C.lanes;
  const bool in_range = g < p.rows * p.groups;  // groups past the end take part in the shuffles
  const uint32_t row = p.by_rows ? g % p.rows : g / p.groups, column = p.by_rows ? g / p.rows : g % p.groups;
  const int64_t n = in_range ? p.group : 0, first = column * p.group;
  const T* const x = static_cast<const T*>(p.x) + row / p.inner * p.x_stride[0] + row % p.inner * p.x_stride[1] + first;
  uint8_t* const q = static_cast<uint8_t*>(p.q) + row * p.q_stride + first;
  const auto place = [&](int k) { return (static_cast<int64_t>(k) * C.lanes + rank) * N; };
  float most = 0.0f;
  RawPiece<T, N> kept[kKept];
  if constexpr (C.kept != 0) {
#pragma unroll
    for (int k = 0; k < kKept; ++k) load_raw<kAligned, N, Hint::kOnce>(x, place(k), n, kept[k]);
#pragma unroll
    for (int k = 0; k < kKept; ++k)
#pragma unroll
      for (int i = 0; i < N; ++i) most = max_magnitude(most, kept[k][i]);
  } else {
    for (int64_t at = place(0); at < n; at += C.lanes * N) {
      float v[N];
      load_piece<kAligned, N>(x, at, n, v);
#pragma unroll
      for (int i = 0; i < N; ++i) most = max_magnitude(most, v[i]);
    }
  }
  const float scale = group_scale<C>(p, group_most<C>(most));
  const Divisor d = divisor_of(scale);
  if (in_range && rank == 0) p.scales[row * p.scale_row_stride + column * p.scale_group_stride] = scale;
  if constexpr (C.kept != 0) {
#pragma unroll
    for (int k = 0; k < kKept; ++k) {
      kept[k].forget();
      if (place(k) >= n) continue;
      float v[N];
#pragma unroll
      for (int i = 0; i < N; ++i) v[i] = kept[k][i];
      store_group<C.out, kAligned>(q, place(k), n, v, d);
    }
  } else {
    for (int64_t at = place(0); at < n; at += C.lanes * N) {
      float v[N];
      load_piece<kAligned, N>(x, at, n, v);
      store_group<C.out, kAligned>(q, at, n, v, d);
    }
  }
  depend_launch();
}

/// f(x, row, at) for the pieces of all rows, spread over the grid.
template <Tensor8CudaConfig C, class F>
FI_GLOBAL_FN void each_piece(const Tensor8CudaParams& p, F f) {
  using T = scalar_of_t<C.dtype>;
  constexpr int N = kPiece<T>;
  // 32-bit: a 64-bit division is a call of some hundred instructions (the host checks that they suffice).
  const uint32_t pieces = static_cast<uint32_t>(ceil_div(p.k, N)), all = static_cast<uint32_t>(p.rows) * pieces,
                 step = blocks_x() * C.threads;
  for (uint32_t i = block_x() * C.threads + thread_x(); i < all; i += step) {
    const uint32_t row = p.rows == 1 ? 0 : i / pieces;
    const int64_t at = static_cast<int64_t>(i - row * pieces) * N;
    f(static_cast<const T*>(p.x) + row / p.inner * p.x_stride[0] + row % p.inner * p.x_stride[1], row, at);
  }
}

/// The largest magnitude of the pieces of each block.
template <Tensor8CudaConfig C>
FI_GLOBAL_FN void tensor_most(const Tensor8CudaParams& p) {
  using T = scalar_of_t<C.dtype>;
  constexpr int N = kPiece<T>;
  depend_wait();
  float most = 0.0f;
  each_piece<C>(p, [&](const T* x, uint32_t, int64_t at) {
    float v[N];
    load_piece<C.aligned != 0, N>(x, at, p.k, v);
#pragma unroll
    for (int i = 0; i < N; ++i) most = max_magnitude(most, v[i]);
  });
  most = block_reduce<C.threads>(most, Most{}, reinterpret_cast<float*>(shared()));
  if (thread_x() == 0) p.parts[block_x()] = most;
  depend_launch();
}

/// The scale of the tensor, the same in every thread.
template <Tensor8CudaConfig C>
FI_GLOBAL_FN float tensor_scale(const Tensor8CudaParams& p) {
  if (p.given) return *p.given;
  if (p.fixed != 0.0f) return p.fixed;
  float most = 0.0f;
  for (uint32_t i = thread_x(); i < p.part_count; i += C.threads) most = max_magnitude(most, p.parts[i]);
  most = block_reduce<C.threads>(most, Most{}, reinterpret_cast<float*>(shared()));
  if (p.numerator != 0.0f) {
    const float ratio = p.numerator / most;
    return most != most ? most : ratio < kFltMax ? ratio : kFltMax;
  }
  return most > 0 || most != most ? most / kMost8<C.out> : 1.0f;
}
template <Tensor8CudaConfig C>
FI_GLOBAL_FN void tensor8(const Tensor8CudaParams& p) {
  using T = scalar_of_t<C.dtype>;
  constexpr int N = kPiece<T>;
  depend_wait();
  const float scale = tensor_scale<C>(p);
  if (block_x() == 0 && thread_x() == 0) *p.scale = scale;
  if (p.q) {
    const Divisor d = divisor_of(scale);
    each_piece<C>(p, [&](const T* x, uint32_t row, int64_t at) {
      float v[N];
      load_piece<C.aligned != 0, N, Hint::kOnce>(x, at, p.k, v);
      store_group<C.out, C.aligned != 0>(static_cast<uint8_t*>(p.q) + row * p.q_stride, at, p.k, v, d);
    });
  }
  depend_launch();
}

}  // namespace flashinfer::cu
