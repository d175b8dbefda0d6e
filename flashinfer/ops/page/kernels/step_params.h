// SPDX-License-Identifier: Apache-2.0
// Parameters of the kernels of a decode loop, and the step of a slot. Freestanding.
#pragma once
#include <stdint.h>

#include "flashinfer/kernels/common/page_table.h"

namespace flashinfer {

struct GatherRowsConfig {
  int piece;    // bytes that a thread copies at once: 16, or an element
  int threads;  // of a block, which copies a row

  static constexpr const char* kName = "flashinfer::GatherRowsConfig";
  template <class V>
  constexpr void visit(V&& v) const {
    v("piece", piece);
    v("threads", threads);
  }
  friend constexpr bool operator==(const GatherRowsConfig&, const GatherRowsConfig&) = default;
};
/// Strides in bytes.
struct GatherRowsParams {
  const void* input;
  void* out;
  StridedIndices indices;
  int64_t rows, bytes, input_stride, out_stride;
};

struct AdvanceStepConfig {
  int threads;

  static constexpr const char* kName = "flashinfer::AdvanceStepConfig";
  template <class V>
  constexpr void visit(V&& v) const {
    v("threads", threads);
  }
  friend constexpr bool operator==(const AdvanceStepConfig&, const AdvanceStepConfig&) = default;
};
struct AdvanceStepParams {
  int32_t* seq_lens;
  int64_t* offsets;  // or null
  int32_t *batch_indices, *positions;
  int64_t batch_stride, position_stride, offset_step;
  int32_t slots, max_seq_len;
};

/// constexpr because NVRTC compiles such functions for the device.
constexpr void advance_slot(const AdvanceStepParams& p, int32_t b) {
  const int32_t length = p.seq_lens[b];
  const bool takes = length > 0 && length < p.max_seq_len;
  p.batch_indices[b * p.batch_stride] = takes ? b : -1;
  p.positions[b * p.position_stride] = takes ? length : 0;
  if (!takes) return;
  p.seq_lens[b] = length + 1;
  if (p.offsets) p.offsets[b] += p.offset_step;
}

}  // namespace flashinfer
