// SPDX-License-Identifier: Apache-2.0
// Parameters of tiles of few and of many rows in one launch (pair.cuh). Freestanding.
#pragma once
#include "flashinfer/ops/attention/kernels/cuda/params.h"

namespace flashinfer {

struct AttentionPairParams {
  AttentionCudaParams few, many;
  uint64_t share;  // 2^32 times the tiles of few rows over all tiles, rounded up
};
/// The Config of the tiles of few rows beside those of `many`, which is the kernel's.
constexpr AttentionCudaConfig few_beside(AttentionCudaConfig many) {
  many.warps_k = 4, many.wide = 0, many.held = 0;
  return many;
}

}  // namespace flashinfer
