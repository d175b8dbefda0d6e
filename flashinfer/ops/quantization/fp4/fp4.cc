// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/quantization/fp4/args.h"

#include <cmath>
#include <vector>

#include "flashinfer/ops/quantization/block/four_over_six_ref.h"
#include "flashinfer/ops/quantization/cases.h"
#include "flashinfer/ops/quantization/ops.h"

namespace flashinfer {
namespace {
namespace family = ops::quantization;
using namespace fp4;

// ---- launches ----
BlockQuantParams params_of(const TensorView& x, const TensorView& codes, const TensorView& scales, const Plan& plan) {
  BlockQuantParams p{};
  p.x = x.data(), p.codes = codes.data_as<uint8_t>(), p.scales = scales.data_as<uint8_t>();
  p.batches = 1, p.rows = x.size(0), p.k = p.padded_k = x.size(1);
  p.row_stride = x.stride(0), p.code_row_stride = codes.stride(0);
  p.layout = plan.layout;
  p.padded_rows = sf_padded_rows(plan.layout, p.rows);
  p.encode = plan.encode.empty() ? nullptr : plan.encode.data();
  p.encode_batch = plan.encode_batch, p.encode_row = plan.encode_row;
  return p;
}
template <class B>
BlockQuantParams extended(const B&, const Plan&, BlockQuantParams p) {
  return p;
}
float token_out(const Nvfp4Quantize& a) { return a.out_scale ? a.out_scale->data_as<float>()[0] : 1.0f; }
BlockQuantParams extended(const Nvfp4Quantize& a, const Plan& plan, BlockQuantParams p) {
  if (a.do_shuffle) p.shuffle = 32;
  if (a.per_token_activation)
    p.token_scale = a.per_token_scale->data_as<float>(), p.token_most = plan.recipe.e4m3_max() * 6,
    p.token_out = token_out(a);
  return p;
}
template <class B>
op::Prepared prepare(const B& a) {
  Plan plan = plan_of(a);
  const BlockQuantConfig config = plan.config;
  return ops::with_kernel<ops::kBlockQuantize>(config, [&a, plan = std::move(plan)](jit::CpuFn fn) {
    const ops::Rows x = ops::as_rows(input_of(a)), codes = ops::as_rows(*a.x_q);
    ops::run_block_quantize(fn, plan.config, extended(a, plan, params_of(x.view, codes.view, *a.sf, plan)));
    if (codes.keep.defined()) ops::copy_strided(codes.keep.view(), *a.x_q);
  });
}
op::Prepared prepare_batched(const Nvfp4BatchedQuantize& a) {
  Plan plan = plan_of(a);
  const BlockQuantConfig config = plan.config;
  return ops::with_kernel<ops::kBlockQuantize>(config, [&a, plan = std::move(plan)](jit::CpuFn fn) {
    if (a.a.size(0) == 0) return;
    BlockQuantParams p = params_of(a.a.select(0, 0), a.x_q->select(0, 0), *a.sf, plan);
    p.batches = a.a.size(0);
    p.batch_stride = a.a.stride(0), p.code_batch_stride = a.x_q->stride(0), p.scale_batch_stride = a.sf->size(1);
    ops::run_block_quantize(fn, plan.config, p);
  });
}

// ---- on a GPU ----
template <class B>
bool pdl_of(const B& a) {
  if constexpr (requires { a.enable_pdl; })
    return ops::wants_pdl(a.enable_pdl);
  else
    return true;
}
/// Largest magnitudes and factors of rows that have scales of their own, then the codes: two reads of x.
op::Prepared prepare_tokens_cuda(const Nvfp4Quantize& a, const Plan& plan, BlockQuantCudaParams p, Device device) {
  const jit::CudaLoaded& quantize =
      jit::cuda_kernel<ops::kBlockQuantizeCuda>(ops::block_config(plan.config, BlockInput::kPlain, p), device);
  const RowFactorConfig config{
      a.a.dtype(), static_cast<unsigned char>(ops::block_config(plan.config, BlockInput::kPlain, p).aligned), 256};
  const jit::CudaLoaded& factors = jit::cuda_kernel<ops::kRowFactorsCuda>(config, device);
  for (const jit::CudaLoaded* k : {&quantize, &factors})
    if (!k->why_not.empty()) return op::Unsupported{k->why_not};
  RowFactorParams r{p.x,
                    p.inner,
                    a.a.size(-1),
                    {p.row_stride[0], p.row_stride[1]},
                    nullptr,
                    nullptr,
                    a.per_token_scale->data_as<float>(),
                    plan.recipe.e4m3_max() * 6,
                    a.out_scale ? a.out_scale->data_as<float>() : nullptr};
  p.token_most = r.token_most;
  const cuda::Launch launch = ops::block_launch(ops::block_config(plan.config, BlockInput::kPlain, p), p, pdl_of(a));
  return [p, r, launch, &quantize, &factors, device]() mutable {
    const int64_t rows = p.rows;
    const Tensor scratch = Tensor::empty({2 * std::max<int64_t>(rows, 1)}, DType::kF32, device);
    r.most = scratch.data_as<float>(), r.encode = r.most + rows;
    p.row_most = r.most;
    p.encode = {r.encode, 0, 1, 1.0f, DType::kF32, 0};
    cuda::Launch l;
    l.grid[0] = cuda::grid_size(rows), l.block[0] = 256, l.shared_bytes = 32, l.pdl = launch.pdl;
    ops::launch_unless_empty(factors, r, l);
    ops::launch_unless_empty(quantize, p, launch);
  };
}
template <class B>
op::Prepared prepare_cuda(const B& a, const op::Call& call) {
  const Plan plan = form_of(a);
  const TensorView& x = input_of(a);
  const std::optional<ops::RowAxes> rows = ops::row_axes(x);
  const std::optional<int64_t> code_rows = ops::row_stride(*a.x_q);
  if (!rows) return ops::too_many_strides("the input", x);
  if (!code_rows) return ops::too_many_strides("x_q", *a.x_q);
  BlockQuantCudaParams p{};
  p.x = x.data(), p.codes = a.x_q->template data_as<uint8_t>(), p.scales = a.sf->template data_as<uint8_t>();
  ops::set_block_rows(p, *rows, x.size(-1), x.size(-1), plan.config.block, plan.layout);
  p.code_row_stride = *code_rows;
  p.encode = source_of(a);
  if constexpr (std::is_same_v<B, Nvfp4Quantize>) {
    if (a.do_shuffle) p.shuffle = 32;
    if (a.per_token_activation) return prepare_tokens_cuda(a, plan, p, call.device);
  }
  return ops::prepare_block_quantize_cuda(plan.config, BlockInput::kPlain, p, call.device, pdl_of(a));
}
op::Prepared prepare_batched_cuda(const Nvfp4BatchedQuantize& a, const op::Call& call) {
  const Plan plan = form_of(a);
  BlockQuantCudaParams p{};
  p.x = a.a.data(), p.codes = a.x_q->data_as<uint8_t>(), p.scales = a.sf->data_as<uint8_t>();
  const ops::RowAxes rows{a.a.size(1), 1, {a.a.stride(1), 0}};
  ops::set_block_rows(p, rows, a.a.size(2), a.a.size(2), 16, SfLayout::k128x4);
  p.batches = static_cast<uint32_t>(a.a.size(0));
  p.batch_stride = a.a.stride(0), p.code_batch_stride = a.x_q->stride(0), p.scale_batch_stride = a.sf->size(1);
  p.code_row_stride = a.x_q->stride(1);
  p.encode = source_of(a);
  return ops::prepare_block_quantize_cuda(plan.config, BlockInput::kPlain, p, call.device, true);
}

// ---- references ----
/// The scale of a row and the factor that it is quantised with.
float token_scale(const Nvfp4Quantize& a, const Plan& plan, float amax, int64_t row) {
  const float encode = amax > 0 ? std::min(plan.recipe.e4m3_max() * 6 / amax, std::numeric_limits<float>::max()) : 1.0f;
  ref::put(*a.per_token_scale, {row}, (amax > 0 ? 1.0f / encode : amax) * token_out(a));
  return encode;
}
void reference_row(const Plan& plan, const std::vector<float>& x, float encode, float amax, const TensorView& codes,
                   const TensorView& scales, int64_t row) {
  if (plan.recipe.on) return ref::quantize_row(plan.recipe, x, encode, amax, codes, scales, plan.layout, row);
  ref::quantize_row({plan.config.block, plan.config.ue8m0 != 0, false}, x, encode, codes, scales, plan.layout, row,
                    plan.config.dtype == DType::kF8E4M3);
}
template <class B>
void reference(const B& a) {
  const Plan plan = plan_of(a);
  const TensorView& x = input_of(a);
  ref::clear(*a.sf);
  const auto factor = [&](int64_t batch, int64_t row) {
    return plan.encode.empty() ? 1.0f
                               : plan.encode[static_cast<size_t>(batch * plan.encode_batch + row * plan.encode_row)];
  };
  if constexpr (std::is_same_v<B, Nvfp4BatchedQuantize>) {
    for (int64_t b = 0; b < x.size(0); ++b)
      for (int64_t r = 0; r < x.size(1); ++r)
        reference_row(plan, ref::floats_of(x, {b, r}), factor(b, 0), 0, a.x_q->select(0, b).select(0, r),
                      a.sf->select(0, b), r);
  } else {
    const Tensor compact = Tensor::clone(x);
    const TensorView rows = compact.view().view({ops::row_count(x), x.size(-1)});
    Tensor codes = Tensor::empty({rows.size(0), rows.size(1) / 2}, DType::kU8);
    for (int64_t r = 0; r < rows.size(0); ++r) {
      int64_t source = r;
      float encode = factor(0, r), amax = 0;
      std::vector<float> values;
      if constexpr (std::is_same_v<B, Nvfp4Quantize>) {
        if (a.do_shuffle) source = ref::shuffle_source(r, 32), encode = factor(0, source);
        values = ref::floats_of(rows, {source});
        if (a.per_token_activation) {
          amax = ref::magnitude(values.data(), static_cast<int64_t>(values.size()));
          encode = token_scale(a, plan, amax, r);
        }
      } else {
        values = ref::floats_of(rows, {source});
      }
      reference_row(plan, values, encode, amax, codes.view().select(0, r), *a.sf, r);
    }
    ops::copy_strided(codes.view().view(a.x_q->shape()), *a.x_q);
  }
}

template <class B>
op::Cost cost(const B& a) {
  const TensorView& x = input_of(a);
  const double n = static_cast<double>(x.numel());
  return {.bytes = n * (static_cast<double>(x.item_size()) + 0.5) + static_cast<double>(a.sf ? a.sf->numel() : 0)};
}
// ---- tables ----
constexpr const char* kModule = "flashinfer.quantization";
constexpr const char* kBackends = "cuda:cuda|cute-dsl:cuda|cake:cuda";
constexpr op::Field fp4_fields[] = {
    op::in<&Fp4Quantize::input>("input", nullptr, kQuantisable),
    op::in<&Fp4Quantize::global_scale>("global_scale", nullptr, DType::kF32),
    op::attr<&Fp4Quantize::sf_vec_size>("sf_vec_size"),
    op::attr<&Fp4Quantize::sf_use_ue8m0>("sf_use_ue8m0"),
    op::attr<&Fp4Quantize::is_sf_swizzled_layout>("is_sf_swizzled_layout"),
    op::attr<&Fp4Quantize::is_sf_8x4_layout>("is_sf_8x4_layout"),
    op::attr<&Fp4Quantize::is_global_scale_inversed>("is_global_scale_inversed"),
    op::attr<&Fp4Quantize::enable_pdl>("enable_pdl"),
    op::attr<&Fp4Quantize::backend>("backend", op::backends(kBackends)),
    op::attr<&Fp4Quantize::nvfp4_4over6>("nvfp4_4over6", op::literal(ops::kUnset4Over6)),
    op::result<&Fp4Quantize::x_q>("x_q", nullptr, DType::kU8, op::shape<codes_shape<Fp4Quantize>>),
    op::result<&Fp4Quantize::sf>("sf", nullptr, DType::kU8, op::contiguous,
                                 op::shape<static_cast<Shape (*)(const Fp4Quantize&)>(scales_of)>),
};
constexpr op::Field nvfp4_fields[] = {
    op::in<&Nvfp4Quantize::a>("a", nullptr, kQuantisable),
    op::in<&Nvfp4Quantize::a_global_sf>("a_global_sf", nullptr, op::required),
    op::attr<&Nvfp4Quantize::sfLayout>("sfLayout", op::literal("SfLayout.layout_128x4"),
                                       op::enumeration(ops::kSfLayouts)),
    op::attr<&Nvfp4Quantize::do_shuffle>("do_shuffle"),
    op::attr<&Nvfp4Quantize::sf_vec_size>("sf_vec_size"),
    op::attr<&Nvfp4Quantize::enable_pdl>("enable_pdl"),
    op::attr<&Nvfp4Quantize::backend>("backend", op::backends(kBackends)),
    op::attr<&Nvfp4Quantize::per_token_activation>("per_token_activation"),
    op::in<&Nvfp4Quantize::expanded_idx_to_permuted_idx>("expanded_idx_to_permuted_idx", nullptr, DType::kI32),
    op::in<&Nvfp4Quantize::out_scale>("out_scale", nullptr, DType::kF32),
    op::attr<&Nvfp4Quantize::nvfp4_4over6>("nvfp4_4over6", op::literal(ops::kUnset4Over6)),
    op::result<&Nvfp4Quantize::x_q>("x_q", nullptr, DType::kU8, op::shape<codes_shape<Nvfp4Quantize>>),
    op::result<&Nvfp4Quantize::sf>("sf", nullptr, DType::kU8, op::contiguous,
                                   op::shape<static_cast<Shape (*)(const Nvfp4Quantize&)>(scales_of)>),
    op::result<&Nvfp4Quantize::per_token_scale>("per_token_scale", nullptr, DType::kF32, op::contiguous,
                                                op::shape<tokens_of>, op::when<has_tokens>),
};
constexpr op::Field batched_fields[] = {
    op::in<&Nvfp4BatchedQuantize::a>("a", "b m k", kHalves),
    op::in<&Nvfp4BatchedQuantize::a_global_sf>("a_global_sf", nullptr, DType::kF32),
    op::attr<&Nvfp4BatchedQuantize::sf_vec_size>("sf_vec_size"),
    op::attr<&Nvfp4BatchedQuantize::nvfp4_4over6>("nvfp4_4over6", op::literal(ops::kUnset4Over6)),
    op::result<&Nvfp4BatchedQuantize::x_q>("x_q", nullptr, DType::kU8, op::shape<codes_shape<Nvfp4BatchedQuantize>>),
    op::result<&Nvfp4BatchedQuantize::sf>("sf", nullptr, DType::kU8, op::contiguous,
                                          op::shape<static_cast<Shape (*)(const Nvfp4BatchedQuantize&)>(scales_of)>),
};
constexpr op::Field mxfp4_fields[] = {
    op::in<&Mxfp4Quantize::a>("a", nullptr, kHalves),
    op::attr<&Mxfp4Quantize::backend>("backend", op::backends("cuda:cuda|cute-dsl:cuda")),
    op::attr<&Mxfp4Quantize::enable_pdl>("enable_pdl"),
    op::attr<&Mxfp4Quantize::sfLayout>("sfLayout", op::literal("SfLayout.layout_128x4"),
                                       op::enumeration(ops::kSfLayouts)),
    op::result<&Mxfp4Quantize::x_q>("x_q", nullptr, DType::kU8, op::shape<codes_shape<Mxfp4Quantize>>),
    op::result<&Mxfp4Quantize::sf>("sf", nullptr, DType::kU8, op::contiguous,
                                   op::shape<static_cast<Shape (*)(const Mxfp4Quantize&)>(scales_of)>),
};
constexpr op::Candidate fp4_candidates[] = {op::cuda<prepare_cuda<Fp4Quantize>>(), op::cpu<prepare<Fp4Quantize>>(),
                                            op::reference<reference<Fp4Quantize>>()};
constexpr op::Candidate nvfp4_candidates[] = {op::cuda<prepare_cuda<Nvfp4Quantize>>(),
                                              op::cpu<prepare<Nvfp4Quantize>>(),
                                              op::reference<reference<Nvfp4Quantize>>()};
constexpr op::Candidate batched_candidates[] = {op::cuda<prepare_batched_cuda>(), op::cpu<prepare_batched>(),
                                                op::reference<reference<Nvfp4BatchedQuantize>>()};
constexpr op::Candidate mxfp4_candidates[] = {op::cuda<prepare_cuda<Mxfp4Quantize>>(),
                                              op::cpu<prepare<Mxfp4Quantize>>(),
                                              op::reference<reference<Mxfp4Quantize>>()};
}  // namespace

namespace ops::quantization {
constinit const op::Op fp4_op = op::define<Fp4Quantize, validate, cost<Fp4Quantize>>(
    kFp4, kModule, "Rows as packed e2m1 codes with a scale byte for 16 or 32 elements (NVFP4, MXFP4).", fp4_fields,
    fp4_candidates, fp4_cases);
constinit const op::Op nvfp4_op = op::define<Nvfp4Quantize, validate, cost<Nvfp4Quantize>>(
    kNvfp4, kModule, "Rows as NVFP4: e2m1 codes, an e4m3 scale for 16, a global scale or one for each row.",
    nvfp4_fields, nvfp4_candidates, nvfp4_cases);
constinit const op::Op batched_op = op::define<Nvfp4BatchedQuantize, validate, cost<Nvfp4BatchedQuantize>>(
    kBatched, kModule, "Matrices of a batch as NVFP4, each with its own 128x4 scales.", batched_fields,
    batched_candidates, batched_cases);
constinit const op::Op mxfp4_op = op::define<Mxfp4Quantize, validate, cost<Mxfp4Quantize>>(
    kMxfp4, kModule, "Rows as MXFP4: e2m1 codes, a power-of-two scale for 32.", mxfp4_fields, mxfp4_candidates,
    mxfp4_cases);
}  // namespace ops::quantization

std::pair<Tensor, Tensor> fp4_quantize(const Fp4Quantize& a) { return op::call(family::fp4_op, a); }
op::Results nvfp4_quantize(const Nvfp4Quantize& a) { return op::call(family::nvfp4_op, a); }
std::pair<Tensor, Tensor> nvfp4_batched_quantize(const Nvfp4BatchedQuantize& a) {
  return op::call(family::batched_op, a);
}
std::pair<Tensor, Tensor> mxfp4_quantize(const Mxfp4Quantize& a) { return op::call(family::mxfp4_op, a); }

}  // namespace flashinfer
