// SPDX-License-Identifier: Apache-2.0
// How operators that write or read NVFP4 rows launch kernels/cuda/nvfp4.cuh.
#pragma once
#include "flashinfer/kernels/common/nvfp4_cuda_params.h"
#include "flashinfer/ops/common/cuda.h"
#include "flashinfer/ops/common/nvfp4.h"

namespace flashinfer::ops {

inline constexpr jit::Kernel kNvfp4QuantizeCuda{"flashinfer/kernels/cuda/nvfp4.cuh", "flashinfer::cu::nvfp4_quantize",
                                                "flashinfer::Nvfp4CudaParams"};
inline constexpr jit::Kernel kNvfp4DequantizeCuda{"flashinfer/kernels/cuda/nvfp4.cuh",
                                                  "flashinfer::cu::nvfp4_dequantize", "flashinfer::Nvfp4CudaParams"};

/// The tensor of a CPU call with its global scale as the kernel reads it.
inline Nvfp4CudaTensor nvfp4_cuda_tensor(const Nvfp4Tensor& t, const FactorSource& global) {
  return {t.plain, t.data, t.scale, static_cast<uint32_t>(t.heads), static_cast<uint32_t>(t.dim), global, 0};
}
inline FactorSource nvfp4_factor(double v) { return {.value = static_cast<float>(v)}; }
inline FactorSource nvfp4_factor(const op::ScalarOrTensor& s) {
  if (const TensorView* t = s.tensor()) return {t->data(), 0, 0, 1.0f, t->dtype(), 0};
  return nvfp4_factor(s.number());
}

namespace detail {
/// Rows of pieces of `bytes`, elements of `item`.
inline uint64_t row_bits(const TokenRows& r, int64_t item) {
  const bool paged = r.page_size != TokenRows::kOnePage;
  return reinterpret_cast<uintptr_t>(r.data) |
         static_cast<uint64_t>((r.stride_n | r.stride_h | (paged ? r.stride_page : 0)) * item);
}
}  // namespace detail
/// Whether pieces of 16 bytes of the unquantised side, elements of `item` bytes, and their codes are aligned in every
/// row.
inline bool nvfp4_aligned(const Nvfp4CudaTensor& t, int64_t item) {
  return detail::row_bits(t.plain, item) % 16 == 0 &&
         detail::row_bits(t.data, 1) % static_cast<uint64_t>(16 / item / 2) == 0;
}

template <const jit::Kernel& K>
op::Prepared prepare_nvfp4_cuda(DType plain, const Nvfp4CudaParams& p, Device device) {
  const int64_t item = plain == DType::kF32 ? 4 : 2;
  Nvfp4CudaConfig c{plain, true, 256};
  int64_t most = 0;  // threads
  for (const Nvfp4CudaTensor& t : p.tensor) {
    if (!t.dim) continue;
    if (!t.fp8) c.aligned = c.aligned && nvfp4_aligned(t, item);
    most = std::max(most, p.tokens * (t.fp8 ? ceil_div(int64_t{t.dim}, 8) : int64_t{t.heads} * (t.dim / 16)));
  }
  if (most >= int64_t{1} << 31) return op::Unsupported{"the rows have 2^31 or more blocks of 16"};
  cuda::Launch l;
  l.block[0] = static_cast<unsigned>(c.threads);
  l.grid[0] = cuda::grid_size(ceil_div(most, int64_t{c.threads}));
  l.grid[1] = p.tensor[1].dim ? 2 : 1;
  l.pdl = true;
  return prepare_cuda<K>(c, p, device, l);
}

}  // namespace flashinfer::ops
