// SPDX-License-Identifier: Apache-2.0
// Weights from prepare_quantized_weights as arguments of products: what they must be, and what the kernels read of
// them.
#pragma once
#include "flashinfer/core/layout_error.h"
#include "flashinfer/ops/gemm/check.h"
#include "flashinfer/ops/gemm/kernels/packed_layout.h"

namespace flashinfer::gemm {

/// Whether `b`, a weight that lies as a matrix of rank `plain`, is prepared: panels instead of columns.
inline bool is_prepared(const TensorView& b, int plain = 2) {
  return b.rank() == plain + 1 && b.size(-1) == kPanelLine;
}

/// n of a prepared weight [panels, lines, 64], or of a stack of them; ValueError when it is none, was made for another
/// k, or its matrices differ.
inline int64_t prepared_columns(std::string_view argument, const TensorView& b, int64_t k) {
  const GemmFormat f = format_of(b.dtype());
  FI_CHECK(b.numel() == 0 || (b.stride(-1) == 1 && b.stride(-2) == kPanelLine), LayoutError, argument, " is ",
           to_string(b), ", but the panels of a prepared weight must be contiguous");
  FI_CHECK(b.size(-2) == word_lines(f, k), ValueError, argument, ".shape[", b.rank() - 2, "] is ", b.size(-2),
           ", but k is ", k, ", which a prepared weight of ", name(b.dtype()), " has ", word_lines(f, k), " lines for");
  if (b.size(-3) == 0 || b.numel() == 0) return 0;
  FI_CHECK(b.device().type == DeviceType::kCPU, NotImplementedError, argument, " is a prepared weight on ",
           to_string(b.device()), ", but only the CPU reads them");
  int64_t n = -1;
  for (int64_t i = 0; i < (b.rank() == 4 ? b.size(0) : 1); ++i) {
    const auto* const first = static_cast<const uint8_t*>(b.data()) + (b.rank() == 4 ? i * b.stride(0) : 0);
    int64_t of_first = 0, of_last = 0;
    const int64_t full = read_panel_header(first, f, &of_first),
                  last = read_panel_header(first + (b.size(-3) - 1) * b.stride(-3), f, &of_last);
    FI_CHECK(full > 0 && last > 0 && (b.size(-3) == 1 || full == kPanelWidth), ValueError, argument, " is ",
             to_string(b), ", but does not start with the header that prepare_quantized_weights writes for ",
             name(b.dtype()));
    FI_CHECK(of_first == k && of_last == k, ValueError, argument, " was prepared for k = ", of_first, ", but k is ", k);
    const int64_t columns = kPanelWidth * (b.size(-3) - 1) + last;
    FI_CHECK(n < 0 || n == columns, ValueError, argument, "[", i, "] has ", columns, " columns, but ", argument,
             "[0] has ", n);
    n = columns;
  }
  return n;
}

/// A weight [k, n] as rows [n, k]; a prepared one as it is.
inline TensorView rows_of_weight(const TensorView& b) { return is_prepared(b) ? b : b.transpose(0, 1); }

inline Operand prepared_operand(const TensorView& b) {
  return {.data = b.data(),
          .format = format_of(b.dtype()),
          .line = b.stride(-3),
          .step = 1,
          .batch = b.rank() == 4 ? b.stride(0) : 0};
}

/// Scale factors [panels, k / block rounded up to 4, 16] as prepare_quantized_weights returns them beside a weight, or
/// a stack of them.
inline ScaleFactors check_prepared_sf(std::string_view argument, const TensorView& t, bool e8m0, int64_t batch,
                                      int64_t n, int64_t k, int32_t block) {
  const int64_t columns = k / block, panels = panels_of(n), padded = sf_padded_columns(SfLayout::kPanels, columns);
  FI_CHECK(t.rank() >= 3 && t.numel() == batch * panels * padded * kPanelWidth && t.size(-1) == kPanelWidth &&
               t.size(-2) == padded,
           ValueError, argument, " is ", to_string(t), ", but beside a prepared weight of ", n, " columns and k = ", k,
           " must be [", batch > 1 ? str(batch, ", ") : "", panels, ", ", padded,
           ", 16], as prepare_quantized_weights returns it");
  FI_CHECK(t.is_contiguous(), LayoutError, argument, " is ", to_string(t),
           ", but its bytes must follow one another without gaps");
  return {.bytes = static_cast<const uint8_t*>(t.data()),
          .columns = columns,
          .batch = panels * padded * kPanelWidth,
          .block = block,
          .layout = SfLayout::kPanels,
          .e8m0 = e8m0};
}

}  // namespace flashinfer::gemm
