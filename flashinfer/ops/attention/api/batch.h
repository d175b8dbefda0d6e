// SPDX-License-Identifier: Apache-2.0
// BatchAttention: prefill and decode requests in one batch (semantics: attention/op.h).
#pragma once
#include <optional>
#include <string>

#include "flashinfer/op/call.h"

#pragma GCC visibility push(default)

namespace flashinfer {

struct BatchAttentionInit {
  op::Object* self = nullptr;
  std::string kv_layout = "NHD";
  Device device{DeviceType::kCUDA};  // of the workspace of GPUs; the tensors of run() decide where it runs
};
struct BatchAttentionPlan {
  op::Object* self = nullptr;
  TensorView qo_indptr;   // [B+1] i32|i64, in tokens; entries from B+1 on are not read
  TensorView kv_indptr;   // [B+1], in pages; likewise
  TensorView kv_indices;  // page ids; only the first kv_indptr[B] are read
  TensorView kv_len_arr;  // [B] tokens; the pages must hold them
  int64_t num_qo_heads = 0, num_kv_heads = 0, head_dim_qk = 0, head_dim_vo = 0, page_size = 0;
  bool causal = false;
  std::optional<double> sm_scale{}, logits_soft_cap{};
  DType q_data_type = DType::kBF16, kv_data_type = DType::kBF16;
  bool use_profiler = false;  // unsupported
};
struct BatchAttentionRun {
  op::Object* self = nullptr;
  TensorView q;  // [nnz, Hq, Dqk]
  op::PagedKv kv_cache;
  std::optional<TensorView> out{};  // [nnz, Hq, Dvo] as q
  std::optional<TensorView> lse{};  // [nnz, Hq] f32, base 2
  std::optional<double> k_scale{}, v_scale{};
  double logits_soft_cap = 0.0;                 // the plan's, or 0
  std::optional<TensorView> profiler_buffer{};  // unsupported
  std::optional<op::PagedKv>
      kv_cache_sf{};  // of an NVFP4 cache (u8, dims halved): e4m3 scales, [.., D / 16], as the cache
};
/// Always returns both out and lse.
class BatchAttention {
 public:
  explicit BatchAttention(BatchAttentionInit args = {});
  void plan(BatchAttentionPlan args);
  op::Results run(BatchAttentionRun args);

 private:
  op::Object self_;
};

}  // namespace flashinfer

#pragma GCC visibility pop
