// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "flashinfer/ops/quantization/fp8/sage.h"

namespace flashinfer::ops {
/// The candidate of GPUs.
op::Prepared prepare_sage_cuda(const TrtllmSageAttentionQuantize& a, const op::Call& call);
}  // namespace flashinfer::ops
