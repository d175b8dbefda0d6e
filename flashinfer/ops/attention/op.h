// SPDX-License-Identifier: Apache-2.0
// Attention (attention.md sections 1-8). Query row i of a request with `qo_len` rows and `kv_len` keys has position
// i + kv_len - qo_len; `causal` shows it the keys up to its position, `window_left` = w >= 0 only those at most w before it
// (a window of N tokens including the current one is w = N - 1), `custom_mask` replaces `causal` and is ANDed with the window.
//   logit = sm_scale * q_scale * k_scale * <q, k>;  ALiBi adds slope_h * (key - row);  a cap makes it cap * tanh(logit / cap)
//   out = v_scale * sum_j softmax(logit)_j v_j;  lse = log2 sum_j exp(logit_j)  (base 2)
// A row that sees no key gives zeros and -inf. Unused slots of a page are never read. q is f32|f16|bf16, K and V are f32|f16|bf16
// or 8-bit floats; sums are in f32.
//
// Results do not depend on the batch, the page size or threads, bit for bit. Requests of at most 8 query tokens (decode) and longer
// ones (prefill) are summed in two different orders: a decode row equals the prefill row of its position within rounding, and
// prefills of more than 8 tokens do not depend on how a prompt is cut. Any head dims, group sizes, page sizes and strides (last
// dimension contiguous).
//
// Errors: ValueError for shapes, page ids outside the pool, last_page_len outside 1..page_size, indptr that decreases, masks of a
// wrong size, q or K/V that differ from the plan; KeyError for an unknown kv_layout or pos_encoding_mode; AssertionError for run()
// before plan() or a window_left other than the plan's; NotImplementedError, naming the argument, for what is not served here.
// Hints for GPU schedules (use_tensor_cores, non_blocking, fixed_split_size, disable_split_kv, use_fp16_qk_reduction, ...) are
// accepted: they change speed on a GPU and nothing here.
#pragma once
#include <optional>
#include <string>

#include "flashinfer/op/call.h"
#include "flashinfer/ops/attention/custom.h"

namespace flashinfer {

/// What an attention call returns: o, or {o, lse} with return_lse.
using AttentionResult = op::Results;

struct SingleDecode {
  TensorView q;  // [Hq, D]
  TensorView k;  // NHD [kv_len, Hkv, D], HND [Hkv, kv_len, D]
  TensorView v;  // as k; its D may differ
  std::string kv_layout = "NHD";
  std::string pos_encoding_mode = "NONE";  // NONE, ROPE_LLAMA, ALIBI
  bool use_tensor_cores = false;
  std::optional<double> q_scale{}, k_scale{}, v_scale{};
  int64_t window_left = -1;
  std::optional<double> logits_soft_cap{};
  std::optional<double> sm_scale{};  // 1 / sqrt(D)
  std::optional<double> rope_scale{}, rope_theta{};  // 1, 1e4
  bool return_lse = false;
  std::optional<TensorView> out{}, lse{};  // ours: memory for the results, [Hq, Dvo] as q and [Hq] f32
};
AttentionResult single_decode_with_kv_cache(const SingleDecode& args);

struct SinglePrefill {
  TensorView q;  // [qo_len, Hq, Dqk]
  TensorView k;  // NHD [kv_len, Hkv, Dqk], HND [Hkv, kv_len, Dqk]
  TensorView v;  // NHD [kv_len, Hkv, Dvo], HND [Hkv, kv_len, Dvo]
  std::optional<TensorView> scale_q{}, scale_k{}, scale_v{};  // not served
  std::optional<DType> o_dtype{};                         // q's
  std::optional<TensorView> custom_mask{};                // bool [qo_len, kv_len]
  std::optional<TensorView> packed_custom_mask{};         // u8 [ceil(qo_len * kv_len / 8)], little-endian bits
  bool causal = false;
  std::string kv_layout = "NHD";
  std::string pos_encoding_mode = "NONE";
  bool use_fp16_qk_reduction = false;
  std::optional<double> sm_scale{};
  int64_t window_left = -1;
  std::optional<double> logits_soft_cap{};
  std::optional<double> rope_scale{}, rope_theta{};
  std::string backend = "auto";
  bool return_lse = false;
  op::Value kv_cache_sf{};  // not served
  std::optional<double> k_scale{}, v_scale{};
  std::optional<TensorView> out{}, lse{};  // ours: memory for the results
};
AttentionResult single_prefill_with_kv_cache(const SinglePrefill& args);

// ---- batch decode over a paged cache ----
struct BatchDecodeInit {
  op::Object* self = nullptr;
  TensorView float_workspace_buffer;  // u8; not needed on the CPU, may be empty
  std::string kv_layout = "NHD";
  bool use_cuda_graph = false;
  bool use_tensor_cores = false;
  std::optional<TensorView> paged_kv_indptr_buffer{}, paged_kv_indices_buffer{}, paged_kv_last_page_len_buffer{};
  std::string backend = "auto";
  op::Value jit_args{};
};
struct BatchDecodePlan {
  op::Object* self = nullptr;
  TensorView indptr;         // [B+1] i32|i64, in pages
  TensorView indices;        // page ids; only the first indptr[B] are read
  TensorView last_page_len;  // [B], 1..page_size (ignored for a request without pages)
  int64_t num_qo_heads = 0, num_kv_heads = 0, head_dim = 0, page_size = 0;
  std::string pos_encoding_mode = "NONE";
  int64_t window_left = -1, window_right = 0;
  std::optional<double> logits_soft_cap{};
  DType q_data_type = DType::kF16;
  std::optional<DType> kv_data_type{}, o_data_type{}, data_type{};
  std::optional<double> sm_scale{}, rope_scale{}, rope_theta{};
  bool non_blocking = true;
  std::optional<TensorView> block_tables{};  // not served
  std::optional<TensorView> seq_lens{};      // [B]; must agree with the page table
  std::optional<int64_t> fixed_split_size{};
  bool disable_split_kv = false;
  int64_t q_len_per_req = 1;  // L > 1: L trailing tokens a request, causal among themselves
  std::optional<bool> is_causal{};
};
struct BatchDecodeRun {
  op::Object* self = nullptr;
  TensorView q;  // [B * q_len_per_req, Hq, D]
  op::PagedKv paged_kv_cache;
  std::optional<double> q_scale{}, k_scale{}, v_scale{};
  std::optional<TensorView> out{};  // [B * q_len_per_req, Hq, Dvo], the plan's o_data_type
  std::optional<TensorView> lse{};  // [B * q_len_per_req, Hq] f32
  bool return_lse = false;
  std::optional<bool> enable_pdl{};
  std::optional<int64_t> window_left{};  // must be the plan's
  std::optional<TensorView> sinks{};     // not served
  std::optional<int64_t> q_len_per_req{};
  std::optional<double> skip_softmax_threshold_scale_factor{};  // not served
  op::Value kv_cache_sf{};                                      // not served
};
/// One query token a request: plan() once a step with the page table, run() once a layer.
class BatchDecodeWithPagedKVCacheWrapper {
 public:
  explicit BatchDecodeWithPagedKVCacheWrapper(const TensorView& float_workspace_buffer, const std::string& kv_layout = "NHD");
  explicit BatchDecodeWithPagedKVCacheWrapper(BatchDecodeInit args);
  void plan(BatchDecodePlan args);
  AttentionResult run(BatchDecodeRun args);

 private:
  op::Object self_;
};

// ---- batch prefill over a paged cache ----
struct BatchPrefillInit {
  op::Object* self = nullptr;
  TensorView float_workspace_buffer;  // u8; not needed on the CPU, may be empty
  std::string kv_layout = "NHD";
  bool use_cuda_graph = false;
  std::optional<TensorView> qo_indptr_buf{}, paged_kv_indptr_buf{}, paged_kv_indices_buf{}, paged_kv_last_page_len_buf{}, custom_mask_buf{},
      mask_indptr_buf{};
  std::string backend = "auto";
  op::Value jit_args{}, jit_kwargs{};
  bool variant_owns_mask = false;
};
struct BatchPrefillPlan {
  op::Object* self = nullptr;
  TensorView qo_indptr;               // [B+1] i32|i64, in tokens
  TensorView paged_kv_indptr;         // [B+1], in pages
  TensorView paged_kv_indices;        // page ids; only the first paged_kv_indptr[B] are read
  TensorView paged_kv_last_page_len;  // [B]
  int64_t num_qo_heads = 0, num_kv_heads = 0, head_dim_qk = 0, page_size = 0;
  std::optional<int64_t> head_dim_vo{};            // head_dim_qk
  std::optional<TensorView> custom_mask{};         // bool, [qo_len, kv_len] of each request one after another
  std::optional<TensorView> packed_custom_mask{};  // u8, little-endian bits, every request from a byte of its own
  bool causal = false;
  std::string pos_encoding_mode = "NONE";
  bool use_fp16_qk_reduction = false;
  std::optional<double> sm_scale{};
  int64_t window_left = -1;
  std::optional<double> logits_soft_cap{}, rope_scale{}, rope_theta{};
  DType q_data_type = DType::kF16;
  std::optional<DType> kv_data_type{}, o_data_type{};
  bool non_blocking = true;
  std::optional<TensorView> prefix_len_ptr{}, token_pos_in_items_ptr{};  // multi-item scoring: not served
  int64_t token_pos_in_items_len = 0;
  std::optional<TensorView> max_item_len_ptr{};
  std::optional<TensorView> seq_lens{}, seq_lens_q{};  // [B]; must agree with the index arrays
  std::optional<TensorView> block_tables{};          // not served
  std::optional<int64_t> max_token_per_sequence{}, max_sequence_kv{};
  std::optional<int64_t> fixed_split_size{};
  bool disable_split_kv = false;
  std::optional<int64_t> uniform_q_len{};
};
struct BatchPrefillRun {
  op::Object* self = nullptr;
  TensorView q;  // [nnz, Hq, Dqk]
  op::PagedKv paged_kv_cache;
  std::optional<double> q_scale{}, k_scale{}, v_scale{};
  std::optional<TensorView> out{};  // [nnz, Hq, Dvo], the plan's o_data_type
  std::optional<TensorView> lse{};  // f32 [nnz, Hq], or with lse_layout "HN" contiguous [Hq, nnz]
  bool return_lse = false;
  std::string lse_base = "log2";  // or "ln"
  std::string lse_layout = "NH";  // or "HN"
  std::optional<bool> enable_pdl{};
  std::optional<int64_t> window_left{};  // must be the plan's
  std::optional<TensorView> sinks{};     // not served
  op::Value kv_cache_sf{};               // not served
  std::optional<double> skip_softmax_threshold_scale_factor{};  // not served
  std::optional<bool> use_fp16_softmax{}, uses_spcompress{};      // not served when true
};
/// Several query tokens a request, whose K and V are already in the cache (append first): plan() once a step, run() once a layer.
class BatchPrefillWithPagedKVCacheWrapper {
 public:
  explicit BatchPrefillWithPagedKVCacheWrapper(const TensorView& float_workspace_buffer, const std::string& kv_layout = "NHD");
  explicit BatchPrefillWithPagedKVCacheWrapper(BatchPrefillInit args);
  void plan(BatchPrefillPlan args);
  AttentionResult run(BatchPrefillRun args);

 private:
  op::Object self_;
};

// ---- batch prefill over K and V of all requests one after another ----
struct BatchRaggedInit {
  op::Object* self = nullptr;
  TensorView float_workspace_buffer;  // u8; not needed on the CPU, may be empty
  std::string kv_layout = "NHD";
  bool use_cuda_graph = false;
  std::optional<TensorView> qo_indptr_buf{}, kv_indptr_buf{}, custom_mask_buf{}, mask_indptr_buf{};
  std::string backend = "auto";
  op::Value jit_args{}, jit_kwargs{};
  bool variant_owns_mask = false;
};
struct BatchRaggedPlan {
  op::Object* self = nullptr;
  TensorView qo_indptr;  // [B+1] i32|i64, in tokens
  TensorView kv_indptr;  // [B+1], in tokens
  int64_t num_qo_heads = 0, num_kv_heads = 0, head_dim_qk = 0;
  std::optional<int64_t> head_dim_vo{};
  std::optional<TensorView> custom_mask{}, packed_custom_mask{};
  bool causal = false;
  std::string pos_encoding_mode = "NONE";
  bool use_fp16_qk_reduction = false;
  int64_t window_left = -1;
  std::optional<double> logits_soft_cap{}, sm_scale{}, rope_scale{}, rope_theta{};
  DType q_data_type = DType::kF16;
  std::optional<DType> kv_data_type{}, o_data_type{};
  bool non_blocking = true;
  std::optional<TensorView> prefix_len_ptr{}, token_pos_in_items_ptr{};
  int64_t token_pos_in_items_len = 0;
  std::optional<TensorView> max_item_len_ptr{};
  std::optional<int64_t> fixed_split_size{};
  bool disable_split_kv = false;
  std::optional<TensorView> seq_lens{}, seq_lens_q{};
  std::optional<int64_t> max_token_per_sequence{}, max_sequence_kv{};
  std::optional<TensorView> v_indptr{}, o_indptr{};  // not served
  std::optional<int64_t> uniform_q_len{};
};
struct BatchRaggedRun {
  op::Object* self = nullptr;
  TensorView q;  // [nnz_q, Hq, Dqk]
  TensorView k;  // NHD [nnz_kv, Hkv, Dqk], HND [Hkv, nnz_kv, Dqk]
  TensorView v;  // NHD [nnz_kv, Hkv, Dvo], HND [Hkv, nnz_kv, Dvo]
  std::optional<double> q_scale{}, k_scale{}, v_scale{};
  std::optional<double> o_scale{};  // not served
  std::optional<TensorView> out{}, lse{};
  bool return_lse = false;
  std::string lse_base = "log2";
  std::string lse_layout = "NH";
  std::optional<bool> enable_pdl{};
  op::Value kv_cache_sf{};  // not served
};
class BatchPrefillWithRaggedKVCacheWrapper {
 public:
  explicit BatchPrefillWithRaggedKVCacheWrapper(const TensorView& float_workspace_buffer, const std::string& kv_layout = "NHD");
  explicit BatchPrefillWithRaggedKVCacheWrapper(BatchRaggedInit args);
  void plan(BatchRaggedPlan args);
  AttentionResult run(BatchRaggedRun args);

 private:
  op::Object self_;
};

}  // namespace flashinfer
