// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/quantization/fp8/sage.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "flashinfer/core/int_math.h"
#include "flashinfer/ops/common/reference.h"
#include "flashinfer/ops/common/rows.h"
#include "flashinfer/ops/quantization/cases.h"
#include "flashinfer/ops/quantization/kernels/sage_params.h"
#include "flashinfer/ops/quantization/ops.h"

namespace flashinfer {
namespace {
using S = TrtllmSageAttentionQuantize;
inline constexpr jit::Kernel kSage{"flashinfer/ops/quantization/kernels/cpu/sage.h", "flashinfer::cpu::sage_quantize",
                                   "flashinfer::SageParams"};

struct Part {
  const TensorView &x, &q, &scales;
  int64_t block;  // 0: a scale for each channel
};
std::array<Part, 3> parts_of(const S& a) {
  return {Part{a.query, *a.q_quant, *a.q_scale, a.q_block_size}, Part{a.key, *a.k_quant, *a.k_scale, a.k_block_size},
          Part{a.value, *a.v_quant, *a.v_scale, 0}};
}
DType qk_dtype(const S& a) { return a.qk_quant_dtype; }
op::Shape like(const TensorView& x) { return {3, {x.size(0), x.size(1), x.size(2)}}; }
op::Shape q_shape(const S& a) { return like(a.query); }
op::Shape k_shape(const S& a) { return like(a.key); }
op::Shape v_shape(const S& a) { return like(a.value); }
op::Shape q_scale_shape(const S& a) { return {2, {a.query.size(1), ceil_div(a.query.size(0), a.q_block_size)}}; }
op::Shape k_scale_shape(const S& a) { return {2, {a.key.size(1), ceil_div(a.key.size(0), a.k_block_size)}}; }
op::Shape v_scale_shape(const S& a) { return {2, {a.value.size(1), a.value.size(2)}}; }

void validate(const S& a) {
  for (const auto& [name, x] : {std::pair("q_block_size", a.q_block_size), std::pair("k_block_size", a.k_block_size)})
    FI_CHECK(x == 1 || x == 4 || x == 16, ValueError, name, " is ", x, ", but must be 1, 4 or 16");
  FI_CHECK(a.qk_quant_dtype == DType::kI8 || a.qk_quant_dtype == DType::kF8E4M3, ValueError, "qk_quant_dtype is ",
           name(a.qk_quant_dtype), ", but must be int8 or float8_e4m3fn");
  const char* unknown = " is not supported: how its blocks and means are stored is not documented";
  FI_CHECK(!a.cum_seq_lens_q && !a.cum_seq_lens_kv, NotImplementedError,
           a.cum_seq_lens_q ? "cum_seq_lens_q" : "cum_seq_lens_kv", unknown);
  FI_CHECK(!a.smooth_k, NotImplementedError, "smooth_k=True", unknown);
}
op::Prepared prepare(const S& a) {
  const auto kernel_of = [&](DType out) -> const jit::Loaded& {
    return jit::cpu_kernel<kSage>(SageConfig{a.query.dtype(), out});
  };
  const jit::Loaded &qk = kernel_of(a.qk_quant_dtype), &v = kernel_of(DType::kF8E4M3);
  for (const jit::Loaded* kernel : {&qk, &v})
    if (!kernel->fn) return op::Unsupported{kernel->why_not};
  return [&a, qk = qk.fn, v = v.fn] {
    for (const Part& part : parts_of(a)) {
      SageParams p{.x = part.x.data(),
                   .q = part.q.data(),
                   .scales = part.scales.data_as<float>(),
                   .tokens = part.x.size(0),
                   .heads = part.x.size(1),
                   .dim = part.x.size(2),
                   .block = part.block,
                   .items_per_task = 1};
      const int64_t items = part.scales.numel() / (part.block ? 1 : std::max<int64_t>(p.dim, 1));
      const int64_t bytes = 3 * p.dim * (part.block ? part.block : p.tokens);
      p.items_per_task = ops::rows_per_task(items, bytes);
      ops::run_rows(part.block ? qk : v, p, items, p.items_per_task);
    }
  };
}
/// One scale: that of tokens [first, end) and channels [d, d_end) of head h.
void quantize(const Part& part, int64_t h, int64_t first, int64_t end, int64_t d, int64_t d_end, int64_t column) {
  double largest = 0;
  for (int64_t t = first; t < end; ++t)
    for (int64_t i = d; i < d_end; ++i) largest = std::max(largest, std::abs(ref::at(part.x, {t, h, i})));
  const double most = part.q.dtype() == DType::kI8 ? 127 : 448;
  const float scale = largest > 0 ? static_cast<float>(static_cast<float>(largest) / static_cast<float>(most)) : 1.0f;
  ref::put(part.scales, {h, column}, scale);
  for (int64_t t = first; t < end; ++t)
    for (int64_t i = d; i < d_end; ++i) {
      const double x = static_cast<float>(ref::at(part.x, {t, h, i})) / scale;
      const double code = std::clamp(x, -most, most);
      ref::put(part.q, {t, h, i}, part.q.dtype() == DType::kI8 ? std::nearbyint(code) : code);
    }
}
void reference(const S& a) {
  for (const Part& part : parts_of(a)) {
    const int64_t n = part.x.size(0), dim = part.x.size(2);
    for (int64_t h = 0; h < part.x.size(1); ++h) {
      if (part.block)
        for (int64_t b = 0; b < part.scales.size(1); ++b)
          quantize(part, h, b * part.block, std::min(n, (b + 1) * part.block), 0, dim, b);
      else
        for (int64_t d = 0; d < dim; ++d) quantize(part, h, 0, n, d, d + 1, d);
    }
  }
}
op::Cost cost(const S& a) {
  const double n = static_cast<double>(a.query.numel() + a.key.numel() + a.value.numel());
  return {.bytes = 3 * n, .flops = 3 * n};
}

constexpr op::Field fields[] = {
    op::in<&S::query>("query", "n h d", DTypeSet(DType::kF16) | DType::kBF16, op::contiguous),
    op::in<&S::key>("key", "m g d", op::same_as("query"), op::contiguous),
    op::in<&S::value>("value", "m g d", op::same_as("query"), op::contiguous),
    op::attr<&S::q_block_size>("q_block_size", op::doc("query tokens that share a scale")),
    op::attr<&S::k_block_size>("k_block_size", op::doc("key tokens that share a scale")),
    op::attr<&S::qk_quant_dtype>("qk_quant_dtype", op::doc("dtype of the codes of query and key")),
    op::in<&S::cum_seq_lens_q>("cum_seq_lens_q", nullptr, op::doc("unsupported")),
    op::in<&S::cum_seq_lens_kv>("cum_seq_lens_kv", nullptr, op::doc("unsupported")),
    op::attr<&S::smooth_k>("smooth_k", op::doc("unsupported when true")),
    op::result<&S::q_quant>("q_quant", nullptr, DTypeSet(DType::kI8) | DType::kF8E4M3, op::shape<q_shape>,
                            op::dtype<qk_dtype>, op::contiguous, op::doc("codes of the queries")),
    op::result<&S::k_quant>("k_quant", nullptr, DTypeSet(DType::kI8) | DType::kF8E4M3, op::shape<k_shape>,
                            op::dtype<qk_dtype>, op::contiguous, op::doc("codes of the keys")),
    op::result<&S::v_quant>("v_quant", nullptr, DType::kF8E4M3, op::shape<v_shape>, op::contiguous,
                            op::doc("codes of the values")),
    op::result<&S::q_scale>("q_scale", nullptr, DType::kF32, op::shape<q_scale_shape>, op::contiguous,
                            op::doc("scale of each head and block of query tokens")),
    op::result<&S::k_scale>("k_scale", nullptr, DType::kF32, op::shape<k_scale_shape>, op::contiguous,
                            op::doc("scale of each head and block of key tokens")),
    op::result<&S::v_scale>("v_scale", nullptr, DType::kF32, op::shape<v_scale_shape>, op::contiguous,
                            op::doc("scale of each head and channel of the values")),
};
constexpr op::Candidate candidates[] = {op::cpu<prepare>(), op::reference<reference>()};
}  // namespace

namespace ops::quantization {
constinit const op::Op sage_op =
    op::define<S, validate, cost>("trtllm_sage_attention_quantize", "flashinfer.prefill",
                                  "Queries, keys and values in 8 bits with the scales of SageAttention: of blocks of "
                                  "tokens, and of the channels of value.",
                                  fields, candidates, sage_cases);
}  // namespace ops::quantization

op::Results trtllm_sage_attention_quantize(const S& a) { return op::call(ops::quantization::sage_op, a); }
}  // namespace flashinfer
