// SPDX-License-Identifier: Apache-2.0
// The truth about products of narrow matrices with scales: every element in double with its scale, plain loops.
#pragma once
#include <cmath>
#include <functional>
#include <vector>

#include "flashinfer/kernels/common/scale_layout.h"
#include "flashinfer/ops/common/reference.h"

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

/// Scale factors of one matrix as bytes.
struct ScaleBytes {
  const uint8_t* bytes;
  SfLayout layout;
  bool e8m0;
  int64_t columns, block;
  double at(int64_t line, int64_t k) const {
    const uint8_t b = bytes[sf_offset(layout, line, k / block, columns)];
    if (!e8m0) return scalar_detail::decode<4, 3, true>(b);
    return b == 255 ? std::nan("") : std::ldexp(1.0, b - 127);
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

/// Column n of a weight that prepare_low_latency_gemm_weights brought into [k / 128, n, 128]: rows of each 32 are dealt
/// out in four turns of eight.
inline double low_latency_at(const TensorView& b, int64_t n, int64_t k) {
  int64_t place = 0;
  for (int64_t turn = 0, at = 0; turn < 4; ++turn)
    for (int64_t i = turn; i < 32; i += 4, ++at)
      if (i == n % 32) place = at;
  return at(b, {k / 128, n / 32 * 32 + place, k % 128});
}

}  // namespace flashinfer::ref
