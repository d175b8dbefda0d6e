// SPDX-License-Identifier: Apache-2.0
// Paged prefill whose causal mask has holes: spans of keys that a row sees in both directions (an image's tokens in a
// prompt). Other semantics: attention/op.h.
//
// Row i of a request, at position p = kv_len - qo_len + i, sees key j if
//   j <= p and (causal_window_left < 0 or p - j <= causal_window_left), or
//   start <= j <= end and (range_window_left <= 0 or p - j < range_window_left)
// with [start, end] = bidirectional_ranges[row]. (-1, -1) is no span. The two windows are defined differently, as in
// FlashInfer: 0 means "itself only" for the first, "no window" for the second.
//
// ValueError: plan() with causal, masks, a window, a cap, items, or dtypes and head dims other than the constructor's;
// run() before plan(). NotImplementedError: another pos_encoding_mode than NONE, max_sequence_kv.
#pragma once
#include <optional>
#include <string>
#include <utility>

#include "flashinfer/ops/attention/api/prefill.h"

#pragma GCC visibility push(default)

namespace flashinfer {

struct BatchRangesInit {
  op::Object* self = nullptr;
  TensorView float_workspace_buffer{nullptr, DType::kU8, {0}};  // u8; the library allocates what it needs itself
  std::string kv_layout = "NHD";
  bool use_cuda_graph = false;
  std::optional<TensorView> qo_indptr_buf{}, paged_kv_indptr_buf{}, paged_kv_indices_buf{},
      paged_kv_last_page_len_buf{};
  std::string pos_encoding_mode = "NONE";
  DType q_data_type = DType::kBF16, kv_data_type = DType::kBF16;  // u8: NVFP4
  std::optional<DType> o_data_type{};                             // q's
  int64_t head_dim_qk = 128, head_dim_vo = 128;
};
struct BatchRangesPlan : BatchPrefillPlan {
  std::optional<DType> planned_q_data_type{};  // the constructor's q_data_type, or absent
};
struct BatchRangesRun {
  op::Object* self = nullptr;
  TensorView q;  // [nnz, Hq, Dqk]
  op::PagedKv paged_kv_cache;
  TensorView bidirectional_ranges;  // [nnz, 2] i32|i64: first and last key of each row's span
  int64_t causal_window_left = -1, range_window_left = -1;
  std::optional<double> q_scale{}, k_scale{}, v_scale{};
  std::optional<TensorView> out{}, lse{};  // [nnz, Hq, Dvo]; f32 [nnz, Hq], base 2
  bool return_lse = false;
  std::optional<bool> enable_pdl{};
  std::optional<op::PagedKv> kv_cache_sf{};
};
struct BatchRangesWorkspaceSize : BatchRangesPlan {
  std::optional<TensorView> sizes{};  // i64 [2]: bytes of partial results and of index arrays
};
class BatchPrefillWithCausalBidirectionalRangesWrapper {
 public:
  explicit BatchPrefillWithCausalBidirectionalRangesWrapper(BatchRangesInit args = {});
  void plan(BatchRangesPlan args);
  void begin_forward(BatchRangesPlan args) { plan(std::move(args)); }
  AttentionResult run(BatchRangesRun args);
  AttentionResult run_return_lse(BatchRangesRun args) { return args.return_lse = true, run(std::move(args)); }
  AttentionResult forward(BatchRangesRun args);
  AttentionResult forward_return_lse(BatchRangesRun args) { return args.return_lse = true, forward(std::move(args)); }
  std::pair<int64_t, int64_t> workspace_size(const BatchRangesPlan& args);
  void reset_workspace_buffer(const TensorView& float_workspace_buffer, const TensorView& int_workspace_buffer);

 private:
  op::Object self_;
};

}  // namespace flashinfer

#pragma GCC visibility pop
