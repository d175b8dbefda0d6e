// SPDX-License-Identifier: Apache-2.0
// NVFP4 for KV caches: 16 elements share an e4m3 scale, two e2m1 codes a byte, the first in the low nibble, and a
// tensor has a decode scale g: element = code * scale * g. Quantising, every step in f32 rounded once to nearest even,
// saturating: scale = e4m3(amax * (1 / (6 g))), code = e2m1(x * (1 / (scale g))); a block whose scale is 0 gets codes
// 0, one with a NaN the scale NaN.
#pragma once
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "flashinfer/op/call.h"

#pragma GCC visibility push(default)

namespace flashinfer {

/// Rows of K elements, scales in rows of K/16. ValueError: K that is not a multiple of 16, g that is not a positive
/// normal number.
struct Nvfp4KvQuantize {
  TensorView input;                             // [m, k] f16|bf16
  TensorView global_scale;                      // g, one f32
  std::optional<TensorView> fp4_output = {};    // C++ only: memory for the results, uint8 [m, k/2]
  std::optional<TensorView> block_scales = {};  // uint8 (e4m3 bits) [m, k/16]
};
std::pair<Tensor, Tensor> nvfp4_kv_quantize(const Nvfp4KvQuantize& args);

/// The way back: code * scale exactly, times g in f32, rounded to output_dtype.
struct Nvfp4KvDequantize {
  TensorView fp4_data;      // [m, k/2] uint8
  TensorView block_scales;  // [m, k/16] e4m3|uint8
  TensorView global_scale;  // g, one f32
  DType output_dtype = DType::kBF16;
  std::optional<TensorView> output = {};  // C++ only: memory for the result, [m, k]
};
Tensor nvfp4_kv_dequantize(const Nvfp4KvDequantize& args);

/// Dequantises requests of a paged cache to contiguous rows. Token t of request b is in page block_tables[b, t /
/// page_size]; rows of tokens from seq_lens[b] on are unchanged. ValueError: a length beyond the outputs or the table,
/// a page id outside the pool.
struct Nvfp4KvDequantizePaged {
  op::PagedKv paged_kv_cache;  // rows of D/2 bytes
  op::PagedKv kv_cache_sf;     // rows of D/16 scales, linear, pages as in paged_kv_cache
  TensorView block_tables;     // [b, max_pages] i32|i64
  TensorView seq_lens;         // [b]
  op::ScalarOrTensor k_scale;  // g of K and of V: a number or one f32
  op::ScalarOrTensor v_scale;
  TensorView output_k;  // [b, max_len, Hkv, Dk] f16|bf16|f32, written
  TensorView output_v;  // [b, max_len, Hkv, Dv]
  std::string kv_layout = "NHD";
};
void nvfp4_kv_dequantize_paged(const Nvfp4KvDequantizePaged& args);

/// A whole cache. The encode scale of K and of V is 448 / amax (1 for a cache of zeros) unless it is given; g is its
/// reciprocal. K's scales are linear. V's are interleaved by four tokens within a page and head: scale s of token t is
/// at the position of element (t / 4) * 4 S + 4 s + t % 4 of a linear page of S = D/16 columns. ValueError: page_size
/// not a multiple of 4, D not a multiple of 64 or above 4096, K and V of different shapes, infinities or NaN where the
/// scale is computed (in memory of the host: a GPU returns NaN or an infinity as the scale).
struct Nvfp4QuantizePagedKvCache {
  TensorView k_cache;  // [P, Hkv, ps, D] (HND) or [P, ps, Hkv, D] f16|bf16
  TensorView v_cache;
  std::string kv_layout = "HND";
  std::optional<TensorView> k_global_sf = {};  // one f32
  std::optional<TensorView> v_global_sf = {};
  std::optional<TensorView> kv_cache_fp4 = {};  // C++ only: memory for the results, uint8 [2, ..., D/2], K first
  std::optional<TensorView> kv_cache_sf = {};   // e4m3 [2, ..., D/16]
  std::optional<TensorView> global_scale = {};  // f32 [2]: g of K and of V
};
std::tuple<Tensor, Tensor, Tensor> nvfp4_quantize_paged_kv_cache(const Nvfp4QuantizePagedKvCache& args);

}  // namespace flashinfer

#pragma GCC visibility pop
