// SPDX-License-Identifier: Apache-2.0
// A whole paged cache to NVFP4 on a GPU, with the CPU's bits. A warp takes 32 scales in their order in memory, so that
// rows, codes and scales move in full sectors although V's scales are interleaved.
#pragma once
#include "flashinfer/kernels/cuda/nvfp4.cuh"
#include "flashinfer/ops/quantization/kernels/nvfp4_cache_params.h"

namespace flashinfer::cu {

/// Block y: K or V.
template <Nvfp4CacheScaleConfig C>
FI_GLOBAL_FN void nvfp4_cache_scales(const Nvfp4CacheScaleParams& p) {
  depend_wait();
  const Nvfp4CacheScale& s = p.tensor[block_y()];
  struct Most {
    FI_GLOBAL_FN float operator()(float a, float b) const { return max_magnitude(a, b); }
  };
  float most = 0.0f;
  for (uint32_t i = thread_x(); i < s.part_count; i += C.threads) most = max_magnitude(most, s.parts[i]);
  most = block_reduce<C.threads>(most, Most{}, reinterpret_cast<float*>(shared()));
  if (thread_x() == 0) {
    const float encode = s.given ? *s.given : most > 0.0f ? 448.0f / most : most != most ? most : 1.0f;
    *s.global = 1.0f / encode;
  }
  depend_launch();
}

template <Nvfp4CudaConfig C>
FI_GLOBAL_FN void nvfp4_quantize_cache(const Nvfp4CacheParams& p) {
  using T = scalar_of_t<C.dtype>;
  depend_wait();
  const Nvfp4CudaTensor& x = p.tensor[block_y()];
  const uint32_t together = p.together[block_y()], columns = x.dim / 16, group = together * columns,
                 groups = p.page_size / together, inner = p.heads_inside ? x.heads : groups,
                 outer = p.heads_inside ? groups : x.heads, all = p.pages * groups * x.heads * group,
                 first = (block_x() * (C.threads / 32) + warp()) * 32;
  if (first < all) {  // whole warps
    nvfp4_quantize_blocks<T, C.aligned>(factor_at(x.global, 0, 0), [&](uint32_t i) {
      if (first + i >= all) return Nvfp4Block<T>{};
      const uint32_t flat = (first + i) / group, q = first + i - flat * group, across = flat / inner,
                     in = flat - across * inner, page = across / outer, out = across - page * outer,
                     head = p.heads_inside ? in : out, row = (p.heads_inside ? out : in) * together;
      const uint32_t s = q / together, place = q / columns;
      const PageEntry token{page, row + q - s * together}, scales{page, row + place};
      return Nvfp4Block<T>{entry_row<const T>(x.plain, token, head) + s * 16,
                           entry_row<uint8_t>(x.data, token, head) + s * 8,
                           entry_row<uint8_t>(x.scale, scales, head) + (q - place * columns)};
    });
  }
  depend_launch();
}

}  // namespace flashinfer::cu
