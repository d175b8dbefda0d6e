// SPDX-License-Identifier: Apache-2.0
// What trace definitions say of the ops beyond their tables (op/trace.h).
#include "flashinfer/op/trace.h"

namespace flashinfer::ops::pod {
namespace {

constexpr op::TraceEntry kTraces[] = {
    {.op = "PODWithPagedKVCacheWrapper.run",
     .op_type = "pod",
     .axes = "num_qo_heads(h hd)=h num_kv_heads(y)=kv head_dim(d dk dv dd)=d prefill_len(n x) "
             "decode_batch_size(b) num_pages page_size=ps",
     .inputs = "q_p k_p v_p q_d paged_kv_cache_d[num_pages page_size num_kv_heads head_dim]",
     .outputs = "output_p[prefill_len num_qo_heads head_dim]@q_p output_d[decode_batch_size num_qo_heads "
                "head_dim]@q_d",
     .prefix = "pod_run",
     .tags = "status:verified stage:pod"},
    {.op = "BatchPODWithPagedKVCacheWrapper.run",
     .op_type = "pod",
     .axes = "num_qo_heads(h)=h num_kv_heads=kv head_dim(d)=d prefill_len(n) decode_batch_size(b) num_pages "
             "page_size=ps",
     .inputs = "q_p paged_kv_cache_p[num_pages page_size num_kv_heads head_dim] q_d paged_kv_cache_d[num_pages "
               "page_size num_kv_heads head_dim]",
     .outputs = "output_p[prefill_len num_qo_heads head_dim]@q_p output_d[decode_batch_size num_qo_heads "
                "head_dim]@q_d",
     .prefix = "batch_pod_run",
     .tags = "status:verified stage:pod"},
};
}  // namespace
extern const std::span<const op::TraceEntry> traces;
constinit const std::span<const op::TraceEntry> traces = kTraces;
}  // namespace flashinfer::ops::pod
