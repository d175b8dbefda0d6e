// SPDX-License-Identifier: Apache-2.0
// From the blocks of the samplers and filters to their CUDA kernels. Thresholds and seeds that are tensors are read by
// the kernel, so nothing waits for the device and a captured graph reads new ones at each replay.
#pragma once
#include "flashinfer/ops/common/cuda.h"
#include "flashinfer/ops/sampling/cuda_launch.h"
#include "flashinfer/ops/sampling/launch.h"

namespace flashinfer::ops::sampling {

inline Column column(const op::ScalarOrTensor& v) {
  Column c{};
  c.given = 1;
  if (const TensorView* t = v.tensor()) {
    c.data = t->data(), c.dtype = t->dtype(), c.stride = t->size(0) > 1 ? t->stride(0) : 0;
    return c;
  }
  if (const int64_t* i = std::get_if<int64_t>(&v.value)) c.whole = *i;
  c.real = static_cast<float>(v.number());
  return c;
}
/// As randomness(): a generator is advanced here, once a call.
template <class B>
RandomCudaParams random_cuda(const B& a, uint64_t used) {
  if (a.seed) return {column(*a.seed), column(*a.offset), a.seed->tensor() && a.seed->tensor()->size(0) > 1};
  op::Generator g = a.generator ? *a.generator : *a.implied_generator;
  const op::ScalarOrTensor seed(static_cast<int64_t>(g.seed())), offset(static_cast<int64_t>(g.advance(used)));
  return {column(seed), column(offset), false};
}

/// What samplers have in common.
template <class B>
SampleCudaParams sample_cuda_params(const B& a, const TensorView& in, uint64_t used) {
  SampleCudaParams p{};
  p.input = in.data();
  p.rows = outputs_of(a, in);
  p.input_rows = in.size(0);
  p.v = in.size(1);
  p.stride = in.stride(0);
  set_rows_and_samples(p, a);
  p.random = random_cuda(a, used);
  return p;
}

/// Empty, or why a GPU does not take rows of this length.
inline std::string too_many_tokens(const TensorView& in, const char* name) {
  if (in.size(-1) <= kMostCudaTokens) return {};
  return str(name, ".shape[", in.rank() - 1, "] is ", in.size(-1), ", but on a GPU a row has at most ", kMostCudaTokens,
             " tokens");
}

}  // namespace flashinfer::ops::sampling
