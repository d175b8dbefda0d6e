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
/// Unsupported: no library, a layout that cuBLASLt does not know, no algorithm. The algorithm that it chooses is kept
/// for products of the same shape.
op::Prepared prepare_cublaslt(const LtProduct& p, Device device);

}  // namespace flashinfer::gemm
