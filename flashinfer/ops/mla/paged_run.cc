// SPDX-License-Identifier: Apache-2.0
// BatchMLAPagedAttentionWrapper.run.
#include <cmath>
#include <memory>

#include "flashinfer/core/int_math.h"
#include "flashinfer/core/transfer.h"
#include "flashinfer/ops/attention/api/narrow_output.h"
#include "flashinfer/ops/common/queries.h"
#include "flashinfer/ops/mla/cases.h"
#include "flashinfer/ops/mla/plan.h"

namespace flashinfer::mla {
namespace {

using attention::throw_if_given;
constexpr const char* kNeedsGpu = "it belongs to a GPU back end";

/// The receiver's plan, or one of this call.
using PlanRef = std::shared_ptr<const Plan>;
PlanRef plan_of(const BatchMlaRun& a) {
  const Plan& p = a.self->as<Plan>();
  FI_CHECK(!a.o_scale || p.backend == "cutlass", ValueError,
           "o_scale is only supported with the cutlass back end, but backend is ", op::python_repr(p.backend));
  if (takes_page_table(p, a)) return std::make_shared<const Plan>(plan_of_run(a));
  if (!p.qo_indptr.defined()) throw RuntimeError(str("plan() has not been called"));
  return {PlanRef(), &p};
}

/// `whole` or its two parts of `first` and the remaining elements of the last dimension.
struct Parts {
  TensorView first, second;
};
Parts parts_of(const std::optional<op::PagedKv>& given, const std::optional<TensorView>& first,
               const std::optional<TensorView>& second, int64_t width) {
  if (given && given->stacked) {
    const TensorView& t = given->first;
    if (t.rank() != 3 || t.size(2) < width) return {t, {}};  // check_part says what is wrong
    return {t.slice(2, 0, width), t.slice(2, width, t.size(2))};
  }
  if (given) return {given->first, given->second};
  return {first ? *first : TensorView(), second ? *second : TensorView()};
}
Parts query_of(const BatchMlaRun& a, const Plan& p) { return parts_of(a.query, a.q_nope, a.q_pe, p.head_dim_ckv); }
Parts cache_of(const BatchMlaRun& a, const Plan& p) {
  return parts_of(a.kv_cache, a.ckv_cache, a.kpe_cache, p.head_dim_ckv);
}

struct Want {
  int64_t size[3];  // < 0: any
  DType dtype;
};
void check_part(const std::string& name, const TensorView& t, const Want& want) {
  bool fits = t.rank() == 3;
  for (int i = 0; fits && i < 3; ++i) fits = want.size[i] < 0 || t.size(i) == want.size[i];
  auto extent = [&](int i) { return want.size[i] < 0 ? std::string("pages") : std::to_string(want.size[i]); };
  FI_CHECK(fits && t.dtype() == want.dtype, ValueError, name, " is ", t.defined() ? to_string(t) : "missing",
           ", but plan() was given ", flashinfer::name(want.dtype), "[", extent(0), ", ", extent(1), ", ", extent(2),
           "]");
}
/// A query or a cache: either one argument or two, of the planned shape.
void check_parts(const char* whole, const char* first, const char* second, bool given, bool has_first, bool has_second,
                 const Parts& t, const Want& want, int64_t second_dim) {
  FI_CHECK(!given || (!has_first && !has_second), ValueError, whole, " was given, so ", first, " and ", second,
           " must not be given beside it");
  check_part(given ? str(whole, "[..., :", want.size[2], "]") : std::string(first), t.first, want);
  if (second_dim || t.second.defined())
    check_part(given ? str(whole, "[..., ", want.size[2], ":]") : std::string(second), t.second,
               {{t.first.size(0), t.first.size(1), second_dim}, want.dtype});
}

[[noreturn]] void differs(const std::string& what) { throw ValueError(str("MLA planned run argument ", what)); }

void check_lse(const BatchMlaRun& a, const Plan& p) {
  const std::string mode = !a.return_lse ? "none" : a.return_lse_base_on_e ? "basee" : "base2";
  if (p.lse_mode != "any" && p.lse_mode != mode)
    differs(str("return_lse=", a.return_lse ? "True" : "False",
                ", return_lse_base_on_e=", a.return_lse_base_on_e ? "True" : "False", " is lse_mode ",
                op::python_repr(mode), ", but plan() was given ", op::python_repr(p.lse_mode)));
}
void check_positive(const char* name, const std::optional<double>& v) {
  FI_CHECK(!v || (*v > 0 && std::isfinite(*v)), ValueError, name, " is ", v.value_or(0),
           ", but must be positive and finite");
}
void check_scales(const BatchMlaRun& a, const Plan& p, const Parts& cache) {
  const bool kv = p.scale_mode == "kv-per-tensor", bmm = p.scale_mode == "bmm-scalar" || p.scale_mode == "bmm-tensor";
  auto belongs = [&](const char* name, bool given, bool mode) {
    if (given && !mode)
      differs(str(name, " was given, but plan() was given scale_mode ", op::python_repr(p.scale_mode)));
  };
  belongs("ckv_scale", a.ckv_scale.has_value(), kv);
  belongs("ckv_scale_arr", a.ckv_scale_arr.has_value(), kv);
  belongs("kpe_scale", a.kpe_scale.has_value(), kv);
  belongs("bmm1_scale", a.bmm1_scale.has_value(), bmm);
  belongs("bmm2_scale", a.bmm2_scale.has_value(), bmm);
  if (kv) {
    if (a.ckv_scale.has_value() == a.ckv_scale_arr.has_value())
      differs(str("ckv_scale or ckv_scale_arr, exactly one, belongs to scale_mode 'kv-per-tensor', but ",
                  a.ckv_scale ? "both" : "none", " was given"));
    if (p.head_dim_kpe && !a.kpe_scale) differs("kpe_scale is missing, which belongs to scale_mode 'kv-per-tensor'");
    check_positive("ckv_scale", a.ckv_scale);
    check_positive("kpe_scale", a.kpe_scale);
    const int64_t groups = ceil_div(p.head_dim_ckv, kScaleGroup);
    if (const auto& s = a.ckv_scale_arr)
      FI_CHECK(s->rank() == 3 && s->size(0) == cache.first.size(0) && s->size(1) == p.page_size && s->size(2) == groups,
               ValueError, "ckv_scale_arr is ", to_string(*s), ", but must be [", cache.first.size(0), ", ",
               p.page_size, ", ", groups, "] (pages, page_size, groups of ", kScaleGroup, " channels)");
  }
  if (bmm && (!a.bmm1_scale || !a.bmm2_scale))
    differs(str(a.bmm1_scale ? "bmm2_scale" : "bmm1_scale", " is missing, which belongs to scale_mode ",
                op::python_repr(p.scale_mode)));
  for (const auto& [name, s] : {std::pair("bmm1_scale", &a.bmm1_scale), std::pair("bmm2_scale", &a.bmm2_scale)}) {
    if (!*s) continue;
    const TensorView* t = (*s)->tensor();
    if ((t != nullptr) != (p.scale_mode == "bmm-tensor"))
      differs(str(name, " is a ", t ? "tensor" : "number", ", but plan() was given scale_mode ",
                  op::python_repr(p.scale_mode)));
    FI_CHECK(!t || (t->numel() == 1 && t->dtype() == DType::kF32), ValueError, name, " is ", to_string(*t),
             ", but must be one float32");
  }
}

void validate_run(const BatchMlaRun& a) {
  const PlanRef plan = plan_of(a);
  const Plan& p = *plan;
  throw_if_given("profiler_buffer", a.profiler_buffer.has_value(), kNeedsGpu);
  if (takes_page_table(a.self->as<Plan>(), a)) {
    check_output_scale(a);
  } else {
    throw_if_given("kv_len", a.kv_len.has_value(), "it belongs to backend='cutlass': plan() takes the lengths");
    throw_if_given("page_table", a.page_table.has_value(),
                   "it belongs to backend='cutlass': plan() takes the page table");
    if (a.o_scale) differs("o_scale was given, but plan() was given output_scale 'none'");
  }
  if (a.skip_softmax_threshold_scale_factor)
    differs("skip_softmax_threshold_scale_factor was given, but plan() was given skip_softmax=False");
  if (a.sinks.has_value() != p.use_sinks)
    differs(str("sinks ", a.sinks ? "was given" : "is missing",
                ", but plan() was given use_sinks=", p.use_sinks ? "True" : "False"));
  check_lse(a, p);
  const Parts q = query_of(a, p), kv = cache_of(a, p);
  check_parts("query", "q_nope", "q_pe", a.query.has_value(), a.q_nope.has_value(), a.q_pe.has_value(), q,
              {{p.nnz_qo, p.num_heads, p.head_dim_ckv}, p.q_data_type}, p.head_dim_kpe);
  check_parts("kv_cache", "ckv_cache", "kpe_cache", a.kv_cache.has_value(), a.ckv_cache.has_value(),
              a.kpe_cache.has_value(), kv, {{-1, p.page_size, p.head_dim_ckv}, p.kv_data_type}, p.head_dim_kpe);
  check_scales(a, p, kv);
  if (a.sinks)
    FI_CHECK(a.sinks->rank() == 1 && a.sinks->size(0) == p.num_heads, ValueError, "sinks is ", to_string(*a.sinks),
             ", but must be [", p.num_heads, "] (num_heads)");
  const int64_t pages = kv.first.size(0);
  FI_CHECK(p.max_page < pages, ValueError, "kv_indices of plan() go up to ", p.max_page, ", but the cache has ", pages,
           " pages");
}

Call call_of(const BatchMlaRun& a, const Plan& p) {
  const Parts q = query_of(a, p), kv = cache_of(a, p);
  Call c;
  c.q_nope = q.first, c.q_pe = q.second, c.ckv = kv.first, c.kpe = kv.second;
  if (a.out) c.out = *a.out;
  if (a.lse) c.lse = &*a.lse;
  c.natural_lse = a.return_lse_base_on_e;
  c.scale = p.sm_scale;
  if (a.bmm1_scale) c.set_scales(scale_of("bmm1_scale", *a.bmm1_scale), scale_of("bmm2_scale", *a.bmm2_scale));
  if (a.ckv_scale) c.scale *= *a.ckv_scale, c.v_scale = *a.ckv_scale;
  if (a.o_scale) c.v_scale /= *a.o_scale;
  if (a.kpe_scale) c.kpe_ratio = *a.kpe_scale / a.ckv_scale.value_or(1.0);
  if (a.ckv_scale_arr) c.ckv_scales = &*a.ckv_scale_arr;
  if (a.sinks) c.sinks = &*a.sinks;
  return c;
}
op::Shape out_shape(const BatchMlaRun& a) {
  if (takes_page_table(a.self->as<Plan>(), a)) return output_shape_of_run(a);
  const PlanRef p = plan_of(a);
  return {3, {p->nnz_qo, p->num_heads, p->head_dim_ckv}};
}
op::Shape lse_shape(const BatchMlaRun& a) {
  const op::Shape out = out_shape(a);
  return {2, {out.size[0], out.size[1]}};
}
DType out_dtype(const BatchMlaRun& a) {
  if (!takes_page_table(a.self->as<Plan>(), a)) return plan_of(a)->output_dtype;
  return a.out ? a.out->dtype() : ops::default_output(a.q_nope ? a.q_nope->dtype() : a.query->first.dtype());
}
op::Cost cost(const BatchMlaRun& a) {
  const PlanRef plan = plan_of(a);
  const Plan& p = *plan;
  op::Cost c;
  const double key = static_cast<double>(p.head_dim_ckv + p.head_dim_kpe);
  for (int64_t b = 0; b < p.batch_size; ++b) {
    const double keys = p.kv_len.data_as<int32_t>()[b],
                 rows = p.qo_indptr.data_as<int32_t>()[b + 1] - p.qo_indptr.data_as<int32_t>()[b];
    double pairs = rows * keys;
    if (p.causal) pairs = keys >= rows ? rows * (keys - rows) + rows * (rows + 1) / 2 : keys * (keys + 1) / 2;
    c.flops += 2.0 * pairs * static_cast<double>(p.num_heads) * (key + static_cast<double>(p.head_dim_ckv));
    if (rows > 0) c.bytes += keys * key * static_cast<double>(size_of(p.kv_data_type));
  }
  c.bytes +=
      static_cast<double>(p.nnz_qo * p.num_heads) * (key * static_cast<double>(size_of(p.q_data_type)) +
                                                     static_cast<double>(p.head_dim_ckv * size_of(p.output_dtype)));
  return c;
}

struct Run {
  static op::Prepared cpu(const BatchMlaRun& a) {
    const PlanRef p = plan_of(a);
    if (p.get() == &a.self->as<Plan>()) return prepare(*p, call_of(a, *p));
    attention::Launches launches;
    launches.add([&] { return prepare(*p, call_of(a, *p)); });
    launches.keep(p);
    return std::move(launches).prepared();
  }
  static op::Prepared cuda(const BatchMlaRun& a) {
    const PlanRef p = plan_of(a);
    return prepare_cuda(*p, call_of(a, *p));
  }
  static void reference(const BatchMlaRun& a) {
    const PlanRef p = plan_of(a);
    run_reference(*p, call_of(a, *p));
  }
};

constexpr op::Field run_fields[] = {
    op::self<&BatchMlaRun::self>(),
    op::in<&BatchMlaRun::q_nope>("q_nope", nullptr, ops::kQueryTypes),
    op::in<&BatchMlaRun::q_pe>("q_pe", nullptr, ops::kQueryTypes),
    op::paged<&BatchMlaRun::ckv_cache>("ckv_cache", nullptr, op::floats | op::fp8),
    op::paged<&BatchMlaRun::kpe_cache>("kpe_cache", nullptr, op::floats | op::fp8),
    op::out<&BatchMlaRun::out>("out", nullptr, op::floats | DType::kF8E4M3, op::shape<out_shape>, op::dtype<out_dtype>),
    op::out<&BatchMlaRun::lse>("lse", nullptr, DType::kF32, op::shape<lse_shape>, op::when<&BatchMlaRun::return_lse>),
    op::attr<&BatchMlaRun::return_lse>("return_lse"),
    op::in<&BatchMlaRun::profiler_buffer>("profiler_buffer", nullptr),
    op::in<&BatchMlaRun::kv_len>("kv_len", nullptr),
    op::in<&BatchMlaRun::page_table>("page_table", nullptr, op::page_ids),
    op::attr<&BatchMlaRun::return_lse_base_on_e>("return_lse_base_on_e"),
    op::attr<&BatchMlaRun::o_scale>("o_scale"),
    op::in<&BatchMlaRun::query>("query", nullptr, ops::kQueryTypes, op::keyword_only),
    op::paged<&BatchMlaRun::kv_cache>("kv_cache", nullptr, op::floats | op::fp8),
    op::attr<&BatchMlaRun::ckv_scale>("ckv_scale"),
    op::in<&BatchMlaRun::ckv_scale_arr>("ckv_scale_arr", nullptr, DType::kF32, op::contiguous),
    op::attr<&BatchMlaRun::kpe_scale>("kpe_scale"),
    op::in<&BatchMlaRun::sinks>("sinks", nullptr, DType::kF32),
    op::attr<&BatchMlaRun::skip_softmax_threshold_scale_factor>("skip_softmax_threshold_scale_factor"),
    op::in<&BatchMlaRun::bmm1_scale>("bmm1_scale", nullptr),
    op::in<&BatchMlaRun::bmm2_scale>("bmm2_scale", nullptr),
};
using Narrow = attention::NarrowOutput<BatchMlaRun, Run, &BatchMlaRun::out>;
}  // namespace

constinit const op::Op run_op = op::define<BatchMlaRun, validate_run, cost>(
    kRun, kModule,
    "out = softmax(sm_scale * (q_nope ckv^T + q_pe kpe^T)) ckv over each request's pages; lse in base 2.", run_fields,
    Narrow::candidates, ops::mla::run_cases, {.rtol = -1, .atol = -1}, &plan_type);

}  // namespace flashinfer::mla
