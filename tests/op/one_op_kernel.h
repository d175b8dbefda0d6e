// SPDX-License-Identifier: Apache-2.0
// The kernel of the op in one_op_test.cc, as an engine would write one of its own.
#pragma once
#include "flashinfer/kernels/cpu/vec.h"

namespace one_op {

struct Config {
  flashinfer::DType dtype;
  static constexpr const char* kName = "one_op::Config";
  template <class V>
  constexpr void visit(V&& v) const {
    v("dtype", dtype);
  }
  friend constexpr bool operator==(const Config&, const Config&) = default;
};
struct Params {
  const void* x;
  void* out;
  int64_t rows, d, x_stride, out_stride;
  float factor;
};

/// out[row, :] = factor * x[row, :]
template <Config C>
void scale(const Params& p, int64_t row) {
  using namespace flashinfer::cpu;
  using T = flashinfer::scalar_of_t<C.dtype>;
  const T* x = static_cast<const T*>(p.x) + row * p.x_stride;
  T* y = static_cast<T*>(p.out) + row * p.out_stride;
  const Vec f = splat(p.factor);
  int64_t i = 0;
  for (; i + Vec::kLanes <= p.d; i += Vec::kLanes) store(y + i, load(x + i) * f);
  if (i < p.d) store_n(y + i, load_n(x + i, p.d - i) * f, p.d - i);
}

}  // namespace one_op
