// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/moe/trtllm_layer.h"

#include <cstring>

#include "flashinfer/ops/common/rows.h"

namespace flashinfer::moe::trtllm {

Routed given_routing(const op::PagedKv& ids, int64_t tokens, int64_t top_k) {
  Routed out;
  for (int64_t t = 0; t < tokens; ++t)
    for (int64_t j = 0; j < top_k; ++j) {
      const auto entry = static_cast<int32_t>(ref::at(ids.first, {t, j}));
      if (!ids.stacked) {
        out.ids.push_back(entry);
        out.weights.push_back(ref::at(ids.second, {t, j}));
        continue;
      }
      bf16_t weight;
      weight.bits = static_cast<uint16_t>(entry & 0xffff);
      out.ids.push_back(entry >> 16);
      out.weights.push_back(static_cast<double>(static_cast<float>(weight)));
    }
  return out;
}

Tensor int4_scales(const TensorView& scales, int64_t experts, int64_t n, int64_t columns,
                   const std::vector<int32_t>& used) {
  Tensor out = Tensor::empty({experts, n, columns}, DType::kF32);
  std::vector<char> named(static_cast<size_t>(experts), 0);
  for (const int32_t e : used)
    if (e >= 0) named[static_cast<size_t>(e)] = 1;
  const int64_t batch = sf_bytes(SfLayout::k128x4, n, columns);
  ops::for_rows(experts * n, ops::rows_per_task(experts * n, columns * 6), [&](int64_t row) {
    const int64_t e = row / n;
    if (!named[static_cast<size_t>(e)]) return;
    const bf16_t* from = scales.data_as<bf16_t>() + e * batch + sf_row_offset(SfLayout::k128x4, row % n, columns);
    float* to = out.data_as<float>() + row * columns;
    for (int64_t c = 0; c < columns; ++c) to[c] = static_cast<float>(from[sf_column_offset(SfLayout::k128x4, c)]);
  });
  return out;
}

Tensor row_scales(const TensorView& scales, RowFormat format, int64_t tokens, int64_t columns) {
  const bool groups = format == RowFormat::kFp8Blocks;
  Tensor out = Tensor::empty({tokens, columns}, groups ? DType::kF32 : DType::kU8);
  if (!groups) {
    std::memcpy(out.data(), scales.data(), static_cast<size_t>(tokens * columns));
    return out;
  }
  for (int64_t c = 0; c < columns; ++c)
    for (int64_t t = 0; t < tokens; ++t)
      out.data_as<float>()[t * columns + c] = scales.data_as<float>()[c * scales.stride(0) + t * scales.stride(1)];
  return out;
}

Tensor product_of(const TensorView& a, const TensorView& b, int64_t experts) {
  Tensor out = Tensor::empty({experts}, DType::kF32);
  for (int64_t e = 0; e < experts; ++e) out.data_as<float>()[e] = number(a, e) * number(b, e);
  return out;
}
Tensor ones(int64_t experts) {
  Tensor out = Tensor::empty({experts}, DType::kF32);
  std::fill_n(out.data_as<float>(), experts, 1.0f);
  return out;
}
Tensor quotient(const TensorView& a, const TensorView& b, int64_t experts) {
  Tensor out = Tensor::empty({experts}, DType::kF32);
  for (int64_t e = 0; e < experts; ++e) out.data_as<float>()[e] = number(a, e) / number(b, e);
  return out;
}

}  // namespace flashinfer::moe::trtllm
