// SPDX-License-Identifier: Apache-2.0
// The family's ops that live outside op.cc.
#pragma once
#include "flashinfer/op/op.h"

namespace flashinfer::ops::linear_attention {
extern const op::Op gdn_fused_op;                                           // gdn/fused.cc
extern const op::Op gdn_chunk_op, gdn2_chunk_op, gdn_product_op;            // gdn/prefill.cc
extern const op::Op gdn_decode_op, gdn_decode_pretranspose_op, gdn_mtp_op;  // gdn/decode.cc
extern const op::Op gdn_commit_op;                                          // gdn/commit.cc
extern const op::Op selective_state_update_op;                              // mamba/
extern const op::Op causal_conv1d_fn_op, causal_conv1d_update_op;           // conv/
extern const op::Op ssd_chunk_scan_op;                                      // mamba/
extern const op::Op checkpointing_ssu_op, replayssm_materialize_layer_op;   // mamba/replay.cc
extern const op::Op kda_recurrence_op, fused_kda_op, packed_fused_kda_op;   // kda/
}  // namespace flashinfer::ops::linear_attention
