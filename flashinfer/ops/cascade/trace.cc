// SPDX-License-Identifier: Apache-2.0
// What trace definitions say of the ops beyond their tables (op/trace.h).
#include "flashinfer/op/trace.h"
#include "flashinfer/ops/cascade/trace_texts.h"

namespace flashinfer::ops::cascade {
namespace {

constexpr op::TraceEntry kSharedPrefix = {
    .op = "", .op_type = "cascade_attention", .axes = "total_q(n) num_qo_heads(h)=h head_dim(d)=d x y"};

constexpr op::TraceEntry kTraces[] = {
    {.op = "merge_state",
     .op_type = "cascade_merge",
     .axes = "seq_len(n) num_heads(h)=h head_dim(d)=d",
     .inputs = "v_a s_a v_b s_b",
     .outputs = "v_merged[seq_len num_heads head_dim]@v_a s_merged[seq_len num_heads]:float32",
     .prefix = "merge_state",
     .tags = "status:verified",
     .reference = kMergeStateReference},
    {.op = "merge_state_in_place",
     .op_type = "cascade_merge",
     .axes = "seq_len(n) num_heads(h)=h head_dim(d)=d",
     .inputs = "v s v_other s_other mask",
     .outputs = "v[seq_len num_heads head_dim]@v s[seq_len num_heads]:float32",
     .prefix = "merge_state_in_place",
     .tags = "status:verified"},
    {.op = "merge_states",
     .op_type = "cascade_merge",
     .axes = "seq_len(n) num_states(x) num_heads(h)=h head_dim(d)=d",
     .inputs = "v s",
     .outputs = "v_merged[seq_len num_heads head_dim]@v s_merged[seq_len num_heads]:float32",
     .prefix = "merge_states",
     .tags = "status:verified",
     .reference = kMergeStatesReference},
    {.op = "MultiLevelCascadeAttentionWrapper.run",
     .op_type = "cascade_attention",
     .axes = "batch_size(n) num_qo_heads(h)=h num_kv_heads=kv head_dim(d)=d num_pages page_size=ps",
     .inputs = "q paged_kv_cache[num_pages page_size num_kv_heads head_dim]",
     .outputs = "output[batch_size num_qo_heads head_dim]@q",
     .prefix = "multi_level_cascade_run",
     .tags = "status:verified cascade"},
    kSharedPrefix.of("BatchDecodeWithSharedPrefixPagedKVCacheWrapper.forward",
                     "batch_decode_with_shared_prefix_paged_kv_cache_wrapper_forward"),
    kSharedPrefix.of("BatchPrefillWithSharedPrefixPagedKVCacheWrapper.forward",
                     "batch_prefill_with_shared_prefix_paged_kv_cache_wrapper_forward"),
};
}  // namespace
extern const std::span<const op::TraceEntry> traces;
constinit const std::span<const op::TraceEntry> traces = kTraces;
}  // namespace flashinfer::ops::cascade
