// SPDX-License-Identifier: Apache-2.0
// Packing and NVFP4 caches from their definitions.
#pragma once
#include <limits>

#include "flashinfer/core/int_math.h"
#include "flashinfer/op/call.h"
#include "flashinfer/ops/common/nvfp4_ref.h"
#include "flashinfer/ops/quantization/op.h"

namespace flashinfer::ref {

/// Bits of x[first, first + n) from byte `to` of y on.
inline void pack_segment(const TensorView& x, int64_t first, int64_t n, const TensorView& y, int64_t to, bool big) {
  for (int64_t byte = 0; byte * 8 < n; ++byte) {
    int value = 0;
    for (int64_t i = byte * 8; i < n && i < byte * 8 + 8; ++i)
      if (at(x, {first + i}) != 0) value |= 1 << (big ? 7 - i % 8 : i % 8);
    put(y, {to + byte}, value);
  }
}
inline void packbits(const PackBits& a) { pack_segment(a.x, 0, a.x.size(0), *a.y, 0, a.bitorder == "big"); }
inline void segment_packbits(const SegmentPackBits& a) {
  int64_t to = 0;
  put(*a.new_indptr, {0}, 0);
  for (int64_t s = 0; s + 1 < a.indptr.size(0); ++s) {
    const int64_t first = op::index_at(a.indptr, s), n = op::index_at(a.indptr, s + 1) - first;
    pack_segment(a.x, first, n, *a.y, to, a.bitorder == "big");
    to += ceil_div(n, 8);
    put(*a.new_indptr, {s + 1}, static_cast<double>(to));
  }
}

inline void nvfp4_kv_quantize(const Nvfp4KvQuantize& a) {
  const float global = static_cast<float>(load_element(a.global_scale, 0));
  for (int64_t m = 0; m < a.input.size(0); ++m)
    for (int64_t b = 0; b < a.input.size(1) / 16; ++b) {
      float x[16];
      for (int64_t i = 0; i < 16; ++i) x[i] = static_cast<float>(at(a.input, {m, b * 16 + i}));
      const Nvfp4Block q = quantize_nvfp4_block(x, global);
      put(*a.block_scales, {m, b}, q.scale);
      for (int64_t i = 0; i < 8; ++i) put(*a.fp4_output, {m, b * 8 + i}, q.data[i]);
    }
}
inline void nvfp4_kv_dequantize(const Nvfp4KvDequantize& a) {
  const double global = load_element(a.global_scale, 0);
  for (int64_t m = 0; m < a.fp4_data.size(0); ++m)
    for (int64_t d = 0; d < a.fp4_data.size(1) * 2; ++d)
      put(*a.output, {m, d},
          nvfp4_element(a.fp4_data.data_as<uint8_t>() + m * a.fp4_data.stride(0),
                        a.block_scales.data_as<uint8_t>() + m * a.block_scales.stride(0), d, global));
}

inline double scale_number(const op::ScalarOrTensor& s) {
  return s.tensor() ? load_element(*s.tensor(), 0) : static_cast<float>(s.number());
}
inline void nvfp4_kv_dequantize_paged(const Nvfp4KvDequantizePaged& a) {
  const bool nhd = a.kv_layout == "NHD";
  for (int plane = 0; plane < 2; ++plane) {
    const auto pick = [&](const op::PagedKv& kv) {
      return kv.stacked ? kv.first.select(1, plane) : plane ? kv.second : kv.first;
    };
    const ops::KvPlane data = ops::kv_plane(pick(a.paged_kv_cache), nhd),
                       scale = ops::kv_plane(pick(a.kv_cache_sf), nhd);
    const Tensor all = dequantize_nvfp4_plane(data, scale, scale_number(plane ? a.v_scale : a.k_scale));
    const TensorView& out = plane ? a.output_v : a.output_k;
    for (int64_t b = 0; b < a.seq_lens.size(0); ++b)
      for (int64_t t = 0; t < op::index_at(a.seq_lens, b); ++t)
        for (int64_t h = 0; h < data.heads; ++h)
          for (int64_t d = 0; d < data.dim * 2; ++d) {
            const int64_t page = op::index_at(a.block_tables.select(0, b), t / data.page_size);
            put(out, {b, t, h, d}, at(all.view(), {page, t % data.page_size, h, d}));
          }
  }
}

inline void nvfp4_quantize_paged_kv_cache(const Nvfp4QuantizePagedKvCache& a) {
  for (int plane = 0; plane < 2; ++plane) {
    const TensorView& x = plane ? a.v_cache : a.k_cache;
    const auto& given = plane ? a.v_global_sf : a.k_global_sf;
    const int n_axis = a.kv_layout == "NHD" ? 1 : 2, h_axis = 3 - n_axis;
    double amax = 0;
    for_each_row(x, [&](const Index& row) {
      for (int64_t d = 0; d < x.size(3); ++d) amax = std::max(amax, std::fabs(get(x, row, d)));
    });
    const float encode = given      ? static_cast<float>(load_element(*given, 0))
                         : amax > 0 ? 448.0f / static_cast<float>(amax)
                                    : 1.0f;
    const float global = 1.0f / encode;
    put(*a.global_scale, {plane}, global);
    for (int64_t p = 0; p < x.size(0); ++p)
      for (int64_t t = 0; t < x.size(n_axis); ++t)
        for (int64_t h = 0; h < x.size(h_axis); ++h)
          for (int64_t b = 0, blocks = x.size(3) / 16; b < blocks; ++b) {
            const auto at5 = [&](int64_t token, int64_t last) {
              return n_axis == 1 ? Index{plane, p, token, h, last} : Index{plane, p, h, token, last};
            };
            float v[16];
            for (int64_t i = 0; i < 16; ++i) {
              const Index full = at5(t, b * 16 + i);
              v[i] = static_cast<float>(at(x, {full[1], full[2], full[3], full[4]}));
            }
            const Nvfp4Block q = quantize_nvfp4_block(v, global);
            for (int64_t i = 0; i < 8; ++i)
              store_element(*a.kv_cache_fp4, offset_of(*a.kv_cache_fp4, at5(t, b * 8 + i)), q.data[i]);
            const int64_t linear = plane ? t / 4 * 4 * blocks + 4 * b + t % 4 : t * blocks + b;
            a.kv_cache_sf->data_as<uint8_t>()[offset_of(*a.kv_cache_sf, at5(linear / blocks, linear % blocks))] =
                q.scale;
          }
  }
}

}  // namespace flashinfer::ref
