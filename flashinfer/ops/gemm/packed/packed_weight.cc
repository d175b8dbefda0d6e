// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/gemm/packed/packed_weight.h"

#include "flashinfer/core/layout_error.h"
#include "flashinfer/ops/gemm/kernels/gguf_layout.h"

namespace flashinfer::gemm {
namespace {

const char* name_of(GemmFormat f) {
  switch (f) {
    case GemmFormat::kBF16: return "bfloat16";
    case GemmFormat::kE4M3: return "float8_e4m3fn";
    case GemmFormat::kFp4: return "FP4";
    default: return gguf_format(f) ? gguf_format(f)->name : "an unknown format";
  }
}
const char* maker_of(GemmFormat f) {
  return f == GemmFormat::kBF16 ? "prepare_mm_weights"
         : is_gguf(f)           ? "prepare_gguf_weights"
                                : "prepare_quantized_weights";
}

/// Of one matrix of `b`, whose first panel is at `first`.
int64_t columns_of_matrix(std::string_view argument, const TensorView& b, const char* first, GemmFormat f, int64_t k) {
  const int64_t panels = b.size(-3);
  const PackedHeader head = read_packed_header(first),
                     last = read_packed_header(first + (panels - 1) * b.stride(-3) * b.item_size());
  FI_CHECK(head.columns > 0 && last.columns > 0 && (panels == 1 || head.columns == kPanelWidth), ValueError, argument,
           " is ", to_string(b), ", but does not start with the header that ", maker_of(f), " writes");
  for (const PackedHeader& h : {head, last}) {
    FI_CHECK(h.format == f, ValueError, argument, " is a packed weight of ", name_of(h.format), ", but must be one of ",
             name_of(f), " (from ", maker_of(f), ")");
    FI_CHECK(h.k == k, ValueError, argument, " is packed for k = ", h.k, ", but k is ", k);
  }
  return kPanelWidth * (panels - 1) + last.columns;
}

}  // namespace

int64_t lines_of_panel(GemmFormat f, int64_t k) { return is_gguf(f) ? gguf_lines(f, k) : packed_lines(f, k); }

int64_t packed_columns(std::string_view argument, const TensorView& b, GemmFormat f, int64_t k) {
  FI_CHECK(b.numel() == 0 || (b.stride(-1) == 1 && b.stride(-2) == b.size(-1)), LayoutError, argument, " is ",
           to_string(b), ", but the panels of a packed weight must be contiguous");
  const int64_t lines = lines_of_panel(f, k), matrices = b.rank() == 4 ? b.size(0) : 1;
  if (matrices == 0 || b.size(-3) == 0) return 0;
  FI_CHECK(b.device().type != DeviceType::kCUDA, NotImplementedError, argument, " is a packed weight on ",
           to_string(b.device()), ", but only the CPU reads packed weights");
  int64_t n = -1;
  for (int64_t i = 0; b.size(-2) > 0 && i < matrices; ++i) {
    const char* const first =
        static_cast<const char*>(b.data()) + (b.rank() == 4 ? i * b.stride(0) * b.item_size() : 0);
    const int64_t columns = columns_of_matrix(argument, b, first, f, k);
    FI_CHECK(n < 0 || n == columns, ValueError, argument, "[", i, "] has ", columns, " columns, but ", argument,
             "[0] has ", n);
    n = columns;
  }
  FI_CHECK(b.size(-2) == lines, ValueError, argument, ".shape[", b.rank() - 2, "] is ", b.size(-2), ", but a panel of ",
           name_of(f), " with k = ", k, " has ", lines, " lines");
  return n;
}

ScaleFactors check_packed_sf(std::string_view argument, const TensorView& t, bool e8m0, int64_t batch, int64_t n,
                             int64_t k, int32_t block) {
  const int64_t columns = k / block, panels = packed_panels(n), padded = sf_padded_columns(SfLayout::kPanels, columns);
  FI_CHECK(t.rank() >= 3 && t.numel() == batch * panels * padded * kPanelWidth && t.size(-1) == kPanelWidth &&
               t.size(-2) == padded,
           ValueError, argument, " is ", to_string(t), ", but beside a packed weight of ", n, " columns and k = ", k,
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
