// SPDX-License-Identifier: Apache-2.0
// A product for the gates, then the ops causal_conv1d_update and gated_delta_rule_decode_pretranspose; on a GPU the
// first two in one launch.
#include "flashinfer/ops/linear_attention/gdn/fused.h"

#include <algorithm>
#include <vector>

#include "flashinfer/op/call.h"
#include "flashinfer/ops/common/cuda.h"
#include "flashinfer/ops/common/rows.h"
#include "flashinfer/ops/linear_attention/cases.h"
#include "flashinfer/ops/linear_attention/conv/cuda.h"
#include "flashinfer/ops/linear_attention/conv/ref.h"
#include "flashinfer/ops/linear_attention/cuda_launch.h"
#include "flashinfer/ops/linear_attention/gate_checks.h"
#include "flashinfer/ops/linear_attention/gdn/decode_cuda.h"
#include "flashinfer/ops/linear_attention/gdn/decode_ref.h"
#include "flashinfer/ops/linear_attention/kernels/gdn/front_params.h"
#include "flashinfer/ops/linear_attention/ops.h"
#include "flashinfer/ops/linear_attention/parts.h"

namespace flashinfer {
namespace {
using Step = GdnFusedDecodeStep;
inline constexpr jit::Kernel kGdnGates{"flashinfer/ops/linear_attention/kernels/gdn/gates.h",
                                       "flashinfer::cpu::gdn_gates", "flashinfer::GdnGatesParams"};

inline constexpr jit::Kernel kGdnFrontCuda{"flashinfer/ops/linear_attention/kernels/cuda/gdn_front.cuh",
                                           "flashinfer::cu::gdn_front", "flashinfer::GdnFrontParams"};

/// What the steps pass on, and their argument blocks.
struct Parts {
  Tensor gates, qkv;  // [B, 2 HV], [B, channels]
  Tensor slots;       // [B] int32 with -1 for every negative index; on a GPU undefined: kernels read state_indices
  CausalConv1dUpdate conv;
  GatedDeltaRuleDecodePretranspose rule;

  explicit Parts(const Step& a, Device device = kCpu) {
    const int64_t rows = a.mixed_qkv.size(0), channels = a.mixed_qkv.size(1), hv = a.ssm_state.size(1);
    const int64_t v = a.ssm_state.size(2), k = a.ssm_state.size(3), h = (channels - hv * v) / (2 * k);
    // Zeros, because the step's checks read gates before they are computed, when it is asked for its kernel.
    gates = device == kCpu ? Tensor::zeros({rows, 2 * hv}, DType::kBF16)
                           : Tensor::empty({rows, 2 * hv}, DType::kBF16, device);
    qkv = Tensor::empty({rows, channels}, DType::kBF16, device);
    TensorView indices = a.state_indices;
    if (device == kCpu) {
      slots = Tensor::empty({rows}, DType::kI32);
      for (int64_t i = 0; i < rows; ++i)
        slots.data_as<int32_t>()[i] = static_cast<int32_t>(std::max<int64_t>(op::index_at(a.state_indices, i), -1));
      indices = slots;
    }
    conv.x = a.mixed_qkv, conv.conv_state = a.conv_state, conv.weight = a.conv_weight, conv.bias = a.conv_bias;
    conv.activation = "silu", conv.conv_state_indices = indices, conv.out = qkv;
    const auto part = [&](const Tensor& t, int64_t first, std::initializer_list<int64_t> shape,
                          std::initializer_list<int64_t> strides) {
      return TensorView(t.data_as<bf16_t>() + first, DType::kBF16, std::span(shape.begin(), shape.size()),
                        std::span(strides.begin(), strides.size()));
    };
    rule.q = part(qkv, 0, {rows, 1, h, k}, {channels, channels, k, 1});
    rule.k = part(qkv, h * k, {rows, 1, h, k}, {channels, channels, k, 1});
    rule.v = part(qkv, 2 * h * k, {rows, 1, hv, v}, {channels, channels, v, 1});
    rule.b = part(gates, 0, {rows, 1, hv}, {2 * hv, 2 * hv, 1});
    rule.a = part(gates, hv, {rows, 1, hv}, {2 * hv, 2 * hv, 1});
    rule.A_log = a.A_log, rule.dt_bias = a.dt_bias, rule.use_qk_l2norm = a.use_qk_l2norm;
    if (a.scale && *a.scale != 0) rule.scale = a.scale;
    rule.initial_state = a.ssm_state, rule.initial_state_indices = indices, rule.output = a.out;
  }
};

GdnGatesParams gates_params(const Step& a, const Tensor& gates) {
  const TensorView &x = a.hidden_states, &w = a.w_ba;
  return {x.data(),    w.data(),    gates.data(),          x.size(0), w.size(1), x.size(1),
          x.stride(0), w.stride(0), gates.view().stride(0)};
}
op::Prepared prepare_cpu(const Step& a) {
  using namespace ops::linear_attention;
  constexpr GdnGatesConfig kConfig{DType::kBF16};
  // Before the parts are asked: a list of kernels to precompile holds what was looked up until one was missing.
  jit::cpu_kernel<kGdnGates>(kConfig);
  {
    const Parts parts(a);
    for (const std::string& why :
         {why_not(causal_conv1d_update_op, &parts.conv), why_not(gdn_decode_pretranspose_op, &parts.rule)})
      if (!why.empty()) return op::Unsupported{why};
  }
  return ops::with_kernel<kGdnGates>(kConfig, [&a](jit::CpuFn fn) {
    Parts parts(a);
    const GdnGatesParams p = gates_params(a, parts.gates);
    ops::run_rows(fn, p, p.rows * ceil_div(p.columns, kGdnGateColumns), 1);
    check_gate("hidden_states w_ba", parts.gates, [&](int64_t i) { return op::index_at(a.state_indices, i) >= 0; });
    op::detail::run_unobserved(causal_conv1d_update_op, &parts.conv);
    op::detail::run_unobserved(gdn_decode_pretranspose_op, &parts.rule);
  });
}
bool rows_share_slots(const TensorView& indices) {
  std::vector<int64_t> slots;
  for (int64_t i = 0; i < indices.size(0); ++i)
    if (const int64_t slot = op::index_at(indices, i); slot >= 0) slots.push_back(slot);
  std::ranges::sort(slots);
  return std::ranges::adjacent_find(slots) != slots.end();
}
/// Indices are read by the kernels alone. Rows that share a slot have no order on a GPU.
op::Prepared prepare_cuda(const Step& a, const op::Call& call) {
  namespace la = ops::linear_attention;
  const int64_t batch = a.mixed_qkv.size(0), hv = a.ssm_state.size(1), v = a.ssm_state.size(2), k = a.ssm_state.size(3);
  if (std::string why = la::delta_unsupported(k); !why.empty()) return op::Unsupported{std::move(why)};
  if (call.device.type == DeviceType::kEmu && rows_share_slots(a.state_indices))
    return op::Unsupported{"rows of the batch share a slot: on a GPU they have no order"};
  const ConvCudaConfig front{DType::kBF16, true, 256};
  const DeltaCudaConfig step = la::delta_config(DType::kF32, k, la::rows_aligned(a.ssm_state));
  const int64_t gate_blocks = ceil_div(batch, kGdnFrontRows) * ceil_div(2 * hv, kGdnFrontColumns),
                front_blocks = gate_blocks + batch * ceil_div(a.mixed_qkv.size(1), int64_t{front.threads});
  for (std::string why :
       {la::grid_unsupported(front_blocks, 1, 1), la::grid_unsupported(batch * hv, v, step.block_rows())})
    if (!why.empty()) return op::Unsupported{std::move(why)};
  const jit::CudaLoaded& then = jit::cuda_kernel<la::kGdnDecodeCuda>(step, call.device);
  if (!then.why_not.empty()) return op::Unsupported{then.why_not};
  const cuda::Launch last = la::delta_launch(batch * hv, v, step.block_rows(), step.threads);
  cuda::Launch first = la::delta_launch(batch ? front_blocks : 0, 1, 1, front.threads);
  first.shared_bytes = static_cast<unsigned>(gdn_front_shared(front.threads));
  return ops::with_cuda_kernel<kGdnFrontCuda>(
      front, call.device, [&a, device = call.device, gate_blocks, first, last, &then](const jit::CudaLoaded& kernel) {
        const Parts parts(a, device);
        const GdnFrontParams p{gates_params(a, parts.gates), la::conv_update_cuda_params(parts.conv), gate_blocks,
                               la::rows_aligned(a.w_ba)};
        ops::launch_unless_empty(kernel, p, first);
        ops::launch_unless_empty(then, la::decode_cuda_params(la::call_of(parts.rule)), last);
      });
}
void reference(const Step& a) {
  const Parts parts(a);
  for (int64_t i = 0; i < a.w_ba.size(1); ++i)
    for (int64_t row = 0; row < a.hidden_states.size(0); ++row) {
      double sum = 0;
      for (int64_t d = 0; d < a.w_ba.size(0); ++d) sum += ref::at(a.hidden_states, {row, d}) * ref::at(a.w_ba, {d, i});
      ref::put(parts.gates, {row, i}, sum);
    }
  ref::causal_conv1d(parts.conv);
  const ops::linear_attention::DecodeCall call = ops::linear_attention::call_of(parts.rule);
  const ref::GdnDecodeReference run(call);
}

void validate(const Step& a) {
  const int64_t channels = a.mixed_qkv.size(1), hv = a.ssm_state.size(1), v = a.ssm_state.size(2),
                k = a.ssm_state.size(3), left = channels - hv * v;
  FI_CHECK(k > 0 && left > 0 && left % (2 * k) == 0, ValueError, "mixed_qkv.shape[1] is ", channels,
           ", but must be 2 H K + HV V for some H (K is ", k, ", HV ", hv, ", V ", v, " from ssm_state)");
  FI_CHECK(hv % (left / (2 * k)) == 0, ValueError, "ssm_state.shape[1] is ", hv,
           ", but must be a multiple of the query heads, ", left / (2 * k));
  const int64_t width = a.conv_weight.size(1);
  FI_CHECK(width >= 2 && width <= 4, ValueError, "conv_weight.shape[1] is ", width, ", but must be 2, 3 or 4");
  FI_CHECK(a.conv_state.size(2) == width - 1, ValueError, "conv_state.shape[2] is ", a.conv_state.size(2),
           ", but must be ", width - 1, ": conv_weight.shape[1] - 1");
  ops::linear_attention::check_slots("state_indices", a.state_indices, "ssm_state", a.ssm_state.size(0));
  ops::linear_attention::check_slots("state_indices", a.state_indices, "conv_state", a.conv_state.size(0));
  ops::linear_attention::check_gate("A_log", a.A_log), ops::linear_attention::check_gate("dt_bias", a.dt_bias);
}
op::Cost cost(const Step& a) {
  const double rows = static_cast<double>(a.mixed_qkv.size(0));
  const double state = rows * static_cast<double>(a.ssm_state.size(1) * a.ssm_state.size(2) * a.ssm_state.size(3));
  return {.bytes = 8 * state + static_cast<double>(a.w_ba.nbytes()) + 12 * static_cast<double>(a.mixed_qkv.numel()),
          .flops = 6 * state + 2 * rows * static_cast<double>(a.w_ba.numel())};
}
bool always(const Step&) { return true; }
op::Shape out_shape(const Step& a) { return {4, {a.mixed_qkv.size(0), 1, a.ssm_state.size(1), a.ssm_state.size(2)}}; }

constexpr op::Field fields[] = {
    op::in<&Step::hidden_states>("hidden_states", "b d", DType::kBF16),
    op::in<&Step::w_ba>("w_ba", "d 2*hv", DType::kBF16),
    op::in<&Step::mixed_qkv>("mixed_qkv", "b channels", DType::kBF16),
    op::in<&Step::conv_weight>("conv_weight", "channels width", op::floats),
    op::in<&Step::conv_bias>("conv_bias", "channels", op::same_as("conv_weight"), op::required),
    op::inout<&Step::conv_state>("conv_state", "slots channels length", DType::kBF16, op::any_layout, op::when<always>),
    op::in<&Step::A_log>("A_log", "hv", DType::kF32),
    op::in<&Step::dt_bias>("dt_bias", "hv", DTypeSet(DType::kF32) | DType::kBF16),
    op::attr<&Step::scale>("scale", op::required),
    op::inout<&Step::ssm_state>("ssm_state", "p hv v k", DType::kF32, op::when<always>),
    op::in<&Step::state_indices>("state_indices", "b", DType::kI32, op::any_layout),
    op::attr<&Step::use_qk_l2norm>("use_qk_l2norm"),
    op::out<&Step::out>("out", nullptr, DType::kBF16, op::shape<out_shape>),
};
constexpr op::Candidate candidates[] = {op::cuda<prepare_cuda>(), op::cpu<prepare_cpu>(), op::reference<reference>()};
}  // namespace

namespace ops::linear_attention {
extern const op::Op gdn_fused_op;
constinit const op::Op gdn_fused_op = op::define<Step, validate, cost>(
    "gdn_fused_decode_step", "flashinfer",
    "Gates, causal convolution and a step of the gated delta rule for one token of each row; returns (out, conv_state, "
    "ssm_state).",
    fields, candidates, gdn_fused_cases, {5e-3, 5e-3});
}  // namespace ops::linear_attention

std::tuple<Tensor, Tensor, Tensor> gdn_fused_decode_step(const Step& a) {
  return op::call(ops::linear_attention::gdn_fused_op, a);
}

}  // namespace flashinfer
