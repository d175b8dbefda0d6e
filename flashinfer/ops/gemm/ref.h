// SPDX-License-Identifier: Apache-2.0
// Reference of matrix products: double precision, plain loops.
#pragma once
#include <vector>

#include "flashinfer/ops/common/reference.h"
#include "flashinfer/ops/gemm/packed/ref.h"

namespace flashinfer::ref {

/// Element (k, n) of a packed weight (layout: kernels/packed_layout.h).
inline double packed_at(const TensorView& b, int64_t k, int64_t n) {
  return at(b, {n / 16, 1 + k / 2, n % 16 * 2 + k % 2});
}

/// out[m, n] = (a[m, k] . b[k, n]) * scale + bias[n], rounded once to out's dtype. `b` has rank 2, or 3 when packed.
inline void mm(const TensorView& a, const TensorView& b, const TensorView* bias, double scale, const TensorView& out) {
  const int64_t m = out.size(0), n = out.size(1), depth = a.size(1);
  std::vector<double> column(static_cast<size_t>(depth));
  for (int64_t j = 0; j < n; ++j) {
    for (int64_t k = 0; k < depth; ++k)
      column[static_cast<size_t>(k)] = b.rank() == 3 ? packed_at(b, k, j) : at(b, {k, j});
    for (int64_t i = 0; i < m; ++i) {
      double sum = 0;
      for (int64_t k = 0; k < depth; ++k) sum += at(a, {i, k}) * column[static_cast<size_t>(k)];
      put(out, {i, j}, sum * scale + (bias ? get(*bias, j) : 0.0));
    }
  }
}

inline void bmm(const TensorView& a, const TensorView& b, double scale, const TensorView& out) {
  for (int64_t i = 0; i < out.size(0); ++i) mm(a.select(0, i), b.select(0, i), nullptr, scale, out.select(0, i));
}

/// The packed form of b[k, n]: panel, pair and place of each element by division; zeros where there is none.
inline void pack(const TensorView& b, const TensorView& out) {
  const int64_t depth = b.size(0), n = b.size(1);
  for (int64_t p = 0; p < out.size(0); ++p) {
    bf16_t* panel = out.data_as<bf16_t>() + p * out.stride(0);
    for (int64_t i = 0; i < 64; ++i)
      reinterpret_cast<uint8_t*>(panel)[i] =
          packed_header_byte(GemmFormat::kBF16, n - 16 * p < 16 ? n - 16 * p : 16, depth, i);
    for (int64_t line = 1; line < out.size(1); ++line)
      for (int64_t i = 0; i < 32; ++i) {
        const int64_t k = 2 * (line - 1) + i % 2, column = 16 * p + i / 2;
        put(out, {p, line, i}, k < depth && column < n ? at(b, {k, column}) : 0.0);
      }
  }
}

}  // namespace flashinfer::ref
