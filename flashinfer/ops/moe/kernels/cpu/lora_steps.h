// SPDX-License-Identifier: Apache-2.0
// The two steps of LoRA in a mixture of experts on the CPU, each a product of one row with a matrix of its own: a task
// computes whole rows of the result, in f32 and rounded once.
#pragma once
#include "flashinfer/ops/moe/kernels/cpu/lora.h"
#include "flashinfer/ops/moe/kernels/lora_steps_params.h"

namespace flashinfer::cpu {

template <MoeLoraStepConfig C>
void moe_lora_step(const MoeLoraStepParams& p, int64_t task) {
  using X = scalar_of_t<C.x>;
  using W = scalar_of_t<C.w>;
  using Y = scalar_of_t<C.y>;
  const int64_t begin = task * p.rows_per_task,
                end = begin + p.rows_per_task < p.rows ? begin + p.rows_per_task : p.rows;
  for (int64_t r = begin; r < end; ++r)
    for (int64_t s = 0; s < p.num_slices; ++s) {
      const MoeLoraMatrix& m = p.slices[s];
      Y* y = static_cast<Y*>(p.y) + s * p.y_slice + r * p.y_row + m.column;
      for (int64_t i = 0; i < m.n; ++i) {
        float sum = p.add ? static_cast<float>(y[i]) : 0.0f;
        for (int64_t k = p.first[r]; k < p.first[r + 1]; ++k) {
          const MoeLoraItem& item = p.items[k];
          const W* w = static_cast<const W*>(m.w) + item.adapter * m.adapter + item.expert * m.expert + i * m.row;
          sum += item.weight * lora_dot(w, static_cast<const X*>(p.x) + s * p.x_slice + item.x * p.x_row, p.k);
        }
        y[i] = static_cast<Y>(sum);
      }
    }
}

}  // namespace flashinfer::cpu
