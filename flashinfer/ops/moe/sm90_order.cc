// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/moe/sm90_order.h"

#include <cstring>

#include "flashinfer/core/layout_error.h"
#include "flashinfer/ops/common/rows.h"

namespace flashinfer::moe {
namespace {

constexpr int64_t kBlock = 64;  // columns of a block, of 32 bytes: 16 words of 16 bits

/// Two rows of a block, r and r + 8, from the words that hold both.
using Restore = void (*)(const uint16_t* from[2], uint16_t* to[2]);

void restore_fp4(const uint16_t* from[2], uint16_t* to[2]) {
  uint8_t* const low = reinterpret_cast<uint8_t*>(to[0]);
  uint8_t* const high = reinterpret_cast<uint8_t*>(to[1]);
  for (int h = 0; h < 2; ++h)
    for (int u = 0; u < 2; ++u)
      for (int pair = 0; pair < 4; ++pair) {  // two columns make a byte
        const auto codes = [&](int i) {
          const uint32_t w = from[h][8 * u + 2 * pair + i];
          const uint32_t a = (w >> 6 & 7) | (w >> 15 & 1) << 3, b = (w >> 3 & 7) | (w >> 12 & 1) << 3,
                         c = (w & 7) | (w >> 9 & 1) << 3, d = (w >> 13 & 1) | (w >> 10 & 3) << 1 | (w >> 14 & 1) << 3;
          return a | b << 8 | c << 16 | d << 24;
        };
        const uint32_t both = codes(0) | codes(1) << 4;
        const int at = 16 * u + 8 * h + pair;
        low[at] = static_cast<uint8_t>(both), high[at] = static_cast<uint8_t>(both >> 8);
        low[at + 4] = static_cast<uint8_t>(both >> 16), high[at + 4] = static_cast<uint8_t>(both >> 24);
      }
}
void restore_int4(const uint16_t* from[2], uint16_t* to[2]) {
  for (int h = 0; h < 2; ++h)
    for (int u = 0; u < 2; ++u)
      for (int part = 0; part < 4; ++part)
        for (int s = 0; s < 2; ++s) to[s][8 * u + 4 * h + part] = from[h][8 * u + 2 * part + s];
}

}  // namespace

bool has_sm90_order(const Moe& a) {
  if (!a.quant_scales || a.quant_scales->empty()) return false;
  const TensorView* t = nullptr;
  if (mode_of(a) == Mode::kMxfp4) t = scale_of(a, Scale::kSf1);
  if (mode_of(a) == Mode::kInt4) t = scale_of(a, Scale::kGroups1);
  return t && t->rank() == 5;
}

void check_sm90_scales(const char* what, const TensorView& t, Mode mode, int64_t experts, int64_t n, int64_t k) {
  const bool int4 = mode == Mode::kInt4;
  FI_CHECK(n % 64 == 0 && k % 128 == 0, ValueError, "quant_scales, ", what, ", is ", to_string(t),
           ", but weights in the order of SM90 have a multiple of 64 rows of a multiple of 128 columns, not ", n, " x ",
           k);
  FI_CHECK(!int4 || size_of(t.dtype()) == 2, ValueError, "quant_scales, ", what, ", is ", to_string(t),
           ", but in the order of SM90 scales have 16 bits (of bfloat16)");
  FI_CHECK_LAYOUT(t.size(0) == experts && t.size(1) == n / 64 && t.size(2) == k / 128 &&
                      t.nbytes() == experts * n * (k / 128) * (int4 ? 2 : 4),
                  t.is_contiguous(), "quant_scales, ", what, ", is ", to_string(t), ", but must be [", experts, ", ",
                  n / 64, ", ", k / 128, ", ", int4 ? "8, 8]" : "16, 16] bytes",
                  ", contiguous, as interleave_moe_scales_for_sm90_mixed_gemm returns");
}

Tensor codes_in_plain_order(const TensorView& t, bool fp4, std::span<const char> used) {
  const int64_t n = t.size(1), words = t.size(2) / 2;
  Tensor out = Tensor::empty(t.shape(), DType::kU8);
  const Restore restore = fp4 ? restore_fp4 : restore_int4;
  ops::for_rows(t.size(0) * n / 16, ops::rows_per_task(t.size(0) * n / 16, 32 * words), [&](int64_t group) {
    if (!used[static_cast<size_t>(group * 16 / n)]) return;
    for (int64_t i = 0; i < 8; ++i)
      for (int64_t w = 0; w < words; w += kBlock / 4) {
        const int64_t at = 2 * ((16 * group + i) * words + w), next = 16 * words;  // bytes; of row r + 8
        const uint8_t* const from = static_cast<const uint8_t*>(t.data()) + at;    // at any address
        uint16_t lines[2][kBlock / 4];
        std::memcpy(lines[0], from, sizeof lines[0]), std::memcpy(lines[1], from + next, sizeof lines[1]);
        uint8_t* const to = out.data_as<uint8_t>() + at;
        const uint16_t* sources[2] = {lines[0], lines[1]};
        uint16_t* targets[2] = {reinterpret_cast<uint16_t*>(to), reinterpret_cast<uint16_t*>(to + next)};
        restore(sources, targets);
      }
  });
  return out;
}

Tensor scales_in_plain_order(const TensorView& t, DType type, int64_t n, int64_t columns, int64_t each,
                             std::span<const char> used) {
  const int64_t line = each * size_of(type), rows = 16 / line, apart = 64 / rows, groups = columns / each;
  Tensor out = Tensor::empty({t.size(0), n, columns}, type);
  ops::for_rows(t.size(0) * n, ops::rows_per_task(t.size(0) * n, groups * line), [&](int64_t row) {
    if (!used[static_cast<size_t>(row / n)]) return;
    const uint8_t* from = static_cast<const uint8_t*>(t.data()) + row / 64 * 64 * groups * line + row % apart * 16 +
                          row % 64 / apart * line;
    uint8_t* to = static_cast<uint8_t*>(out.data()) + row * groups * line;
    for (int64_t g = 0; g < groups; ++g) std::memcpy(to + g * line, from + g * 64 * line, static_cast<size_t>(line));
  });
  return out;
}

}  // namespace flashinfer::moe
