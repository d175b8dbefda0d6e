// SPDX-License-Identifier: Apache-2.0
// What trace definitions say of the ops beyond their tables (op/trace.h).
#include "flashinfer/op/trace.h"

namespace flashinfer::ops::sparse {
namespace {

constexpr op::TraceEntry kTraces[] = {
    {.op = "BlockSparseAttentionWrapper.run",
     .op_type = "block_sparse",
     .axes = "num_qo_heads(h)=h num_kv_heads(g)=kv head_dim(d)=d qo_len(m) kv_len(n)",
     .inputs = "q k v",
     .outputs = "output[qo_len num_qo_heads head_dim]@q",
     .prefix = "block_sparse_run",
     .tags = "status:verified sparse:block"},
    {.op = "BlockSparseAttentionWrapper.forward",
     .op_type = "sparse",
     .axes = "total_kv(m) num_qo_heads(h)=h head_dim(d)=d total_q(n) g=g",
     .prefix = "block_sparse_attention_wrapper_forward"},
    {.op = "VariableBlockSparseAttentionWrapper.run",
     .op_type = "block_sparse",
     .axes = "num_qo_heads(m)=h num_kv_heads(n)=kv head_dim(d)=d qo_len(h) kv_len(g)",
     .inputs = "q k v",
     .outputs = "output[qo_len num_qo_heads head_dim]@q",
     .prefix = "var_block_sparse_run",
     .tags = "status:verified sparse:block"},
    {.op = "VariableBlockSparseAttentionWrapper.forward",
     .op_type = "sparse",
     .axes = "num_qo_heads(h)=h total_kv(m) head_dim(d)=d g=g total_q(n)",
     .prefix = "variable_block_sparse_attention_wrapper_forward"},
    {.op = "convert_bsr_mask_layout", .op_type = "sparse", .axes = "x r c", .prefix = "convert_bsr_mask_layout"},
};
}  // namespace
extern const std::span<const op::TraceEntry> traces;
constinit const std::span<const op::TraceEntry> traces = kTraces;
}  // namespace flashinfer::ops::sparse
