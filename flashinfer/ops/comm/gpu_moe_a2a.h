// SPDX-License-Identifier: Apache-2.0
// The all-to-all of experts between GPUs whose ranks access each other's memory.
#pragma once
#include "flashinfer/op/op.h"
#include "flashinfer/ops/comm/moe_a2a_layout.h"

namespace flashinfer::ops::comm {

/// The candidate for GPUs of a call with arrays that may be on the host: metainfo, a mask of ranks. F returns
/// Unsupported for workspaces of the CPU.
template <auto F>
constexpr op::Candidate on_gpus() {
  return {op::Backend::kHost, op::name(op::Backend::kCuda), &op::detail::Prepare<F>::of};
}

void initialize_on_gpu(GpuShare& share, const MoeA2aHeader& header);
op::Prepared prepare_dispatch_on_gpu(const MoeA2aDispatch& a, const MoeA2aMemory& m, uint64_t active,
                                     const flashinfer::comm::Signature& signature);
op::Prepared prepare_combine_on_gpu(const MoeA2aCombine& a, const MoeA2aMemory& m, uint64_t active, DType out,
                                    MoeCombineQuant quant, const flashinfer::comm::Signature& signature);
op::Prepared prepare_sanitize_on_gpu(const MoeA2aSanitizeExpertIds& a, const MoeA2aMemory& m);

}  // namespace flashinfer::ops::comm
