// SPDX-License-Identifier: Apache-2.0
// What the kernels over packed sequences share.
#pragma once
#include "flashinfer/ops/linear_attention/kernels/cuda/inputs.cuh"
#include "flashinfer/ops/linear_attention/kernels/gdn/chunk_params.h"

namespace flashinfer::cu::linear {

/// Row `token` of head `head` of `heads`, whose rows are shared by neighbouring heads when the tensor has fewer.
FI_GLOBAL_FN int64_t packed_at(const GdnPacked& t, int64_t token, uint32_t head, uint32_t heads) {
  return token * t.token + head * static_cast<uint32_t>(t.heads) / heads * t.head;
}
/// Calls f with the elements of a state tensor as their type.
template <class F>
FI_GLOBAL_FN void with_states(const GdnStateTensor& t, F f) {
  switch (t.type) {
    case DType::kBF16: return f(static_cast<bf16_t*>(t.data));
    case DType::kF16: return f(static_cast<f16_t*>(t.data));
    case DType::kF8E4M3: return f(static_cast<e4m3_t*>(t.data));
    case DType::kF8E5M2: return f(static_cast<e5m2_t*>(t.data));
    default: return f(static_cast<float*>(t.data));
  }
}

}  // namespace flashinfer::cu::linear
