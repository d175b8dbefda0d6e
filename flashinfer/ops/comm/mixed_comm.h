// SPDX-License-Identifier: Apache-2.0
// Sums of blocks over some of the ranks: reduce-scatter, and what a model does whose ranks are divided by tensor and by
// data parallelism.
#pragma once
#include <optional>

#include "flashinfer/op/call.h"

#pragma GCC visibility push(default)

namespace flashinfer {

struct ReduceScatter {
  TensorView input;                 // [rows, ...] f16|bf16|f32, rows a multiple of the ranks
  op::Object* workspace = nullptr;  // AllReduceFusionWorkspace of any size: the tensor goes through it in pieces
  bool fp32_acc = false;
  std::optional<TensorView> out{};
  int64_t call = -1;  // as AllReduceFusion::call
};
/// [rows / ranks, ...]: block `rank` of the sum of all ranks' inputs, which is that of allreduce_fusion. Collective.
/// ValueError: rows that the ranks do not divide, a workspace too small; RuntimeError as allreduce_fusion.
Tensor reduce_scatter(const ReduceScatter& args);

enum class MixedCommOp : uint8_t {
  kAllReduce,
  kAllGather,
  kReduceScatter,
  kAllReduceAllGather,
  kReduceScatterAllReduce
};

/// Ranks are numbered by node (inter), in a node (local) by data parallelism, then by tensor parallelism: rank =
/// (inter_dp * inter_tp_size + inter_tp) * local_tp_size * local_dp_size + local_dp * local_tp_size + local_tp. tp_rank
/// = inter_tp * local_tp_size + local_tp, dp_rank likewise.
struct MixedComm {
  TensorView x_in;  // [rows, ...] f16|bf16
  op::Object* workspace = nullptr;
  int64_t op = 0;                                                                      // MixedCommOp
  int64_t local_tp_size = 1, local_dp_size = 1, inter_tp_size = 1, inter_dp_size = 1;  // their product: the ranks
  std::optional<TensorView> x_out{};
  int64_t call = -1;  // as AllReduceFusion::call
};
/// Sums are in f32 in the order of tp_rank, of kReduceScatterAllReduce in that of (dp_rank, tp_rank), rounded once;
/// zeros are +0.
///   kAllReduce: the sum over the ranks of this dp_rank. kAllGather: the inputs of the ranks of this tp_rank, one
///   behind another by dp_rank. kReduceScatter: block dp_rank of [rows / dp] of the sum over the ranks of this tp_rank.
///   kAllReduceAllGather: the sums of each dp_rank's ranks, one behind another. kReduceScatterAllReduce: block dp_rank
///   of the sum over all ranks.
/// Collective. ValueError: sizes that do not fit the ranks or the rows; RuntimeError as allreduce_fusion.
Tensor mixed_comm(const MixedComm& args);

}  // namespace flashinfer

#pragma GCC visibility pop
