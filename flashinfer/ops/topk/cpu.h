// SPDX-License-Identifier: Apache-2.0
// Top-k on the CPU: exact, with a defined winner of every tie. k = 1 is one vectorised pass.
#pragma once
#include "flashinfer/kernels/cpu/select.h"
#include "flashinfer/ops/topk/params.h"

namespace flashinfer::cpu {

template <TopKConfig C>
void top_k(const TopKParams& p, int64_t task) {
  using T = scalar_of_t<C.dtype>;
  const bool large = p.large != 0;
  uint64_t* keys = p.scratch + task * p.scratch_words;
  const int64_t begin = task * p.rows_per_task;
  const int64_t end = begin + p.rows_per_task < p.rows ? begin + p.rows_per_task : p.rows;
  for (int64_t r = begin; r < end; ++r) {
    const T* x = static_cast<const T*>(p.input) + r * p.input_stride;
    T* values = static_cast<T*>(p.values) + r * p.values_stride;
    int64_t* indices = p.indices + r * p.indices_stride;
    if (p.k == 1) {
      indices[0] = arg_max(x, p.d, large);
      values[0] = x[indices[0]];
      continue;
    }
    top_keys(x, p.d, p.k, large, keys);
    if (p.sorted) sort_descending(keys, p.k);
    for (int64_t i = 0; i < p.k; ++i) {
      indices[i] = key_index(keys[i], large);
      values[i] = x[indices[i]];
    }
  }
}

}  // namespace flashinfer::cpu
