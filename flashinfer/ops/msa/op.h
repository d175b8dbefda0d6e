// SPDX-License-Identifier: Apache-2.0
// MiniMax sparse attention: keys are in blocks of 128; a cheap pass scores the blocks, each query row selects some, and
// attends to these.
//
// Keys are flat, [keys, g, 128] with cu_seqlens_k, or paged, [pages, g, 128, 128] with page_table and seqused_k: block
// t of a request is page page_table[b, t]. Any strides between rows, so K and V may be views of one cache. NVFP4 is u8
// [.., 64] with one scale byte (e4m3) for 16 elements in the 128x4 layout of nvfp4_quantize, any shape: row key * g +
// head of flat keys, (page * g + head) * 128 + key of paged ones.
//
// Row i of a request of s rows and L keys stands at position q_offset + i, q_offset = L - s unless given (a number, or
// one for each request). With `causal` it sees keys 0 .. position, else all L.
//
// ValueError: shapes, dtypes and lengths that do not fit together, a page outside the pool, heads that are no multiple
// of KV heads, fp8 queries with other keys, a scale array of the wrong size.
#pragma once
#include <optional>

#include "flashinfer/op/call.h"

#pragma GCC visibility push(default)

namespace flashinfer {

struct MsaProxyScore {
  TensorView q;                              // [n, h, 128] f16|bf16|f32, or e4m3 with e4m3 keys
  TensorView k;                              // [keys, g, 128] or [pages, g, 128, 128], q's dtype or e4m3
  TensorView cu_seqlens_q;                   // [b+1] i32|i64, first row of each request; the last is n
  std::optional<TensorView> cu_seqlens_k{};  // [b+1]
  std::optional<TensorView> page_table{};    // [b, blocks] i32
  std::optional<TensorView> seqused_k{};     // [b] keys of each request
  bool causal = true;
  std::optional<int64_t> max_seqlen_q{};  // at least each request's rows
  std::optional<int64_t> max_k_tiles{};   // blocks of the result; the longest request's unless given
  std::optional<TensorView> output{};     // f32 [h, blocks, n], with reduce_heads [1, blocks, n]
  bool reduce_heads = false;
  std::optional<op::ScalarOrTensor> q_offset{};
};
/// The largest logit q.k, not scaled, of each block: output[head, block, row]; -inf where the row sees none of the
/// block's keys. reduce_heads: the largest of all heads.
Tensor msa_proxy_score(const MsaProxyScore& args);

struct MsaProxyScoreFp4 {
  TensorView q_fp4, k_fp4;  // u8, NVFP4
  TensorView q_scale;       // scale factors: row token * h + head
  TensorView k_scale;
  double q_global_scale = 1, k_global_scale = 1;  // factors of all logits
  TensorView cu_seqlens_q;
  std::optional<TensorView> cu_seqlens_k{}, page_table{}, seqused_k{};
  bool causal = true;
  std::optional<int64_t> max_seqlen_q{}, max_k_tiles{};
  std::optional<TensorView> output{};
  bool reduce_heads = false;
  std::optional<op::ScalarOrTensor> q_offset{};
};
/// The same of NVFP4 queries and keys.
Tensor msa_proxy_score_fp4(const MsaProxyScoreFp4& args);

struct MsaTopkSelect {
  TensorView max_score;                                 // f32 [h, blocks, n], of msa_proxy_score
  int64_t topk = 16;                                    // at least 1 (FlashInfer's kernels take 16)
  std::optional<op::ScalarOrTensor> num_valid_pages{};  // blocks to choose from: all, a number, or i32 [n], clamped
  std::optional<TensorView> output{};                   // i32 [n, h, topk]
  int64_t force_begin_blocks = 0, force_end_blocks = 0;
};
/// The topk blocks of each row and head with the largest scores, in ascending order, then -1 where there are fewer. The
/// first force_begin_blocks and the last force_end_blocks of the valid ones are always among them. Of equal scores the
/// smaller index is taken; NaN counts as the largest. ValueError: more forced blocks than topk or than valid ones.
Tensor msa_topk_select(const MsaTopkSelect& args);

struct MsaSparseAttention {
  TensorView q;             // [n, h, 128] f16|bf16|f32, or e4m3 with e4m3 keys
  TensorView k, v;          // q's dtype, e4m3 or NVFP4
  TensorView q2k_indices;   // i32 [g, n, topk]: blocks of the row's request; others than its own, as -1, are skipped
  TensorView cu_seqlens_q;  // as above
  std::optional<TensorView> cu_seqlens_k{};
  bool causal = false;
  std::optional<double> softmax_scale{};  // 1 / sqrt(128)
  std::optional<TensorView> page_table{}, seqused_k{};
  bool return_softmax_lse = false;
  std::optional<TensorView> k_scale{}, v_scale{};            // of NVFP4
  std::optional<double> k_global_scale{}, v_global_scale{};  // factors of the logits and of the result
  std::optional<op::ScalarOrTensor> q_offset{};
  bool return_temperature_lse = false;
  double lse_temperature_scale = 1;                 // factor of the logits in lse_t, at least 0
  op::Value workspace{};                            // unsupported: memory of a GPU kernel
  std::optional<TensorView> out{}, lse{}, lse_t{};  // results
};
/// Softmax attention of each row over the keys of its blocks that it sees, each block once. Returns out [n, h, 128] in
/// q's dtype (bf16 when q is e4m3), with return_softmax_lse also lse f32 [n, h] in base e, and with
/// return_temperature_lse both lse and lse_t, the same of logits times lse_temperature_scale. A row without keys is 0,
/// its LSE -inf.
op::Results msa_sparse_attention(const MsaSparseAttention& args);

struct MsaSparseDecode {
  TensorView q;  // [b * seqlen_q, h, 128]
  TensorView k, v, q2k_indices;
  std::optional<TensorView> page_table{}, seqused_k{}, cu_seqlens_k{};
  int64_t seqlen_q = 1;  // rows of each request
  bool causal = true;
  std::optional<double> softmax_scale{};
  bool return_softmax_lse = false;
  std::optional<TensorView> k_scale{}, v_scale{};
  std::optional<double> k_global_scale{}, v_global_scale{};
  std::optional<op::ScalarOrTensor> q_offset{};
  std::optional<DType> partial_dtype{};  // without effect: sums are f32
  std::optional<bool> force_fused{};     // without effect
  op::Value workspace{};                 // unsupported
  std::optional<TensorView> out{};       // contiguous, q's shape and the result's dtype
  std::optional<TensorView> lse{};       // result
};
/// The same for a decode step: every request has seqlen_q rows.
op::Results msa_sparse_decode_attention(const MsaSparseDecode& args);

}  // namespace flashinfer

#pragma GCC visibility pop
