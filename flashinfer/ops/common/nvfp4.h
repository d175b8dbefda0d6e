// SPDX-License-Identifier: Apache-2.0
// How operators that write or read NVFP4 check their tensors and launch kernels/cpu/nvfp4.h.
#pragma once
#include <cmath>
#include <limits>
#include <string_view>

#include "flashinfer/kernels/cpu/nvfp4.h"
#include "flashinfer/ops/common/paged_kv.h"
#include "flashinfer/ops/common/rows.h"

namespace flashinfer::ops {

inline constexpr jit::Kernel kNvfp4Quantize{"flashinfer/kernels/cpu/nvfp4.h", "flashinfer::cpu::nvfp4_quantize",
                                            "flashinfer::Nvfp4Params"};
inline constexpr jit::Kernel kNvfp4Dequantize{"flashinfer/kernels/cpu/nvfp4.h", "flashinfer::cpu::nvfp4_dequantize",
                                              "flashinfer::Nvfp4Params"};

inline constexpr DTypeSet kHalves = DTypeSet(DType::kF16) | DType::kBF16;
inline constexpr DTypeSet kFp4Bytes = DTypeSet(DType::kU8) | DType::kF4E2M1x2;  // two e2m1 a byte, by either name
inline constexpr DTypeSet kScaleBytes = DTypeSet(DType::kF8E4M3) | DType::kU8;  // e4m3, by either name

inline TokenRows token_rows(const KvPlane& p) { return {p.data, p.page_size, p.stride_page, p.stride_n, p.stride_h}; }
/// [n, heads, dim], or [n, dim] with one head.
inline TokenRows token_rows(const TensorView& t) {
  return {t.data(), TokenRows::kOnePage, 0, t.stride(0), t.rank() == 3 ? t.stride(1) : 0};
}

/// ValueError unless `dim` is a multiple of 16 and the planes hold dim/2 bytes and dim/16 scales for the same pages and
/// heads.
inline void check_nvfp4_plane(std::string_view data_name, const KvPlane& data, std::string_view scale_name,
                              const KvPlane& scale, int64_t dim) {
  FI_CHECK(dim > 0 && dim % 16 == 0, ValueError, "the head dim is ", dim,
           ", but NVFP4 needs a multiple of 16 (one scale for 16)");
  FI_CHECK(data.dim * 2 == dim, ValueError, data_name, " has ", data.dim, " bytes a row, but must have ", dim / 2,
           " (two elements of ", dim, " a byte)");
  FI_CHECK(scale.dim * 16 == dim, ValueError, scale_name, " has ", scale.dim, " scales a row, but must have ", dim / 16,
           " (one for 16 elements of ", dim, ")");
  FI_CHECK(scale.pages == data.pages && scale.page_size == data.page_size && scale.heads == data.heads, ValueError,
           scale_name, " has ", scale.pages, " pages of ", scale.page_size, " tokens and ", scale.heads, " heads, but ",
           data_name, " has ", data.pages, ", ", data.page_size, " and ", data.heads);
}
/// A global scale as the f32 that kernels use; ValueError unless it is a positive normal f32 number.
inline float nvfp4_global(std::string_view name, double v, std::string_view what = "a positive normal f32 number") {
  const float f = static_cast<float>(v);
  FI_CHECK(f >= std::numeric_limits<float>::min() && std::isfinite(f), ValueError, name, " is ", v, ", but must be ",
           what);
  return f;
}

/// Tasks over tokens that read and write `bytes` each.
inline void run_nvfp4(jit::CpuFn fn, Nvfp4Params& p) {
  int64_t elements = p.fp8_dim * 2;
  for (const Nvfp4Tensor& t : p.tensor) elements += t.heads * t.dim;
  p.tokens_per_task = rows_per_task(p.tokens, elements * 41 / 16);  // 2 + 0.5 + 1/16 bytes
  run_rows(fn, p, p.tokens, p.tokens_per_task);
}

}  // namespace flashinfer::ops
