// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/norm/gated.h"

#include <cmath>

#include "flashinfer/op/call.h"
#include "flashinfer/ops/common/cuda.h"
#include "flashinfer/ops/common/reference.h"
#include "flashinfer/ops/common/rows.h"
#include "flashinfer/ops/norm/cuda_launch.h"
#include "flashinfer/ops/norm/kernels/gated_cuda_params.h"
#include "flashinfer/ops/norm/launch.h"
#include "flashinfer/ops/norm/ops.h"

namespace flashinfer {
namespace {
using Sigmoid = RmsNormSigmoidGate;
using Residual = GatedResidualRmsNorm;
using Next = GatedResidualNextRmsNorm;
namespace family = ops::norm;
inline constexpr jit::Kernel kGated{"flashinfer/ops/norm/kernels/cpu/gated.h", "flashinfer::cpu::gated_norm",
                                    "flashinfer::GatedNormParams"};

inline constexpr jit::Kernel kSigmoidCuda{"flashinfer/ops/norm/kernels/cuda/gated.cuh",
                                          "flashinfer::cu::sigmoid_gate_norm", "flashinfer::GatedNormParams"};
inline constexpr jit::Kernel kResidualCuda{"flashinfer/ops/norm/kernels/cuda/gated.cuh",
                                           "flashinfer::cu::gated_residual_norm", "flashinfer::GatedNormParams"};

// ---- what each op gives the kernel ----
GatedNormParams rows_of(const TensorView& x, int64_t bytes_of_element) {
  GatedNormParams p{};
  p.x = x.data(), p.d = x.size(-1), p.rows = p.d ? x.numel() / p.d : 0,
  p.inner = x.rank() > 2 ? std::max<int64_t>(x.size(1), 1) : 1;
  ops::norm::row_strides(x, p.x_stride);
  p.rows_per_task = ops::rows_per_task(p.rows, p.d * bytes_of_element);
  return p;
}
const void* data_of(const std::optional<TensorView>& t) { return t ? t->data() : nullptr; }
GatedNormParams params_of(const Sigmoid& a) {
  GatedNormParams p = rows_of(a.input, 3 * a.input.item_size());
  p.y = a.input.data(), p.gate = a.gate.data(), p.eps = static_cast<float>(a.eps);
  ops::norm::row_strides(a.input, p.y_stride);
  ops::norm::row_strides(a.gate, p.gate_stride);
  return p;
}
template <class B>
GatedNormParams residual_params(const B& a, const TensorView& out, double eps) {
  GatedNormParams p = rows_of(a.branch, 8 + a.branch.item_size());
  p.residual = a.residual.template data_as<float>(), p.residual_stride = a.residual.stride(0);
  p.residual_out = out.data_as<float>(), p.residual_out_stride = out.stride(0);
  p.beta = a.beta.template data_as<float>(), p.eps = static_cast<float>(eps);
  return p;
}
GatedNormParams params_of(const Residual& a) {
  GatedNormParams p = residual_params(a, *a.out, a.eps);
  p.weight = data_of(a.weight), p.center = static_cast<float>(a.gain_center), p.alpha = a.alpha.data_as<float>();
  return p;
}
GatedNormParams params_of(const Next& a) {
  GatedNormParams p = residual_params(a, *a.residual_out, a.post_eps);
  p.weight = data_of(a.post_weight), p.center = static_cast<float>(a.post_gain_center);
  if (const TensorView* t = a.alpha.tensor())
    p.alpha = t->data_as<float>();
  else
    p.alpha_value = static_cast<float>(a.alpha.number());
  p.next_weight = a.next_weight.data(), p.next_eps = static_cast<float>(a.next_eps),
  p.next_center = static_cast<float>(a.next_gain_center);
  p.y = a.ffn_input->data(), p.y_stride[0] = a.ffn_input->stride(0);
  return p;
}
GatedNormConfig config_of(const Sigmoid& a) { return {a.input.dtype(), 0}; }
template <class B>
GatedNormConfig config_of(const B& a) {
  return {a.branch.dtype(), 1};
}
template <class B>
op::Prepared prepare(const B& a) {
  const GatedNormParams p = params_of(a);
  return ops::prepare_rows<kGated>(config_of(a), p, p.rows, p.rows_per_task);
}

// ---- on a GPU ----
/// Whether all rows and columns are in pieces of 16 bytes.
bool aligned(const GatedNormParams& p, int64_t size) {
  const int64_t f32[2][2] = {{p.residual_stride, 0}, {p.residual_out_stride, 0}};
  uint64_t bits = static_cast<uint64_t>(p.d * size) | cuda::row_bits(p.x, p.x_stride, p.inner, size) |
                  cuda::row_bits(p.gate, p.gate_stride, p.inner, size) |
                  cuda::row_bits(p.y, p.y_stride, p.inner, size) | cuda::row_bits(p.residual, f32[0], 1, 4) |
                  cuda::row_bits(p.residual_out, f32[1], 1, 4);
  for (const void* column :
       {p.weight, p.next_weight, static_cast<const void*>(p.alpha), static_cast<const void*>(p.beta)})
    bits |= reinterpret_cast<uintptr_t>(column);
  return bits % 16 == 0;
}
template <const jit::Kernel& K, class B>
op::Prepared prepare_cuda(const B& a, const op::Call& call) {
  const GatedNormParams p = params_of(a);
  const DType t = config_of(a).dtype;
  const int group = cuda::norm_group(t, p.d);
  const GatedNormCudaConfig c{.dtype = t,
                              .aligned = aligned(p, cuda::norm_item_size(t)),
                              .group = static_cast<short>(group),
                              .threads = group <= 32 ? 128 : group};
  NormParams rows{};
  rows.rows = p.rows;
  return ops::prepare_cuda<K>(c, p, call.device, p.d ? cuda::norm_launch(c, rows, a.enable_pdl) : ops::kNoBlocks);
}

// ---- checks ----
void check_eps(const char* name, double eps) {
  FI_CHECK(eps >= 0, ValueError, name, " is ", eps, ", but must be at least 0");
}
void validate_sigmoid(const Sigmoid& a) {
  FI_CHECK(a.input.rank() == 2 || a.input.rank() == 3, ValueError, "input is ", to_string(a.input),
           ", but must be [rows, d] or [rows, heads, d]");
  check_eps("eps", a.eps);
}
void validate_residual(const Residual& a) { check_eps("eps", a.eps); }
void validate_next(const Next& a) {
  check_eps("post_eps", a.post_eps);
  check_eps("next_eps", a.next_eps);
  const TensorView* t = a.alpha.tensor();
  FI_CHECK(!t || (t->rank() == 1 && t->size(0) == a.branch.size(1) && t->stride(0) == 1), ValueError, "alpha is ",
           t ? to_string(*t) : "", ", but must be a number or float32[", a.branch.size(1), "] (from branch.shape[1])");
}

// ---- references ----
double mean_square(const std::vector<double>& x) {
  double sum = 0;
  for (const double v : x) sum += v * v;
  return sum / static_cast<double>(x.size());
}
void reference_sigmoid(const Sigmoid& a) {
  const int64_t d = a.input.size(-1);
  ref::for_each_row(a.input, [&](const ref::Index& row) {
    std::vector<double> x;
    for (int64_t i = 0; i < d; ++i) x.push_back(ref::get(a.input, row, i));
    const double scale = 1 / std::sqrt(mean_square(x) + a.eps);
    for (int64_t i = 0; i < d; ++i)
      ref::set(a.input, row, i, x[static_cast<size_t>(i)] * scale / (1 + std::exp(-ref::get(a.gate, row, i))));
  });
}
/// Row r of the stream, not rounded.
template <class B>
std::vector<double> stream(const B& a, const std::optional<TensorView>& weight, double center, double eps, int64_t r) {
  std::vector<double> x;
  for (int64_t i = 0; i < a.branch.size(1); ++i)
    x.push_back(ref::at(a.branch, {r, i}) * (weight ? ref::at(*weight, {i}) + center : 1.0));
  const double scale = 1 / std::sqrt(mean_square(x) + eps);
  for (int64_t i = 0; i < a.branch.size(1); ++i) {
    double alpha;
    if constexpr (std::is_same_v<B, Next>)
      alpha = a.alpha.tensor() ? ref::at(*a.alpha.tensor(), {i}) : a.alpha.number();
    else
      alpha = ref::at(a.alpha, {i});
    double& v = x[static_cast<size_t>(i)];
    v = alpha * ref::at(a.residual, {r, i}) + ref::at(a.beta, {i}) * v * scale;
  }
  return x;
}
void reference_residual(const Residual& a) {
  for (int64_t r = 0; r < a.branch.size(0); ++r) {
    const std::vector<double> y = stream(a, a.weight, a.gain_center, a.eps, r);
    for (size_t i = 0; i < y.size(); ++i) ref::put(*a.out, {r, static_cast<int64_t>(i)}, y[i]);
  }
}
void reference_next(const Next& a) {
  for (int64_t r = 0; r < a.branch.size(0); ++r) {
    const std::vector<double> y = stream(a, a.post_weight, a.post_gain_center, a.post_eps, r);
    const double scale = 1 / std::sqrt(mean_square(y) + a.next_eps);
    for (int64_t i = 0; i < a.branch.size(1); ++i) {
      const double v = y[static_cast<size_t>(i)];
      ref::put(*a.residual_out, {r, i}, v);
      ref::put(*a.ffn_input, {r, i}, v * scale * (ref::at(a.next_weight, {i}) + a.next_gain_center));
    }
  }
}

op::Cost cost_sigmoid(const Sigmoid& a) {
  return {.bytes = 3.0 * static_cast<double>(a.input.nbytes()), .flops = 8.0 * static_cast<double>(a.input.numel())};
}
template <class B>
op::Cost cost(const B& a) {
  const double ffn = std::is_same_v<B, Next> ? 2 : 1;
  return {.bytes = ffn * static_cast<double>(a.branch.nbytes()) + 2.0 * static_cast<double>(a.residual.nbytes()),
          .flops = 8.0 * static_cast<double>(a.branch.numel())};
}
// ---- tables ----
constexpr const char *kAlpha = "factor of the residual, one a column",
                     *kBeta = "factor of the normalised branch, one a column";
constexpr op::Field sigmoid_fields[] = {
    op::inout<&Sigmoid::input>("input", "... d", op::floats),
    op::in<&Sigmoid::gate>("gate", "... d", op::same_as("input")),
    op::attr<&Sigmoid::eps>("eps"),
    op::attr<&Sigmoid::enable_pdl>("enable_pdl", op::keyword_only),
};
constexpr op::Field residual_fields[] = {
    op::in<&Residual::branch>("branch", "n d", op::floats),
    op::in<&Residual::residual>("residual", "n d", DType::kF32),
    op::in<&Residual::weight>("weight", "d", op::same_as("branch"), op::required),
    op::in<&Residual::alpha>("alpha", "d", DType::kF32, op::doc(kAlpha)),
    op::in<&Residual::beta>("beta", "d", DType::kF32, op::doc(kBeta)),
    op::attr<&Residual::eps>("eps"),
    op::attr<&Residual::gain_center>("gain_center"),
    op::out<&Residual::out>("out", "n d", DType::kF32, op::may_alias("residual")),
    op::attr<&Residual::enable_pdl>("enable_pdl", op::keyword_only),
};
constexpr op::Field next_fields[] = {
    op::in<&Next::branch>("branch", "n d", op::floats),
    op::in<&Next::residual>("residual", "n d", DType::kF32),
    op::in<&Next::next_weight>("next_weight", "d", op::same_as("branch")),
    op::in<&Next::alpha>("alpha", nullptr, DType::kF32, op::required, op::doc(kAlpha)),
    op::in<&Next::beta>("beta", "d", DType::kF32, op::doc(kBeta)),
    op::attr<&Next::post_eps>("post_eps"),
    op::attr<&Next::next_eps>("next_eps"),
    op::attr<&Next::next_gain_center>("next_gain_center"),
    op::out<&Next::residual_out>("residual_out", "n d", DType::kF32, op::may_alias("residual")),
    op::out<&Next::ffn_input>("ffn_input", "n d", op::same_as("branch"), op::may_alias("branch")),
    op::in<&Next::post_weight>("post_weight", "d", op::same_as("branch"), op::keyword_only),
    op::attr<&Next::post_gain_center>("post_gain_center"),
    op::attr<&Next::enable_pdl>("enable_pdl"),
};
constexpr op::Candidate sigmoid_candidates[] = {op::cuda<prepare_cuda<kSigmoidCuda, Sigmoid>>(),
                                                op::cpu<prepare<Sigmoid>>(), op::reference<reference_sigmoid>()};
constexpr op::Candidate residual_candidates[] = {op::cuda<prepare_cuda<kResidualCuda, Residual>>(),
                                                 op::cpu<prepare<Residual>>(), op::reference<reference_residual>()};
constexpr op::Candidate next_candidates[] = {op::cuda<prepare_cuda<kResidualCuda, Next>>(), op::cpu<prepare<Next>>(),
                                             op::reference<reference_next>()};

constexpr op::Case kSigmoid[] = {
    {"heads", "input=bf16:5x3x64^pad5 gate=bf16:5x3x64 eps=1e-5", "cpu", op::kAot},
    {"odd_f32", "input=f32:7x111 gate=f32:7x111^pad3"},
    {"f16", "input=f16:1x500 gate=f16:1x500"},
    {"no_rows", "input=bf16:0x64 gate=bf16:0x64"},
    {"stream", "input=bf16:4096x32x64 gate=bf16:4096x32x64", "cpu", op::kBench},
};
constexpr op::Case kResidual[] = {
    {"weight", "branch=bf16:5x8192 residual=f32:5x8192 weight=bf16:8192 alpha=f32:8192 beta=f32:8192 gain_center=1.0",
     "cpu", op::kAot | op::kBench},
    {"plain_odd", "branch=f16:7x333^pad3 residual=f32:7x333^pad1 weight=None alpha=f32:333 beta=f32:333 eps=1e-5"},
    {"f32", "branch=f32:3x64 residual=f32:3x64 weight=f32:64 alpha=f32:64 beta=f32:64"},
};
constexpr op::Case kNext[] = {
    {"both_weights",
     "branch=bf16:5x8192 residual=f32:5x8192 next_weight=bf16:8192 alpha=f32:8192 beta=f32:8192 post_weight=bf16:8192 "
     "next_gain_center=1.0 post_gain_center=0.5",
     "cpu", op::kAot | op::kBench},
    {"number", "branch=bf16:7x333^pad3 residual=f32:7x333 next_weight=bf16:333 alpha=0.75 beta=f32:333 post_eps=1e-5"},
    {"no_rows", "branch=bf16:0x64 residual=f32:0x64 next_weight=bf16:64 alpha=1.0 beta=f32:64"},
};
std::span<const op::Case> sigmoid_cases() { return kSigmoid; }
std::span<const op::Case> residual_cases() { return kResidual; }
std::span<const op::Case> next_cases() { return kNext; }
}  // namespace

namespace ops::norm {
constinit const op::Op sigmoid_gate_op = op::define<Sigmoid, validate_sigmoid, cost_sigmoid>(
    "rmsnorm_sigmoid_gate", "flashinfer", "In place: input / sqrt(mean(input^2) + eps) * sigmoid(gate).",
    sigmoid_fields, sigmoid_candidates, sigmoid_cases);
constinit const op::Op gated_residual_op = op::define<Residual, validate_residual, cost<Residual>>(
    "gated_residual_rmsnorm", "flashinfer",
    "alpha * residual + beta * rmsnorm of a branch that is weighted before its statistics.", residual_fields,
    residual_candidates, residual_cases);
constinit const op::Op gated_next_op = op::define<Next, validate_next, cost<Next>>(
    "gated_residual_next_rmsnorm", "flashinfer", "gated_residual_rmsnorm, then the next layer's rmsnorm of its result.",
    next_fields, next_candidates, next_cases);
}  // namespace ops::norm

void rmsnorm_sigmoid_gate(const Sigmoid& a) { op::call(family::sigmoid_gate_op, a); }
Tensor gated_residual_rmsnorm(const Residual& a) { return op::call(family::gated_residual_op, a); }
std::pair<Tensor, Tensor> gated_residual_next_rmsnorm(const Next& a) { return op::call(family::gated_next_op, a); }

}  // namespace flashinfer
