// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <vector>

#include "flashinfer/ops/common/rows.h"
#include "flashinfer/ops/moe/cases.h"
#include "flashinfer/ops/moe/fused_args.h"
#include "flashinfer/ops/moe/ops.h"
#include "flashinfer/ops/quantization/block_launch.h"

namespace flashinfer {
namespace moe {
namespace {
inline constexpr jit::Kernel kActivate{"flashinfer/ops/moe/cpu.h", "flashinfer::cpu::moe_activate", "flashinfer::MoeActParams"};
inline constexpr jit::Kernel kSum{"flashinfer/ops/moe/cpu.h", "flashinfer::cpu::moe_sum", "flashinfer::MoeSumParams"};

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
    std::memcpy(out.data_as<char>() + r * bytes, x.data_as<char>() + token_of[static_cast<size_t>(r)] * x.stride(0) * x.item_size(),
                static_cast<size_t>(bytes));
  });
  return out;
}

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

// ---- selection and tables ----
op::Refusal refuse(const Moe& a) {
  if (op::Refusal r = op::refuse_unless_cpu(ops::moe::fused_op, &a); !r.empty()) return r;
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
}  // namespace moe

namespace ops::moe {
constinit const op::Op fused_op = op::define<flashinfer::moe::Moe, flashinfer::moe::validate, flashinfer::moe::cost>(
    flashinfer::moe::kName, "flashinfer.fused_moe", "A mixture of experts: both products, the activation between them and the weighted sum.",
    flashinfer::moe::fields,
    flashinfer::moe::candidates,
    fused_cases);
}  // namespace ops::moe

Tensor cutlass_fused_moe(const CutlassFusedMoe& a) { return op::call(ops::moe::fused_op, a); }

}  // namespace flashinfer
