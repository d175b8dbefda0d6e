// SPDX-License-Identifier: Apache-2.0
// Parameters of the MLA kernels. Freestanding. docs/attention-cpu.md explains the sizes.
//
// A row is one (query token, query head) pair, row = token * H + head of its request. All rows of a request share the
// one latent KV head: key j is (ckv[j], kpe[j]), its value is ckv[j].
//
// Accumulation order, which makes results independent of batch, tiles, page size and threads: keys are processed in
// blocks of kBlockKeys and chunks of kChunkKeys, both at fixed positions from the request's first key. A row's state
// inside a chunk depends on that row's own logits alone; chunks are folded in ascending order. A dot product takes kpe
// first, then ckv.
#pragma once
#include <stdint.h>

#include "flashinfer/ops/attention/kernels/params.h"

namespace flashinfer {

struct MlaConfig {
  DType q;       // f32, f16, bf16
  DType kv;      // f32, f16, bf16, f8_e4m3fn, f8_e5m2
  DType o;       // f32, f16, bf16
  bool few;      // few heads: keys are read unpacked; else they are packed once a block
  bool grouped;  // ckv has a scale for each token and kScaleGroup channels: rows are converted to f32, then
                 // multiplied
  static constexpr const char* kName = "flashinfer::MlaConfig";
  template <class V>
  constexpr void visit(V&& v) const {
    v("q", q);
    v("kv", kv);
    v("o", o);
    v("few", few);
    v("grouped", grouped);
  }
  friend constexpr bool operator==(const MlaConfig&, const MlaConfig&) = default;
};

namespace mla {
inline constexpr int kBlockKeys = 64;
/// One long request is spread over threads by chunks. 1024 keys of 576 bf16 are 1.2 MB; a row's partial state is 2 KB.
inline constexpr int kChunkKeys = 1024;
/// Up to this many heads packing a block costs more than it saves (measured: 8 heads 0.65 of the dot peak without
/// packing and 0.43 with, 16 heads 0.64 both ways). It depends on the heads alone, so that a decode row is summed like
/// the prefill row of its position.
inline constexpr int kFewHeads = 12;
/// Rows of a tile. Their q (147 KB in bf16), f32 outputs (256 KB) and the packed block (140 KB) stay in an L2 of 1 MB.
inline constexpr int kTileRows = 128;
/// Channels of ckv that share one scale of `ckv_scale_arr`, or of a packed row.
inline constexpr int kScaleGroup = 128;
/// A packed row: 512 e4m3 values, a float32 scale for each 128 of them, 64 bf16 values; in bytes.
inline constexpr int kPackedLatent = 512, kPackedRope = 64, kPackedScales = 4 * kPackedLatent / kScaleGroup,
                     kPackedRow = kPackedLatent + kPackedScales + 2 * kPackedRope;
static_assert(kPackedRow == 656);
}  // namespace mla

/// Strides are in elements, the last dimension is contiguous.
struct MlaParams {
  const void *q_nope, *q_pe, *ckv, *kpe;
  void* o;
  float* lse;  // null: not computed
  int64_t q_nope_stride_n, q_nope_stride_h, q_pe_stride_n, q_pe_stride_h, o_stride_n, o_stride_h, lse_stride_n,
      lse_stride_h;
  int64_t ckv_stride_page, ckv_stride_n, kpe_stride_page, kpe_stride_n;
  int32_t num_heads, dim_ckv, dim_kpe, page_size, causal;

  const int32_t* qo_indptr;   // [B+1]
  const int32_t* kv_indptr;   // [B+1], in pages
  const int32_t* kv_indices;  // pages
  const int32_t* kv_len;      // [B]

  float scale;  // logit = scale * (<q_nope, ckv> + kpe_ratio * <q_pe, kpe>)
  float kpe_ratio;
  float v_scale;            // of the output
  float lse_factor;         // 1 for base 2, ln 2 for natural
  const float* sinks;       // [H] logits of a key without a value, or null
  const float* ckv_scales;  // [page][token][ceil(dim_ckv / kScaleGroup)] contiguous, or null

  const AttentionWorkItem* work;  // of head 0
  const SplitKvReduction* merges;
  float* partial_o;      // [rows][padded(dim_ckv)], unnormalised
  float* softmax_state;  // [rows][3]: maximum, denominator, denominator of the LSE
  void* scratch;         // kernels/cpu/scratch.h's layout, 64-byte aligned, one a thread
};

namespace mla {
using flashinfer::attention::padded;  // rows in scratch
}  // namespace mla
}  // namespace flashinfer
