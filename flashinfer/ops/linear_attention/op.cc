// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/linear_attention/op.h"

#include "flashinfer/ops/linear_attention/ops.h"

namespace flashinfer::ops::linear_attention {
namespace {
constexpr const op::Op* kOps[] = {
    &selective_state_update_op,
    &gdn_decode_op,
    &gdn_decode_pretranspose_op,
    &gdn_mtp_op,
    &gdn_commit_op,
    &causal_conv1d_fn_op,
    &causal_conv1d_update_op,
    &ssd_chunk_scan_op,
    &gdn_chunk_op,
    &gdn2_chunk_op,
    &gdn_product_op,
    &gdn_fused_op,
    &kda_recurrence_op,
    &fused_kda_op,
    &packed_fused_kda_op,
    &checkpointing_ssu_op,
    &replayssm_materialize_layer_op,
};
}  // namespace
extern const std::span<const op::Op* const> all;
constinit const std::span<const op::Op* const> all = kOps;
}  // namespace flashinfer::ops::linear_attention
