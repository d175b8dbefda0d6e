// SPDX-License-Identifier: Apache-2.0
// cuDNN's interface over the operators without plan().
#include "flashinfer/ops/attention/api/cudnn.h"

#include <cmath>
#include <limits>

#include "flashinfer/ops/attention/api/no_plan.h"
#include "flashinfer/ops/attention/cases.h"

namespace flashinfer {
namespace attention {
namespace {

const TensorView& needed(const char* name, const std::optional<TensorView>& v, const char* why) {
  FI_CHECK(v.has_value(), ValueError, name, " is missing: ", why);
  return *v;
}
/// K and V as pages, heads first.
Planes pages_of(const TensorView& k, const TensorView& v) { return cache_planes(op::PagedKv{k, v}, "HND"); }
void check_pages(const Plan& p, const Planes& kv) {
  FI_CHECK(p.max_page < kv.k.pages, ValueError, "block_tables has page ", p.max_page, ", but k_cache has ", kv.k.pages,
           " pages");
}

// ---- decode ----
using D = CudnnBatchDecode;
/// Offsets of rows that follow each other, `row` elements each; the last one may be left out. Those of a GPU are not
/// read: they say nothing else.
void check_dense(const char* name, const std::optional<TensorView>& offsets, int64_t batch, int64_t row) {
  if (!offsets) return;
  const TensorView& t = *offsets;
  FI_CHECK(t.rank() == 1 && (t.size(0) == batch || t.size(0) == batch + 1), ValueError, name, " is ", to_string(t),
           ", but there are ", batch, " requests");
  for (int64_t b = 0; b < t.size(0) && host_can_read(t.device()); ++b)
    FI_CHECK(op::index_at(t, b) == b * row, ValueError, name, "[", b, "] is ", op::index_at(t, b), ", but request ", b,
             " begins at element ", b * row, ": requests must follow each other");
}
const TensorView& pages_of(const D& a) { return needed("block_tables", a.block_tables, "it names the pages"); }
TensorView keys_of(const D& a) {
  return lengths_of("actual_seq_lens_kv", needed("actual_seq_lens_kv", a.actual_seq_lens_kv, "it has the KV lengths"));
}
CallTables decode_tables(const D& a) {
  return {.pages = pages_of(a), .lengths = keys_of(a), .rows = a.q_len_per_req, .keys = a.max_sequence_kv};
}
DType decode_dtype(const D& a) { return a.q.dtype(); }
Plan decode_plan(const D& a, Planning what) {
  const Planes kv = pages_of(a.k_cache, a.v_cache);
  Plan p;
  p.kv_layout = "HND", p.page_size = kv.k.page_size;
  set_tensors(p, a.q, kv, a.q.dtype());
  set_options(p, scale_and_window(a.scale, a.window_left));
  set_tables(p, pages_of(a), keys_of(a), {.lengths = "actual_seq_lens_kv"}, what);
  set_equal_rows(p, "q_len_per_req", a.q_len_per_req);
  p.causal = a.q_len_per_req > 1;
  if (what == Planning::kWork) set_work(p);
  return p;
}
Call decode_call(const D& a, TensorView&) {
  Call c;
  c.q = a.q, c.kv = pages_of(a.k_cache, a.v_cache);
  if (a.out) c.out = *a.out;
  c.lse = a.lse;
  if (a.sinks) c.sinks = &*a.sinks;
  return c;
}
void validate_decode(const D& a) {
  throw_if_given("batch_offsets_k", a.batch_offsets_k.has_value(), "pages have no offsets");
  throw_if_given("batch_offsets_v", a.batch_offsets_v.has_value(), "pages have no offsets");
  const bool known = host_reads(pages_of(a), keys_of(a));
  const Plan p = decode_plan(a, known ? Planning::kArrays : Planning::kShapes);
  const Planes kv = pages_of(a.k_cache, a.v_cache);
  check_run(p, a.q, kv, "k_cache", "v_cache");
  check_pages(p, kv);
  check_sinks(p, a.sinks);
  check_max("max_sequence_kv", a.max_sequence_kv, "tokens in the cache", p.kv_len.data_as<int32_t>(), p.batch_size,
            false);
  for (int64_t b = 0; b < p.batch_size && known; ++b)
    FI_CHECK(!p.causal || p.kv_len.data_as<int32_t>()[b] >= a.q_len_per_req, ValueError, "actual_seq_lens_kv[", b,
             "] is ", p.kv_len.data_as<int32_t>()[b], ", but must be at least q_len_per_req=", a.q_len_per_req);
  check_dense("batch_offsets_q", a.batch_offsets_q, p.batch_size, a.q_len_per_req * a.q.stride(0));
  check_dense("batch_offsets_o", a.batch_offsets_o, p.batch_size, a.q_len_per_req * p.num_qo_heads * p.head_dim_vo);
}
op::Shape decode_shape(const D& a) { return rows_heads_dim(a.q.size(0), a.q.size(1), a.v_cache.size(-1)); }
op::Shape decode_lse_shape(const D& a) { return rows_heads(a.q.size(0), a.q.size(1)); }
op::Cost decode_cost(const D& given) {
  HostCopies copies;
  D a = given;
  copies.read(a.block_tables), copies.read(a.actual_seq_lens_kv);
  return cost_of(decode_plan(a, Planning::kArrays), a.q);
}

// ---- prefill ----
using P = CudnnBatchPrefill;
bool paged(const P& a) { return a.k_cache.rank() == 4; }
int64_t batch_of(const P& a) {
  for (const auto* lengths : {&a.actual_seq_lens_q, &a.actual_seq_lens_kv})
    if (*lengths) return (*lengths)->size(0);
  FI_CHECK(a.batch_offsets_q.has_value(), ValueError,
           "actual_seq_lens_q and batch_offsets_q are missing: one of them says how many requests there are");
  return a.batch_offsets_q->numel() - 1;
}
/// First rows of the requests, and where the last one ends. `row`: elements of a row.
Tensor offsets_of(const P& a, const char* name, const TensorView& given, int64_t batch, int64_t row) {
  FI_CHECK(given.numel() == batch + 1 && given.size(0) == batch + 1, ValueError, name, " is ", to_string(given),
           ", but must be [", batch + 1, "] (requests, plus 1)");
  const TensorView t = lengths_of(name, given);
  Tensor out = Tensor::empty({batch + 1}, DType::kI32);
  const int64_t unit = a.batch_offsets_units == "tokens" ? 1 : row;
  for (int64_t b = 0; b <= batch; ++b) {
    const int64_t x = op::index_at(t, b);
    FI_CHECK(x % unit == 0 && x >= 0 && x / unit <= INT32_MAX, ValueError, name, "[", b, "] is ", x,
             ", but must be a multiple of the ", unit, " elements of a row");
    out.data_as<int32_t>()[b] = static_cast<int32_t>(x / unit);
  }
  return out;
}
/// Offsets of a GPU, which a kernel reads.
void check_offsets(const char* name, const std::optional<TensorView>& given, int64_t batch) {
  FI_CHECK(!given || (given->numel() == batch + 1 && given->size(0) == batch + 1), ValueError, name, " is ",
           to_string(*given), ", but must be [", batch + 1, "] (requests, plus 1)");
}
void set_query_rows(Plan& p, const P& a, Planning what) {
  const int64_t batch = p.batch_size;
  FI_CHECK(a.batch_offsets_q || batch == 1, ValueError,
           "batch_offsets_q and batch_offsets_o are missing: they say where the rows of ", batch, " requests begin");
  if (what == Planning::kShapes) {
    check_offsets("batch_offsets_q", a.batch_offsets_q, batch);
    p.nnz_qo = a.q.size(0);
    return;
  }
  if (a.batch_offsets_q) {
    p.qo_indptr = offsets_of(a, "batch_offsets_q", *a.batch_offsets_q, batch, p.num_qo_heads * p.head_dim_qk);
    op::check_indptr("batch_offsets_q", p.qo_indptr);
  } else {
    p.qo_indptr = Tensor::zeros({2}, DType::kI32);
    p.qo_indptr.data_as<int32_t>()[1] = static_cast<int32_t>(
        a.actual_seq_lens_q ? op::index_at(lengths_of("actual_seq_lens_q", *a.actual_seq_lens_q), 0) : a.q.size(0));
  }
  const int32_t* qo = p.qo_indptr.data_as<int32_t>();
  p.nnz_qo = qo[batch];
  if (a.batch_offsets_o) {
    const Tensor o = offsets_of(a, "batch_offsets_o", *a.batch_offsets_o, batch, p.num_qo_heads * p.head_dim_vo);
    for (int64_t b = 0; b <= batch; ++b)
      FI_CHECK(o.data_as<int32_t>()[b] == qo[b], ValueError, "batch_offsets_o[", b, "] is row ",
               o.data_as<int32_t>()[b], ", but must be ", qo[b], ", as in batch_offsets_q: out has the rows of q");
  }
  if (!a.actual_seq_lens_q) {
    FI_CHECK(a.batch_offsets_units == "tokens" || !a.batch_offsets_q, ValueError,
             "actual_seq_lens_q is missing: only batch_offsets_units='tokens' implies the lengths");
    return;
  }
  const TensorView lengths = lengths_of("actual_seq_lens_q", *a.actual_seq_lens_q);
  for (int64_t b = 0; b < batch; ++b)
    FI_CHECK(op::index_at(lengths, b) == qo[b + 1] - qo[b], ValueError, "actual_seq_lens_q[", b, "] is ",
             op::index_at(lengths, b), ", but batch_offsets_q gives request ", b, " ", qo[b + 1] - qo[b], " rows");
}
void set_ragged_rows(Plan& p, const P& a, const Planes& kv, Planning what) {
  p.paged = false;
  FI_CHECK(a.batch_offsets_k || p.batch_size == 1, ValueError, "batch_offsets_k is missing: it says where the keys of ",
           p.batch_size, " requests begin");
  if (what == Planning::kShapes) {
    check_offsets("batch_offsets_k", a.batch_offsets_k, p.batch_size);
    p.nnz_kv = std::min(kv.k.page_size, kv.v.page_size);
    return;
  }
  if (a.batch_offsets_k) {
    p.kv_indptr = offsets_of(a, "batch_offsets_k", *a.batch_offsets_k, p.batch_size, kv.k.heads * kv.k.dim);
  } else {
    p.kv_indptr = Tensor::zeros({2}, DType::kI32);
    p.kv_indptr.data_as<int32_t>()[1] = static_cast<int32_t>(kv.k.page_size);
  }
  p.nnz_kv = op::check_indptr("batch_offsets_k", p.kv_indptr);
  const int32_t* first = p.kv_indptr.data_as<int32_t>();
  if (a.batch_offsets_v) {
    const Tensor v = offsets_of(a, "batch_offsets_v", *a.batch_offsets_v, p.batch_size, kv.v.heads * kv.v.dim);
    for (int64_t b = 0; b <= p.batch_size; ++b)
      FI_CHECK(v.data_as<int32_t>()[b] == first[b], ValueError, "batch_offsets_v[", b, "] is row ",
               v.data_as<int32_t>()[b], ", but batch_offsets_k[", b, "] is row ", first[b]);
  }
  p.kv_len = Tensor::empty({p.batch_size}, DType::kI32);
  FI_CHECK(a.actual_seq_lens_kv || a.batch_offsets_units == "tokens" || !a.batch_offsets_k, ValueError,
           "actual_seq_lens_kv is missing: only batch_offsets_units='tokens' implies the lengths");
  for (int64_t b = 0; b < p.batch_size; ++b) {
    const int64_t room = first[b + 1] - first[b];
    const int64_t n =
        a.actual_seq_lens_kv ? op::index_at(lengths_of("actual_seq_lens_kv", *a.actual_seq_lens_kv), b) : room;
    FI_CHECK(n >= 0 && n <= room, ValueError, "actual_seq_lens_kv[", b, "] is ", n,
             ", but batch_offsets_k gives request ", b, " ", room, " rows");
    p.kv_len.data_as<int32_t>()[b] = static_cast<int32_t>(n);
  }
}
Planes planes_of(const P& a) {
  return paged(a) ? pages_of(a.k_cache, a.v_cache) : token_planes(a.k_cache, a.v_cache, "NHD");
}
DType prefill_dtype(const P& a) {
  return a.out ? a.out->dtype() : a.o_data_type.value_or(ops::default_output(a.q.dtype()));
}
Plan prefill_plan(const P& a, Planning what) {
  const Planes kv = planes_of(a);
  Plan p;
  p.kv_layout = paged(a) ? "HND" : "NHD", p.page_size = kv.k.page_size, p.causal = a.causal;
  set_tensors(p, a.q, kv, prefill_dtype(a));
  set_options(p, scale_and_window(a.scale));
  p.batch_size = batch_of(a);
  if (paged(a)) {
    const TensorView& lengths = needed("actual_seq_lens_kv", a.actual_seq_lens_kv, "pages do not tell the KV lengths");
    set_tables(p, needed("block_tables", a.block_tables, "it names the pages"),
               lengths_of("actual_seq_lens_kv", lengths), {.lengths = "actual_seq_lens_kv"}, what);
  } else {
    set_ragged_rows(p, a, kv, what);
  }
  set_query_rows(p, a, what);
  if (what == Planning::kWork) set_work(p);
  return p;
}
Scale factor_of(const char* name, const std::optional<TensorView>& t) { return t ? scale_of(name, *t) : Scale{}; }
/// `rows` [rows of q, Hq]: where the LSE goes; its rows are then moved to their requests.
Call prefill_call(const P& a, const Tensor& rows) {
  Call c;
  c.q = a.q, c.kv = planes_of(a);
  if (a.out) c.out = *a.out;
  if (a.return_lse) c.lse = rows.view();
  c.natural_lse = a.lse_base == "ln";
  const Scale q = factor_of("q_scale", a.q_scale), k = factor_of("k_scale", a.k_scale),
              v = factor_of("v_scale", a.v_scale);
  c.q_scale = q.number, c.k_scale = k.number, c.v_scale = v.number;
  c.scales_on_device[0] = q.on_device, c.scales_on_device[1] = k.on_device, c.v_scale_on_device = v.on_device;
  return c;
}
void pad_lse(const Plan& p, const Tensor& rows, const TensorView& to) {
  const int32_t* qo = p.qo_indptr.data_as<int32_t>();
  for (int64_t b = 0; b < p.batch_size; ++b)
    for (int64_t i = 0; i < to.size(1); ++i)
      for (int64_t h = 0; h < p.num_qo_heads; ++h) {
        const bool row = i < qo[b + 1] - qo[b];
        to.data_as<float>()[b * to.stride(0) + i * to.stride(1) + h * to.stride(2)] =
            row ? rows.data_as<float>()[(qo[b] + i) * p.num_qo_heads + h] : -std::numeric_limits<float>::infinity();
      }
}
Tensor lse_rows(const P& a, const Plan& p) {
  return a.return_lse ? Tensor::empty({p.nnz_qo, p.num_qo_heads}, DType::kF32, a.q.device()) : Tensor();
}
CallTables prefill_tables(const P& a) {
  const auto flat = [](const char* name, const std::optional<TensorView>& t) {
    return t ? std::optional(lengths_of(name, *t)) : std::nullopt;
  };
  CallTables t{.pages = a.block_tables, .lengths = flat("actual_seq_lens_kv", a.actual_seq_lens_kv)};
  t.first_rows = flat("batch_offsets_q", a.batch_offsets_q), t.keys = a.max_sequence_kv;
  t.rows = a.batch_offsets_q ? a.max_token_per_sequence : a.q.size(0);
  if (!paged(a)) t.first_keys = flat("batch_offsets_k", a.batch_offsets_k);
  if (a.batch_offsets_units == "tokens") return t;
  t.row_unit = a.q.size(1) * a.q.size(2), t.key_unit = a.k_cache.size(1) * a.k_cache.size(2);
  return t;
}
op::Prepared prefill_cuda(const P& a) {
  const PlanRef plan = owned(prefill_plan(a, Planning::kShapes));
  const CallTables tables = prefill_tables(a);
  const Tensor rows = lse_rows(a, *plan);
  if (!a.return_lse) return prepare_tables_cuda(plan, prefill_call(a, rows), tables);
  Launches launches;
  launches.add([&] { return prepare_tables_cuda(plan, prefill_call(a, rows), tables); });
  launches.add([&] { return prepare_pad_lse(tables, rows, *a.lse); });
  launches.keep(rows.owner());
  return std::move(launches).prepared();
}
op::Prepared prefill_cpu(const P& a) {
  const PlanRef plan = owned(prefill_plan(a, Planning::kWork));
  const Tensor rows = lse_rows(a, *plan);
  if (!a.return_lse) return prepare_cpu(plan, prefill_call(a, rows));
  Launches launches;
  launches.add([&] { return prepare_cpu(plan, prefill_call(a, rows)); });
  launches.add([&]() -> op::Prepared { return [plan, rows, to = *a.lse] { pad_lse(*plan, rows, to); }; });
  return std::move(launches).prepared();
}
void prefill_reference(const P& a) {
  const Plan p = prefill_plan(a, Planning::kArrays);
  const Tensor rows = lse_rows(a, p);
  run_reference(p, prefill_call(a, rows));
  if (a.return_lse) pad_lse(p, rows, *a.lse);
}
bool host_reads(const P& a) {
  for (const auto* t : {&a.actual_seq_lens_q, &a.actual_seq_lens_kv, &a.block_tables, &a.batch_offsets_q,
                        &a.batch_offsets_o, &a.batch_offsets_k, &a.batch_offsets_v})
    if (*t && !host_can_read((*t)->device())) return false;
  return true;
}
void validate_prefill(const P& a) {
  throw_if_given("batch_offsets_stats", a.batch_offsets_stats.has_value(), "the LSE is padded");
  FI_CHECK((a.k_cache.rank() == 4 || a.k_cache.rank() == 3) && a.v_cache.rank() == a.k_cache.rank(), ValueError,
           "k_cache is ", to_string(a.k_cache), " and v_cache is ", to_string(a.v_cache),
           ", but must be [pages, heads, page_size, dim] or [tokens, heads, dim]");
  throw_if_given("block_tables", a.block_tables && !paged(a), "K and V of rank 3 have no pages");
  FI_CHECK(op::floats.has(prefill_dtype(a)), ValueError, "o_data_type is ", name(prefill_dtype(a)), ", but must be ",
           to_string(op::floats));
  const bool known = host_reads(a);
  const Plan p = prefill_plan(a, known ? Planning::kArrays : Planning::kShapes);
  const Planes kv = planes_of(a);
  FI_CHECK(a.q.size(0) == p.nnz_qo, ValueError, "q has ", a.q.size(0), " rows, but the requests have ", p.nnz_qo);
  check_run(p, a.q, kv, "k_cache", "v_cache");
  if (p.paged)
    check_pages(p, kv);
  else
    check_ragged_kv(p, kv, "k_cache", "v_cache", "batch_offsets_k");
  check_max("max_token_per_sequence", a.max_token_per_sequence, "query tokens", p.qo_indptr.data_as<int32_t>(),
            p.batch_size, true);
  check_max("max_sequence_kv", a.max_sequence_kv, "tokens of keys", p.kv_len.data_as<int32_t>(), p.batch_size, false);
  for (const auto& [name, t] :
       {std::pair("q_scale", &a.q_scale), std::pair("k_scale", &a.k_scale), std::pair("v_scale", &a.v_scale)})
    factor_of(name, *t);
}
op::Shape prefill_shape(const P& a) { return rows_heads_dim(a.q.size(0), a.q.size(1), a.v_cache.size(-1)); }
op::Shape prefill_lse_shape(const P& a) { return rows_heads_dim(batch_of(a), a.max_token_per_sequence, a.q.size(1)); }
op::Cost prefill_cost(const P& given) {
  HostCopies copies;
  P a = given;
  for (auto* t : {&a.actual_seq_lens_q, &a.actual_seq_lens_kv, &a.block_tables, &a.batch_offsets_q, &a.batch_offsets_o,
                  &a.batch_offsets_k, &a.batch_offsets_v})
    copies.read(*t);
  return cost_of(prefill_plan(a, Planning::kArrays), a.q);
}

constexpr DTypeSet kCudnnTypes = op::floats | op::fp8;
constexpr op::Field decode_fields[] = {
    op::in<&D::q>("q", "n h d", op::floats),
    op::paged<&D::k_cache>("k_cache", "p hkv ps dk", kCudnnTypes),
    op::paged<&D::v_cache>("v_cache", "p hkv ps dv", kCudnnTypes),
    op::attr<&D::scale>("scale", op::required, op::doc("factor of the logits")),
    op::scratch<&D::workspace_buffer>("workspace_buffer", nullptr),
    op::attr<&D::max_sequence_kv>("max_sequence_kv", op::required, op::keyword_only),
    op::in<&D::actual_seq_lens_kv>("actual_seq_lens_kv", nullptr, op::indices, op::any_layout),
    op::in<&D::block_tables>("block_tables", "b x", op::indices, op::any_layout, op::page_ids),
    op::attr<&D::is_cuda_graph_compatible>("is_cuda_graph_compatible"),
    op::in<&D::batch_offsets_q>("batch_offsets_q", nullptr, op::indices, op::any_layout),
    op::in<&D::batch_offsets_o>("batch_offsets_o", nullptr, op::indices, op::any_layout),
    op::in<&D::batch_offsets_k>("batch_offsets_k", nullptr, op::indices, op::any_layout),
    op::in<&D::batch_offsets_v>("batch_offsets_v", nullptr, op::indices, op::any_layout),
    op::out<&D::out>("out", nullptr, op::same_as("q"), op::shape<decode_shape>),
    op::attr<&D::return_lse>("return_lse"),
    op::out<&D::lse>("lse", nullptr, DType::kF32, op::shape<decode_lse_shape>, op::when<&D::return_lse>),
    op::attr<&D::q_len_per_req>("q_len_per_req"),
    op::attr<&D::window_left>("window_left"),
    op::in<&D::sinks>("sinks", nullptr, DType::kF32, op::contiguous),
};
constexpr op::Field prefill_fields[] = {
    op::in<&P::q>("q", "n h d", ops::kQueryTypes),
    op::paged<&P::k_cache>("k_cache", nullptr, kCudnnTypes),
    op::paged<&P::v_cache>("v_cache", nullptr, kCudnnTypes),
    op::attr<&P::scale>("scale", op::required, op::doc("factor of the logits")),
    op::scratch<&P::workspace_buffer>("workspace_buffer", nullptr),
    op::attr<&P::max_token_per_sequence>("max_token_per_sequence", op::required, op::keyword_only),
    op::attr<&P::max_sequence_kv>("max_sequence_kv", op::required),
    op::in<&P::actual_seq_lens_q>("actual_seq_lens_q", nullptr, op::indices, op::any_layout),
    op::in<&P::actual_seq_lens_kv>("actual_seq_lens_kv", nullptr, op::indices, op::any_layout),
    op::in<&P::block_tables>("block_tables", "b x", op::indices, op::any_layout, op::page_ids),
    op::attr<&P::causal>("causal", op::required, op::keyword_only),
    op::attr<&P::return_lse>("return_lse", op::required, op::keyword_only),
    op::in<&P::q_scale>("q_scale", nullptr, DType::kF32),
    op::in<&P::k_scale>("k_scale", nullptr, DType::kF32),
    op::in<&P::v_scale>("v_scale", nullptr, DType::kF32),
    op::in<&P::batch_offsets_q>("batch_offsets_q", nullptr, op::indices, op::any_layout),
    op::in<&P::batch_offsets_o>("batch_offsets_o", nullptr, op::indices, op::any_layout),
    op::in<&P::batch_offsets_k>("batch_offsets_k", nullptr, op::indices, op::any_layout),
    op::in<&P::batch_offsets_v>("batch_offsets_v", nullptr, op::indices, op::any_layout),
    op::in<&P::batch_offsets_stats>("batch_offsets_stats", nullptr, op::indices, op::any_layout),
    op::attr<&P::batch_offsets_units>("batch_offsets_units", op::choices("elements|tokens")),
    op::out<&P::out>("out", nullptr, op::floats, op::shape<prefill_shape>, op::dtype<prefill_dtype>,
                     op::tuple_with_previous),
    op::out<&P::lse>("lse", nullptr, DType::kF32, op::shape<prefill_lse_shape>, op::when<&P::return_lse>),
    op::attr<&P::is_cuda_graph_compatible>("is_cuda_graph_compatible"),
    op::attr<&P::backend>("backend", op::choices("cudnn|cubin")),
    op::attr<&P::o_data_type>("o_data_type"),
    op::attr<&P::lse_base>("lse_base", op::choices("log2|ln")),
};
constexpr op::Candidate prefill_candidates[] = {op::cuda<prefill_cuda>(), op::cpu<prefill_cpu>(),
                                                op::reference<prefill_reference>()};
}  // namespace

constinit const op::Op cudnn_decode_op = op::define<D, validate_decode, decode_cost>(
    "cudnn_batch_decode_with_kv_cache", "flashinfer.decode",
    "Batch decode over pages of heads with a dense page table and no plan; lse in base 2.", decode_fields,
    NoPlanOnGpu<D, decode_plan, decode_call, decode_tables, decode_dtype>::candidates,
    ops::attention::cudnn_decode_cases);
constinit const op::Op cudnn_prefill_op = op::define<P, validate_prefill, prefill_cost>(
    "cudnn_batch_prefill_with_kv_cache", "flashinfer.prefill",
    "Batch prefill over pages or ragged K and V without a plan; lse padded to max_token_per_sequence rows.",
    prefill_fields, prefill_candidates, ops::attention::cudnn_prefill_cases);
}  // namespace attention

op::Results cudnn_batch_decode_with_kv_cache(const CudnnBatchDecode& a) {
  return op::call(attention::cudnn_decode_op, a);
}
op::Results cudnn_batch_prefill_with_kv_cache(const CudnnBatchPrefill& a) {
  return op::call(attention::cudnn_prefill_op, a);
}

}  // namespace flashinfer
