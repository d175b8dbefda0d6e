// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/attention/plan/plan.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <limits>
#include <tuple>

#include "flashinfer/core/context.h"
#include "flashinfer/ops/attention/api/checks.h"
#include "flashinfer/ops/attention/variant/variant_call.h"

namespace flashinfer::attention {
namespace {

constexpr op::Field plan_fields[] = {
    op::attr<&Plan::kv_layout>("kv_layout"),
    op::attr<&Plan::paged>("paged"),
    op::attr<&Plan::use_cuda_graph>("use_cuda_graph"),
    op::attr<&Plan::fixed_batch_size>("fixed_batch_size"),
    op::attr<&Plan::max_rows>("max_rows"),
    op::attr<&Plan::fixed_q_len>("fixed_q_len"),
    op::attr<&Plan::batch_size>("batch_size"),
    op::attr<&Plan::num_qo_heads>("num_qo_heads"),
    op::attr<&Plan::num_kv_heads>("num_kv_heads"),
    op::attr<&Plan::head_dim_qk>("head_dim_qk"),
    op::attr<&Plan::head_dim_vo>("head_dim_vo"),
    op::attr<&Plan::page_size>("page_size"),
    op::attr<&Plan::nnz_qo>("nnz_qo"),
    op::attr<&Plan::nnz_kv>("nnz_kv"),
    op::attr<&Plan::q_len_per_req>("q_len_per_req"),
    op::attr<&Plan::any_q_len>("any_q_len"),
    op::attr<&Plan::q_data_type>("q_data_type"),
    op::attr<&Plan::kv_data_type>("kv_data_type"),
    op::attr<&Plan::o_data_type>("o_data_type"),
    op::attr<&Plan::causal>("causal"),
    op::attr<&Plan::window_left>("window_left"),
    op::attr<&Plan::sm_scale>("sm_scale"),
    op::attr<&Plan::logits_soft_cap>("logits_soft_cap"),
    op::attr<&Plan::rope_scale>("rope_scale"),
    op::attr<&Plan::rope_theta>("rope_theta"),
    op::attr<&Plan::pos_encoding_mode>("pos_encoding_mode"),
    op::in<&Plan::qo_indptr>("qo_indptr", nullptr),
    op::in<&Plan::kv_indptr>("kv_indptr", nullptr),
    op::in<&Plan::kv_indices>("kv_indices", nullptr, op::page_ids),
    op::in<&Plan::kv_len>("kv_len", nullptr),
    op::attr<&Plan::max_page>("max_page"),
    op::in<&Plan::mask>("mask", nullptr),
    op::in<&Plan::mask_indptr>("mask_indptr", nullptr),
    op::in<&Plan::prefix_len>("prefix_len", nullptr),
    op::in<&Plan::token_pos>("token_pos", nullptr),
    op::in<&Plan::alibi_slopes>("alibi_slopes", nullptr),
    op::attr<&Plan::jit_args>("jit_args"),
    op::attr<&Plan::variant_owns_mask>("variant_owns_mask"),
};

void check_positive(const char* name, int64_t value) {
  FI_CHECK(value >= 1, ValueError, name, " is ", value, ", but must be at least 1");
}
/// What run() will take: plan() is where the caller named it.
void check_types(const Plan& p, bool narrow_output) {
  const DTypeSet outputs = narrow_output ? op::floats | DType::kF8E4M3 : op::floats;
  for (const auto& [what, t, types] :
       {std::tuple("q_data_type", p.q_data_type, ops::kQueryTypes),
        std::tuple("kv_data_type", p.kv_data_type, kCacheTypes), std::tuple("o_data_type", p.o_data_type, outputs)})
    FI_CHECK(types.has(t), ValueError, what, " is ", name(t), ", but must be ", to_string(types));
}

}  // namespace

constexpr const char* kAliases =
    "begin_forward=plan; run_return_lse=run(return_lse=True); forward_return_lse=forward(return_lse=True); "
    "end_forward=";
constinit const op::StateType plan_type = op::state_type<Plan>(plan_fields, kAliases);

namespace {
template <size_t N>
constexpr std::array<op::Field, N + 2> list_fields_of(const op::Field (&fields)[N]) {
  std::array<op::Field, N + 2> out;
  for (size_t i = 0; i < N; ++i) out[i] = fields[i];
  out[N] = op::attr<&PlanList::count>("count");
  out[N + 1] = op::in<&PlanList::batches>("batches", nullptr);
  return out;
}
constexpr auto list_fields = list_fields_of(plan_fields);  // the base is the state's first member
}  // namespace
constinit const op::StateType plan_list_type = op::state_type<PlanList>(list_fields, kAliases),
                              cascade_plan_type = op::state_type<PlanList>(
                                  list_fields, "begin_forward=plan; forward=run; end_forward="),
                              sparse_list_type =
                                  op::state_type<PlanList>(list_fields, "begin_forward=plan; end_forward=");
constinit const op::StateType sparse_plan_type = op::state_type<Plan>(plan_fields, "begin_forward=plan; end_forward=");

void set_options(Plan& p, const Options& o) {
  check_positive("num_qo_heads", p.num_qo_heads);
  check_positive("num_kv_heads", p.num_kv_heads);
  FI_CHECK(p.num_qo_heads % p.num_kv_heads == 0, ValueError, "num_qo_heads is ", p.num_qo_heads,
           ", but must be a multiple of num_kv_heads, which is ", p.num_kv_heads);
  check_positive("head_dim_qk", p.head_dim_qk);
  check_positive("head_dim_vo", p.head_dim_vo);
  check_types(p, o.narrow_output);
  p.window_left = std::max<int64_t>(o.window_left, -1);
  p.pos_encoding_mode = o.pos_encoding_mode;
  p.sm_scale = o.sm_scale.value_or(1.0 / std::sqrt(static_cast<double>(p.head_dim_qk)));
  p.logits_soft_cap = o.logits_soft_cap.value_or(0.0);
  p.rope_scale = o.rope_scale.value_or(1.0);
  p.rope_theta = o.rope_theta.value_or(1e4);
  FI_CHECK(std::isfinite(p.sm_scale), ValueError, "sm_scale is ", p.sm_scale, ", but must be finite");
  FI_CHECK(p.logits_soft_cap >= 0 && std::isfinite(p.logits_soft_cap), ValueError, "logits_soft_cap is ",
           p.logits_soft_cap, ", but must be at least 0 (0: none) and finite");
  if (!p.jit_args.is_none()) check_variant(p);
  if (p.pos_encoding_mode != "ROPE_LLAMA") return;
  FI_CHECK(p.head_dim_qk % 2 == 0, ValueError, "head_dim_qk is ", p.head_dim_qk,
           ", but ROPE_LLAMA turns pairs: it must be even");
  FI_CHECK(p.rope_scale > 0, ValueError, "rope_scale is ", p.rope_scale, ", but must be positive");
  FI_CHECK(p.rope_theta > 0, ValueError, "rope_theta is ", p.rope_theta, ", but must be positive");
}

bool decode_supports(const Plan& p) {
  return p.pos_encoding_mode != "ROPE_LLAMA" && !p.mask.defined() && !p.prefix_len.defined() && p.jit_args.is_none();
}

int64_t longest_rows(const Plan& p) {
  if (p.longest_of.data() == p.qo_indptr.data() && p.longest_of.numel() == p.batch_size + 1) return p.longest;
  const int32_t* qo = p.qo_indptr.data_as<int32_t>();
  int64_t most = 0;
  for (int64_t b = 0; b < p.batch_size; ++b) most = std::max<int64_t>(most, qo[b + 1] - qo[b]);
  return most;
}

namespace {
std::atomic<int64_t> g_set_work_calls{0};
}  // namespace

int64_t set_work_calls() { return g_set_work_calls.load(std::memory_order_relaxed); }

void set_work(Plan& p) {
  g_set_work_calls.fetch_add(1, std::memory_order_relaxed);
  p.longest_of = {};
  p.longest = longest_rows(p);
  p.longest_of = Tensor(p.qo_indptr.view().slice(0, 0, p.batch_size + 1), p.qo_indptr.owner());
  const auto qo = p.qo_indptr.span<int32_t>();
  for (int64_t b = 0; b < p.batch_size; ++b) {
    const int64_t rows =
        static_cast<int64_t>(qo[static_cast<size_t>(b + 1)] - qo[static_cast<size_t>(b)]) * p.num_qo_heads;
    FI_CHECK(rows <= std::numeric_limits<int32_t>::max(), ValueError, "request ", b, " has ", rows,
             " rows (tokens * heads), more than 32 bits hold");
  }
  p.work = make_work({.qo_indptr = qo,
                      .kv_len = p.kv_len.span<int32_t>(),
                      .num_qo_heads = p.num_qo_heads,
                      .num_kv_heads = p.num_kv_heads,
                      .kv_bytes = static_cast<int64_t>(static_cast<double>(p.head_dim_qk + p.head_dim_vo) *
                                                       cache_bytes(p.kv_data_type)),
                      .causal = p.causal && !p.mask.defined(),
                      .window_left = p.window_left,
                      .heads_adjacent = p.kv_layout == "NHD",
                      .decode = decode_supports(p),
                      .threads = Context::current().executor.threads});
}

void restore(Plan& p) {
  auto ints = [&](const char* name, Tensor& t, int64_t n) {
    FI_CHECK(t.defined() && t.dtype() == DType::kI32 && t.rank() == 1 && t.size(0) == n && t.view().is_contiguous(),
             ValueError, "the plan's ", name, " is ", to_string(t.view()), ", but must be int32[", n, "]");
  };
  set_options(p, {p.window_left, p.pos_encoding_mode, p.sm_scale, p.logits_soft_cap, p.rope_scale, p.rope_theta});
  check_positive("the plan's page_size", p.page_size);
  FI_CHECK(p.batch_size >= 0, ValueError, "the plan's batch_size is ", p.batch_size);
  ints("qo_indptr", p.qo_indptr, p.batch_size + 1);
  ints("kv_indptr", p.kv_indptr, p.batch_size + 1);
  ints("kv_len", p.kv_len, p.batch_size);
  const int64_t rows = op::check_indptr("qo_indptr", p.qo_indptr), used = op::check_indptr("kv_indptr", p.kv_indptr);
  FI_CHECK(rows == p.nnz_qo, ValueError, "the plan's nnz_qo is ", p.nnz_qo, ", but its qo_indptr ends at ", rows);
  const int32_t *first = p.kv_indptr.data_as<int32_t>(), *len = p.kv_len.data_as<int32_t>();
  for (int64_t b = 0; b < p.batch_size; ++b) {
    const int64_t room = static_cast<int64_t>(first[b + 1] - first[b]) * (p.paged ? p.page_size : 1);
    FI_CHECK(len[b] >= 0 && len[b] <= room, ValueError, "the plan's kv_len[", b, "] is ", len[b],
             ", but its tables hold ", room);
  }
  if (p.paged) {
    ints("kv_indices", p.kv_indices, used);
    op::check_index_range("kv_indices", p.kv_indices, 0, p.max_page + 1, "the plan's max_page");
  } else {
    FI_CHECK(used == p.nnz_kv, ValueError, "the plan's nnz_kv is ", p.nnz_kv, ", but its kv_indptr ends at ", used);
  }
  if (p.alibi_slopes.defined()) {
    const Tensor slopes = p.alibi_slopes;
    set_slopes(p, slopes.view());
  }
  if (p.mask.defined()) {
    const Tensor bits = p.mask;
    set_mask(p, std::nullopt, bits.view());  // checks the size
  }
  if (p.prefix_len.defined()) {
    const Tensor prefix = p.prefix_len, pos = p.token_pos;
    FI_CHECK(pos.defined() && pos.rank() == 2, ValueError, "the plan's token_pos is ", to_string(pos.view()));
    set_items(p, {prefix.view(), pos.view(), pos.size(1), std::nullopt});
  }
  set_work(p);
}

}  // namespace flashinfer::attention
