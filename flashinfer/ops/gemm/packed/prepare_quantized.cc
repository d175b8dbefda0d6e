// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/gemm/packed/prepare_quantized.h"

#include <cstring>

#include "flashinfer/core/context.h"
#include "flashinfer/core/int_math.h"
#include "flashinfer/core/layout_error.h"
#include "flashinfer/ops/gemm/cases.h"
#include "flashinfer/ops/gemm/ops.h"
#include "flashinfer/ops/gemm/packed/packed_weight.h"
#include "flashinfer/ops/gemm/packed/ref.h"

namespace flashinfer {
namespace {
using Prepare = PrepareQuantizedWeights;
namespace family = ops::gemm;

bool fp4(const Prepare& a) { return a.b.dtype() != DType::kF8E4M3; }
int64_t depth(const Prepare& a) { return a.b.size(-1) * (fp4(a) ? 2 : 1); }
int64_t matrices(const Prepare& a) { return a.b.rank() == 3 ? a.b.size(0) : 1; }
int32_t block_of(const Prepare& a) { return static_cast<int32_t>(a.block_size.value_or(fp4(a) ? 16 : 32)); }
bool has_scales(const Prepare& a) { return a.b_descale.has_value(); }
ScaleFactors scales_of(const Prepare& a) {
  return gemm::check_sf("b_descale", *a.b_descale, a.is_sf_swizzled_layout ? SfLayout::k128x4 : SfLayout::kLinear,
                        false, matrices(a), a.b.size(-2), depth(a) / block_of(a), block_of(a));
}
op::Shape stacked(const Prepare& a, int64_t x, int64_t y, int64_t z) {
  if (a.b.rank() == 3) return {4, {a.b.size(0), x, y, z}};
  return {3, {x, y, z}};
}
void check_rank(const Prepare& a) {
  FI_CHECK(a.b.rank() == 2 || a.b.rank() == 3, ValueError, "b is ", to_string(a.b),
           ", but must be [n, k], FP4 [n, k / 2], or a stack of them");
}
op::Shape weight_shape(const Prepare& a) {
  check_rank(a);
  return stacked(a, packed_panels(a.b.size(-2)), packed_lines(gemm::format_of(a.b.dtype()), depth(a)), kPanelLine);
}
op::Shape scales_shape(const Prepare& a) {
  check_rank(a);
  return stacked(a, packed_panels(a.b.size(-2)), sf_padded_columns(SfLayout::kPanels, depth(a) / block_of(a)),
                 kPanelWidth);
}
void validate(const Prepare& a) {
  check_rank(a);
  FI_CHECK(a.b.size(-1) <= 1 || a.b.stride(-1) == 1, LayoutError, "b is ", to_string(a.b),
           ", but k must be contiguous: the [n, k] weight, not its transposed view");
  FI_CHECK(!a.block_size || has_scales(a), ValueError, "block_size is ", a.block_size.value_or(0),
           ", but there is no b_descale");
  if (!has_scales(a)) return;
  FI_CHECK(block_of(a) == 32 || (block_of(a) == 16 && fp4(a)), ValueError, "block_size is ", block_of(a),
           ", but must be ", fp4(a) ? "16 (NVFP4) or 32 (MXFP4)" : "32 (MXFP8)");
  FI_CHECK(depth(a) % block_of(a) == 0, ValueError, "k is ", depth(a), " (from b.shape[", a.b.rank() - 1,
           "]), but must be a multiple of ", block_of(a));
  FI_CHECK(block_of(a) == 16 || a.b_descale->dtype() == DType::kU8, ValueError, "b_descale is ",
           to_string(*a.b_descale), ", but scale factors for 32 are uint8 (ue8m0)");
  scales_of(a);
}

/// Panel p of matrix i.
void fill_panel(const Prepare& a, int64_t i, int64_t p) {
  const GemmFormat f = gemm::format_of(a.b.dtype());
  const int64_t n = a.b.size(-2), bytes = a.b.size(-1), columns = std::min(kPanelWidth, n - p * kPanelWidth),
                lines = packed_lines(f, depth(a));
  auto* const panel = static_cast<uint8_t*>(a.b_prepared->data()) + (i * packed_panels(n) + p) * lines * kPanelLine;
  write_packed_header(panel, {.columns = columns, .k = depth(a), .format = f});
  std::memset(panel + kPanelLine, 0, static_cast<size_t>((lines - 1) * kPanelLine));
  for (int64_t c = 0; c < columns; ++c) {
    const auto* const from = static_cast<const uint8_t*>(a.b.data()) + (a.b.rank() == 3 ? i * a.b.stride(0) : 0) +
                             (p * kPanelWidth + c) * a.b.stride(-2);
    const int64_t low = packed_place(f, c, 0), high = packed_place(f, c, 2);
    uint8_t* to = panel + kPanelLine;
    int64_t at = 0;
    for (; at + 4 <= bytes; at += 4, to += kPanelLine)
      std::memcpy(to + low, from + at, 2), std::memcpy(to + high, from + at + 2, 2);
    for (int64_t j = 0; at + j < bytes; ++j) to[packed_place(f, c, j)] = from[at + j];
  }
  if (!has_scales(a)) return;
  const ScaleFactors s = scales_of(a);
  const int64_t padded = sf_padded_columns(SfLayout::kPanels, s.columns);
  auto* const to =
      static_cast<uint8_t*>(a.b_descale_prepared->data()) + (i * packed_panels(n) + p) * padded * kPanelWidth;
  std::memset(to, 0, static_cast<size_t>(padded * kPanelWidth));
  for (int64_t c = 0; c < columns; ++c) {
    const uint8_t* const from = s.bytes + i * s.batch + sf_row_offset(s.layout, p * kPanelWidth + c, s.columns);
    for (int64_t j = 0; j < s.columns; ++j) to[j * kPanelWidth + c] = from[sf_column_offset(s.layout, j)];
  }
}
void launch(const Prepare& a) {
  const int64_t panels = packed_panels(a.b.size(-2));
  parallel_for(matrices(a) * panels, [&](int64_t t) { fill_panel(a, t / panels, t % panels); });
}
/// Every byte from what it must hold.
void reference(const Prepare& a) {
  const GemmFormat f = gemm::format_of(a.b.dtype());
  const int64_t n = a.b.size(-2), panels = packed_panels(n), lines = packed_lines(f, depth(a));
  auto* to = static_cast<uint8_t*>(a.b_prepared->data());
  for (int64_t t = 0; t < matrices(a) * panels; ++t) {
    const TensorView b = a.b.rank() == 3 ? a.b.select(0, t / panels) : a.b;
    for (int64_t i = 0; i < kPanelLine; ++i)
      *to++ = ref::packed_header_byte(f, std::min<int64_t>(16, n - t % panels * 16), depth(a), i);
    for (int64_t at = 0; at < (lines - 1) * kPanelLine; ++at)
      *to++ = ref::packed_narrow_byte(b, f == GemmFormat::kFp4, t % panels, at);
  }
  if (!has_scales(a)) return;
  const ScaleFactors s = scales_of(a);
  const int64_t padded = round_up(s.columns, 4);
  auto* sf = static_cast<uint8_t*>(a.b_descale_prepared->data());
  for (int64_t at = 0; at < matrices(a) * panels * padded * 16; ++at) {
    const int64_t panel = at / (padded * 16), matrix = panel / panels, row = panel % panels * 16 + at % 16,
                  column = at / 16 % padded;
    sf[at] = row < n && column < s.columns ? s.bytes[matrix * s.batch + sf_offset(s.layout, row, column, s.columns)]
                                           : uint8_t{0};
  }
}
op::Cost cost(const Prepare& a) { return {.bytes = 2.0 * static_cast<double>(a.b.nbytes())}; }

constexpr op::Field fields[] = {
    op::in<&Prepare::b>("b", nullptr, gemm::kFp4Bytes | DType::kF8E4M3, op::any_layout,
                        op::doc("the weight: [n, k] e4m3, or [n, k / 2] bytes of FP4, or a stack")),
    op::in<&Prepare::b_descale>("b_descale", nullptr, DTypeSet(DType::kU8) | DType::kF8E4M3, op::any_layout),
    op::attr<&Prepare::block_size>("block_size"),
    op::attr<&Prepare::is_sf_swizzled_layout>("is_sf_swizzled_layout"),
    op::result<&Prepare::b_prepared>("b_prepared", nullptr, op::same_as("b"), op::contiguous, op::shape<weight_shape>),
    op::result<&Prepare::b_descale_prepared>("b_descale_prepared", nullptr, op::same_as("b_descale"), op::contiguous,
                                             op::shape<scales_shape>, op::when<has_scales>),
};
constexpr op::Candidate candidates[] = {op::cpu<launch>(), op::reference<reference>()};
}  // namespace

namespace ops::gemm {
constinit const op::Op prepare_quantized_op =
    op::define<Prepare, validate, cost>("prepare_quantized_weights", "flashinfer.gemm",
                                        "Packs a weight of FP8 or FP4 and its scale factors into panels, which "
                                        "products with few rows read at memory speed.",
                                        fields, candidates, prepare_quantized_cases);
}  // namespace ops::gemm

std::pair<Tensor, Tensor> prepare_quantized_weights(const Prepare& a) {
  return op::call(family::prepare_quantized_op, a);
}

}  // namespace flashinfer
