// SPDX-License-Identifier: Apache-2.0
// NaN among gates. A NaN that reaches a state stays in it, so that the CPU refuses it before anything is written; on a
// GPU, where the host does not read tensors, it is data.
#pragma once
#include "flashinfer/op/call.h"

namespace flashinfer::ops::linear_attention {

/// Whether `t` (f32, bf16 or f16 in host memory, any strides) has a NaN. On the context's threads where it is large.
bool has_nan(const TensorView& t);

namespace detail {
/// ValueError for the first NaN of `t` whose index along `axis` takes part, if there is one.
void refuse_nan(const char* name, const TensorView& t, int axis, bool (*takes_part)(const void*, int64_t),
                const void* arg);
}  // namespace detail

/// Whether the check may read the elements of `t`.
inline bool gates_readable(const TensorView& t) { return t.device() == kCpu && !op::inferring(); }

struct AllRows {
  bool operator()(int64_t) const { return true; }
};
/// ValueError "a[1, 0, 3] is nan, but gates must be numbers" unless no element whose index along `axis` takes part is
/// NaN. Rows that are padded hold anything.
template <class F = AllRows>
void check_gate(const char* name, const TensorView& t, F takes_part = {}, int axis = 0) {
  if (!gates_readable(t) || !has_nan(t)) return;
  detail::refuse_nan(
      name, t, axis, [](const void* f, int64_t i) { return (*static_cast<const F*>(f))(i); }, &takes_part);
}
/// The same for decays that are given as factors [tokens, heads] f32, which are not negative either.
void check_factors(const char* name, const TensorView& t);

}  // namespace flashinfer::ops::linear_attention
