// SPDX-License-Identifier: Apache-2.0
// Attention without plan(): a dense page table and lengths in every call (semantics: attention/op.h). bmm1_scale is the
// whole scale of the logits (q * k * softmax scale), bmm2_scale that of the output; a number or one f32.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "flashinfer/op/call.h"
#include "flashinfer/ops/attention/api/single.h"

#pragma GCC visibility push(default)

namespace flashinfer {

struct TrtllmBatchDecode {
  TensorView query;  // [B * q_len_per_req, Hq, D], or [cum_seq_lens_q[B], Hq, D]; causal among the rows of a request
  op::PagedKv kv_cache;
  TensorView workspace_buffer{nullptr, DType::kU8, {0}};  // the library allocates what it needs itself
  // [B, pages] i32|i64; only pages that seq_lens needs are read. With uses_shared_paged_kv_idx=False [B, 2, pages]: of
  // K, and of V. With enable_block_sparse_attention [Hkv, B, pages].
  TensorView block_tables;
  TensorView seq_lens;              // [B] tokens in the cache; [Hkv, B] with enable_block_sparse_attention
  int64_t max_seq_len = INT64_MAX;  // at least every seq_lens
  op::ScalarOrTensor bmm1_scale = 1.0, bmm2_scale = 1.0;
  int64_t window_left = -1;
  std::optional<TensorView> out{};  // as query, or e4m3: rounded from f32, saturating
  std::optional<DType> out_dtype{};
  std::optional<double> o_sf_scale{};      // unsupported: FP4 output
  std::optional<int64_t> o_sf_vec_size{};  // unsupported
  std::optional<TensorView> sinks{};       // [Hq] f32, natural units
  std::string kv_layout = "HND";
  std::optional<bool> enable_pdl{};
  std::string backend = "auto";
  std::optional<int64_t> q_len_per_req = 1;  // without effect with cum_seq_lens_q
  double o_scale = 1.0;                      // value of one unit of an e4m3 out: bmm2_scale is divided by it already
  std::optional<TensorView> mask{};          // u16 as xqa_batch_decode_with_kv_cache takes it; absent: causal
  std::optional<int64_t> max_q_len{};        // with cum_seq_lens_q
  std::optional<TensorView> cum_seq_lens_q{};
  std::optional<double> skip_softmax_threshold_scale_factor{};  // without effect: nothing is skipped
  std::optional<op::PagedKv> kv_cache_sf{};
  bool uses_shared_paged_kv_idx = true;
  std::optional<TensorView> lse{};  // [rows, Hq] f32, base 2
  bool return_lse = false;
  std::optional<TensorView> bmm1_scale_log2{};               // [1] f32, bmm1_scale * log2(e): in place of bmm1_scale
  std::optional<TensorView> multi_ctas_kv_counter_buffer{};  // workspace of a GPU kernel
  // Every KV head attends to pages of its own, as many as its row of block_tables lists: rows are causal among the
  // tokens of these pages, as if they were the whole request.
  bool enable_block_sparse_attention = false;
  // Of cp_world ranks, cp_rank has the tokens cp_rank, cp_rank + cp_world, ... of each context in its cache: row j sees
  // the first floor((S + j - cp_rank) / cp_world) + 1 of them, S = causal_seqlens_kv_global: tokens of all ranks before
  // row 0.
  int64_t cp_world = 1, cp_rank = 0;
  std::optional<TensorView> causal_seqlens_kv_global{};  // [B]
  // Of kernels: 'k_only' or 'separate_kv'; int32 [B], the order of requests; unsupported. Results do not depend on
  // them.
  op::Value bf16q_fp8kv_transform_mode{}, request_order{}, request_order_plan{};
};
AttentionResult trtllm_batch_decode_with_kv_cache(const TrtllmBatchDecode& args);

struct TrtllmBatchContext {
  TensorView query;  // [cum_seq_lens_q[B], Hq, D]
  op::PagedKv kv_cache;
  TensorView workspace_buffer{nullptr, DType::kU8, {0}};
  TensorView block_tables, seq_lens;                      // as above
  int64_t max_q_len = INT64_MAX, max_kv_len = INT64_MAX;  // at least the lengths
  op::ScalarOrTensor bmm1_scale = 1.0, bmm2_scale = 1.0;
  std::optional<int64_t> batch_size{};          // when given, that of block_tables
  TensorView cum_seq_lens_q;                    // [B+1]
  std::optional<TensorView> cum_seq_lens_kv{};  // [B+1] or longer, not read: lengths are those of seq_lens
  int64_t window_left = -1;
  std::optional<TensorView> out{};
  std::optional<DType> out_dtype{};
  std::optional<double> o_sf_scale{};      // unsupported
  std::optional<int64_t> o_sf_vec_size{};  // unsupported
  std::string kv_layout = "HND";
  std::optional<bool> enable_pdl{};
  std::optional<TensorView> sinks{};
  std::optional<op::PagedKv> kv_cache_sf{};
  std::optional<double> skip_softmax_threshold_scale_factor{};  // without effect: nothing is skipped
  bool uses_shared_paged_kv_idx = true;
  bool causal = true;
  std::optional<TensorView> lse{};
  bool return_lse = false;
  std::optional<TensorView> multi_ctas_kv_counter_buffer{};   // workspace of a GPU kernel
  std::optional<bool> use_fp16_softmax{}, uses_spcompress{};  // unsupported when true
  std::string backend = "trtllm-gen";
};
AttentionResult trtllm_batch_context_with_kv_cache(const TrtllmBatchContext& args);

}  // namespace flashinfer

#pragma GCC visibility pop
