// SPDX-License-Identifier: Apache-2.0
// Batch decode over a paged cache (semantics: attention/op.h).
#pragma once
#include <optional>
#include <string>
#include <utility>

#include "flashinfer/op/call.h"
#include "flashinfer/ops/attention/api/single.h"

#pragma GCC visibility push(default)

namespace flashinfer {

namespace attention {
struct DecodeOps;
}

struct BatchDecodeInit {
  op::Object* self = nullptr;
  TensorView float_workspace_buffer{nullptr, DType::kU8, {0}};  // u8; the library allocates what it needs itself
  std::string kv_layout = "NHD";
  bool use_cuda_graph = false;
  bool use_tensor_cores = false;
  // With use_cuda_graph plan() also writes its arrays here, and the batch size is that of the last one. A captured
  // run() on a GPU reads page ids here at each replay: plan() checks those that it writes; ids that the caller writes
  // later must be inside the pool, or memory beyond it is read (they are not checked). Entries from the last plan's
  // indptr[B] on are not read.
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
  std::optional<TensorView> block_tables{};  // [B, pages]; must agree with the index arrays
  std::optional<TensorView> seq_lens{};      // [B]; must agree with the page table
  std::optional<int64_t> fixed_split_size{};
  bool disable_split_kv = false;
  int64_t q_len_per_req = 1;  // L > 1: L trailing tokens a request, causal among themselves
  std::optional<bool> is_causal{};
  std::optional<TensorView>
      alibi_slopes{};  // f32 [Hq], extension: for a share of the heads; default: those of num_qo_heads heads
};
struct BatchDecodeRun {
  op::Object* self = nullptr;
  TensorView q;  // [B * q_len_per_req, Hq, D]
  op::PagedKv paged_kv_cache;
  op::Value args{};  // a custom variant's additional tensors, then scalars: a list
  std::optional<double> q_scale{}, k_scale{}, v_scale{};
  std::optional<TensorView>
      out{};  // [B * q_len_per_req, Hq, Dvo], the plan's o_data_type; e4m3: rounded from f32, saturated at 448
  std::optional<TensorView> lse{};  // [B * q_len_per_req, Hq] f32
  bool return_lse = false;
  std::optional<bool> enable_pdl{};
  std::optional<int64_t> window_left{};  // must be the plan's
  std::optional<TensorView> sinks{};     // [Hq] f32, natural units: added to every row's denominator once
  std::optional<int64_t> q_len_per_req{};
  std::optional<double> skip_softmax_threshold_scale_factor{};  // without effect: nothing is skipped
  std::optional<op::PagedKv>
      kv_cache_sf{};  // of an NVFP4 cache (u8, dims halved): e4m3 scales, [.., D / 16], as the cache
};
/// Deprecated form of run() that overrides arguments of plan(); window_left too where plan() was given none.
struct BatchDecodeForward {
  op::Object* self = nullptr;
  TensorView q;
  op::PagedKv paged_kv_cache;
  std::string pos_encoding_mode = "NONE";
  std::optional<double> q_scale{}, k_scale{}, v_scale{};
  int64_t window_left = -1;
  std::optional<double> logits_soft_cap{}, sm_scale{}, rope_scale{}, rope_theta{};
  bool return_lse = false;
  std::optional<TensorView> out{}, lse{};
};
/// plan() again from host arrays, as some engines call it: data types default to those of the last plan.
struct FastDecodePlan {
  op::Object* self = nullptr;
  TensorView indptr, indices, last_page_len;
  int64_t num_qo_heads = 0, num_kv_heads = 0, head_dim = 0, page_size = 0;
  std::string pos_encoding_mode = "NONE";
  int64_t window_left = -1;
  std::optional<double> logits_soft_cap{};
  std::optional<DType> q_data_type{}, kv_data_type{}, data_type{};
  std::optional<double> sm_scale{}, rope_scale{}, rope_theta{};
  bool non_blocking = true;
  std::optional<int64_t> fixed_split_size{};
  bool disable_split_kv = false;
  int64_t q_len_per_req = 1;
  std::optional<TensorView> global_override_indptr_cpu{};  // instead of indptr
};
struct BatchDecodePlanOnDevice {
  op::Object* self = nullptr;
  TensorView seq_lens;                // [B] i32 on the device of the buffers, contiguous
  std::optional<TensorView> pages{};  // internal: paged_kv_indices_buffer, so that a recording holds it
};
struct BatchDecodeWorkspaceSize : BatchDecodePlan {
  std::optional<TensorView>
      sizes{};  // i64 [2]: bytes of partial results and of index arrays that run() and plan() take
};
/// One query token a request: plan() once a step with the page table, run() once a layer.
class BatchDecodeWithPagedKVCacheWrapper {
 public:
  explicit BatchDecodeWithPagedKVCacheWrapper(const TensorView& float_workspace_buffer,
                                              const std::string& kv_layout = "NHD");
  explicit BatchDecodeWithPagedKVCacheWrapper(BatchDecodeInit args = {});
  void plan(BatchDecodePlan args);
  AttentionResult run(BatchDecodeRun args);
  AttentionResult run_return_lse(BatchDecodeRun args) { return args.return_lse = true, run(std::move(args)); }
  void begin_forward(BatchDecodePlan args) { plan(std::move(args)); }
  AttentionResult forward(BatchDecodeForward args);
  AttentionResult forward_return_lse(BatchDecodeForward args) {
    return args.return_lse = true, forward(std::move(args));
  }
  void fast_decode_plan(FastDecodePlan args);
  /// Plans again from lengths on the device, with what the last plan() was given otherwise; not in FlashInfer. Only
  /// with use_cuda_graph=True and an int32 paged_kv_indices_buffer, which is read as rows of len / B page ids, one row
  /// a request. On a GPU a kernel does it, in the order of the stream: the host reads nothing, and the call may be
  /// captured together with run(). There lengths are taken as at most what a row holds, and page ids are not checked.
  /// ValueError: no such buffers, another batch size, on the host a length outside [0, what a row holds] or a negative
  /// page id; NotImplementedError: ROPE_LLAMA.
  void plan_on_device(const TensorView& seq_lens);
  /// (bytes of partial results, bytes of index arrays); allocated by the context's allocator.
  std::pair<int64_t, int64_t> workspace_size(const BatchDecodePlan& args);
  void reset_workspace_buffer(const TensorView& float_workspace_buffer, const TensorView& int_workspace_buffer);

 protected:
  explicit BatchDecodeWithPagedKVCacheWrapper(const attention::DecodeOps* ops);
  const attention::DecodeOps* ops_;
  op::Object self_;
};

struct CUDAGraphBatchDecodeInit {
  op::Object* self = nullptr;
  TensorView workspace_buffer{nullptr, DType::kU8, {0}};
  // As the buffers of BatchDecodeInit: all of them, or none. Without them the first plan() fixes the batch size, and a
  // run() on a GPU is an error: the memory of a captured graph needs a bound.
  std::optional<TensorView> indptr_buffer{}, indices_buffer{}, last_page_len_buffer{};
  std::string kv_layout = "NHD";
  bool use_tensor_cores = false;
};
/// The same with use_cuda_graph=True.
class CUDAGraphBatchDecodeWithPagedKVCacheWrapper : public BatchDecodeWithPagedKVCacheWrapper {
 public:
  explicit CUDAGraphBatchDecodeWithPagedKVCacheWrapper(CUDAGraphBatchDecodeInit args = {});
};

}  // namespace flashinfer

#pragma GCC visibility pop
