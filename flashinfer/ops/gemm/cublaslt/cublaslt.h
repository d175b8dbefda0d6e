// SPDX-License-Identifier: Apache-2.0
// Dense products on GPUs through cuBLASLt.
#pragma once
#include <functional>
#include <optional>
#include <string>

#include "flashinfer/op/call.h"
#include "flashinfer/ops/gemm/kernels/params.h"

namespace flashinfer::gemm {

/// out[i] = (a[i] . b[i]) * *scale_a * *scale_b + bias, for every i of a batch; views of rank 2 or 3.
struct LtProduct {
  TensorView a, b, out;                                // [..., m, k], [..., k, n], [..., m, n]
  const TensorView* bias = nullptr;                    // [n]
  const float *scale_a = nullptr, *scale_b = nullptr;  // on the device, fp8 only
  // Scales of blocks along k, on the device, 128x4, those of each matrix of a batch behind the last one's: ue8m0 for 32
  // (MXFP8, a and b are e4m3) or e4m3 for 16 (NVFP4: `fp4`, a and b are bytes of two numbers, [m, k / 2] and
  // [k / 2, n]).
  const void *blocks_a = nullptr, *blocks_b = nullptr;
  bool fp4 = false;
  // f32 scales of blocks of `grid_k` along k, on the device, of fp8 matrices of rank 2; in any layout: those that
  // cuBLASLt reads otherwise are copied before the product.
  std::optional<BlockScales> grid_a = std::nullopt, grid_b = std::nullopt;
  int64_t grid_k = 0;
  const float* alpha = nullptr;  // on the device: multiplies the product, with blocks only
  // The library's own launch for the same: timed beside cuBLASLt's algorithms. Called while this function runs.
  const std::function<op::Prepared()>* own = nullptr;
};
/// Unsupported: no library, a layout that cuBLASLt does not know, no algorithm. The algorithm that it chooses, or the
/// own launch, is kept for products of the same shape.
op::Prepared prepare_cublaslt(const LtProduct& p, Device device);
/// Why cuBLASLt has no product of `m` rows and `n` columns with f32 scales of blocks of `grid_k` on `device`; empty
/// when it may have one.
std::string why_no_grids(Device device, int64_t m, int64_t n, int64_t grid_k);

}  // namespace flashinfer::gemm
