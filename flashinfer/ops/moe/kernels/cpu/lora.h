// SPDX-License-Identifier: Apache-2.0
// LoRA of a mixture of experts on the CPU: a task computes whole rows of the result, pair by pair. Each matrix is read
// once for each pair, which is what bounds the speed; a row of x stays in L1.
#pragma once
#include "flashinfer/kernels/cpu/lanes.h"
#include "flashinfer/ops/moe/kernels/lora_params.h"

namespace flashinfer::cpu {

template <class A, class B>
FI_VEC_INLINE float lora_dot(const A* a, const B* b, int64_t n) {
  return sum_row(
      n, [&](Vec s, int64_t i) { return fma(load(a + i), load(b + i), s); },
      [&](Vec s, int64_t i, int64_t left) { return fma(load_n(a + i, left), load_n(b + i, left), s); });
}

template <MoeLoraConfig C>
void moe_lora(const MoeLoraParams& p, int64_t task) {
  using T = scalar_of_t<C.dtype>;
  const int64_t begin = task * p.tokens_per_task,
                end = begin + p.tokens_per_task < p.tokens ? begin + p.tokens_per_task : p.tokens;
  for (int64_t t = begin; t < end; ++t) {
    const T* x = static_cast<const T*>(p.x) + t * p.x_stride;
    float* out = p.out + t * p.out_stride;
    for (int64_t i = 0; i < p.columns; ++i) out[i] = 0;
    for (int64_t k = p.token_pairs[t]; k < p.token_pairs[t + 1]; ++k) {
      const MoeLoraPair pair = p.pairs[k];
      float* column = out;
      for (int64_t s = 0; s < p.num_slices; ++s) {
        const MoeLoraSlice& m = p.slices[s];
        const T* a = static_cast<const T*>(m.a) + pair.adapter * m.a_adapter + pair.expert * m.a_expert;
        const T* b = static_cast<const T*>(m.b) + pair.adapter * m.b_adapter + pair.expert * m.b_expert;
        for (int64_t r = 0; r < m.rank; ++r) p.scratch[r] = lora_dot(a + r * m.a_row, x, p.hidden);
        for (int64_t o = 0; o < m.out; ++o) *column++ += pair.weight * lora_dot(b + o * m.b_row, p.scratch, m.rank);
      }
    }
  }
}

}  // namespace flashinfer::cpu
