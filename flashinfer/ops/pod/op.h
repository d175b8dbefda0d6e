// SPDX-License-Identifier: Apache-2.0
// A prefill and a batch of decodes in one call (semantics: attention/op.h). The results are those of two independent
// calls. FlashInfer never returns the LSE of PODWithPagedKVCacheWrapper and ignores most arguments that end in _d; here
// the LSE is returned on request, and an argument that differs from the plan is an error.
#pragma once
#include <optional>
#include <string>

#include "flashinfer/op/call.h"

#pragma GCC visibility push(default)

namespace flashinfer {

struct PodInit {
  op::Object* self = nullptr;
  TensorView float_workspace_buffer{nullptr, DType::kU8, {0}};  // u8; the library allocates what it needs itself
  std::string kv_layout = "NHD";
  bool use_cuda_graph = false;
  std::optional<TensorView> paged_kv_indptr_buffer{}, paged_kv_indices_buffer{}, paged_kv_last_page_len_buffer{};
  op::Value jit_args{};  // a custom variant for both halves
};
struct PodPlan {  // of the decode half
  op::Object* self = nullptr;
  TensorView indptr, indices, last_page_len;
  int64_t num_qo_heads = 0, num_kv_heads = 0, head_dim = 0, page_size = 0;
  std::string pos_encoding_mode = "NONE";
  int64_t window_left = -1;
  DType q_data_type = DType::kF16;
  std::optional<DType> kv_data_type{}, data_type{};
  std::optional<double> sm_scale{}, rope_scale{}, rope_theta{};
  bool non_blocking = true;
};
struct PodRun {
  op::Object* self = nullptr;
  TensorView q_p, k_p, v_p;  // as single_prefill_with_kv_cache
  TensorView q_d;            // [B, Hq, D]
  op::PagedKv paged_kv_cache_d;
  std::optional<TensorView> custom_mask_p{}, packed_custom_mask_p{};
  bool causal_p = false;
  std::string kv_layout_p = "NHD", pos_encoding_mode_p = "NONE";
  std::optional<double> sm_scale_p{};
  int64_t window_left_p = -1;
  std::optional<double> rope_scale_p{}, rope_theta_p{};
  bool return_lse_p = false;
  std::optional<TensorView> custom_mask_d{}, packed_custom_mask_d{};  // unsupported
  bool causal_d = false;  // one row a request sees all of its keys with either value
  std::string kv_layout_d = "NHD", pos_encoding_mode_d = "NONE";  // the defaults, or the plan's
  std::optional<double> sm_scale_d{};
  int64_t window_left_d = -1;
  std::optional<double> rope_scale_d{}, rope_theta_d{};
  std::optional<double> q_scale{}, k_scale{}, v_scale{};  // of the decode half
  bool return_lse_d = false;
  bool use_fp16_qk_reduction = false;
  std::optional<bool> enable_pdl{};
  op::Value args{};  // a custom variant's additional tensors, then scalars, of both halves: a list
  std::optional<TensorView> out_p{}, lse_p{}, out_d{}, lse_d{};  // C++ only: memory for the results
};
/// Returns out_p, [lse_p,] out_d[, lse_d].
class PODWithPagedKVCacheWrapper {
 public:
  explicit PODWithPagedKVCacheWrapper(const TensorView& float_workspace_buffer, const std::string& kv_layout = "NHD");
  explicit PODWithPagedKVCacheWrapper(PodInit args = {});
  void plan(PodPlan args);
  op::Results run(PodRun args);
  void begin_forward(PodPlan args) { plan(std::move(args)); }
  void reset_workspace_buffer(const TensorView& float_workspace_buffer, const TensorView& int_workspace_buffer);

 private:
  op::Object self_;
};

struct BatchPodInit {
  op::Object* self = nullptr;
  TensorView float_workspace_buffer{nullptr, DType::kU8, {0}};  // u8; the library allocates what it needs itself
  std::string kv_layout = "NHD";
};
struct BatchPodPlan {
  op::Object* self = nullptr;
  TensorView qo_indptr_p, kv_indptr_p, kv_indices_p, last_page_len_p;
  TensorView qo_indptr_d, kv_indptr_d, kv_indices_d, last_page_len_d;
  int64_t num_qo_heads = 0, num_kv_heads = 0, head_dim = 0, page_size = 0;
  std::string pos_encoding_mode = "NONE";
  int64_t window_left = -1;
  DType q_data_type = DType::kF16;
  std::optional<DType> kv_data_type{}, data_type{};
  std::optional<double> sm_scale{}, rope_scale{}, rope_theta{};
  bool non_blocking = true;
};
struct BatchPodRun {
  op::Object* self = nullptr;
  TensorView q_p;
  op::PagedKv paged_kv_cache_p;
  TensorView q_d;
  op::PagedKv paged_kv_cache_d;
  std::optional<TensorView> custom_mask_p{}, packed_custom_mask_p{};  // as BatchPrefillPlan's
  bool causal_p = false;
  std::optional<double> q_scale{}, k_scale{}, v_scale{};  // of both halves
  bool return_lse = false;
  bool use_fp16_qk_reduction = false;
  std::optional<bool> enable_pdl{};
  std::optional<TensorView> out_p{}, lse_p{}, out_d{}, lse_d{};  // C++ only: memory for the results
};
/// Returns out_p, out_d, or with return_lse out_p, lse_p, out_d, lse_d.
class BatchPODWithPagedKVCacheWrapper {
 public:
  explicit BatchPODWithPagedKVCacheWrapper(BatchPodInit args = {});
  explicit BatchPODWithPagedKVCacheWrapper(const TensorView& float_workspace_buffer,
                                           const std::string& kv_layout = "NHD");
  void plan(BatchPodPlan args);
  op::Results run(BatchPodRun args);
  void begin_forward(BatchPodPlan args) { plan(std::move(args)); }

 private:
  op::Object self_;
};

}  // namespace flashinfer

#pragma GCC visibility pop
