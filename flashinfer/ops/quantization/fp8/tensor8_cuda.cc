// SPDX-License-Identifier: Apache-2.0
// One scale for a whole tensor, on a GPU: the largest magnitude in one launch, the codes in the next.
#include <algorithm>
#include <vector>

#include "flashinfer/core/int_math.h"
#include "flashinfer/ops/quantization/block/cuda.h"

namespace flashinfer::ops {
namespace {
inline constexpr jit::Kernel kMost{"flashinfer/ops/quantization/kernels/cuda/group8.cuh", "flashinfer::cu::tensor_most",
                                   "flashinfer::Tensor8CudaParams"};
inline constexpr jit::Kernel kCodes{"flashinfer/ops/quantization/kernels/cuda/group8.cuh", "flashinfer::cu::tensor8",
                                    "flashinfer::Tensor8CudaParams"};
constexpr int kThreads = 256;
/// Enough to fill the largest chip (148 SMs, eight blocks each), few enough that each block of the second launch reads
/// all parts (4 KB, from L2) beside 32 KB or more of its own.
constexpr int64_t kMostBlocks = 1024;

/// Sets the rows of `x`, with `q_stride` between those of the codes. All pieces of 16 bytes; `bits` has those of the
/// addresses of rows in bytes.
int64_t set_rows(Tensor8CudaParams& p, const TensorView& x, const RowAxes& rows, int64_t q_stride, uint64_t& bits) {
  p.x = x.data(), p.rows = rows.rows, p.k = x.rank() ? x.size(-1) : 1;
  if (rows.inner == 1 && rows.stride[0] == p.k && q_stride == p.k) p.k *= p.rows, p.rows = 1;  // one long row
  p.inner = static_cast<uint32_t>(rows.inner);
  p.x_stride[0] = rows.stride[0], p.x_stride[1] = rows.stride[1], p.q_stride = q_stride;
  const int64_t item = x.item_size();
  bits = reinterpret_cast<uintptr_t>(p.x) | static_cast<uint64_t>(p.k * item) |
         (p.rows > 1 ? rows.strides() * static_cast<uint64_t>(item) : 0);
  return p.rows * ceil_div(p.k, 16 / item);
}
constexpr const char* kTooManyPieces = "the input has 2^31 or more pieces of 16 bytes";
/// Four pieces a thread; one block even of an empty tensor: it writes the scale.
cuda::Launch launch_of(int64_t pieces) {
  cuda::Launch l;
  l.block[0] = kThreads;
  l.grid[0] = static_cast<unsigned>(std::clamp<int64_t>(ceil_div(pieces, 4 * kThreads), 1, kMostBlocks));
  l.shared_bytes = kThreads / 32 * 4;
  l.pdl = true;
  return l;
}
}  // namespace

TensorMost tensor_most(const TensorView& x, Device device) {
  TensorMost m;
  std::vector<int> order;
  for (int i = 0; i + 1 < x.rank(); ++i) order.push_back(i);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return x.stride(a) > x.stride(b); });
  if (x.rank()) order.push_back(x.rank() - 1);
  std::vector<int64_t> shape, strides;
  for (int i : order) shape.push_back(x.size(i)), strides.push_back(x.stride(i));
  const TensorView sorted(x.data(), x.dtype(), shape, strides, x.device());
  const std::optional<RowAxes> rows = row_axes(sorted);
  if (!rows) {
    m.why_not = too_many_strides("the input", x).why;
    return m;
  }
  uint64_t bits = 0;
  const int64_t pieces = set_rows(m.params, sorted, *rows, sorted.rank() ? sorted.size(-1) : 1, bits);
  m.launch = launch_of(pieces);
  m.params.part_count = m.launch.grid[0];
  if (pieces >= int64_t{1} << 31) {
    m.why_not = kTooManyPieces;
    return m;
  }
  m.kernel = &jit::cuda_kernel<kMost>(Tensor8CudaConfig{x.dtype(), DType::kF8E4M3, bits % 16 == 0, kThreads}, device);
  m.why_not = m.kernel->why_not;
  return m;
}

op::Prepared prepare_tensor8_cuda(const Tensor8& t, Device device) {
  const std::optional<RowAxes> rows = row_axes(t.x);
  const std::optional<int64_t> q_stride = t.q ? row_stride(*t.q) : 0;
  if (!rows) return too_many_strides("the input", t.x);
  if (!q_stride) return too_many_strides("x_q", *t.q);
  Tensor8CudaParams p{};
  p.q = t.q ? t.q->data() : nullptr, p.scale = t.scale.data_as<float>();
  p.given = t.given ? t.given->data_as<float>() : nullptr;
  p.numerator = t.numerator, p.fixed = t.fixed;
  uint64_t wide = 0;
  const int64_t pieces = set_rows(p, t.x, *rows, t.q ? *q_stride : t.x.rank() ? t.x.size(-1) : 1, wide);
  if (pieces >= int64_t{1} << 31) return op::Unsupported{kTooManyPieces};
  const uint64_t narrow =
      reinterpret_cast<uintptr_t>(p.q) | (p.rows > 1 && t.q ? static_cast<uint64_t>(p.q_stride) : 0);
  const Tensor8CudaConfig c{t.x.dtype(), t.out,
                            wide % 16 == 0 && narrow % static_cast<uint64_t>(16 / t.x.item_size()) == 0, kThreads};
  const jit::CudaLoaded& codes = jit::cuda_kernel<kCodes>(c, device);
  const jit::CudaLoaded* const most = t.given || t.fixed != 0 ? nullptr : &jit::cuda_kernel<kMost>(c, device);
  if (!codes.why_not.empty()) return op::Unsupported{codes.why_not};
  if (most && !most->why_not.empty()) return op::Unsupported{most->why_not};
  return [p, pieces, device, &codes, most]() mutable {
    cuda::Launch l = launch_of(pieces);
    const Tensor parts = most ? Tensor::empty({int64_t{l.grid[0]}}, DType::kF32, device) : Tensor();
    if (most) {
      p.parts = parts.data_as<float>(), p.part_count = l.grid[0];
      jit::launch(*most, p, l);
    }
    if (!p.q) l.grid[0] = 1;
    jit::launch(codes, p, l);
  };
}

}  // namespace flashinfer::ops
