// SPDX-License-Identifier: Apache-2.0
// RoPE by a table with a cast to FP8 on a GPU: a block processes a token, also of a paged cache. The arithmetic is the
// CPU's (kernels/cpu/quantize.h): one rounded product, one fused multiply-add, the scale.
#pragma once
#include "flashinfer/core/int_math.h"
#include "flashinfer/kernels/cuda/block_quantize.h"
#include "flashinfer/kernels/cuda/cluster.h"
#include "flashinfer/kernels/cuda/page_table.h"
#include "flashinfer/kernels/cuda/rows.h"
#include "flashinfer/ops/rope/kernels/quantize_cuda_params.h"

namespace flashinfer::cu {

/// N values times `scale` at y; those from `left` on are not written.
template <class Q, bool kAligned, int N>
FI_GLOBAL_FN void store_scaled(uint8_t* y, int64_t left, float (&v)[N], float scale) {
  uint32_t words[N / 4];
#pragma unroll
  for (int i = 0; i < N; ++i) v[i] = mul_rn(v[i], scale);
  narrow<Q>(v, words);
  if constexpr (kAligned) {
    store_codes<true, N>(y, words);
  } else {
#pragma unroll
    for (int i = 0; i < N; ++i)
      if (i < left) y[i] = static_cast<uint8_t>(words[i / 4] >> (8 * (i % 4)));
  }
}
/// cos and sin of N elements from `at` on: of their own pair, or interleaved, where each pair has two elements.
template <bool kInterleave, bool kAligned, int N>
FI_GLOBAL_FN void load_angles(const float* row, int64_t half, int64_t at, float (&c)[N], float (&s)[N]) {
  constexpr int kPairs = kInterleave ? N / 2 : N;
  const int64_t first = kInterleave ? at / 2 : at;
  float cosine[kPairs], sine[kPairs];
  load_piece<kAligned, kPairs>(row, first, half, cosine);
  load_piece<kAligned, kPairs>(row + half, first, half, sine);
#pragma unroll
  for (int i = 0; i < N; ++i) c[i] = cosine[kInterleave ? i / 2 : i], s[i] = sine[kInterleave ? i / 2 : i];
}

template <RopeQuantizeCudaConfig C>
FI_GLOBAL_FN void rope_quantize_part(const RopeQuantizeCudaParams& p, const RopeQuantizePart& r, int64_t token,
                                     const PageEntry& entry, const float* angles) {
  using T = scalar_of_t<C.dtype>;
  using Q = scalar_of_t<C.out>;
  constexpr bool kAligned = C.aligned != 0;
  constexpr int N = kAligned ? kPiece<T> : 4;  // single elements need more registers
  const bool zero = entry.page < 0;            // padding: rows that are no cache become 0
  if (zero && r.paged) return;
  const int64_t half = r.dim / 2, turned = !r.rotate || C.interleave ? r.dim : half;
  constexpr uint32_t kThreads = C.threads;
  const uint32_t units = static_cast<uint32_t>(ceil_div(turned, N)), width = units < kThreads ? units : kThreads,
                 slots = kThreads / width, slot = thread_x() / width;
  const T* const x = static_cast<const T*>(r.from.data) + token * r.from.stride_n;
  uint8_t* const y = static_cast<uint8_t*>(r.to.data) +
                     (r.paged ? entry.page * r.to.stride_page + entry.entry * r.to.stride_n : token * r.to.stride_n);
  for (uint32_t u = thread_x() % width; slot < slots && u < units; u += width) {
    const int64_t at = static_cast<int64_t>(u) * N, left = turned - at;
    float c[N], s[N];
    if (r.rotate && !zero) load_angles<C.interleave != 0, kAligned>(angles, half, at, c, s);
    for (int64_t h = slot; h < r.heads; h += slots) {
      const T* const from = x + h * r.from.stride_h;
      uint8_t* const to = y + h * r.to.stride_h + at;
      float a[N], b[N];
#pragma unroll
      for (int i = 0; i < N; ++i) a[i] = b[i] = 0.0f;
      if (!zero) load_piece<kAligned, N, Hint::kOnce>(from, at, turned, a);
      if (!r.rotate || zero) {
        store_scaled<Q, kAligned>(to, left, a, r.scale);
        if (r.rotate && C.interleave == 0) store_scaled<Q, kAligned>(to + half, left, b, r.scale);
      } else if constexpr (C.interleave != 0) {
#pragma unroll
        for (int i = 0; i < N; i += 2) {
          b[i] = fmaf(a[i + 1], -s[i], mul_rn(a[i], c[i]));
          b[i + 1] = fmaf(a[i], s[i], mul_rn(a[i + 1], c[i]));
        }
        store_scaled<Q, kAligned>(to, left, b, r.scale);
      } else {
        load_piece<kAligned, N, Hint::kOnce>(from + half, at, turned, b);
        float first[N];
#pragma unroll
        for (int i = 0; i < N; ++i) {
          first[i] = fmaf(-b[i], s[i], mul_rn(a[i], c[i]));
          b[i] = fmaf(a[i], s[i], mul_rn(b[i], c[i]));
        }
        store_scaled<Q, kAligned>(to, left, first, r.scale);
        store_scaled<Q, kAligned>(to + half, left, b, r.scale);
      }
    }
  }
}

template <RopeQuantizeCudaConfig C>
FI_GLOBAL_FN void rope_quantize(const RopeQuantizeCudaParams& p) {
  depend_wait();
  const int64_t token = block_x(), position = index_at(p.positions, token);
  PageEntry entry = p.paged ? page_entry(p.pages, token) : PageEntry{0, 0};
  // The host has not checked the positions: one outside the table makes its token padding.
  if (position < 0 || position >= p.table_rows) entry.page = -1;
  const float* const angles = p.table + (entry.page < 0 ? 0 : position * p.table_stride);
  for (const RopeQuantizePart& r : p.part)
    if (r.dim != 0) rope_quantize_part<C>(p, r, token, entry, angles);
  depend_launch();
}

}  // namespace flashinfer::cu
