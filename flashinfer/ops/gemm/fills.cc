// SPDX-License-Identifier: Apache-2.0
// Weights in packed layouts, as tensors of cases: random contents after the header lines of the layouts.
#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>

#include "flashinfer/op/registry.h"
#include "flashinfer/ops/common/fill.h"
#include "flashinfer/ops/common/reference.h"
#include "flashinfer/ops/gemm/kernels/gguf_layout.h"

namespace flashinfer::ops::gemm {
namespace {

/// The headers of a packed weight [..., panels, lines, 64 bytes] of (k, n).
void write_headers(const TensorView& t, GemmFormat f, int64_t k, int64_t n) {
  for (int64_t i = 0; i < (t.rank() == 4 ? t.size(0) : 1); ++i)
    for (int64_t p = 0; p < t.size(-3); ++p) {
      const int64_t at = (t.rank() == 4 ? i * t.stride(0) : 0) + p * t.stride(-3);
      write_packed_header(static_cast<char*>(t.data()) + at * t.item_size(),
                          {.columns = std::min<int64_t>(16, n - 16 * p), .k = k, .format = f});
    }
}
GemmFormat format_of(DType t) {
  return t == DType::kBF16 ? GemmFormat::kBF16 : t == DType::kF8E4M3 ? GemmFormat::kE4M3 : GemmFormat::kFp4;
}
/// A packed weight of (k, n), or a stack of them: normal values, FP4 random codes, after the headers.
void fill_packed(const TensorView& t, const op::FillRule& rule, uint64_t seed) {
  const auto k = static_cast<int64_t>(rule.a), n = static_cast<int64_t>(rule.b);
  const GemmFormat f = format_of(t.dtype());
  if (t.rank() < 3 || t.size(-3) != packed_panels(n) || t.size(-2) != packed_lines(f, k) ||
      t.size(-1) * t.item_size() != kPanelLine)
    throw ValueError(str("case: packed(", k, ",", n, ") needs ", packed_panels(n), "x", packed_lines(f, k), "x",
                         kPanelLine / t.item_size()));
  each(t, [&](int64_t i, int64_t o) {
    ref::store_element(
        t, o,
        f == GemmFormat::kFp4 ? static_cast<double>(mix(seed + static_cast<uint64_t>(i)) % 256) : normal(seed, i));
  });
  write_headers(t, f, k, n);
}

void put_half(uint8_t* p, double v) {
  const f16_t h(static_cast<float>(v));
  std::memcpy(p, &h.bits, 2);
}
/// GGUF blocks, [n, bytes], or a weight packed by prepare_gguf_weights, [panels, lines, 64] of (k, n): random quants,
/// small scales.
void fill_gguf(const TensorView& t, const op::FillRule& rule, uint64_t seed) {
  const GgufFormat& f = *std::ranges::find(kGgufFormats, rule.name, &GgufFormat::name);
  const auto k = static_cast<int64_t>(rule.a), n = static_cast<int64_t>(rule.b);
  each(t, [&](int64_t i, int64_t o) {
    t.data_as<uint8_t>()[o] = static_cast<uint8_t>(mix(seed + static_cast<uint64_t>(i)));
  });
  const auto scale = [&](int64_t i) { return 0.002 * (0.5 + uniform(~seed, i)); };
  if (t.rank() == 3) {
    const int64_t blocks = k / 32, halves = gguf_scale_bytes(f.format) / 2;
    if (!f.panels || t.size(0) != packed_panels(n) || t.size(1) != gguf_lines(f.format, k) || t.size(2) != kPanelLine)
      throw ValueError(
          str("case: ", f.name, "(", k, ",", n, ") needs u8:", packed_panels(n), "x", gguf_lines(f.format, k), "x64"));
    write_headers(t, f.format, k, n);
    for (int64_t p = 0; p < t.size(0); ++p) {
      uint8_t* const panel = t.data_as<uint8_t>() + p * t.stride(0);
      uint8_t* const scales = panel + kPanelLine + blocks * gguf_quant_bytes(f.format);
      for (int64_t i = 0; i < blocks * halves; ++i) put_half(scales + 2 * i, scale(p * blocks * halves + i));
    }
    return;
  }
  for (int64_t r = 0; r < t.size(0); ++r)
    for (int64_t b = 0; b < t.size(1) / f.bytes; ++b) {
      uint8_t* const block = t.data_as<uint8_t>() + r * t.stride(0) + b * f.bytes;
      put_half(block + (f.format == GemmFormat::kQ6_K ? 208 : 0), scale(2 * (r * t.size(1) + b)));
      if (f.minimum) put_half(block + 2, scale(2 * (r * t.size(1) + b) + 1));
    }
}

constexpr auto kFills = [] {
  std::array<op::Fill, 1 + std::size(kGgufFormats)> all{{{"packed", fill_packed}}};
  for (size_t i = 0; i < std::size(kGgufFormats); ++i) all[1 + i] = {kGgufFormats[i].name, fill_gguf};
  return all;
}();

}  // namespace
extern const std::span<const op::Fill> fills;
constinit const std::span<const op::Fill> fills = kFills;
}  // namespace flashinfer::ops::gemm
