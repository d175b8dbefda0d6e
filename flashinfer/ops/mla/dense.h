// SPDX-License-Identifier: Apache-2.0
// Latent attention without plan(): a dense page table, or a list of tokens for every query row, in every call
// (semantics: mla/op.h).
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "flashinfer/op/call.h"

#pragma GCC visibility push(default)

namespace flashinfer {

/// out = bmm2_scale * softmax(bmm1_scale * query cache^T) cache[..., :kv_lora_rank]; the rows of a request are the last
/// tokens of its cache, causal among themselves.
/// With sparse_mla_top_k > 0 a row attends to the tokens that block_tables lists for it: token i is entry i % page_size
/// of page i / page_size, and negative entries are skipped. Then at most min(sparse_mla_top_k, keys that the row could
/// see by seq_lens) entries of a row's list are read, or sparse_mla_top_k_lens of them.
/// ValueError: shapes, lengths beyond the page table, pages or tokens outside the pool. With
/// sparse_mla_top_k the cache may have rows of 656 bytes: 512 e4m3, a float32 scale for each 128 of them, 64 bf16
/// (DeepSeek V3.2); their products with the scales are rounded to bf16.
struct TrtllmBatchDecodeMla {
  TensorView query;     // [B, n, H, ckv + kpe], or [cum_seq_lens_q[B], H, ckv + kpe]
  TensorView kv_cache;  // [P, ps, ckv + kpe] or [P, 1, ps, ckv + kpe]; uint8 [.., 656] with sparse_mla_top_k
  TensorView workspace_buffer{nullptr, DType::kU8, {0}};  // the library allocates what it needs itself
  int64_t qk_nope_head_dim = 0;                           // of the un-absorbed heads: without effect
  int64_t kv_lora_rank = 0, qk_rope_head_dim = 0;         // ckv, kpe
  // [B, pages], or with uses_shared_paged_kv_idx=False [B, 2, pages] with the same pages twice; [B, n, top_k] or
  // [rows, top_k] tokens.
  TensorView block_tables;
  std::optional<TensorView> seq_lens{};  // [B] tokens in the cache; needed without sparse_mla_top_k
  int64_t max_seq_len = INT64_MAX;       // at least every seq_lens
  int64_t sparse_mla_top_k = 0;
  std::optional<TensorView> out{};  // [..., H, ckv] as query; its dtype, bf16 for 8-bit queries
  op::ScalarOrTensor bmm1_scale = 1.0, bmm2_scale = 1.0;
  std::optional<TensorView> sinks{};                            // [H] f32
  std::optional<double> skip_softmax_threshold_scale_factor{};  // without effect: nothing is skipped
  std::optional<bool> enable_pdl{};
  std::string backend = "auto";
  bool is_var_seq = true;  // without effect
  bool uses_shared_paged_kv_idx = true;
  std::optional<TensorView> lse{};  // [rows, H] or [B, n, H] f32
  bool return_lse = false;
  std::string cute_dsl_impl = "auto", kv_scale_format = "auto";  // of GPU kernels: without effect
  std::optional<TensorView> cum_seq_lens_q{};                    // [B+1]
  std::optional<int64_t> max_q_len{};                            // at least every request's rows
  std::optional<TensorView> multi_ctas_kv_counter_buffer{};      // of GPU kernels
  std::optional<TensorView> sparse_mla_top_k_lens{};             // [rows]
  // With enable_dcp, of cp_world ranks cp_rank has the tokens cp_rank, cp_rank + cp_world, ... of each context in its
  // cache: row i of n sees the first ceil((G - (n - 1) + i - cp_rank) / cp_world) of them, G =
  // causal_seqlens_kv_global: tokens of all ranks that the request's last row sees. Results are this rank's, for
  // merge_states: return_lse must be true.
  bool enable_dcp = false;
  int64_t cp_world = 1, cp_rank = 0;
  std::optional<TensorView> causal_seqlens_kv_global{};  // [B]
  std::optional<bool> use_fp16_softmax{};                // true is unsupported
  std::optional<std::string> return_lse_base{};          // base2 (also None) or basee
};
op::Results trtllm_batch_decode_with_kv_cache_mla(const TrtllmBatchDecodeMla& args);

/// The same with one query row a request and without an LSE.
struct XqaBatchDecodeMla {
  TensorView query, kv_cache;  // as above
  TensorView workspace_buffer{nullptr, DType::kU8, {0}};
  int64_t qk_nope_head_dim = 0, kv_lora_rank = 0, qk_rope_head_dim = 0;
  TensorView block_tables, seq_lens;
  int64_t max_seq_len = INT64_MAX;
  std::optional<TensorView> out{};
  op::ScalarOrTensor bmm1_scale = 1.0, bmm2_scale = 1.0;
  op::Value sinks{};  // unsupported
  std::optional<bool> enable_pdl{};
};
op::Results xqa_batch_decode_with_kv_cache_mla(const XqaBatchDecodeMla& args);

}  // namespace flashinfer

#pragma GCC visibility pop
