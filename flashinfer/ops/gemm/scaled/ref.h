// SPDX-License-Identifier: Apache-2.0
// Reference of products of narrow matrices with scales: every element in double with its scale, plain loops. Elements
// and scales are read from the tensors of the call, not from what the kernels read of these (check.h).
#pragma once
#include <cmath>
#include <functional>
#include <vector>

#include "flashinfer/core/int_math.h"
#include "flashinfer/kernels/common/scale_layout.h"
#include "flashinfer/ops/common/reference.h"
#include "flashinfer/ops/quantization/block/ref.h"

namespace flashinfer::ref {

/// Element (line, k) of [lines, k], or of FP4 bytes [lines, k / 2].
inline double narrow_at(const TensorView& t, bool fp4, int64_t line, int64_t k) {
  if (!fp4) return at(t, {line, k});
  const int code = static_cast<int>(at(t, {line, k / 2})) >> (k % 2 ? 4 : 0) & 15, exponent = code >> 1 & 3;
  const double magnitude = exponent ? std::ldexp(1.0 + 0.5 * (code & 1), exponent - 1) : 0.5 * (code & 1);
  return code & 8 ? -magnitude : magnitude;
}

/// Element (line, k) of bytes [lines, k / 2] of two numbers in two's complement.
inline double int4_at(const TensorView& t, int64_t line, int64_t k) {
  const int code = static_cast<int>(at(t, {line, k / 2})) / (k % 2 ? 16 : 1) % 16;
  return code < 8 ? code : code - 16;
}

inline double scale_of_byte(uint8_t b, bool e8m0) {
  if (!e8m0) return static_cast<double>(scalar_detail::decode<4, 3, true>(b));
  return b == 255 ? std::nan("") : std::ldexp(1.0, b - 127);
}

/// Scale factors of one byte for `block` elements along k, of matrices of rows x depth that follow one another.
struct ByteScales {
  TensorView t;
  SfLayout layout;
  bool e8m0;
  int64_t rows, depth, block;
  double at(int64_t matrix, int64_t row, int64_t k) const {
    const int64_t columns = depth / block, padded = round_up(columns, 4);
    const int64_t tile = layout == SfLayout::k128x4 ? 128 : layout == SfLayout::k8x4 ? 8 : 16;
    const int64_t size = layout == SfLayout::kLinear ? rows * columns : round_up(rows, tile) * padded;
    const int64_t place = layout == SfLayout::kPanels ? row / 16 * 16 * padded + k / block * 16 + row % 16
                                                      : scale_place(layout, row, k / block, columns);
    return scale_of_byte(static_cast<const uint8_t*>(t.data())[matrix * size + place], e8m0);
  }
};

/// f32 scales of blocks of lines x depth: [lines, k], or [k, lines] with k_first, behind the matrix when there are
/// several.
struct BlockGrid {
  TensorView t;
  bool k_first;
  int64_t lines, depth;
  double at(int64_t matrix, int64_t line, int64_t k) const {
    const int64_t x = k_first ? k / depth : line / lines, y = k_first ? line / lines : k / depth;
    return t.rank() == 3 ? ref::at(t, {matrix, x, y}) : ref::at(t, {x, y});
  }
};

using ElementOf = std::function<double(int64_t line, int64_t k)>;

/// out[i, j] = alpha * sum over k of a(i, k) * b(j, k) for the rows [begin, end) of out.
inline void nt_product(const TensorView& out, int64_t begin, int64_t end, int64_t depth, const ElementOf& a,
                       const ElementOf& b, double alpha) {
  std::vector<double> row(static_cast<size_t>(depth)), columns(static_cast<size_t>(depth * out.size(1)));
  for (int64_t j = 0; j < out.size(1); ++j)
    for (int64_t k = 0; k < depth; ++k) columns[static_cast<size_t>(j * depth + k)] = b(j, k);
  for (int64_t i = begin; i < end; ++i) {
    for (int64_t k = 0; k < depth; ++k) row[static_cast<size_t>(k)] = a(i, k);
    for (int64_t j = 0; j < out.size(1); ++j) {
      double sum = 0;
      for (int64_t k = 0; k < depth; ++k)
        sum += row[static_cast<size_t>(k)] * columns[static_cast<size_t>(j * depth + k)];
      put(out, {i, j}, alpha * sum);
    }
  }
}

/// Column n of a weight that prepare_low_latency_gemm_weights brought into [k / 128, n, 128]: rows of each 32 are
/// interleaved: every fourth row from row 0 on, then from 1, 2 and 3 on.
inline double low_latency_at(const TensorView& b, int64_t n, int64_t k) {
  int64_t place = 0;
  for (int64_t turn = 0, at = 0; turn < 4; ++turn)
    for (int64_t i = turn; i < 32; i += 4, ++at)
      if (i == n % 32) place = at;
  return at(b, {k / 128, n / 32 * 32 + place, k % 128});
}

}  // namespace flashinfer::ref
