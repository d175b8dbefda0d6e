// SPDX-License-Identifier: Apache-2.0
// Checks and table entries that the attention ops share. Internal to the family.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "flashinfer/core/layout_error.h"
#include "flashinfer/ops/attention/op.h"
#include "flashinfer/ops/attention/plan/plan.h"
#include "flashinfer/ops/attention/run.h"
#include "flashinfer/ops/attention/variant/variant_call.h"
#include "flashinfer/ops/common/queries.h"

namespace flashinfer::attention {

constexpr const char* kNeedsGpu = "it belongs to a GPU back end";
constexpr DTypeSet kMaskTypes = DTypeSet(DType::kBool) | DType::kU8;
constexpr const char* kBackends = "auto|fa2:cuda|fa3:cuda|cudnn:cuda|trtllm-gen:cuda|cute-dsl:cuda|cutlass:cuda";
constexpr DTypeSet kCacheTypes = op::floats | op::fp8 | DType::kU8 | DType::kF4E2M1x2;  // bytes: NVFP4 pairs
constexpr DTypeSet kScaleTypes = DTypeSet(DType::kF8E4M3) | DType::kU8;
constexpr DTypeSet kPrefixTypes = op::indices | DType::kU32, kItemTypes = op::indices | DType::kU16;
constexpr const char* kModes = "NONE|ROPE_LLAMA|ALIBI";

[[noreturn]] inline void throw_unsupported(std::string_view argument, std::string_view why) {
  throw NotImplementedError(str(argument, " is not supported: ", why));
}
inline void throw_if_given(std::string_view argument, bool given, std::string_view why) {
  if (given) throw_unsupported(argument, why);
}
/// Kernels of GPUs skip blocks of keys whose weight is below a threshold that this factor sets; here none is skipped.
inline void check_skip_softmax(const std::optional<double>& factor) {
  FI_CHECK(!factor || *factor > 0, ValueError, "skip_softmax_threshold_scale_factor is ", factor.value_or(0),
           ", but must be positive");
}
/// A plan's kv_data_type where run() has no place for the scales of an NVFP4 cache.
inline DType type_without_scales(DType t) {
  throw_if_given("kv_data_type=uint8", cache_type(t) == DType::kF4E2M1x2,
                 "an NVFP4 cache needs kv_cache_sf, which run() does not take");
  return t;
}
/// The plan of a receiver. AssertionError before plan().
inline const Plan& plan_of(const op::Object* self) {
  const Plan& p = self->as<Plan>();
  if (!p.qo_indptr.defined()) throw_error(ErrorKind::kAssertionError, str("plan() has not been called"));
  return p;
}
template <class Run>
PlanRef planned(const Run& a) {
  return borrowed(plan_of(a.self));
}

/// What the three run() methods check: tensors against the plan. `k_from`, `v_from` name K and V in messages.
inline void check_run(const Plan& p, const TensorView& q, const Planes& kv, std::string_view k_from,
                      std::string_view v_from) {
  FI_CHECK(q.dtype() == p.q_data_type, ValueError, "q.dtype is ", name(q.dtype()),
           ", but plan() was given q_data_type=", name(p.q_data_type));
  FI_CHECK(kv.k.dtype == p.kv_data_type, ValueError, k_from, ".dtype is ", name(kv.k.dtype),
           ", but plan() was given kv_data_type=", name(p.kv_data_type));
  FI_CHECK(q.size(0) == p.nnz_qo, ValueError, "q.shape[0] is ", q.size(0), ", but plan() was given ", p.nnz_qo,
           " query tokens in all", p.q_len_per_req > 1 ? str(" (q_len_per_req=", p.q_len_per_req, ")") : std::string());
  FI_CHECK(q.size(1) == p.num_qo_heads, ValueError, "q.shape[1] is ", q.size(1),
           ", but plan() was given num_qo_heads=", p.num_qo_heads);
  FI_CHECK(q.size(2) == p.head_dim_qk, ValueError, "q.shape[2] is ", q.size(2), ", but plan() was given a head dim of ",
           p.head_dim_qk);
  for (const auto& [plane, from, dim] :
       {std::tuple(&kv.k, k_from, p.head_dim_qk), std::tuple(&kv.v, v_from, p.head_dim_vo)}) {
    FI_CHECK(plane->heads == p.num_kv_heads, ValueError, from, " has ", plane->heads,
             " heads, but plan() was given num_kv_heads=", p.num_kv_heads);
    FI_CHECK(plane->dim == dim, ValueError, from, " has a head dim of ", plane->dim, ", but plan() was given ", dim);
  }
}
inline void check_pool(const Plan& p, const Planes& kv, const char* indices) {
  FI_CHECK(kv.k.page_size == p.page_size, ValueError, "paged_kv_cache has pages of ", kv.k.page_size,
           " tokens, but plan() was given page_size=", p.page_size);
  if (p.max_page < kv.k.pages) return;
  const int32_t* page = p.kv_indices.data_as<int32_t>();
  int64_t i = 0;
  while (page[i] < kv.k.pages) ++i;
  throw ValueError(str(indices, "[", i, "] of plan() is ", page[i], ", but paged_kv_cache has ", kv.k.pages, " pages"));
}
inline void check_window(const Plan& p, const std::optional<int64_t>& window_left) {
  if (window_left && std::max<int64_t>(*window_left, -1) != p.window_left)
    throw_error(ErrorKind::kAssertionError,
                str("window_left is ", *window_left, ", but plan() was given ", p.window_left));
}
/// A hint of all plans. -1, which engines pass always, and 0 mean none, as in FlashInfer.
inline void check_split_size(const std::optional<int64_t>& size) {
  FI_CHECK(!size || *size >= -1, ValueError, "fixed_split_size is ", size.value_or(0),
           ", but must be at least 1, or -1 for none");
}
inline void check_sinks(const Plan& p, const std::optional<TensorView>& sinks) {
  FI_CHECK(!sinks || (sinks->rank() == 1 && sinks->size(0) == p.num_qo_heads), ValueError, "sinks is ",
           to_string(*sinks), ", but must be [", p.num_qo_heads, "] (num_qo_heads)");
}
/// A scale for each of `heads` heads.
inline const TensorView* head_scales(const char* name, const TensorView* t, int64_t heads) {
  if (!t) return nullptr;
  FI_CHECK(t->rank() == 1 && t->size(0) == heads && t->dtype() == DType::kF32, ValueError, name, " is ", to_string(*t),
           ", but must be float32[", heads, "]: one for each head");
  return t;
}
inline void set_head_scales(const Plan& p, Call& c, const TensorView* q, const TensorView* k, const TensorView* v) {
  c.q_head_scales = head_scales("scale_q", q, p.num_qo_heads);
  c.k_head_scales = head_scales("scale_k", k, p.num_kv_heads);
  c.v_head_scales = head_scales("scale_v", v, p.num_kv_heads);
}
/// Positional arguments of run() that no custom variant declares: scale_q, scale_k and scale_v of an 8-bit q.
inline void set_positional_scales(const Plan& p, Call& c, const op::Value& args) {
  const auto* given = op::sequence_items(args);
  if (!given || given->empty() || !p.jit_args.is_none() || !op::fp8.has(p.q_data_type)) return;
  FI_CHECK(given->size() == 3, TypeError, "there are ", given->size(),
           " additional arguments, but an 8-bit q has three: scale_q, scale_k, scale_v");
  const TensorView* scales[3];
  for (size_t i = 0; i < 3; ++i) {
    scales[i] = (*given)[i].tensor();
    FI_CHECK(scales[i] || (*given)[i].is_none(), TypeError, "additional argument ", i,
             " must be a tensor (scale_q, scale_k, scale_v), but is ", op::type_name((*given)[i]));
  }
  set_head_scales(p, c, scales[0], scales[1], scales[2]);
  c.args = {};
}
/// The additional arguments of a run() without a custom variant.
template <class Run>
void check_args(const Plan& p, const Run& a) {
  if constexpr (requires { a.args; }) {
    Call c;
    c.args = a.args;
    set_positional_scales(p, c, a.args);
    const auto* left = op::sequence_items(c.args);
    FI_CHECK(!left || left->empty() || !p.jit_args.is_none(), TypeError, left->size(),
             " additional arguments were given, but there are no jit_args that declare any");
  }
}
/// What the run() methods over a pool check.
template <class Run>
void check_paged_run(const Plan& p, const Run& a, const char* indices) {
  const Planes kv = cache_planes(a.paged_kv_cache, p.kv_layout);
  check_run(p, a.q, kv, "paged_kv_cache (K)", "paged_kv_cache (V)");
  check_pool(p, kv, indices);
  if constexpr (requires { a.kv_cache_sf; })
    scale_planes(a.kv_cache_sf, p.kv_layout, kv, true);
  else
    scale_planes(std::nullopt, p.kv_layout, kv, true);
  check_args(p, a);
}
/// run()'s scales, and where the results go.
template <class Run>
Call call_of(const Plan& p, const Run& a, const Planes& kv) {
  Call c;
  c.q = a.q, c.kv = kv;
  if (a.out) c.out = *a.out;
  c.lse = a.lse;
  if constexpr (requires { a.args; }) c.args = a.args;
  if constexpr (requires { a.q_scale; }) c.q_scale = a.q_scale.value_or(1.0);
  c.k_scale = a.k_scale.value_or(1.0), c.v_scale = a.v_scale.value_or(1.0);
  if constexpr (requires { a.args; }) set_positional_scales(p, c, a.args);
  return c;
}

template <class Run>
Call paged_call(const Plan& p, const Run& a) {
  Call c = call_of(p, a, cache_planes(a.paged_kv_cache, p.kv_layout));
  if constexpr (requires { a.kv_cache_sf; }) c.kv_sf = scale_planes(a.kv_cache_sf, p.kv_layout, c.kv, true);
  if constexpr (requires { a.sinks; }) {
    if (a.sinks) c.sinks = &*a.sinks;
  }
  return c;
}

/// A wrapper's custom variant, from its constructor's arguments.
template <class Init>
void set_variant(Plan& p, const Init& a) {
  if (!a.jit_args.is_none()) variant_from(a.jit_args);
  p.jit_args = a.jit_args;
  if constexpr (requires { a.jit_kwargs; }) check_jit_kwargs(a.jit_args, a.jit_kwargs);
  if constexpr (requires { a.variant_owns_mask; }) {
    FI_CHECK(!a.variant_owns_mask || !a.jit_args.is_none(), ValueError, "variant_owns_mask=True needs jit_args");
    p.variant_owns_mask = a.variant_owns_mask;
  }
}

// ---- the prefill wrappers ----
template <class Init>
void set_paged_prefill_graph(Plan& p, const Init& a) {
  const GraphArgument arguments[] = {
      {"qo_indptr_buf", a.qo_indptr_buf, &GraphBuffers::qo_indptr},
      {"paged_kv_indptr_buf", a.paged_kv_indptr_buf, &GraphBuffers::kv_indptr},
      {"paged_kv_indices_buf", a.paged_kv_indices_buf, &GraphBuffers::kv_indices},
      {"paged_kv_last_page_len_buf", a.paged_kv_last_page_len_buf, &GraphBuffers::last_page_len},
      {"custom_mask_buf", a.custom_mask_buf, &GraphBuffers::mask, false},
      {"mask_indptr_buf", a.mask_indptr_buf, &GraphBuffers::mask_indptr, false}};
  set_graph(p, a.use_cuda_graph, arguments);
}
template <class PlanArgs>
void check_prefill_plan(const PlanArgs& a) {
  check_split_size(a.fixed_split_size);
}
template <class PlanArgs>
Plan prefill_plan(const PlanArgs& a) {
  Plan p = next_plan(a.self);
  p.num_qo_heads = a.num_qo_heads, p.num_kv_heads = a.num_kv_heads;
  p.head_dim_qk = a.head_dim_qk, p.head_dim_vo = a.head_dim_vo.value_or(a.head_dim_qk);
  p.q_data_type = a.q_data_type;
  p.kv_data_type = cache_type(a.kv_data_type.value_or(a.q_data_type));
  p.o_data_type = a.o_data_type.value_or(ops::default_output(a.q_data_type));
  p.causal = a.causal;
  constexpr bool kPaged = requires { a.paged_kv_indptr; };
  set_options(p,
              {a.window_left, a.pos_encoding_mode, a.sm_scale, a.logits_soft_cap, a.rope_scale, a.rope_theta, kPaged});
  return p;
}
/// After kv_len and batch_size are known.
template <class PlanArgs>
void finish_prefill_plan(Plan& p, const PlanArgs& a, const TensorView* last_page_len = nullptr) {
  const Tensor in_rows = offsets_in_rows("qo_indptr", a.qo_indptr, a.seq_lens_q, p.num_qo_heads * p.head_dim_qk);
  set_rows(p, "qo_indptr", in_rows.defined() ? in_rows.view() : a.qo_indptr);
  Tensor rows = Tensor::empty({p.batch_size}, DType::kI32);
  const int32_t* qo = p.qo_indptr.data_as<int32_t>();
  for (int64_t b = 0; b < p.batch_size; ++b) rows.data_as<int32_t>()[b] = qo[b + 1] - qo[b];
  check_lengths("seq_lens", a.seq_lens, p.kv_len);
  check_lengths("seq_lens_q", a.seq_lens_q, rows);
  check_longest("max_token_per_sequence", a.max_token_per_sequence, rows);
  check_longest("max_sequence_kv", a.max_sequence_kv, p.kv_len);
  FI_CHECK(!p.variant_owns_mask || !a.prefix_len_ptr, ValueError,
           "prefix_len_ptr is a mask, but variant_owns_mask=True says that jit_args has the only one");
  FI_CHECK(!p.variant_owns_mask || (!a.custom_mask && !a.packed_custom_mask), ValueError,
           "a custom mask was given, but variant_owns_mask=True says that jit_args has the only one");
  set_slopes(p, a.alibi_slopes);
  set_mask(p, a.custom_mask, a.packed_custom_mask);
  set_items(p, {a.prefix_len_ptr, a.token_pos_in_items_ptr, a.token_pos_in_items_len, a.max_item_len_ptr});
  fill_graph_buffers(p, last_page_len);
  set_work(p);
}
/// Where the LSE goes, for runs that have lse_base and lse_layout.
template <class Run>
Call set_lse_format(Call c, const Run& a) {
  c.lse_by_head = a.lse_layout == "HN";
  c.natural_lse = a.lse_base == "ln";
  return c;
}
template <class Run>
void check_lse(const Run& a) {
  if (a.lse && a.lse_layout == "HN")
    FI_CHECK(a.lse->is_contiguous(), LayoutError, "lse must be contiguous with lse_layout='HN', but is ",
             to_string(*a.lse));
}

inline op::Shape rows_heads(int64_t rows, int64_t heads) { return {2, {rows, heads}}; }
inline op::Shape rows_heads_dim(int64_t rows, int64_t heads, int64_t dim) { return {3, {rows, heads, dim}}; }
/// forward(): the last plan with what this older form of run() replaces. It gives a window to a plan without one.
template <class Forward>
Plan forward_plan(const Forward& a) {
  Plan p = plan_of(a.self);
  if (p.window_left < 0) p.window_left = std::max<int64_t>(a.window_left, -1);
  check_window(p, a.window_left);
  if constexpr (requires { a.causal; }) p.causal = a.causal || p.prefix_len.defined();
  set_options(p, {p.window_left, a.pos_encoding_mode, a.sm_scale, a.logits_soft_cap, a.rope_scale, a.rope_theta,
                  p.o_data_type == DType::kF8E4M3});
  set_work(p);
  return p;
}

template <class Forward>
PlanRef replanned(const Forward& a) {
  return owned(forward_plan(a));
}

/// 4 operations a visible (row, key) and dim; K and V read once.
inline op::Cost cost_of(const Plan& p, const TensorView& q) {
  op::Cost c;
  const double kv_item = cache_bytes(p.kv_data_type);
  const int32_t *qo = p.qo_indptr.data_as<int32_t>(), *kv = p.kv_len.data_as<int32_t>();
  for (int64_t b = 0; b < p.batch_size; ++b) {
    const double rows = qo[b + 1] - qo[b], keys = kv[b];
    double pairs = rows * keys;
    if (p.causal && !p.mask.defined())
      pairs = keys >= rows ? rows * (keys - rows) + rows * (rows + 1) / 2 : keys * (keys + 1) / 2;
    c.flops += 2.0 * pairs * static_cast<double>(p.num_qo_heads * (p.head_dim_qk + p.head_dim_vo));
    if (rows > 0) c.bytes += keys * static_cast<double>(p.num_kv_heads * (p.head_dim_qk + p.head_dim_vo)) * kv_item;
  }
  c.bytes += static_cast<double>(q.nbytes()) +
             static_cast<double>(p.nnz_qo * p.num_qo_heads * p.head_dim_vo * size_of(p.o_data_type));
  return c;
}

/// Methods of a paged prefill class.
struct PrefillOps {
  const char *class_name, *module;
  const op::Op *plan, *forward, *size, *reset;
};

/// What single_prefill_with_kv_cache does, for operators that contain it. The call refers to the block's views.
void check_single(const SinglePrefill& a);
Plan single_plan(const SinglePrefill& a);
Call single_call(const SinglePrefill& a);

// Ops of the family's files.
extern const op::Op single_decode_op, single_prefill_op;
extern const op::Op decode_init_op, decode_plan_op, decode_run_op, decode_forward_op, decode_size_op, decode_reset_op,
    decode_prewarm_op, fast_decode_plan_op, decode_on_device_op;
extern const op::Op graph_init_op, graph_plan_op, graph_run_op, graph_forward_op, graph_size_op, graph_reset_op,
    graph_prewarm_op, graph_on_device_op;
extern const op::Op prefill_init_op, prefill_plan_op, prefill_run_op, prefill_forward_op, prefill_size_op,
    prefill_reset_op, prefill_prewarm_op;
extern const op::Op sink_init_op, sink_plan_op, sink_run_op, sink_size_op, sink_reset_op, sink_prewarm_op;
extern const op::Op ranges_init_op, ranges_plan_op, ranges_run_op, ranges_forward_op, ranges_size_op, ranges_reset_op,
    ranges_prewarm_op;
extern const op::Op ragged_init_op, ragged_plan_op, ragged_run_op, ragged_forward_op, ragged_reset_op;
extern const op::Op batch_init_op, batch_plan_op, batch_run_op, batch_prewarm_op;
extern const op::Op dense_decode_op, dense_context_op;
extern const op::Op custom_decode_op, custom_prefill_op;

}  // namespace flashinfer::attention
