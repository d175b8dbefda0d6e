// SPDX-License-Identifier: Apache-2.0
// Parameters of the kernels around the recurrence of a fused KDA decode step on a GPU. Freestanding.
#pragma once
#include "flashinfer/ops/linear_attention/kernels/common/indices.h"
#include "flashinfer/ops/linear_attention/kernels/kda/fused_params.h"

namespace flashinfer {

struct KdaFusedCudaConfig {
  DType dtype;            // of inputs and outputs
  unsigned char threads;  // of a block

  static constexpr const char* kName = "flashinfer::KdaFusedCudaConfig";
  template <class V>
  constexpr void visit(V&& v) const {
    v("dtype", dtype);
    v("threads", threads);
  }
  friend constexpr bool operator==(const KdaFusedCudaConfig&, const KdaFusedCudaConfig&) = default;
};
struct KdaFusedCudaParams {
  KdaFusedParams call;   // without rows and active
  const int32_t* slots;  // of sequence n and its token t: slots[n * slot_row + t * slot_column]
  int64_t slot_row, slot_column, columns, slot_count;
  const int32_t *start, *accepted;  // of each sequence; null: sequence n is token n
  int64_t start_stride, accepted_stride;
  int64_t *starts, *read, *after;  // what the recurrence takes: [count + 1], [count], [tokens]; written
};

}  // namespace flashinfer
