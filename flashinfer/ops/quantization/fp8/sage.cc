// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/quantization/fp8/sage.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "flashinfer/core/int_math.h"
#include "flashinfer/op/index_checks.h"
#include "flashinfer/ops/common/lookup.h"
#include "flashinfer/ops/common/reference.h"
#include "flashinfer/ops/common/rows.h"
#include "flashinfer/ops/quantization/cases.h"
#include "flashinfer/ops/quantization/fp8/sage_cuda.h"
#include "flashinfer/ops/quantization/kernels/sage_params.h"
#include "flashinfer/ops/quantization/ops.h"

namespace flashinfer {
namespace {
using S = TrtllmSageAttentionQuantize;
inline constexpr jit::Kernel kSage{"flashinfer/ops/quantization/kernels/cpu/sage.h", "flashinfer::cpu::sage_quantize",
                                   "flashinfer::SageParams"};

inline constexpr jit::Kernel kMean{"flashinfer/ops/quantization/kernels/cpu/sage.h", "flashinfer::cpu::sage_mean",
                                   "flashinfer::SageParams"};

struct Part {
  const TensorView &x, &q, &scales;
  int64_t block;                                    // 0: a scale for each channel
  const std::optional<TensorView>* cum;             // of the requests; null: one request
  const std::optional<TensorView>* mean = nullptr;  // subtracted from x, or null
};
std::array<Part, 3> parts_of(const S& a) {
  return {Part{a.query, *a.q_quant, *a.q_scale, a.q_block_size, &a.cum_seq_lens_q},
          Part{a.key, *a.k_quant, *a.k_scale, a.k_block_size, &a.cum_seq_lens_kv, &a.k_mean},
          Part{a.value, *a.v_quant, *a.v_scale, 0, nullptr}};
}
DType qk_dtype(const S& a) { return a.qk_quant_dtype; }
op::Shape like(const TensorView& x) { return {3, {x.size(0), x.size(1), x.size(2)}}; }
op::Shape q_shape(const S& a) { return like(a.query); }
op::Shape k_shape(const S& a) { return like(a.key); }
op::Shape v_shape(const S& a) { return like(a.value); }
int64_t requests_of(const std::optional<TensorView>& cum) { return cum ? std::max<int64_t>(cum->size(0) - 1, 1) : 1; }
op::Shape scale_shape(const TensorView& x, int64_t block, const std::optional<TensorView>& cum) {
  return {2, {x.size(1), ceil_div(x.size(0), std::max<int64_t>(block, 1)) + requests_of(cum) - 1}};
}
op::Shape q_scale_shape(const S& a) { return scale_shape(a.query, a.q_block_size, a.cum_seq_lens_q); }
op::Shape k_scale_shape(const S& a) { return scale_shape(a.key, a.k_block_size, a.cum_seq_lens_kv); }
op::Shape v_scale_shape(const S& a) { return {2, {a.value.size(1), a.value.size(2)}}; }

void check_requests(const char* name, const TensorView& cum, int64_t tokens) {
  FI_CHECK(cum.size(0) >= 2, ValueError, name, " is ", to_string(cum), ", but must be [requests + 1]");
  if (cum.device() != kCpu) return;
  op::check_indptr(name, cum);
  const int64_t first = op::index_at(cum, 0), last = op::index_at(cum, cum.size(0) - 1);
  FI_CHECK(first == 0 && last == tokens, ValueError, name, " goes from ", first, " to ", last,
           ", but must go from 0 to the number of tokens, ", tokens);
}
void validate(const S& a) {
  for (const auto& [name, x] : {std::pair("q_block_size", a.q_block_size), std::pair("k_block_size", a.k_block_size)})
    FI_CHECK(x == 1 || x == 4 || x == 16, ValueError, name, " is ", x, ", but must be 1, 4 or 16");
  FI_CHECK(a.qk_quant_dtype == DType::kI8 || a.qk_quant_dtype == DType::kF8E4M3, ValueError, "qk_quant_dtype is ",
           name(a.qk_quant_dtype), ", but must be int8 or float8_e4m3fn");
  FI_CHECK(a.cum_seq_lens_q.has_value() == a.cum_seq_lens_kv.has_value(), ValueError,
           "cum_seq_lens_q and cum_seq_lens_kv must be given together");
  if (!a.cum_seq_lens_q) return;
  check_requests("cum_seq_lens_q", *a.cum_seq_lens_q, a.query.size(0));
  check_requests("cum_seq_lens_kv", *a.cum_seq_lens_kv, a.key.size(0));
  FI_CHECK(a.cum_seq_lens_q->size(0) == a.cum_seq_lens_kv->size(0), ValueError, "cum_seq_lens_kv.shape[0] is ",
           a.cum_seq_lens_kv->size(0), ", but cum_seq_lens_q has ", a.cum_seq_lens_q->size(0));
}
/// The blocks of a part whose scales belong to blocks.
std::vector<SageBlock> blocks_of(const Part& part) {
  std::vector<SageBlock> out;
  const TensorView* const cum = *part.cum ? &**part.cum : nullptr;
  for (int64_t b = 0; b < requests_of(*part.cum); ++b) {
    const int64_t begin = cum ? op::index_at(*cum, b) : 0, end = cum ? op::index_at(*cum, b + 1) : part.x.size(0);
    for (int64_t t = begin; t < end; t += part.block)
      out.push_back({t, std::min(t + part.block, end), begin / part.block + b + (t - begin) / part.block});
  }
  return out;
}
SageParams params_of(const Part& part, const std::vector<SageBlock>& blocks) {
  return {.x = part.x.data(),
          .q = part.q.data(),
          .scales = part.scales.data_as<float>(),
          .mean = part.mean && *part.mean ? (*part.mean)->data_as<float>() : nullptr,
          .blocks = part.block ? blocks.data() : nullptr,
          .tokens = part.x.size(0),
          .heads = part.x.size(1),
          .dim = part.x.size(2),
          .block_count = static_cast<int64_t>(blocks.size()),
          .columns = part.scales.size(1),
          .items_per_task = 1};
}
void quantize_part(const Part& part, jit::CpuFn fn) {
  const std::vector<SageBlock> blocks = part.block ? blocks_of(part) : std::vector<SageBlock>();
  SageParams p = params_of(part, blocks);
  if (part.block && p.block_count != p.columns) std::fill_n(part.scales.data_as<float>(), part.scales.numel(), 0.0f);
  const int64_t items = p.heads * (part.block ? p.block_count : 1);
  p.items_per_task = ops::rows_per_task(items, 3 * p.dim * (part.block ? part.block : p.tokens));
  if (items) ops::run_rows(fn, p, items, p.items_per_task);
}
void run_mean(const S& a, jit::CpuFn fn) {
  SageParams p{.x = a.key.data(),
               .q = nullptr,
               .scales = a.k_mean->data_as<float>(),
               .mean = nullptr,
               .blocks = nullptr,
               .tokens = a.key.size(0),
               .heads = a.key.size(1),
               .dim = a.key.size(2),
               .block_count = 0,
               .columns = 0,
               .items_per_task = 1};
  p.items_per_task = ops::rows_per_task(p.heads, 2 * p.dim * p.tokens);
  if (p.heads) ops::run_rows(fn, p, p.heads, p.items_per_task);
}
op::Prepared prepare(const S& a) {
  ops::Lookup lookup;
  const jit::CpuFn qk = lookup.kernel<kSage>(SageConfig{a.query.dtype(), a.qk_quant_dtype}),
                   v = lookup.kernel<kSage>(SageConfig{a.query.dtype(), DType::kF8E4M3}),
                   mean = a.smooth_k ? lookup.kernel<kMean>(SageConfig{a.query.dtype(), DType::kF8E4M3}) : nullptr;
  return lookup.prepared([&a, qk, v, mean] {
    if (mean) run_mean(a, mean);
    for (const Part& part : parts_of(a)) quantize_part(part, part.block ? qk : v);
  });
}
/// One scale: that of tokens [first, end) and channels [d, d_end) of head h.
void quantize(const Part& part, int64_t h, int64_t first, int64_t end, int64_t d, int64_t d_end, int64_t column) {
  const auto value = [&](int64_t t, int64_t i) {
    const double x = ref::at(part.x, {t, h, i});
    return part.mean && *part.mean ? static_cast<float>(x) - static_cast<float>(ref::at(**part.mean, {h, i}))
                                   : static_cast<float>(x);
  };
  double largest = 0;
  for (int64_t t = first; t < end; ++t)
    for (int64_t i = d; i < d_end; ++i) largest = std::max<double>(largest, std::abs(value(t, i)));
  const double most = part.q.dtype() == DType::kI8 ? 127 : 448;
  const float scale = largest > 0 ? static_cast<float>(static_cast<float>(largest) / static_cast<float>(most)) : 1.0f;
  ref::put(part.scales, {h, column}, scale);
  for (int64_t t = first; t < end; ++t)
    for (int64_t i = d; i < d_end; ++i) {
      const double x = value(t, i) / scale;
      const double code = std::clamp(x, -most, most);
      ref::put(part.q, {t, h, i}, part.q.dtype() == DType::kI8 ? std::nearbyint(code) : code);
    }
}
/// Where the scale of token t lies among a head's, and the tokens that share it: as sage.h says it.
void reference_blocks(const Part& part, int64_t h, int64_t begin, int64_t end, int64_t request) {
  const int64_t block = part.block;
  for (int64_t t = 0; t < end - begin; t += block)
    quantize(part, h, begin + t, std::min(end, begin + t + block), 0, part.x.size(2),
             begin / block + request + t / block);
}
void reference(const S& a) {
  for (int64_t h = 0; a.smooth_k && h < a.key.size(1); ++h)
    for (int64_t i = 0; i < a.key.size(2); ++i) {
      double sum = 0;
      for (int64_t t = 0; t < a.key.size(0); ++t) sum += ref::at(a.key, {t, h, i});
      ref::put(*a.k_mean, {h, i}, sum / static_cast<double>(std::max<int64_t>(a.key.size(0), 1)));
    }
  for (const Part& part : parts_of(a)) {
    const int64_t n = part.x.size(0), dim = part.x.size(2);
    if (part.block) std::fill_n(part.scales.data_as<float>(), part.scales.numel(), 0.0f);
    for (int64_t h = 0; h < part.x.size(1); ++h) {
      if (!part.block)
        for (int64_t d = 0; d < dim; ++d) quantize(part, h, 0, n, d, d + 1, d);
      else if (!*part.cum)
        reference_blocks(part, h, 0, n, 0);
      else
        for (int64_t b = 0; b + 1 < (*part.cum)->size(0); ++b)
          reference_blocks(part, h, static_cast<int64_t>(ref::at(**part.cum, {b})),
                           static_cast<int64_t>(ref::at(**part.cum, {b + 1})), b);
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
    op::in<&S::cum_seq_lens_q>("cum_seq_lens_q", "b+1", op::indices, op::any_layout),
    op::in<&S::cum_seq_lens_kv>("cum_seq_lens_kv", "b+1", op::indices, op::any_layout,
                                op::doc("first KV token of each request, and their number at the end")),
    op::attr<&S::smooth_k>("smooth_k", op::doc("quantise keys minus their mean over all tokens")),
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
    op::result<&S::k_mean>("k_mean", nullptr, DType::kF32, op::shape<v_scale_shape>, op::contiguous,
                           op::when<&S::smooth_k>, op::doc("mean of the keys over all tokens")),
};
constexpr op::Candidate candidates[] = {op::cuda<ops::prepare_sage_cuda>(), op::cpu<prepare>(),
                                        op::reference<reference>()};
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
