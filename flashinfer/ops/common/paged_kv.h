// SPDX-License-Identifier: Apache-2.0
// A paged KV cache in any of its forms as two planes of pages with free strides.
#pragma once
#include <cstdint>
#include <string_view>

#include "flashinfer/op/call.h"

namespace flashinfer::ops {

/// K or V: element (page, n, h, d) lies at data + page * stride_page + n * stride_n + h * stride_h + d.
struct KvPlane {
  void* data = nullptr;
  DType dtype = DType::kF32;
  int64_t pages = 0, page_size = 0, heads = 0, dim = 0;
  int64_t stride_page = 0, stride_n = 0, stride_h = 0;
};
struct KvPlanes {
  KvPlane k, v;
};

/// `t` is [P, ps, H, D] (NHD), [P, H, ps, D] (HND), or [P, H, D] with pages of one token.
inline KvPlane kv_plane(const TensorView& t, bool nhd) {
  KvPlane p{t.data(), t.dtype(), t.size(0), 1, 0, t.size(-1), t.stride(0), 0, 0};
  if (t.rank() == 3) {
    p.heads = t.size(1), p.stride_h = t.stride(1), p.stride_n = t.stride(0);
    return p;
  }
  const int n = nhd ? 1 : 2, h = nhd ? 2 : 1;
  p.page_size = t.size(n), p.stride_n = t.stride(n), p.heads = t.size(h), p.stride_h = t.stride(h);
  return p;
}

/// `what` names the argument. ValueError: a rank or extents that are none of the forms, K and V that do not fit
/// together.
inline KvPlanes kv_planes(const op::PagedKv& kv, std::string_view kv_layout, std::string_view what = "paged_kv_cache") {
  const bool nhd = kv_layout == "NHD";
  KvPlanes out;
  if (kv.stacked) {
    const TensorView& t = kv.first;
    FI_CHECK(t.rank() == 4 || t.rank() == 5, ValueError, what, " has rank ", t.rank(), " (", to_string(t),
             "), but a stacked cache is [pages, 2, ", nhd ? "page_size, heads" : "heads, page_size",
             ", dim], or [pages, 2, heads, dim] with pages of one token");
    FI_CHECK(t.size(1) == 2, ValueError, what, ".shape[1] is ", t.size(1), ", but must be 2 (K and V)");
    out = {kv_plane(t.select(1, 0), nhd), kv_plane(t.select(1, 1), nhd)};
  } else {
    for (const TensorView* t : {&kv.first, &kv.second})
      FI_CHECK(t->rank() == 3 || t->rank() == 4, ValueError, what, "[", t == &kv.second, "] has rank ", t->rank(), " (",
               to_string(*t), "), but must be [pages, ", nhd ? "page_size, heads" : "heads, page_size",
               ", dim], or [pages, heads, dim] with pages of one token");
    out = {kv_plane(kv.first, nhd), kv_plane(kv.second, nhd)};
  }
  FI_CHECK(out.k.dtype == out.v.dtype, ValueError, what, "[1].dtype is ", name(out.v.dtype), ", but that of K is ",
           name(out.k.dtype));
  FI_CHECK(out.k.pages == out.v.pages && out.k.page_size == out.v.page_size && out.k.heads == out.v.heads, ValueError,
           what, " has ", out.v.pages, " pages of ", out.v.page_size, " tokens and ", out.v.heads, " heads for V, but ",
           out.k.pages, ", ", out.k.page_size, " and ", out.k.heads, " for K");
  return out;
}

}  // namespace flashinfer::ops
