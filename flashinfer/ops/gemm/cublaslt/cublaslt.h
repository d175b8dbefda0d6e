// SPDX-License-Identifier: Apache-2.0
// Dense products on GPUs through cuBLASLt.
#pragma once
#include "flashinfer/op/call.h"

namespace flashinfer::gemm {

/// out[i] = (a[i] . b[i]) * *scale_a * *scale_b + bias, for every i of a batch; views of rank 2 or 3.
struct LtProduct {
  TensorView a, b, out;                                // [..., m, k], [..., k, n], [..., m, n]
  const TensorView* bias = nullptr;                    // [n]
  const float *scale_a = nullptr, *scale_b = nullptr;  // on the device, fp8 only
};
/// Why cuBLASLt cannot serve it (no library, a layout that it does not know, no algorithm); empty when it can. The
/// algorithm it then chooses is kept for products of the same shape.
op::Refusal refuse_cublaslt(const op::Op& op, const void* block, const LtProduct& p);
void run_cublaslt(const LtProduct& p);

}  // namespace flashinfer::gemm
