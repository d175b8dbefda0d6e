// SPDX-License-Identifier: Apache-2.0
// run() of a wrapper with backend='cutlass', which brings its page table.
#include <cmath>

#include "flashinfer/core/transfer.h"
#include "flashinfer/ops/attention/api/narrow_output.h"
#include "flashinfer/ops/common/queries.h"
#include "flashinfer/ops/mla/plan.h"

namespace flashinfer::mla {
namespace {
constexpr int64_t kCkv = 512, kKpe = 64;
const TensorView& first_of(const char* name, const std::optional<TensorView>& part,
                           const std::optional<op::PagedKv>& whole) {
  FI_CHECK(part || whole, ValueError, name, " is missing");
  const TensorView& t = part ? *part : whole->first;
  FI_CHECK(t.rank() == 3, ValueError, name, " is ", to_string(t), ", but must have three dimensions");
  return t;
}
}  // namespace

bool takes_page_table(const Plan& made, const BatchMlaRun& a) {
  return made.backend == "cutlass" && (a.kv_len || a.page_table || !made.qo_indptr.defined());
}

op::Shape output_shape_of_run(const BatchMlaRun& a) {
  const TensorView& q = first_of("q_nope", a.q_nope, a.query);
  return {3, {q.size(0), q.size(1), kCkv}};
}

Plan plan_of_run(const BatchMlaRun& a) {
  FI_CHECK(a.kv_len && a.page_table, ValueError, a.kv_len ? "page_table" : "kv_len",
           " is missing: with backend='cutlass' run() takes the lengths and the page table");
  const TensorView &q = first_of("q_nope", a.q_nope, a.query), &cache = first_of("ckv_cache", a.ckv_cache, a.kv_cache);
  FI_CHECK(a.page_table->rank() == 2 && a.page_table->size(0) == q.size(0), ValueError, "page_table is ",
           to_string(*a.page_table), ", but must be [", q.size(0), ", pages] (requests of q_nope)");
  FI_CHECK(a.kv_len->rank() == 1 && a.kv_len->size(0) == q.size(0), ValueError, "kv_len is ", to_string(*a.kv_len),
           ", but must be [", q.size(0), "] (requests of q_nope)");
  Tensor rows = Tensor::empty({q.size(0) + 1}, DType::kI32);
  for (int64_t b = 0; b <= q.size(0); ++b) rows.data_as<int32_t>()[b] = static_cast<int32_t>(b);
  BatchMlaPlan m;
  m.num_heads = q.size(1), m.head_dim_ckv = kCkv, m.head_dim_kpe = kKpe, m.page_size = cache.size(1);
  m.causal = false, m.sm_scale = 1 / std::sqrt(128.0 + 64.0);
  m.q_data_type = q.dtype(), m.kv_data_type = cache.dtype();
  m.output_dtype = a.out ? attention::computed_dtype(a.out->dtype()) : ops::default_output(q.dtype());
  const Tensor pages = host_readable(*a.page_table), lengths = host_readable(*a.kv_len);  // of a GPU: waits
  m.cum_seq_lens_q = rows.view(), m.block_tables = pages.view(), m.seq_lens = lengths.view();
  Plan p = plan_of_arguments(m);
  p.use_sinks = a.sinks.has_value();
  return p;
}

void check_output_scale(const BatchMlaRun& a) {
  const bool narrow = a.out && a.out->dtype() == DType::kF8E4M3;
  FI_CHECK(narrow == a.o_scale.has_value(), ValueError,
           !a.o_scale ? "o_scale is missing: out is float8_e4m3fn"
           : a.out    ? str("out must be an FP8 tensor (float8_e4m3fn) with o_scale, but is ", to_string(*a.out))
                      : std::string("out tensor must be provided with o_scale"));
  FI_CHECK(!a.o_scale || (*a.o_scale > 0 && std::isfinite(*a.o_scale)), ValueError,
           "o_scale must be a finite positive value, but is ", a.o_scale.value_or(0));
}

}  // namespace flashinfer::mla
