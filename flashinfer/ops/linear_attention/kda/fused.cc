// SPDX-License-Identifier: Apache-2.0
// A convolution, the op kda_recurrence, and a gated norm.
#include "flashinfer/ops/linear_attention/kda/fused.h"

#include <cmath>

#include "flashinfer/op/call.h"
#include "flashinfer/ops/common/rows.h"
#include "flashinfer/ops/linear_attention/cases.h"
#include "flashinfer/ops/linear_attention/gate_checks.h"
#include "flashinfer/ops/linear_attention/gdn/decode_call.h"
#include "flashinfer/ops/linear_attention/kda/fused_call.h"
#include "flashinfer/ops/linear_attention/kda/fused_cuda.h"
#include "flashinfer/ops/linear_attention/kda/ref.h"
#include "flashinfer/ops/linear_attention/ops.h"
#include "flashinfer/ops/linear_attention/parts.h"

namespace flashinfer {
namespace {
using ops::linear_attention::check_shape;
using ops::linear_attention::check_slots;
using ops::linear_attention::KdaFusedCall;
using Fused = FusedKdaDecode;
using Packed = PackedFusedKdaDecode;
#define FI_FUSED "flashinfer/ops/linear_attention/kernels/kda/fused.h"
inline constexpr jit::Kernel kConv{FI_FUSED, "flashinfer::cpu::kda_fused_conv", "flashinfer::KdaFusedParams"};
inline constexpr jit::Kernel kNorm{FI_FUSED, "flashinfer::cpu::kda_fused_norm", "flashinfer::KdaFusedParams"};
#undef FI_FUSED

// ---- launch ----
template <class B>
KdaFusedParams params_of(const B& a, const KdaFusedCall& c) {
  KdaFusedParams p{};
  p.rows = c.rows.data(), p.count = static_cast<int64_t>(c.rows.size()), p.tokens = a.x.size(0);
  p.channels = a.weight.size(2), p.x = a.x.data(), p.x_row = a.x.stride(0),
  p.weight = a.weight.template data_as<float>();
  p.state = a.conv_state.data(), p.state_slot = a.conv_state.stride(0), p.state_channel = a.conv_state.stride(1),
  p.state_token = a.conv_state.stride(2), p.out = c.qkv.data();
  p.result = c.output.data(), p.result_row = c.output.stride(0), p.result_head = c.output.stride(1);
  p.heads = c.output.size(1), p.width = c.output.size(2);
  p.gate = c.output_gate.data(), p.gate_row = c.output_gate.stride(0), p.gate_head = c.output_gate.stride(1);
  p.norm_weight = a.norm_weight.template data_as<float>(), p.eps = static_cast<float>(a.norm_eps);
  p.per_task = ops::rows_per_task(p.tokens * p.heads, 4 * p.width);
  return p;
}
template <class B>
op::Prepared prepare_cpu(const B& a) {
  using ops::linear_attention::kda_recurrence_op;
  // All kernels are looked up before the first return: the list for precompiling holds what is looked up.
  const auto& norm = jit::cpu_kernel<kNorm>(KdaFusedConfig{DType::kBF16});
  jit::cpu_kernel<kConv>(KdaFusedConfig{DType::kBF16});
  {
    const KdaFusedCall call(a);
    if (const std::string why = ops::linear_attention::why_not(kda_recurrence_op, &call.recurrence); !why.empty())
      return op::Unsupported{why};
  }
  if (!norm.fn) return op::Unsupported{norm.why_not};
  return ops::with_kernel<kConv>(KdaFusedConfig{DType::kBF16}, [&a, norm = norm.fn](jit::CpuFn conv) {
    KdaFusedCall call(a);
    const std::vector<char> active = call.active();
    KdaFusedParams p = params_of(a, call);
    p.active = reinterpret_cast<const bool*>(active.data());
    ops::run_rows(conv, p, p.tokens ? 3 * ceil_div(p.channels, kKdaFusedChannels) : 0, 1);
    op::detail::run_unobserved(kda_recurrence_op, &call.recurrence);
    ops::run_rows(norm, p, p.tokens * p.heads, p.per_task);
  });
}

// ---- reference ----
/// Inputs and outputs of the convolution, which end in the slots and in q, k and v.
void convolve(const TensorView& x, const TensorView& weight, const TensorView& state, const KdaFusedCall& c) {
  const int64_t channels = weight.size(2);
  for (const KdaFusedRow& row : c.rows)
    for (int64_t i = 0; i < 3 * channels && row.slot >= 0 && row.tokens; ++i) {
      std::vector<double> h;
      for (int64_t j = 0; j < 3; ++j) h.push_back(ref::at(state, {row.slot, i, row.at + j}));
      for (int64_t t = 0; t < row.tokens; ++t) h.push_back(ref::at(x, {row.first + t, i}));
      for (size_t j = 1; j < h.size(); ++j) ref::put(state, {row.slot, i, static_cast<int64_t>(j) - 1}, h[j]);
      for (int64_t t = 0; t < row.tokens; ++t) {
        double sum = 0;
        for (int64_t j = 0; j < 4; ++j)
          sum += ref::at(weight, {i / channels, j, i % channels}) * h[static_cast<size_t>(t + j)];
        ref::put(c.qkv, {row.first + t, i}, sum / (1 + std::exp(-sum)));
      }
    }
}
template <class B>
void reference(const B& a) {
  const KdaFusedCall c(a);
  for (int64_t i = 0; i < c.qkv.size(0) * c.qkv.size(1); ++i)
    ref::put(c.qkv, {i / c.qkv.size(1), i % c.qkv.size(1)}, 0);
  convolve(a.x, a.weight, a.conv_state, c);
  ref::kda_recurrence(c.recurrence);
  const std::vector<char> active = c.active();
  const TensorView& o = c.output;
  for (int64_t t = 0; t < o.size(0); ++t)
    for (int64_t h = 0; h < o.size(1) && active[static_cast<size_t>(t)]; ++h) {
      double squares = 0;
      for (int64_t v = 0; v < o.size(2); ++v) squares += ref::at(o, {t, h, v}) * ref::at(o, {t, h, v});
      const double by = 1 / std::sqrt(squares / static_cast<double>(o.size(2)) + a.norm_eps);
      for (int64_t v = 0; v < o.size(2); ++v)
        ref::put(o, {t, h, v},
                 ref::at(o, {t, h, v}) * by * ref::at(a.norm_weight, {v}) /
                     (1 + std::exp(-ref::at(c.output_gate, {t, h, v}))));
    }
}

// ---- checks ----
template <class B>
void check_common(const B& a, int64_t tokens_of_call) {
  const int64_t tokens = a.x.size(0), heads = a.state.size(1), width = a.state.size(2), c = heads * width;
  FI_CHECK(a.state.size(3) == width && width > 0 && heads > 0, ValueError, "state is ", to_string(a.state),
           ", but must be [slots, heads, width, width]");
  check_shape("x", a.x, {tokens, 3 * c});
  check_shape("weight", a.weight, {3, 4, c});
  check_shape("conv_state", a.conv_state, {a.state.size(0), 3 * c, tokens_of_call + 2});
  check_shape("raw_gate", a.raw_gate, {1, tokens, heads, width});
  check_shape("raw_beta", a.raw_beta, {1, tokens, heads});
  FI_CHECK(a.A_log.numel() == heads, ValueError, "A_log is ", to_string(a.A_log), ", but must have ", heads,
           " elements, one a head of state");
  FI_CHECK(a.dt_bias.numel() == c, ValueError, "dt_bias is ", to_string(a.dt_bias), ", but must have ", c,
           " elements: heads times width of state");
  if (a.output_gate.rank() == 4)
    check_shape("output_gate", a.output_gate, {1, tokens, heads, width});
  else
    check_shape("output_gate", a.output_gate, {tokens, heads, width});
  check_shape("norm_weight", a.norm_weight, {width});
  FI_CHECK(a.norm_eps >= 0, ValueError, "norm_eps is ", a.norm_eps, ", but must be at least 0");
  FI_CHECK(!a.lower_bound || (*a.lower_bound < 0 && std::isfinite(*a.lower_bound)), ValueError, "lower_bound is ",
           a.lower_bound.value_or(0), ", but must be below 0 and finite, or None");
}
/// takes_part(row): whether it has a slot.
template <class B, class F>
void check_gates(const B& a, F takes_part) {
  using ops::linear_attention::check_gate;
  check_gate("A_log", a.A_log), check_gate("dt_bias", a.dt_bias);
  check_gate("raw_gate", a.raw_gate, takes_part, 1), check_gate("raw_beta", a.raw_beta, takes_part, 1);
}
auto has_slot(const TensorView& slots) {
  return [&slots](int64_t row) { return op::index_at(slots, row) > 0; };
}
void validate_fused(const Fused& a) {
  check_common(a, 1);
  check_shape("state_indices", a.state_indices, {a.x.size(0)});
  check_slots("state_indices", a.state_indices, "state", a.state.size(0));
  check_gates(a, has_slot(a.state_indices));
}
void validate_packed(const Packed& a) {
  const int64_t tokens = a.state_indices.size(1), n = a.state_indices.size(0);
  FI_CHECK(tokens >= 1, ValueError, "state_indices is ", to_string(a.state_indices), ", but must have columns");
  check_common(a, tokens);
  FI_CHECK(tokens == 1 || a.lower_bound, ValueError, "lower_bound is None, but must be a number with ", tokens,
           " tokens");
  FI_CHECK(tokens == 1 || !a.t1_state_indices, ValueError, "t1_state_indices is given, but state_indices has ", tokens,
           " columns: it is for one token");
  check_shape("query_start_loc", a.query_start_loc, {n + 1});
  check_shape("num_accepted_tokens", a.num_accepted_tokens, {n});
  if (a.t1_state_indices) {
    check_shape("t1_state_indices", *a.t1_state_indices, {a.x.size(0)});
    check_slots("t1_state_indices", *a.t1_state_indices, "state", a.state.size(0));
    return check_gates(a, has_slot(*a.t1_state_indices));
  }
  if (op::inferring() || a.query_start_loc.device() != kCpu) return;
  check_slots("state_indices", a.state_indices, "state", a.state.size(0));
  const int64_t end = op::check_indptr("query_start_loc", a.query_start_loc);
  FI_CHECK(end <= a.x.size(0), ValueError, "query_start_loc ends at ", end, ", but x has ", a.x.size(0), " rows");
  for (int64_t i = 0; i < n; ++i) {
    const int64_t length = op::index_at(a.query_start_loc, i + 1) - op::index_at(a.query_start_loc, i);
    FI_CHECK(length <= tokens, ValueError, "sequence ", i, " of query_start_loc has ", length,
             " rows, but state_indices has ", tokens, " columns");
  }
  check_gates(a, [&](int64_t row) {
    int64_t i = 0;
    while (i < n && op::index_at(a.query_start_loc, i + 1) <= row) ++i;
    return i < n && op::index_at(a.state_indices.select(0, i), 0) > 0;
  });
}

// ---- tables ----
template <class B>
op::Cost cost(const B& a) {
  const double cells = static_cast<double>(a.x.size(0) * a.state.size(1) * a.state.size(2) * a.state.size(3));
  return {.bytes = 2 * cells * static_cast<double>(a.state.item_size()) + 12 * static_cast<double>(a.x.numel()),
          .flops = 7 * cells};
}
template <class B>
op::Shape out_shape(const B& a) {
  return {4, {1, a.x.size(0), a.state.size(1), a.state.size(2)}};
}
constexpr DTypeSet kStates = DTypeSet(DType::kF32) | DType::kBF16;
#define FI_INPUTS(B, indices)                                                                                         \
  op::in<&B::x>("x", "r channels", DType::kBF16), op::in<&B::weight>("weight", nullptr, DType::kF32, op::contiguous), \
      op::inout<&B::conv_state>("conv_state", "p channels length", DType::kBF16, op::any_layout),                     \
      op::in<&B::raw_gate>("raw_gate", "one r h d", DType::kBF16),                                                    \
      op::in<&B::raw_beta>("raw_beta", "one r h", DType::kBF16, op::any_layout),                                      \
      op::in<&B::A_log>("A_log", nullptr, DType::kF32, op::contiguous),                                               \
      op::in<&B::dt_bias>("dt_bias", nullptr, DType::kF32, op::contiguous),                                           \
      op::in<&B::state_indices>("state_indices", indices, DType::kI32, op::any_layout),                               \
      op::inout<&B::state>("state", "p h d k", kStates),                                                              \
      op::in<&B::output_gate>("output_gate", nullptr, DType::kBF16),                                                  \
      op::in<&B::norm_weight>("norm_weight", "d", DType::kF32), op::attr<&B::lower_bound>("lower_bound"),             \
      op::attr<&B::norm_eps>("norm_eps"),                                                                             \
      op::out<&B::output>("output", nullptr, DType::kBF16, op::shape<out_shape<B>>)
constexpr op::Field fused_fields[] = {
    FI_INPUTS(Fused, "r"),
    op::attr<&Fused::backend>("backend", op::choices("cute-dsl|cake|auto"), op::keyword_only),
    op::attr<&Fused::state_indices_mode>("state_indices_mode", op::keyword_only),
};
constexpr op::Field packed_fields[] = {
    FI_INPUTS(Packed, "n t"),
    op::in<&Packed::query_start_loc>("query_start_loc", "m", DType::kI32, op::any_layout, op::keyword_only),
    op::in<&Packed::num_accepted_tokens>("num_accepted_tokens", "n", DType::kI32, op::any_layout, op::keyword_only),
    op::in<&Packed::t1_state_indices>("t1_state_indices", "r", DType::kI32, op::any_layout, op::keyword_only),
};
#undef FI_INPUTS
constexpr op::Candidate fused_candidates[] = {op::cuda<ops::linear_attention::prepare_fused_cuda>(),
                                              op::cpu<prepare_cpu<Fused>>(), op::reference<reference<Fused>>()};
constexpr op::Candidate packed_candidates[] = {op::cuda<ops::linear_attention::prepare_packed_cuda>(),
                                               op::cpu<prepare_cpu<Packed>>(), op::reference<reference<Packed>>()};
}  // namespace

namespace ops::linear_attention {
constinit const op::Op fused_kda_op = op::define<Fused, validate_fused, cost<Fused>>(
    "fused_kda_decode", "flashinfer.kda_decode",
    "Causal convolution, a step of Kimi delta attention and a gated RMS norm for one token of each row.", fused_fields,
    fused_candidates, fused_kda_cases, {2e-2, 2e-2});
constinit const op::Op packed_fused_kda_op = op::define<Packed, validate_packed, cost<Packed>>(
    "packed_fused_kda_decode", "flashinfer.kda_decode",
    "fused_kda_decode for draft tokens: several of each sequence, with a state after each.", packed_fields,
    packed_candidates, packed_fused_kda_cases, {2e-2, 2e-2});
}  // namespace ops::linear_attention

Tensor fused_kda_decode(const Fused& a) { return op::call(ops::linear_attention::fused_kda_op, a); }
Tensor packed_fused_kda_decode(const Packed& a) { return op::call(ops::linear_attention::packed_fused_kda_op, a); }

}  // namespace flashinfer
