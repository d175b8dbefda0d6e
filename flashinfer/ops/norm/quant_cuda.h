// SPDX-License-Identifier: Apache-2.0
// How norms with quantised results are launched on a GPU.
#pragma once
#include "flashinfer/op/call.h"
#include "flashinfer/ops/common/cuda.h"
#include "flashinfer/ops/norm/cuda_launch.h"
#include "flashinfer/ops/norm/kernels/quant_cuda_params.h"
#include "flashinfer/ops/norm/kernels/quant_params.h"

namespace flashinfer::ops::norm {

inline constexpr jit::Kernel kRmsQuantCuda{"flashinfer/ops/norm/kernels/cuda/quant.cuh",
                                           "flashinfer::cu::rmsnorm_quant", "flashinfer::NormQuantCudaParams"};

/// The parameters of the CPU's call; `scale`: as the kernel reads it.
inline NormQuantCudaParams quant_cuda_params(const NormQuantParams& q, const FactorSource& scale) {
  return {.norm = q.norm,
          .scale = scale,
          .block_scale = q.block_scale,
          .block_scale_stride = q.block_scale_stride,
          .normed = q.normed,
          .normed_stride = {q.normed_stride[0], q.normed_stride[1]},
          .scales = q.scales,
          .linear_scales = q.linear_scales,
          .layout = q.layout,
          .padded_rows = q.padded_rows};
}
inline FactorSource scale_source(const op::ScalarOrTensor& s) {
  if (const TensorView* t = s.tensor()) return {t->data(), 0, 0, 1.0f, t->dtype(), 0};
  return {.value = static_cast<float>(s.number())};
}
/// Sets aligned, group and threads. `bits`: of a result, 4 for e2m1.
inline NormQuantCudaConfig quant_cuda_config(NormQuantCudaConfig c, const NormQuantCudaParams& q, int bits) {
  const NormParams& p = q.norm;
  const int64_t size = cuda::norm_item_size(c.dtype), piece = 16 / size * bits / 8;
  uint64_t in = reinterpret_cast<uintptr_t>(p.input) | reinterpret_cast<uintptr_t>(p.weight) |
                reinterpret_cast<uintptr_t>(p.beta) | reinterpret_cast<uintptr_t>(q.normed) |
                static_cast<uint64_t>(p.d * size) | static_cast<uint64_t>(p.d * cuda::norm_item_size(c.weight)),
           out = reinterpret_cast<uintptr_t>(p.out);
  if (c.fused_add) in |= reinterpret_cast<uintptr_t>(p.residual);
  for (int i = 0; i < (p.inner > 1 ? 2 : 1); ++i) {
    in |= static_cast<uint64_t>(p.input_stride[i] * size);
    if (c.fused_add) in |= static_cast<uint64_t>(p.residual_stride[i] * size);
    if (q.normed) in |= static_cast<uint64_t>(q.normed_stride[i] * size);
    out |= static_cast<uint64_t>(p.out_stride[i] * bits / (bits < 8 ? bits : 8));
  }
  c.aligned = in % 16 == 0 && out % static_cast<uint64_t>(piece) == 0;
  c.group = cuda::norm_group(c.dtype, p.d);
  if (c.block == 128 && c.group < 32) c.group = 32;  // the lanes of a block of 128
  c.threads = c.group <= 32 ? 128 : c.group;
  return c;
}
/// One group for each row, of the padding too.
template <const jit::Kernel& K>
op::Prepared prepare_quant_cuda(const NormQuantCudaConfig& config, const NormQuantCudaParams& q, int bits,
                                Device device, bool pdl) {
  const NormQuantCudaConfig c = quant_cuda_config(config, q, bits);
  NormParams rows = q.norm;
  rows.rows = std::max(rows.rows, q.padded_rows);
  if (rows.rows >= int64_t{1} << 31) return op::Unsupported{"there are 2^31 rows or more"};
  return prepare_cuda<K>(c, q, device, rows.d ? cuda::norm_launch(c, rows, pdl) : kNoBlocks);
}

}  // namespace flashinfer::ops::norm
