// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/moe/moe_gemm.h"

#include <algorithm>
#include <cmath>

#include "flashinfer/core/int_math.h"
#include "flashinfer/ops/common/cuda_steps.h"
#include "flashinfer/ops/common/rows.h"
#include "flashinfer/ops/gemm/grouped/ref.h"
#include "flashinfer/ops/gemm/grouped/work.h"
#include "flashinfer/ops/moe/cases.h"
#include "flashinfer/ops/moe/cuda/layer.h"
#include "flashinfer/ops/moe/layer.h"
#include "flashinfer/ops/moe/ops.h"

namespace flashinfer {
namespace {
using Fp8 = MoeGemmFp8NtGroupwise;
using Mx = MoeGemmMxfp8NtGroupwise;
namespace family = ops::moe;
inline constexpr jit::Kernel kActivate{"flashinfer/ops/moe/kernels/cpu/moe.h", "flashinfer::cpu::moe_activate",
                                       "flashinfer::MoeActParams"};

template <class B>
op::Shape out_shape(const B& a) {
  return {2, {a.a.size(0), a.is_gated ? a.b.size(1) / 2 : a.b.size(1)}};
}
int64_t padded_rows(int64_t m, int64_t experts) { return (m + 3 * experts) / 4 * 4; }
/// First row of the scales of expert e among the padded ones.
int64_t scale_start(const TensorView& indptr, int64_t e) { return (gemm::index_at(indptr, e) + 3 * e) / 4 * 4; }

// ---- checks ----
void check_scales(const Fp8& a) {
  const int64_t m = a.a.size(0), k = a.a.size(1), experts = a.b.size(0), n = a.b.size(1), blocks = ceil_div(k, 128);
  const auto fits = [](const TensorView& t, std::initializer_list<int64_t> want) {
    return std::ranges::equal(t.shape(), want);
  };
  FI_CHECK((a.scale_granularity_mnk == std::vector<int64_t>{1, 128, 128}), ValueError, "scale_granularity_mnk is ",
           op::python_repr(op::to_value(a.scale_granularity_mnk)), ", but must be (1, 128, 128)");
  FI_CHECK(fits(a.a_scale, {blocks, padded_rows(m, experts)}), ValueError, "a_scale is ", to_string(a.a_scale),
           ", but must be [", blocks, ", ", padded_rows(m, experts), "] (blocks of 128 of k, and ", m,
           " rows padded for ", experts, " experts)");
  FI_CHECK(fits(a.b_scale, {experts, blocks, ceil_div(n, 128)}), ValueError, "b_scale is ", to_string(a.b_scale),
           ", but must be [", experts, ", ", blocks, ", ", ceil_div(n, 128), "]");
}
void check_scales(const Mx& a) {
  const std::vector<int64_t>& g = a.scale_granularity_mnk;
  FI_CHECK(g.size() == 3 && g[0] == 1 && g[1] == 1 && (g[2] == 32 || g[2] == 128), ValueError,
           "scale_granularity_mnk is ", op::python_repr(op::to_value(g)), ", but must be (1, 1, 128) or (1, 1, 32)");
  const int64_t m = a.a.size(0), k = a.a.size(1), experts = a.b.size(0), n = a.b.size(1),
                numbers = ceil_div(k, 4 * g[2]);
  FI_CHECK(k % g[2] == 0, ValueError, "k is ", k, " (from a.shape[1]), but must be a multiple of ", g[2]);
  const auto fits = [](const TensorView& t, std::initializer_list<int64_t> want) {
    return std::ranges::equal(t.shape(), want);
  };
  FI_CHECK(fits(a.a_scale, {padded_rows(m, experts), numbers}), ValueError, "a_scale is ", to_string(a.a_scale),
           ", but must be [", padded_rows(m, experts), ", ", numbers, "] (", m, " rows padded for ", experts,
           " experts, four scales a number)");
  FI_CHECK(fits(a.b_scale, {experts, n, numbers}), ValueError, "b_scale is ", to_string(a.b_scale), ", but must be [",
           experts, ", ", n, ", ", numbers, "]");
}
template <class B>
void validate(const B& a) {
  const DType t = a.out_dtype.value_or(DType::kBF16);
  FI_CHECK(t == DType::kBF16, ValueError, "out_dtype is ", name(t), ", but must be bfloat16");
  FI_CHECK(!a.is_gated || a.b.size(1) % 2 == 0, ValueError, "b.shape[1] is ", a.b.size(1),
           ", but must be even (linear half and gate)");
  check_scales(a);
}
/// Of the offsets, before they are used.
template <class B>
void check_groups(const B& a) {
  gemm::groups_of("m_indptr", a.m_indptr, a.a.size(0));
  const int64_t experts = a.b.size(0);
  FI_CHECK(gemm::index_at(a.m_indptr, 0) == 0 && gemm::index_at(a.m_indptr, experts) == a.a.size(0), ValueError,
           "m_indptr goes from ", gemm::index_at(a.m_indptr, 0), " to ", gemm::index_at(a.m_indptr, experts),
           ", but must go from 0 to ", a.a.size(0), " (from a.shape[0])");
}

// ---- the product ----
/// Scales without padding, which `keep` holds.
void set_scales(const Fp8& a, gemm::GroupedWork& w, std::vector<Tensor>& keep) {
  const int64_t m = a.a.size(0), blocks = a.a_scale.size(0);
  const Tensor rows = keep.emplace_back(Tensor::empty({m, blocks}, DType::kF32));
  for (const gemm::Group& g : w.groups)
    for (int64_t r = 0; r < g.rows; ++r)
      for (int64_t k = 0; k < blocks; ++k)
        rows.data_as<float>()[(g.row + r) * blocks + k] =
            a.a_scale.data_as<float>()[k * a.a_scale.stride(0) +
                                       (scale_start(a.m_indptr, g.weight) + r) * a.a_scale.stride(1)];
  w.a_grid = {.p = rows.data_as<float>(), .lines = 1, .line_stride = blocks, .k_stride = 1};
  w.b_grid = {.p = a.b_scale.data_as<float>(),
              .lines = 128,
              .line_stride = a.b_scale.stride(2),
              .k_stride = a.b_scale.stride(1),
              .batch = a.b_scale.stride(0)};
  w.grid_k = 128;
}
void set_scales(const Mx& a, gemm::GroupedWork& w, std::vector<Tensor>& keep) {
  const int64_t m = a.a.size(0), experts = a.b.size(0), n = a.b.size(1), columns = a.a.size(1) / 32,
                each = a.scale_granularity_mnk[2] / 32;
  const auto unpack = [&](const int32_t* from, int64_t step, uint8_t* to) {
    for (int64_t c = 0; c < columns; ++c)
      to[c] = static_cast<uint8_t>(static_cast<uint32_t>(from[c / each / 4 * step]) >> (8 * (c / each % 4)));
  };
  const Tensor rows = keep.emplace_back(Tensor::empty({m, columns}, DType::kU8));
  const Tensor matrices = keep.emplace_back(Tensor::empty({experts, n, columns}, DType::kU8));
  for (const gemm::Group& g : w.groups) {
    if (g.rows == 0) continue;
    for (int64_t r = 0; r < g.rows; ++r)
      unpack(a.a_scale.data_as<int32_t>() + (scale_start(a.m_indptr, g.weight) + r) * a.a_scale.stride(0),
             a.a_scale.stride(1), rows.data_as<uint8_t>() + (g.row + r) * columns);
    ops::for_rows(n, ops::rows_per_task(n, 2 * columns), [&](int64_t i) {
      unpack(a.b_scale.data_as<int32_t>() + g.weight * a.b_scale.stride(0) + i * a.b_scale.stride(1),
             a.b_scale.stride(2), matrices.data_as<uint8_t>() + (g.weight * n + i) * columns);
    });
  }
  w.a_sf = {.bytes = rows.data_as<uint8_t>(), .columns = columns, .block = 32, .layout = SfLayout::kLinear, .e8m0 = 1};
  w.b_sf = {.bytes = matrices.data_as<uint8_t>(),
            .columns = columns,
            .batch = n * columns,
            .block = 32,
            .layout = SfLayout::kLinear,
            .e8m0 = 1};
}
/// The same where they are, with padding.
void set_gpu_scales(const Fp8& a, gemm::GroupedWork& w) {
  w.a_grid = {.p = a.a_scale.data_as<float>(), .line_stride = a.a_scale.stride(1), .k_stride = a.a_scale.stride(0)};
  w.b_grid = {.p = a.b_scale.data_as<float>(),
              .lines = 128,
              .line_stride = a.b_scale.stride(2),
              .k_stride = a.b_scale.stride(1),
              .batch = a.b_scale.stride(0)};
  w.grid_k = 128;
}
void set_gpu_scales(const Mx& a, gemm::GroupedWork& w) {
  const auto bytes = [&](const TensorView& t) {
    return ScaleFactors{.bytes = static_cast<const uint8_t*>(t.data()),
                        .columns = 4 * t.stride(-2),
                        .batch = t.rank() == 3 ? 4 * t.stride(0) : 0,
                        .block = static_cast<int32_t>(a.scale_granularity_mnk[2]),
                        .layout = SfLayout::kLinear,
                        .e8m0 = 1};
  };
  w.a_sf = bytes(a.a_scale), w.b_sf = bytes(a.b_scale);
}
template <class B>
op::Prepared prepare_gpu(const B& a, const op::Call& call) {
  if constexpr (std::is_same_v<B, Mx>)
    if (a.a_scale.stride(1) != 1 || a.b_scale.stride(2) != 1)
      return op::Unsupported{"the scales of a row are not next to each other"};
  if (const op::HostIndices host(a.m_indptr); host) {
    B readable = a;
    readable.m_indptr = *host;
    check_groups(readable);
  }
  const auto steps = std::make_shared<ops::CudaSteps>(call.device);
  const TensorView h = a.is_gated ? steps->scratch({a.a.size(0), a.b.size(1)}, DType::kF32) : *a.out;
  gemm::GroupedWork w{.a = a.a, .b = a.b, .out = h};
  gemm::set_offsets(w, "m_indptr", a.m_indptr);
  w.index.factor_pad = 4;
  set_gpu_scales(a, w);
  steps->add([&] { return gemm::prepare_cuda(w, call.device); });
  if (a.is_gated) steps->add([&] { return moe::prepare_activation(MoeActivation::kSwiglu, h, *a.out, call.device); });
  return ops::CudaSteps::prepared(steps);
}
template <class B>
gemm::GroupedWork work_of(const B& a, const TensorView& out, std::vector<Tensor>& keep) {
  gemm::GroupedWork w{.a = a.a, .b = a.b, .out = out, .groups = gemm::groups_of("m_indptr", a.m_indptr, a.a.size(0))};
  for (gemm::Group& g : w.groups) g.sf_first = g.row;
  set_scales(a, w, keep);
  return w;
}
struct Kernels {
  gemm::Kernels product;
  jit::CpuFn activate;
};
template <class B>
void run(const B& a, const Kernels& kernels) {
  std::vector<Tensor> keep;
  if (!a.is_gated) return gemm::run(work_of(a, *a.out, keep), kernels.product);
  const int64_t rows = a.a.size(0), inter = a.out->size(1);
  const Tensor h = Tensor::empty({rows, 2 * inter}, DType::kF32);
  gemm::run(work_of(a, h.view(), keep), kernels.product);
  const Tensor dense = a.out->is_contiguous() ? Tensor() : Tensor::empty({rows, inter}, DType::kBF16);
  const std::vector<int32_t> expert(static_cast<size_t>(rows), 0);
  MoeActParams p{};
  p.x = h.data_as<float>(), p.y = dense.defined() ? dense.data() : a.out->data();
  p.rows = rows, p.inter = inter, p.expert = expert.data(), p.kind = MoeActivation::kSwiglu;
  p.rows_per_task = ops::rows_per_task(rows, inter * 10);
  ops::run_rows(kernels.activate, p, rows, p.rows_per_task);
  if (!dense.defined()) return;
  ref::for_each_row(*a.out, [&](const ref::Index& row) {
    for (int64_t i = 0; i < inter; ++i) ref::set(*a.out, row, i, ref::get(dense.view(), row, i));
  });
}
template <class B>
op::Prepared prepare(const B& a) {
  check_groups(a);
  ops::Lookup lookup;
  const gemm::Operand rows{.format = GemmFormat::kE4M3, .step = 1};
  const gemm::Product product{.m = a.a.size(0),
                              .n = a.b.size(1),
                              .k = a.a.size(1),
                              .a = rows,
                              .b = rows,
                              .grid_k = std::is_same_v<B, Fp8> ? 128 : 0,
                              .grouped = true};
  Kernels kernels{.product = gemm::find_kernels(product, lookup), .activate = nullptr};
  if (a.is_gated) kernels.activate = lookup.kernel<kActivate>(MoeConfig{DType::kBF16});
  return lookup.prepared([&a, kernels] { run(a, kernels); });
}
/// The scales of a's group e begin at row (m_indptr[e] + 3 e) / 4 * 4.
template <class B>
int64_t scale_row(const B& a, int64_t e, int64_t row) {
  const auto begin = static_cast<int64_t>(ref::get(a.m_indptr, e));
  return (begin + 3 * e) / 4 * 4 + row - begin;
}
/// Scale of row r of a, which meets matrix e, and of row j of matrix e.
double scale_a(const Fp8& a, int64_t e, int64_t r, int64_t k) {
  return ref::at(a.a_scale, {k / 128, scale_row(a, e, r)});
}
double scale_b(const Fp8& a, int64_t e, int64_t j, int64_t k) { return ref::at(a.b_scale, {e, k / 128, j / 128}); }
/// Byte i % 4, lowest first, of number i / 4 of a row.
double packed_scale(double number, int64_t i) {
  return ref::scale_of_byte(static_cast<uint8_t>(static_cast<uint32_t>(static_cast<int32_t>(number)) >> (8 * (i % 4))),
                            true);
}
double scale_a(const Mx& a, int64_t e, int64_t r, int64_t k) {
  const int64_t i = k / a.scale_granularity_mnk[2];
  return packed_scale(ref::at(a.a_scale, {scale_row(a, e, r), i / 4}), i);
}
double scale_b(const Mx& a, int64_t e, int64_t j, int64_t k) {
  const int64_t i = k / a.scale_granularity_mnk[2];
  return packed_scale(ref::at(a.b_scale, {e, j, i / 4}), i);
}
template <class B>
void reference(const B& a) {
  check_groups(a);
  const int64_t rows = a.a.size(0), n = a.b.size(1), inter = a.out->size(1);
  const ref::MatrixOf expert_of = ref::by_offsets(a.m_indptr);
  const Tensor h = Tensor::empty({rows, n}, DType::kF64);
  ref::grouped_product(
      {.rows = rows,
       .n = n,
       .depth = a.a.size(1),
       .matrix_of = expert_of,
       .a = [&](int64_t r, int64_t k) { return ref::at(a.a, {r, k}) * scale_a(a, expert_of(r), r, k); },
       .b = [&](int64_t e, int64_t j, int64_t k) { return ref::at(a.b, {e, j, k}) * scale_b(a, e, j, k); }},
      h.view());
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t i = 0; i < inter; ++i) {
      const double u = ref::at(h.view(), {r, i}), g = a.is_gated ? ref::at(h.view(), {r, inter + i}) : 0.0;
      ref::put(*a.out, {r, i}, a.is_gated ? g / (1 + std::exp(-g)) * u : u);
    }
}
template <class B>
op::Cost cost(const B& a) {
  return {.bytes = static_cast<double>(a.a.nbytes() + a.b.nbytes()),
          .flops = 2.0 * static_cast<double>(a.a.size(0) * a.b.size(1) * a.a.size(1))};
}

// ---- tables ----
template <class B>
inline constexpr DType kScales = std::is_same_v<B, Fp8> ? DType::kF32 : DType::kI32;
template <class B>
inline constexpr op::Field kFields[] = {
    op::in<&B::a>("a", "m k", DType::kF8E4M3),
    op::in<&B::b>("b", "e n k", DType::kF8E4M3),
    op::in<&B::a_scale>("a_scale", nullptr, kScales<B>, op::any_layout),
    op::in<&B::b_scale>("b_scale", nullptr, kScales<B>, op::any_layout),
    op::in<&B::m_indptr>("m_indptr", "e+1", DType::kI32),
    op::attr<&B::scale_granularity_mnk>("scale_granularity_mnk",
                                        op::literal(std::is_same_v<B, Fp8> ? "(1, 128, 128)" : "(1, 1, 128)")),
    op::attr<&B::scale_major_mode>("scale_major_mode", op::choices("MN")),
    op::attr<&B::backend>("backend", op::backends("cute:cuda")),
    op::out<&B::out>("out", nullptr, DType::kBF16, op::shape<out_shape<B>>),
    op::attr<&B::out_dtype>("out_dtype"),
    op::attr<&B::is_gated>("is_gated"),
};
template <class B>
inline constexpr op::Candidate kCandidates[] = {op::cuda<prepare_gpu<B>>(), op::cpu<prepare<B>>(),
                                                op::reference<reference<B>>()};

constexpr op::Case kFp8Cases[] = {
    {"uneven",
     "a=e4m3:31x256 b=e4m3:3x140x256 a_scale=f32:2x40:uniform(0.01,0.1) b_scale=f32:3x2x2:uniform(0.01,0.1) "
     "m_indptr=i32:[0,1,20,31]",
     "cpu", 0, -1, 1e-3},
    {"gated",
     "a=e4m3:9x128 b=e4m3:2x64x128 a_scale=f32:1x12:uniform(0.1,1) b_scale=f32:2x1x1:uniform(0.1,0.5) "
     "m_indptr=i32:[0,0,9] is_gated=True",
     "cpu", 0, -1, 1e-2},
};
constexpr op::Case kMxCases[] = {
    {"blocks_of_128",
     "a=e4m3:31x256 b=e4m3:3x33x256 a_scale=i32:40x1:ue8m0(119,125) b_scale=i32:3x33x1:ue8m0(119,125) "
     "m_indptr=i32:[0,1,20,31]",
     "cpu", 0, -1, 1e-2},
    {"blocks_of_32_gated",
     "a=e4m3:9x160 b=e4m3:2x64x160 a_scale=i32:12x2:ue8m0(119,125) b_scale=i32:2x64x2:ue8m0(119,125) "
     "m_indptr=i32:[0,4,9] "
     "scale_granularity_mnk=(1,1,32) is_gated=True",
     "cpu", 0, -1, 1e-2},
};
std::span<const op::Case> fp8_cases() { return kFp8Cases; }
std::span<const op::Case> mx_cases() { return kMxCases; }
}  // namespace

namespace ops::moe {
constinit const op::Op moe_gemm_fp8_op = op::define<Fp8, validate<Fp8>, cost<Fp8>>(
    "moe_gemm_fp8_nt_groupwise", "flashinfer.grouped_mm",
    "Each expert's rows times its matrix, FP8 with f32 scales of blocks, optionally followed by SwiGLU.", kFields<Fp8>,
    kCandidates<Fp8>, fp8_cases);
constinit const op::Op moe_gemm_mxfp8_op = op::define<Mx, validate<Mx>, cost<Mx>>(
    "moe_gemm_mxfp8_nt_groupwise", "flashinfer.grouped_mm",
    "Each expert's rows times its matrix, FP8 with packed power-of-two scales, optionally followed by SwiGLU.",
    kFields<Mx>, kCandidates<Mx>, mx_cases);
}  // namespace ops::moe

Tensor moe_gemm_fp8_nt_groupwise(const Fp8& a) { return op::call(family::moe_gemm_fp8_op, a); }
Tensor moe_gemm_mxfp8_nt_groupwise(const Mx& a) { return op::call(family::moe_gemm_mxfp8_op, a); }

}  // namespace flashinfer
