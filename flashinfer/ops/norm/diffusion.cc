// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/norm/diffusion.h"

#include <cmath>
#include <memory>
#include <vector>

#include "flashinfer/core/int_math.h"
#include "flashinfer/op/call.h"
#include "flashinfer/ops/common/cuda.h"
#include "flashinfer/ops/common/lookup.h"
#include "flashinfer/ops/norm/cases.h"
#include "flashinfer/ops/norm/cuda_launch.h"
#include "flashinfer/ops/norm/diffusion_ref.h"
#include "flashinfer/ops/norm/kernels/diffusion_params.h"
#include "flashinfer/ops/norm/kernels/gated_cuda_params.h"
#include "flashinfer/ops/norm/launch.h"
#include "flashinfer/ops/norm/ops.h"
#include "flashinfer/ops/quantization/block/launch.h"

namespace flashinfer {
namespace {
using GammaBeta = DitGateGammaBeta;
using GateScale = DitGateScaleShift;
using Scale = DitScaleShift;
using QkRope = FusedQkRmsNormRope;
inline constexpr jit::Kernel kDit{"flashinfer/ops/norm/kernels/cpu/diffusion.h", "flashinfer::cpu::dit_norm",
                                  "flashinfer::DitNormParams"};
inline constexpr jit::Kernel kQkRope{"flashinfer/ops/norm/kernels/cpu/diffusion.h", "flashinfer::cpu::qk_norm_rope",
                                     "flashinfer::QkNormRopeParams"};

// ---- the three LayerNorms ----
DitRows rows_of(const TensorView& t) {
  DitRows r{t.data(), {}};
  ops::norm::row_strides(t, r.stride);
  return r;
}
DitRows rows_of(const std::optional<TensorView>& t) { return t ? rows_of(*t) : DitRows{}; }
const float* vector_of(const std::optional<TensorView>& t) { return t ? t->data_as<float>() : nullptr; }
template <class B>
DitNormParams dit_params(const B& a, const TensorView& norm_out) {
  DitNormParams p{};
  p.input = rows_of(a.input), p.residual = rows_of(a.residual);
  if constexpr (requires { a.gate; }) p.gate = rows_of(a.gate), p.gate_bias = vector_of(a.gate_bias);
  if constexpr (requires { a.gamma; }) {
    p.gamma = a.gamma.template data_as<float>(), p.beta = a.beta.template data_as<float>();
  } else {
    p.scale = rows_of(a.scale), p.shift = rows_of(a.shift);
    p.scale_bias = vector_of(a.scale_bias), p.shift_bias = vector_of(a.shift_bias);
  }
  p.residual_out = rows_of(*a.residual_out), p.norm_out = rows_of(norm_out);
  p.input_factor = 1.0f;
  p.eps = static_cast<float>(a.epsilon);
  p.d = a.input.size(2), p.rows = p.d ? a.input.numel() / p.d : 0, p.inner = std::max<int64_t>(a.input.size(1), 1);
  p.rows_per_task = ops::rows_per_task(p.rows, 6 * p.d * a.input.item_size());
  return p;
}
/// With the input's factor, which is in host memory.
template <class B>
DitNormParams host_params(const B& a, const TensorView& norm_out) {
  DitNormParams p = dit_params(a, norm_out);
  if (a.input_global_scaling_factor) p.input_factor = *a.input_global_scaling_factor->template data_as<float>();
  return p;
}
template <class B>
bool quantises(const B& a) {
  return a.use_nvfp4 || a.use_mxfp8;
}
BlockQuantConfig quant_config(DType t, bool nvfp4) {
  return nvfp4 ? BlockQuantConfig{t, 16, 0, 0, 0} : BlockQuantConfig{t, 32, 1, 1, 0};
}
/// Quantises normed rows into norm_out, and their scales into sf_out or scratch memory.
template <class B>
void quantise_dit(const B& a, const TensorView& normed, jit::CpuFn fn) {
  const int64_t d = a.input.size(2), rows = a.input.size(0) * a.input.size(1), block = a.use_nvfp4 ? 16 : 32;
  const TensorView& out = *a.norm_out;
  const Tensor codes = out.is_contiguous() ? Tensor() : Tensor::empty(out.shape(), out.dtype());
  const Tensor unread = a.sf_out ? Tensor() : Tensor::empty({sf_bytes(SfLayout::k128x4, rows, d / block)}, DType::kU8);
  BlockQuantParams p{};
  p.x = normed.data(), p.codes = static_cast<uint8_t*>(codes.defined() ? codes.data() : out.data());
  p.scales = static_cast<uint8_t*>(a.sf_out ? a.sf_out->data() : unread.data());
  p.batches = 1, p.rows = rows, p.k = p.padded_k = d, p.row_stride = d;
  p.code_row_stride = a.use_nvfp4 ? d / 2 : d;
  p.layout = SfLayout::k128x4, p.padded_rows = sf_padded_rows(p.layout, rows);
  if (a.use_nvfp4) p.encode = a.global_scaling_factor->template data_as<float>();
  ops::run_block_quantize(fn, quant_config(normed.dtype(), a.use_nvfp4), p);
  if (codes.defined()) ops::copy_strided(codes.view(), out);
}
template <class B>
op::Prepared prepare_dit(const B& a) {
  const DitNormConfig config{a.input.dtype(), static_cast<unsigned char>(requires { a.gamma; })};
  if (!quantises(a)) {
    const DitNormParams p = host_params(a, *a.norm_out);
    return ops::prepare_rows<kDit>(config, p, p.rows, p.rows_per_task);
  }
  ops::Lookup lookup;
  const jit::CpuFn norm = lookup.kernel<kDit>(config),
                   quantise = lookup.kernel<ops::kBlockQuantize>(quant_config(a.input.dtype(), a.use_nvfp4));
  return lookup.prepared([&a, norm, quantise] {
    const Tensor normed = Tensor::empty(a.input.shape(), a.input.dtype());
    const DitNormParams p = host_params(a, normed.view());
    ops::run_rows(norm, p, p.rows, p.rows_per_task);
    quantise_dit(a, normed.view(), quantise);
  });
}

// ---- on a GPU ----
inline constexpr jit::Kernel kDitCuda{"flashinfer/ops/norm/kernels/cuda/gated.cuh", "flashinfer::cu::dit_norm",
                                      "flashinfer::DitNormCudaParams"};
DitNormCudaConfig dit_cuda_config(DType t, bool affine, const DitNormParams& p) {
  const int64_t size = cuda::norm_item_size(t);
  uint64_t bits = static_cast<uint64_t>(p.d * size);
  for (const DitRows* r : {&p.input, &p.residual, &p.gate, &p.scale, &p.shift, &p.residual_out, &p.norm_out})
    bits |= cuda::row_bits(r->data, r->stride, p.inner, size);
  for (const float* column : {p.gate_bias, p.scale_bias, p.shift_bias, p.gamma, p.beta})
    bits |= reinterpret_cast<uintptr_t>(column);
  const int group = cuda::norm_group(t, p.d);
  return {
      .dtype = t, .affine = affine, .aligned = bits % 16 == 0, .group = group, .threads = group <= 32 ? 128 : group};
}
template <class B>
op::Prepared prepare_dit_cuda(const B& a, const op::Call& call) {
  if (quantises(a))
    return op::Unsupported{
        "norm_out in block formats (use_nvfp4, use_mxfp8) has no kernel for GPUs: quantise it with nvfp4_quantize or "
        "mxfp8_quantize"};
  const DitNormCudaParams p{dit_params(a, *a.norm_out), vector_of(a.input_global_scaling_factor)};
  const DitNormCudaConfig c = dit_cuda_config(a.input.dtype(), requires { a.gamma; }, p.norm);
  NormParams rows{};
  rows.rows = p.norm.rows;
  return ops::prepare_cuda<kDitCuda>(c, p, call.device, p.norm.d ? cuda::norm_launch(c, rows, true) : ops::kNoBlocks);
}
void check_bias(const char* name, const std::optional<TensorView>& t, int64_t d) {
  FI_CHECK(!t || (t->numel() == d && t->size(-1) == d && t->rank() <= 2), ValueError, name, " is ", to_string(*t),
           ", but must be [", d, "] or [1, ", d, "] (from input.shape[2])");
}
template <class B>
void check_quantised(const B& a) {
  const int64_t d = a.input.size(2), block = a.use_nvfp4 ? 16 : 32;
  FI_CHECK(a.input.dtype() != DType::kF32, ValueError, "input is ", to_string(a.input),
           ", but quantised outputs need float16 or bfloat16");
  ops::check_columns(d, block);
  if (a.use_nvfp4) ops::global_scale("global_scaling_factor", *a.global_scaling_factor);
  const int64_t bytes = sf_bytes(SfLayout::k128x4, a.input.size(0) * a.input.size(1), d / block);
  FI_CHECK(!a.sf_out || (a.sf_out->nbytes() == bytes && a.sf_out->is_contiguous()), ValueError, "sf_out is ",
           to_string(*a.sf_out), ", but must be ", bytes, " bytes, contiguous (tiles of 128x4)");
}
template <class B>
DType norm_dtype(const B& a) {
  return quantises(a) ? DType::kI32 : a.input.dtype();
}
template <class B>
op::Shape norm_shape(const B& a) {
  const int64_t d = a.input.size(2);
  return {3, {a.input.size(0), a.input.size(1), a.use_nvfp4 ? d / 8 : a.use_mxfp8 ? d / 4 : d}};
}
template <class B>
bool has_scales(const B& a) {
  return quantises(a) && a.sf_out.has_value();
}
template <class B>
void validate_dit(const B& a) {
  FI_CHECK(!a.use_nvfp4 || !a.use_mxfp8, ValueError, "Cannot use both use_nvfp4 and use_mxfp8");
  FI_CHECK(!a.use_nvfp4 || a.global_scaling_factor, ValueError,
           "global_scaling_factor is missing: use_nvfp4=True needs it");
  FI_CHECK(a.epsilon >= 0, ValueError, "epsilon is ", a.epsilon, ", but must be at least 0");
  const int64_t d = a.input.size(2);
  if (quantises(a)) check_quantised(a);
  if constexpr (requires { a.gate_bias; }) check_bias("gate_bias", a.gate_bias, d);
  if constexpr (requires { a.scale_bias; }) {
    check_bias("scale_bias", a.scale_bias, d);
    check_bias("shift_bias", a.shift_bias, d);
  }
  const auto& factor = a.input_global_scaling_factor;
  FI_CHECK(!factor || factor->numel() == 1, ValueError, "input_global_scaling_factor is ", to_string(*factor),
           ", but must be one float32");
}
template <class B>
op::Cost cost_dit(const B& a) {
  return {.bytes = 6.0 * static_cast<double>(a.input.nbytes()), .flops = 12.0 * static_cast<double>(a.input.numel())};
}

// ---- fused_qk_rmsnorm_rope ----
/// cos and sin of a part's angles at every place, each [extent][pairs].
struct Tables {
  std::vector<float> cos[3], sin[3];
};
std::array<int64_t, 3> extents_of(const QkRope& a) { return {a.ppf, a.pph, a.ppw}; }
std::array<int64_t, 3> channels_of(const QkRope& a) {
  return {a.num_frame_channels, a.num_height_channels, a.num_width_channels};
}
std::array<int64_t, 3> heads_of(const QkRope& a) { return {a.num_heads_q, a.num_heads_k, a.num_heads_v}; }
std::shared_ptr<const Tables> tables_of(const QkRope& a) {
  auto t = std::make_shared<Tables>();
  for (size_t part = 0; part < 3; ++part) {
    const int64_t channels = channels_of(a)[part];
    for (int64_t place = 0; place < extents_of(a)[part]; ++place)
      for (int64_t i = 0; i < channels / 2; ++i) {
        const double angle = static_cast<double>(place) *
                             std::pow(a.base, -2.0 * static_cast<double>(i) / static_cast<double>(channels));
        t->cos[part].push_back(static_cast<float>(std::cos(angle) * a.attention_factor));
        t->sin[part].push_back(static_cast<float>(std::sin(angle) * a.attention_factor));
      }
  }
  return t;
}
DType rope_out_dtype(const QkRope& a) { return a.output_fp8 ? DType::kF8E4M3 : a.qkv.dtype(); }
template <int kPart>
op::Shape rope_shape(const QkRope& a) {
  const int64_t heads = heads_of(a)[kPart];
  if (a.qkv.rank() == 3) return {4, {a.qkv.size(0), a.qkv.size(1), heads, a.head_dim}};
  return {3, {a.qkv.size(0), heads, a.head_dim}};
}
op::Prepared prepare_rope(const QkRope& a) {
  QkNormRopeParams p{};
  const bool batched = a.qkv.rank() == 3;
  p.qkv = a.qkv.data();
  ops::norm::row_strides(a.qkv, p.qkv_stride);
  p.weight[0] = a.is_qk_norm ? a.q_weight.data() : nullptr, p.weight[1] = a.is_qk_norm ? a.k_weight.data() : nullptr;
  const TensorView* outs[] = {&*a.q_out, &*a.k_out, &*a.v_out};
  const auto tables = tables_of(a);
  for (size_t i = 0; i < 3; ++i) {
    p.out[i] = outs[i]->data();
    p.out_stride[i][0] = outs[i]->stride(0), p.out_stride[i][1] = batched ? outs[i]->stride(1) : 0,
    p.out_stride[i][2] = outs[i]->stride(-2);
    p.heads[i] = heads_of(a)[i], p.extent[i] = extents_of(a)[i], p.pairs[i] = channels_of(a)[i] / 2;
    p.cos[i] = tables->cos[i].data(), p.sin[i] = tables->sin[i].data();
    const double scale = i < 2 ? a.output_quant_scale : a.v_quant_scale;
    p.out_scale[i] = a.output_fp8 ? static_cast<float>(scale) : 1.0f;
  }
  p.dim = a.head_dim, p.eps = static_cast<float>(a.eps);
  p.inner = batched ? std::max<int64_t>(a.qkv.size(1), 1) : 1;
  p.rows = batched ? a.qkv.size(0) * a.qkv.size(1) : a.qkv.size(0);
  p.rows_per_task = ops::rows_per_task(p.rows, a.qkv.size(-1) * (a.qkv.item_size() + size_of(rope_out_dtype(a))));
  const QkNormRopeConfig config{a.qkv.dtype(), rope_out_dtype(a), static_cast<unsigned char>(a.interleave)};
  return ops::with_kernel<kQkRope>(config,
                                   [p, tables](jit::CpuFn fn) { ops::run_rows(fn, p, p.rows, p.rows_per_task); });
}
void validate_rope(const QkRope& a) {
  FI_CHECK(a.qkv.rank() == 2 || a.qkv.rank() == 3, ValueError, "qkv is ", to_string(a.qkv),
           ", but must be [rows, dim] or [batch, rows, dim]");
  for (const auto& [name, x] :
       {std::pair("ppf", a.ppf), std::pair("pph", a.pph), std::pair("ppw", a.ppw), std::pair("head_dim", a.head_dim)})
    FI_CHECK(x >= 1, ValueError, name, " is ", x, ", but must be at least 1");
  FI_CHECK(a.head_dim % 2 == 0 && a.head_dim <= kMaxQkNormRopeDim, ValueError, "head_dim is ", a.head_dim,
           ", but must be even and at most ", kMaxQkNormRopeDim);
  for (const auto& [name, x] : {std::pair("num_heads_q", a.num_heads_q), std::pair("num_heads_k", a.num_heads_k),
                                std::pair("num_heads_v", a.num_heads_v)})
    FI_CHECK(x >= 0, ValueError, name, " is ", x, ", but must be at least 0");
  int64_t channels = 0;
  for (const auto& [name, x] :
       {std::pair("num_frame_channels", a.num_frame_channels), std::pair("num_height_channels", a.num_height_channels),
        std::pair("num_width_channels", a.num_width_channels)}) {
    FI_CHECK(x >= 0 && x % 2 == 0, ValueError, name, " is ", x, ", but must be even");
    channels += x;
  }
  FI_CHECK(channels == a.head_dim, ValueError, "num_frame_channels, num_height_channels and num_width_channels sum to ",
           channels, ", but head_dim is ", a.head_dim);
  const int64_t width = (a.num_heads_q + a.num_heads_k + a.num_heads_v) * a.head_dim, seq = a.ppf * a.pph * a.ppw;
  FI_CHECK(a.qkv.size(-1) == width, ValueError, "qkv.shape[-1] is ", a.qkv.size(-1), ", but the heads have ", width,
           " elements (", a.num_heads_q, " + ", a.num_heads_k, " + ", a.num_heads_v, " of ", a.head_dim, ")");
  FI_CHECK(a.qkv.rank() == 3 ? a.qkv.size(1) == seq : a.qkv.size(0) % seq == 0, ValueError, "qkv is ", to_string(a.qkv),
           ", but a video has ", seq, " rows (ppf * pph * ppw)");
  for (const auto& [name, w, heads] :
       {std::tuple("q_weight", &a.q_weight, a.num_heads_q), std::tuple("k_weight", &a.k_weight, a.num_heads_k)})
    FI_CHECK(w->rank() == 1 && w->size(0) == heads * a.head_dim, ValueError, name, " is ", to_string(*w),
             ", but must be [", heads * a.head_dim, "]");
  FI_CHECK(a.eps >= 0, ValueError, "eps is ", a.eps, ", but must be at least 0");
  FI_CHECK(a.base > 0, ValueError, "base is ", a.base, ", but must be positive");
  if (a.factor != 1.0)
    throw NotImplementedError(str("factor=", a.factor, " is not supported: YARN's scaling is not available"));
  FI_CHECK(a.attention_factor == 1.0, ValueError, "attention_factor is ", a.attention_factor,
           ", but must be 1.0 when factor is 1.0");
}
op::Cost cost_rope(const QkRope& a) {
  return {.bytes = static_cast<double>(a.qkv.nbytes() + a.qkv.numel() * size_of(rope_out_dtype(a))),
          .flops = 8.0 * static_cast<double>(a.qkv.numel())};
}

// ---- tables ----
template <class B>
constexpr auto gate_of() {
  return op::in<&B::gate>("gate", "b n d", op::same_as("input"), op::doc("factor of input"));
}
#define FI_BIAS(B, name) op::in<&B::name>(#name, nullptr, DType::kF32, op::contiguous)
#define FI_TAIL(B)                                                                                                \
  op::attr<&B::epsilon>("epsilon"), op::attr<&B::use_nvfp4>("use_nvfp4"), op::attr<&B::use_mxfp8>("use_mxfp8"),   \
      op::in<&B::global_scaling_factor>("global_scaling_factor", nullptr, DType::kF32),                           \
      op::in<&B::input_global_scaling_factor>("input_global_scaling_factor", nullptr, DType::kF32),               \
      op::out<&B::residual_out>("residual_out", "b n d", op::same_as("input"), op::may_alias("residual")),        \
      op::out<&B::norm_out>("norm_out", nullptr, op::floats | DType::kI32, op::shape<norm_shape<B>>,              \
                            op::dtype<norm_dtype<B>>),                                                            \
      op::out<&B::sf_out>("sf_out", nullptr, DTypeSet(DType::kU8) | DType::kF8E4M3 | DType::kI32, op::contiguous, \
                          op::when<has_scales<B>>, op::not_returned)
constexpr op::Field gamma_beta_fields[] = {
    op::in<&GammaBeta::input>("input", "b n d", op::floats),
    op::in<&GammaBeta::residual>("residual", "b n d", op::same_as("input")),
    gate_of<GammaBeta>(),
    op::in<&GammaBeta::gamma>("gamma", "d", DType::kF32),
    op::in<&GammaBeta::beta>("beta", "d", DType::kF32),
    op::in<&GammaBeta::gate_bias>("gate_bias", nullptr, DType::kF32, op::contiguous, op::keyword_only),
    FI_TAIL(GammaBeta),
};
constexpr op::Field gate_scale_fields[] = {
    op::in<&GateScale::input>("input", "b n d", op::floats),
    op::in<&GateScale::residual>("residual", "b n d", op::same_as("input")),
    gate_of<GateScale>(),
    op::in<&GateScale::scale>("scale", "b n d", op::same_as("input"), op::doc("1 + scale is the factor of the norm")),
    op::in<&GateScale::shift>("shift", "b n d", op::same_as("input")),
    op::in<&GateScale::gate_bias>("gate_bias", nullptr, DType::kF32, op::contiguous, op::keyword_only),
    FI_BIAS(GateScale, scale_bias),
    FI_BIAS(GateScale, shift_bias),
    FI_TAIL(GateScale),
};
constexpr op::Field scale_fields[] = {
    op::in<&Scale::input>("input", "b n d", op::floats),
    op::in<&Scale::scale>("scale", "b n d", op::same_as("input"), op::doc("1 + scale is the factor of the norm")),
    op::in<&Scale::shift>("shift", "b n d", op::same_as("input")),
    op::in<&Scale::residual>("residual", "b n d", op::same_as("input"), op::keyword_only),
    FI_BIAS(Scale, scale_bias),
    FI_BIAS(Scale, shift_bias),
    FI_TAIL(Scale),
};
#undef FI_BIAS
#undef FI_TAIL
#define FI_OUT(name, part) \
  op::out<&QkRope::name>(#name, nullptr, op::floats | op::fp8, op::shape<rope_shape<part>>, op::dtype<rope_out_dtype>)
constexpr op::Field rope_fields[] = {
    op::in<&QkRope::qkv>("qkv", nullptr, op::floats),
    op::in<&QkRope::q_weight>("q_weight", nullptr, op::same_as("qkv")),
    op::in<&QkRope::k_weight>("k_weight", nullptr, op::same_as("qkv")),
    op::attr<&QkRope::ppf>("ppf", op::required, op::keyword_only),
    op::attr<&QkRope::pph>("pph", op::required),
    op::attr<&QkRope::ppw>("ppw", op::required),
    op::attr<&QkRope::num_frame_channels>("num_frame_channels", op::required),
    op::attr<&QkRope::num_height_channels>("num_height_channels", op::required),
    op::attr<&QkRope::num_width_channels>("num_width_channels", op::required),
    op::attr<&QkRope::num_heads_q>("num_heads_q", op::required),
    op::attr<&QkRope::num_heads_k>("num_heads_k", op::required),
    op::attr<&QkRope::num_heads_v>("num_heads_v", op::required),
    op::attr<&QkRope::head_dim>("head_dim", op::required),
    op::attr<&QkRope::eps>("eps"),
    op::attr<&QkRope::base>("base"),
    op::attr<&QkRope::interleave>("interleave"),
    op::attr<&QkRope::factor>("factor"),
    op::attr<&QkRope::low>("low"),
    op::attr<&QkRope::high>("high"),
    op::attr<&QkRope::attention_factor>("attention_factor"),
    op::attr<&QkRope::is_qk_norm>("is_qk_norm"),
    op::attr<&QkRope::output_fp8>("output_fp8"),
    op::attr<&QkRope::output_quant_scale>("output_quant_scale"),
    op::attr<&QkRope::v_quant_scale>("v_quant_scale"),
    FI_OUT(q_out, 0),
    FI_OUT(k_out, 1),
    FI_OUT(v_out, 2),
};
#undef FI_OUT
template <class B>
constexpr op::Candidate dit_candidates[] = {op::cuda<prepare_dit_cuda<B>>(), op::cpu<prepare_dit<B>>(),
                                            op::reference<ref::dit_norm<B>>()};
constexpr op::Candidate rope_candidates[] = {op::cpu<prepare_rope>(), op::reference<ref::qk_norm_rope>()};
}  // namespace

namespace ops::norm {
constinit const op::Op dit_gamma_op = op::define<GammaBeta, validate_dit<GammaBeta>, cost_dit<GammaBeta>>(
    "fused_dit_gate_residual_layernorm_gamma_beta", "flashinfer.norm",
    "residual_out = residual + input * (gate + gate_bias); norm_out = its LayerNorm * gamma + beta.", gamma_beta_fields,
    dit_candidates<GammaBeta>, dit_gamma_cases);
constinit const op::Op dit_gate_op = op::define<GateScale, validate_dit<GateScale>, cost_dit<GateScale>>(
    "fused_dit_gate_residual_layernorm_scale_shift", "flashinfer.norm",
    "residual_out = residual + input * (gate + gate_bias); norm_out = its LayerNorm * (1 + scale + scale_bias) + shift "
    "+ shift_bias.",
    gate_scale_fields, dit_candidates<GateScale>, dit_gate_cases);
constinit const op::Op dit_scale_op = op::define<Scale, validate_dit<Scale>, cost_dit<Scale>>(
    "fused_dit_residual_layernorm_scale_shift", "flashinfer.norm",
    "residual_out = residual + input; norm_out = its LayerNorm * (1 + scale + scale_bias) + shift + shift_bias.",
    scale_fields, dit_candidates<Scale>, dit_scale_cases);
constinit const op::Op qk_norm_rope_op = op::define<QkRope, validate_rope, cost_rope>(
    "fused_qk_rmsnorm_rope", "flashinfer.norm",
    "RMSNorm of all heads of Q and of K, a rotation by a video's frame, height and width, and a copy of V.",
    rope_fields, rope_candidates, qk_norm_rope_cases);
}  // namespace ops::norm

std::pair<Tensor, Tensor> fused_dit_gate_residual_layernorm_gamma_beta(const GammaBeta& a) {
  return op::call(ops::norm::dit_gamma_op, a);
}
std::pair<Tensor, Tensor> fused_dit_gate_residual_layernorm_scale_shift(const GateScale& a) {
  return op::call(ops::norm::dit_gate_op, a);
}
std::pair<Tensor, Tensor> fused_dit_residual_layernorm_scale_shift(const Scale& a) {
  return op::call(ops::norm::dit_scale_op, a);
}
std::tuple<Tensor, Tensor, Tensor> fused_qk_rmsnorm_rope(const QkRope& a) {
  return op::call(ops::norm::qk_norm_rope_op, a);
}

}  // namespace flashinfer
