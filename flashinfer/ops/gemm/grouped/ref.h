// SPDX-License-Identifier: Apache-2.0
// Reference of grouped products: which matrix a row meets, and every element with its scale, from the tensors of the
// call. It shares nothing with GroupedWork, from which the kernels take the same.
#pragma once
#include <functional>
#include <vector>

#include "flashinfer/ops/gemm/packed/ref.h"

namespace flashinfer::ref {

using MatrixOf = std::function<int64_t(int64_t row)>;  // -1: none
/// Row r is of e when indptr[e] <= r < indptr[e + 1].
inline MatrixOf by_offsets(const TensorView& indptr) {
  return [indptr](int64_t row) {
    for (int64_t e = 0; e + 1 < indptr.size(0); ++e)
      if (get(indptr, e) <= static_cast<double>(row) && static_cast<double>(row) < get(indptr, e + 1)) return e;
    return int64_t{-1};
  };
}
/// Row r is of indices[r].
inline MatrixOf by_indices(const TensorView& indices) {
  return [indices](int64_t row) { return static_cast<int64_t>(get(indices, row)); };
}
/// Row r is of r / rows when it is one of the first count[r / rows] rows of that matrix.
inline MatrixOf by_counts(const TensorView& count, int64_t rows) {
  return [count, rows](int64_t row) {
    return static_cast<double>(row % rows) < get(count, row / rows) ? row / rows : int64_t{-1};
  };
}

/// store(r, j, alpha(e) * sum over k of a(r, k) * b(e, j, k)) with e = matrix_of(r), and 0 for rows of no matrix.
struct GroupedProduct {
  int64_t rows, n, depth;
  MatrixOf matrix_of;
  std::function<double(int64_t r, int64_t k)> a;
  std::function<double(int64_t e, int64_t j, int64_t k)> b;
  std::function<double(int64_t e)> alpha;
};
template <class Store>
void grouped_product(const GroupedProduct& p, Store&& store) {
  std::vector<double> row(static_cast<size_t>(p.depth)), matrix(static_cast<size_t>(p.n * p.depth));
  int64_t of = -1;
  for (int64_t r = 0; r < p.rows; ++r) {
    const int64_t e = p.matrix_of(r);
    if (e >= 0 && e != of)
      for (int64_t j = 0; j < p.n; ++j)
        for (int64_t k = 0; k < p.depth; ++k) matrix[static_cast<size_t>(j * p.depth + k)] = p.b(e, j, k);
    if (e >= 0) {
      of = e;
      for (int64_t k = 0; k < p.depth; ++k) row[static_cast<size_t>(k)] = p.a(r, k);
    }
    for (int64_t j = 0; j < p.n; ++j) {
      double sum = 0;
      for (int64_t k = 0; e >= 0 && k < p.depth; ++k)
        sum += row[static_cast<size_t>(k)] * matrix[static_cast<size_t>(j * p.depth + k)];
      store(r, j, e < 0 ? 0.0 : (p.alpha ? p.alpha(e) : 1.0) * sum);
    }
  }
}
/// Into out [rows, n].
inline void grouped_product(const GroupedProduct& p, const TensorView& out) {
  grouped_product(p, [&](int64_t r, int64_t j, double v) { put(out, {r, j}, v); });
}
/// Into out [matrices, rows of each, n].
inline void batched_product(const GroupedProduct& p, const TensorView& out) {
  const int64_t rows = out.size(1);
  grouped_product(p, [&](int64_t r, int64_t j, double v) { put(out, {r / rows, r % rows, j}, v); });
}
inline double one_or(const std::optional<TensorView>& t, double otherwise) {
  return t ? get(t->view({1}), 0) : otherwise;
}
/// Element (e, j, k) of a stack [e, n, k], FP4 [e, n, k / 2].
inline double stacked_at(const TensorView& b, bool fp4, int64_t e, int64_t j, int64_t k) {
  return narrow_at(b.select(0, e), fp4, j, k);
}

}  // namespace flashinfer::ref
