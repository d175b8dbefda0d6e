// SPDX-License-Identifier: Apache-2.0
// What a plan keeps from __init__, the caller's index buffers of CUDA-graph mode, and views of K and V.
#include <algorithm>
#include <cstring>

#include "flashinfer/core/transfer.h"
#include "flashinfer/ops/attention/cuda/graph.h"
#include "flashinfer/ops/attention/plan/plan.h"

namespace flashinfer::attention {
namespace {

void put(const TensorView& to, int64_t at, int64_t x) {
  switch (to.dtype()) {
    case DType::kI32: to.data_as<int32_t>()[at] = static_cast<int32_t>(x); break;
    case DType::kI64: to.data_as<int64_t>()[at] = x; break;
    default: to.data_as<uint8_t>()[at] = static_cast<uint8_t>(x);
  }
}

}  // namespace

void copy_to_buffer(const char* what, const TensorView& from, const TensorView& buffer) {
  if (!buffer.defined() || from.data() == buffer.data()) return;
  FI_CHECK(from.numel() <= buffer.numel(), ValueError, what, " has ", from.numel(),
           " entries, but the buffer given to __init__ has ", buffer.numel());
  const TensorView to = buffer.is_contiguous() && buffer.rank() != 1 ? buffer.view({buffer.numel()}) : buffer;
  if (to.device().type == DeviceType::kCPU) {
    for (int64_t i = 0; i < from.numel(); ++i) put(to, i * to.stride(0), op::index_at(from, i));
    return;
  }
  const Tensor image = Tensor::empty({from.numel()}, to.dtype());
  for (int64_t i = 0; i < from.numel(); ++i) put(image.view(), i, op::index_at(from, i));
  send_in_order(to.data(), to.device(), image.data(), static_cast<size_t>(image.nbytes()));
}

void set_graph(Plan& p, bool use_cuda_graph, std::span<const GraphArgument> arguments) {
  p.use_cuda_graph = use_cuda_graph;
  for (const GraphArgument& a : arguments) {
    FI_CHECK(use_cuda_graph || !a.given, ValueError, a.name, " belongs to use_cuda_graph=True, which is False");
    FI_CHECK(!use_cuda_graph || !a.required || a.given, ValueError, "use_cuda_graph=True needs ", a.name,
             ", which is None");
    if (!a.given) continue;
    const bool mask = a.buffer == &GraphBuffers::mask;
    FI_CHECK(a.given->rank() == 1 && (mask ? a.given->dtype() == DType::kU8 : op::indices.has(a.given->dtype())),
             ValueError, a.name, " is ", to_string(*a.given), ", but must be a vector of ",
             mask ? "uint8" : "int32 or int64");
    FI_CHECK(a.given->device().type == DeviceType::kCPU || a.given->is_contiguous(), ValueError, a.name, " is ",
             to_string(*a.given), ", but on a GPU it must be contiguous");
    p.buffers.*a.buffer = *a.given;
  }
  if (!use_cuda_graph) return;
  const GraphBuffers& b = p.buffers;
  const int64_t n = b.last_page_len.defined() ? b.last_page_len.size(0) : b.qo_indptr.size(0) - 1;
  for (const GraphArgument& a : arguments) {
    const bool indptr = a.buffer == &GraphBuffers::qo_indptr || a.buffer == &GraphBuffers::kv_indptr ||
                        a.buffer == &GraphBuffers::mask_indptr;
    if (indptr && a.given)
      FI_CHECK(a.given->size(0) == n + 1, ValueError, a.name, " has ", a.given->size(0), " entries, but a batch of ", n,
               " needs ", n + 1);
  }
  FI_CHECK(b.mask.defined() == b.mask_indptr.defined(), ValueError,
           "custom_mask_buf and mask_indptr_buf must be given together");
  p.fixed_batch_size = n;
}

void check_workspace(const TensorView& workspace, const char* name) {
  FI_CHECK(workspace.numel() == 0 || reinterpret_cast<uintptr_t>(workspace.data()) % 16 == 0, ValueError, name,
           " must be 16-byte aligned, but begins at ", workspace.data());
}

Plan next_plan(const Plan& before) {
  Plan p;
  p.kv_layout = before.kv_layout, p.paged = before.paged;
  p.use_cuda_graph = before.use_cuda_graph, p.fixed_batch_size = before.fixed_batch_size;
  p.max_rows = before.max_rows, p.fixed_q_len = before.fixed_q_len, p.any_q_len = before.any_q_len;
  p.buffers = before.buffers, p.jit_args = before.jit_args, p.variant_owns_mask = before.variant_owns_mask;
  p.graph = before.graph, p.without_buffers = before.without_buffers;
  return p;
}

void fill_graph_buffers(Plan& p, const TensorView* last_page_len) {
  if (!p.use_cuda_graph) return;
  if (p.without_buffers && p.max_rows < 0) p.fixed_batch_size = p.batch_size;
  FI_CHECK(p.batch_size == p.fixed_batch_size, ValueError, "the batch has ", p.batch_size, " requests, but ",
           p.without_buffers ? "the first plan() had " : "the buffers of use_cuda_graph=True are for ",
           p.fixed_batch_size, ": pad it with empty requests");
  if (p.max_rows < 0) p.max_rows = p.nnz_qo;
  FI_CHECK(p.nnz_qo <= p.max_rows, ValueError, "there are ", p.nnz_qo, " query tokens, but the first plan() had ",
           p.max_rows, ", and with use_cuda_graph=True they may not grow");
  const GraphBuffers& b = p.buffers;
  copy_to_buffer("qo_indptr", p.qo_indptr, b.qo_indptr);
  copy_to_buffer("the page table's indptr", p.kv_indptr, b.kv_indptr);
  if (p.paged) copy_to_buffer("the page table", p.kv_indices, b.kv_indices);
  if (last_page_len) copy_to_buffer("last_page_len", *last_page_len, b.last_page_len);
  if (!p.mask.defined()) return plan_graph(p);
  FI_CHECK(b.mask.defined() || !b.qo_indptr.defined(), ValueError,
           "a custom mask with use_cuda_graph=True needs custom_mask_buf and "
           "mask_indptr_buf of __init__");
  copy_to_buffer("the packed mask", p.mask, b.mask);
  copy_to_buffer("mask_indptr", p.mask_indptr, b.mask_indptr);
  plan_graph(p);
}

DType cache_type(DType t) { return t == DType::kU8 ? DType::kF4E2M1x2 : t; }
double cache_bytes(DType t) { return t == DType::kF4E2M1x2 ? 0.5 + 1.0 / 16 : static_cast<double>(size_of(t)); }

namespace {
Planes values_of(Planes kv) {
  for (ops::KvPlane* p : {&kv.k, &kv.v}) {
    p->dtype = cache_type(p->dtype);
    if (p->dtype == DType::kF4E2M1x2) p->dim *= 2;
  }
  return kv;
}
Planes planes_of_tokens(const TensorView& k, const TensorView& v, std::string_view kv_layout) {
  const int n = kv_layout == "NHD" ? 0 : 1, h = 1 - n;
  auto plane = [&](const TensorView& t) {
    return ops::KvPlane{t.data(), t.dtype(), 1, t.size(n), t.size(h), t.size(2), 0, t.stride(n), t.stride(h)};
  };
  return {plane(k), plane(v)};
}
}  // namespace

Planes token_planes(const TensorView& k, const TensorView& v, std::string_view kv_layout) {
  return values_of(planes_of_tokens(k, v, kv_layout));
}
Planes cache_planes(const op::PagedKv& kv, std::string_view kv_layout) {
  const ops::KvPlanes planes = ops::kv_planes(kv, kv_layout);
  return values_of({planes.k, planes.v});
}

std::optional<Planes> scale_planes(const std::optional<op::PagedKv>& sf, std::string_view kv_layout, const Planes& kv,
                                   bool paged) {
  const bool packed = kv.k.dtype == DType::kF4E2M1x2;
  FI_CHECK(packed == sf.has_value(), ValueError,
           packed ? "K and V are NVFP4 pairs in bytes, so kv_cache_sf, their e4m3 scales, is needed"
                  : str("kv_cache_sf belongs to an NVFP4 cache of uint8, but K is ", name(kv.k.dtype)));
  if (!sf) return std::nullopt;
  FI_CHECK(paged || !sf->stacked, ValueError, "kv_cache_sf must be a tuple (k_sf, v_sf)");
  for (const TensorView* t : {&sf->first, &sf->second})
    FI_CHECK(paged || t->rank() == 3, ValueError, "kv_cache_sf[", t == &sf->second, "] is ", to_string(*t),
             ", but must have rank 3 as K");
  for (const TensorView* t : {&sf->first, &sf->second})
    FI_CHECK(!t->defined() || t->last_dim_contiguous(), ValueError, "kv_cache_sf is ", to_string(*t),
             ", but its innermost stride must be 1");
  Planes out;
  if (paged) {
    const ops::KvPlanes planes = ops::kv_planes(*sf, kv_layout);
    out = {planes.k, planes.v};
  } else {
    out = planes_of_tokens(sf->first, sf->second, kv_layout);
  }
  for (const auto& [scales, values, who] : {std::tuple(&out.k, &kv.k, "K"), std::tuple(&out.v, &kv.v, "V")}) {
    FI_CHECK(values->dim % 16 == 0, ValueError, "the head dim of ", who, " is ", values->dim,
             ", but NVFP4 scales are for 16 values each");
    FI_CHECK(scales->pages == values->pages && scales->page_size == values->page_size &&
                 scales->heads == values->heads && scales->dim == values->dim / 16,
             ValueError, "kv_cache_sf has ", scales->pages, " pages of ", scales->page_size, " tokens, ", scales->heads,
             " heads and ", scales->dim, " scales for ", who, ", but needs ", values->pages, ", ", values->page_size,
             ", ", values->heads, " and ", values->dim / 16);
  }
  return out;
}

}  // namespace flashinfer::attention
