// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/common/strided_copy.h"

#include <algorithm>

#include "flashinfer/core/int_math.h"

namespace flashinfer::ops {
namespace {

/// Axes without those of extent 1, neighbours that are one axis on both sides joined; the fastest first.
std::vector<CopyAxis> merged(std::span<const CopyAxis> axes) {
  std::vector<CopyAxis> out;
  for (size_t i = axes.size(); i-- > 0;) {
    const CopyAxis& a = axes[i];
    if (a.size == 1) continue;
    if (!out.empty() && a.from_stride == out.back().from_stride * out.back().size &&
        a.to_stride == out.back().to_stride * out.back().size)
      out.back().size *= a.size;
    else
      out.push_back(a);
  }
  return out;
}
}  // namespace

std::optional<StridedCopy> strided_copy(std::span<const CopyAxis> axes, int64_t item, uint64_t addresses) {
  std::vector<CopyAxis> all = merged(axes);
  if (all.empty()) all.push_back({1, 1, 1});
  int64_t bytes = item;
  if (all[0].from_stride == 1 && all[0].to_stride == 1) {
    uint64_t bits = addresses | static_cast<uint64_t>(all[0].size * item);
    for (size_t k = 1; k < all.size(); ++k)
      bits |= static_cast<uint64_t>(all[k].from_stride * item) | static_cast<uint64_t>(all[k].to_stride * item);
    while (bytes < 16 && bits % static_cast<uint64_t>(2 * bytes) == 0) bytes *= 2;
    all[0].size = all[0].size * item / bytes;
  }
  int64_t count = 1;
  for (const CopyAxis& a : all) count *= a.size;
  if (all.size() > kStridedCopyAxes || count >= int64_t{1} << 32) return std::nullopt;
  StridedCopy c{{static_cast<int>(bytes), 256}, {}, kNoBlocks};
  c.params.count = static_cast<uint32_t>(count), c.params.axes = static_cast<uint32_t>(all.size());
  for (size_t k = 0; k < all.size(); ++k) {
    const int64_t unit = k == 0 && all[0].from_stride == 1 && all[0].to_stride == 1 ? bytes : item;
    c.params.size[k] = static_cast<uint32_t>(all[k].size);
    c.params.from_stride[k] = all[k].from_stride * unit, c.params.to_stride[k] = all[k].to_stride * unit;
  }
  if (count == 0) return c;
  c.launch.grid[0] = cuda::grid_size(ceil_div(count, c.config.threads));
  c.launch.grid[1] = c.launch.grid[2] = 1;
  c.launch.block[0] = static_cast<unsigned>(c.config.threads);
  c.launch.pdl = true;
  return c;
}

op::Prepared prepare_strided_copy(const void* from, void* to, std::span<const CopyAxis> axes, int64_t item,
                                  Device device) {
  std::optional<StridedCopy> c =
      strided_copy(axes, item, reinterpret_cast<uintptr_t>(from) | reinterpret_cast<uintptr_t>(to));
  if (!c)
    return op::Unsupported{
        "the layouts differ in more than 6 axes, or have 2^32 elements, which a GPU's copy does not support"};
  c->params.from = static_cast<const char*>(from), c->params.to = static_cast<char*>(to);
  return prepare_cuda<kStridedCopy>(c->config, c->params, device, c->launch);
}

}  // namespace flashinfer::ops
