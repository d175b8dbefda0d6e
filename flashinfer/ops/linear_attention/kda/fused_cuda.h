// SPDX-License-Identifier: Apache-2.0
// The fused decode steps on a GPU. Internal to the family.
#pragma once
#include "flashinfer/op/call.h"
#include "flashinfer/ops/linear_attention/kda/fused.h"

namespace flashinfer::ops::linear_attention {
op::Prepared prepare_fused_cuda(const FusedKdaDecode& a, const op::Call& call);
op::Prepared prepare_packed_cuda(const PackedFusedKdaDecode& a, const op::Call& call);
}  // namespace flashinfer::ops::linear_attention
