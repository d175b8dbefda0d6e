// SPDX-License-Identifier: Apache-2.0
// Queries in the type that a kernel multiplies them in. Internal to the families of attention.
#pragma once
#include <type_traits>
#include <vector>

#include "flashinfer/op/schema.h"
#include "flashinfer/ops/common/rows.h"

namespace flashinfer::ops {

inline constexpr DTypeSet kQueryTypes = op::floats | op::fp8;

/// The type that queries are multiplied in. 8-bit ones become K's type, or bf16 when K is narrower: e4m3 and e5m2 fit
/// into each exactly.
inline DType compute_type(DType q, DType kv) { return !op::fp8.has(q) ? q : op::floats.has(kv) ? kv : DType::kBF16; }
/// The type of outputs when the caller names none: q's, or bf16 for 8-bit queries.
inline DType default_output(DType q) { return op::fp8.has(q) ? DType::kBF16 : q; }

namespace queries_detail {
template <class To, class From>
void convert(const TensorView& q, const Tensor& to, const std::vector<float>& factors) {
  To codes[256];  // of 8-bit types: all values
  if constexpr (sizeof(From) == 1) {
    for (int i = 0; i < 256; ++i) {
      From x;
      x.bits = static_cast<uint8_t>(i);
      codes[i] = static_cast<To>(static_cast<float>(x));
    }
  }
  const int64_t heads = q.size(1), dim = q.size(2);
  auto token = [&](int64_t n) {
    for (int64_t h = 0; h < heads; ++h) {
      const From* from = q.data_as<From>() + n * q.stride(0) + h * q.stride(1);
      To* row = to.data_as<To>() + (n * heads + h) * dim;
      if constexpr (sizeof(From) == 1) {
        for (int64_t d = 0; d < dim; ++d) row[d] = codes[from[d].bits];
      } else {
        for (int64_t d = 0; d < dim; ++d) row[d] = static_cast<To>(static_cast<float>(from[d]));
      }
      if constexpr (std::is_same_v<To, float>)
        if (!factors.empty())
          for (int64_t d = 0; d < dim; ++d) row[d] *= factors[static_cast<size_t>(h)];
    }
  };
  for_rows(q.size(0), rows_per_task(q.size(0), heads * dim * static_cast<int64_t>(sizeof(From) + sizeof(To))), token);
}
template <class To>
void convert_to(const TensorView& q, const Tensor& to, const std::vector<float>& factors) {
  if (q.dtype() == DType::kF8E4M3) return convert<To, e4m3_t>(q, to, factors);
  if (q.dtype() == DType::kF8E5M2) return convert<To, e5m2_t>(q, to, factors);
  if constexpr (std::is_same_v<To, float>) {
    if (q.dtype() == DType::kF16) return convert<To, f16_t>(q, to, factors);
    if (q.dtype() == DType::kBF16) return convert<To, bf16_t>(q, to, factors);
    convert<To, float>(q, to, factors);
  }
}
}  // namespace queries_detail

/// q [n, heads, dim] as `to`, contiguous: f32, or of 8-bit q also f16 or bf16. As f32 times `factors` [heads], unless
/// that is empty.
inline Tensor converted_queries(const TensorView& q, DType to, const std::vector<float>& factors = {}) {
  Tensor rows = Tensor::empty({q.size(0), q.size(1), q.size(2)}, to);
  if (to == DType::kF32)
    queries_detail::convert_to<float>(q, rows, factors);
  else if (to == DType::kF16)
    queries_detail::convert_to<f16_t>(q, rows, factors);
  else
    queries_detail::convert_to<bf16_t>(q, rows, factors);
  return rows;
}

}  // namespace flashinfer::ops
