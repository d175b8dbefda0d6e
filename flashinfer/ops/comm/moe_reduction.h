// SPDX-License-Identifier: Apache-2.0
// What a rank adds to an all-reduce of a mixture of experts: patterns 6 and 7 of allreduce_fusion.
#pragma once
#include "flashinfer/jit/jit.h"
#include "flashinfer/ops/comm/gpu.h"
#include "flashinfer/ops/comm/op.h"

namespace flashinfer::ops::comm {

inline bool is_moe_reduction(const AllReduceFusion& a) { return a.pattern == 6; }
inline bool is_moe_finalize(const AllReduceFusion& a) { return a.pattern == 7 || a.pattern == 12; }
inline bool is_moe(const AllReduceFusion& a) { return is_moe_reduction(a) || is_moe_finalize(a); }

/// ValueError: arguments of experts that are missing, do not fit or belong to other patterns.
void check_moe(const AllReduceFusion& a);
/// The kernel that computes it.
const jit::Loaded& moe_kernel(const AllReduceFusion& a);
/// This rank's addend, [tokens, hidden] as input's dtype.
Tensor reduce_experts(jit::CpuFn fn, const AllReduceFusion& a);
/// The same for a kernel on a GPU, which computes it on the way; of other patterns: nothing.
ExpertsOnGpu experts_on_gpu(const AllReduceFusion& a);

}  // namespace flashinfer::ops::comm
