// SPDX-License-Identifier: Apache-2.0
// Attention over keys in levels. Level 0 is the most shared one: few long segments, each with the query rows of many
// requests; the last level is each request's own suffix. Every level is read once for all rows of a segment, and its
// states are merged in f32: the result is that of one attention over the keys of all levels, up to rounding.
//
// `causal` applies to the last level only; keys of the levels before it precede all rows. Window, RoPE and ALiBi use
// positions within a level, so they are supported with one level only.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "flashinfer/op/call.h"

#pragma GCC visibility push(default)

namespace flashinfer {

struct CascadeInit {
  op::Object* self = nullptr;
  std::optional<int64_t> num_levels{};                          // that of the buffers, or of the first plan()
  TensorView float_workspace_buffer{nullptr, DType::kU8, {0}};  // u8; the library allocates what it needs itself
  std::string kv_layout = "NHD";
  bool use_cuda_graph = false;
  // One buffer a level: plan() also writes its arrays into them.
  std::optional<std::vector<TensorView>> qo_indptr_buf_arr{}, paged_kv_indptr_buf_arr{}, paged_kv_indices_buf_arr{},
      paged_kv_last_page_len_buf_arr{};
};
struct CascadePlan {
  op::Object* self = nullptr;
  // One per level, as in BatchPrefillPlan; all levels have the same number of rows and share one pool of pages.
  std::vector<TensorView> qo_indptr_arr, paged_kv_indptr_arr, paged_kv_indices_arr, paged_kv_last_page_len;
  int64_t num_qo_heads = 0, num_kv_heads = 0, head_dim = 0, page_size = 0;
  bool causal = false;
  std::string pos_encoding_mode = "NONE";
  bool use_fp16_qk_reduction = false;
  std::optional<double> sm_scale{};
  int64_t window_left = -1;
  std::optional<double> logits_soft_cap{}, rope_scale{}, rope_theta{};
  DType q_data_type = DType::kF16;
  std::optional<DType> kv_data_type{};
};
struct CascadeRun {
  op::Object* self = nullptr;
  TensorView q;  // [nnz, Hq, D]
  op::PagedKv paged_kv_cache;
  std::optional<TensorView> out{};  // C++ only: memory for the result, as q
};
class MultiLevelCascadeAttentionWrapper {
 public:
  explicit MultiLevelCascadeAttentionWrapper(CascadeInit args = {});
  void plan(CascadePlan args);
  Tensor run(CascadeRun args);
  void begin_forward(CascadePlan args) { plan(std::move(args)); }
  Tensor forward(CascadeRun args) { return run(std::move(args)); }
  void reset_workspace_buffer(const TensorView& float_workspace_buffer,
                              const std::vector<TensorView>& int_workspace_buffers);

 private:
  op::Object self_;
};

struct SharedPrefixInit {
  op::Object* self = nullptr;
  TensorView float_workspace_buffer{nullptr, DType::kU8, {0}};  // u8; the library allocates what it needs itself
  std::string kv_layout = "NHD";
};
struct SharedDecodePlan {
  op::Object* self = nullptr;
  TensorView unique_kv_indptr, unique_kv_indices, unique_kv_last_page_len;  // of each request's own keys
  int64_t num_qo_heads = 0, num_kv_heads = 0, head_dim = 0, page_size = 0;
  DType data_type = DType::kF16;
};
struct SharedDecodeForward {
  op::Object* self = nullptr;
  TensorView q;                   // [B, Hq, D]
  TensorView k_shared, v_shared;  // NHD [n, Hkv, D] or HND [Hkv, n, D]: read once for all requests
  op::PagedKv unique_kv_cache;
  std::optional<TensorView> out{};
};
/// Deprecated FlashInfer; MultiLevelCascadeAttentionWrapper does the same with pages.
class BatchDecodeWithSharedPrefixPagedKVCacheWrapper {
 public:
  explicit BatchDecodeWithSharedPrefixPagedKVCacheWrapper(SharedPrefixInit args = {});
  explicit BatchDecodeWithSharedPrefixPagedKVCacheWrapper(const TensorView& float_workspace_buffer,
                                                          const std::string& kv_layout = "NHD");
  void begin_forward(SharedDecodePlan args);
  Tensor forward(SharedDecodeForward args);
  void reset_workspace_buffer(const TensorView& float_workspace_buffer, const TensorView& int_workspace_buffer);

 private:
  op::Object self_;
};

struct SharedPrefillPlan {
  op::Object* self = nullptr;
  TensorView qo_indptr, paged_kv_indptr, paged_kv_indices, paged_kv_last_page_len;
  int64_t num_qo_heads = 0, num_kv_heads = 0, head_dim = 0, page_size = 0;
};
struct SharedPrefillForward {
  op::Object* self = nullptr;
  TensorView q;                   // [nnz, Hq, D]
  TensorView k_shared, v_shared;  // as above
  op::PagedKv unique_kv_cache;
  bool causal = false;  // within each request's own keys
  bool use_fp16_qk_reduction = false;
  std::optional<double> sm_scale{}, rope_scale{}, rope_theta{};  // without RoPE the last two change nothing
  std::optional<TensorView> out{};
};
class BatchPrefillWithSharedPrefixPagedKVCacheWrapper {
 public:
  explicit BatchPrefillWithSharedPrefixPagedKVCacheWrapper(SharedPrefixInit args = {});
  explicit BatchPrefillWithSharedPrefixPagedKVCacheWrapper(const TensorView& float_workspace_buffer,
                                                           const std::string& kv_layout = "NHD");
  void begin_forward(SharedPrefillPlan args);
  Tensor forward(SharedPrefillForward args);
  void reset_workspace_buffer(const TensorView& float_workspace_buffer, const TensorView& int_workspace_buffer);

 private:
  op::Object self_;
};

}  // namespace flashinfer

#pragma GCC visibility pop
