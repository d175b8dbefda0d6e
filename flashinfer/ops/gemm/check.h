// SPDX-License-Identifier: Apache-2.0
// Checks that several products share, and what they read out of arguments once these are checked.
#pragma once
#include <string>
#include <string_view>

#include "flashinfer/core/check.h"
#include "flashinfer/core/int_math.h"
#include "flashinfer/core/layout_error.h"
#include "flashinfer/op/call.h"
#include "flashinfer/ops/gemm/cpu/launch.h"

namespace flashinfer::gemm {

inline constexpr DTypeSet kFp4Bytes = DTypeSet(DType::kU8) | DType::kF4E2M1x2;
inline constexpr DTypeSet kHalves = DTypeSet(DType::kBF16) | DType::kF16;

inline void check_out_dtype(DType t, DTypeSet set, std::string_view name_of = "out_dtype") {
  FI_CHECK(set.has(t), ValueError, name_of, " is ", name(t), ", but must be ", to_string(set));
}
inline void check_one(std::string_view argument, const std::optional<TensorView>& t) {
  FI_CHECK(!t || t->numel() == 1, ValueError, argument, " is ", to_string(*t), ", but must hold one value");
}
inline const float* number_of(const std::optional<TensorView>& t) { return t ? t->data_as<float>() : nullptr; }
/// Whether its contents can be read and checked by the host.
inline bool on_host(const TensorView& t) { return t.device().type == DeviceType::kCPU; }

/// ValueError unless the last two axes are column-major, k contiguous: the transposed view of [n, k].
inline void check_column_major(std::string_view argument, const TensorView& t) {
  FI_CHECK(t.size(-2) <= 1 || t.stride(-2) == 1, LayoutError, argument, " is ", to_string(t), " with strides ",
           t.stride(-2), " and ", t.stride(-1), ", but the product needs ", argument,
           " to be column-major: the transposed view of a contiguous [n, k] matrix");
}

/// The scale factors `t` of `batch` matrices of rows x columns as the kernels read them; ValueError when there are more
/// or fewer bytes than the layout has, or they are not dense. Of two axes either may be the contiguous one: weights'
/// scales come transposed.
inline ScaleFactors check_sf(std::string_view argument, const TensorView& t, SfLayout layout, bool e8m0, int64_t batch,
                             int64_t rows, int64_t columns, int32_t block) {
  const int64_t bytes = sf_bytes(layout, rows, columns);
  FI_CHECK(t.numel() == batch * bytes, ValueError, argument, " is ", to_string(t), ", ", t.numel(),
           " scale factors, but ", batch == 1 ? "" : str(batch, " matrices of "), rows, " x ", columns,
           " of them need ", argument, " to contain ", batch * bytes, " elements in the ",
           layout == SfLayout::k128x4 ? "128x4"
           : layout == SfLayout::k8x4 ? "8x4"
                                      : "linear",
           " layout (", sf_padded_rows(layout, rows), " x ", sf_padded_columns(layout, columns), ")");
  const bool transposed = t.rank() == 2 && t.transpose(0, 1).is_contiguous();
  FI_CHECK(t.is_contiguous() || transposed, LayoutError, argument, " is ", to_string(t),
           ", but its bytes must follow one another without gaps");
  return {.bytes = static_cast<const uint8_t*>(t.data()),
          .columns = columns,
          .batch = bytes,
          .block = block,
          .layout = layout,
          .e8m0 = e8m0};
}

/// f32 scales of blocks: `lines` x `k` of granularity g_lines x g_k, [lines, k] or, with `k_first`, [k, lines], each
/// rounded up, behind `batch` when that is > 0.
inline BlockScales check_grid(std::string_view argument, const TensorView& t, bool k_first, int64_t batch,
                              int64_t lines, int64_t k, int64_t g_lines, int64_t g_k) {
  const int64_t l = ceil_div(lines, g_lines), d = ceil_div(k, g_k), first = batch ? 1 : 0;
  const int64_t x = k_first ? d : l, y = k_first ? l : d;
  FI_CHECK(t.rank() == 2 + first && (!batch || t.size(0) == batch) && t.size(-2) == x && t.size(-1) == y, ValueError,
           argument, " is ", to_string(t), ", but must be [", batch ? str(batch, ", ") : "", x, ", ", y,
           "] (one scale for ", g_lines, " of ", lines, " by ", g_k, " of k = ", k, ")");
  return {.p = t.data_as<float>(),
          .lines = g_lines,
          .line_stride = t.stride(k_first ? -1 : -2),
          .k_stride = t.stride(k_first ? -2 : -1),
          .batch = batch ? t.stride(0) : 0};
}

/// ValueError unless there are three positive numbers.
inline void check_granularity(const std::vector<int64_t>& g) {
  FI_CHECK(g.size() == 3 && g[0] > 0 && g[1] > 0 && g[2] > 0, ValueError, "scale_granularity_mnk is ",
           op::python_repr(op::to_value(g)), ", but must be three positive numbers");
}

}  // namespace flashinfer::gemm
