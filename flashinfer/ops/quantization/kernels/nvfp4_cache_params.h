// SPDX-License-Identifier: Apache-2.0
// Parameters of the kernels that quantise a whole cache to NVFP4 on a GPU. Freestanding.
#pragma once
#include <stdint.h>

#include "flashinfer/kernels/common/nvfp4_cuda_params.h"

namespace flashinfer {

/// The scale that a cache is decoded with: 1 / `given`, else the largest magnitude / 448, computed as on the CPU.
struct Nvfp4CacheScale {
  const float* parts;  // largest magnitudes of parts of the cache
  uint32_t part_count;
  const float* given;  // null: from the parts
  float* global;
};
struct Nvfp4CacheScaleParams {
  Nvfp4CacheScale tensor[2];
};
struct Nvfp4CacheScaleConfig {
  int threads;

  static constexpr const char* kName = "flashinfer::Nvfp4CacheScaleConfig";
  template <class V>
  constexpr void visit(V&& v) const {
    v("threads", threads);
  }
  friend constexpr bool operator==(const Nvfp4CacheScaleConfig&, const Nvfp4CacheScaleConfig&) = default;
};

/// K and V in pages of the same geometry. In a page and head the scales of `together` tokens are interleaved
/// (Nvfp4Tensor): K 1, V 4.
struct Nvfp4CacheParams {
  Nvfp4CudaTensor tensor[2];
  uint32_t together[2];
  uint32_t pages, page_size;
  int32_t heads_inside;  // neighbouring rows in memory are of neighbouring heads (NHD), else of neighbouring tokens
};

}  // namespace flashinfer
