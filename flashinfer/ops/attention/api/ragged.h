// SPDX-License-Identifier: Apache-2.0
// Batch prefill over K and V of all requests, concatenated (semantics: attention/op.h).
#pragma once
#include <optional>
#include <string>
#include <utility>

#include "flashinfer/op/call.h"
#include "flashinfer/ops/attention/api/single.h"

#pragma GCC visibility push(default)

namespace flashinfer {

struct BatchRaggedInit {
  op::Object* self = nullptr;
  TensorView float_workspace_buffer{nullptr, DType::kU8, {0}};  // u8; the library allocates what it needs itself
  std::string kv_layout = "NHD";
  bool use_cuda_graph = false;
  // With use_cuda_graph plan() also writes its arrays here, and the batch size is that of qo_indptr_buf.
  std::optional<TensorView> qo_indptr_buf{}, kv_indptr_buf{}, custom_mask_buf{}, mask_indptr_buf{};
  std::string backend = "auto";
  op::Value jit_args{}, jit_kwargs{};
  bool variant_owns_mask = false;
};
struct BatchRaggedPlan {
  op::Object* self = nullptr;
  TensorView qo_indptr;  // [B+1] i32|i64, in tokens; with seq_lens_q also in elements (tokens * Hq * Dqk)
  TensorView kv_indptr;  // [B+1], in tokens; with seq_lens also in elements
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
  std::optional<TensorView> seq_lens{}, seq_lens_q{};  // [B] or [B, 1, 1, 1]
  std::optional<int64_t> max_token_per_sequence{}, max_sequence_kv{};
  std::optional<TensorView> v_indptr{}, o_indptr{};  // [B+1]; must name the rows of kv_indptr and qo_indptr
  std::optional<int64_t> uniform_q_len{};
  std::optional<TensorView>
      alibi_slopes{};  // f32 [Hq], extension: for a share of the heads; default: those of num_qo_heads heads
};
struct BatchRaggedRun {
  op::Object* self = nullptr;
  TensorView q;  // [nnz_q, Hq, Dqk]
  TensorView k;  // NHD [nnz_kv or more, Hkv, Dqk], HND [Hkv, nnz_kv or more, Dqk]
  TensorView v;  // NHD [nnz_kv or more, Hkv, Dvo], HND [Hkv, nnz_kv or more, Dvo]
  std::optional<double> q_scale{}, k_scale{}, v_scale{};
  op::Value args{};                 // a custom variant's additional tensors, then scalars: a list
  std::optional<double> o_scale{};  // unsupported
  std::optional<TensorView> out{}, lse{};
  bool return_lse = false;
  std::string lse_base = "log2";
  std::string lse_layout = "NH";
  std::optional<bool> enable_pdl{};
  std::optional<op::PagedKv> kv_cache_sf{};  // (k_sf, v_sf) of NVFP4 K and V
};
/// Deprecated form of run() that overrides arguments of plan(); window_left too where plan() was given none.
struct BatchRaggedForward {
  op::Object* self = nullptr;
  TensorView q, k, v;
  bool causal = false;
  std::string pos_encoding_mode = "NONE";
  bool use_fp16_qk_reduction = false;
  int64_t window_left = -1;
  std::optional<double> logits_soft_cap{}, sm_scale{}, rope_scale{}, rope_theta{};
  bool return_lse = false;
  std::optional<TensorView> out{}, lse{};
};
class BatchPrefillWithRaggedKVCacheWrapper {
 public:
  explicit BatchPrefillWithRaggedKVCacheWrapper(const TensorView& float_workspace_buffer,
                                                const std::string& kv_layout = "NHD");
  explicit BatchPrefillWithRaggedKVCacheWrapper(BatchRaggedInit args = {});
  void plan(BatchRaggedPlan args);
  AttentionResult run(BatchRaggedRun args);
  AttentionResult run_return_lse(BatchRaggedRun args) { return args.return_lse = true, run(std::move(args)); }
  void begin_forward(BatchRaggedPlan args) { plan(std::move(args)); }
  AttentionResult forward(BatchRaggedForward args);
  AttentionResult forward_return_lse(BatchRaggedForward args) {
    return args.return_lse = true, forward(std::move(args));
  }
  void reset_workspace_buffer(const TensorView& float_workspace_buffer, const TensorView& int_workspace_buffer);

 private:
  op::Object self_;
};

}  // namespace flashinfer

#pragma GCC visibility pop
