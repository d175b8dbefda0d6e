// SPDX-License-Identifier: Apache-2.0
// Collectives have no trace definitions: one rank's tensors do not say what the call computes.
#include "flashinfer/op/trace.h"

namespace flashinfer::ops::comm {
namespace {
constexpr op::TraceEntry kTraces[] = {
    {.op = "AllReduceFusionWorkspace.__init__", .op_type = nullptr},
    {.op = "AllReduceFusionWorkspace.destroy", .op_type = nullptr},
    {.op = "allreduce_fusion", .op_type = nullptr},
    {.op = "moe_a2a_initialize", .op_type = nullptr},
    {.op = "moe_a2a_dispatch_into", .op_type = nullptr},
    {.op = "decode_cp_a2a_alltoall_into", .op_type = nullptr},
    {.op = "decode_cp_a2a_lse_reduce", .op_type = nullptr},
    {.op = "moe_a2a_combine", .op_type = nullptr},
    {.op = "moe_a2a_sanitize_expert_ids", .op_type = nullptr},
    {.op = "all_gather", .op_type = nullptr},
    {.op = "reduce_scatter", .op_type = nullptr},
    {.op = "mixed_comm_into", .op_type = nullptr},
    {.op = "ulysses_scatter_heads", .op_type = nullptr},
    {.op = "ulysses_gather_heads", .op_type = nullptr},
    {.op = "quantized_all_reduce_into", .op_type = nullptr},
};
}  // namespace
extern const std::span<const op::TraceEntry> traces;
constinit const std::span<const op::TraceEntry> traces = kTraces;
}  // namespace flashinfer::ops::comm
