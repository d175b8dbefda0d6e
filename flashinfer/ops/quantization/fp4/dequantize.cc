// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/quantization/fp4/dequantize.h"

#include "flashinfer/ops/quantization/block/cuda.h"
#include "flashinfer/ops/quantization/block/launch.h"
#include "flashinfer/ops/quantization/block/ref.h"
#include "flashinfer/ops/quantization/cases.h"
#include "flashinfer/ops/quantization/ops.h"

namespace flashinfer {
namespace {
namespace family = ops::quantization;

/// What the three ops have in common.
struct Fp4Rows {
  const char* op;
  TensorView codes, scales;
  const char* scales_name;
  SfLayout layout;
  int64_t block;
  bool power;
  float global;
  std::optional<TensorView> output;
  FactorSource global_source{.value = 1};  // on a GPU
};
SfLayout layout_of(const E2m1ToFloat& a) {
  return !a.is_sf_swizzled_layout ? SfLayout::kLinear : a.is_sf_8x4_layout ? SfLayout::k8x4 : SfLayout::k128x4;
}
Fp4Rows rows_of(const E2m1ToFloat& a) {
  return {"e2m1_and_ufp8sf_scale_to_float",
          a.e2m1_tensor,
          a.ufp8_scale_tensor,
          "ufp8_scale_tensor",
          layout_of(a),
          a.sf_vec_size,
          a.ufp8_type == 0,
          a.global_scale_tensor && a.global_scale_tensor->device() == kCpu ? a.global_scale_tensor->data_as<float>()[0]
                                                                           : 1.0f,
          a.output,
          ops::factor_of(a.global_scale_tensor)};
}
Fp4Rows rows_of(const Mxfp4Dequantize& a) {
  return {"mxfp4_dequantize", a.a_fp4, a.a_sf, "a_sf", static_cast<SfLayout>(a.sfLayout), 32, true, 1.0f, a.output};
}
Fp4Rows rows_of(const Mxfp4DequantizeHost& a) {
  return {"mxfp4_dequantize_host", a.weight, a.scale, "scale", SfLayout::kLinear, a.group_size, true, 1.0f, a.output};
}

void check_own(const E2m1ToFloat& a) {
  FI_CHECK(a.sf_vec_size == 16 || a.sf_vec_size == 32, ValueError, "sf_vec_size is ", a.sf_vec_size,
           ", but must be 16 or 32");
  FI_CHECK(a.ufp8_type == 0 || a.ufp8_type == 1, ValueError, "ufp8_type is ", a.ufp8_type,
           ", but must be 0 (ue8m0) or 1 (e4m3)");
  FI_CHECK(a.is_sf_swizzled_layout || !a.is_sf_8x4_layout, ValueError,
           "is_sf_8x4_layout is True, but is_sf_swizzled_layout is False (the scales are linear)");
  FI_CHECK(!a.global_scale_tensor || a.global_scale_tensor->numel() == 1, ValueError, "global_scale_tensor is ",
           to_string(*a.global_scale_tensor), ", but must be one f32");
}
void check_own(const Mxfp4Dequantize& a) { ops::sf_layout("sfLayout", a.sfLayout); }
void check_own(const Mxfp4DequantizeHost& a) {
  FI_CHECK(a.group_size > 0 && a.group_size % 16 == 0, ValueError, "group_size is ", a.group_size,
           ", but must be a multiple of 16");
}
template <class B>
void validate(const B& a) {
  check_own(a);
  const Fp4Rows r = rows_of(a);
  const int64_t m = r.codes.size(0), k = 2 * r.codes.size(1);
  ops::check_columns(k, r.block);
  const int64_t bytes = sf_bytes(r.layout, m, k / r.block);
  FI_CHECK(r.scales.numel() == bytes, ValueError, r.scales_name, " has ", r.scales.numel(), " bytes, but ", m,
           " rows of ", k, " elements need ", bytes, " in this layout");
  if constexpr (std::is_same_v<B, Mxfp4DequantizeHost>)
    FI_CHECK(r.scales.size(0) == m, ValueError, "scale.shape[0] is ", r.scales.size(0), ", but weight has ", m,
             " rows");
}

template <class B>
op::Prepared prepare(const B& a) {
  const Fp4Rows r = rows_of(a);
  BlockDequantParams p{};
  p.codes = r.codes.data_as<uint8_t>(), p.scales = r.scales.data_as<uint8_t>(), p.y = r.output->data_as<float>();
  p.rows = r.codes.size(0), p.k = 2 * r.codes.size(1), p.block = r.block;
  p.code_stride = r.codes.stride(0), p.y_stride = r.output->stride(0);
  p.layout = r.layout;
  const bool strided = std::is_same_v<B, Mxfp4DequantizeHost>;
  p.scale_row_stride = strided ? r.scales.stride(0) : p.k / r.block,
  p.scale_column_stride = strided ? r.scales.stride(1) : 1;
  p.global = r.global;
  return ops::prepare_block_dequantize({0, r.power}, p);
}
template <class B>
op::Prepared prepare_cuda(const B& a, const op::Call& call) {
  const Fp4Rows r = rows_of(a);
  BlockDequantCudaParams p{};
  p.codes = r.codes.data_as<uint8_t>(), p.scales = r.scales.data_as<uint8_t>(), p.y = r.output->data_as<float>();
  const int64_t columns = 2 * r.codes.size(1) / r.block;
  p.units = scale_units(r.layout, r.codes.size(0), columns), p.block = static_cast<uint32_t>(r.block);
  p.code_stride = r.codes.stride(0), p.y_stride = r.output->stride(0);
  const bool strided = std::is_same_v<B, Mxfp4DequantizeHost>;
  p.scale_row_stride = strided ? r.scales.stride(0) : columns, p.scale_column_stride = strided ? r.scales.stride(1) : 1;
  p.global = r.global_source;
  return ops::prepare_block_dequantize_cuda({0, r.power}, p, call.device);
}
template <class B>
void reference(const B& a) {
  const Fp4Rows r = rows_of(a);
  const Tensor scales = Tensor::clone(r.scales);
  for (int64_t row = 0; row < r.codes.size(0); ++row)
    for (int64_t i = 0; i < 2 * r.codes.size(1); ++i) {
      const uint8_t byte = r.codes.data_as<uint8_t>()[row * r.codes.stride(0) + i / 2];
      e4m3_t scale;
      scale.bits =
          scales.data_as<uint8_t>()[ref::scale_place(r.layout, row, i / r.block, 2 * r.codes.size(1) / r.block)];
      const double s = r.power ? ref::power_value(scale.bits) : static_cast<double>(static_cast<float>(scale));
      ref::put(*r.output, {row, i}, ref::e2m1_value(i % 2 ? byte >> 4 : byte & 15) * s * r.global);
    }
}
template <class B>
op::Cost cost(const B& a) {
  const Fp4Rows r = rows_of(a);
  return {.bytes = 9 * static_cast<double>(r.codes.numel()) + static_cast<double>(r.scales.numel())};
}
using A = E2m1ToFloat;
constexpr op::Field to_float_fields[] = {
    op::in<&A::e2m1_tensor>("e2m1_tensor", "m half", DTypeSet(DType::kU8) | DType::kF4E2M1x2),
    op::in<&A::ufp8_scale_tensor>("ufp8_scale_tensor", nullptr, DTypeSet(DType::kU8) | DType::kF8E4M3, op::contiguous),
    op::in<&A::global_scale_tensor>("global_scale_tensor", nullptr, DType::kF32),
    op::attr<&A::sf_vec_size>("sf_vec_size"),
    op::attr<&A::ufp8_type>("ufp8_type"),
    op::attr<&A::is_sf_swizzled_layout>("is_sf_swizzled_layout"),
    op::attr<&A::is_sf_8x4_layout>("is_sf_8x4_layout"),
    op::result<&A::output>("output", "m 2*half", DType::kF32),
};
using M = Mxfp4Dequantize;
constexpr op::Field mxfp4_fields[] = {
    op::in<&M::a_fp4>("a_fp4", "m half", DTypeSet(DType::kU8) | DType::kF4E2M1x2),
    op::in<&M::a_sf>("a_sf", nullptr, DType::kU8, op::contiguous),
    op::attr<&M::sfLayout>("sfLayout", op::literal("SfLayout.layout_128x4"), op::enumeration(ops::kSfLayouts)),
    op::result<&M::output>("output", "m 2*half", DType::kF32),
};
using H = Mxfp4DequantizeHost;
constexpr op::Field host_fields[] = {
    op::in<&H::weight>("weight", "m half", DTypeSet(DType::kU8) | DType::kF4E2M1x2),
    op::in<&H::scale>("scale", "m groups", DType::kU8, op::any_layout),
    op::attr<&H::group_size>("group_size"),
    op::result<&H::output>("output", "m 2*half", DType::kF32),
};
constexpr op::Candidate to_float_candidates[] = {op::cuda<prepare_cuda<A>>(), op::cpu<prepare<A>>(),
                                                 op::reference<reference<A>>()};
constexpr op::Candidate mxfp4_candidates[] = {op::cuda<prepare_cuda<M>>(), op::cpu<prepare<M>>(),
                                              op::reference<reference<M>>()};
constexpr op::Candidate host_candidates[] = {op::cuda<prepare_cuda<H>>(), op::cpu<prepare<H>>(),
                                             op::reference<reference<H>>()};
constexpr const char* kModule = "flashinfer.quantization";
}  // namespace

namespace ops::quantization {
constinit const op::Op fp4_to_float_op = op::define<A, validate<A>, cost<A>>(
    "e2m1_and_ufp8sf_scale_to_float", kModule, "Packed e2m1 codes times block scales times the decode scale, as f32.",
    to_float_fields, to_float_candidates, fp4_to_float_cases);
constinit const op::Op mxfp4_dequantize_op = op::define<M, validate<M>, cost<M>>(
    "mxfp4_dequantize", kModule, "MXFP4 rows as f32.", mxfp4_fields, mxfp4_candidates, mxfp4_dequantize_cases);
constinit const op::Op mxfp4_dequantize_host_op =
    op::define<H, validate<H>, cost<H>>("mxfp4_dequantize_host", kModule, "MXFP4 rows with linear scales as f32.",
                                        host_fields, host_candidates, mxfp4_dequantize_host_cases);
}  // namespace ops::quantization

Tensor e2m1_and_ufp8sf_scale_to_float(const A& a) { return op::call(family::fp4_to_float_op, a); }
Tensor mxfp4_dequantize(const M& a) { return op::call(family::mxfp4_dequantize_op, a); }
Tensor mxfp4_dequantize_host(const H& a) { return op::call(family::mxfp4_dequantize_host_op, a); }

}  // namespace flashinfer
