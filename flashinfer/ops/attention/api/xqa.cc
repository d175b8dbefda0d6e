// SPDX-License-Identifier: Apache-2.0
// XQA's interface over the operators without plan().
#include "flashinfer/ops/attention/api/xqa.h"

#include <algorithm>
#include <cmath>

#include "flashinfer/core/int_math.h"
#include "flashinfer/ops/attention/api/draft_mask.h"
#include "flashinfer/ops/attention/api/narrow_output.h"
#include "flashinfer/ops/attention/api/no_plan.h"
#include "flashinfer/ops/attention/cases.h"

namespace flashinfer {
namespace attention {
namespace {

constexpr DTypeSet kLengths = op::indices | DType::kU32;

/// The rows of each request and the mask among them.
void set_draft_rows(Plan& p, const char* name, int64_t max_rows, const std::optional<TensorView>& indptr,
                    const std::optional<TensorView>& mask, const TensorView& query, Planning what) {
  FI_CHECK(max_rows >= 1, ValueError, name, " is ", max_rows, ", but must be at least 1");
  const bool known = what != Planning::kShapes;
  if (indptr && !known) {
    set_unknown_rows(p, "q_cu_seq_lens", *indptr, query);
  } else if (indptr) {
    set_rows(p, "q_cu_seq_lens", *indptr);
    check_max(name, max_rows, "query rows", p.qo_indptr.data_as<int32_t>(), p.batch_size, true);
  } else {
    set_equal_rows(p, name, max_rows);
  }
  FI_CHECK(mask || max_rows == 1, ValueError, "mask is missing: it says which of a request's ", max_rows,
           " query rows see each other");
  p.causal = true;
  if (known) check_rows_in_cache(p, max_rows);
  if (mask) known ? set_draft_mask(p, *mask, max_rows) : check_draft_mask(p, *mask, max_rows);
}
CallTables device_tables(const TensorView& pages, const TensorView& lengths, int64_t keys,
                         const std::optional<TensorView>& indptr, const std::optional<TensorView>& mask,
                         int64_t max_rows) {
  CallTables t{.pages = pages, .lengths = lengths, .first_rows = indptr, .rows = max_rows, .keys = keys};
  if (mask) t.words = draft_words(*mask, max_rows);
  return t;
}
/// Masks of a GPU are not read by the host either.
template <class Block>
Planning planning_of(const Block& a, const TensorView& table) {
  return host_reads(table, a.seq_lens, a.q_cu_seq_lens) && (!a.mask || host_can_read(a.mask->device()))
             ? Planning::kArrays
             : Planning::kShapes;
}
const TensorView* flat_sinks(const Plan& p, const std::optional<TensorView>& sinks, TensorView& flat) {
  if (!sinks) return nullptr;
  FI_CHECK(sinks->numel() == p.num_qo_heads, ValueError, "sinks is ", to_string(*sinks), ", but there are ",
           p.num_qo_heads, " query heads");
  flat = sinks->view({p.num_qo_heads});
  return &flat;
}

// ---- xqa_batch_decode_with_kv_cache ----
using D = XqaBatchDecode;
DType out_dtype(const D& a) { return a.out ? a.out->dtype() : ops::default_output(a.query.dtype()); }
Plan decode_plan(const D& a, Planning what) {
  const Planes kv = cache_planes(a.kv_cache, a.kv_layout);
  Plan p;
  p.kv_layout = a.kv_layout, p.page_size = kv.k.page_size;
  set_tensors(p, a.query, kv, computed_dtype(out_dtype(a)));
  set_options(p, scale_and_window(scale_of("bmm1_scale", a.bmm1_scale).number, a.window_left));
  set_tables(p, a.block_tables, a.seq_lens, {}, what);
  set_draft_rows(p, "q_len_per_req", a.q_len_per_req, a.q_cu_seq_lens, a.mask, a.query, what);
  if (what == Planning::kWork) set_work(p);
  return p;
}
Call decode_call(const D& a, TensorView& sinks) {
  Call c;
  c.q = a.query, c.kv = cache_planes(a.kv_cache, a.kv_layout);
  c.kv_sf = scale_planes(a.kv_cache_sf, a.kv_layout, c.kv, true);
  if (a.out) c.out = *a.out;
  Plan p;
  p.num_qo_heads = a.query.size(1);
  c.sinks = flat_sinks(p, a.sinks, sinks);
  const Scale output = scale_of("bmm2_scale", a.bmm2_scale);
  c.v_scale = output.number, c.v_scale_on_device = output.on_device;
  c.scales_on_device[0] = scale_of("bmm1_scale", a.bmm1_scale).on_device;
  return c;
}
CallTables decode_tables(const D& a) {
  return device_tables(a.block_tables, a.seq_lens, a.max_seq_len, a.q_cu_seq_lens, a.mask, a.q_len_per_req);
}
void check_pages(const Plan& p, const Planes& kv, const char* table) {
  FI_CHECK(p.max_page < kv.k.pages, ValueError, table, " has page ", p.max_page, ", but the cache has ", kv.k.pages,
           " pages");
}
void validate_decode(const D& a) {
  check_output_scale(a.o_scale, out_dtype(a));
  const Plan p = decode_plan(a, planning_of(a, a.block_tables));
  TensorView sinks;
  const Call c = decode_call(a, sinks);
  check_run(p, a.query, c.kv, "kv_cache (K)", "kv_cache (V)");
  check_pages(p, c.kv, "block_tables");
  check_max("max_seq_len", a.max_seq_len, "tokens in the cache", p.kv_len.data_as<int32_t>(), p.batch_size, false);
}
op::Shape decode_shape(const D& a) {
  return rows_heads_dim(a.query.size(0), a.query.size(1), cache_planes(a.kv_cache, a.kv_layout).v.dim);
}
template <class Block>
struct OnHost {
  explicit OnHost(const Block& a, TensorView Block::* table) : block(a) {
    copies.read(block.*table), copies.read(block.seq_lens), copies.read(block.q_cu_seq_lens), copies.read(block.mask);
  }
  HostCopies copies;
  Block block;
};
op::Cost decode_cost(const D& a) {
  const OnHost host(a, &D::block_tables);
  return cost_of(decode_plan(host.block, Planning::kArrays), a.query);
}

// ---- xqa ----
TensorView rows_of(const Xqa& a, const char* name, const TensorView& t) {
  if (a.q_cu_seq_lens) {
    FI_CHECK(t.rank() == 3, ValueError, name, " is ", to_string(t),
             ", but must be [rows, heads, dim] with q_cu_seq_lens");
    return t;
  }
  FI_CHECK((t.rank() == 4 || t.rank() == 5) && t.size(1) == 1, ValueError, name, " is ", to_string(t),
           ", but must be [requests, 1, heads, dim] or [requests, 1, q_seq_len, heads, dim]");
  FI_CHECK(t.rank() == 4 ? a.q_seq_len == 1 : t.size(2) == a.q_seq_len, ValueError, name, " is ", to_string(t),
           ", but q_seq_len is ", a.q_seq_len);
  const TensorView one_beam = t.select(1, 0);
  return t.rank() == 4 ? one_beam : merged_rows(name, one_beam);
}
DType output_dtype(const Xqa& a) { return a.output ? a.output->dtype() : ops::default_output(a.q.dtype()); }
op::Shape output_shape(const Xqa& a) {
  op::Shape s{a.q.rank(), {}};
  std::copy(a.q.shape().begin(), a.q.shape().end(), s.size);
  return s;
}
op::PagedKv caches(const Xqa& a) { return {a.k_cache, a.v_cache}; }
std::optional<op::PagedKv> cache_scales(const Xqa& a) {
  FI_CHECK(a.k_sf_cache.has_value() == a.v_sf_cache.has_value(), ValueError,
           "k_sf_cache and v_sf_cache must be given together");
  if (!a.k_sf_cache) return std::nullopt;
  return op::PagedKv{*a.k_sf_cache, *a.v_sf_cache};
}
Plan xqa_plan(const Xqa& a, Planning what) {
  const TensorView q = rows_of(a, "q", a.q);
  const Planes kv = cache_planes(caches(a), a.kv_layout);
  FI_CHECK(a.sliding_win_size >= 0, ValueError, "sliding_win_size is ", a.sliding_win_size,
           ", but must be at least 0 (none)");
  Plan p;
  p.kv_layout = a.kv_layout, p.page_size = kv.k.page_size;
  set_tensors(p, q, kv, computed_dtype(output_dtype(a)));
  const double scale = scale_of("q_scale", a.q_scale).number * scale_of("kv_scale", a.kv_scale).number;
  set_options(p, scale_and_window(scale / std::sqrt(static_cast<double>(p.head_dim_qk)), a.sliding_win_size - 1));
  set_tables(p, a.page_table, lengths_of("seq_lens", a.seq_lens), {.table = "page_table"}, what);
  set_draft_rows(p, "q_seq_len", a.q_seq_len, a.q_cu_seq_lens, a.mask, q, what);
  if (what == Planning::kWork) set_work(p);
  return p;
}
Call xqa_call(const Xqa& a, TensorView& sinks) {
  Call c;
  c.q = rows_of(a, "q", a.q), c.kv = cache_planes(caches(a), a.kv_layout);
  c.kv_sf = scale_planes(cache_scales(a), a.kv_layout, c.kv, true);
  if (a.output) c.out = rows_of(a, "output", *a.output);  // of computed_dtype when it is written
  Plan p;
  p.num_qo_heads = c.q.size(1);
  c.sinks = flat_sinks(p, a.sinks, sinks);
  const Scale cache = scale_of("kv_scale", a.kv_scale);
  c.v_scale = cache.number * a.rcp_out_scale, c.v_scale_on_device = cache.on_device;
  c.scales_on_device[0] = scale_of("q_scale", a.q_scale).on_device, c.scales_on_device[1] = cache.on_device;
  return c;
}
CallTables xqa_tables(const Xqa& a) {
  return device_tables(a.page_table, lengths_of("seq_lens", a.seq_lens), INT64_MAX, a.q_cu_seq_lens, a.mask,
                       a.q_seq_len);
}
void validate_xqa(const Xqa& a) {
  const Plan p = xqa_plan(a, planning_of(a, a.page_table));
  TensorView sinks;
  const Call c = xqa_call(a, sinks);
  check_run(p, c.q, c.kv, "k_cache", "v_cache");
  FI_CHECK(a.num_kv_heads == p.num_kv_heads, ValueError, "num_kv_heads is ", a.num_kv_heads, ", but k_cache has ",
           p.num_kv_heads, " heads");
  FI_CHECK(a.page_size == p.page_size, ValueError, "page_size is ", a.page_size, ", but k_cache has pages of ",
           p.page_size, " tokens");
  FI_CHECK(p.head_dim_vo == p.head_dim_qk, ValueError, "v_cache has a head dim of ", p.head_dim_vo,
           ", but output has q's, ", p.head_dim_qk);
  check_pages(p, c.kv, "page_table");
}
op::Cost xqa_cost(const Xqa& a) {
  const OnHost host(a, &Xqa::page_table);
  return cost_of(xqa_plan(host.block, Planning::kArrays), rows_of(a, "q", a.q));
}

constexpr op::Field decode_fields[] = {
    op::in<&D::query>("query", "n h d", ops::kQueryTypes),
    op::paged<&D::kv_cache>("kv_cache", nullptr, kCacheTypes),
    op::scratch<&D::workspace_buffer>("workspace_buffer", nullptr),
    op::in<&D::block_tables>("block_tables", "b x", op::indices, op::any_layout, op::page_ids),
    op::in<&D::seq_lens>("seq_lens", "b", kLengths, op::any_layout),
    op::attr<&D::max_seq_len>("max_seq_len", op::required),
    op::attr<&D::bmm1_scale>("bmm1_scale"),
    op::attr<&D::bmm2_scale>("bmm2_scale"),
    op::attr<&D::window_left>("window_left"),
    op::out<&D::out>("out", nullptr, op::floats | DType::kF8E4M3, op::shape<decode_shape>, op::dtype<out_dtype>),
    op::in<&D::sinks>("sinks", nullptr, DType::kF32, op::contiguous),
    op::attr<&D::kv_layout>("kv_layout", op::choices("NHD|HND", ErrorKind::kKeyError)),
    op::attr<&D::enable_pdl>("enable_pdl"),
    op::attr<&D::q_len_per_req>("q_len_per_req"),
    op::attr<&D::o_scale>("o_scale"),
    op::in<&D::mask>("mask", nullptr, kMaskWords, op::doc("bits: which rows of its request a row sees")),
    op::paged<&D::kv_cache_sf>("kv_cache_sf", nullptr, kScaleTypes),
    op::in<&D::q_cu_seq_lens>("q_cu_seq_lens", "b+1", kLengths, op::any_layout),
};
constexpr op::Field xqa_fields[] = {
    op::in<&Xqa::q>("q", nullptr, ops::kQueryTypes),
    op::paged<&Xqa::k_cache>("k_cache", nullptr, kCacheTypes),
    op::paged<&Xqa::v_cache>("v_cache", nullptr, kCacheTypes),
    op::in<&Xqa::page_table>("page_table", "b x", op::indices, op::any_layout, op::page_ids,
                             op::doc("the pages of each request, one row each")),
    op::in<&Xqa::seq_lens>("seq_lens", nullptr, kLengths, op::any_layout),
    op::out<&Xqa::output>("output", nullptr, op::floats | DType::kF8E4M3, op::shape<output_shape>,
                          op::dtype<output_dtype>, op::required, op::not_returned),
    op::scratch<&Xqa::workspace_buffer>("workspace_buffer", nullptr),
    op::scratch<&Xqa::semaphores>("semaphores", nullptr),
    op::attr<&Xqa::num_kv_heads>("num_kv_heads", op::required),
    op::attr<&Xqa::page_size>("page_size", op::required),
    op::in<&Xqa::sinks>("sinks", nullptr, DType::kF32, op::contiguous),
    op::attr<&Xqa::q_scale>("q_scale"),
    op::attr<&Xqa::kv_scale>("kv_scale"),
    op::attr<&Xqa::sliding_win_size>("sliding_win_size"),
    op::attr<&Xqa::kv_layout>("kv_layout", op::choices("NHD|HND", ErrorKind::kKeyError)),
    op::attr<&Xqa::sm_count>("sm_count"),
    op::attr<&Xqa::enable_pdl>("enable_pdl"),
    op::attr<&Xqa::rcp_out_scale>("rcp_out_scale"),
    op::attr<&Xqa::q_seq_len>("q_seq_len"),
    op::in<&Xqa::mask>("mask", nullptr, kMaskWords, op::doc("bits: which rows of its request a row sees")),
    op::in<&Xqa::q_cu_seq_lens>("q_cu_seq_lens", "b+1", kLengths, op::any_layout, op::keyword_only),
    op::paged<&Xqa::k_sf_cache>("k_sf_cache", nullptr, kScaleTypes),
    op::paged<&Xqa::v_sf_cache>("v_sf_cache", nullptr, kScaleTypes),
};
}  // namespace

constinit const op::Op xqa_decode_op = op::define<D, validate_decode, decode_cost>(
    "xqa_batch_decode_with_kv_cache", "flashinfer.decode",
    "Batch decode with a dense page table and no plan; a mask among the rows of a request.", decode_fields,
    NarrowOutput<D, NoPlanOnGpu<D, decode_plan, decode_call, decode_tables, out_dtype>, &D::out>::candidates,
    ops::attention::xqa_decode_cases);
constinit const op::Op xqa_op = op::define<Xqa, validate_xqa, xqa_cost>(
    "xqa", "flashinfer.xqa",
    "output = kv_scale * rcp_out_scale * softmax(q_scale * kv_scale / sqrt(d) * q k^T) v over a dense page table.",
    xqa_fields,
    NarrowOutput<Xqa, NoPlanOnGpu<Xqa, xqa_plan, xqa_call, xqa_tables, output_dtype>, &Xqa::output>::candidates,
    ops::attention::xqa_cases);
}  // namespace attention

op::Results xqa_batch_decode_with_kv_cache(const XqaBatchDecode& a) { return op::call(attention::xqa_decode_op, a); }
void xqa(const Xqa& a) { op::call(attention::xqa_op, a); }

}  // namespace flashinfer
