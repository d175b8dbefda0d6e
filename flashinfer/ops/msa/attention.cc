// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "flashinfer/op/call.h"
#include "flashinfer/ops/common/rows.h"
#include "flashinfer/ops/msa/cases.h"
#include "flashinfer/ops/msa/cuda.h"
#include "flashinfer/ops/msa/inputs.h"
#include "flashinfer/ops/msa/ops.h"
#include "flashinfer/ops/msa/ref.h"

namespace flashinfer {
namespace {
using namespace msa;
using A = MsaSparseAttention;
using D = MsaSparseDecode;
inline constexpr jit::Kernel kAttentionCuda{"flashinfer/ops/msa/kernels/cuda/attention.cuh",
                                            "flashinfer::cu::msa_attention", "flashinfer::MsaCudaParams"};
inline constexpr jit::Kernel kAttention{"flashinfer/ops/msa/kernels/cpu/msa.h", "flashinfer::cpu::msa_attention",
                                        "flashinfer::MsaParams"};
constexpr DTypeSet kCacheTypes = op::floats | DType::kF8E4M3 | DType::kU8 | DType::kF4E2M1x2;
constexpr DTypeSet kQueryTypes = op::floats | DType::kF8E4M3;

template <class B>
DType out_dtype(const B& a) {
  return a.q.dtype() == DType::kF8E4M3 ? DType::kBF16 : a.q.dtype();
}
template <class B>
op::Shape out_shape(const B& a) {
  return {3, {a.q.size(0), a.q.size(1), a.q.size(2)}};
}
template <class B>
op::Shape lse_shape(const B& a) {
  return {2, {a.q.size(0), a.q.size(1)}};
}
bool wants_lse(const A& a) { return a.return_softmax_lse || a.return_temperature_lse; }

void check_data(const TensorView& q, const char* name, const TensorView& t) {
  const int64_t width = is_nvfp4(t) ? kMsaDim / 2 : kMsaDim;
  FI_CHECK(t.size(-1) == width, ValueError, name, ".shape[-1] is ", t.size(-1), ", but must be ", width);
  if (q.dtype() == DType::kF8E4M3)
    FI_CHECK(t.dtype() == DType::kF8E4M3, ValueError, "q is ", flashinfer::name(q.dtype()), ", but ", name, " is ",
             flashinfer::name(t.dtype()), ": fp8 q requires fp8 ", name);
  else
    FI_CHECK(t.dtype() == q.dtype() || t.dtype() == DType::kF8E4M3 || is_nvfp4(t), ValueError, name, " is ",
             flashinfer::name(t.dtype()), ", but must be q's ", flashinfer::name(q.dtype()),
             ", float8_e4m3fn or NVFP4 (uint8)");
}
template <class B>
void check_factors(const B& a) {
  for (const auto& [name, x] :
       {std::pair("softmax_scale", a.softmax_scale), std::pair("k_global_scale", a.k_global_scale),
        std::pair("v_global_scale", a.v_global_scale)})
    FI_CHECK(!x || std::isfinite(*x), ValueError, name, " is ", *x, ", but must be finite");
}
/// Pages of the blocks that a row selects and sees.
void check_selected_pages(const Batch& b, const TensorView& selected, const TensorView& k) {
  if (!b.page_table || !b.readable() || selected.device().type == DeviceType::kCUDA) return;
  const auto* list = selected.data_as<int32_t>();
  for (int64_t g = 0; g < selected.size(0); ++g)
    for (int64_t r = 0; r < b.requests(); ++r) {
      const int64_t blocks = b.blocks(r);
      for (int64_t i = b.first_row(r); i < b.first_row(r + 1); ++i)
        for (int64_t c = 0; c < selected.size(2); ++c)
          if (const int64_t t = list[(g * selected.size(1) + i) * selected.size(2) + c]; t >= 0 && t < blocks)
            check_page(b, r, t, k.size(0), "k");
    }
}
template <class B>
void validate(const B& a) {
  FI_CHECK(a.workspace.is_none(), NotImplementedError,
           "workspace is given, but the memory of a GPU kernel has no use here: leave it out");
  check_data(a.q, "k", a.k);
  check_data(a.q, "v", a.v);
  FI_CHECK(a.k.rank() == a.v.rank() && std::equal(a.k.shape().begin(), a.k.shape().end() - 1, a.v.shape().begin()),
           ValueError, "v is ", to_string(a.v), ", but must have the tokens and heads of k, which is ", to_string(a.k));
  const Batch batch = batch_of(a);
  check_batch(batch, a.q.size(0), "k", a.k);
  check_heads(a.q.size(1), a.k, "k");
  FI_CHECK(a.q2k_indices.size(0) == heads_of(a.k), ValueError, "q2k_indices.shape[0] is ", a.q2k_indices.size(0),
           ", but k has ", heads_of(a.k), " heads");
  if (is_nvfp4(a.k)) check_nvfp4("k", a.k, "k_scale", a.k_scale);
  if (is_nvfp4(a.v)) check_nvfp4("v", a.v, "v_scale", a.v_scale);
  FI_CHECK(is_nvfp4(a.k) == is_nvfp4(a.v) && kernel_dtype(a.k) == kernel_dtype(a.v), ValueError, "v is ",
           flashinfer::name(a.v.dtype()), ", but must have the dtype of k, ", flashinfer::name(a.k.dtype()));
  FI_CHECK(is_nvfp4(a.k) || (!a.k_scale && !a.v_scale), ValueError,
           "k_scale and v_scale are scale factors of NVFP4, but k is ", flashinfer::name(a.k.dtype()),
           ": use k_global_scale and v_global_scale");
  check_factors(a);
  check_selected_pages(batch, a.q2k_indices, a.k);
}
void validate_attention(const A& a) {
  FI_CHECK(std::isfinite(a.lse_temperature_scale) && a.lse_temperature_scale >= 0, ValueError,
           "lse_temperature_scale is ", a.lse_temperature_scale, ", but must be finite and at least 0");
  validate(a);
}
void validate_decode(const D& a) {
  if (a.out)
    FI_CHECK(a.out->dtype() == out_dtype(a), ValueError, "out.dtype is ", flashinfer::name(a.out->dtype()),
             ", but must be ", flashinfer::name(out_dtype(a)));
  validate(a);
}

template <class B>
ref::MsaNumbers numbers_of(const B& a) {
  ref::MsaNumbers n{
      .scale = a.softmax_scale.value_or(1 / std::sqrt(static_cast<double>(kMsaDim))) * a.k_global_scale.value_or(1),
      .v_scale = a.v_global_scale.value_or(1)};
  if constexpr (requires { a.lse_temperature_scale; }) n.temperature = a.lse_temperature_scale;
  return n;
}
template <class B>
op::Prepared prepare(const B& a) {
  const Batch batch = batch_of(a);
  const ref::MsaNumbers numbers = numbers_of(a);
  MsaParams p{};
  p.q = tensor_of(a.q, {}), p.k = tensor_of(a.k, a.k_scale), p.v = tensor_of(a.v, a.v_scale);
  p.n = a.q.size(0), p.heads = a.q.size(1), p.kv_heads = heads_of(a.k), p.topk = a.q2k_indices.size(2);
  if (batch.page_table)
    p.pages = batch.page_table->template data_as<int32_t>(), p.page_table_stride = batch.page_table->stride(0);
  p.selected = a.q2k_indices.template data_as<int32_t>();
  p.scale_log2 = static_cast<float>(numbers.scale * std::log2(std::exp(1.0)));
  p.v_scale = static_cast<float>(numbers.v_scale), p.temperature = static_cast<float>(numbers.temperature);
  p.out = a.out->data();
  if (a.lse) p.lse = a.lse->template data_as<float>();
  if constexpr (requires { a.lse_t; })
    if (a.lse_t) p.lse_t = a.lse_t->template data_as<float>();
  const int64_t items = p.n * p.kv_heads;
  p.items_per_task = ops::rows_per_task(items, 2 * p.topk * kMsaBlock * kMsaDim * a.k.item_size());
  const Tensor rows = rows_of(batch, p.n);
  p.rows = reinterpret_cast<const MsaRow*>(rows.data_as<int64_t>());
  return ops::with_kernel<kAttention>(
      MsaConfig{.q = a.q.dtype(), .kv = kernel_dtype(a.k), .out = out_dtype(a)},
      [p, items, rows](jit::CpuFn kernel) { ops::run_rows(kernel, p, items, p.items_per_task); });
}
template <class B>
op::Prepared prepare_cuda(const B& a, const op::Call& call) {
  const Batch batch = batch_of(a);
  const ref::MsaNumbers numbers = numbers_of(a);
  MsaCudaParams p{};
  set_batch(p, batch, a.k);
  p.q = tensor_of(a.q, {}), p.k = tensor_of(a.k, a.k_scale), p.v = tensor_of(a.v, a.v_scale);
  p.n = a.q.size(0), p.heads = a.q.size(1), p.kv_heads = heads_of(a.k), p.topk = a.q2k_indices.size(2);
  p.selected = a.q2k_indices.template data_as<int32_t>();
  p.scale_log2 = static_cast<float>(numbers.scale * std::log2(std::exp(1.0)));
  p.v_scale = static_cast<float>(numbers.v_scale), p.temperature = static_cast<float>(numbers.temperature);
  p.out = a.out->data();
  if (a.lse) p.lse = a.lse->template data_as<float>();
  if constexpr (requires { a.lse_t; })
    if (a.lse_t) p.lse_t = a.lse_t->template data_as<float>();
  const bool cores = on_cores(a.q, a.k, call.device) || !rows_aligned(a.v);
  const MsaCudaConfig c{.q = a.q.dtype(), .kv = kernel_dtype(a.k), .out = out_dtype(a), .cores = cores};
  cuda::Launch l;
  l.grid[0] = cuda::grid_size(p.n), l.grid[1] = cuda::grid_size(p.kv_heads);
  l.grid[2] = cuda::grid_size(p.kv_heads ? msa_shape(p.heads / p.kv_heads, cores, true).head_tiles : 0);
  l.block[0] = kMsaThreads, l.shared_bytes = static_cast<unsigned>(msa_shared(cores)), l.pdl = true;
  return ops::prepare_cuda<kAttentionCuda>(c, p, call.device, p.heads ? l : ops::kNoBlocks);
}
template <class B>
void reference(const B& a) {
  const auto elements = [](const TensorView& t, const std::optional<TensorView>& scale) {
    return ref::MsaElements{t, scale ? static_cast<const uint8_t*>(scale->data()) : nullptr};
  };
  const TensorView* lse_t = nullptr;
  if constexpr (requires { a.lse_t; }) lse_t = a.lse_t ? &*a.lse_t : nullptr;
  ref::msa_attention(batch_of(a), elements(a.q, {}), elements(a.k, a.k_scale), elements(a.v, a.v_scale), a.q2k_indices,
                     numbers_of(a), *a.out, a.lse ? &*a.lse : nullptr, lse_t);
}
template <class B>
op::Cost cost(const B& a) {
  const double keys = static_cast<double>(a.q2k_indices.numel() * kMsaBlock);
  return {.bytes = keys * static_cast<double>(a.k.size(-1) * a.k.item_size() * 2),
          .flops = keys * 4 * kMsaDim * static_cast<double>(a.q.size(1)) / static_cast<double>(heads_of(a.k))};
}

constexpr const char* kSelectedDoc = "blocks that each row selects, for each KV head; -1 fills up";
constexpr op::Field attention_fields[] = {
    op::in<&A::q>("q", "n h 128", kQueryTypes),
    op::in<&A::k>("k", nullptr, kCacheTypes),
    op::in<&A::v>("v", nullptr, kCacheTypes),
    op::in<&A::q2k_indices>("q2k_indices", "g n t", DType::kI32, op::contiguous, op::doc(kSelectedDoc)),
    op::in<&A::cu_seqlens_q>("cu_seqlens_q", "b+1", op::indices, op::any_layout),
    op::in<&A::cu_seqlens_k>("cu_seqlens_k", "b+1", op::indices, op::any_layout),
    op::attr<&A::causal>("causal"),
    op::attr<&A::softmax_scale>("softmax_scale"),
    op::in<&A::page_table>("page_table", "b x", DType::kI32),
    op::in<&A::seqused_k>("seqused_k", "b", op::indices, op::any_layout),
    op::attr<&A::return_softmax_lse>("return_softmax_lse"),
    op::in<&A::k_scale>("k_scale", nullptr, ops::kScaleBytes, op::contiguous),
    op::in<&A::v_scale>("v_scale", nullptr, ops::kScaleBytes, op::contiguous),
    op::attr<&A::k_global_scale>("k_global_scale"),
    op::attr<&A::v_global_scale>("v_global_scale"),
    op::attr<&A::q_offset>("q_offset"),
    op::attr<&A::return_temperature_lse>("return_temperature_lse"),
    op::attr<&A::lse_temperature_scale>("lse_temperature_scale"),
    op::attr<&A::workspace>("workspace"),
    op::result<&A::out>("out", nullptr, op::floats, op::shape<out_shape<A>>, op::dtype<out_dtype<A>>, op::contiguous),
    op::result<&A::lse>("lse", nullptr, DType::kF32, op::shape<lse_shape<A>>, op::when<wants_lse>, op::contiguous),
    op::result<&A::lse_t>("lse_t", nullptr, DType::kF32, op::shape<lse_shape<A>>, op::when<&A::return_temperature_lse>,
                          op::contiguous),
};
constexpr op::Field decode_fields[] = {
    op::in<&D::q>("q", "n h 128", kQueryTypes),
    op::in<&D::k>("k", nullptr, kCacheTypes),
    op::in<&D::v>("v", nullptr, kCacheTypes),
    op::in<&D::q2k_indices>("q2k_indices", "g n t", DType::kI32, op::contiguous, op::doc(kSelectedDoc)),
    op::in<&D::page_table>("page_table", "b x", DType::kI32, op::keyword_only),
    op::in<&D::seqused_k>("seqused_k", "b", op::indices, op::any_layout),
    op::in<&D::cu_seqlens_k>("cu_seqlens_k", "b+1", op::indices, op::any_layout),
    op::attr<&D::seqlen_q>("seqlen_q"),
    op::attr<&D::causal>("causal"),
    op::attr<&D::softmax_scale>("softmax_scale"),
    op::attr<&D::return_softmax_lse>("return_softmax_lse"),
    op::in<&D::k_scale>("k_scale", nullptr, ops::kScaleBytes, op::contiguous),
    op::in<&D::v_scale>("v_scale", nullptr, ops::kScaleBytes, op::contiguous),
    op::attr<&D::k_global_scale>("k_global_scale"),
    op::attr<&D::v_global_scale>("v_global_scale"),
    op::attr<&D::q_offset>("q_offset"),
    op::attr<&D::partial_dtype>("partial_dtype"),
    op::attr<&D::force_fused>("force_fused"),
    op::attr<&D::workspace>("workspace"),
    op::out<&D::out>("out", nullptr, op::floats, op::shape<out_shape<D>>, op::dtype<out_dtype<D>>, op::contiguous),
    op::result<&D::lse>("lse", nullptr, DType::kF32, op::shape<lse_shape<D>>, op::when<&D::return_softmax_lse>,
                        op::contiguous),
};
template <class B>
constexpr op::Candidate candidates[] = {op::cuda<prepare_cuda<B>>(), op::cpu<prepare<B>>(),
                                        op::reference<reference<B>>()};
}  // namespace

namespace ops::msa {
constinit const op::Op attention_op = op::define<A, validate_attention, cost<A>>(
    "msa_sparse_attention", "flashinfer.msa_ops",
    "Attention of each row over the blocks of 128 keys that it selects; LSE in base e.", attention_fields,
    candidates<A>, attention_cases);
constinit const op::Op decode_op = op::define<D, validate_decode, cost<D>>(
    "msa_sparse_decode_attention", "flashinfer.msa_ops",
    "Attention over selected blocks for a decode step: every request has seqlen_q rows.", decode_fields, candidates<D>,
    decode_cases);
}  // namespace ops::msa

op::Results msa_sparse_attention(const A& a) { return op::call(ops::msa::attention_op, a); }
op::Results msa_sparse_decode_attention(const D& a) { return op::call(ops::msa::decode_op, a); }

}  // namespace flashinfer
