// SPDX-License-Identifier: Apache-2.0
// What the arguments of the FP4 quantisers ask for: how the kernel is called, shapes of the outputs, checks.
#pragma once
#include <cmath>
#include <vector>

#include "flashinfer/ops/common/reference.h"
#include "flashinfer/ops/quantization/block/cuda.h"
#include "flashinfer/ops/quantization/block/four_over_six.h"
#include "flashinfer/ops/quantization/block/launch.h"
#include "flashinfer/ops/quantization/fp4/fp4.h"

namespace flashinfer::fp4 {
using op::Shape;

inline constexpr DTypeSet kHalves = DTypeSet(DType::kF16) | DType::kBF16;
inline constexpr DTypeSet kQuantisable = kHalves | DType::kF8E4M3;

// ---- what the four ops pass to the kernel ----
/// What one call computes, the same for the kernel and for the reference.
struct Plan {
  BlockQuantConfig config;
  SfLayout layout;
  std::vector<float> encode;
  int64_t encode_batch = 0, encode_row = 0;
  ops::FourOverSix recipe{};
  void set(const ops::FourOverSix& r) { recipe = r, config.four_over_six = r.config(); }
};

/// Scale i of nvfp4_quantize. Programs compute it from x, whose type (f16, bf16) it then has; it is used as f32.
inline float scale_at(const TensorView& t, int64_t i) {
  return static_cast<float>(ref::load_element(t, t.rank() ? i * t.stride(0) : 0));
}

/// The plan without its factors, which may be on a GPU.
inline Plan form_of(const Fp4Quantize& a) {
  Plan p{{a.input.dtype(), static_cast<unsigned char>(a.sf_vec_size), a.sf_use_ue8m0, 0, 0},
         !a.is_sf_swizzled_layout ? SfLayout::kLinear
         : a.is_sf_8x4_layout     ? SfLayout::k8x4
                                  : SfLayout::k128x4,
         {}};
  p.set(ops::four_over_six(a.nvfp4_4over6));
  return p;
}
inline Plan form_of(const Nvfp4Quantize& a) {
  Plan p{{a.a.dtype(), 16, 0, 0, 0}, a.do_shuffle ? SfLayout::k128x4 : static_cast<SfLayout>(a.sfLayout), {}};
  p.set(ops::four_over_six(a.nvfp4_4over6));
  return p;
}
inline Plan form_of(const Nvfp4BatchedQuantize& a) {
  Plan p{{a.a.dtype(), static_cast<unsigned char>(a.sf_vec_size), 0, 0, 0}, SfLayout::k128x4, {}};
  p.set(ops::four_over_six(a.nvfp4_4over6));
  return p;
}
inline Plan form_of(const Mxfp4Quantize& a) {
  return {{a.a.dtype(), 32, 1, 0, 0}, static_cast<SfLayout>(a.sfLayout), {}};
}

inline Plan plan_of(const Fp4Quantize& a) {
  Plan p = form_of(a);
  if (a.global_scale) {
    const float g = a.global_scale->data_as<float>()[0];
    p.encode = {a.is_global_scale_inversed ? 1.0f / g : g};
  }
  return p;
}
inline Plan plan_of(const Nvfp4Quantize& a) {
  Plan p = form_of(a);
  if (a.per_token_activation) return p;
  if (const TensorView* t = a.a_global_sf.tensor()) {
    for (int64_t i = 0; i < t->numel(); ++i) p.encode.push_back(scale_at(*t, i));
    p.encode_row = t->numel() > 1;
  } else {
    p.encode = {static_cast<float>(a.a_global_sf.number())};
  }
  return p;
}
inline Plan plan_of(const Nvfp4BatchedQuantize& a) {
  Plan p = form_of(a);
  for (int64_t i = 0; i < a.a_global_sf.numel(); ++i)
    p.encode.push_back(a.a_global_sf.data_as<float>()[a.a_global_sf.rank() ? i * a.a_global_sf.stride(0) : 0]);
  p.encode_batch = a.a_global_sf.numel() > 1;
  return p;
}
inline Plan plan_of(const Mxfp4Quantize& a) { return form_of(a); }

/// The factors as a GPU's kernel reads them.
inline FactorSource source_of(const Fp4Quantize& a) {
  FactorSource f = ops::factor_of(a.global_scale);
  f.inverted = a.global_scale && a.is_global_scale_inversed;
  return f;
}
inline FactorSource source_of(const Nvfp4Quantize& a) {
  const TensorView* const t = a.a_global_sf.tensor();
  if (!t) return {.value = static_cast<float>(a.a_global_sf.number())};
  return ops::factor_of(*t, 0, t->numel() > 1 ? t->stride(0) : 0);
}
inline FactorSource source_of(const Nvfp4BatchedQuantize& a) {
  return ops::factor_of(a.a_global_sf, a.a_global_sf.numel() > 1 ? a.a_global_sf.stride(0) : 0);
}
inline FactorSource source_of(const Mxfp4Quantize&) { return {.value = 1}; }

inline const TensorView& input_of(const Fp4Quantize& a) { return a.input; }
template <class B>
const TensorView& input_of(const B& a) {
  return a.a;
}

// ---- outputs ----
template <class B>
Shape codes_shape(const B& a) {
  const TensorView& x = input_of(a);
  Shape s{x.rank()};
  for (int i = 0; i < x.rank(); ++i) s.size[i] = x.size(i);
  s.size[x.rank() - 1] /= 2;
  return s;
}
inline Shape scales_shape(SfLayout layout, int64_t m, int64_t columns) {
  return {2, {sf_padded_rows(layout, m), sf_padded_columns(layout, columns)}};
}
inline Shape scales_of(const Fp4Quantize& a) {
  const SfLayout layout = !a.is_sf_swizzled_layout ? SfLayout::kLinear
                          : a.is_sf_8x4_layout     ? SfLayout::k8x4
                                                   : SfLayout::k128x4;
  return scales_shape(layout, ops::row_count(a.input), a.input.size(-1) / a.sf_vec_size);
}
inline Shape scales_of(const Nvfp4Quantize& a) {
  return scales_shape(a.do_shuffle ? SfLayout::k128x4 : static_cast<SfLayout>(a.sfLayout), ops::row_count(a.a),
                      a.a.size(-1) / 16);
}
inline Shape scales_of(const Mxfp4Quantize& a) {
  return scales_shape(static_cast<SfLayout>(a.sfLayout), ops::row_count(a.a), a.a.size(-1) / 32);
}
inline Shape scales_of(const Nvfp4BatchedQuantize& a) {
  return {2, {a.a.size(0), sf_bytes(SfLayout::k128x4, a.a.size(1), a.a.size(2) / a.sf_vec_size)}};
}
inline Shape tokens_of(const Nvfp4Quantize& a) { return {1, {ops::row_count(a.a)}}; }
inline bool has_tokens(const Nvfp4Quantize& a) { return a.per_token_activation; }

// ---- checks ----
inline void check_input(const TensorView& x, int64_t block) {
  FI_CHECK(x.rank() >= 2, ValueError, "the input is ", to_string(x), ", but must have at least two dimensions");
  ops::check_columns(x.size(-1), block);
}
inline void check_vec_size(int64_t v, bool also_32) {
  FI_CHECK(v == 16 || (also_32 && v == 32), NotImplementedError, "sf_vec_size is ", v, ", but only ",
           also_32 ? "16 and 32 are" : "16 is", " implemented");
}
inline constexpr const char* kFp4 = "fp4_quantize";
inline constexpr const char* kNvfp4 = "nvfp4_quantize";
inline constexpr const char* kBatched = "nvfp4_batched_quantize";
inline constexpr const char* kMxfp4 = "mxfp4_quantize";

inline void validate(const Fp4Quantize& a) {
  check_vec_size(a.sf_vec_size, true);
  check_input(a.input, a.sf_vec_size);
  if (a.sf_use_ue8m0 || a.sf_vec_size != 16)
    ops::check_no_4over6(a.nvfp4_4over6, "MXFP4 (ue8m0 scales or blocks of 32)");
  if (a.input.dtype() == DType::kF8E4M3) ops::check_no_4over6(a.nvfp4_4over6, "float8_e4m3fn input");
  FI_CHECK(!a.sf_use_ue8m0 || a.input.dtype() != DType::kF8E4M3, ValueError,
           "input is float8_e4m3fn, which only e4m3 scales take (sf_use_ue8m0=False)");
  FI_CHECK(a.is_sf_swizzled_layout || !a.is_sf_8x4_layout, ValueError,
           "is_sf_8x4_layout is True, but is_sf_swizzled_layout is False (the scales are linear)");
  if (a.global_scale) ops::global_scale("global_scale", *a.global_scale);
}
/// Rows of the input that nvfp4_quantize must write.
inline void check_rows_named(const TensorView& t, int64_t rows) {
  FI_CHECK(t.rank() == 1 && t.size(0) >= rows, ValueError, "expanded_idx_to_permuted_idx is ", to_string(t),
           ", but must be int32 of at least ", rows, " (rows of the input)");
  for (int64_t i = 0; t.device() == kCpu && i < rows; ++i) {
    const auto row = static_cast<int64_t>(ref::at(t, {i}));
    FI_CHECK(row < rows, ValueError, "expanded_idx_to_permuted_idx[", i, "] is ", row, ", but the input has ", rows,
             " rows");
  }
}
inline void validate(const Nvfp4Quantize& a) {
  check_vec_size(a.sf_vec_size, false);
  check_input(a.a, 16);
  ops::sf_layout("sfLayout", a.sfLayout);
  if (a.a.dtype() == DType::kF8E4M3) ops::check_no_4over6(a.nvfp4_4over6, "float8_e4m3fn input");
  const int64_t m = ops::row_count(a.a);
  FI_CHECK(!a.expanded_idx_to_permuted_idx || a.per_token_activation, ValueError,
           "expanded_idx_to_permuted_idx is only supported with per_token_activation=True");
  if (a.expanded_idx_to_permuted_idx) check_rows_named(*a.expanded_idx_to_permuted_idx, m);
  FI_CHECK(!a.out_scale || a.per_token_activation, ValueError, "out_scale is given, but per_token_activation is False");
  FI_CHECK(!a.do_shuffle || a.sfLayout == 0, ValueError, "sfLayout is ", a.sfLayout,
           ", but scales of shuffled weights (do_shuffle) must be in 128x4 (0)");
  FI_CHECK(!a.do_shuffle || m % 128 == 0, ValueError, "do_shuffle needs a multiple of 128 rows, but there are ", m);
  FI_CHECK(!a.do_shuffle || !a.per_token_activation, ValueError,
           "do_shuffle is for weights, but per_token_activation is True");
  FI_CHECK(!a.per_token_activation || kHalves.has(a.a.dtype()), ValueError, "a is ", name(a.a.dtype()),
           ", but per_token_activation takes float16 or bfloat16");
  const double most = a.per_token_activation ? ops::four_over_six(a.nvfp4_4over6).e4m3_max() : 448;
  const auto check = [&](double g) {
    FI_CHECK(g >= 0x1p-126 && std::isfinite(g), ValueError, "a_global_sf is ", g,
             ", but must be a positive normal f32 number");
    FI_CHECK(!a.per_token_activation || std::abs(g * most * 6 - 1) <= 1e-3, ValueError, "a_global_sf is ", g,
             ", but with per_token_activation must be 1 / (", most, " * 6) = ", 1 / (most * 6));
  };
  if (const TensorView* t = a.a_global_sf.tensor()) {
    FI_CHECK((t->dtype() == DType::kF32 || kHalves.has(t->dtype())) && t->rank() <= 1 &&
                 (t->numel() == 1 || (t->numel() == m && !a.per_token_activation)),
             ValueError, "a_global_sf is ", to_string(*t), ", but must be one f32 or one for each of ", m, " rows");
    for (int64_t i = 0; t->device() == kCpu && i < t->numel(); ++i) check(scale_at(*t, i));
  } else {
    check(a.a_global_sf.number());
  }
  if (a.out_scale) ops::global_scale("out_scale", *a.out_scale);
}
inline void validate(const Nvfp4BatchedQuantize& a) {
  check_vec_size(a.sf_vec_size, false);
  check_input(a.a, 16);
  const TensorView& g = a.a_global_sf;
  FI_CHECK(g.rank() <= 1 && (g.numel() == 1 || g.numel() == a.a.size(0)), ValueError, "a_global_sf is ", to_string(g),
           ", but must be one f32 or one for each of ", a.a.size(0), " batches");
  for (int64_t i = 0; g.device() == kCpu && i < g.numel(); ++i) {
    const float one[1] = {g.data_as<float>()[g.rank() ? i * g.stride(0) : 0]};
    ops::global_scale("a_global_sf", TensorView(one, {1}));
  }
}
inline void validate(const Mxfp4Quantize& a) {
  check_input(a.a, 32);
  ops::sf_layout("sfLayout", a.sfLayout);
}

}  // namespace flashinfer::fp4
