// SPDX-License-Identifier: Apache-2.0
// NVFP4 rows: 16 elements share an e4m3 scale, a tensor shares an f32 `global`; element = e2m1 * scale * global.
// Quantising, every step rounded once to nearest even:
//   scale = e4m3(amax * rn(1 / rn(6 * global))), code = e2m1(rn(x * rn(1 / rn(scale * global)))), both saturating,
//   reciprocals at most FLT_MAX. A block whose scale is 0 (all zero, or too small for e4m3) gets codes 0. A NaN makes
//   its block's scale NaN (0x7f).
// Memory traffic is 2 bytes read and 0.56 written an element, so a block of 16 may take about 20 vector operations;
// amax is one phminposuw on the 16-bit magnitudes instead of a float reduction.
#pragma once
#include "flashinfer/kernels/common/token_rows.h"
#include "flashinfer/kernels/cpu/block_quantize.h"

namespace flashinfer {

struct Nvfp4Config {
  DType dtype;  // of the unquantised side, 16 bits when quantising

  static constexpr const char* kName = "flashinfer::Nvfp4Config";
  template <class V>
  constexpr void visit(V&& v) const {
    v("dtype", dtype);
  }
  friend constexpr bool operator==(const Nvfp4Config&, const Nvfp4Config&) = default;
};

/// K or V. `dim` is a multiple of 16 (0: this one is absent); data holds dim / 2 bytes, scale dim / 16 a row.
struct Nvfp4Tensor {
  TokenRows plain, data, scale;
  int64_t heads, dim;
  float global;
  /// Scales of four tokens of a page interleaved: the scale of (t, s) is at the position of element (t / 4) * 4 *
  /// dim/16 + 4 * s + t % 4 of a linear page with dim/16 columns.
  int32_t interleaved;
};
struct Nvfp4Params {
  Nvfp4Tensor tensor[2];
  const int64_t* slot;  // [tokens] slot of a token's data and scale, negative: skip it; null: the token's own index
  int64_t tokens, tokens_per_task;
  // Additional heads of 16-bit rows cast to e4m3 after a multiplication (the rope part of MLA); fp8_dim 0: none.
  TokenRows fp8_from, fp8_to;
  int64_t fp8_dim;
  float fp8_factor;
};
/// The largest magnitude of the tokens of each task.
struct Nvfp4AmaxParams {
  TokenRows plain;
  int64_t heads, dim, tokens, tokens_per_task;
  float* largest;  // [tasks]
};

namespace cpu {

constexpr int64_t kNvfp4Block = 16;
template <class T>
using Nvfp4Rule = BlockRule<BlockFormat{}, T>;
/// Quantises `blocks` blocks of x; sf receives one byte a block.
template <class T>
FI_VEC_INLINE void quantize_nvfp4(const Nvfp4Rule<T>& rule, const T* x, uint8_t* q, uint8_t* sf, int64_t blocks) {
  uint8_t scale[kBlockChunk];
  for (int64_t first = 0; first < blocks; first += kBlockChunk) {
    const int64_t n = blocks - first < kBlockChunk ? blocks - first : kBlockChunk;
    quantize_blocks(rule, x + first * kNvfp4Block, q + first * (kNvfp4Block / 2), scale, n);
    memcpy(sf + first, scale, static_cast<size_t>(n));
  }
}

/// element = rn((e2m1 * scale) * global), then rounded to T; the first product is exact.
template <class T>
FI_VEC_INLINE void dequantize_nvfp4(const uint8_t* q, const uint8_t* sf, T* y, int64_t blocks, float global) {
  constexpr int64_t kChunk = 64, L = Vec::kLanes;
  const e4m3_t* scale = reinterpret_cast<const e4m3_t*>(sf);
  const Vec vglobal = splat(global);
  float s[kChunk];
  for (int64_t first = 0; first < blocks; first += kChunk) {
    const int64_t n = blocks - first < kChunk ? blocks - first : kChunk;
    for (int64_t b = 0; b < n; b += L)
      store(s + b, n - b < L ? load_n(scale + first + b, n - b) : load(scale + first + b));
    const uint8_t* from = q + first * (kNvfp4Block / 2);
    const auto element = [&](int64_t i) { return load_e2m1(from + i / 2) * splat(s[i / kNvfp4Block]) * vglobal; };
    write_row(y + first * kNvfp4Block, n * kNvfp4Block, element, [&](int64_t i, int64_t) { return element(i); });
  }
}

/// The scales of token t of a page, in the interleaved order.
FI_VEC_INLINE void store_interleaved(const Nvfp4Tensor& p, uint8_t* page, int64_t t, const uint8_t* row) {
  const int64_t columns = p.dim / kNvfp4Block;
  for (int64_t s = 0; s < columns; ++s) {
    const int64_t at = t / 4 * 4 * columns + 4 * s + t % 4;
    page[at / columns * p.scale.stride_n + at % columns] = row[s];
  }
}

/// Whether the heads of a token are one contiguous row everywhere: a longer row hides the latency of a block's scale.
FI_VEC_INLINE bool heads_adjoin(const Nvfp4Tensor& p) {
  return !p.interleaved && p.plain.stride_h == p.dim && p.data.stride_h * 2 == p.dim &&
         p.scale.stride_h * kNvfp4Block == p.dim;
}

template <class T>
FI_VEC_INLINE void quantize_nvfp4_token(const Nvfp4Rule<T>& rule, const Nvfp4Tensor& p, int64_t token, int64_t slot) {
  const T* x = token_row<T>(p.plain, token);
  uint8_t* q = token_row<uint8_t>(p.data, slot);
  uint8_t* sf = token_row<uint8_t>(p.scale, slot);
  const int64_t blocks = p.dim / kNvfp4Block;
  if (heads_adjoin(p)) return quantize_nvfp4(rule, x, q, sf, p.heads * blocks);
  for (int64_t h = 0; h < p.heads; ++h) {
    if (!p.interleaved) {
      quantize_nvfp4(rule, x + h * p.plain.stride_h, q + h * p.data.stride_h, sf + h * p.scale.stride_h, blocks);
      continue;
    }
    const int64_t page = slot / p.scale.page_size;
    uint8_t row[256];  // head dims up to 4096: the launcher rejects larger ones
    quantize_nvfp4(rule, x + h * p.plain.stride_h, q + h * p.data.stride_h, row, blocks);
    uint8_t* scales = static_cast<uint8_t*>(p.scale.data) + page * p.scale.stride_page + h * p.scale.stride_h;
    store_interleaved(p, scales, slot - page * p.scale.page_size, row);
  }
}

template <class T>
FI_VEC_INLINE void dequantize_nvfp4_token(const Nvfp4Tensor& p, int64_t token, int64_t slot) {
  T* y = token_row<T>(p.plain, token);
  const uint8_t* q = token_row<uint8_t>(p.data, slot);
  const uint8_t* sf = token_row<uint8_t>(p.scale, slot);
  const int64_t blocks = p.dim / kNvfp4Block;
  if (heads_adjoin(p)) return dequantize_nvfp4(q, sf, y, p.heads * blocks, p.global);
  for (int64_t h = 0; h < p.heads; ++h)
    dequantize_nvfp4(q + h * p.data.stride_h, sf + h * p.scale.stride_h, y + h * p.plain.stride_h, blocks, p.global);
}

/// f(token, slot) for the tokens of a task that are not padding.
template <class F>
FI_VEC_INLINE void each_slot(const Nvfp4Params& p, int64_t task, F f) {
  const int64_t begin = task * p.tokens_per_task;
  const int64_t end = begin + p.tokens_per_task < p.tokens ? begin + p.tokens_per_task : p.tokens;
  for (int64_t t = begin; t < end; ++t) {
    const int64_t slot = p.slot ? p.slot[t] : t;
    if (slot >= 0) f(t, slot);
  }
}

// All rows of K of a task, then all of V: fewer memory streams at a time.
template <Nvfp4Config C>
void nvfp4_quantize(const Nvfp4Params& p, int64_t task) {
  using T = scalar_of_t<C.dtype>;
  for (const Nvfp4Tensor& tensor : p.tensor) {
    if (!tensor.dim) continue;
    Nvfp4Rule<T> rule;
    make_block_rule(rule, capped_reciprocal(6.0f * tensor.global), tensor.global);
    each_slot(p, task, [&](int64_t t, int64_t slot) { quantize_nvfp4_token(rule, tensor, t, slot); });
  }
  if (!p.fp8_dim) return;
  const Vec f = splat(p.fp8_factor);
  each_slot(p, task, [&](int64_t t, int64_t slot) {
    const T* x = token_row<T>(p.fp8_from, t);
    e4m3_t* y = token_row<e4m3_t>(p.fp8_to, slot);
    int64_t i = 0;
    for (; i + Vec::kLanes <= p.fp8_dim; i += Vec::kLanes) store_saturated(y + i, load(x + i) * f);
    if (i < p.fp8_dim) store_saturated_n(y + i, load_n(x + i, p.fp8_dim - i) * f, p.fp8_dim - i);
  });
}

template <Nvfp4Config C>
void nvfp4_dequantize(const Nvfp4Params& p, int64_t task) {
  using T = scalar_of_t<C.dtype>;
  for (const Nvfp4Tensor& tensor : p.tensor)
    if (tensor.dim) each_slot(p, task, [&](int64_t t, int64_t slot) { dequantize_nvfp4_token<T>(tensor, t, slot); });
}

template <Nvfp4Config C>
void nvfp4_amax(const Nvfp4AmaxParams& p, int64_t task) {
  using T = scalar_of_t<C.dtype>;
  const int64_t begin = task * p.tokens_per_task;
  const int64_t end = begin + p.tokens_per_task < p.tokens ? begin + p.tokens_per_task : p.tokens;
  T most;
  most.bits = 0;
  for (int64_t t = begin; t < end; ++t) {
    const T* x = token_row<T>(p.plain, t);
    for (int64_t h = 0; h < p.heads; ++h)
      for (int64_t i = 0; i < p.dim; i += kNvfp4Block) {
        const T block = block_magnitude(x + h * p.plain.stride_h + i, kNvfp4Block);
        if (block.bits > most.bits) most = block;
      }
  }
  p.largest[task] = static_cast<float>(most);
}

}  // namespace cpu
}  // namespace flashinfer
