// SPDX-License-Identifier: Apache-2.0
// The case tables of the family, one for each op.
#pragma once
#include <span>

#include "flashinfer/op/op.h"

namespace flashinfer::ops::linear_attention {
// gdn/prefill_cases.cc
std::span<const op::Case> gdn_chunk_cases();
std::span<const op::Case> gdn2_chunk_cases();
std::span<const op::Case> gdn_product_cases();
// gdn/cases.cc
std::span<const op::Case> gdn_fused_cases();
std::span<const op::Case> gdn_decode_cases();
std::span<const op::Case> gdn_decode_pretranspose_cases();
std::span<const op::Case> gdn_mtp_cases();
std::span<const op::Case> gdn_commit_cases();
std::span<const op::Case> selective_state_update_cases();  // mamba/cases.cc
std::span<const op::Case> causal_conv1d_fn_cases();        // conv/cases.cc
std::span<const op::Case> causal_conv1d_update_cases();
std::span<const op::Case> ssd_chunk_scan_cases();  // mamba/cases.cc
std::span<const op::Case> checkpointing_ssu_cases();
std::span<const op::Case> replayssm_materialize_layer_cases();
std::span<const op::Case> kda_recurrence_cases();  // kda/cases.cc
std::span<const op::Case> fused_kda_cases();
std::span<const op::Case> packed_fused_kda_cases();
}  // namespace flashinfer::ops::linear_attention
