// SPDX-License-Identifier: Apache-2.0
// Ragged prefill without plan(), under the names of upstream's special kernels.
#include "flashinfer/ops/attention/api/varlen.h"

#include "flashinfer/ops/attention/api/no_plan.h"
#include "flashinfer/ops/attention/api/sage.h"
#include "flashinfer/ops/attention/cases.h"

namespace flashinfer {
namespace attention {
namespace {

DType out_dtype_of(const std::optional<TensorView>& out, const TensorView& q) {
  return out ? out->dtype() : q.dtype() == DType::kI8 ? DType::kBF16 : ops::default_output(q.dtype());
}
const TensorView* pointer(const std::optional<TensorView>& t) { return t ? &*t : nullptr; }

// ---- trtllm_ragged_attention_deepseek ----
using R = TrtllmRaggedDeepseek;
DType ragged_dtype(const R& a) { return out_dtype_of(a.out, a.query); }
Plan ragged_plan(const R& a, Planning what) {
  Plan p;
  set_tensors(p, a.query, token_planes(a.key, a.value, "NHD"), ragged_dtype(a));
  set_options(p, scale_and_window(scale_of("bmm1_scale", a.bmm1_scale).number, a.window_left));
  set_ragged_kv(p, "cum_seq_lens_kv", a.cum_seq_lens_kv, token_planes(a.key, a.value, "NHD"), what);
  set_rows_or_shape(p, "cum_seq_lens_q", a.cum_seq_lens_q, a.query, what);
  p.causal = a.is_causal;
  if (what == Planning::kWork) set_work(p);
  return p;
}
Call ragged_call(const R& a, TensorView&) {
  Call c;
  c.q = a.query, c.kv = token_planes(a.key, a.value, "NHD");
  if (a.out) c.out = *a.out;
  c.lse = a.lse;
  c.sinks = pointer(a.attention_sinks);
  const Scale output = scale_of("bmm2_scale", a.bmm2_scale);
  c.v_scale = output.number, c.v_scale_on_device = output.on_device;
  c.scales_on_device[0] = scale_of("bmm1_scale", a.bmm1_scale).on_device;
  return c;
}
CallTables ragged_tables(const R& a) {
  return {.first_rows = a.cum_seq_lens_q, .rows = a.max_q_len, .keys = a.max_kv_len, .first_keys = a.cum_seq_lens_kv};
}
void check_lengths_of(const char* name, const std::optional<TensorView>& given, const Tensor& lengths) {
  if (given) check_lengths(name, lengths_of(name, *given), lengths);
}
/// Lengths that the host has, where it does not read the arrays that they describe: as promised.
void check_promised(const char* name, const std::optional<TensorView>& given, int64_t requests, const char* most_name,
                    int64_t most) {
  if (!given || !host_can_read(given->device())) return;
  const TensorView lengths = lengths_of(name, *given);
  FI_CHECK(lengths.size(0) == requests, ValueError, name, " is ", to_string(*given), ", but there are ", requests,
           " requests");
  for (int64_t b = 0; b < requests; ++b) {
    const int64_t n = op::index_at(lengths, b);
    FI_CHECK(n >= 0 && n <= most, ValueError, name, "[", b, "] is ", n, ", but ", most_name, " is ", most);
  }
}
void validate_ragged(const R& given) {
  check_sage(given);
  const R a = with_multiplied_types(given);
  check_skip_softmax(a.skip_softmax_threshold_scale_factor);
  throw_if_given("use_fp16_softmax=True", a.use_fp16_softmax.value_or(false), kNeedsGpu);
  throw_if_given("uses_spcompress=True", a.uses_spcompress.value_or(false), kNeedsGpu);
  const bool known = host_reads(a.cum_seq_lens_q, a.cum_seq_lens_kv, a.seq_lens);
  const Plan p = ragged_plan(a, known ? Planning::kArrays : Planning::kShapes);
  const Planes kv = token_planes(a.key, a.value, "NHD");
  check_run(p, a.query, kv, "key", "value");
  check_ragged_kv(p, kv, "key", "value", "cum_seq_lens_kv");
  check_sinks(p, a.attention_sinks);
  FI_CHECK(a.batch_size == p.batch_size, ValueError, "batch_size is ", a.batch_size, ", but cum_seq_lens_kv describes ",
           p.batch_size, " requests");
  const TensorView lengths = lengths_of("seq_lens", a.seq_lens);
  if (!known) {
    check_promised("q_seq_lens_cpu", a.q_seq_lens_cpu, p.batch_size, "max_q_len", a.max_q_len);
    return check_promised("kv_seq_lens_cpu", a.kv_seq_lens_cpu, p.batch_size, "max_kv_len", a.max_kv_len);
  }
  check_lengths("seq_lens", lengths, p.kv_len);
  Tensor rows = Tensor::empty({p.batch_size}, DType::kI32);
  const int32_t* qo = p.qo_indptr.data_as<int32_t>();
  for (int64_t b = 0; b < p.batch_size; ++b) rows.data_as<int32_t>()[b] = qo[b + 1] - qo[b];
  check_lengths_of("q_seq_lens_cpu", a.q_seq_lens_cpu, rows);
  check_lengths_of("kv_seq_lens_cpu", a.kv_seq_lens_cpu, p.kv_len);
  check_max("max_q_len", a.max_q_len, "query tokens", qo, p.batch_size, true);
  check_max("max_kv_len", a.max_kv_len, "tokens of keys", p.kv_len.data_as<int32_t>(), p.batch_size, false);
}
op::Shape ragged_shape(const R& a) { return rows_heads_dim(a.query.size(0), a.query.size(1), a.value.size(2)); }
op::Shape ragged_lse_shape(const R& a) { return rows_heads(a.query.size(0), a.query.size(1)); }
op::Cost ragged_cost(const R& given) {
  HostCopies copies;
  R a = with_multiplied_types(given);
  copies.read(a.cum_seq_lens_q), copies.read(a.cum_seq_lens_kv);
  return cost_of(ragged_plan(a, Planning::kArrays), given.query);
}

/// Tensors that attention multiplies as they are, and others.
struct RaggedRun {
  using Plain = NoPlanOnGpu<R, ragged_plan, ragged_call, ragged_tables, ragged_dtype>;
  using Copies = DequantizedRun<Plain>;
  static op::Prepared cuda(const R& a) {
    if (is_multiplied(a)) return Plain::cuda(a);
    return op::Unsupported{
        "8-bit codes with scales of blocks, and 8-bit values beside 16-bit keys, are converted on the "
        "CPU alone"};
  }
  static op::Prepared cpu(const R& a) { return is_multiplied(a) ? Plain::cpu(a) : Copies::cpu(a); }
  static void reference(const R& a) { return is_multiplied(a) ? Plain::reference(a) : Copies::reference(a); }
  static constexpr op::Candidate candidates[] = {op::cuda<cuda>(), op::cpu<cpu>(), op::reference<reference>()};
};

// ---- fmha_varlen ----
using V = FmhaVarlen;
DType varlen_dtype(const V& a) { return out_dtype_of(a.out, a.q); }
Plan varlen_plan(const V& a, Planning what) {
  Plan p;
  set_tensors(p, a.q, token_planes(a.k, a.v, "NHD"), varlen_dtype(a));
  set_options(p,
              {.window_left = -1, .sm_scale = a.sm_scale, .logits_soft_cap = {}, .rope_scale = {}, .rope_theta = {}});
  set_ragged_kv(p, "kv_segment_offsets", a.kv_segment_offsets, token_planes(a.k, a.v, "NHD"), what);
  set_rows_or_shape(p, "qo_segment_offsets", a.qo_segment_offsets, a.q, what);
  p.causal = a.causal;
  if (what == Planning::kWork) set_work(p);
  return p;
}
Call varlen_call(const V& a, TensorView&) {
  Call c;
  c.q = a.q, c.kv = token_planes(a.k, a.v, "NHD");
  if (a.out) c.out = *a.out;
  c.lse = a.lse;
  c.q_scale = a.q_scale.value_or(1.0), c.k_scale = a.k_scale.value_or(1.0), c.v_scale = a.v_scale.value_or(1.0);
  return c;
}
CallTables varlen_tables(const V& a) {
  return {.first_rows = a.qo_segment_offsets,
          .rows = a.max_qo_len.value_or(INT64_MAX),
          .keys = INT64_MAX,
          .first_keys = a.kv_segment_offsets};
}
void validate_varlen(const V& a) {
  throw_if_given("o_scale", a.o_scale.value_or(1.0) != 1.0, "it scales 8-bit outputs, which are not available");
  const bool known = host_reads(a.qo_segment_offsets, a.kv_segment_offsets);
  const Plan p = varlen_plan(a, known ? Planning::kArrays : Planning::kShapes);
  const Planes kv = token_planes(a.k, a.v, "NHD");
  check_run(p, a.q, kv, "k", "v");
  check_ragged_kv(p, kv, "k", "v", "kv_segment_offsets");
  if (a.max_qo_len && known)
    check_max("max_qo_len", *a.max_qo_len, "query tokens", p.qo_indptr.data_as<int32_t>(), p.batch_size, true);
}
op::Shape varlen_shape(const V& a) { return rows_heads_dim(a.q.size(0), a.q.size(1), a.v.size(2)); }
op::Shape varlen_lse_shape(const V& a) { return rows_heads(a.q.size(0), a.q.size(1)); }
op::Cost varlen_cost(const V& given) {
  HostCopies copies;
  V a = given;
  copies.read(a.qo_segment_offsets), copies.read(a.kv_segment_offsets);
  return cost_of(varlen_plan(a, Planning::kArrays), a.q);
}

// ---- fmha_v2_prefill_deepseek and _sm120 ----
using F = FmhaV2Deepseek;
using G = FmhaV2Sm120;
template <class B>
bool is_causal(const B& a) {
  if constexpr (requires { a.causal; }) return a.causal;
  return true;
}
template <class B>
DType v2_dtype(const B& a) {
  return out_dtype_of(a.out, a.query);
}
Scale scale_of(const char* name, const std::optional<double>& number, const std::optional<TensorView>& tensor) {
  return tensor ? attention::scale_of(name, *tensor) : Scale{number.value_or(1.0)};
}
template <class B>
Planes v2_planes(const B& a) {
  return token_planes(merged_rows("key", a.key), merged_rows("value", a.value), "NHD");
}
template <class B>
Plan v2_plan(const B& a, Planning what) {
  Plan p;
  set_tensors(p, merged_rows("query", a.query), v2_planes(a), v2_dtype(a));
  set_options(p, scale_and_window(scale_of("scale_bmm1_d", a.scale_bmm1, a.scale_bmm1_d).number));
  p.paged = false, p.causal = is_causal(a);
  p.batch_size = a.query.size(0), p.nnz_kv = p.batch_size * a.query.size(1);
  if (a.query.size(1) == 0)
    p.qo_indptr = Tensor::zeros({p.batch_size + 1}, DType::kI32);
  else
    set_equal_rows(p, "seq_len", a.query.size(1));
  p.kv_indptr = p.qo_indptr;
  p.kv_len = Tensor::empty({p.batch_size}, DType::kI32);
  for (int64_t b = 0; b < p.batch_size; ++b) p.kv_len.data_as<int32_t>()[b] = static_cast<int32_t>(a.query.size(1));
  if (what == Planning::kWork) set_work(p);
  return p;
}
template <class B>
Call v2_call(const B& a, TensorView&) {
  Call c;
  c.q = merged_rows("query", a.query), c.kv = v2_planes(a);
  if (a.out) c.out = merged_rows("out", *a.out);
  const Scale output = scale_of("scale_bmm2_d", a.scale_bmm2, a.scale_bmm2_d);
  c.v_scale = output.number, c.v_scale_on_device = output.on_device;
  c.scales_on_device[0] = scale_of("scale_bmm1_d", a.scale_bmm1, a.scale_bmm1_d).on_device;
  return c;
}
template <class B>
CallTables v2_tables(const B& a) {
  return {.rows = a.query.size(1), .keys = a.query.size(1)};
}
template <class B>
void validate_v2(const B& a) {
  const char* why = "its pairs of a maximum and a sum belong to a GPU kernel";
  throw_if_given("return_lse=True", a.return_lse, why);
  throw_if_given("lse", a.lse.has_value(), why);
  FI_CHECK(a.scale_bmm1 || a.scale_bmm1_d, ValueError, "scale_bmm1 is missing: it is the factor of the logits");
  for (const auto& [name, given, have] :
       {std::tuple("num_heads", a.num_heads, a.query.size(2)), std::tuple("head_dim", a.head_dim, a.query.size(3)),
        std::tuple("seq_len", a.seq_len, a.query.size(1))})
    FI_CHECK(given == have, ValueError, name, " is ", given, ", but query is ", to_string(a.query));
  const Plan p = v2_plan(a, Planning::kArrays);
  TensorView none;
  const Call c = v2_call(a, none);
  check_run(p, c.q, c.kv, "key", "value");
  check_ragged_kv(p, c.kv, "key", "value", "seq_len");
}
template <class B>
op::Shape v2_shape(const B& a) {
  return {4, {a.query.size(0), a.query.size(1), a.query.size(2), a.value.size(3)}};
}
template <class B>
op::Cost v2_cost(const B& a) {
  return cost_of(v2_plan(a, Planning::kArrays), a.query);
}

template <class B>
constexpr auto& kV2Candidates = NoPlanOnGpu<B, v2_plan<B>, v2_call<B>, v2_tables<B>, v2_dtype<B>>::candidates;

constexpr DTypeSet kTokenTypes = op::floats | op::fp8;
constexpr DTypeSet kCodeTypes = kTokenTypes | DType::kI8;
constexpr op::Field ragged_fields[] = {
    op::in<&R::query>("query", "n h d", kCodeTypes),
    op::in<&R::key>("key", "m hkv d", kCodeTypes),
    op::in<&R::value>("value", "m hkv dv", kTokenTypes),
    op::scratch<&R::workspace_buffer>("workspace_buffer", nullptr),
    op::in<&R::seq_lens>("seq_lens", nullptr, op::indices, op::any_layout),
    op::attr<&R::max_q_len>("max_q_len", op::required),
    op::attr<&R::max_kv_len>("max_kv_len", op::required),
    op::attr<&R::bmm1_scale>("bmm1_scale", op::required),
    op::attr<&R::bmm2_scale>("bmm2_scale", op::required),
    op::attr<&R::o_sf_scale>("o_sf_scale", op::required),
    op::attr<&R::batch_size>("batch_size", op::required),
    op::attr<&R::window_left>("window_left", op::required),
    op::in<&R::cum_seq_lens_q>("cum_seq_lens_q", "b+1", op::indices, op::any_layout),
    op::in<&R::cum_seq_lens_kv>("cum_seq_lens_kv", "b+1", op::indices, op::any_layout),
    op::attr<&R::enable_pdl>("enable_pdl", op::required),
    op::attr<&R::is_causal>("is_causal", op::required, op::doc("as causal")),
    op::attr<&R::return_lse>("return_lse", op::required),
    op::in<&R::attention_sinks>("attention_sinks", nullptr, DType::kF32, op::contiguous,
                                op::doc("one more logit of each query head's softmax, without a value")),
    op::attr<&R::skip_softmax_threshold_scale_factor>("skip_softmax_threshold_scale_factor"),
    op::out<&R::out>("out", nullptr, op::floats, op::shape<ragged_shape>, op::dtype<ragged_dtype>),
    op::out<&R::lse>("lse", nullptr, DType::kF32, op::shape<ragged_lse_shape>, op::when<&R::return_lse>),
    op::attr<&R::sage_attn_sfs>("sage_attn_sfs"),
    op::attr<&R::num_elts_per_sage_attn_blk>("num_elts_per_sage_attn_blk"),
    op::attr<&R::backend>("backend", op::backends("auto|trtllm-gen:cuda|trtllm-native:cuda|cute-dsl:cuda")),
    op::in<&R::q_seq_lens_cpu>("q_seq_lens_cpu", nullptr, op::indices, op::any_layout, op::host_memory),
    op::in<&R::kv_seq_lens_cpu>("kv_seq_lens_cpu", nullptr, op::indices, op::any_layout, op::host_memory),
    op::attr<&R::use_fp16_softmax>("use_fp16_softmax"),
    op::attr<&R::uses_spcompress>("uses_spcompress"),
    op::attr<&R::skip_all_rows_active_check>("skip_all_rows_active_check"),
};
constexpr op::Field varlen_fields[] = {
    op::in<&V::q>("q", "n h d", ops::kQueryTypes),
    op::in<&V::k>("k", "m hkv d", kTokenTypes),
    op::in<&V::v>("v", "m hkv dv", op::same_as("k")),
    op::in<&V::qo_segment_offsets>("qo_segment_offsets", "b+1", op::indices, op::any_layout),
    op::in<&V::kv_segment_offsets>("kv_segment_offsets", "b+1", op::indices, op::any_layout),
    op::attr<&V::plan_info>("plan_info"),
    op::attr<&V::max_qo_len>("max_qo_len"),
    op::out<&V::out>("out", nullptr, op::floats, op::shape<varlen_shape>, op::dtype<varlen_dtype>),
    op::out<&V::lse>("lse", nullptr, DType::kF32, op::shape<varlen_lse_shape>, op::when<&V::return_lse>),
    op::attr<&V::causal>("causal"),
    op::attr<&V::sm_scale>("sm_scale"),
    op::attr<&V::q_scale>("q_scale"),
    op::attr<&V::k_scale>("k_scale"),
    op::attr<&V::v_scale>("v_scale"),
    op::attr<&V::o_scale>("o_scale"),
    op::attr<&V::return_lse>("return_lse"),
};
constexpr op::Field deepseek_fields[] = {
    op::in<&F::query>("query", "b s h d", ops::kQueryTypes),
    op::in<&F::key>("key", "b s h d", kTokenTypes),
    op::in<&F::value>("value", "b s h dv", op::same_as("key")),
    op::out<&F::out>("out", nullptr, op::floats, op::shape<v2_shape<F>>, op::dtype<v2_dtype<F>>, op::required),
    op::attr<&F::num_heads>("num_heads", op::required),
    op::attr<&F::head_dim>("head_dim", op::required),
    op::attr<&F::seq_len>("seq_len", op::required),
    op::attr<&F::scale_softmax>("scale_softmax", op::required),
    op::attr<&F::scale_bmm1>("scale_bmm1"),
    op::attr<&F::scale_bmm2>("scale_bmm2"),
    op::attr<&F::return_lse>("return_lse"),
    op::in<&F::lse>("lse", nullptr, DType::kF32),
    op::in<&F::scale_bmm1_d>("scale_bmm1_d", nullptr, DType::kF32),
    op::in<&F::scale_bmm2_d>("scale_bmm2_d", nullptr, DType::kF32),
};
constexpr op::Field sm120_fields[] = {
    op::in<&G::query>("query", "b s h d", ops::kQueryTypes),
    op::in<&G::key>("key", "b s h d", kTokenTypes),
    op::in<&G::value>("value", "b s h dv", op::same_as("key")),
    op::out<&G::out>("out", nullptr, op::floats, op::shape<v2_shape<G>>, op::dtype<v2_dtype<G>>, op::required),
    op::attr<&G::num_heads>("num_heads", op::required),
    op::attr<&G::head_dim>("head_dim", op::required),
    op::attr<&G::seq_len>("seq_len", op::required),
    op::attr<&G::scale_softmax>("scale_softmax", op::required),
    op::attr<&G::scale_bmm1>("scale_bmm1"),
    op::attr<&G::scale_bmm2>("scale_bmm2"),
    op::attr<&G::causal>("causal"),
    op::attr<&G::return_lse>("return_lse"),
    op::in<&G::lse>("lse", nullptr, DType::kF32),
    op::in<&G::scale_bmm1_d>("scale_bmm1_d", nullptr, DType::kF32),
    op::in<&G::scale_bmm2_d>("scale_bmm2_d", nullptr, DType::kF32),
};
}  // namespace

constinit const op::Op ragged_deepseek_op = op::define<R, validate_ragged, ragged_cost>(
    "trtllm_ragged_attention_deepseek", "flashinfer.prefill",
    "out = bmm2_scale * softmax(bmm1_scale * q k^T, masked) v over ragged requests; lse in base 2.", ragged_fields,
    RaggedRun::candidates, ops::attention::ragged_deepseek_cases);
constinit const op::Op varlen_op = op::define<V, validate_varlen, varlen_cost>(
    "fmha_varlen", "flashinfer.prefill",
    "out = v_scale * softmax(q_scale * k_scale * sm_scale * q k^T, masked) v over ragged requests; lse in base 2.",
    varlen_fields, NoPlanOnGpu<V, varlen_plan, varlen_call, varlen_tables, varlen_dtype>::candidates,
    ops::attention::varlen_cases);
constinit const op::Op deepseek_v2_op = op::define<F, validate_v2<F>, v2_cost<F>>(
    "fmha_v2_prefill_deepseek", "flashinfer.prefill",
    "out = scale_bmm2 * softmax(scale_bmm1 * q k^T, causal) v for requests of one length.", deepseek_fields,
    kV2Candidates<F>, ops::attention::deepseek_v2_cases);
constinit const op::Op sm120_v2_op = op::define<G, validate_v2<G>, v2_cost<G>>(
    "fmha_v2_prefill_sm120", "flashinfer.prefill",
    "out = scale_bmm2 * softmax(scale_bmm1 * q k^T, masked) v for requests of one length.", sm120_fields,
    kV2Candidates<G>, ops::attention::sm120_v2_cases);
}  // namespace attention

op::Results trtllm_ragged_attention_deepseek(const TrtllmRaggedDeepseek& a) {
  return op::call(attention::ragged_deepseek_op, a);
}
op::Results fmha_varlen(const FmhaVarlen& a) { return op::call(attention::varlen_op, a); }
op::Results fmha_v2_prefill_deepseek(const FmhaV2Deepseek& a) { return op::call(attention::deepseek_v2_op, a); }
op::Results fmha_v2_prefill_sm120(const FmhaV2Sm120& a) { return op::call(attention::sm120_v2_op, a); }

}  // namespace flashinfer
