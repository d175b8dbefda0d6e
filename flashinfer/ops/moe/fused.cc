// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "flashinfer/ops/activation/ref.h"
#include "flashinfer/ops/common/rows.h"
#include "flashinfer/ops/gemm/grouped_work.h"
#include "flashinfer/ops/moe/cases.h"
#include "flashinfer/ops/moe/op.h"
#include "flashinfer/ops/moe/ops.h"
#include "flashinfer/ops/moe/params.h"
#include "flashinfer/ops/quantization/block_launch.h"
#include "flashinfer/ops/quantization/block_ref.h"

namespace flashinfer {
namespace {
namespace family = ops::moe;
using Moe = CutlassFusedMoe;
using gemm::GroupedWork;
constexpr const char* kName = "cutlass_fused_moe";
inline constexpr jit::Kernel kActivate{"flashinfer/ops/moe/cpu.h", "flashinfer::cpu::moe_activate", "flashinfer::MoeActParams"};
inline constexpr jit::Kernel kSum{"flashinfer/ops/moe/cpu.h", "flashinfer::cpu::moe_sum", "flashinfer::MoeSumParams"};

// ---- what the arguments say ----
enum class Mode { kPlain, kFp8, kNvfp4 };
bool is_bytes(const TensorView& t) { return t.dtype() == DType::kU8 || t.dtype() == DType::kF4E2M1x2; }
Mode mode_of(const Moe& a) {
  return is_bytes(a.fc1_expert_weights) ? Mode::kNvfp4 : a.fc1_expert_weights.dtype() == DType::kF8E4M3 ? Mode::kFp8 : Mode::kPlain;
}
MoeActivation kind_of(const Moe& a) { return static_cast<MoeActivation>(a.activation_type); }
struct Extents {
  int64_t tokens, top_k, experts, hidden, inter, width;  // width: rows of fc1
};
Extents extents_of(const Moe& a) {
  const int64_t per = mode_of(a) == Mode::kNvfp4 ? 2 : 1, width = a.fc1_expert_weights.size(1);
  return {a.input.size(0), a.token_selected_experts.size(1), a.fc1_expert_weights.size(0), a.fc1_expert_weights.size(2) * per,
          has_gate(kind_of(a)) ? width / 2 : width, width};
}
float number(const TensorView& t, int64_t i = 0) {
  return t.data_as<float>()[t.numel() == 1 || t.rank() == 0 ? 0 : i * t.stride(0)];
}
GemmSf weight_sf(const Moe& a, size_t which, int64_t rows, int64_t columns) {
  const TensorView& t = (*a.quant_scales)[which];
  return {.bytes = static_cast<const uint8_t*>(t.data()), .columns = columns, .batch = sf_bytes(SfLayout::k128x4, rows, columns), .block = 16,
          .layout = SfLayout::k128x4};
}
/// The factor behind product 1 or 2 of expert e.
float factor_of(const Moe& a, int product, int64_t e) {
  switch (mode_of(a)) {
    case Mode::kFp8: return number((*a.quant_scales)[product == 1 ? 0 : 2], e);
    case Mode::kNvfp4: return number((*a.quant_scales)[product == 1 ? 2 : 5], e);
    default: return 1;
  }
}
/// The local number of an expert, or -1.
int64_t local_expert(const Moe& a, int64_t t, int64_t j) {
  const TensorView& ids = a.token_selected_experts;
  const int64_t at = t * ids.stride(0) + j * ids.stride(1), experts = a.fc1_expert_weights.size(0);
  const int64_t e = (ids.dtype() == DType::kI32 ? ids.data_as<int32_t>()[at] : ids.data_as<int64_t>()[at]) - a.ep_rank * experts;
  return e >= 0 && e < experts ? e : -1;
}

// ---- checks ----
void refuse_flags(const Moe& a) {
  const auto flag = [](bool set, const char* name) { FI_CHECK(!set, NotImplementedError, kName, ": ", name, " is True, but is not implemented"); };
  flag(a.use_deepseek_fp8_block_scale, "use_deepseek_fp8_block_scale");
  flag(a.use_w4_group_scaling, "use_w4_group_scaling");
  flag(a.use_mxfp8_act_scaling, "use_mxfp8_act_scaling");
  flag(a.min_latency_mode, "min_latency_mode");
  flag(a.use_packed_weights, "use_packed_weights");
  flag(a.use_wfp4afp8_humming, "use_wfp4afp8_humming");
  FI_CHECK(a.cluster_size == 1 && a.cluster_rank == 0, NotImplementedError, kName, ": cluster_size is ", a.cluster_size, ", but only 1 is implemented");
}
void check_rank(const char* size_name, int64_t size, const char* rank_name, int64_t rank) {
  FI_CHECK(size >= 1 && rank >= 0 && rank < size, ValueError, kName, ": ", rank_name, " is ", rank, ", but must be in [0, ", size, ") (", size_name, ")");
}
void check_shape(const char* name, const TensorView& t, std::initializer_list<int64_t> want) {
  FI_CHECK(std::ranges::equal(t.shape(), want), ValueError, kName, ": ", name, " is ", to_string(t), ", but must be [", [&] {
    std::string s;
    for (int64_t n : want) s += (s.empty() ? "" : ", ") + std::to_string(n);
    return s;
  }(), "]");
}
void check_floats(const char* name, const std::optional<TensorView>& t, int64_t experts, bool used) {
  if (!t) return;
  FI_CHECK(used, ValueError, kName, ": ", name, " is given, but the activation does not take it");
  FI_CHECK(t->dtype() == DType::kF32, ValueError, kName, ": ", name, ".dtype is ", flashinfer::name(t->dtype()), ", but must be float32");
  check_shape(name, *t, {experts});
}
void check_activation(const Moe& a, const Extents& x) {
  const MoeActivation kind = kind_of(a);
  FI_CHECK(a.activation_type >= 0 && a.activation_type <= 12 && a.activation_type != 11, ValueError, kName, ": activation_type is ",
           a.activation_type, ", but must be an ActivationType");
  FI_CHECK(!has_gate(kind) || x.width % 2 == 0, ValueError, kName, ": fc1_expert_weights.shape[1] is ", x.width,
           ", but must be even (the linear half and the gate)");
  const bool swiglu = kind == MoeActivation::kSwiglu || kind == MoeActivation::kSwigluBias, situ = kind == MoeActivation::kSitu;
  check_floats("swiglu_alpha", a.swiglu_alpha, x.experts, swiglu);
  check_floats("swiglu_beta", a.swiglu_beta, x.experts, swiglu);
  check_floats("swiglu_limit", a.swiglu_limit, x.experts, swiglu);
  check_floats("situ_beta", a.situ_beta, x.experts, situ);
  check_floats("situ_linear_beta", a.situ_linear_beta, x.experts, situ);
  const bool clamped = kind == MoeActivation::kClampedRelu2;
  FI_CHECK(clamped == a.clamped_relu2_limit.has_value(), ValueError, kName, ": clamped_relu2_limit is ", a.clamped_relu2_limit ? "given" : "None",
           ", but ClampedRelu2 (12), and only it, has one; activation_type is ", a.activation_type);
  if (!clamped) return;
  FI_CHECK(a.clamped_relu2_limit->numel() == 1 && a.clamped_relu2_limit->dtype() == DType::kF32, ValueError, kName, ": clamped_relu2_limit is ",
           to_string(*a.clamped_relu2_limit), ", but must be one float32");
  FI_CHECK(!a.fc1_expert_biases, ValueError, kName, ": fc1_expert_biases is given, but ClampedRelu2 takes none");
}
void check_factor(const char* what, const TensorView& t, int64_t experts) {
  FI_CHECK(t.dtype() == DType::kF32 && (t.numel() == 1 || (t.rank() == 1 && t.size(0) == experts)), ValueError, kName, ": quant_scales, ", what, ", is ",
           to_string(t), ", but must be float32[", experts, "] or one float32");
}
void check_gs(const char* what, const TensorView& t) {
  FI_CHECK(t.dtype() == DType::kF32, ValueError, kName, ": quant_scales, ", what, ", is ", to_string(t), ", but must be one float32");
  ops::global_scale(kName, str("quant_scales, ", what, ",").c_str(), t);
}
void check_weight_sf(const char* what, const TensorView& t, int64_t experts, int64_t rows, int64_t k) {
  FI_CHECK(k % 16 == 0, ValueError, kName, ": ", what, ": rows have ", k, " elements, but must have a multiple of 16");
  const int64_t bytes = experts * sf_bytes(SfLayout::k128x4, rows, k / 16);
  FI_CHECK(t.nbytes() == bytes && t.is_contiguous(), ValueError, kName, ": quant_scales, ", what, ", is ", to_string(t), ", but must be ", bytes,
           " bytes, contiguous (128x4 for each of ", experts, " experts)");
}
void check_mode(const Moe& a, const Extents& x) {
  const Mode mode = mode_of(a);
  const size_t want = mode == Mode::kPlain ? 0 : mode == Mode::kFp8 ? 4 : 6, given = a.quant_scales ? a.quant_scales->size() : 0;
  FI_CHECK(given == want, ValueError, kName, ": quant_scales has ", given, " tensors, but weights of ", name(a.fc1_expert_weights.dtype()), " need ", want);
  FI_CHECK(!a.input_sf || (mode == Mode::kNvfp4 && is_bytes(a.input)), ValueError, kName, ": input_sf is given, but the input is ",
           name(a.input.dtype()), " with weights of ", name(a.fc1_expert_weights.dtype()));
  if (mode == Mode::kPlain)
    FI_CHECK(a.input.dtype() == a.fc1_expert_weights.dtype(), ValueError, kName, ": input.dtype is ", name(a.input.dtype()),
             ", but fc1_expert_weights.dtype is ", name(a.fc1_expert_weights.dtype()));
  if (mode == Mode::kFp8) {
    FI_CHECK(a.input.dtype() == DType::kF8E4M3, ValueError, kName, ": input.dtype is ", name(a.input.dtype()),
             ", but weights of float8_e4m3fn need an input of float8_e4m3fn");
    check_factor("gemm1 dequant scale", (*a.quant_scales)[0], x.experts);
    check_gs("gemm2 activation quant scale", (*a.quant_scales)[1]);
    check_factor("gemm2 dequant scale", (*a.quant_scales)[2], x.experts);
  }
  if (mode == Mode::kNvfp4) {
    const bool packed = is_bytes(a.input);
    FI_CHECK(packed || a.input.dtype() == DType::kBF16 || a.input.dtype() == DType::kF16, ValueError, kName, ": input.dtype is ",
             name(a.input.dtype()), ", but NVFP4 weights take bfloat16, float16 or packed codes");
    FI_CHECK(packed == a.input_sf.has_value(), ValueError, kName, ": input_sf is ", a.input_sf ? "given" : "None", ", but the input is ",
             name(a.input.dtype()));
    check_gs("gemm1 activation global scale", (*a.quant_scales)[0]);
    check_weight_sf("gemm1 weights block scales", (*a.quant_scales)[1], x.experts, x.width, x.hidden);
    check_factor("gemm1 dequant scale", (*a.quant_scales)[2], x.experts);
    check_gs("gemm2 activation global scale", (*a.quant_scales)[3]);
    check_weight_sf("gemm2 weights block scales", (*a.quant_scales)[4], x.experts, x.hidden, x.inter);
    check_factor("gemm2 dequant scale", (*a.quant_scales)[5], x.experts);
    if (packed) {
      const int64_t bytes = sf_bytes(a.swizzled_input_sf ? SfLayout::k128x4 : SfLayout::kLinear, x.tokens, x.hidden / 16);
      FI_CHECK(a.input_sf->nbytes() == bytes && a.input_sf->is_contiguous(), ValueError, kName, ": input_sf is ", to_string(*a.input_sf), ", but ", x.tokens,
               " rows of ", x.hidden, " elements need ", bytes, " bytes, contiguous");
    }
  }
}
void validate(const Moe& a) {
  refuse_flags(a);
  check_rank("tp_size", a.tp_size, "tp_rank", a.tp_rank);
  check_rank("ep_size", a.ep_size, "ep_rank", a.ep_rank);
  const Extents x = extents_of(a);
  check_activation(a, x);
  const int64_t per = mode_of(a) == Mode::kNvfp4 ? 2 : 1;
  FI_CHECK(a.fc2_expert_weights.dtype() == a.fc1_expert_weights.dtype(), ValueError, kName, ": fc2_expert_weights.dtype is ",
           name(a.fc2_expert_weights.dtype()), ", but fc1_expert_weights.dtype is ", name(a.fc1_expert_weights.dtype()));
  FI_CHECK(x.inter % per == 0, ValueError, kName, ": the intermediate size is ", x.inter, ", but must be even");
  check_shape("fc2_expert_weights", a.fc2_expert_weights, {x.experts, x.hidden, x.inter / per});
  check_shape("input", a.input, {x.tokens, is_bytes(a.input) ? x.hidden / 2 : x.hidden});
  if (a.fc1_expert_biases) check_shape("fc1_expert_biases", *a.fc1_expert_biases, {x.experts, x.width});
  if (a.fc2_expert_biases) check_shape("fc2_expert_biases", *a.fc2_expert_biases, {x.experts, x.hidden});
  if (a.input.device() != kCpu) return;
  check_mode(a, x);
  if (a.enable_alltoall) return;
  for (int64_t t = 0; t < x.tokens; ++t)
    for (int64_t j = 0; j < x.top_k; ++j) {
      const int64_t e = static_cast<int64_t>(ref::at(a.token_selected_experts, {t, j}));
      FI_CHECK(e >= 0 && e < x.experts * a.ep_size, ValueError, kName, ": token_selected_experts[", t, "][", j, "] is ", e, ", but must be in [0, ",
               x.experts * a.ep_size, ") (", x.experts, " experts on each of ", a.ep_size, " ranks)");
    }
}

// ---- rows sorted by expert ----
struct Permutation {
  std::vector<int32_t> row_of;             // [tokens * top_k], -1: not of this rank
  std::vector<int32_t> token_of, expert_of;  // [rows]
  std::vector<gemm::Group> groups;
  int64_t rows() const { return static_cast<int64_t>(token_of.size()); }
};
Permutation permute(const Moe& a, const Extents& x) {
  Permutation p;
  std::vector<int64_t> next(static_cast<size_t>(x.experts) + 1, 0);
  for (int64_t t = 0; t < x.tokens; ++t)
    for (int64_t j = 0; j < x.top_k; ++j)
      if (const int64_t e = local_expert(a, t, j); e >= 0) ++next[static_cast<size_t>(e) + 1];
  for (size_t e = 0; e < static_cast<size_t>(x.experts); ++e) {
    if (next[e + 1]) p.groups.push_back({.row = next[e], .rows = next[e + 1], .weight = static_cast<int64_t>(e), .sf_first = next[e]});
    next[e + 1] += next[e];
  }
  p.row_of.assign(static_cast<size_t>(x.tokens * x.top_k), -1);
  p.token_of.resize(static_cast<size_t>(next.back()));
  p.expert_of.resize(p.token_of.size());
  for (int64_t t = 0; t < x.tokens; ++t)
    for (int64_t j = 0; j < x.top_k; ++j) {
      const int64_t e = local_expert(a, t, j);
      if (e < 0) continue;
      const auto row = static_cast<size_t>(next[static_cast<size_t>(e)]++);
      p.row_of[static_cast<size_t>(t * x.top_k + j)] = static_cast<int32_t>(row);
      p.token_of[row] = static_cast<int32_t>(t);
      p.expert_of[row] = static_cast<int32_t>(e);
    }
  return p;
}
/// Rows token_of[r] of x.
Tensor gather(const TensorView& x, const std::vector<int32_t>& token_of) {
  const auto rows = static_cast<int64_t>(token_of.size());
  const int64_t bytes = x.size(1) * x.item_size();
  Tensor out = Tensor::empty({rows, x.size(1)}, x.dtype());
  ops::for_rows(rows, ops::rows_per_task(rows, 2 * bytes), [&](int64_t r) {
    std::memcpy(out.data_as<char>() + r * bytes, x.data_as<char>() + token_of[static_cast<size_t>(r)] * x.stride(0) * x.item_size(), static_cast<size_t>(bytes));
  });
  return out;
}

// ---- NVFP4 of activations, with linear scale factors ----
struct Fp4 {
  Tensor codes, scales;
};
BlockQuantConfig quant_config(DType t) { return {t, 16, 0, 0, 0}; }
Fp4 quantise(const TensorView& x, float gs) {
  Fp4 out{Tensor::empty({x.size(0), x.size(1) / 2}, DType::kU8), Tensor::empty({x.size(0), x.size(1) / 16}, DType::kU8)};
  BlockQuantParams p{};
  p.x = x.data(), p.codes = out.codes.data_as<uint8_t>(), p.scales = out.scales.data_as<uint8_t>();
  p.batches = 1, p.rows = p.padded_rows = x.size(0), p.k = p.padded_k = x.size(1);
  p.row_stride = x.stride(0), p.code_row_stride = x.size(1) / 2;
  p.layout = SfLayout::kLinear;
  p.encode = &gs;
  ops::run_block_quantize(quant_config(x.dtype()), p);
  return out;
}
Fp4 quantise_reference(const TensorView& x, float gs) {
  Fp4 out{Tensor::empty({x.size(0), x.size(1) / 2}, DType::kU8), Tensor::empty({x.size(0), x.size(1) / 16}, DType::kU8)};
  for (int64_t r = 0; r < x.size(0); ++r)
    ref::quantize_row({16, false, false}, ref::floats_of(x, {r}), gs, out.codes.view().select(0, r), out.scales.view(), SfLayout::kLinear, r);
  return out;
}
/// Scale factors of a packed input as linear rows.
Tensor linear_input_sf(const Moe& a, const Extents& x) {
  const int64_t columns = x.hidden / 16;
  Tensor out = Tensor::empty({x.tokens, columns}, DType::kU8);
  const SfLayout layout = a.swizzled_input_sf ? SfLayout::k128x4 : SfLayout::kLinear;
  for (int64_t t = 0; t < x.tokens; ++t)
    for (int64_t c = 0; c < columns; ++c)
      out.data_as<uint8_t>()[t * columns + c] = a.input_sf->data_as<uint8_t>()[sf_offset(layout, t, c, columns)];
  return out;
}

// ---- the two products ----
GemmSf linear_sf(const Tensor& scales) {
  return {.bytes = scales.data_as<uint8_t>(), .columns = scales.size(1), .block = 16, .layout = SfLayout::kLinear};
}
GroupedWork product(const Moe& a, const Extents& x, int which, const TensorView& rows, const Tensor* scales, const TensorView& out,
                    std::vector<gemm::Group> groups) {
  GroupedWork w{.a = rows, .b = which == 1 ? a.fc1_expert_weights : a.fc2_expert_weights, .out = out};
  if (mode_of(a) == Mode::kNvfp4) {
    w.a_fp4 = w.b_fp4 = true;
    w.a_sf = linear_sf(*scales);
    w.b_sf = which == 1 ? weight_sf(a, 1, x.width, x.hidden / 16) : weight_sf(a, 4, x.hidden, x.inter / 16);
  }
  for (gemm::Group& g : groups) g.alpha = factor_of(a, which, g.weight);
  w.groups = std::move(groups);
  return w;
}
DType inter_dtype(const Moe& a) { return mode_of(a) == Mode::kFp8 ? DType::kF8E4M3 : DType::kBF16; }

/// [experts, n] as f32, contiguous, or undefined.
Tensor floats(const std::optional<TensorView>& t) {
  if (!t) return {};
  const Tensor out = Tensor::empty(t->shape(), DType::kF32);
  ref::for_each_row(*t, [&](const ref::Index& row) {
    for (int64_t i = 0; i < t->size(-1); ++i) ref::set(out.view(), row, i, ref::get(*t, row, i));
  });
  return out;
}
const float* pointer(const Tensor& t) { return t.defined() ? t.data_as<float>() : nullptr; }

void launch(const Moe& a) {
  const Extents x = extents_of(a);
  const Mode mode = mode_of(a);
  const Permutation p = permute(a, x);
  const Tensor h = Tensor::empty({p.rows(), x.width}, DType::kF32), y = Tensor::empty({p.rows(), x.hidden}, DType::kF32);
  Tensor rows, scales;
  if (mode == Mode::kNvfp4) {
    const bool packed = is_bytes(a.input);
    const Fp4 tokens = packed ? Fp4{{}, linear_input_sf(a, x)} : quantise(a.input, number((*a.quant_scales)[0]));
    rows = gather(packed ? a.input : tokens.codes.view(), p.token_of);
    scales = gather(tokens.scales.view(), p.token_of);
  } else {
    rows = gather(a.input, p.token_of);
  }
  gemm::run(product(a, x, 1, rows.view(), &scales, h.view(), p.groups));

  Tensor inter = Tensor::empty({p.rows(), x.inter}, inter_dtype(a));
  const Tensor bias1 = floats(a.fc1_expert_biases), bias2 = a.tp_rank == 0 ? floats(a.fc2_expert_biases) : Tensor();
  const Tensor alpha = floats(a.swiglu_alpha), beta = floats(a.swiglu_beta), limit = floats(a.swiglu_limit), sb = floats(a.situ_beta),
               sl = floats(a.situ_linear_beta);
  MoeActParams act{.x = h.data_as<float>(), .y = inter.data(), .rows = p.rows(), .inter = x.inter, .expert = p.expert_of.data(),
                   .bias = pointer(bias1), .alpha = pointer(alpha), .beta = pointer(beta), .limit = pointer(limit), .situ_beta = pointer(sb),
                   .situ_linear = pointer(sl), .kind = kind_of(a), .scale = mode == Mode::kFp8 ? number((*a.quant_scales)[1]) : 1.0f,
                   .relu2_limit = a.clamped_relu2_limit ? number(*a.clamped_relu2_limit) : 0.0f, .rows_per_task = 1};
  act.rows_per_task = ops::rows_per_task(act.rows, x.width * 4 + x.inter * 2);
  ops::run_rows(jit::cpu_kernel<kActivate>(MoeConfig{inter_dtype(a)}).fn, act, act.rows, act.rows_per_task);
  if (mode == Mode::kNvfp4) {
    Fp4 q = quantise(inter.view(), number((*a.quant_scales)[3]));
    inter = q.codes, scales = q.scales;
  }
  gemm::run(product(a, x, 2, inter.view(), &scales, y.view(), p.groups));

  const Tensor weights = Tensor::clone(a.token_final_scales);
  MoeSumParams sum{.y = y.data_as<float>(), .out = a.output->data(), .row = p.row_of.data(), .expert = p.expert_of.data(),
                   .scales = weights.data_as<float>(), .bias = pointer(bias2), .tokens = x.tokens, .top_k = x.top_k, .hidden = x.hidden,
                   .out_stride = a.output->stride(0), .rows_per_task = 1};
  sum.rows_per_task = ops::rows_per_task(x.tokens, x.hidden * (4 * x.top_k + 2));
  ops::run_rows(jit::cpu_kernel<kSum>(MoeConfig{a.output_dtype}).fn, sum, x.tokens, sum.rows_per_task);
}

// ---- reference: a token and an expert at a time ----
double activated(const Moe& a, int64_t e, double u, double g) {
  const auto sigmoid = [](double v) { return 1 / (1 + std::exp(-v)); };
  const auto of = [e](const std::optional<TensorView>& t, double otherwise) { return t ? ref::at(*t, {e}) : otherwise; };
  switch (kind_of(a)) {
    case MoeActivation::kGelu: return ref::gelu(u);
    case MoeActivation::kRelu: return std::max(u, 0.0);
    case MoeActivation::kSilu: return ref::silu(u);
    case MoeActivation::kIdentity: return u;
    case MoeActivation::kRelu2: return std::max(u, 0.0) * std::max(u, 0.0);
    case MoeActivation::kClampedRelu2: {
      const double limit = number(*a.clamped_relu2_limit);
      return std::pow(limit * std::tanh(std::max(u, 0.0) / limit), 2);
    }
    case MoeActivation::kGeglu: return ref::gelu(g) * u;
    case MoeActivation::kGegluTanh: return ref::gelu_tanh(g) * u;
    case MoeActivation::kSwigluStep: return std::min(ref::silu(g), 7.0) * std::clamp(u, -7.0, 7.0);
    case MoeActivation::kSitu: {
      const double b = of(a.situ_beta, 4), l = of(a.situ_linear_beta, 25);
      return b * std::tanh(g / b) * sigmoid(g) * l * std::tanh(u / l);
    }
    default: {
      const double limit = of(a.swiglu_limit, HUGE_VAL), clipped = std::min(g, limit);
      return clipped * sigmoid(of(a.swiglu_alpha, 1) * clipped) * (std::clamp(u, -limit, limit) + of(a.swiglu_beta, 0));
    }
  }
}
/// One row through product `which` of expert e.
Tensor one_product(const Moe& a, const Extents& x, int which, const TensorView& row, const Tensor* scales, int64_t e) {
  const Tensor out = Tensor::empty({1, which == 1 ? x.width : x.hidden}, DType::kF64);
  gemm::reference(product(a, x, which, row, scales, out.view(), {{.row = 0, .rows = 1, .weight = e, .sf_first = 0}}));
  return out;
}
void reference(const Moe& a) {
  const Extents x = extents_of(a);
  const Mode mode = mode_of(a);
  Fp4 tokens;
  if (mode == Mode::kNvfp4) {
    if (is_bytes(a.input)) tokens.scales = linear_input_sf(a, x);
    else tokens = quantise_reference(a.input, number((*a.quant_scales)[0]));
  }
  for (int64_t t = 0; t < x.tokens; ++t) {
    std::vector<double> sum(static_cast<size_t>(x.hidden), 0.0);
    for (int64_t j = 0; j < x.top_k; ++j) {
      const int64_t e = local_expert(a, t, j);
      if (e < 0) continue;
      const TensorView row = (tokens.codes.defined() ? tokens.codes.view() : a.input).slice(0, t, t + 1);
      Tensor scales = tokens.scales.defined() ? Tensor::clone(tokens.scales.view().slice(0, t, t + 1)) : Tensor();
      const Tensor h = one_product(a, x, 1, row, &scales, e);
      const auto linear = [&](int64_t i) { return h.data_as<double>()[i] + (a.fc1_expert_biases ? ref::at(*a.fc1_expert_biases, {e, i}) : 0.0); };
      Tensor inter = Tensor::empty({1, x.inter}, mode == Mode::kPlain ? a.input.dtype() : inter_dtype(a));
      for (int64_t i = 0; i < x.inter; ++i) {
        const double v = activated(a, e, linear(i), has_gate(kind_of(a)) ? linear(x.inter + i) : 0.0);
        ref::put(inter.view(), {0, i}, mode == Mode::kFp8 ? std::clamp(v * number((*a.quant_scales)[1]), -448.0, 448.0) : v);
      }
      if (mode == Mode::kNvfp4) {
        Fp4 q = quantise_reference(inter.view(), number((*a.quant_scales)[3]));
        inter = q.codes, scales = q.scales;
      }
      const Tensor y = one_product(a, x, 2, inter.view(), &scales, e);
      for (int64_t i = 0; i < x.hidden; ++i) {
        const double bias = a.fc2_expert_biases && a.tp_rank == 0 ? ref::at(*a.fc2_expert_biases, {e, i}) : 0.0;
        sum[static_cast<size_t>(i)] += ref::at(a.token_final_scales, {t, j}) * (y.data_as<double>()[i] + bias);
      }
    }
    for (int64_t i = 0; i < x.hidden; ++i) ref::put(*a.output, {t, i}, sum[static_cast<size_t>(i)]);
  }
}

// ---- selection and tables ----
op::Refusal refuse(const Moe& a) {
  if (op::Refusal r = op::refuse_unless_cpu(family::fused_op, &a); !r.empty()) return r;
  const Mode mode = mode_of(a);
  if (mode == Mode::kPlain && a.input.dtype() != DType::kBF16)
    return str("input is ", name(a.input.dtype()), ", but the kernels multiply bfloat16");
  const Extents x = extents_of(a);
  const gemm::Operand rows{.format = gemm::format_of(a.fc1_expert_weights.dtype()), .step = 1};
  std::vector<op::Refusal> all = {jit::cpu_kernel<kActivate>(MoeConfig{inter_dtype(a)}).refusal, jit::cpu_kernel<kSum>(MoeConfig{a.output_dtype}).refusal,
                                  gemm::refuse({.m = 9, .n = x.width, .k = x.hidden, .a = rows, .b = rows, .grouped = true})};
  if (mode == Mode::kNvfp4) {
    all.push_back(jit::cpu_kernel<ops::kBlockQuantize>(quant_config(DType::kBF16)).refusal);
    if (!is_bytes(a.input)) all.push_back(jit::cpu_kernel<ops::kBlockQuantize>(quant_config(a.input.dtype())).refusal);
  }
  for (const op::Refusal& r : all)
    if (!r.empty()) return r;
  return {};
}
op::Cost cost(const Moe& a) {
  const Extents x = extents_of(a);
  int64_t rows = 0;
  std::vector<char> used(static_cast<size_t>(x.experts), 0);
  for (int64_t t = 0; t < x.tokens; ++t)
    for (int64_t j = 0; j < x.top_k; ++j)
      if (const int64_t e = local_expert(a, t, j); e >= 0) ++rows, used[static_cast<size_t>(e)] = 1;
  const double weights = static_cast<double>(std::count(used.begin(), used.end(), 1)) *
                         static_cast<double>((a.fc1_expert_weights.nbytes() + a.fc2_expert_weights.nbytes()) / std::max<int64_t>(x.experts, 1));
  return {.bytes = weights + 2.0 * static_cast<double>(a.input.nbytes()),
          .flops = 2.0 * static_cast<double>(rows * (x.width * x.hidden + x.hidden * x.inter))};
}

inline constexpr DTypeSet kWeights = op::floats | DType::kF8E4M3 | DType::kU8 | DType::kF4E2M1x2;
constexpr op::Field fields[] = {
    op::in<&Moe::input>("input", "t columns", kWeights),
    op::in<&Moe::token_selected_experts>("token_selected_experts", "t k", op::indices),
    op::in<&Moe::token_final_scales>("token_final_scales", "t k", DType::kF32),
    op::in<&Moe::fc1_expert_weights>("fc1_expert_weights", "e n1 k1", kWeights),
    op::in<&Moe::fc2_expert_weights>("fc2_expert_weights", "e n2 k2", kWeights),
    op::attr<&Moe::output_dtype>("output_dtype", op::required),
    op::attr<&Moe::quant_scales>("quant_scales", op::required),
    op::in<&Moe::fc1_expert_biases>("fc1_expert_biases", nullptr, op::floats),
    op::in<&Moe::fc2_expert_biases>("fc2_expert_biases", nullptr, op::floats),
    op::in<&Moe::input_sf>("input_sf", nullptr),
    op::in<&Moe::swiglu_alpha>("swiglu_alpha", nullptr),
    op::in<&Moe::swiglu_beta>("swiglu_beta", nullptr),
    op::in<&Moe::swiglu_limit>("swiglu_limit", nullptr),
    op::attr<&Moe::tp_size>("tp_size"),
    op::attr<&Moe::tp_rank>("tp_rank"),
    op::attr<&Moe::ep_size>("ep_size"),
    op::attr<&Moe::ep_rank>("ep_rank"),
    op::attr<&Moe::cluster_size>("cluster_size"),
    op::attr<&Moe::cluster_rank>("cluster_rank"),
    op::out<&Moe::output>("output", "t n2", op::floats, op::dtype_from("output_dtype")),
    op::attr<&Moe::enable_alltoall>("enable_alltoall"),
    op::attr<&Moe::use_deepseek_fp8_block_scale>("use_deepseek_fp8_block_scale"),
    op::attr<&Moe::use_w4_group_scaling>("use_w4_group_scaling"),
    op::attr<&Moe::use_mxfp8_act_scaling>("use_mxfp8_act_scaling"),
    op::attr<&Moe::min_latency_mode>("min_latency_mode"),
    op::attr<&Moe::use_packed_weights>("use_packed_weights"),
    op::attr<&Moe::use_wfp4afp8_humming>("use_wfp4afp8_humming"),
    op::attr<&Moe::tune_max_num_tokens>("tune_max_num_tokens"),
    op::attr<&Moe::enable_pdl>("enable_pdl"),
    op::attr<&Moe::activation_type>("activation_type", op::literal("ActivationType.Swiglu"),
                                    op::enumeration("ActivationType: Gelu=0|Relu=1|Silu=2|Swiglu=3|Geglu=4|SwigluBias=5|Relu2=6|SwigluStep=7|"
                                                    "GegluTanh=8|Identity=9|Situ=10|InvalidType=11|ClampedRelu2=12")),
    op::attr<&Moe::swizzled_input_sf>("swizzled_input_sf"),
    op::attr<&Moe::use_fused_finalize>("use_fused_finalize"),
    op::attr<&Moe::profile_ids>("profile_ids"),
    op::scratch<&Moe::workspace_buffer>("workspace_buffer", nullptr),
    op::in<&Moe::clamped_relu2_limit>("clamped_relu2_limit", nullptr, op::keyword_only),
    op::in<&Moe::situ_beta>("situ_beta", nullptr),
    op::in<&Moe::situ_linear_beta>("situ_linear_beta", nullptr),
    op::attr<&Moe::backend>("backend", op::backends("cutlass:cuda|cake:cuda")),
};
constexpr op::Candidate candidates[] = {op::candidate<refuse, launch>("cpu"), op::reference<reference>()};
}  // namespace

namespace ops::moe {
constinit const op::Op fused_op = op::define<Moe, validate, cost>(
    kName, "flashinfer.fused_moe", "A mixture of experts: both products, the activation between them and the weighted sum.", fields, candidates,
    fused_cases);
}  // namespace ops::moe

Tensor cutlass_fused_moe(const Moe& a) { return op::call(family::fused_op, a); }

}  // namespace flashinfer
