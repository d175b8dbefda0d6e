// SPDX-License-Identifier: Apache-2.0
// Rows of bytes of a latent cache, as tensors of cases.
#include <cstring>

#include "flashinfer/core/scalar.h"
#include "flashinfer/op/registry.h"
#include "flashinfer/ops/common/fill.h"

namespace flashinfer::ops::mla {
namespace {

/// packed_mla(low, high): e4m3 codes without NaN, scales in [low, high), bf16 values in [-2, 2).
void fill_packed_mla(const TensorView& t, const op::FillRule& rule, uint64_t seed) {
  if (t.dtype() != DType::kU8 || t.size(-1) != 656 || t.stride(-1) != 1)
    throw ValueError("case: packed_mla(low, high) needs uint8 rows of 656");
  each(t, [&](int64_t i, int64_t o) {
    if (i % 656) return;  // the first byte of a row fills it
    uint8_t* row = t.data_as<uint8_t>() + o;
    for (int64_t d = 0; d < 512; ++d) {
      const uint64_t bits = mix(seed + static_cast<uint64_t>(i + d));
      row[d] = static_cast<uint8_t>(bits % 127 | (bits >> 32 & 1) << 7);
    }
    for (int64_t g = 0; g < 4; ++g) {
      const float scale = static_cast<float>(rule.a + (rule.b - rule.a) * uniform(seed, i + 512 + g));
      std::memcpy(row + 512 + 4 * g, &scale, 4);
    }
    for (int64_t d = 0; d < 64; ++d) {
      const bf16_t x(static_cast<float>(4 * uniform(seed, i + 528 + d) - 2));
      std::memcpy(row + 528 + 2 * d, &x, 2);
    }
  });
}
constexpr op::Fill kFills[] = {{"packed_mla", fill_packed_mla}};

}  // namespace
extern const std::span<const op::Fill> fills;
constinit const std::span<const op::Fill> fills = kFills;
}  // namespace flashinfer::ops::mla
