// SPDX-License-Identifier: Apache-2.0
// What the ops of the family share: thresholds, seeds, indices; their checks and their way to the kernels.
#pragma once
#include <cmath>

#include "flashinfer/op/call.h"
#include "flashinfer/ops/common/task_scratch.h"
#include "flashinfer/ops/sampling/kernels/params.h"
#include "flashinfer/ops/sampling/ref.h"

namespace flashinfer::ops::sampling {

inline constexpr DTypeSet kSeeds = DTypeSet(DType::kI64) | DType::kU64;
inline constexpr DTypeSet kReals = op::floats | DType::kF64;

/// The generator of calls that name none.
inline op::Generator& default_generator() {
  static op::Generator g;
  return g;
}
template <class B>
void prepare(B& a) {
  if (!a.seed && !a.generator && !a.implied_generator) a.implied_generator = default_generator();
}

/// Whether the host can read the value; only a kernel reads what is on a GPU.
inline bool readable(const op::ScalarOrTensor& v) { return !v.tensor() || v.tensor()->device() == kCpu; }
/// A number, or one for each row of `what`; a threshold is not NaN.
void check_length(const char* name, const op::ScalarOrTensor& v, int64_t rows, const char* what);
void check_threshold(const char* name, const op::ScalarOrTensor& v, int64_t rows, const char* what);
void check_integer_threshold(const char* name, const op::ScalarOrTensor& v, int64_t rows, const char* what);
void check_seeds(const std::optional<op::ScalarOrTensor>& seed, const std::optional<op::ScalarOrTensor>& offset,
                 int64_t rows);
/// The first tensor of a sampler: its extent, its indices, NaN.
void check_rows(const char* name, const TensorView& t, const std::optional<TensorView>& indices, bool check_nan);

/// Numbers of a batch as an array: one, or one for each row.
template <class T>
struct Numbers {
  Tensor memory;
  const T* data = nullptr;
  int64_t stride = 0;
};
template <class T>
Numbers<T> numbers(const op::ScalarOrTensor& v) {
  const TensorView* t = v.tensor();
  const int64_t n = t ? t->size(0) : 1;
  Numbers<T> out{Tensor::empty({std::max<int64_t>(n, 1)}, dtype_of<T>::value), nullptr, n > 1};
  T* p = out.memory.template data_as<T>();
  for (int64_t i = 0; i < n; ++i) {
    if constexpr (std::is_floating_point_v<T>)
      p[i] = static_cast<T>(t ? ref::get(*t, i) : v.number());
    else
      p[i] = static_cast<T>(t ? op::index_at(*t, i) : std::get<int64_t>(v.value));
  }
  out.data = p;
  return out;
}

/// Seeds and offsets of a call; a generator is advanced here by `used` numbers, once a call.
struct Randomness {
  Numbers<uint64_t> seed, offset;
  bool own;
  RandomParams params() const { return {seed.data, offset.data, seed.stride, offset.stride, own}; }
  ref::Uniforms of_row(int64_t r) const {
    return {seed.data[r * seed.stride], own ? 0 : static_cast<uint64_t>(r), offset.data[r * offset.stride]};
  }
};
template <class B>
Randomness randomness(const B& a, uint64_t used) {
  if (a.seed) {
    const TensorView* t = a.seed->tensor();
    return {numbers<uint64_t>(*a.seed), numbers<uint64_t>(*a.offset), t && t->size(0) > 1};
  }
  op::Generator g = a.generator ? *a.generator : *a.implied_generator;
  const op::ScalarOrTensor seed(static_cast<int64_t>(g.seed())), offset(static_cast<int64_t>(g.advance(used)));
  return {numbers<uint64_t>(seed), numbers<uint64_t>(offset), false};
}

template <class B>
int64_t outputs_of(const B& a, const TensorView& in) {
  return a.indices ? a.indices->size(0) : in.size(0);
}
/// Params' rows and samples, of the ops that give a token a row.
template <class P, class B>
void set_rows_and_samples(P& p, const B& a) {
  if (a.indices) p.indices = a.indices->data();
  p.indices_wide = a.indices && a.indices->dtype() == DType::kI64;
  p.samples = a.samples->data();
  p.samples_wide = a.samples->dtype() == DType::kI64;
}
template <class B>
DType sample_dtype(const B& a) {
  return a.indices ? a.indices->dtype() : DType::kI32;
}

// The ops of the family, one file each.
extern const op::Op softmax_op, sampling_from_logits_op, top_p_renorm_op, top_k_renorm_op, top_k_mask_op, chain_op;

}  // namespace flashinfer::ops::sampling
