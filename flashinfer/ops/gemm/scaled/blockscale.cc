// SPDX-License-Identifier: Apache-2.0
// fp8_blockscale_gemm_sm90.
#include <algorithm>
#include <cmath>
#include <functional>

#include "flashinfer/ops/common/cuda_steps.h"
#include "flashinfer/ops/common/rows.h"
#include "flashinfer/ops/gemm/cases.h"
#include "flashinfer/ops/gemm/ops.h"
#include "flashinfer/ops/gemm/scaled/ref.h"
#include "flashinfer/ops/gemm/scaled/scaled.h"
#include "flashinfer/ops/gemm/scaled/tables.h"
#include "flashinfer/ops/quantization/block/cuda.h"
#include "flashinfer/ops/quantization/block/launch.h"
#include "flashinfer/ops/quantization/kernels/group8_params.h"

namespace flashinfer {
namespace {
using Block = Fp8BlockscaleGemmSm90;
constexpr int64_t kGroup = 128;

DType out_dtype(const Block& a) { return a.out_dtype ? *a.out_dtype : a.out ? a.out->dtype() : DType::kBF16; }
/// Rows of a weight's scale that belong to one scale: 1 or 128.
int64_t lines_of(const Block& a) { return a.weight_scale && a.weight_scale->size(0) != a.weight.size(0) ? kGroup : 1; }

void check_operand(const char* name, const TensorView& t, const std::optional<TensorView>& scale) {
  const bool fp8 = t.dtype() == DType::kF8E4M3;
  FI_CHECK(!fp8 || scale, ValueError, name, "_scale is None, but ", name, "_scale is required when ", name,
           " is FP8: the caller has its scales");
  FI_CHECK(fp8 || !scale, ValueError, name, "_scale is given, but ", name, "_scale should not be provided for BF16 ",
           name, ", which is quantised here");
}
void validate(const Block& a) {
  const int64_t n = a.weight.size(0), k = a.input.size(1);
  FI_CHECK(a.input.dtype() != DType::kF8E4M3 || a.weight.dtype() == DType::kF8E4M3, ValueError,
           "input is float8_e4m3fn and weight bfloat16, but a quantised input needs a quantised weight");
  check_operand("input", a.input, a.input_scale);
  check_operand("weight", a.weight, a.weight_scale);
  FI_CHECK(k % kGroup == 0, ValueError, "k is ", k,
           " (from input.shape[1]), but must be a multiple of 128: divisible by block size");
  FI_CHECK(n % 64 == 0, ValueError, "n is ", n, " (from weight.shape[0]), but must be a multiple of 64");
  if (a.input_scale) gemm::check_grid("input_scale", *a.input_scale, false, 0, a.input.size(0), k, 1, kGroup);
  if (a.weight_scale) gemm::check_grid("weight_scale", *a.weight_scale, false, 0, n, k, lines_of(a), kGroup);
  gemm::check_out_dtype(out_dtype(a), gemm::kHalves);
}

/// Codes with their scales: as given, or made of bf16.
struct Quantised {
  TensorView codes, scales;
  Tensor keep_codes{}, keep_scales{};
};
Quantised empty_like(const TensorView& x) {
  Quantised q{.keep_codes = Tensor::empty(x.shape(), DType::kF8E4M3),
              .keep_scales = Tensor::empty({x.size(0), x.size(1) / kGroup}, DType::kF32)};
  q.codes = q.keep_codes.view(), q.scales = q.keep_scales.view();
  return q;
}
Quantised quantise(const TensorView& x, const std::optional<TensorView>& scale, jit::CpuFn fn) {
  if (scale) return {x, *scale};
  Quantised q = empty_like(x);
  Group8Params p{};
  p.x = x.data(), p.q = q.keep_codes.data(), p.scales = q.keep_scales.data_as<float>();
  p.rows = x.size(0), p.k = x.size(1), p.group = kGroup;
  p.x_stride = x.stride(0), p.q_stride = p.k, p.scale_row_stride = p.k / kGroup, p.scale_group_stride = 1;
  p.eps = 1e-4f;
  p.rows_per_task = ops::rows_per_task(p.rows, p.k * 3);
  ops::run_rows(fn, p, p.rows, p.rows_per_task);
  return q;
}
Quantised quantise_reference(const TensorView& x, const std::optional<TensorView>& scale) {
  if (scale) return {x, *scale};
  Quantised q = empty_like(x);
  for (int64_t r = 0; r < x.size(0); ++r)
    for (int64_t g = 0; g < x.size(1) / kGroup; ++g) {
      float most = 1e-4f;
      for (int64_t i = g * kGroup; i < (g + 1) * kGroup; ++i)
        most = std::max(most, std::fabs(static_cast<float>(ref::at(x, {r, i}))));
      ref::put(q.scales, {r, g}, most / 448.0f);
      for (int64_t i = g * kGroup; i < (g + 1) * kGroup; ++i)
        ref::put(q.codes, {r, i},
                 std::clamp(static_cast<float>(ref::at(x, {r, i})) / (most / 448.0f), -448.0f, 448.0f));
    }
  return q;
}

gemm::Product product(const Block& a, const Quantised& x, const Quantised& w) {
  gemm::Product p = gemm::product_of(x.codes, x.codes, *a.out);
  p.b = gemm::rows_of(w.codes);
  const auto grid = [](const TensorView& s, int64_t lines) {
    return BlockScales{.p = s.data_as<float>(), .lines = lines, .line_stride = s.stride(0), .k_stride = s.stride(1)};
  };
  p.a_grid = grid(x.scales, 1), p.b_grid = grid(w.scales, lines_of(a)), p.grid_k = kGroup;
  p.n = a.weight.size(0);
  return p;
}
op::Prepared prepare(const Block& a) {
  ops::Lookup lookup;
  jit::CpuFn quantiser = nullptr;
  if (!a.input_scale || !a.weight_scale)
    quantiser = lookup.kernel<ops::kGroup8>(Group8Config{DType::kBF16, DType::kF8E4M3});
  const gemm::Operand rows{.format = GemmFormat::kE4M3, .step = 1};
  const gemm::Kernels kernels = gemm::find_kernels(
      {.m = a.input.size(0), .n = a.weight.size(0), .k = a.input.size(1), .a = rows, .b = rows, .grid_k = kGroup},
      lookup);
  return lookup.prepared([&a, quantiser, kernels] {
    const Quantised x = quantise(a.input, a.input_scale, quantiser), w = quantise(a.weight, a.weight_scale, quantiser);
    gemm::run(product(a, x, w), kernels);
  });
}
/// The quantisers, then multiply(codes of input, of weight). Their scales are written with the rows contiguous where
/// `rows_first`.
template <class Multiply>
op::Prepared prepare_steps(const Block& a, Device device, bool rows_first, const Multiply& multiply) {
  const auto steps = std::make_shared<ops::CudaSteps>(device);
  const auto quantised = [&](const TensorView& x, const std::optional<TensorView>& scale) {
    if (scale) return Quantised{x, *scale};
    const int64_t rows = x.size(0), groups = x.size(1) / kGroup;
    Quantised q;
    q.codes = steps->scratch({rows, x.size(1)}, DType::kF8E4M3);
    q.scales = rows_first ? steps->scratch({groups, rows}, DType::kF32).transpose(0, 1)
                          : steps->scratch({rows, groups}, DType::kF32);
    steps->add([&] { return ops::prepare_group8_cuda(x, q.codes, q.scales, kGroup, 1e-4, device); });
    return q;
  };
  const Quantised x = quantised(a.input, a.input_scale), w = quantised(a.weight, a.weight_scale);
  steps->add([&] { return multiply(x, w); });
  return ops::CudaSteps::prepared(steps);
}
op::Prepared prepare_gpu(const Block& a, const op::Call& call) {
  return prepare_steps(a, call.device, false, [&](const Quantised& x, const Quantised& w) {
    return gemm::prepare_cuda(product(a, x, w), {}, call.device);
  });
}
op::Prepared prepare_cublaslt(const Block& a, const op::Call& call) {
  if (std::string why = gemm::why_no_grids(call.device, a.input.size(0), a.weight.size(0), kGroup); !why.empty())
    return op::Unsupported{why};
  return prepare_steps(a, call.device, true, [&](const Quantised& x, const Quantised& w) {
    const gemm::Product p = product(a, x, w);
    const std::function<op::Prepared()> own = [&] { return gemm::prepare_cuda(p, {}, call.device); };
    return gemm::prepare_cublaslt({.a = x.codes,
                                   .b = w.codes.transpose(0, 1),
                                   .out = *a.out,
                                   .grid_a = p.a_grid,
                                   .grid_b = p.b_grid,
                                   .grid_k = kGroup,
                                   .own = &own},
                                  call.device);
  });
}
void reference(const Block& a) {
  const Quantised x = quantise_reference(a.input, a.input_scale), w = quantise_reference(a.weight, a.weight_scale);
  ref::nt_product(
      *a.out, 0, a.out->size(0), a.input.size(1),
      [&](int64_t i, int64_t k) { return ref::at(x.codes, {i, k}) * ref::at(x.scales, {i, k / kGroup}); },
      [&](int64_t j, int64_t k) { return ref::at(w.codes, {j, k}) * ref::at(w.scales, {j / lines_of(a), k / kGroup}); },
      1);
}
op::Cost cost(const Block& a) {
  return {.bytes = static_cast<double>(a.input.nbytes() + a.weight.nbytes() + a.out->nbytes()),
          .flops = 2.0 * static_cast<double>(a.out->numel() * a.input.size(1))};
}

constexpr DTypeSet kTypes = DTypeSet(DType::kBF16) | DType::kF8E4M3;
constexpr op::Field fields[] = {
    op::in<&Block::input>("input", "m k", kTypes),
    op::in<&Block::weight>("weight", "n k", kTypes, op::doc("one row for each column of the result")),
    op::in<&Block::input_scale>("input_scale", nullptr, DType::kF32, op::any_layout),
    op::in<&Block::weight_scale>("weight_scale", nullptr, DType::kF32, op::any_layout),
    op::out<&Block::out>("out", "m n", op::dtype<out_dtype>),
    op::attr<&Block::out_dtype>("out_dtype"),
};
constexpr op::Candidate candidates[] = {op::candidate<prepare_cublaslt>(op::Backend::kCublasLt),
                                        op::cuda<prepare_gpu>(), op::cpu<prepare>(), op::reference<reference>()};
constexpr op::Case kCases[] = {
    {"bf16", "input=bf16:9x256 weight=bf16:64x256", "cpu", 0, -1, 5e-2},
    {"bf16_fp8_blocks", "input=bf16:1x256 weight=e4m3:192x256 weight_scale=f32:2x2:uniform(0.01,0.1)", "cpu", 0, -1,
     1e-2},
    {"fp8_rows",
     "input=e4m3:17x128 weight=e4m3:64x128 input_scale=f32:17x1:uniform(0.01,0.1) "
     "weight_scale=f32:64x1:uniform(0.01,0.1) "
     "out_dtype=float16",
     "cpu", 0, -1, 2e-3},
    {"none", "input=bf16:0x128 weight=bf16:64x128"},
};
std::span<const op::Case> cases() { return kCases; }
}  // namespace

namespace ops::gemm {
constinit const op::Op blockscale_sm90_op = op::define<Block, validate, cost>(
    "fp8_blockscale_gemm_sm90", "flashinfer.gemm",
    "input . weight^T of FP8 with f32 scales of blocks; bf16 operands are quantised by the call.", fields, candidates,
    cases);
}  // namespace ops::gemm

Tensor fp8_blockscale_gemm_sm90(const Block& a) { return op::call(ops::gemm::blockscale_sm90_op, a); }

}  // namespace flashinfer
