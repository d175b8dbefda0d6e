// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/op/index_checks.h"

namespace flashinfer::op {

int64_t index_at(const TensorView& v, int64_t i) {
  FI_CHECK(v.device().type != DeviceType::kCUDA, NotImplementedError, "an index array is on ", to_string(v.device()),
           ", where the host cannot read it");
  const char* p = static_cast<const char*>(v.data()) + (v.rank() ? i * v.stride(0) : 0) * v.item_size();
  switch (v.dtype()) {
    case DType::kI32: return *reinterpret_cast<const int32_t*>(p);
    case DType::kI64: return *reinterpret_cast<const int64_t*>(p);
    case DType::kU32: return *reinterpret_cast<const uint32_t*>(p);
    case DType::kU64: return static_cast<int64_t>(*reinterpret_cast<const uint64_t*>(p));
    case DType::kU16: return *reinterpret_cast<const uint16_t*>(p);
    case DType::kU8:
    case DType::kBool: return *reinterpret_cast<const uint8_t*>(p);
    default: throw InternalError(str("index_at: ", name(v.dtype()), " is no index type"));
  }
}

void check_index_range(std::string_view name, const TensorView& v, int64_t lo, int64_t hi, std::string_view why) {
  const int64_t n = v.rank() ? v.size(0) : 1;
  if (v.device().type == DeviceType::kCUDA) return;
  for (int64_t i = 0; i < n; ++i) {
    const int64_t x = index_at(v, i);
    if (x < lo || x >= hi) [[unlikely]]
      throw ValueError(str(name, "[", i, "] is ", x, ", but must be in [", lo, ", ", hi, ") (", why, ")"));
  }
}

void check_indptr_room(std::string_view name, const TensorView& v, int64_t batch, std::string_view of) {
  FI_CHECK(v.size(0) > batch, ValueError, name, ".shape[0] is ", v.size(0), ", but ", of, " describes ", batch,
           " requests, which need ", batch + 1, " entries");
}

int64_t check_indptr(std::string_view name, const TensorView& v) {
  const int64_t n = v.size(0);
  FI_CHECK(n >= 1, ValueError, name, " is empty, but must have one entry more than there are requests");
  int64_t previous = index_at(v, 0);
  FI_CHECK(previous == 0, ValueError, name, "[0] is ", previous, ", but must be 0");
  for (int64_t i = 1; i < n; ++i) {
    const int64_t x = index_at(v, i);
    FI_CHECK(x >= previous, ValueError, name, "[", i, "] is ", x, ", but ", name, "[", i - 1, "] is ", previous,
             ": it must never decrease");
    previous = x;
  }
  return previous;
}

}  // namespace flashinfer::op
