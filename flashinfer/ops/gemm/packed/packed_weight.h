// SPDX-License-Identifier: Apache-2.0
// Packed weights as arguments of products: what they must be, and what the kernels read of them.
#pragma once
#include "flashinfer/ops/gemm/check.h"
#include "flashinfer/ops/gemm/kernels/packed_layout.h"

namespace flashinfer::gemm {

/// Lines of a panel, with its header.
int64_t lines_of_panel(GemmFormat f, int64_t k);

/// Columns of a packed weight [panels, lines, 64 bytes], or of each of a stack of them. ValueError: no header, another
/// format, another k or another number of lines than `f` and `k` need, matrices of different widths.
int64_t packed_columns(std::string_view argument, const TensorView& b, GemmFormat f, int64_t k);

// ---- from prepare_quantized_weights ----
/// Whether `b`, a weight that has rank `plain` when it is not packed, is packed.
inline bool is_packed(const TensorView& b, int plain = 2) { return b.rank() == plain + 1 && b.size(-1) == kPanelLine; }
inline int64_t packed_columns(std::string_view argument, const TensorView& b, int64_t k) {
  return packed_columns(argument, b, format_of(b.dtype()), k);
}
/// A weight [k, n] as rows [n, k]; a packed one unchanged.
inline TensorView rows_of_weight(const TensorView& b) { return is_packed(b) ? b : b.transpose(0, 1); }

inline Operand packed_operand(const TensorView& b) {
  return {.data = b.data(),
          .format = format_of(b.dtype()),
          .line = b.stride(-3),
          .step = 1,
          .batch = b.rank() == 4 ? b.stride(0) : 0};
}

/// Scale factors [panels, k / block rounded up to 4, 16] as prepare_quantized_weights returns them beside a weight, or
/// a stack of them.
ScaleFactors check_packed_sf(std::string_view argument, const TensorView& t, bool e8m0, int64_t batch, int64_t n,
                             int64_t k, int32_t block);

}  // namespace flashinfer::gemm
