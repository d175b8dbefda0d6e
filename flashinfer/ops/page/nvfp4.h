// SPDX-License-Identifier: Apache-2.0
// Appending to NVFP4 caches: 16 elements share an e4m3 scale, two e2m1 codes a byte, the first in the low nibble. With
// a global decode scale g, every step in f32 rounded once to nearest even:
//   scale = e4m3(amax * (1 / (6 g))), code = e2m1(x * (1 / (scale g))), so that code * scale * g approximates x.
// Both saturate. A block whose scale is 0 gets codes 0; a NaN makes the scale of its block NaN (0x7f). Caches may be
// uint8 or float4_e2m1fn_x2, scales float8_e4m3fn or uint8. Errors write nothing.
#pragma once
#include <string>

#include "flashinfer/op/call.h"

#pragma GCC visibility push(default)

namespace flashinfer {

/// Positions, page table and padding as in append_paged_kv_cache. ValueError: a scale that is not finite and
/// positive.
struct Nvfp4AppendPagedKvCache {
  TensorView append_key;        // [nnz, Hkv, Dk] f16|bf16, rows and heads may be strided; Dk, Dv multiples of 16
  TensorView append_value;      // [nnz, Hkv, Dv]
  TensorView batch_indices;     // [nnz]
  TensorView positions;         // [nnz]
  op::PagedKv paged_kv_cache;   // rows of D/2 bytes, written
  op::PagedKv kv_cache_sf;      // rows of D/16 scales, pages as in paged_kv_cache, written
  TensorView kv_indices;        // page ids
  TensorView kv_indptr;         // [B+1], in pages
  TensorView kv_last_page_len;  // [B], after appending
  double k_scale = 1;           // g of K and of V
  double v_scale = 1;
  std::string kv_layout = "NHD";
};
void nvfp4_quantize_append_paged_kv_cache(const Nvfp4AppendPagedKvCache& args);

/// The same with flat slots, page * page_size + entry; a slot that is negative or past the pool is skipped. Rows past
/// slot_mapping's are not read.
struct Nvfp4AppendWithSlotMapping {
  TensorView append_key;    // [rows >= nnz, Hkv, Dk]
  TensorView append_value;  // [rows >= nnz, Hkv, Dv]
  TensorView slot_mapping;  // [nnz]
  op::PagedKv paged_kv_cache;
  op::PagedKv kv_cache_sf;
  op::ScalarOrTensor k_scale;  // a number or f32 of one element
  op::ScalarOrTensor v_scale;
  std::string kv_layout = "NHD";
};
void nvfp4_quantize_append_paged_kv_cache_with_slot_mapping(const Nvfp4AppendWithSlotMapping& args);

/// MLA: the latent as NVFP4, the rope part as e4m3(x * (1 / kpe_scale)), saturating. ValueError: a scale that is not a
/// positive normal f32.
struct Nvfp4AppendPagedMlaKvCache {
  TensorView append_ckv;     // [nnz, Dc] f16|bf16, Dc a multiple of 16 (512 in DeepSeek)
  TensorView append_kpe;     // [nnz, Dr] as append_ckv
  TensorView batch_indices;  // [nnz]
  TensorView positions;      // [nnz]
  TensorView ckv_cache;      // [P, ps, Dc/2]
  TensorView ckv_sf_cache;   // [P, ps, Dc/16]
  TensorView kpe_cache;      // [P, ps, Dr] e4m3
  TensorView kv_indices;
  TensorView kv_indptr;         // [B+1]
  TensorView kv_last_page_len;  // [B]
  double ckv_scale = 1;
  double kpe_scale = 1;
};
void nvfp4_quantize_append_paged_mla_kv_cache(const Nvfp4AppendPagedMlaKvCache& args);

}  // namespace flashinfer

#pragma GCC visibility pop
