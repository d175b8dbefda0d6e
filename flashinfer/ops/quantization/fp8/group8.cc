// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/quantization/fp8/group8.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "flashinfer/core/int_math.h"
#include "flashinfer/ops/common/rows.h"
#include "flashinfer/ops/quantization/block/cuda.h"
#include "flashinfer/ops/quantization/block/launch.h"
#include "flashinfer/ops/quantization/block/ref.h"
#include "flashinfer/ops/quantization/cases.h"
#include "flashinfer/ops/quantization/kernels/group8_params.h"
#include "flashinfer/ops/quantization/ops.h"

namespace flashinfer {
namespace {
namespace family = ops::quantization;
using op::Shape;
using Group = PerTokenGroupQuant8Bit;
using Whole = PerTensorQuantFp8;
using ops::kGroup8;
inline constexpr jit::Kernel kGroup8Cuda{"flashinfer/ops/quantization/kernels/cuda/group8.cuh",
                                         "flashinfer::cu::group8", "flashinfer::Group8CudaParams"};
constexpr const char *kGroup = "per_token_group_quant_8bit", *kWhole = "per_tensor_quant_fp8";

DType out_of(const Group& a) { return a.dst_dtype.value_or(DType::kF8E4M3); }
DType out_of(const Whole& a) { return a.dst_dtype; }
template <class B>
DType out_dtype(const B& a) {
  return out_of(a);
}
template <class B>
Group8Config config_of(const B& a) {
  return {a.x.dtype(), out_of(a)};
}
float qmax_of(DType t) { return t == DType::kI8 ? 127.0f : t == DType::kF8E4M3 ? 448.0f : 57344.0f; }

// ---- outputs ----
template <class B>
Shape same_shape(const B& a) {
  Shape s{a.x.rank()};
  for (int i = 0; i < s.rank; ++i) s.size[i] = a.x.size(i);
  return s;
}
Shape scales_shape(const Group& a) {
  Shape s = same_shape(a);
  s.size[s.rank - 1] /= a.group_size;
  return s;
}
Shape scales_strides(const Group& a) {
  Shape s = scales_shape(a);
  const int64_t groups = s.size[s.rank - 1], m = ops::row_count(a.x), rows = a.scale_tma_aligned ? round_up(m, 4) : m;
  int64_t stride = a.column_major_scales ? 1 : groups;
  s.size[s.rank - 1] = a.column_major_scales ? rows : 1;
  for (int i = s.rank - 2; i >= 0; --i) {
    s.size[i] = stride;
    stride *= a.x.size(i);
  }
  return s;
}
Shape one(const Whole&) { return {1, {1}}; }

// ---- checks ----
void validate_group(const Group& a) {
  FI_CHECK(a.x.rank() >= 1, ValueError, "x is ", to_string(a.x), ", but must have at least one dimension");
  FI_CHECK(a.group_size > 0 && a.x.size(-1) % a.group_size == 0, ValueError, "group_size is ", a.group_size,
           ", but must be positive and divide the last dimension, ", a.x.size(-1));
  FI_CHECK(a.eps >= 0x1p-100 && std::isfinite(a.eps), ValueError, "eps is ", a.eps, ", but must be at least 2^-100");
  const DType t = out_of(a);
  FI_CHECK(op::fp8.has(t) || t == DType::kI8, ValueError, "dst_dtype is ", name(t),
           ", but must be float8_e4m3fn, float8_e5m2 or int8");
  FI_CHECK(!a.scale_tma_aligned || a.column_major_scales, ValueError,
           "scale_tma_aligned is True, but column_major_scales is False");
}
void validate_whole(const Whole& a) {
  FI_CHECK(a.x.rank() >= 1, ValueError, "x is ", to_string(a.x), ", but must have at least one dimension");
  FI_CHECK(op::fp8.has(a.dst_dtype), ValueError, "dst_dtype is ", name(a.dst_dtype),
           ", but must be float8_e4m3fn or float8_e5m2");
  if (a.scale) ops::global_scale("scale", *a.scale);
}

// ---- launches ----
/// Rows of x and of the codes; `finish` moves what could not be written in place.
template <class B>
struct Io {
  ops::Rows x, q;
  explicit Io(const B& a) : x(ops::as_rows(a.x)), q(ops::as_rows(*a.x_q)) {}
  Group8Params params(int64_t group) const {
    Group8Params p{};
    p.x = x.view.data(), p.q = q.view.data();
    p.rows = x.view.size(0), p.k = x.view.size(1), p.group = group;
    p.x_stride = x.view.stride(0), p.q_stride = q.view.stride(0);
    p.rows_per_task = ops::rows_per_task(p.rows, p.k * (x.view.item_size() + 1));
    return p;
  }
  void finish(const B& a) const {
    if (q.keep.defined()) ops::copy_strided(q.view.view(a.x_q->shape()), *a.x_q);
  }
};
void launch(const Group& a, jit::CpuFn fn) {
  const Io io(a);
  Group8Params p = io.params(a.group_size);
  const int64_t groups = p.k / p.group;
  const Shape natural = scales_strides(a);
  bool direct = true;
  for (int i = 0; i < natural.rank; ++i)
    direct = direct && (a.x_s->size(i) <= 1 || a.x_s->stride(i) == natural.size[i]);
  const Tensor rows = direct ? Tensor() : Tensor::empty({p.rows, groups}, DType::kF32);
  p.scales = direct ? a.x_s->data_as<float>() : rows.data_as<float>();
  p.scale_group_stride = direct ? natural.size[natural.rank - 1] : 1;
  p.scale_row_stride = !direct ? groups : a.column_major_scales ? 1 : groups;
  p.eps = static_cast<float>(a.eps);
  p.power = a.scale_ue8m0;
  ops::run_rows(fn, p, p.rows, p.rows_per_task);
  io.finish(a);
  if (!direct) ops::copy_strided(rows.view().view(a.x_s->shape()), *a.x_s);
}
/// Takes everything but the codes of `p`.
float largest_of_rows(jit::CpuFn fn, Group8Params p) {
  std::vector<float> largest(static_cast<size_t>(ceil_div(p.rows, p.rows_per_task)), 0.0f);
  p.scales = largest.data();
  p.amax_only = 1;
  ops::run_rows(fn, p, p.rows, p.rows_per_task);
  float amax = 0;
  for (float x : largest) amax = x <= amax ? amax : x;  // keeps a NaN
  for (float x : largest) amax = std::isnan(x) ? x : amax;
  return amax;
}
float scale_for(float amax, DType out) { return amax > 0 || std::isnan(amax) ? amax / qmax_of(out) : 1.0f; }
void launch(const Whole& a, jit::CpuFn fn) {
  const Io io(a);
  Group8Params p = io.params(std::max<int64_t>(io.x.view.size(1), 1));
  float scale = a.scale ? a.scale->data_as<float>()[0] : 0.0f;
  if (!a.scale) scale = scale_for(largest_of_rows(fn, p), a.dst_dtype);
  a.x_s->data_as<float>()[0] = scale;
  p.given = &scale;
  ops::run_rows(fn, p, p.rows, p.rows_per_task);
  io.finish(a);
}

// ---- on a GPU ----
/// Bits of all addresses and strides of rows; `item`: bytes of an element of x.
uint64_t x_bits(const void* x, const ops::RowAxes& rows, int64_t item) {
  return reinterpret_cast<uintptr_t>(x) | rows.strides() * static_cast<uint64_t>(item);
}
/// The fewest of 8, 16, 32, 128 and 256 threads that keep a group in at most four registers of 16 bytes each; 256 that
/// read a longer one twice.
Group8CudaConfig group_config(const Group& a, const ops::RowAxes& rows, int64_t q_stride) {
  const int64_t item = a.x.item_size(), n = 16 / item, pieces = ceil_div(a.group_size, n);
  const uint64_t wide = x_bits(a.x.data(), rows, item) | static_cast<uint64_t>(a.group_size * item),
                 narrow = reinterpret_cast<uintptr_t>(a.x_q->data()) | static_cast<uint64_t>(q_stride | a.group_size);
  Group8CudaConfig c{.dtype = a.x.dtype(),
                     .out = out_of(a),
                     .aligned = wide % 16 == 0 && narrow % static_cast<uint64_t>(n) == 0,
                     .kept = 0,
                     .lanes = 256,
                     .threads = 256};
  for (const int lanes : {8, 16, 32, 128, 256})
    if (pieces <= 4 * lanes) {
      c.lanes = static_cast<short>(lanes);
      c.kept = static_cast<unsigned char>(pieces <= 2 * lanes ? 2 : 4);
      break;
    }
  if (c.lanes == 128) c.threads = 128;
  return c;
}
op::Prepared prepare_group_on(const Group& a, Device device) {
  const std::optional<ops::RowAxes> rows = ops::row_axes(a.x);
  const std::optional<int64_t> q_stride = ops::row_stride(*a.x_q);
  // Scales: one row axis, one axis of groups.
  const std::optional<int64_t> scale_stride = ops::row_stride(*a.x_s);
  if (!rows) return ops::too_many_strides("x", a.x);
  if (!q_stride) return ops::too_many_strides("x_q", *a.x_q);
  if (!scale_stride) return ops::too_many_strides("x_s", *a.x_s);
  Group8CudaParams p{};
  p.x = a.x.data(), p.q = a.x_q->data(), p.scales = a.x_s->data_as<float>();
  p.rows = static_cast<uint32_t>(rows->rows), p.groups = static_cast<uint32_t>(a.x.size(-1) / a.group_size);
  p.inner = static_cast<uint32_t>(rows->inner), p.group = a.group_size;
  p.x_stride[0] = rows->stride[0], p.x_stride[1] = rows->stride[1], p.q_stride = *q_stride;
  p.scale_row_stride = *scale_stride, p.scale_group_stride = a.x_s->stride(-1);
  p.by_rows = p.scale_row_stride == 1 && p.groups > 1;
  p.eps = static_cast<float>(a.eps), p.power = a.scale_ue8m0;
  if (rows->rows * a.x.size(-1) >= int64_t{1} << 38) return op::Unsupported{"x has 2^38 or more elements"};
  const Group8CudaConfig c = group_config(a, *rows, *q_stride);
  cuda::Launch l;
  l.block[0] = static_cast<unsigned>(c.threads);
  l.grid[0] = cuda::grid_size(ceil_div(int64_t{p.rows} * p.groups, c.threads / c.lanes));
  l.shared_bytes = c.lanes > 32 ? static_cast<unsigned>(c.threads / 32 * 4) : 0;
  l.pdl = true;
  return ops::prepare_cuda<kGroup8Cuda>(c, p, device, l);
}
op::Prepared prepare_group_cuda(const Group& a, const op::Call& call) { return prepare_group_on(a, call.device); }

op::Prepared prepare_whole_cuda(const Whole& a, const op::Call& call) {
  return ops::prepare_tensor8_cuda({.x = a.x, .q = a.x_q, .given = a.scale, .scale = *a.x_s, .out = a.dst_dtype},
                                   call.device);
}

template <class B>
op::Prepared prepare(const B& a) {
  return ops::with_kernel<kGroup8>(config_of(a), [&a](jit::CpuFn fn) { launch(a, fn); });
}

// ---- references ----
void put_quotient(const TensorView& q, const ref::Index& row, int64_t i, float x, float scale) {
  const float v = x / scale, most = qmax_of(q.dtype());
  if (q.dtype() == DType::kI8)
    ref::set(q, row, i, std::isnan(v) ? 0 : std::nearbyint(std::clamp(v, -128.0f, 127.0f)));
  else
    ref::set(q, row, i, std::isnan(v) ? v : std::clamp(v, -most, most));
}
void reference_group(const Group& a) {
  ref::for_each_row(a.x, [&](const ref::Index& row) {
    for (int64_t g = 0; g < a.x.size(-1) / a.group_size; ++g) {
      float amax = 0;
      for (int64_t i = g * a.group_size; i < (g + 1) * a.group_size; ++i) {
        const float v = std::fabs(static_cast<float>(ref::get(a.x, row, i)));
        amax = std::isnan(v) || std::isnan(amax) ? NAN : std::max(amax, v);
      }
      float scale = std::isnan(amax) ? amax : std::max(amax, static_cast<float>(a.eps)) / qmax_of(out_of(a));
      if (a.scale_ue8m0) scale = static_cast<float>(ref::power_value(ref::power_byte(scale)));
      ref::set(*a.x_s, row, g, scale);
      for (int64_t i = g * a.group_size; i < (g + 1) * a.group_size; ++i)
        put_quotient(*a.x_q, row, i, static_cast<float>(ref::get(a.x, row, i)), scale);
    }
  });
}
void reference_whole(const Whole& a) {
  float amax = 0;
  ref::for_each_row(a.x, [&](const ref::Index& row) {
    for (int64_t i = 0; i < a.x.size(-1); ++i) {
      const float v = std::fabs(static_cast<float>(ref::get(a.x, row, i)));
      amax = std::isnan(v) || std::isnan(amax) ? NAN : std::max(amax, v);
    }
  });
  const float scale = a.scale ? a.scale->data_as<float>()[0] : scale_for(amax, a.dst_dtype);
  ref::put(*a.x_s, {0}, scale);
  ref::for_each_row(a.x, [&](const ref::Index& row) {
    for (int64_t i = 0; i < a.x.size(-1); ++i)
      put_quotient(*a.x_q, row, i, static_cast<float>(ref::get(a.x, row, i)), scale);
  });
}

template <class B>
op::Cost cost(const B& a) {
  return {.bytes = static_cast<double>(a.x.numel() * (a.x.item_size() + 1) + (a.x_s ? a.x_s->nbytes() : 0))};
}
template <>
op::Cost cost(const Whole& a) {
  return {.bytes = static_cast<double>(a.x.numel() * (a.x.item_size() * (a.scale ? 1 : 2) + 1))};
}
// ---- tables ----
constexpr op::Field group_fields[] = {
    op::in<&Group::x>("x", nullptr, op::floats),
    op::attr<&Group::group_size>("group_size", op::required),
    op::attr<&Group::eps>("eps"),
    op::attr<&Group::dst_dtype>("dst_dtype"),
    op::attr<&Group::column_major_scales>("column_major_scales"),
    op::attr<&Group::scale_tma_aligned>("scale_tma_aligned"),
    op::attr<&Group::scale_ue8m0>("scale_ue8m0"),
    op::attr<&Group::backend>("backend", op::backends("cutile:cuda")),
    op::result<&Group::x_q>("x_q", nullptr, op::shape<same_shape<Group>>, op::dtype<out_dtype<Group>>),
    op::result<&Group::x_s>("x_s", nullptr, DType::kF32, op::any_layout, op::shape<scales_shape>,
                            op::strides<scales_strides>),
};
constexpr op::Field whole_fields[] = {
    op::in<&Whole::x>("x", nullptr, op::floats),
    op::in<&Whole::scale>("scale", nullptr, DType::kF32),
    op::attr<&Whole::dst_dtype>("dst_dtype"),
    op::result<&Whole::x_q>("x_q", nullptr, op::shape<same_shape<Whole>>, op::dtype<out_dtype<Whole>>),
    op::result<&Whole::x_s>("x_s", nullptr, DType::kF32, op::shape<one>),
};
constexpr op::Candidate group_candidates[] = {op::cuda<prepare_group_cuda>(), op::cpu<prepare<Group>>(),
                                              op::reference<reference_group>()};
constexpr op::Candidate whole_candidates[] = {op::cuda<prepare_whole_cuda>(), op::cpu<prepare<Whole>>(),
                                              op::reference<reference_whole>()};
constexpr const char* kModule = "flashinfer.quantization";
}  // namespace

namespace ops {
op::Prepared prepare_group8_cuda(const TensorView& x, const TensorView& q, const TensorView& scales, int64_t group,
                                 double eps, Device device) {
  return prepare_group_on({.x = x, .group_size = group, .eps = eps, .x_q = q, .x_s = scales}, device);
}
}  // namespace ops

namespace ops::quantization {
constinit const op::Op group8_op = op::define<Group, validate_group, cost<Group>>(
    kGroup, kModule, "8-bit floats or integers with an f32 scale for each group of a row.", group_fields,
    group_candidates, group8_cases);
constinit const op::Op tensor8_op = op::define<Whole, validate_whole, cost<Whole>>(
    kWhole, kModule, "8-bit floats with one f32 scale.", whole_fields, whole_candidates, tensor8_cases);
}  // namespace ops::quantization

float ops::largest_magnitude(jit::CpuFn fn, const TensorView& x) {
  const Rows rows = as_rows(x);
  Group8Params p{};
  p.x = rows.view.data(), p.rows = rows.view.size(0), p.k = rows.view.size(1), p.group = std::max<int64_t>(p.k, 1);
  p.x_stride = rows.view.stride(0);
  p.rows_per_task = rows_per_task(p.rows, p.k * rows.view.item_size());
  return largest_of_rows(fn, p);
}

std::pair<Tensor, Tensor> per_token_group_quant_8bit(const Group& a) { return op::call(family::group8_op, a); }
std::pair<Tensor, Tensor> per_tensor_quant_fp8(const Whole& a) { return op::call(family::tensor8_op, a); }

}  // namespace flashinfer
