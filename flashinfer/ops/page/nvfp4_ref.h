// SPDX-License-Identifier: Apache-2.0
// The NVFP4 appends from their definitions: one row at a time, through the cache's own axes.
#pragma once
#include "flashinfer/ops/common/nvfp4_ref.h"
#include "flashinfer/ops/page/nvfp4.h"

namespace flashinfer::ref {

/// K (plane 0) or V of a cache, stacked or a pair, as one tensor.
inline TensorView cache_plane(const op::PagedKv& kv, int plane) {
  return kv.stacked ? kv.first.select(1, plane) : plane == 0 ? kv.first : kv.second;
}
/// Row (page, entry, head) of a plane of rank 4 in either layout, or of rank 3 (pages of one token).
inline uint8_t* cache_row(const TensorView& t, bool nhd, int64_t page, int64_t entry, int64_t head) {
  int64_t at = page * t.stride(0);
  if (t.rank() == 3)
    at += head * t.stride(1);
  else
    at += entry * t.stride(nhd ? 1 : 2) + head * t.stride(nhd ? 2 : 1);
  return t.data_as<uint8_t>() + at;
}
/// Quantises x[token, head, :] (or x[token, :]) into a row of codes and a row of scales.
inline void put_nvfp4_row(const TensorView& x, int64_t token, int64_t head, float global, uint8_t* data,
                          uint8_t* scale) {
  for (int64_t b = 0; b < x.size(-1) / 16; ++b) {
    float block[16];
    for (int64_t i = 0; i < 16; ++i)
      block[i] = static_cast<float>(x.rank() == 3 ? at(x, {token, head, b * 16 + i}) : at(x, {token, b * 16 + i}));
    const Nvfp4Block q = quantize_nvfp4_block(block, global);
    scale[b] = q.scale;
    std::copy(q.data, q.data + 8, data + b * 8);
  }
}
inline void put_nvfp4_token(const TensorView& x, const TensorView& data, const TensorView& scale, bool nhd,
                            int64_t token, int64_t page, int64_t entry, double global) {
  for (int64_t h = 0; h < x.size(1); ++h)
    put_nvfp4_row(x, token, h, static_cast<float>(global), cache_row(data, nhd, page, entry, h),
                  cache_row(scale, nhd, page, entry, h));
}
inline int64_t page_size_of(const TensorView& plane, bool nhd) {
  return plane.rank() == 3 ? 1 : plane.size(nhd ? 1 : 2);
}

inline void nvfp4_append(const Nvfp4AppendPagedKvCache& a) {
  const bool nhd = a.kv_layout == "NHD";
  for (int plane = 0; plane < 2; ++plane) {
    const TensorView data = cache_plane(a.paged_kv_cache, plane), scale = cache_plane(a.kv_cache_sf, plane);
    const int64_t page_size = page_size_of(data, nhd);
    for (int64_t t = 0; t < a.batch_indices.size(0); ++t) {
      const int64_t b = op::index_at(a.batch_indices, t), position = op::index_at(a.positions, t);
      if (b < 0) continue;
      const int64_t page = op::index_at(a.kv_indices, op::index_at(a.kv_indptr, b) + position / page_size);
      put_nvfp4_token(plane ? a.append_value : a.append_key, data, scale, nhd, t, page, position % page_size,
                      plane ? a.v_scale : a.k_scale);
    }
  }
}
inline void nvfp4_append_slots(const Nvfp4AppendWithSlotMapping& a) {
  const bool nhd = a.kv_layout == "NHD";
  for (int plane = 0; plane < 2; ++plane) {
    const TensorView data = cache_plane(a.paged_kv_cache, plane), scale = cache_plane(a.kv_cache_sf, plane);
    const op::ScalarOrTensor& s = plane ? a.v_scale : a.k_scale;
    const double global = s.tensor() ? load_element(*s.tensor(), 0) : s.number();
    const int64_t page_size = page_size_of(data, nhd);
    for (int64_t t = 0; t < a.slot_mapping.size(0); ++t) {
      const int64_t slot = op::index_at(a.slot_mapping, t);
      if (slot >= 0 && slot < data.size(0) * page_size)
        put_nvfp4_token(plane ? a.append_value : a.append_key, data, scale, nhd, t, slot / page_size, slot % page_size,
                        global);
    }
  }
}
inline void nvfp4_append_mla(const Nvfp4AppendPagedMlaKvCache& a) {
  const int64_t page_size = a.ckv_cache.size(1);
  const float factor = 1.0f / static_cast<float>(a.kpe_scale);
  for (int64_t t = 0; t < a.batch_indices.size(0); ++t) {
    const int64_t b = op::index_at(a.batch_indices, t), position = op::index_at(a.positions, t);
    if (b < 0) continue;
    const int64_t page = op::index_at(a.kv_indices, op::index_at(a.kv_indptr, b) + position / page_size),
                  entry = position % page_size;
    const auto row = [&](const TensorView& c) {
      return c.data_as<uint8_t>() + page * c.stride(0) + entry * c.stride(1);
    };
    put_nvfp4_row(a.append_ckv, t, 0, static_cast<float>(a.ckv_scale), row(a.ckv_cache), row(a.ckv_sf_cache));
    for (int64_t d = 0; d < a.append_kpe.size(1); ++d)
      row(a.kpe_cache)[d] = e4m3_saturated(static_cast<float>(at(a.append_kpe, {t, d})) * factor);
  }
}

}  // namespace flashinfer::ref
