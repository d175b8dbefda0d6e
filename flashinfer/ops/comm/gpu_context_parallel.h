// SPDX-License-Identifier: Apache-2.0
// The exchanges of a spread context between GPUs.
#pragma once
#include <memory>
#include <utility>
#include <vector>

#include "flashinfer/comm/window.h"
#include "flashinfer/core/tensor.h"
#include "flashinfer/op/prepared.h"
#include "flashinfer/ops/comm/gpu_share_state.h"

namespace flashinfer::ops::comm {

/// Of each pair slice q of the rows of `first` [..., ranks, d] to rank q, and those of all ranks to `second`.
op::Prepared prepare_slices_on_gpu(const std::vector<std::pair<TensorView, TensorView>>& tensors,
                                   const flashinfer::comm::Signature& signature,
                                   const std::shared_ptr<GpuShare>& share);
/// decode_cp_a2a_lse_reduce.
op::Prepared prepare_cp_reduce_on_gpu(const TensorView& partial_o, const TensorView& lse, bool base2,
                                      const TensorView& out, const flashinfer::comm::Signature& signature,
                                      const std::shared_ptr<GpuShare>& share);

}  // namespace flashinfer::ops::comm
