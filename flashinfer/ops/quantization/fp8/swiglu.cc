// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/quantization/fp8/swiglu.h"

#include <cmath>
#include <cstring>

#include "flashinfer/core/int_math.h"
#include "flashinfer/ops/common/rows.h"
#include "flashinfer/ops/common/strided_copy.h"
#include "flashinfer/ops/quantization/block/cuda.h"
#include "flashinfer/ops/quantization/block/launch.h"
#include "flashinfer/ops/quantization/block/ref.h"
#include "flashinfer/ops/quantization/kernels/swiglu_cuda_params.h"
#include "flashinfer/ops/quantization/ops.h"

namespace flashinfer {
namespace {
using Forward = SiluAndMulMxfp8Quantize;
using Backward = SiluAndMulMxfp8QuantizeBackward;
using Smooth = Nvfp4QuantizeSmooth;
namespace family = ops::quantization;
inline constexpr jit::Kernel kSwiglu{"flashinfer/ops/quantization/kernels/cpu/swiglu.h",
                                     "flashinfer::cpu::swiglu_mxfp8", "flashinfer::SwigluMxfp8Params"};
inline constexpr jit::Kernel kSwigluCuda{"flashinfer/ops/quantization/kernels/cuda/swiglu.cuh",
                                         "flashinfer::cu::swiglu_mxfp8", "flashinfer::SwigluMxfp8Params"};
inline constexpr jit::Kernel kSmooth{"flashinfer/ops/quantization/kernels/cpu/swiglu.h", "flashinfer::cpu::smooth_row",
                                     "flashinfer::SmoothParams"};
constexpr const char* kSmoothName = "nvfp4_quantize_smooth";

template <class B>
constexpr bool kBackward = std::is_same_v<B, Backward>;
template <class B>
constexpr const char* name_of = kBackward<B> ? "silu_and_mul_mxfp8_quantize_backward" : "silu_and_mul_mxfp8_quantize";
template <class B>
constexpr const op::Op& op_of() {
  if constexpr (kBackward<B>)
    return family::swiglu_mxfp8_backward_op;
  else
    return family::swiglu_mxfp8_op;
}
template <class B>
int64_t width_of(const B& a) {
  return kBackward<B> ? a.gated_input.size(1) : a.gated_input.size(1) / 2;
}

// ---- outputs ----
template <class B>
op::Shape row_shape(const B& a) {
  if (!a.rowwise) return {2, {0, 0}};
  return {2, {a.gated_input.size(0), width_of(a)}};
}
template <class B>
op::Shape column_shape(const B& a) {
  if (!a.colwise) return {2, {0, 0}};
  return {2, {a.gated_input.size(0), width_of(a)}};
}
template <class B>
op::Shape column_strides(const B& a) {
  return {2, {1, std::max<int64_t>(a.gated_input.size(0), 1)}};
}
template <class B>
op::Shape row_scales_shape(const B& a) {
  if (!a.rowwise) return {2, {0, 0}};
  return {2, {a.gated_input.size(0), width_of(a) / 32}};
}
template <class B>
op::Shape column_scales_shape(const B& a) {
  return {1, {a.colwise ? width_of(a) * a.gated_input.size(0) / 32 : 0}};
}

template <class B>
void validate(const B& a) {
  const int64_t m = a.gated_input.size(0), k = a.gated_input.size(1) / 2;
  FI_CHECK(m % 128 == 0 && a.gated_input.size(1) % 256 == 0, ValueError, "gated_input is ", to_string(a.gated_input),
           ", but must be [m, 2k] with m and k multiples of 128");
  if constexpr (kBackward<B>)
    FI_CHECK(a.grad_output.size(0) == m && a.grad_output.size(1) == k, ValueError, "grad_output is ",
             to_string(a.grad_output), ", but must be [", m, ", ", k, "]");
}
template <class B>
SwigluMxfp8Config config_of(const B& a) {
  return {a.gated_input.dtype(), kBackward<B>};
}
/// All but the columns, which may be in another order than the kernel's.
template <class B>
SwigluMxfp8Params params_of(const B& a) {
  SwigluMxfp8Params p{};
  p.x = a.gated_input.data(), p.m = a.gated_input.size(0), p.k = a.gated_input.size(1) / 2,
  p.x_stride = a.gated_input.stride(0);
  if constexpr (kBackward<B>) p.grad = a.grad_output.data(), p.grad_stride = a.grad_output.stride(0);
  if (a.rowwise)
    p.rows = static_cast<uint8_t*>(a.row_output->data()), p.row_scales = a.row_scales->template data_as<uint8_t>();
  if (a.colwise) p.column_scales = a.column_scales->template data_as<uint8_t>();
  return p;
}
template <class B>
void launch(const B& a, jit::CpuFn fn) {
  SwigluMxfp8Params p = params_of(a);
  const bool direct = a.colwise && a.column_output->transpose(0, 1).is_contiguous();
  const Tensor turned = a.colwise && !direct ? Tensor::empty({width_of(a), p.m}, DType::kF8E4M3) : Tensor();
  if (a.colwise) p.columns = static_cast<uint8_t*>(direct ? a.column_output->data() : turned.data());
  ops::run_rows(fn, p, p.m / 32 * (p.k / 128), 1);
  if (turned.defined()) ops::copy_strided(turned.view().transpose(0, 1), *a.column_output);
}
template <class B>
op::Prepared prepare(const B& a) {
  return ops::with_kernel<kSwiglu>(config_of(a), [&a](jit::CpuFn fn) { launch(a, fn); });
}

// ---- on a GPU ----
template <class B>
op::Prepared prepare_cuda(const B& a, const op::Call& call) {
  SwigluMxfp8Params p = params_of(a);
  uint64_t bits = reinterpret_cast<uintptr_t>(p.x) | reinterpret_cast<uintptr_t>(p.grad) |
                  static_cast<uint64_t>((p.x_stride | p.grad_stride) * a.gated_input.item_size());
  const SwigluMxfp8CudaConfig c{a.gated_input.dtype(), kBackward<B>, bits % 16 == 0, 256};
  const jit::CudaLoaded& kernel = jit::cuda_kernel<kSwigluCuda>(c, call.device);
  if (!kernel.why_not.empty()) return op::Unsupported{kernel.why_not};
  const int64_t w = width_of(a), tiles = p.m / 32 * (p.k / 128);
  if (tiles >= int64_t{1} << 31) return op::Unsupported{"the input has 2^31 tiles of 32 x 128 or more"};
  cuda::Launch l;
  l.grid[0] = cuda::grid_size(tiles), l.block[0] = static_cast<unsigned>(c.threads);
  l.shared_bytes = 32 * 129 * 4;
  l.pdl = true;
  const bool direct = !a.colwise || a.column_output->transpose(0, 1).is_contiguous();
  if (direct) {
    if (a.colwise) p.columns = static_cast<uint8_t*>(a.column_output->data());
    return [&kernel, p, l] { ops::launch_unless_empty(kernel, p, l); };
  }
  const ops::CopyAxis axes[] = {{w, p.m, a.column_output->stride(1)}, {p.m, 1, a.column_output->stride(0)}};
  std::optional<ops::StridedCopy> copy =
      ops::strided_copy(axes, 1, reinterpret_cast<uintptr_t>(a.column_output->data()));
  if (!copy) return op::Unsupported{"column_output has 2^32 elements or more"};
  copy->params.to = static_cast<char*>(a.column_output->data());
  const jit::CudaLoaded& mover = jit::cuda_kernel<ops::kStridedCopy>(copy->config, call.device);
  if (!mover.why_not.empty()) return op::Unsupported{mover.why_not};
  return [&kernel, &mover, p, l, w, copy = *copy, device = call.device]() mutable {
    const Tensor turned = Tensor::empty({std::max<int64_t>(w * p.m, 1)}, DType::kU8, device);
    p.columns = turned.data_as<uint8_t>();
    copy.params.from = turned.data_as<char>();
    ops::launch_unless_empty(kernel, p, l);
    ops::launch_unless_empty(mover, copy.params, copy.launch);
  };
}

// ---- references ----
template <class B>
void reference(const B& a) {
  const int64_t m = a.gated_input.size(0), k = a.gated_input.size(1) / 2, w = width_of(a);
  std::vector<std::vector<float>> y(static_cast<size_t>(m), std::vector<float>(static_cast<size_t>(w)));
  for (int64_t r = 0; r < m; ++r)
    for (int64_t i = 0; i < k; ++i) {
      const double g = ref::at(a.gated_input, {r, i}), u = ref::at(a.gated_input, {r, k + i}),
                   s = 1 / (1 + std::exp(-g));
      auto& row = y[static_cast<size_t>(r)];
      if constexpr (kBackward<B>) {
        const double d = ref::at(a.grad_output, {r, i});
        row[static_cast<size_t>(i)] = static_cast<float>(d * u * s * (1 + g * (1 - s)));
        row[static_cast<size_t>(k + i)] = static_cast<float>(d * g * s);
      } else {
        row[static_cast<size_t>(i)] = static_cast<float>(g * s * u);
      }
    }
  constexpr ref::BlockRule kRule{32, true, true};
  for (int64_t r = 0; a.rowwise && r < m; ++r)
    ref::quantize_row(kRule, y[static_cast<size_t>(r)], 1.0f, a.row_output->select(0, r), *a.row_scales,
                      SfLayout::kLinear, r);
  for (int64_t c = 0; a.colwise && c < w; ++c) {
    std::vector<float> column;
    for (int64_t r = 0; r < m; ++r) column.push_back(y[static_cast<size_t>(r)][static_cast<size_t>(c)]);
    ref::quantize_row(kRule, column, 1.0f, a.column_output->select(1, c), *a.column_scales, SfLayout::kLinear, c);
  }
}

template <class B>
op::Cost cost(const B& a) {
  const double out = static_cast<double>(a.gated_input.size(0) * width_of(a)) * (a.rowwise + a.colwise);
  return {.bytes = static_cast<double>(a.gated_input.nbytes()) * (kBackward<B> ? 1.5 : 1.0) + out};
}
// ---- smoothed rows ----
op::Shape codes_shape(const Smooth& a) { return {2, {a.x.size(0), a.x.size(1) / 2}}; }
op::Shape sf_shape(const Smooth& a) { return {1, {sf_bytes(SfLayout::k128x4, a.x.size(0), a.x.size(1) / 16)}}; }
void validate_smooth(const Smooth& a) {
  ops::check_columns(a.x.size(1), 16);
  ops::global_scale("global_scale", a.global_scale);
}
void launch_smooth(const Smooth& a, jit::CpuFn multiply, jit::CpuFn quantise) {
  const int64_t m = a.x.size(0), k = a.x.size(1), tile = 128 * sf_padded_columns(SfLayout::k128x4, k / 16);
  // Eight rows at a time stay in the cache between the two; a task is one tile of scales.
  parallel_for(ceil_div(m, 128), [&](int64_t task) {
    constexpr int64_t kAtOnce = 8;
    const Tensor buffer = Tensor::empty({kAtOnce, k}, a.x.dtype());
    std::memset(a.sf->data_as<uint8_t>() + task * tile, 0, static_cast<size_t>(tile));
    for (int64_t first = task * 128; first < std::min(m, (task + 1) * 128); first += kAtOnce) {
      const int64_t rows = std::min(kAtOnce, m - first);
      const SmoothParams s{.x = static_cast<const char*>(a.x.data()) + first * a.x.stride(0) * a.x.item_size(),
                           .scale = a.pre_quant_scale.data(),
                           .y = buffer.data(),
                           .k = k,
                           .x_stride = a.x.stride(0),
                           .y_stride = k};
      for (int64_t r = 0; r < rows; ++r) multiply(&s, r);
      for (int64_t r = 0; r < rows; ++r) {
        BlockQuantParams p{};
        p.x = buffer.data_as<char>() + r * k * a.x.item_size(),
        p.codes = a.xq->data_as<uint8_t>() + (first + r) * a.xq->stride(0);
        p.scales = a.sf->data_as<uint8_t>() + sf_row_offset(SfLayout::k128x4, first + r, k / 16);
        p.batches = 1, p.rows = p.padded_rows = p.rows_per_task = 1, p.k = p.padded_k = k, p.row_stride = k,
        p.code_row_stride = k / 2;
        p.layout = SfLayout::k128x4, p.encode = a.global_scale.data_as<float>();
        quantise(&p, 0);
      }
    }
  });
}
op::Prepared prepare_smooth(const Smooth& a) {
  const jit::Loaded &multiply = jit::cpu_kernel<kSmooth>(SmoothConfig{a.x.dtype()}),
                    &quantise = jit::cpu_kernel<ops::kBlockQuantize>(BlockQuantConfig{a.x.dtype(), 16, 0, 0, 0});
  for (const jit::Loaded* kernel : {&multiply, &quantise})
    if (!kernel->fn) return op::Unsupported{kernel->why_not};
  return [&a, multiply = multiply.fn, quantise = quantise.fn] { launch_smooth(a, multiply, quantise); };
}
op::Prepared prepare_smooth_cuda(const Smooth& a, const op::Call& call) {
  BlockQuantCudaParams p{};
  p.x = a.x.data(), p.column_scale = a.pre_quant_scale.data();
  p.codes = a.xq->data_as<uint8_t>(), p.scales = a.sf->data_as<uint8_t>();
  ops::set_block_rows(p, {a.x.size(0), 1, {a.x.stride(0), 0}}, a.x.size(1), a.x.size(1), 16, SfLayout::k128x4);
  p.code_row_stride = a.xq->stride(0);
  p.encode = ops::factor_of(a.global_scale);
  return ops::prepare_block_quantize_cuda({a.x.dtype(), 16, 0, 0, 0}, BlockInput::kSmoothed, p, call.device,
                                          ops::wants_pdl(a.enable_pdl));
}
void reference_smooth(const Smooth& a) {
  ref::clear(*a.sf);
  for (int64_t r = 0; r < a.x.size(0); ++r) {
    const Tensor y = Tensor::empty({a.x.size(1)}, a.x.dtype());
    for (int64_t i = 0; i < y.size(0); ++i) ref::put(y, {i}, ref::at(a.x, {r, i}) * ref::at(a.pre_quant_scale, {i}));
    ref::quantize_row({16, false, false}, ref::floats_of(y, {}), a.global_scale.data_as<float>()[0], a.xq->select(0, r),
                      *a.sf, SfLayout::k128x4, r);
  }
}
op::Cost cost_smooth(const Smooth& a) { return {.bytes = static_cast<double>(a.x.nbytes()) * 1.28}; }
// ---- tables ----
constexpr DTypeSet kHalves = DTypeSet(DType::kBF16) | DType::kF16;
template <class B>
inline constexpr op::Field kOutputs[] = {
    op::attr<&B::rowwise>("rowwise", op::keyword_only),
    op::attr<&B::colwise>("colwise"),
    op::result<&B::row_output>("row_output", nullptr, DType::kF8E4M3, op::shape<row_shape<B>>, op::contiguous),
    op::result<&B::column_output>("column_output", nullptr, DType::kF8E4M3, op::shape<column_shape<B>>,
                                  op::strides<column_strides<B>>, op::any_layout),
    op::result<&B::row_scales>("row_scales", nullptr, DType::kU8, op::shape<row_scales_shape<B>>, op::contiguous),
    op::result<&B::column_scales>("column_scales", nullptr, DType::kU8, op::shape<column_scales_shape<B>>,
                                  op::contiguous),
};
constexpr op::Field forward_fields[] = {op::in<&Forward::gated_input>("gated_input", "m n", kHalves),
                                        kOutputs<Forward>[0],
                                        kOutputs<Forward>[1],
                                        kOutputs<Forward>[2],
                                        kOutputs<Forward>[3],
                                        kOutputs<Forward>[4],
                                        kOutputs<Forward>[5]};
constexpr op::Field backward_fields[] = {
    op::in<&Backward::gated_input>("gated_input", "m n", kHalves),
    op::in<&Backward::grad_output>("grad_output", "m k", op::same_as("gated_input")),
    kOutputs<Backward>[0],
    kOutputs<Backward>[1],
    kOutputs<Backward>[2],
    kOutputs<Backward>[3],
    kOutputs<Backward>[4],
    kOutputs<Backward>[5]};
constexpr op::Field smooth_fields[] = {
    op::in<&Smooth::x>("x", "m k", kHalves),
    op::in<&Smooth::pre_quant_scale>("pre_quant_scale", "k", op::same_as("x")),
    op::in<&Smooth::global_scale>("global_scale", nullptr, DType::kF32),
    op::attr<&Smooth::enable_pdl>("enable_pdl"),
    op::attr<&Smooth::backend>("backend", op::backends("cutlass:cuda|cute-dsl:cuda|auto")),
    op::result<&Smooth::xq>("xq", nullptr, DType::kU8, op::shape<codes_shape>),
    op::result<&Smooth::sf>("sf", nullptr, DType::kU8, op::shape<sf_shape>, op::contiguous),
};
template <class B>
inline constexpr op::Candidate kCandidates[] = {op::cuda<prepare_cuda<B>>(), op::cpu<prepare<B>>(),
                                                op::reference<reference<B>>()};
constexpr op::Candidate smooth_candidates[] = {op::cuda<prepare_smooth_cuda>(), op::cpu<prepare_smooth>(),
                                               op::reference<reference_smooth>()};

constexpr op::Case kForward[] = {
    {"both", "gated_input=bf16:128x512^pad8 rowwise=True colwise=True", "cpu", op::kAot, 0.13, 1e-2},
    {"columns", "gated_input=f16:256x256 rowwise=False colwise=True", "cpu", 0, 0.13, 1e-2},
    {"rows", "gated_input=bf16:256x256", "cpu", 0, 0.13, 1e-2},
    {"none", "gated_input=bf16:0x256"},
    {"stream", "gated_input=bf16:4096x16384", "cpu", op::kBench, 0.13, 1e-2},
};
constexpr op::Case kBack[] = {
    {"both", "gated_input=bf16:128x512 grad_output=bf16:128x256^pad8 rowwise=True colwise=True", "cpu", op::kAot, 0.13,
     1e-2},
    {"rows", "gated_input=f16:128x256 grad_output=f16:128x128", "cpu", 0, 0.13, 1e-2},
};
constexpr op::Case kSmooths[] = {
    {"rows", "x=bf16:131x512^pad8 pre_quant_scale=bf16:512:uniform(0.5,2) global_scale=f32:[600]", "cpu", op::kAot},
    {"f16", "x=f16:9x48 pre_quant_scale=f16:48 global_scale=f32:[100]"},
    {"no_rows", "x=bf16:0x64 pre_quant_scale=bf16:64 global_scale=f32:[100]"},
    {"stream", "x=bf16:16384x4096 pre_quant_scale=bf16:4096 global_scale=f32:[600]", "cpu", op::kBench},
};
std::span<const op::Case> forward_cases() { return kForward; }
std::span<const op::Case> back_cases() { return kBack; }
std::span<const op::Case> smooth_cases() { return kSmooths; }
}  // namespace

namespace ops::quantization {
constinit const op::Op swiglu_mxfp8_op = op::define<Forward, validate<Forward>, cost<Forward>>(
    name_of<Forward>, "flashinfer", "silu(gate) * linear half to MXFP8, by rows and by columns.", forward_fields,
    kCandidates<Forward>, forward_cases);
constinit const op::Op swiglu_mxfp8_backward_op = op::define<Backward, validate<Backward>, cost<Backward>>(
    name_of<Backward>, "flashinfer", "The gradients of silu(gate) * linear half to MXFP8, by rows and by columns.",
    backward_fields, kCandidates<Backward>, back_cases);
constinit const op::Op smooth_op = op::define<Smooth, validate_smooth, cost_smooth>(
    kSmoothName, "flashinfer", "x times the scale of each column, as NVFP4.", smooth_fields, smooth_candidates,
    smooth_cases);
}  // namespace ops::quantization

op::Results silu_and_mul_mxfp8_quantize(const Forward& a) { return op::call(family::swiglu_mxfp8_op, a); }
op::Results silu_and_mul_mxfp8_quantize_backward(const Backward& a) {
  return op::call(family::swiglu_mxfp8_backward_op, a);
}
std::pair<Tensor, Tensor> nvfp4_quantize_smooth(const Smooth& a) { return op::call(family::smooth_op, a); }

}  // namespace flashinfer
