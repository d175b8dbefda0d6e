// SPDX-License-Identifier: Apache-2.0
// The plan: a batch's structure, checked once, as a value that run() takes and the recorder writes; and the list of
// works.
#pragma once
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "flashinfer/ops/attention/api/no_plan.h"
#include "flashinfer/ops/attention/plan/plan.h"
#include "flashinfer/ops/mla/kernels/params.h"
#include "flashinfer/ops/mla/op.h"

namespace flashinfer::mla {

inline constexpr const char* kInit = "BatchMLAPagedAttentionWrapper.__init__";
inline constexpr const char* kPlan = "BatchMLAPagedAttentionWrapper.plan";
inline constexpr const char* kRun = "BatchMLAPagedAttentionWrapper.run";
inline constexpr const char* kModule = "flashinfer.mla";

using attention::WorkList;
/// Rows of a batch as independent works. Pure; what it chooses changes speed, never results. `threads`: how many run at
/// once.
WorkList make_work(std::span<const int32_t> qo_indptr, std::span<const int32_t> kv_len, int64_t num_heads, bool causal,
                   int threads);

struct CapturedPlan;  // cuda_graph.h

struct Plan {
  std::string backend = "auto";  // of __init__
  bool use_cuda_graph = false;
  int64_t fixed_batch_size = 0;     // of use_cuda_graph
  attention::GraphBuffers buffers;  // not recorded: the caller's
  int64_t batch_size = 0, nnz_qo = 0, num_heads = 0, head_dim_ckv = 0, head_dim_kpe = 0, page_size = 0;
  bool causal = false;
  double sm_scale = 0;
  DType q_data_type = DType::kBF16, kv_data_type = DType::kBF16, output_dtype = DType::kBF16;
  std::string lse_mode = "none";  // "any": flat arguments without a mode
  std::string scale_mode = "default";
  bool use_sinks = false;
  Tensor qo_indptr, kv_indptr, kv_indices, kv_len;  // int32
  int64_t max_page = -1;                            // of those that kv_len needs
  int64_t longest = -1;                             // not recorded: query tokens of the longest request; -1: not known
  std::shared_ptr<CapturedPlan> graph;  // not recorded: what a captured run reads, when the buffers are on a GPU
  WorkList work;  // depends on the threads, so it is not recorded: a run that is replayed alone makes its own
};
extern const op::StateType plan_type;
/// Query tokens of the longest request.
int64_t most_tokens(const Plan& p);

/// What __init__ sets: nothing but the buffers of use_cuda_graph.
Plan initial_plan(const BatchMlaInit& a);
/// In graph mode: the batch keeps its size, and the arrays of `p` go into the buffers of `before`.
void fill_graph_buffers(Plan& p, const Plan& before);
/// With buffers on a GPU: ValueError for what a captured run cannot follow; then what it reads.
void check_captured(const Plan& p);
void send_captured(Plan& p);
/// Checks the arguments and makes the plan.
Plan plan_of_arguments(const BatchMlaPlan& a);
/// The same for plan(), which warns of a page table by arguments of its own.
Plan make_plan(const BatchMlaPlan& a);
/// A plan that was read from a dump, with its works: ValueError unless its arrays fit together. Null for others.
std::shared_ptr<const Plan> restored(const Plan& p);

// ---- backend='cutlass': one query row a request, of DeepSeek's dims ----
/// Whether a run brings its page table; `made`: by __init__ or plan().
bool takes_page_table(const Plan& made, const BatchMlaRun& a);
/// [rows, heads, latent channels] of such a run's output.
op::Shape output_shape_of_run(const BatchMlaRun& a);
/// The plan of such a run; its arrays may lie in the caller's tensors.
Plan plan_of_run(const BatchMlaRun& a);
/// ValueError unless `out` has 8 bits exactly when `o_scale` is given, which is positive.
void check_output_scale(const BatchMlaRun& a);

using attention::Scale;
using attention::scale_of;

/// Tensors and numbers of one run, as the plan wants them.
struct Call {
  TensorView q_nope, q_pe, ckv, kpe, out;
  const TensorView* lse = nullptr;
  bool natural_lse = false;
  bool packed = false;  // ckv has packed rows (kPackedRow) as e4m3 [tokens, 1, 656], kpe nothing: for prepare_cuda()
  double scale = 0, kpe_ratio = 1, v_scale = 1;
  const TensorView *sinks = nullptr, *ckv_scales = nullptr;
  const float *scale_on_device = nullptr, *v_scale_on_device = nullptr;  // further factors, on a GPU
  void set_scales(const Scale& logits, const Scale& output) {
    scale = logits.number, scale_on_device = logits.on_device;
    v_scale = output.number, v_scale_on_device = output.on_device;
  }
};
/// A run on the CPU. The plan outlives it; `c` is not used after the return, but tensors that it names are.
op::Prepared prepare(const Plan& p, const Call& c);
/// A run on the GPU or emulator that all tensors of `c` are on, as attention's (attention/run.h).
op::Prepared prepare_cuda(const Plan& p, const Call& c);
void run_reference(const Plan& p, const Call& c);

// Ops of the family's other files.
extern const op::Op run_op, append_op, concat_op, concat_quant_op, dense_op, xqa_op;

}  // namespace flashinfer::mla
