// SPDX-License-Identifier: Apache-2.0
// Parameters of the attention kernels. Freestanding.
//
// Shapes: a row is one (query token, query head) pair. Rows of one KV head are packed token-major, row = token * G +
// head % G, so that every K and V element is loaded once for the G heads that share it.
//
// Accumulation order, which makes results independent of batch, tiles, page size and threads: keys are processed in
// blocks of kTileKeys and chunks of kChunkKeys (decode kernel: kDecodeKeys, kDecodeChunkKeys), both at fixed positions
// from the request's first key. A row's state (maximum, denominator, output) inside a chunk depends on that row's own
// logits alone; chunks are folded in ascending order. The two kernels sum inside a block in different orders.
#pragma once
#include <stdint.h>

#include "flashinfer/core/int_math.h"
#include "flashinfer/core/scalar.h"

namespace flashinfer {

struct AttentionConfig {
  DType q;    // f32, f16, bf16
  DType kv;   // f32, f16, bf16, f8_e4m3fn, f8_e5m2, f4_e2m1x2 (NVFP4)
  DType o;    // f32, f16, bf16
  bool rope;  // rotate q and k on the fly (ROPE_LLAMA)
  static constexpr const char* kName = "flashinfer::AttentionConfig";
  template <class V>
  constexpr void visit(V&& v) const {
    v("q", q);
    v("kv", kv);
    v("o", o);
    v("rope", rope);
  }
  friend constexpr bool operator==(const AttentionConfig&, const AttentionConfig&) = default;
};

namespace attention {
inline constexpr int kBlockKeys = 64;
/// One long request is spread over threads by chunks. 2048 keys of D 128 in bf16 are 1 MB of K and V: the partial state
/// of a chunk (D + 2 floats a row) is a thousandth of that.
inline constexpr int kChunkKeys = 2048;
/// Keys that the tile kernel packs and multiplies at a time: its f32 outputs are read and written once for so many, and
/// all rows of the tile read K or V of one head (32 KB at D 128 in bf16) from L2.
inline constexpr int kTileKeys = 128;
/// Rows of a tile: 64 register tiles of 6. Packing 128 keys costs as much as the arithmetic of 8 rows, so with 384 it
/// is 2 %; q, weights and f32 outputs (400 KB at D 128) stay in L2 beside the packed block.
inline constexpr int kTileRows = 384;
}  // namespace attention

/// Rows [row_begin, row_end) of KV heads [head_begin, head_end) of one request, over chunks [chunk_begin, chunk_end);
/// heads * rows <= kTileRows. Several heads make sense where their rows are adjacent in memory (NHD decode: whole pages
/// are read in order). `partial` < 0: write the output; else store the states of its chunks from row `partial` on, one
/// after another, for a merge. `decode`: whether the work is the decode kernel's, which also decides the length of its
/// chunks.
struct AttentionWorkItem {
  int32_t request, head_begin, head_end, row_begin, row_end, chunk_begin, chunk_end, decode;
  int64_t partial;
};
/// Rows whose chunks are spread over several work items: the states of chunk c begin at row partial + c * stride.
struct SplitKvReduction {
  int32_t request, head_begin, head_end, row_begin, row_end, chunks, decode, pad;
  int64_t partial, stride;
};

/// An additional scalar of a custom variant, as a floating-point number and as an integer.
struct AttentionScalar {
  double number;
  int64_t integer;
};

/// Strides are in elements (of an NVFP4 cache: bytes), the last dimension is contiguous.
struct AttentionParams {
  const void* q;
  const void* k;
  const void* v;
  void* o;
  float* lse;  // null: not computed
  int64_t q_stride_n, q_stride_h, o_stride_n, o_stride_h, lse_stride_n, lse_stride_h;
  int64_t k_stride_page, k_stride_n, k_stride_h;  // the page stride is unused without a page table
  int64_t v_stride_page, v_stride_n, v_stride_h;
  // NVFP4 only: e4m3 scales of 16 elements each, [.., D / 16], addressed like the cache; global scales are included in
  // `scale`, `v_scale`.
  const uint8_t* k_sf;
  const uint8_t* v_sf;
  int64_t k_sf_stride_page, k_sf_stride_n, k_sf_stride_h;
  int64_t v_sf_stride_page, v_sf_stride_n, v_sf_stride_h;
  int32_t num_qo_heads, num_kv_heads, head_dim_qk, head_dim_vo;  // dims in values, also of an NVFP4 cache

  const int32_t* qo_indptr;   // [B+1]; null: request b is token b (decode)
  const int32_t* kv_indptr;   // [B+1], in pages when paged, else in tokens
  const int32_t* kv_indices;  // pages; null: K and V rows of a request follow each other
  const int32_t* v_indices;   // pages of V, at the places of K's in kv_indices; null: those of K
  const int32_t* kv_len;      // [B]
  int32_t page_size;

  int32_t causal;       // ignored with a mask
  int32_t window_left;  // < 0: none
  float scale;          // sm_scale * q_scale * k_scale
  float soft_cap;       // 0: none
  float v_scale;
  const float* v_head_scales;  // [Hkv] further factors of the output, or null
  float lse_factor;            // 1 for base 2, ln 2 for natural
  const float* alibi_slopes;   // [Hq] or null
  const uint8_t* mask;         // packed bits, or null
  const int64_t* mask_indptr;  // [B+1], bytes
  // Multi-item scoring (causal is set, no mask): token_pos[b][p - prefix_len[b]] is the distance of position p from its
  // item's delimiter. Keys from prefix_len[b] to p - distance are hidden from p.
  const uint32_t* prefix_len;  // [B], or null
  const uint16_t* token_pos;   // [B][token_pos_len]
  int64_t token_pos_len;
  const float* sinks;  // [Hq] logits in natural units, unscaled, added to every denominator once; or null
  const float* rope;   // [positions][2][Dqk/2]: cos, sin; null without rope
  int64_t rope_first;  // the position of the table's first row, <= 0

  // A custom variant's additional arguments, in declared order (variant.h).
  const void* const* extra_tensors;
  const AttentionScalar* extra_scalars;

  const AttentionWorkItem* work;
  const SplitKvReduction* merges;
  float* partial_o;      // [rows][Dvo], unnormalised
  float* softmax_state;  // [rows][3]: maximum, denominator, denominator of the LSE
  void* scratch;         // kernels/cpu/scratch.h's layouts, 64-byte aligned, one a thread
};

namespace attention {
/// Rows of q and tiles are padded to a multiple of 32 elements.
constexpr int64_t padded(int64_t dim) { return round_up(dim, 32); }
}  // namespace attention
}  // namespace flashinfer
