// SPDX-License-Identifier: Apache-2.0
// What trace definitions say of the ops beyond their tables (op/trace.h).
#include "flashinfer/op/trace.h"

namespace flashinfer::ops::topk {
namespace {

constexpr op::TraceEntry kTraces[] = {
    {.op = "top_k", .op_type = "topk", .axes = "num_rows(n) row_length(d)=d", .prefix = "top_k"},
    {.op = "top_k_page_table_transform",
     .op_type = "sampling",
     .axes = "num_rows(n) max_len(d) batch_size(b) max_pages_per_seq(pages) k=k page_size=ps",
     .inputs = "input src_page_table lengths:int32 k row_to_batch:int32 row_starts:int32 "
               "page_table_row_starts:int32 page_size",
     .outputs = "indices[num_rows k]:int32",
     .prefix = "top_k_page_table_transform",
     .tags = "status:verified sparse"},
    {.op = "top_k_ragged_transform",
     .op_type = "sampling",
     .axes = "num_rows(n) max_len(d) k=k",
     .inputs = "input offsets:int32 lengths:int32 k deterministic tie_break dsa_graph_safe",
     .outputs = "indices[num_rows k]:int32",
     .prefix = "top_k_ragged_transform",
     .tags = "status:verified sparse"},
    {.op = "top_k_varlen",
     .op_type = "topk",
     .axes = "batch_size(n b) max_seq_len(d)=n top_k=k",
     .inputs = "logits seq_lens:int32 top_k pre_idx[batch_size top_k]:int32",
     .outputs = "indices[batch_size top_k]:int32",
     .prefix = "top_k_varlen",
     .tags = "status:verified",
     .api = "flashinfer.topk_varlen.topk_varlen.top_k_varlen"},
};
}  // namespace
extern const std::span<const op::TraceEntry> traces;
constinit const std::span<const op::TraceEntry> traces = kTraces;
}  // namespace flashinfer::ops::topk
