// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>

#include "flashinfer/ops/quantization/block/cuda.h"
#include "flashinfer/ops/quantization/block/four_over_six.h"
#include "flashinfer/ops/quantization/block/launch.h"
#include "flashinfer/ops/quantization/block/ref.h"
#include "flashinfer/ops/quantization/cases.h"
#include "flashinfer/ops/quantization/fp4/fp4.h"
#include "flashinfer/ops/quantization/kernels/group8_params.h"
#include "flashinfer/ops/quantization/ops.h"

namespace flashinfer {
namespace {
namespace family = ops::quantization;
using Make = MakeNvfp4GlobalScale;
constexpr const char* kName = "make_nvfp4_global_scale";
constexpr float kMost = std::numeric_limits<float>::max();

/// The largest element, e4m3's times e2m1's.
float largest(const Make& a) { return ops::four_over_six(a.nvfp4_4over6_config).e4m3_max() * 6.0f; }

op::Shape one(const Make&) { return {1, {1}}; }
bool needs_amax(const Make& a) { return !a.per_token_activation && !a.global_scale; }

void validate(const Make& a) {
  FI_CHECK(!needs_amax(a) || (a.input_tensor.rank() >= 1 && a.input_tensor.numel() > 0), ValueError, "input_tensor is ",
           to_string(a.input_tensor), ", but must have at least one dimension and one element");
  if (!a.global_scale) return;
  FI_CHECK(!a.per_token_activation, ValueError, "global_scale is ", *a.global_scale,
           ", but with per_token_activation it is 1 / (", largest(a) / 6, " * 6)");
  const auto g = static_cast<float>(*a.global_scale);
  FI_CHECK(g >= 0x1p-126f && std::isfinite(g), ValueError, "global_scale is ", *a.global_scale,
           ", but must be a positive normal f32 number");
}
float from_amax(const Make& a, float amax) { return std::isnan(amax) ? amax : std::min(largest(a) / amax, kMost); }
void put(const Make& a, float amax) {
  a.out->data_as<float>()[0] = a.per_token_activation ? 1.0f / largest(a)
                               : a.global_scale       ? static_cast<float>(*a.global_scale)
                                                      : from_amax(a, amax);
}
op::Prepared prepare(const Make& a) {
  return ops::with_kernel<ops::kGroup8>(Group8Config{a.input_tensor.dtype(), DType::kF8E4M3}, [&a](jit::CpuFn fn) {
    put(a, needs_amax(a) ? ops::largest_magnitude(fn, a.input_tensor) : 0.0f);
  });
}

op::Prepared prepare_cuda(const Make& a, const op::Call& call) {
  ops::Tensor8 t{.x = a.input_tensor, .scale = *a.out, .numerator = largest(a)};
  if (!needs_amax(a)) t.fixed = a.per_token_activation ? 1.0f / largest(a) : static_cast<float>(*a.global_scale);
  return ops::prepare_tensor8_cuda(t, call.device);
}
void reference(const Make& a) {
  double amax = 0;
  if (needs_amax(a))
    ref::for_each_row(a.input_tensor, [&](const ref::Index& row) {
      for (int64_t i = 0; i < a.input_tensor.size(-1); ++i) {
        const double v = std::fabs(ref::get(a.input_tensor, row, i));
        amax = std::isnan(v) || std::isnan(amax) ? NAN : std::max(amax, v);
      }
    });
  const double most = largest(a), scale = a.per_token_activation ? 1.0 / most
                                          : a.global_scale       ? *a.global_scale
                                                                 : most / amax;
  ref::put(*a.out, {0}, scale > kMost ? kMost : scale);
}

op::Cost cost(const Make& a) { return {.bytes = needs_amax(a) ? static_cast<double>(a.input_tensor.nbytes()) : 0.0}; }

constexpr op::Field fields[] = {
    op::in<&Make::input_tensor>("input_tensor", nullptr, op::floats, op::doc("what the scale is for")),
    op::attr<&Make::per_token_activation>("per_token_activation", op::required,
                                          op::doc("the scale of quantisation with a scale for each row")),
    op::attr<&Make::global_scale>("global_scale",
                                  op::doc("per tensor: taken instead of 448 * 6 over the largest magnitude")),
    op::attr<&Make::nvfp4_4over6_config>("nvfp4_4over6_config"),
    op::result<&Make::out>("out", nullptr, DType::kF32, op::shape<one>),
};
constexpr op::Candidate candidates[] = {op::cuda<prepare_cuda>(), op::cpu<prepare>(), op::reference<reference>()};
}  // namespace

namespace ops::quantization {
constinit const op::Op global_scale_op = op::define<Make, validate, cost>(
    kName, "flashinfer.quantization", "The global scale of NVFP4, from the largest magnitude of a tensor.", fields,
    candidates, global_scale_cases);
}  // namespace ops::quantization

Tensor make_nvfp4_global_scale(const Make& a) { return op::call(family::global_scale_op, a); }

}  // namespace flashinfer
