// SPDX-License-Identifier: Apache-2.0
// A definition has one rank's tensors, and what it says is what that rank computes when all pass the same
// (trace_texts.h). The all-to-all of experts has none: its calls read what earlier ones left in the workspace.
#include "flashinfer/op/trace.h"
#include "flashinfer/ops/comm/trace_texts.h"

namespace flashinfer::ops::comm {
namespace {
/// Of patterns whose first result is the sum or what was normalised; the codes of others need scales of the caller.
constexpr op::TraceEntry all_reduce(const char* pattern) {
  return {.op = "allreduce_fusion",
          .op_type = "comm",
          .axes = "num_tokens(m t) hidden_dim(d)=h",
          .inputs = "input workspace:int64 pattern residual_in rms_gamma rms_eps? weight_bias?",
          .outputs = "output[num_tokens hidden_dim]@input",
          .prefix = "allreduce_fusion",
          .tags = "status:verified stage:comm fused",
          .when = pattern,
          .api = "flashinfer.comm.allreduce.allreduce_fusion",
          .reference = kAllReduceReference,
          .init = kAllReduceInit};
}

/// The ops of run_mixed_comm whose results do not depend on the rank.
constexpr op::TraceEntry mixed(const char* op) {
  return {.op = "mixed_comm_into",
          .op_type = "comm",
          .axes = "num_rows hidden_dim=h result_rows",
          .inputs =
              "x_in[num_rows hidden_dim] workspace:int64 op local_tp_size? local_dp_size? inter_tp_size? "
              "inter_dp_size?",
          .outputs = "output[result_rows hidden_dim]>x_out@x_in",
          .prefix = "mixed_comm",
          .tags = "stage:comm",
          .when = op,
          .api = "flashinfer.comm.mixed_comm.run_mixed_comm",
          .reference = kMixedReference,
          .init = kMixedInit};
}
constexpr op::TraceEntry kUlysses{.op = "ulysses_scatter_heads",
                                  .op_type = "comm",
                                  .axes = "batch_size(b) seq_len(s) num_heads(h)=h head_dim(d)=d",
                                  .inputs = "x[batch_size seq_len num_heads head_dim] workspace:int64",
                                  .outputs = "output[batch_size seq_len num_heads head_dim]>out@x",
                                  .prefix = "ulysses_scatter_heads",
                                  .tags = "stage:comm",
                                  .api = "flashinfer.comm.ulysses.UlyssesCommunicator.scatter_heads",
                                  .reference = kUlyssesReference,
                                  .init = kUlyssesInit};
constexpr op::TraceEntry ulysses_gather() {
  op::TraceEntry e = kUlysses.of("ulysses_gather_heads", "ulysses_gather_heads");
  e.api = "flashinfer.comm.ulysses.UlyssesCommunicator.gather_heads";
  return e;
}

constexpr op::TraceEntry kTraces[] = {
    {.op = "AllReduceFusionWorkspace.__init__", .op_type = nullptr},
    {.op = "AllReduceFusionWorkspace.destroy", .op_type = nullptr},
    all_reduce("pattern=0"),
    all_reduce("pattern=1"),
    all_reduce("pattern=4"),
    all_reduce("pattern=5"),
    all_reduce("pattern=9"),
    all_reduce("pattern=11"),
    {.op = "decode_cp_a2a_alltoall_into",
     .op_type = "comm",
     .axes = "batch_dim(...) cp_size(c) head_dim(d)=d stats_dim(s)=s ws_elems_per_rank",
     .inputs = "partial_o[batch_dim cp_size head_dim] softmax_stats[batch_dim cp_size stats_dim] "
               "workspace[cp_size ws_elems_per_rank] cp_rank cp_size",
     .outputs = "partial_o_out[batch_dim cp_size head_dim]@partial_o "
                "softmax_stats_out[batch_dim cp_size stats_dim]@softmax_stats",
     .prefix = "decode_cp_a2a_alltoall",
     .tags = "status:verified stage:comm",
     .api = "flashinfer.comm.dcp_alltoall.decode_cp_a2a_alltoall",
     .reference = kAlltoallReference,
     .init = kAlltoallInit},
    {.op = "decode_cp_a2a_lse_reduce",
     .op_type = "comm",
     .axes = "batch_dim(...) cp_size(c) head_dim(d)=d workspace_bytes",
     .inputs = "partial_o[batch_dim cp_size head_dim] partial_lse[batch_dim cp_size] "
               "workspace[workspace_bytes] cp_rank cp_size lse_mode:str!",
     .outputs = "output[batch_dim head_dim]@partial_o",
     .prefix = "decode_cp_a2a_lse_reduce",
     .tags = "status:experimental stage:comm",
     .api = "flashinfer.comm.dcp_lse_reduce.decode_cp_a2a_lse_reduce",
     .reference = kLseReduceReference,
     .init = kLseReduceInit},
    {.op = "moe_a2a_initialize", .op_type = nullptr},
    {.op = "moe_a2a_dispatch_into", .op_type = nullptr},
    {.op = "moe_a2a_combine", .op_type = nullptr},
    {.op = "moe_a2a_sanitize_expert_ids", .op_type = nullptr},
    {.op = "all_gather",
     .op_type = "comm",
     .axes = "num_tokens(t) columns(d)=d",
     .inputs = "input workspace:int64",
     .outputs = "output[num_tokens columns]>out@input",
     .prefix = "all_gather",
     .tags = "stage:comm",
     .reference = kGatherReference,
     .init = kGatherInit},
    {.op = "reduce_scatter",
     .op_type = "comm",
     .axes = "num_rows hidden_dim=h",
     .inputs = "input[num_rows hidden_dim] workspace:int64 fp32_acc?",
     .outputs = "output[num_rows hidden_dim]>out@input",
     .prefix = "reduce_scatter",
     .tags = "stage:comm",
     .reference = kScatterReference,
     .init = kScatterInit},
    mixed("op=0"),
    mixed("op=1"),
    mixed("op=3"),
    kUlysses,
    ulysses_gather(),
    {.op = "quantized_all_reduce_into",
     .op_type = "comm",
     .axes = "num_tokens hidden_dim=h",
     .inputs = "inp[num_tokens hidden_dim] workspace:int64 scale_group?",
     .outputs = "result[num_tokens hidden_dim]>output@inp",
     .prefix = "quantized_all_reduce",
     .tags = "stage:comm quantization:float8_e4m3fn",
     .api = "flashinfer.comm.quantized_allreduce.quantized_all_reduce",
     .reference = kQuantizedReference,
     .init = kQuantizedInit},
};
}  // namespace
extern const std::span<const op::TraceEntry> traces;
constinit const std::span<const op::TraceEntry> traces = kTraces;
}  // namespace flashinfer::ops::comm
