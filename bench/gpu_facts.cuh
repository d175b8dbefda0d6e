// SPDX-License-Identifier: Apache-2.0
// What the kernels assume of a GPU's instructions, through the wrappers that they use: gpu_facts.cc compares the
// results with the host's.
#pragma once
#include "bench/gpu_facts_params.h"
#include "flashinfer/kernels/cuda/convert.h"
#include "flashinfer/kernels/cuda/math.h"
#include "flashinfer/kernels/cuda/mma.h"
#include "flashinfer/kernels/cuda/narrow.h"

namespace gpu_facts {

using namespace flashinfer;

template <Config C>
FI_GLOBAL_FN void functions(const FunctionsParams& p) {
  for (int64_t i = cu::block_x() * C.threads + cu::thread_x(); i < p.n; i += cu::blocks_x() * C.threads) {
    p.exp2[i] = cu::exp2_fast(p.x[i]);
    p.tanh[i] = cu::tanh_fast(p.x[i]);
    p.log2[i] = cu::log2_fast(p.positive[i]);
    p.rcp[i] = cu::rcp_fast(p.positive[i]);
    p.rsqrt[i] = cu::rsqrt_fast(p.positive[i]);
  }
}

template <class T>
FI_GLOBAL_FN float widened(uint32_t code) {
  T x[2];
  x[0].bits = x[1].bits = static_cast<decltype(T::bits)>(code);
  float y[2];
  cu::widen(x, y);
  return y[1];
}

template <Config C>
FI_GLOBAL_FN void codes(const CodesParams& p) {
  const uint32_t first = cu::block_x() * C.threads + cu::thread_x(), step = cu::blocks_x() * C.threads;
  for (int64_t i = first; i < p.n; i += step) {
    const float x = p.x[i], eight[8] = {x, -x, x, -x, x, -x, x, -x};
    p.bf16[i] = cu::from_f32<bf16_t>(x).bits;
    p.f16[i] = cu::from_f32<f16_t>(x).bits;
    p.e4m3[i] = static_cast<uint8_t>(cu::narrow_pair<e4m3_t>(x, -x));
    p.e5m2[i] = static_cast<uint8_t>(cu::narrow_pair<e5m2_t>(x, -x));
    p.int8[i] = static_cast<uint8_t>(cu::narrow_int8(x));
    p.e2m1[i] = static_cast<uint8_t>(cu::narrow_e2m1(eight) & 15u);
  }
  for (uint32_t i = first; i < 65536; i += step) p.from_f16[i] = widened<f16_t>(i);
  for (uint32_t i = first; i < 256; i += step) {
    p.from_e4m3[i] = widened<e4m3_t>(i);
    p.from_e5m2[i] = widened<e5m2_t>(i);
  }
  for (uint32_t i = first; i < 16; i += step) p.from_e2m1[i] = cu::e2m1_value(i);
}

template <int kElement>
struct Element;
template <>
struct Element<0> {
  using Type = bf16_t;
};
template <>
struct Element<1> {
  using Type = f16_t;
};
template <>
struct Element<2> {
  using Type = e4m3_t;
};

FI_GLOBAL_FN void put(float* tile, cu::Acc d) {
  const uint32_t g = cu::lane() / 4, t = cu::lane() % 4;
  for (uint32_t i = 0; i < 4; ++i) tile[(g + i / 2 * 8) * 8 + 2 * t + i % 2] = d.r[i];
}

/// A warp a block.
template <Config C>
FI_GLOBAL_FN void product(const ProductParams& p) {
  using T = typename Element<C.element>::Type;
  char *a = cu::shared(), *b = a + 512, *rows = b + 256, *back = rows + 256;
  const int64_t tile = cu::block_x();
  const uint32_t l = cu::lane(), g = l / 4, t = l % 4;
  for (uint32_t i = l; i < 512; i += 32) a[i] = p.a[tile * 512 + i];
  for (uint32_t i = l; i < 256; i += 32) {
    b[i] = p.b[tile * 256 + i];
    rows[(i % 32 / 2 * 8 + i / 32) * 2 + i % 2] = p.b[tile * 256 + i];  // of 16-bit elements: [16 k][8 n]
  }
  cu::sync_warp();
  cu::Acc c;
  for (uint32_t i = 0; i < 4; ++i) c.r[i] = p.c[tile * 128 + (g + i / 2 * 8) * 8 + 2 * t + i % 2];
  const uint32_t matrix = l / 8, row = l % 8;
  const cu::Frag4 fa = cu::load_matrix4(a + (row + matrix % 2 * 8) * 32 + matrix / 2 * 16);
  const cu::Frag4 fb = cu::load_matrix4(b + row * 32 + matrix % 2 * 16);
  put(p.d + tile * 128, cu::mma<T>(fa, {{fb.r[0], fb.r[1]}}, c));
  if constexpr (sizeof(T) == 2) {
    const cu::Frag4 fr = cu::load_matrix4_transposed(rows + (row + matrix % 2 * 8) * 16);
    put(p.d_of_rows + tile * 128, cu::mma<T>(fa, {{fr.r[0], fr.r[1]}}, c));
  }
  cu::store_matrix4(back + (row + matrix % 2 * 8) * 32 + matrix / 2 * 16, fa);
  cu::sync_warp();
  for (uint32_t i = l; i < 512; i += 32) p.stored[tile * 512 + i] = back[i];
}

}  // namespace gpu_facts
