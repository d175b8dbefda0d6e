// SPDX-License-Identifier: Apache-2.0
// concat_mla_kv_quant_fp8: K and V of un-absorbed prefill in e4m3, from the product of the latent rows and the rotated
// part.
#include "flashinfer/core/int_math.h"
#include "flashinfer/ops/common/cuda.h"
#include "flashinfer/ops/common/rows.h"
#include "flashinfer/ops/mla/cases.h"
#include "flashinfer/ops/mla/kernels/concat_params.h"
#include "flashinfer/ops/mla/plan.h"
#include "flashinfer/ops/mla/ref.h"

namespace flashinfer {
namespace mla {
namespace {

inline constexpr jit::Kernel kKernel{"flashinfer/ops/mla/kernels/cpu/concat.h", "flashinfer::cpu::concat_mla_kv_quant",
                                     "flashinfer::ConcatQuantParams"};
inline constexpr jit::Kernel kCuda{"flashinfer/ops/mla/kernels/cuda/concat.cuh", "flashinfer::cu::concat_mla_kv_quant",
                                   "flashinfer::ConcatQuantParams"};
constexpr const char* kConcatQuant = "concat_mla_kv_quant_fp8";

int64_t rope_of(const ConcatMlaKvQuantFp8& a) { return a.k_pe.size(-1); }
void validate(const ConcatMlaKvQuantFp8& a) {
  const TensorView &kv = a.kv_nope, &pe = a.k_pe;
  FI_CHECK(a.nope_dim >= 0 && a.nope_dim <= kv.size(2), ValueError, "nope_dim is ", a.nope_dim,
           ", but kv_nope.shape[2] is ", kv.size(2));
  FI_CHECK((pe.rank() == 2 || (pe.rank() == 3 && pe.size(1) == 1)) && pe.size(0) == kv.size(0), ValueError, "k_pe is ",
           to_string(pe), ", but must be [", kv.size(0), ", rope] or [", kv.size(0), ", 1, rope] (tokens of kv_nope)");
}
op::Shape key_shape(const ConcatMlaKvQuantFp8& a) {
  return {3, {a.kv_nope.size(0), a.kv_nope.size(1), a.nope_dim + rope_of(a)}};
}
op::Shape value_shape(const ConcatMlaKvQuantFp8& a) {
  return {3, {a.kv_nope.size(0), a.kv_nope.size(1), a.kv_nope.size(2) - a.nope_dim}};
}

ConcatQuantConfig config_of(const ConcatMlaKvQuantFp8& a) { return {a.kv_nope.dtype(), a.k_pe.dtype()}; }
ConcatQuantParams params_of(const ConcatMlaKvQuantFp8& a) {
  ConcatQuantParams p{};
  p.kv = a.kv_nope.data(), p.kv_stride_n = a.kv_nope.stride(0), p.kv_stride_h = a.kv_nope.stride(1);
  p.pe = a.k_pe.data(), p.pe_stride_n = a.k_pe.stride(0);
  p.key = a.key->data_as<e4m3_t>(), p.key_stride_n = a.key->stride(0), p.key_stride_h = a.key->stride(1);
  p.value = a.value->data_as<e4m3_t>(), p.value_stride_n = a.value->stride(0), p.value_stride_h = a.value->stride(1);
  p.tokens = a.kv_nope.size(0), p.heads = a.kv_nope.size(1), p.nope = a.nope_dim, p.rope = rope_of(a),
  p.v = a.kv_nope.size(2) - a.nope_dim;
  p.tokens_per_task = ops::rows_per_task(p.tokens, p.heads * (p.nope + p.v + p.rope) * (a.kv_nope.item_size() + 1));
  return p;
}
op::Prepared prepare(const ConcatMlaKvQuantFp8& a) {
  const ConcatQuantParams p = params_of(a);
  return ops::prepare_rows<kKernel>(config_of(a), p, p.tokens, p.tokens_per_task);
}
/// Whether every part of every row begins at a multiple of 8 elements, aligned for loads of 16 bytes and stores of 8.
bool in_eights(const ConcatMlaKvQuantFp8& a, const ConcatQuantParams& p) {
  const auto begins = [](const TensorView& t, int64_t bytes) {
    uint64_t all = reinterpret_cast<uintptr_t>(t.data());
    for (int i = 0; i + 1 < t.rank(); ++i)
      if (t.size(i) > 1) all |= static_cast<uint64_t>(t.stride(i) * t.item_size());
    return all % static_cast<uint64_t>(bytes) == 0;
  };
  return (p.nope | p.rope | p.v) % 8 == 0 && begins(a.kv_nope, 16) && begins(a.k_pe, 16) && begins(*a.key, 8) &&
         begins(*a.value, 8);
}
op::Prepared prepare_cuda(const ConcatMlaKvQuantFp8& a, const op::Call& call) {
  const ConcatQuantParams p = params_of(a);
  const ConcatQuantCudaConfig config{a.kv_nope.dtype(), a.k_pe.dtype(), in_eights(a, p) ? short{8} : short{1}, 256};
  const int64_t pieces = p.heads * (p.nope + p.rope + p.v) / config.per;
  if (pieces >= int64_t{1} << 31)
    return op::Unsupported{str("a token has ", pieces, " elements, but a GPU's kernel takes fewer than 2^31")};
  cuda::Launch l;
  l.block[0] = static_cast<unsigned>(config.threads);
  l.grid[0] = cuda::grid_size(p.tokens * ceil_div(pieces, int64_t{config.threads}));
  l.pdl = true;
  return ops::prepare_cuda<kCuda>(config, p, call.device, l);
}
op::Cost cost(const ConcatMlaKvQuantFp8& a) {
  return {.bytes = static_cast<double>(a.kv_nope.nbytes() + a.k_pe.nbytes() + a.kv_nope.numel() +
                                       a.kv_nope.size(0) * a.kv_nope.size(1) * rope_of(a))};
}

constexpr op::Field fields[] = {
    op::in<&ConcatMlaKvQuantFp8::kv_nope>("kv_nope", "n h d", op::floats),
    op::in<&ConcatMlaKvQuantFp8::k_pe>("k_pe", nullptr, op::floats),
    op::out<&ConcatMlaKvQuantFp8::key>("key", nullptr, DType::kF8E4M3, op::shape<key_shape>),
    op::out<&ConcatMlaKvQuantFp8::value>("value", nullptr, DType::kF8E4M3, op::shape<value_shape>),
    op::attr<&ConcatMlaKvQuantFp8::nope_dim>("nope_dim", op::keyword_only),
    op::attr<&ConcatMlaKvQuantFp8::backend>("backend", op::choices("auto|specialized|cake")),
};
constexpr op::Candidate candidates[] = {op::cuda<prepare_cuda>(), op::cpu<prepare>(),
                                        op::reference<ref::concat_mla_kv_quant_fp8>()};
}  // namespace

constinit const op::Op concat_quant_op = op::define<ConcatMlaKvQuantFp8, validate, cost>(
    kConcatQuant, "flashinfer", "key = (kv_nope[..., :nope_dim], k_pe for every head), value = the rest, in e4m3.",
    fields, candidates, ops::mla::concat_quant_cases);

}  // namespace mla

op::Results concat_mla_kv_quant_fp8(const ConcatMlaKvQuantFp8& a) { return op::call(mla::concat_quant_op, a); }

}  // namespace flashinfer
