// SPDX-License-Identifier: Apache-2.0
// The two operators for one request with a custom variant.
#include "flashinfer/ops/attention/api/checks.h"
#include "flashinfer/ops/attention/variant/variant_call.h"

namespace flashinfer {
namespace attention {
namespace {

constexpr const char* kDecode = "single_decode_with_kv_cache_with_jit_module";
constexpr const char* kPrefill = "single_prefill_with_kv_cache_with_jit_module";

TensorView rows_of(const SingleDecodeWithJitModule& a) { return a.q.unsqueeze(0); }
TensorView rows_of(const SinglePrefillWithJitModule& a) { return a.q; }
bool is_causal(const SingleDecodeWithJitModule&) { return false; }
bool is_causal(const SinglePrefillWithJitModule& a) { return a.mask_mode == 1; }

template <class Block>
Plan plan_of_block(const Block& a) {
  const TensorView q = rows_of(a);
  const Planes kv = token_planes(a.k, a.v, a.kv_layout);
  Plan p;
  p.kv_layout = a.kv_layout, p.paged = false, p.batch_size = 1;
  p.num_qo_heads = q.size(1), p.num_kv_heads = kv.k.heads, p.head_dim_qk = q.size(2), p.head_dim_vo = kv.v.dim;
  p.nnz_qo = q.size(0), p.nnz_kv = kv.k.page_size;
  p.jit_args = a.jit_module;
  const AttentionVariant v = variant_from(a.jit_module);
  p.q_data_type = q.dtype(), p.kv_data_type = kv.k.dtype, p.o_data_type = v.dtype_o;
  p.causal = is_causal(a);
  set_options(p, {a.window_left, "NONE", std::nullopt, std::nullopt, std::nullopt, std::nullopt});
  return p;
}

template <class Block>
void validate(const Block& a) {
  const Planes kv = token_planes(a.k, a.v, a.kv_layout);
  FI_CHECK(kv.v.dtype == kv.k.dtype, ValueError, "v.dtype is ", name(kv.v.dtype), ", but k.dtype is ",
           name(kv.k.dtype));
  FI_CHECK(kv.k.dim == a.q.size(-1), ValueError, "k.shape[2] is ", kv.k.dim, ", but q.shape[", a.q.rank() - 1, "] is ",
           a.q.size(-1));
  FI_CHECK(kv.v.heads == kv.k.heads && kv.v.page_size == kv.k.page_size, ValueError, "v has ", kv.v.page_size,
           " tokens of ", kv.v.heads, " heads, but k has ", kv.k.page_size, " of ", kv.k.heads);
  plan_of_block(a);
}
void validate_prefill(const SinglePrefillWithJitModule& a) {
  FI_CHECK(a.mask_mode >= 0 && a.mask_mode <= 3, ValueError, "mask_mode is ", a.mask_mode,
           ", but must be 0 (all keys), 1 (causal), 2 or 3 (what the variant's LogitsMask says)");
  validate(a);
}
op::Shape out_shape(const SingleDecodeWithJitModule& a) { return {2, {a.q.size(0), a.v.size(2)}}; }
op::Shape lse_shape(const SingleDecodeWithJitModule& a) { return {1, {a.q.size(0)}}; }
op::Shape out_shape(const SinglePrefillWithJitModule& a) {
  return rows_heads_dim(a.q.size(0), a.q.size(1), a.v.size(2));
}
op::Shape lse_shape(const SinglePrefillWithJitModule& a) { return rows_heads(a.q.size(0), a.q.size(1)); }
template <class Block>
DType out_dtype(const Block& a) {
  return variant_from(a.jit_module).dtype_o;
}

template <class Block>
PlanRef plan_ref(const Block& a) {
  Plan p = plan_of_block(a);
  const int32_t qo[2] = {0, static_cast<int32_t>(p.nnz_qo)}, kv[2] = {0, static_cast<int32_t>(p.nnz_kv)};
  p.qo_indptr = Tensor::copy_of(std::span<const int32_t>(qo), {2});
  p.kv_indptr = Tensor::copy_of(std::span<const int32_t>(kv), {2});
  p.kv_len = Tensor::copy_of(std::span<const int32_t>(kv + 1, 1), {1});
  set_work(p);
  return owned(std::move(p));
}
template <class Block>
Call call_of_block(const Block& a) {
  Call c;
  c.q = rows_of(a), c.kv = token_planes(a.k, a.v, a.kv_layout), c.args = a.args;
  const bool decode = a.q.rank() == 2;
  c.out = decode ? a.out->unsqueeze(0) : *a.out;
  if (a.lse) c.lse = decode ? a.lse->unsqueeze(0) : *a.lse;
  return c;
}
template <class Block>
using Run = PlanRun<Block, plan_ref, call_of_block>;

template <class Block>
constexpr op::Field out_field() {
  return op::result<&Block::out>("out", nullptr, op::floats,
                                 op::shape<static_cast<op::Shape (*)(const Block&)>(out_shape)>,
                                 op::dtype<out_dtype<Block>>);
}
template <class Block>
constexpr op::Field lse_field() {
  return op::result<&Block::lse>("lse", nullptr, DType::kF32,
                                 op::shape<static_cast<op::Shape (*)(const Block&)>(lse_shape)>,
                                 op::when<&Block::return_lse>);
}
constexpr op::Field decode_fields[] = {
    op::attr<&SingleDecodeWithJitModule::jit_module>("jit_module", op::required),
    op::in<&SingleDecodeWithJitModule::q>("q", "h d", op::floats),
    op::in<&SingleDecodeWithJitModule::k>("k", "x y dk", op::floats | op::fp8),
    op::in<&SingleDecodeWithJitModule::v>("v", "x y dv", op::floats | op::fp8),
    op::attr<&SingleDecodeWithJitModule::args>("args", op::varargs),
    op::attr<&SingleDecodeWithJitModule::kv_layout>("kv_layout", op::choices("NHD|HND", ErrorKind::kKeyError)),
    op::attr<&SingleDecodeWithJitModule::window_left>("window_left"),
    op::attr<&SingleDecodeWithJitModule::return_lse>("return_lse"),
    out_field<SingleDecodeWithJitModule>(),
    lse_field<SingleDecodeWithJitModule>(),
};
constexpr op::Field prefill_fields[] = {
    op::attr<&SinglePrefillWithJitModule::jit_module>("jit_module", op::required),
    op::in<&SinglePrefillWithJitModule::q>("q", "n h d", op::floats),
    op::in<&SinglePrefillWithJitModule::k>("k", "x y dk", op::floats | op::fp8),
    op::in<&SinglePrefillWithJitModule::v>("v", "x y dv", op::floats | op::fp8),
    op::attr<&SinglePrefillWithJitModule::args>("args", op::varargs),
    op::attr<&SinglePrefillWithJitModule::kv_layout>("kv_layout", op::choices("NHD|HND", ErrorKind::kKeyError)),
    op::attr<&SinglePrefillWithJitModule::mask_mode>("mask_mode"),
    op::attr<&SinglePrefillWithJitModule::window_left>("window_left"),
    op::attr<&SinglePrefillWithJitModule::return_lse>("return_lse"),
    out_field<SinglePrefillWithJitModule>(),
    lse_field<SinglePrefillWithJitModule>(),
};
template <class Block>
constexpr op::Candidate kCandidates[] = {op::cuda<Run<Block>::cuda>(), op::cpu<Run<Block>::cpu>()};
}  // namespace

constinit const op::Op custom_decode_op = op::define<SingleDecodeWithJitModule, validate<SingleDecodeWithJitModule>>(
    kDecode, "flashinfer.decode", "single_decode_with_kv_cache with a custom variant's logits, masks and outputs.",
    decode_fields, kCandidates<SingleDecodeWithJitModule>, nullptr);
constinit const op::Op custom_prefill_op = op::define<SinglePrefillWithJitModule, validate_prefill>(
    kPrefill, "flashinfer.prefill", "single_prefill_with_kv_cache with a custom variant's logits, masks and outputs.",
    prefill_fields, kCandidates<SinglePrefillWithJitModule>, nullptr);

}  // namespace attention

AttentionResult single_decode_with_kv_cache_with_jit_module(const SingleDecodeWithJitModule& a) {
  return op::call(attention::custom_decode_op, a);
}
AttentionResult single_prefill_with_kv_cache_with_jit_module(const SinglePrefillWithJitModule& a) {
  return op::call(attention::custom_prefill_op, a);
}

}  // namespace flashinfer
