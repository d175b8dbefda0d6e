// SPDX-License-Identifier: Apache-2.0
// What trace definitions say of the ops beyond their tables (op/trace.h).
#include "flashinfer/op/trace.h"

namespace flashinfer::ops::mhc {
namespace {

constexpr op::TraceEntry kTraces[] = {
    {.op = "mhc_post",
     .op_type = "mhc_post",
     .axes = "num_tokens hc=hc hidden_size=h",
     .inputs = "x[num_tokens hidden_size]:bfloat16 residual[num_tokens hc hidden_size]:bfloat16 "
               "post_layer_mix[num_tokens hc] comb_res_mix[num_tokens hc hc]",
     .outputs = "out[num_tokens hc hidden_size]@residual",
     .tags = "fused"},
    {.op = "mhc_pre_big_fuse",
     .op_type = "mhc_pre_big_fuse",
     .axes = "num_tokens hc=hc hidden_size=h mhc_mix=mix scale_size= one",
     .inputs = "dot_mix[num_tokens mhc_mix] sqrsum[num_tokens] residual[num_tokens hc hidden_size]:bfloat16 "
               "mhc_scale[scale_size] mhc_base[mhc_mix] k rms_eps mhc_pre_eps mhc_sinkhorn_eps mhc_post_mult_value "
               "sinkhorn_repeat block_size num_splits",
     .outputs = "post_mix[num_tokens hc one]:float32 comb_mix[num_tokens hc hc]:float32 layer_input[num_tokens "
                "hidden_size]@residual",
     .tags = "fused"},
    {.op = "mhc_pre_big_fuse_with_prenorm",
     .op_type = "mhc_pre_big_fuse",
     .axes = "num_tokens hc=hc hidden_size=h mhc_mix=mix scale_size= one",
     .inputs = "dot_mix[num_tokens mhc_mix] residual[num_tokens hc hidden_size]:bfloat16 mhc_scale[scale_size] "
               "mhc_base[mhc_mix] rms_eps mhc_pre_eps mhc_sinkhorn_eps mhc_post_mult_value sinkhorn_repeat "
               "block_size",
     .outputs = "post_mix[num_tokens hc one]:float32 comb_mix[num_tokens hc hc]:float32 layer_input[num_tokens "
                "hidden_size]@residual",
     .prefix = "mhc_pre_big_fuse_with_prenorm",
     .tags = "fused prenorm"},
};
}  // namespace
extern const std::span<const op::TraceEntry> traces;
constinit const std::span<const op::TraceEntry> traces = kTraces;
}  // namespace flashinfer::ops::mhc
