// SPDX-License-Identifier: Apache-2.0
// Element access for the double-precision references: any dtype, any strides, rank up to 8.
#pragma once
#include <array>
#include <cstdint>
#include <span>

#include "flashinfer/core/tensor.h"

namespace flashinfer::ref {

using Index = std::array<int64_t, TensorView::kMaxRank>;

inline double load_element(const TensorView& t, int64_t offset) {
  switch (t.dtype()) {
    case DType::kF32: return t.data_as<float>()[offset];
    case DType::kF64: return t.data_as<double>()[offset];
    case DType::kF16: return static_cast<float>(t.data_as<f16_t>()[offset]);
    case DType::kBF16: return static_cast<float>(t.data_as<bf16_t>()[offset]);
    case DType::kF8E4M3: return static_cast<float>(t.data_as<e4m3_t>()[offset]);
    case DType::kF8E5M2: return static_cast<float>(t.data_as<e5m2_t>()[offset]);
    case DType::kI8: return t.data_as<int8_t>()[offset];
    case DType::kU8:
    case DType::kBool:
    case DType::kF4E2M1x2: return t.data_as<uint8_t>()[offset];
    case DType::kI16: return t.data_as<int16_t>()[offset];
    case DType::kU16: return t.data_as<uint16_t>()[offset];
    case DType::kI32: return t.data_as<int32_t>()[offset];
    case DType::kU32: return t.data_as<uint32_t>()[offset];
    case DType::kI64: return static_cast<double>(t.data_as<int64_t>()[offset]);
    case DType::kU64: return static_cast<double>(t.data_as<uint64_t>()[offset]);
  }
  return 0;
}

/// Rounds once from double to the element type. A double is first rounded to odd in float, so that the second rounding
/// to a 16- or 8-bit type is exact (float keeps more than two extra bits).
inline float round_to_odd(double v) {
  float f = static_cast<float>(v);
  if (static_cast<double>(f) == v || !(f - f == 0.0f)) return f;
  uint32_t u = scalar_detail::bits(f);
  if ((static_cast<double>(f) > v) == (v > 0)) --u;  // truncate towards zero
  return scalar_detail::from_bits(u | 1u);
}
inline void store_element(const TensorView& t, int64_t offset, double v) {
  switch (t.dtype()) {
    case DType::kF32: t.data_as<float>()[offset] = static_cast<float>(v); return;
    case DType::kF64: t.data_as<double>()[offset] = v; return;
    case DType::kF16: t.data_as<f16_t>()[offset] = f16_t(round_to_odd(v)); return;
    case DType::kBF16: t.data_as<bf16_t>()[offset] = bf16_t(round_to_odd(v)); return;
    case DType::kF8E4M3: t.data_as<e4m3_t>()[offset] = e4m3_t(round_to_odd(v)); return;
    case DType::kF8E5M2: t.data_as<e5m2_t>()[offset] = e5m2_t(round_to_odd(v)); return;
    case DType::kI8: t.data_as<int8_t>()[offset] = static_cast<int8_t>(v); return;
    case DType::kU8:
    case DType::kF4E2M1x2: t.data_as<uint8_t>()[offset] = static_cast<uint8_t>(v); return;
    case DType::kBool: t.data_as<bool>()[offset] = v != 0; return;
    case DType::kI16: t.data_as<int16_t>()[offset] = static_cast<int16_t>(v); return;
    case DType::kU16: t.data_as<uint16_t>()[offset] = static_cast<uint16_t>(v); return;
    case DType::kI32: t.data_as<int32_t>()[offset] = static_cast<int32_t>(v); return;
    case DType::kU32: t.data_as<uint32_t>()[offset] = static_cast<uint32_t>(v); return;
    case DType::kI64: t.data_as<int64_t>()[offset] = static_cast<int64_t>(v); return;
    case DType::kU64: t.data_as<uint64_t>()[offset] = static_cast<uint64_t>(v); return;
  }
}

/// Offset in elements of `index[0..rank)`.
inline int64_t offset_of(const TensorView& t, const Index& index) {
  int64_t o = 0;
  for (int i = 0; i < t.rank(); ++i) o += index[static_cast<size_t>(i)] * t.stride(i);
  return o;
}
inline double at(const TensorView& t, std::initializer_list<int64_t> index) {
  int64_t o = 0;
  int i = 0;
  for (int64_t x : index) o += x * t.stride(i++);
  return load_element(t, o);
}
inline void put(const TensorView& t, std::initializer_list<int64_t> index, double v) {
  int64_t o = 0;
  int i = 0;
  for (int64_t x : index) o += x * t.stride(i++);
  store_element(t, o, v);
}

/// Calls f(index) for every row, i.e. every index of all extents but the last; index[rank-1] is 0.
template <class F>
void for_each_row(const TensorView& t, F&& f) {
  const int n = t.rank() - 1;
  for (int i = 0; i < n; ++i)
    if (t.size(i) == 0) return;
  Index index{};
  for (;;) {
    f(static_cast<const Index&>(index));
    int i = n - 1;
    while (i >= 0 && ++index[static_cast<size_t>(i)] == t.size(i)) index[static_cast<size_t>(i--)] = 0;
    if (i < 0) return;
  }
}
/// Element i of a row found by for_each_row; of a vector.
inline double get(const TensorView& t, Index row, int64_t i) {
  row[static_cast<size_t>(t.rank() - 1)] = i;
  return load_element(t, offset_of(t, row));
}
inline double get(const TensorView& t, int64_t i) { return load_element(t, i * t.stride(0)); }
inline void set(const TensorView& t, Index row, int64_t i, double v) {
  row[static_cast<size_t>(t.rank() - 1)] = i;
  store_element(t, offset_of(t, row), v);
}

}  // namespace flashinfer::ref
