// SPDX-License-Identifier: Apache-2.0
// Arguments of a norm to NormParams.
#pragma once
#include "flashinfer/core/tensor.h"
#include "flashinfer/ops/common/rows.h"
#include "flashinfer/ops/norm/kernels/params.h"

namespace flashinfer::ops::norm {

/// Strides of the two row axes; an absent axis has extent 1 and stride 0.
inline void row_strides(const TensorView& t, int64_t out[2]) {
  out[0] = t.rank() > 1 ? t.stride(0) : 0;
  out[1] = t.rank() > 2 ? t.stride(1) : 0;
}

inline NormParams params_of(const TensorView& input, const TensorView& out, double eps, int64_t streams) {
  NormParams p{};
  p.input = input.data();
  p.out = out.data();
  p.d = input.size(-1);
  p.rows = p.d ? input.numel() / p.d : 0;
  p.inner = input.rank() > 2 ? input.size(1) : 1;
  p.eps = eps;
  row_strides(input, p.input_stride);
  row_strides(out, p.out_stride);
  p.rows_per_task = rows_per_task(p.rows, streams * p.d * input.item_size());
  return p;
}

}  // namespace flashinfer::ops::norm
