// SPDX-License-Identifier: Apache-2.0
// XQA's interface for MLA. Its values have a cache of their own, so it is attention with one KV head.
#include "flashinfer/ops/attention/api/narrow_output.h"
#include "flashinfer/ops/attention/api/no_plan.h"
#include "flashinfer/ops/attention/api/xqa.h"
#include "flashinfer/ops/attention/cases.h"

namespace flashinfer {
namespace attention {
namespace {

using X = XqaMla;
constexpr int64_t kValueDim = 512;  // of the 576 elements of a latent row; the others are the keys' position part

TensorView rows_of(const char* name, const TensorView& t) {
  FI_CHECK(t.rank() == 4 && t.size(1) == 1, ValueError, name, " is ", to_string(t),
           ", but must be [requests, 1, heads, dim]");
  return t.select(1, 0);
}
/// [P, page_size, 1, dim] from that, [P, page_size, dim] or [tokens, dim].
TensorView pages_of(const char* name, const TensorView& t, int64_t page_size) {
  FI_CHECK(page_size >= 1, ValueError, "page_size is ", page_size, ", but must be at least 1");
  if (t.rank() == 4) return t;
  if (t.rank() == 3) return t.unsqueeze(2);
  FI_CHECK(t.rank() == 2 && t.size(0) % page_size == 0, ValueError, name, " is ", to_string(t),
           ", but must be [pages, page_size, 1, dim], [pages, page_size, dim] or [pages * page_size, dim] with "
           "page_size=",
           page_size);
  const int64_t shape[] = {t.size(0) / page_size, page_size, 1, t.size(1)},
                strides[] = {page_size * t.stride(0), t.stride(0), t.size(1), t.stride(1)};
  return TensorView(t.data(), t.dtype(), shape, strides, t.device());
}
Planes planes_of(const X& a) {
  const TensorView k = pages_of("k_cache", a.k_cache, a.page_size), v = pages_of("v_cache", a.v_cache, a.page_size);
  return cache_planes(op::PagedKv{k, v.size(3) > kValueDim ? v.slice(3, 0, kValueDim) : v}, "NHD");
}
DType output_dtype(const X& a) { return a.output ? a.output->dtype() : ops::default_output(a.q.dtype()); }
Plan plan_of_block(const X& a, Planning what) {
  const Planes kv = planes_of(a);
  Plan p;
  p.page_size = kv.k.page_size;
  set_tensors(p, rows_of("q", a.q), kv, computed_dtype(output_dtype(a)));
  set_options(p, scale_and_window(scale_of("q_scale", a.q_scale).number * scale_of("kv_scale", a.kv_scale).number));
  set_tables(p, a.page_table, lengths_of("seq_lens", a.seq_lens), {.table = "page_table"}, what);
  set_equal_rows(p, "q.shape[1]", 1);
  if (what == Planning::kWork) set_work(p);
  return p;
}
Call call_of_block(const X& a, TensorView&) {
  Call c;
  c.q = rows_of("q", a.q), c.kv = planes_of(a);
  if (a.output) c.out = rows_of("output", *a.output);
  const Scale cache = scale_of("kv_scale", a.kv_scale);
  c.v_scale = cache.number, c.v_scale_on_device = cache.on_device;
  c.scales_on_device[0] = scale_of("q_scale", a.q_scale).on_device, c.scales_on_device[1] = cache.on_device;
  return c;
}
CallTables tables_of(const X& a) {
  return {.pages = a.page_table, .lengths = lengths_of("seq_lens", a.seq_lens), .rows = 1, .keys = INT64_MAX};
}
void validate(const X& a) {
  const Plan p = plan_of_block(a, host_reads(a.page_table, a.seq_lens) ? Planning::kArrays : Planning::kShapes);
  const Planes kv = planes_of(a);
  check_run(p, rows_of("q", a.q), kv, "k_cache", "v_cache");
  FI_CHECK(a.page_size == p.page_size, ValueError, "page_size is ", a.page_size, ", but k_cache has pages of ",
           p.page_size, " tokens");
  FI_CHECK(kv.k.heads == 1, ValueError, "k_cache has ", kv.k.heads, " heads, but latent rows have one");
  FI_CHECK(p.max_page < kv.k.pages, ValueError, "page_table has page ", p.max_page, ", but the cache has ", kv.k.pages,
           " pages");
}
op::Shape output_shape(const X& a) { return {4, {a.q.size(0), 1, a.q.size(2), planes_of(a).v.dim}}; }
op::Cost cost(const X& given) {
  HostCopies copies;
  X a = given;
  copies.read(a.page_table), copies.read(a.seq_lens);
  return cost_of(plan_of_block(a, Planning::kArrays), rows_of("q", a.q));
}
using Run = NoPlanOnGpu<X, plan_of_block, call_of_block, tables_of, output_dtype>;

constexpr op::Field fields[] = {
    op::in<&X::q>("q", nullptr, ops::kQueryTypes),
    op::paged<&X::k_cache>("k_cache", nullptr, op::floats | op::fp8),
    op::paged<&X::v_cache>("v_cache", nullptr, op::same_as("k_cache")),
    // Not op::page_ids: a cache of two dimensions has no axis of pages, so a recording holds the whole pool.
    op::in<&X::page_table>("page_table", "b x", op::indices, op::any_layout),
    op::in<&X::seq_lens>("seq_lens", nullptr, op::indices | DType::kU32, op::any_layout),
    op::out<&X::output>("output", nullptr, op::floats | DType::kF8E4M3, op::shape<output_shape>,
                        op::dtype<output_dtype>, op::required, op::not_returned),
    op::scratch<&X::workspace_buffer>("workspace_buffer", nullptr),
    op::scratch<&X::semaphores>("semaphores", nullptr),
    op::attr<&X::page_size>("page_size", op::required),
    op::attr<&X::q_scale>("q_scale"),
    op::attr<&X::kv_scale>("kv_scale"),
    op::attr<&X::sm_count>("sm_count"),
    op::attr<&X::enable_pdl>("enable_pdl"),
};
}  // namespace

constinit const op::Op xqa_mla_op = op::define<X, validate, cost>(
    "xqa_mla", "flashinfer.xqa",
    "output = kv_scale * softmax(q_scale * kv_scale * q k^T) v[..., :512] with one KV head over a dense page table.",
    fields, NarrowOutput<X, Run, &X::output>::candidates, ops::attention::xqa_mla_cases);
}  // namespace attention

void xqa_mla(const XqaMla& a) { op::call(attention::xqa_mla_op, a); }

}  // namespace flashinfer
