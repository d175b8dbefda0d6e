// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/mla/plan.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>

#include "flashinfer/core/context.h"
#include "flashinfer/core/int_math.h"
#include "flashinfer/core/transfer.h"
#include "flashinfer/core/warn.h"
#include "flashinfer/ops/attention/api/no_plan.h"
#include "flashinfer/ops/common/queries.h"

namespace flashinfer::mla {
namespace {

constexpr op::Field plan_fields[] = {
    op::attr<&Plan::use_cuda_graph>("use_cuda_graph"),
    op::attr<&Plan::fixed_batch_size>("fixed_batch_size"),
    op::attr<&Plan::batch_size>("batch_size"),
    op::attr<&Plan::nnz_qo>("nnz_qo"),
    op::attr<&Plan::num_heads>("num_heads"),
    op::attr<&Plan::head_dim_ckv>("head_dim_ckv"),
    op::attr<&Plan::head_dim_kpe>("head_dim_kpe"),
    op::attr<&Plan::page_size>("page_size"),
    op::attr<&Plan::causal>("causal"),
    op::attr<&Plan::sm_scale>("sm_scale"),
    op::attr<&Plan::q_data_type>("q_data_type"),
    op::attr<&Plan::kv_data_type>("kv_data_type"),
    op::attr<&Plan::output_dtype>("output_dtype"),
    op::attr<&Plan::lse_mode>("lse_mode"),
    op::attr<&Plan::scale_mode>("scale_mode"),
    op::attr<&Plan::use_sinks>("use_sinks"),
    op::in<&Plan::qo_indptr>("qo_indptr", nullptr),
    op::in<&Plan::kv_indptr>("kv_indptr", nullptr),
    op::in<&Plan::kv_indices>("kv_indices", nullptr, op::page_ids),
    op::in<&Plan::kv_len>("kv_len", nullptr),
    op::attr<&Plan::max_page>("max_page"),
    op::attr<&Plan::backend>("backend"),
};

/// A page table in one of its two forms.
struct Table {
  Tensor qo_indptr, kv_indptr, kv_indices, kv_len;
};
const TensorView& need(const std::optional<TensorView>& v, const char* name, const char* form) {
  FI_CHECK(v.has_value(), ValueError, name, " is missing: a ", form, " page table has it");
  return *v;
}
template <class T>
T need(const std::optional<T>& v, const char* name) {
  FI_CHECK(v.has_value(), TypeError, "plan() missing required arguments: ", name);
  return *v;
}
void check_vector(const TensorView& v, const char* name, int64_t n, const char* of) {
  FI_CHECK(v.rank() == 1 && v.size(0) == n, ValueError, name, " is ", to_string(v), ", but must be [", n, "] (", of,
           ")");
}
/// The entries of `batch` requests: what padded batches have behind them is not read.
TensorView offsets_of(const TensorView& v, const char* name, int64_t batch) {
  FI_CHECK(v.rank() == 1, ValueError, name, " is ", to_string(v), ", but must have rank 1");
  op::check_indptr_room(name, v, batch, "kv_len_arr");
  return v.slice(0, 0, batch + 1);
}
int64_t pages_of(int64_t tokens, int64_t page_size) { return ceil_div(tokens, page_size); }

Table csr_table(const BatchMlaPlan& a, int64_t page_size, bool exact) {
  const TensorView &indices = need(a.kv_indices, "kv_indices", "CSR"), &len = need(a.kv_len_arr, "kv_len_arr", "CSR");
  FI_CHECK(len.rank() == 1, ValueError, "kv_len_arr is ", to_string(len), ", but must have rank 1");
  const int64_t batch = len.size(0);
  const TensorView qo = offsets_of(need(a.qo_indptr, "qo_indptr", "CSR"), "qo_indptr", batch),
                   indptr = offsets_of(need(a.kv_indptr, "kv_indptr", "CSR"), "kv_indptr", batch);
  op::check_indptr("qo_indptr", qo);
  const int64_t used = op::check_indptr("kv_indptr", indptr);
  FI_CHECK(used <= indices.size(0), ValueError, "kv_indptr[", batch, "] is ", used, ", but kv_indices has only ",
           indices.size(0), " entries");
  for (int64_t b = 0; b < batch; ++b) {
    const int64_t pages = op::index_at(indptr, b + 1) - op::index_at(indptr, b), n = op::index_at(len, b);
    FI_CHECK(n >= 0 && n <= pages * page_size, ValueError, "kv_len_arr[", b, "] is ", n, ", but the request's ", pages,
             " pages of ", page_size, " tokens hold 0..", pages * page_size);
    FI_CHECK(!exact || pages == pages_of(n, page_size), ValueError, "kv_len_arr[", b, "] is ", n, ", which takes ",
             pages_of(n, page_size), " pages, but kv_indptr gives the request ", pages);
  }
  using attention::to_int32;
  return {to_int32("qo_indptr", qo, batch + 1), to_int32("kv_indptr", indptr, batch + 1),
          to_int32("kv_indices", indices, used), to_int32("kv_len_arr", len, batch)};
}

Table dense_table(const BatchMlaPlan& a, int64_t page_size) {
  const TensorView &qo = need(a.cum_seq_lens_q, "cum_seq_lens_q", "dense"),
                   &len = need(a.seq_lens, "seq_lens", "dense");
  const TensorView& pages = need(a.block_tables, "block_tables", "dense");
  op::check_indptr("cum_seq_lens_q", qo);
  const int64_t batch = qo.size(0) - 1;
  check_vector(len, "seq_lens", batch, "requests of cum_seq_lens_q");
  FI_CHECK(pages.size(0) == batch, ValueError, "block_tables.shape[0] is ", pages.size(0), ", but there are ", batch,
           " requests");
  Table t{attention::to_int32("cum_seq_lens_q", qo, batch + 1), Tensor::zeros({batch + 1}, DType::kI32), Tensor(),
          attention::to_int32("seq_lens", len, batch)};
  int32_t* indptr = t.kv_indptr.data_as<int32_t>();
  int64_t used = 0;
  for (int64_t b = 0; b < batch; ++b) {
    const int64_t n = t.kv_len.data_as<int32_t>()[b];
    FI_CHECK(n >= 0 && pages_of(n, page_size) <= pages.size(1), ValueError, "seq_lens[", b, "] is ", n,
             ", but block_tables has room for 0..", pages.size(1) * page_size);
    used += pages_of(n, page_size);
    FI_CHECK(used <= std::numeric_limits<int32_t>::max(), ValueError, "seq_lens need ", used,
             " pages, more than 32 bits hold");
    indptr[b + 1] = static_cast<int32_t>(used);
  }
  t.kv_indices = Tensor::empty({used}, DType::kI32);
  for (int64_t b = 0; b < batch; ++b) {
    const Tensor row = attention::to_int32("block_tables", pages.select(0, b), indptr[b + 1] - indptr[b]);
    std::copy_n(row.data_as<int32_t>(), row.numel(), t.kv_indices.data_as<int32_t>() + indptr[b]);
  }
  return t;
}

/// Both forms were given: they must be of one batch.
void check_same(const Table& csr, const Table& dense) {
  auto same = [](const Tensor& x, const Tensor& y, const char* what) {
    const auto a = x.span<int32_t>(), b = y.span<int32_t>();
    FI_CHECK(a.size() == b.size(), ValueError, "the two page tables differ: ", what, " have ", a.size(), " and ",
             b.size(), " entries");
    for (size_t i = 0; i < a.size(); ++i)
      FI_CHECK(a[i] == b[i], ValueError, "the two page tables differ: entry ", i, " of ", what, " is ", a[i], " and ",
               b[i]);
  };
  same(csr.qo_indptr, dense.qo_indptr, "qo_indptr and cum_seq_lens_q");
  same(csr.kv_len, dense.kv_len, "kv_len_arr and seq_lens");
  same(csr.kv_indptr, dense.kv_indptr, "the pages of each request (kv_indptr)");
  same(csr.kv_indices, dense.kv_indices, "kv_indices and block_tables");
}

/// The members of a metadata dict in the block, where the host can read them; `kept`: those that come from a GPU.
BatchMlaPlan with_metadata(const BatchMlaPlan& args, std::vector<Tensor>& kept) {
  BatchMlaPlan a = args;
  if (a.metadata.is_none()) return a;
  const auto* dict = a.metadata.as<op::DictValue>();
  if (!dict)
    throw TypeError(
        str("metadata is ", op::type_name(a.metadata), ", but must be MLAPlanMetadata or a dict of its members"));
  FI_CHECK(!a.qo_indptr && !a.kv_indptr && !a.kv_indices && !a.kv_len_arr && !a.cum_seq_lens_q && !a.block_tables &&
               !a.seq_lens && !a.max_q_len,
           ValueError, "metadata was given, so the page table must not be given beside it");
  const std::pair<const char*, std::optional<TensorView>*> members[] = {
      {"qo_indptr", &a.qo_indptr},   {"kv_indptr", &a.kv_indptr},           {"kv_indices", &a.kv_indices},
      {"kv_len_arr", &a.kv_len_arr}, {"cum_seq_lens_q", &a.cum_seq_lens_q}, {"block_tables", &a.block_tables},
      {"seq_lens", &a.seq_lens}};
  for (const auto& [key, value] : dict->items) {
    const auto* name = key.as<std::string>();
    const auto* member =
        std::find_if(std::begin(members), std::end(members), [&](const auto& m) { return name && *name == m.first; });
    if (value.is_none()) continue;
    if (name && *name == "max_q_len" && value.as<int64_t>()) {
      a.max_q_len = *value.as<int64_t>();
    } else {
      FI_CHECK(member != std::end(members) && value.tensor(), ValueError, "metadata has ", op::python_repr(key), " = ",
               op::python_repr(value), ", which is no part of a page table");
      kept.push_back(host_readable(*value.tensor()));
      *member->second = kept.back().view();
    }
  }
  return a;
}

void set_table(Plan& p, const BatchMlaPlan& args) {
  std::vector<Tensor> kept;
  const BatchMlaPlan a = with_metadata(args, kept);
  const bool csr = a.qo_indptr || a.kv_indptr || a.kv_indices || a.kv_len_arr,
             dense = a.cum_seq_lens_q || a.block_tables || a.seq_lens;
  FI_CHECK(csr || dense, TypeError,
           "plan() requires metadata or flat metadata arguments: neither qo_indptr nor block_tables is given");
  Table t;
  if (csr) t = csr_table(a, p.page_size, dense || !a.metadata.is_none());
  if (dense) {
    const Table d = dense_table(a, p.page_size);
    if (csr)
      check_same(t, d);
    else
      t = d;
  }
  p.qo_indptr = t.qo_indptr, p.kv_indptr = t.kv_indptr, p.kv_indices = t.kv_indices, p.kv_len = t.kv_len;
  p.batch_size = p.kv_len.size(0);
  p.nnz_qo = p.qo_indptr.data_as<int32_t>()[p.batch_size];
  p.longest = -1, p.longest = most_tokens(p);
  const int32_t* qo = p.qo_indptr.data_as<int32_t>();
  for (int64_t b = 0; a.max_q_len && b < p.batch_size; ++b)
    FI_CHECK(qo[b + 1] - qo[b] <= *a.max_q_len, ValueError, "max_q_len is ", *a.max_q_len, ", but request ", b, " has ",
             qo[b + 1] - qo[b], " query tokens");
}

void set_max_page(Plan& p) {
  p.max_page = -1;
  const int32_t *page = p.kv_indices.data_as<int32_t>(), *first = p.kv_indptr.data_as<int32_t>();
  for (int64_t b = 0; b < p.batch_size; ++b) {
    const int64_t end = first[b] + pages_of(p.kv_len.data_as<int32_t>()[b], p.page_size);
    for (int64_t i = first[b]; i < end; ++i) {
      FI_CHECK(page[i] >= 0, ValueError, "kv_indices[", i, "] is ", page[i], ", but a page id must be at least 0");
      p.max_page = std::max<int64_t>(p.max_page, page[i]);
    }
  }
}

void check_numbers(const Plan& p) {
  auto least = [](const char* name, int64_t value, int64_t lo) {
    FI_CHECK(value >= lo && value <= (1 << 30), ValueError, name, " is ", value, ", but must be at least ", lo,
             " and less than 2^30");
  };
  least("num_heads", p.num_heads, 1);
  least("head_dim_ckv", p.head_dim_ckv, 1);
  least("head_dim_kpe", p.head_dim_kpe, 0);
  least("page_size", p.page_size, 1);
  FI_CHECK(std::isfinite(p.sm_scale), ValueError, "sm_scale is ", p.sm_scale, ", but must be finite");
}

void set_work(Plan& p) {
  const auto qo = p.qo_indptr.span<int32_t>();
  for (size_t b = 0; b + 1 < qo.size(); ++b) {
    const int64_t rows = static_cast<int64_t>(qo[b + 1] - qo[b]) * p.num_heads;
    FI_CHECK(rows <= std::numeric_limits<int32_t>::max(), ValueError, "request ", b, " has ", rows,
             " rows (tokens * heads), more than 32 bits hold");
  }
  p.work = make_work(qo, p.kv_len.span<int32_t>(), p.num_heads, p.causal, Context::current().executor.threads);
}

}  // namespace

constinit const op::StateType plan_type = op::state_type<Plan>(plan_fields);

int64_t most_tokens(const Plan& p) {
  if (p.longest >= 0) return p.longest;
  const int32_t* qo = p.qo_indptr.data_as<int32_t>();
  int64_t most = 0;
  for (int64_t b = 0; b < p.batch_size; ++b) most = std::max<int64_t>(most, qo[b + 1] - qo[b]);
  return most;
}

Plan make_plan(const BatchMlaPlan& a) {
  static std::atomic<bool> warned{false};
  if (a.metadata.is_none() && !warned.exchange(true))
    deprecated(str(kPlan, ": a page table by arguments of its own is deprecated: pass metadata"));
  return plan_of_arguments(a);
}

Plan plan_of_arguments(const BatchMlaPlan& a) {
  Plan p;
  p.num_heads = need(a.num_heads, "num_heads"), p.page_size = need(a.page_size, "page_size");
  p.head_dim_ckv = need(a.head_dim_ckv, "head_dim_ckv"), p.head_dim_kpe = need(a.head_dim_kpe, "head_dim_kpe");
  p.causal = need(a.causal, "causal"), p.sm_scale = need(a.sm_scale, "sm_scale");
  p.q_data_type = need(a.q_data_type, "q_data_type"), p.kv_data_type = need(a.kv_data_type, "kv_data_type");
  p.output_dtype = a.output_dtype.value_or(ops::default_output(p.q_data_type));
  for (const auto& [name, t, types] : {std::tuple("q_data_type", p.q_data_type, ops::kQueryTypes),
                                       std::tuple("output_dtype", p.output_dtype, op::floats),
                                       std::tuple("kv_data_type", p.kv_data_type, op::floats | op::fp8)})
    FI_CHECK(types.has(t), ValueError, name, " is ", flashinfer::name(t), ", but must be ", to_string(types));
  p.scale_mode = a.scale_mode;
  if (p.scale_mode == "default" && op::fp8.has(p.kv_data_type)) p.scale_mode = "kv-per-tensor";
  p.lse_mode = a.metadata.is_none() && a.lse_mode == "none" ? "any" : a.lse_mode;
  p.use_sinks = a.use_sinks;
  check_numbers(p);
  set_table(p, a);
  set_max_page(p);
  set_work(p);
  return p;
}

namespace {
void restore(Plan& p) {
  auto ints = [&](const char* name, const Tensor& t, int64_t n) {
    FI_CHECK(t.defined() && t.dtype() == DType::kI32 && t.rank() == 1 && t.size(0) == n && t.view().is_contiguous(),
             ValueError, "the plan's ", name, " is ", to_string(t.view()), ", but must be int32[", n, "]");
  };
  check_numbers(p);
  FI_CHECK(p.batch_size >= 0, ValueError, "the plan's batch_size is ", p.batch_size);
  ints("qo_indptr", p.qo_indptr, p.batch_size + 1);
  ints("kv_indptr", p.kv_indptr, p.batch_size + 1);
  ints("kv_len", p.kv_len, p.batch_size);
  FI_CHECK(op::check_indptr("qo_indptr", p.qo_indptr) == p.nnz_qo, ValueError, "the plan's nnz_qo is ", p.nnz_qo,
           ", which is not where its qo_indptr ends");
  ints("kv_indices", p.kv_indices, op::check_indptr("kv_indptr", p.kv_indptr));
  const int32_t *first = p.kv_indptr.data_as<int32_t>(), *len = p.kv_len.data_as<int32_t>();
  for (int64_t b = 0; b < p.batch_size; ++b)
    FI_CHECK(len[b] >= 0 && len[b] <= (first[b + 1] - first[b]) * p.page_size, ValueError, "the plan's kv_len[", b,
             "] is ", len[b], ", but its pages hold ", (first[b + 1] - first[b]) * p.page_size);
  const int64_t max_page = p.max_page;
  set_max_page(p);
  FI_CHECK(p.max_page <= max_page, ValueError, "the plan's max_page is ", max_page, ", but its kv_indices go to ",
           p.max_page);
  set_work(p);
}
}  // namespace

std::shared_ptr<const Plan> restored(const Plan& p) {
  if (p.nnz_qo == 0 || !p.work.works.empty()) return nullptr;
  const auto copy = std::make_shared<Plan>(p);
  restore(*copy);
  return copy;
}

}  // namespace flashinfer::mla
