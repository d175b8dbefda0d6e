// SPDX-License-Identifier: Apache-2.0
// Collectives of a group of ranks (comm/group.h): all-reduce with what follows it in a transformer layer.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "flashinfer/comm/group.h"
#include "flashinfer/op/call.h"
#include "flashinfer/ops/comm/context_parallel.h"
#include "flashinfer/ops/comm/gpu_share.h"
#include "flashinfer/ops/comm/mixed_comm.h"
#include "flashinfer/ops/comm/moe_a2a.h"
#include "flashinfer/ops/comm/quantized.h"
#include "flashinfer/ops/comm/ulysses.h"

#pragma GCC visibility push(default)

namespace flashinfer {

struct AllReduceFusionWorkspaceInit {
  op::Object* self = nullptr;
  std::string group{};  // its name (comm::Group::connect); all ranks give the same
  int64_t rank = 0, world_size = 1;
  int64_t max_token_num = 1, hidden_dim = 1;  // the largest input, as [max_token_num, hidden_dim]
  DType dtype = DType::kF16;                  // f16|bf16|f32
  std::string backend = "auto";  // what carries the data: shm, tcp or mpi (comm::Group::window); on GPUs: peers (their
                                 // kernels access each other's memory) or nccl; auto: peers if all GPUs can
  std::string device = "cpu";    // of the tensors of its calls: "cpu", or this rank's "cuda:N" or "emu"
};
/// Memory of a group's all-reduces. The constructor is collective: it returns when all ranks have called it with the
/// same sizes. ValueError: sizes or dtypes that are not possible; RuntimeError: as comm::Group::connect.
class AllReduceFusionWorkspace {
 public:
  explicit AllReduceFusionWorkspace(AllReduceFusionWorkspaceInit args);
  /// Gives the memory back; later calls with this workspace are errors, on the other ranks too.
  void destroy();
  operator op::Object*() { return &self_; }

 private:
  op::Object self_;
};

/// Which of the results a call wants. The numbers are FlashInfer's.
enum class AllReduceFusionPattern : uint8_t {
  kAllReduce = 0,
  kArResidualRmsNorm = 1,
  kArResidualRmsNormFp8Quant = 2,
  kArResidualRmsNormFp4Quant = 3,
  kArResidualRmsNormOutFp8Quant = 4,
  kArResidualRmsNormOutFp4Quant = 5,
  kMoeReductionArResidualRmsNorm = 6,
  kMoeFinalizeArResidualRmsNorm = 7,
  kArResidualRmsNormPerTokenGroupFp8PackedQuant = 8,
  kArResidualRmsNormOutPerTokenGroupFp8PackedQuant = 9,
  kArResidualRmsNormDynamicFp8Quant = 10,
  kArResidualRmsNormOutDynamicFp8Quant = 11,
  kMoeFinalizeArResidualRmsNormFp8Quant = 12,
};

struct AllReduceFusion {
  TensorView input;  // [tokens, hidden] f16|bf16|f32, as on every rank; 7, 12: the experts' rows [rows, hidden]
  op::Object* workspace = nullptr;
  int64_t pattern = 0;
  bool launch_with_pdl = false, trigger_completion_at_end = true;  // CUDA only
  std::optional<TensorView> output{};                              // pattern 0: [tokens, hidden] the sum
  std::optional<TensorView> residual_out{};                        // others: h; not stored when absent
  std::optional<TensorView> norm_out{};                            // 1, 4, 5, 9, 11: n
  std::optional<TensorView>
      quant_out{};  // e4m3 [tokens, hidden], or e2m1 [tokens, hidden / 2] (u8 or float4_e2m1fn_x2)
  std::optional<TensorView> scale_out{};    // see below
  std::optional<TensorView> residual_in{};  // [tokens, hidden], the same on every rank
  std::optional<TensorView> rms_gamma{};    // [hidden], dtype of input or f32
  double rms_eps = 1e-6;
  std::optional<op::ScalarOrTensor> scale_factor{};  // of FP8 and FP4: a number or one f32; absent: 1
  std::optional<int64_t> layout_code{};              // of FP4's scales: 0 128x4 (default), 1 8x4, 2 linear
  std::optional<bool> use_oneshot{};                 // absent: by size. The bits are the same
  bool fp32_acc = false;
  // Of pattern 6. E: experts of this rank. Row t of expert e is row e * tokens + t, its scale [e, t].
  std::optional<int64_t> moe_reduction_device_num_experts{};             // E
  std::optional<TensorView> moe_reduction_scale_input{};                 // [E, tokens] f32 or as input
  std::optional<TensorView> moe_reduction_active_experts_token_input{};  // [E * tokens, hidden]
  std::optional<TensorView> moe_reduction_token_input{};                 // [tokens, hidden]
  // Of patterns 7 and 12.
  std::optional<TensorView> expanded_idx_to_permuted_idx{};  // [tokens, k] i32: rows of input; negative: none
  std::optional<TensorView> expert_scale_factor{};           // [tokens, k] f32 or as input
  std::optional<TensorView> shared_expert_output{};          // [tokens, hidden]
  std::optional<int64_t> block_quant_group_size{};           // patterns 8 and 9: divides hidden
  double weight_bias = 0;
  std::string moe_finalize_backend = "trtllm";
  int64_t call = -1;  // set by the call: what tells it from others with this workspace, for recordings
};
/// sum = the inputs of all ranks in their order, in the dtype of input, rounded after each rank (fp32_acc: once); zeros
///   are +0. Every rank gets the same bits.
/// The addend of a rank with experts, each product and each sum rounded to the dtype of input:
///   6: the rows of its experts times their scales, in their order, then moe_reduction_token_input; `input` says the
///   shape alone. 7, 12: for each k the row expanded_idx_to_permuted_idx[t, k] of input times expert_scale_factor[t,
///   k], then shared_expert_output; one shot.
/// h = round(sum + residual_in); n = round(h / sqrt(mean(h^2) + rms_eps) * (weight_bias + rms_gamma))
/// FP8 (2, 4, 12): quant_out = e4m3(n * (1 / scale_factor)), saturating.
/// FP4 (3, 5; 6 and 7 with quant_out): NVFP4 of n with the global scale scale_factor; scale_out: bytes of the scales in
/// layout_code's layout. Group FP8 (8, 9): for each block_quant_group_size columns y = max(amax / 448, 1e-10) raised to
/// a power of two;
///   quant_out = e4m3(n / y); scale_out: int32 [tokens, ceil(hidden / group / 4)] with strides (1, tokens rounded up to
///   4), byte g % 4 of word [t, g / 4] the biased exponent of y; rows up to the next multiple of 4 are 0, but in the
///   last column.
/// Dynamic FP8 (10, 11): s = max(amax / 448, 1 / (512 * 448)); scale_out = s, f32 [tokens, 1]; quant_out = e4m3(n / s).
/// Returns the sum (0), n (1, 4, 5, 7, 9, 11) or the codes (2, 3, 8, 10, 12). 6 computes what it is given memory for (n
/// when for nothing) and returns the first of n, codes, h and sum. Every rank calls it with the same shapes, dtypes and
/// pattern. ValueError: arguments that do not fit together or into the workspace; RuntimeError: a rank that calls
/// something else, died or does not arrive in time.
Tensor allreduce_fusion(const AllReduceFusion& args);

struct AllGather {
  TensorView input;  // [tokens, columns[rank]] f16|bf16|f32; rows may have a stride
  op::Object* workspace = nullptr;
  std::vector<int64_t> columns{};   // of each rank's input, by rank; the same list on every rank
  std::optional<TensorView> out{};  // [tokens, sum of columns]; rows may have a stride
  int64_t call = -1;                // as AllReduceFusion::call
};
/// out[t] = the rows t of all ranks' inputs, side by side in the order of the ranks: what ranks make that compute
/// columns of one matrix. Bytes are copied, so the result is that of one rank which computes all columns. ValueError: a
/// list of columns that does not fit the ranks or the input; RuntimeError as allreduce_fusion. Inputs of any size: they
/// go through the workspace in pieces.
Tensor all_gather(const AllGather& args);

}  // namespace flashinfer

#pragma GCC visibility pop
