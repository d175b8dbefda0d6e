// SPDX-License-Identifier: Apache-2.0
// The two operators for one request.
#include "flashinfer/core/int_math.h"
#include "flashinfer/core/transfer.h"
#include "flashinfer/ops/attention/api/checks.h"
#include "flashinfer/ops/attention/cases.h"

namespace flashinfer {
namespace attention {
namespace {

constexpr const char* kDecode = "single_decode_with_kv_cache";
constexpr const char* kPrefill = "single_prefill_with_kv_cache";

/// q as [rows, Hq, D].
TensorView rows_of(const SingleDecode& a) { return a.q.unsqueeze(0); }
TensorView rows_of(const SinglePrefill& a) { return a.q; }
DType out_dtype(const SingleDecode& a) { return ops::default_output(a.q.dtype()); }
DType out_dtype(const SinglePrefill& a) { return a.o_dtype.value_or(ops::default_output(a.q.dtype())); }

template <class Block>
int64_t tokens(const Block& a) {
  return a.k.size(a.kv_layout == "NHD" ? 0 : 1);
}

/// A batch of one request, without the list of works.
template <class Block>
Plan plan_of_block(const Block& a) {
  const TensorView q = rows_of(a);
  const Planes kv = token_planes(a.k, a.v, a.kv_layout);
  Plan p;
  p.kv_layout = a.kv_layout;
  p.paged = false;
  p.batch_size = 1;
  p.num_qo_heads = q.size(1), p.num_kv_heads = kv.k.heads, p.head_dim_qk = q.size(2), p.head_dim_vo = kv.v.dim;
  p.nnz_qo = q.size(0), p.nnz_kv = tokens(a);
  p.q_data_type = q.dtype(), p.kv_data_type = kv.k.dtype, p.o_data_type = out_dtype(a);
  set_options(p, {a.window_left, a.pos_encoding_mode, a.sm_scale, a.logits_soft_cap, a.rope_scale, a.rope_theta});
  return p;
}
void set_request(Plan& p) {
  const int32_t qo[2] = {0, static_cast<int32_t>(p.nnz_qo)}, kv[2] = {0, static_cast<int32_t>(p.nnz_kv)};
  p.qo_indptr = Tensor::copy_of(std::span<const int32_t>(qo), {2});
  p.kv_indptr = Tensor::copy_of(std::span<const int32_t>(kv), {2});
  p.kv_len = Tensor::copy_of(std::span<const int32_t>(kv + 1, 1), {1});
}
Plan plan_without_work(const SingleDecode& a) {
  Plan p = plan_of_block(a);
  set_request(p);
  return p;
}
/// Masks are packed by the host, wherever they are.
Plan plan_without_work(const SinglePrefill& a) {
  Plan p = plan_of_block(a);
  p.causal = a.causal;
  set_request(p);
  const Tensor mask = a.custom_mask ? host_readable(*a.custom_mask) : Tensor(),
               packed = a.packed_custom_mask ? host_readable(*a.packed_custom_mask) : Tensor();
  const auto view = [](const Tensor& t) { return t.defined() ? std::optional<TensorView>(t.view()) : std::nullopt; };
  set_mask(p, view(mask), view(packed));
  return p;
}
template <class Block>
Plan full_plan(const Block& a) {
  Plan p = plan_without_work(a);
  set_work(p);
  return p;
}
Call call_of_block(const SingleDecode& a) {
  Call c;
  c.q = rows_of(a), c.kv = token_planes(a.k, a.v, a.kv_layout);
  c.q_scale = a.q_scale.value_or(1.0), c.k_scale = a.k_scale.value_or(1.0), c.v_scale = a.v_scale.value_or(1.0);
  return c;
}
Call call_of_block(const SinglePrefill& a) {
  Call c;
  c.q = a.q, c.kv = token_planes(a.k, a.v, a.kv_layout);
  c.kv_sf = scale_planes(a.kv_cache_sf, a.kv_layout, c.kv, false);
  c.k_scale = a.k_scale.value_or(1.0), c.v_scale = a.v_scale.value_or(1.0);
  const auto pointer = [](const std::optional<TensorView>& t) { return t ? &*t : nullptr; };
  set_head_scales(plan_of_block(a), c, pointer(a.scale_q), pointer(a.scale_k), pointer(a.scale_v));
  return c;
}

template <class Block>
void check_kv(const Block& a) {
  const Planes kv = token_planes(a.k, a.v, a.kv_layout);
  FI_CHECK(kv.v.dtype == kv.k.dtype, ValueError, "v.dtype is ", name(kv.v.dtype), ", but k.dtype is ",
           name(kv.k.dtype));
  FI_CHECK(kv.k.dim == a.q.size(-1), ValueError, "k.shape[2] is ", kv.k.dim, ", but q.shape[", a.q.rank() - 1, "] is ",
           a.q.size(-1));
  FI_CHECK(kv.k.page_size <= INT32_MAX, ValueError, "k has ", kv.k.page_size, " tokens, more than 32 bits hold");
  FI_CHECK(a.q.rank() < 3 || a.q.size(0) <= INT32_MAX / a.q.size(1), ValueError, "q has ", a.q.size(0), " tokens of ",
           a.q.size(1), " heads, more than 32 bits hold");
  plan_of_block(a);
}
void validate(const SingleDecode& a) {
  check_kv(a);
  scale_planes(std::nullopt, a.kv_layout, token_planes(a.k, a.v, a.kv_layout), false);
}
void validate(const SinglePrefill& a) {
  FI_CHECK(!a.o_dtype || op::floats.has(*a.o_dtype), ValueError, "o_dtype is ", name(*a.o_dtype), ", but must be ",
           to_string(op::floats));
  check_kv(a);
  call_of_block(a);  // checks the scales
  if (a.custom_mask) {
    const TensorView& m = *a.custom_mask;
    const bool flat = m.rank() == 1 && m.size(0) == a.q.size(0) * tokens(a);
    FI_CHECK(flat || (m.rank() == 2 && m.size(0) == a.q.size(0) && m.size(1) == tokens(a)), ValueError,
             "custom_mask is ", to_string(m), ", but must be [", a.q.size(0), ", ", tokens(a),
             "] (tokens of q, tokens of k), or the same flat");
  }
  const int64_t bytes = ceil_div(a.q.size(0) * tokens(a), 8);
  if (a.packed_custom_mask)
    FI_CHECK(a.packed_custom_mask->numel() == bytes, ValueError, "packed_custom_mask has ",
             a.packed_custom_mask->numel(), " bytes, but ", a.q.size(0), " rows of ", tokens(a), " keys need ", bytes);
}
int64_t values(const TensorView& v) { return v.size(2) * (cache_type(v.dtype()) == DType::kF4E2M1x2 ? 2 : 1); }
op::Shape out_shape(const SingleDecode& a) { return {2, {a.q.size(0), values(a.v)}}; }
op::Shape lse_shape(const SingleDecode& a) { return {1, {a.q.size(0)}}; }
op::Shape out_shape(const SinglePrefill& a) { return rows_heads_dim(a.q.size(0), a.q.size(1), values(a.v)); }
op::Shape lse_shape(const SinglePrefill& a) { return rows_heads(a.q.size(0), a.q.size(1)); }

template <class Block>
op::Cost cost(const Block& a) {
  Plan p = plan_of_block(a);
  if constexpr (std::is_same_v<Block, SinglePrefill>) p.causal = a.causal && !a.custom_mask && !a.packed_custom_mask;
  set_request(p);
  return cost_of(p, a.q);
}

template <class Block>
Call rows_call(const Block& a) {
  Call c = call_of_block(a);
  const bool decode = a.q.rank() == 2;
  c.out = decode ? a.out->unsqueeze(0) : *a.out;
  if (a.lse) c.lse = decode ? a.lse->unsqueeze(0) : *a.lse;
  return c;
}
template <class Block>
PlanRef plan_ref(const Block& a) {
  return owned(full_plan(a));
}
template <class Block>
PlanRef cuda_plan_ref(const Block& a) {
  return owned(plan_without_work(a));
}
template <class Block>
using Run = PlanRun<Block, plan_ref, rows_call, cuda_plan_ref>;

constexpr op::Field decode_fields[] = {
    op::in<&SingleDecode::q>("q", "h d", ops::kQueryTypes),
    op::in<&SingleDecode::k>("k", "x y dk", op::floats | op::fp8),
    op::in<&SingleDecode::v>("v", "x y dv", op::floats | op::fp8),
    op::attr<&SingleDecode::kv_layout>("kv_layout", op::choices("NHD|HND", ErrorKind::kKeyError)),
    op::attr<&SingleDecode::pos_encoding_mode>("pos_encoding_mode", op::choices(kModes, ErrorKind::kKeyError)),
    op::attr<&SingleDecode::use_tensor_cores>("use_tensor_cores"),
    op::attr<&SingleDecode::q_scale>("q_scale"),
    op::attr<&SingleDecode::k_scale>("k_scale"),
    op::attr<&SingleDecode::v_scale>("v_scale"),
    op::attr<&SingleDecode::window_left>("window_left"),
    op::attr<&SingleDecode::logits_soft_cap>("logits_soft_cap"),
    op::attr<&SingleDecode::sm_scale>("sm_scale"),
    op::attr<&SingleDecode::rope_scale>("rope_scale"),
    op::attr<&SingleDecode::rope_theta>("rope_theta"),
    op::attr<&SingleDecode::return_lse>("return_lse"),
    op::result<&SingleDecode::out>("out", nullptr, op::floats,
                                   op::shape<static_cast<op::Shape (*)(const SingleDecode&)>(out_shape)>,
                                   op::dtype<static_cast<DType (*)(const SingleDecode&)>(out_dtype)>),
    op::result<&SingleDecode::lse>("lse", nullptr, DType::kF32,
                                   op::shape<static_cast<op::Shape (*)(const SingleDecode&)>(lse_shape)>,
                                   op::when<&SingleDecode::return_lse>),
};
constexpr op::Field prefill_fields[] = {
    op::in<&SinglePrefill::q>("q", "n h d", ops::kQueryTypes),
    op::in<&SinglePrefill::k>("k", "x y dk", kCacheTypes),
    op::in<&SinglePrefill::v>("v", "x y dv", kCacheTypes),
    op::in<&SinglePrefill::scale_q>("scale_q", nullptr, DType::kF32, op::any_layout),
    op::in<&SinglePrefill::scale_k>("scale_k", nullptr, DType::kF32, op::any_layout),
    op::in<&SinglePrefill::scale_v>("scale_v", nullptr, DType::kF32, op::any_layout),
    op::attr<&SinglePrefill::o_dtype>("o_dtype"),
    op::in<&SinglePrefill::custom_mask>("custom_mask", nullptr, kMaskTypes, op::contiguous),
    op::in<&SinglePrefill::packed_custom_mask>("packed_custom_mask", nullptr, DType::kU8, op::contiguous),
    op::attr<&SinglePrefill::causal>("causal"),
    op::attr<&SinglePrefill::kv_layout>("kv_layout", op::choices("NHD|HND", ErrorKind::kKeyError)),
    op::attr<&SinglePrefill::pos_encoding_mode>("pos_encoding_mode", op::choices(kModes, ErrorKind::kKeyError)),
    op::attr<&SinglePrefill::use_fp16_qk_reduction>("use_fp16_qk_reduction"),
    op::attr<&SinglePrefill::sm_scale>("sm_scale"),
    op::attr<&SinglePrefill::window_left>("window_left"),
    op::attr<&SinglePrefill::logits_soft_cap>("logits_soft_cap"),
    op::attr<&SinglePrefill::rope_scale>("rope_scale"),
    op::attr<&SinglePrefill::rope_theta>("rope_theta"),
    op::attr<&SinglePrefill::backend>("backend", op::backends(kBackends)),
    op::attr<&SinglePrefill::return_lse>("return_lse"),
    op::paged<&SinglePrefill::kv_cache_sf>("kv_cache_sf", nullptr, kScaleTypes),
    op::attr<&SinglePrefill::k_scale>("k_scale"),
    op::attr<&SinglePrefill::v_scale>("v_scale"),
    op::result<&SinglePrefill::out>("out", nullptr, op::floats,
                                    op::shape<static_cast<op::Shape (*)(const SinglePrefill&)>(out_shape)>,
                                    op::dtype<static_cast<DType (*)(const SinglePrefill&)>(out_dtype)>),
    op::result<&SinglePrefill::lse>("lse", nullptr, DType::kF32,
                                    op::shape<static_cast<op::Shape (*)(const SinglePrefill&)>(lse_shape)>,
                                    op::when<&SinglePrefill::return_lse>),
};

}  // namespace

void check_single(const SinglePrefill& a) { validate(a); }
Plan single_plan(const SinglePrefill& a) { return full_plan(a); }
Call single_call(const SinglePrefill& a) {
  Call c = call_of_block(a);
  if (a.out) c.out = *a.out;
  c.lse = a.lse;
  return c;
}

constinit const op::Op single_decode_op = op::define<SingleDecode, validate, cost<SingleDecode>>(
    kDecode, "flashinfer.decode", "out = softmax(scale * q k^T) v for one query token; lse in base 2.", decode_fields,
    kRunCandidates<Run<SingleDecode>>, ops::attention::single_decode_cases);
constinit const op::Op single_prefill_op = op::also_named(
    op::define<SinglePrefill, validate, cost<SinglePrefill>>(
        kPrefill, "flashinfer.prefill", "out = softmax(scale * q k^T, masked) v for one request; lse in base 2.",
        prefill_fields, kRunCandidates<Run<SinglePrefill>>, ops::attention::single_prefill_cases),
    "single_prefill_with_kv_cache_return_lse=(return_lse=True)");
}  // namespace attention

AttentionResult single_decode_with_kv_cache(const SingleDecode& a) { return op::call(attention::single_decode_op, a); }
AttentionResult single_prefill_with_kv_cache(const SinglePrefill& a) {
  return op::call(attention::single_prefill_op, a);
}

}  // namespace flashinfer
