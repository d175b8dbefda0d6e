// SPDX-License-Identifier: Apache-2.0
// The step operators from their definitions, element by element.
#pragma once
#include "flashinfer/op/call.h"
#include "flashinfer/ops/common/reference.h"
#include "flashinfer/ops/page/step.h"

namespace flashinfer::ref {

inline void gather_rows(const GatherRows& a) {
  for (int64_t i = 0; i < a.out->size(0); ++i)
    for (int64_t j = 0; j < a.out->size(1); ++j) {
      const int64_t from = op::index_at(a.indices, i);
      put(*a.out, {i, j}, from < 0 ? 0.0 : at(a.input, {from, j}));
    }
}

inline void advance_decode_step(const AdvanceDecodeStep& a) {
  for (int64_t b = 0; b < a.seq_lens.size(0); ++b) {
    const int64_t length = op::index_at(a.seq_lens, b);
    const bool takes = length >= 1 && length <= a.max_seq_len - 1;
    put(*a.batch_indices, {b}, takes ? static_cast<double>(b) : -1.0);
    put(*a.positions, {b}, takes ? static_cast<double>(length) : 0.0);
    if (!takes) continue;
    a.seq_lens.data_as<int32_t>()[b] = static_cast<int32_t>(length + 1);
    if (a.offsets) a.offsets->data_as<int64_t>()[b] += a.offset_step;
  }
}

}  // namespace flashinfer::ref
