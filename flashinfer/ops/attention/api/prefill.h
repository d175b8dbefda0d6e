// SPDX-License-Identifier: Apache-2.0
// Batch prefill over a paged cache (semantics: attention/op.h).
#pragma once
#include <optional>
#include <string>
#include <utility>

#include "flashinfer/op/call.h"
#include "flashinfer/ops/attention/api/single.h"

#pragma GCC visibility push(default)

namespace flashinfer {

namespace attention {
struct PrefillOps;
}

struct BatchPrefillInit {
  op::Object* self = nullptr;
  TensorView float_workspace_buffer{nullptr, DType::kU8, {0}};  // u8; the library allocates what it needs itself
  std::string kv_layout = "NHD";
  bool use_cuda_graph = false;
  // With use_cuda_graph plan() also writes its arrays here, and the batch size is that of paged_kv_last_page_len_buf.
  // On a GPU, page ids are read at each replay (decode.h); likewise mask bits of the last plan's rows and keys,
  // unchecked.
  std::optional<TensorView> qo_indptr_buf{}, paged_kv_indptr_buf{}, paged_kv_indices_buf{},
      paged_kv_last_page_len_buf{}, custom_mask_buf{}, mask_indptr_buf{};
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
  std::optional<TensorView> packed_custom_mask{};  // u8, little-endian bits, every request starts on a byte boundary
  bool causal = false;
  std::string pos_encoding_mode = "NONE";
  bool use_fp16_qk_reduction = false;
  std::optional<double> sm_scale{};
  int64_t window_left = -1;
  std::optional<double> logits_soft_cap{}, rope_scale{}, rope_theta{};
  DType q_data_type = DType::kF16;
  std::optional<DType> kv_data_type{}, o_data_type{};
  bool non_blocking = true;
  // Multi-item scoring, instead of causal and masks: [B] u32; u16 rows of token_pos_in_items_len, the distance of the
  // token at prefix_len + e from its item's delimiter (0 for the delimiter); [B] u16. Keys from the prefix to the row's
  // own delimiter are hidden.
  std::optional<TensorView> prefix_len_ptr{}, token_pos_in_items_ptr{};
  int64_t token_pos_in_items_len = 0;
  std::optional<TensorView> max_item_len_ptr{};
  std::optional<TensorView> seq_lens{}, seq_lens_q{};  // [B] or [B, 1, 1, 1]; must agree with the index arrays
  std::optional<TensorView> block_tables{};            // [B, pages]; must agree with the index arrays
  std::optional<int64_t> max_token_per_sequence{}, max_sequence_kv{};
  std::optional<int64_t> fixed_split_size{};
  bool disable_split_kv = false;
  std::optional<int64_t> uniform_q_len{};
  std::optional<TensorView>
      alibi_slopes{};  // f32 [Hq], extension: for a share of the heads; default: those of num_qo_heads heads
};
struct BatchPrefillRun {
  op::Object* self = nullptr;
  TensorView q;  // [nnz, Hq, Dqk]
  op::PagedKv paged_kv_cache;
  op::Value args{};  // a custom variant's additional tensors, then scalars: a list
  std::optional<double> q_scale{}, k_scale{}, v_scale{};
  std::optional<TensorView> out{};  // [nnz, Hq, Dvo], the plan's o_data_type; e4m3: rounded from f32, saturated at 448
  std::optional<TensorView> lse{};  // f32 [nnz, Hq], or with lse_layout "HN" contiguous [Hq, nnz]
  bool return_lse = false;
  std::string lse_base = "log2";  // or "ln"
  std::string lse_layout = "NH";  // or "HN"
  std::optional<bool> enable_pdl{};
  std::optional<int64_t> window_left{};  // must be the plan's
  std::optional<TensorView> sinks{};     // [Hq] f32, natural units: added to every row's denominator once
  std::optional<op::PagedKv>
      kv_cache_sf{};  // of an NVFP4 cache (u8, dims halved): e4m3 scales, [.., D / 16], as the cache
  std::optional<double> skip_softmax_threshold_scale_factor{};  // without effect: nothing is skipped
  std::optional<bool> use_fp16_softmax{}, uses_spcompress{};    // unsupported when true
};
/// Deprecated form of run() that overrides arguments of plan(); window_left too where plan() was given none.
struct BatchPrefillForward {
  op::Object* self = nullptr;
  TensorView q;
  op::PagedKv paged_kv_cache;
  bool causal = false;
  std::string pos_encoding_mode = "NONE";
  bool use_fp16_qk_reduction = false;
  std::optional<double> k_scale{}, v_scale{};
  int64_t window_left = -1;
  std::optional<double> logits_soft_cap{}, sm_scale{}, rope_scale{}, rope_theta{};
  bool return_lse = false;
  std::optional<TensorView> out{}, lse{};
};
struct BatchPrefillWorkspaceSize : BatchPrefillPlan {
  std::optional<TensorView>
      sizes{};  // i64 [2]: bytes of partial results and of index arrays that run() and plan() take
};
/// Several query tokens a request, whose K and V are already in the cache (append first): plan() once a step, run()
/// once a layer.
class BatchPrefillWithPagedKVCacheWrapper {
 public:
  explicit BatchPrefillWithPagedKVCacheWrapper(const TensorView& float_workspace_buffer,
                                               const std::string& kv_layout = "NHD");
  explicit BatchPrefillWithPagedKVCacheWrapper(BatchPrefillInit args = {});
  void plan(BatchPrefillPlan args);
  AttentionResult run(BatchPrefillRun args);
  AttentionResult run_return_lse(BatchPrefillRun args) { return args.return_lse = true, run(std::move(args)); }
  void begin_forward(BatchPrefillPlan args) { plan(std::move(args)); }
  AttentionResult forward(BatchPrefillForward args);
  AttentionResult forward_return_lse(BatchPrefillForward args) {
    return args.return_lse = true, forward(std::move(args));
  }
  /// (bytes of partial results, bytes of index arrays); allocated by the context's allocator.
  std::pair<int64_t, int64_t> workspace_size(const BatchPrefillPlan& args);
  void reset_workspace_buffer(const TensorView& float_workspace_buffer, const TensorView& int_workspace_buffer);

 protected:
  explicit BatchPrefillWithPagedKVCacheWrapper(const attention::PrefillOps* ops);
  const attention::PrefillOps* ops_;
  op::Object self_;
};

/// FlashInfer chooses a GPU kernel by the constructor's `pos_encoding_mode`, dtypes, dims and window. Here plan() alone
/// decides; only a window or mode that the constructor was given must be plan()'s too (ValueError otherwise).
struct BatchSinkInit {
  op::Object* self = nullptr;
  TensorView float_workspace_buffer{nullptr, DType::kU8, {0}};  // u8; the library allocates what it needs itself
  std::string kv_layout = "NHD";
  bool use_cuda_graph = false;
  std::optional<TensorView> qo_indptr_buf{}, paged_kv_indptr_buf{}, paged_kv_indices_buf{},
      paged_kv_last_page_len_buf{}, custom_mask_buf{}, mask_indptr_buf{};
  std::string backend = "auto";
  std::string pos_encoding_mode = "NONE";
  bool use_fp16_qk_reduction = false;
  DType q_data_type = DType::kBF16, kv_data_type = DType::kBF16;
  int64_t head_dim_qk = 128, head_dim_vo = 128, window_left = -1;
};
struct BatchSinkRun {
  op::Object* self = nullptr;
  TensorView q;
  op::PagedKv paged_kv_cache;
  TensorView sink;                   // [Hq] f32, natural units, unscaled
  std::optional<double> sm_scale{};  // instead of the plan's
  std::optional<double> q_scale{}, k_scale{}, v_scale{};
  std::optional<TensorView> out{}, lse{};
  bool return_lse = false;
  std::string lse_base = "log2", lse_layout = "NH";
  std::optional<bool> enable_pdl{};
  std::optional<int64_t> window_left{};
  std::optional<TensorView> sinks{};  // unsupported: use `sink`
  std::optional<op::PagedKv> kv_cache_sf{};
  std::optional<double> skip_softmax_threshold_scale_factor{};  // without effect: nothing is skipped
  std::optional<bool> use_fp16_softmax{}, uses_spcompress{};    // unsupported when true
};
/// Paged prefill with an additional logit sink[h], without a value, in every row's softmax: out = sum_j exp(x_j) v_j /
/// (exp(sink) + sum_j exp(x_j)); the LSE includes the sink.
class BatchAttentionWithAttentionSinkWrapper : public BatchPrefillWithPagedKVCacheWrapper {
 public:
  explicit BatchAttentionWithAttentionSinkWrapper(BatchSinkInit args = {});
  AttentionResult run(BatchSinkRun args);
  AttentionResult forward(BatchPrefillForward args) = delete;  // it has no argument for a sink
  AttentionResult run_return_lse(BatchSinkRun args) { return args.return_lse = true, run(std::move(args)); }
};

}  // namespace flashinfer

#pragma GCC visibility pop
