// SPDX-License-Identifier: Apache-2.0
// Columns of GPU tensors between ranks: in pieces through the ranks' memory, a launch each, or taken apart, sent with
// NCCL and put together.
#include <algorithm>

#include "flashinfer/core/context.h"
#include "flashinfer/core/int_math.h"
#include "flashinfer/ops/comm/gpu.h"
#include "flashinfer/ops/comm/kernels/columns_params.h"
#include "flashinfer/ops/common/cuda.h"

namespace flashinfer::ops::comm {
namespace {
using Gpu = std::shared_ptr<AllReduceGpu>;
using Part = flashinfer::comm::NcclGroup::Part;

inline constexpr jit::Kernel kColumns{"flashinfer/ops/comm/kernels/cuda/columns.cuh", "flashinfer::cu::move_columns",
                                      "flashinfer::ColumnsCudaParams"};
constexpr int kThreads = 256;

/// A call and its kernels, of which `split` and `merge` are NCCL's.
struct Columns {
  ColumnsOnGpu call;
  Gpu gpu;
  const jit::CudaLoaded *peers = nullptr, *split = nullptr, *merge = nullptr;

  int64_t own_bytes() const { return call.in_rows * call.in_width; }
  int64_t bytes_from(int64_t r) const {
    return call.out_rows * (call.begin[static_cast<size_t>(r) + 1] - call.begin[static_cast<size_t>(r)]);
  }
  int64_t most_bytes() const {
    int64_t most = own_bytes();
    for (int r = 0; r < gpu->ranks; ++r) most = std::max(most, bytes_from(r));
    return most;
  }
  unsigned char unit() const {
    uint64_t bits = reinterpret_cast<uintptr_t>(call.in) | reinterpret_cast<uintptr_t>(call.out);
    for (const int64_t n : {call.in_stride, call.in_width, call.out_stride}) bits |= static_cast<uint64_t>(n);
    for (const int64_t n : call.begin) bits |= static_cast<uint64_t>(n);
    return bits % 16 == 0 ? 16 : bits % 4 == 0 ? 4 : 2;
  }
  ColumnsCudaParams params() const {
    ColumnsCudaParams p{};
    std::copy(call.begin.begin(), call.begin.end(), p.begin);
    p.in = call.in, p.out = call.out;
    p.in_rows = call.in_rows, p.in_stride = call.in_stride, p.in_width = call.in_width;
    p.out_rows = call.out_rows, p.out_stride = call.out_stride;
    const auto units = [unit = unit()](int64_t width) {  // a part without columns or rows is not moved
      return FastDivisor(static_cast<unsigned>(std::clamp<int64_t>(width / unit, 1, UINT32_MAX)));
    };
    p.in_units = units(call.in_width);
    for (size_t r = 0; r < static_cast<size_t>(gpu->ranks); ++r)
      p.out_units[r] = units(call.begin[r + 1] - call.begin[r]);
    p.in_parts = call.to_each ? gpu->ranks : 1;
    p.meet.rank = gpu->rank;
    return p;
  }
  cuda::Launch launch(int64_t bytes, int most, bool waits) const {
    const int64_t tiles = ceil_div(bytes, kColumnsTile);
    return {.grid = {static_cast<unsigned>(std::min<int64_t>(tiles, most)), 1, 1},
            .block = {kThreads, 1, 1},
            .shared_bytes = waits ? kMeetSharedBytes : 0,
            .cooperative = waits};
  }

  void through_peers() const {
    ColumnsCudaParams p = params();
    const int64_t all = most_bytes(), shared = call.to_each ? gpu->ranks : 1;
    const int64_t piece = gpu->ranks == 1 ? all : gpu->slot / shared / kColumnsTile * kColumnsTile;
    for (int r = 0; r < gpu->ranks; ++r) p.source[r] = gpu->memory ? gpu->memory->of(r) : nullptr;
    if (gpu->ranks > 1) p.meet = gpu->meet(call.signature);
    p.slot = gpu->slot;
    for (p.first = 0; p.first < all; p.first = p.last) {
      p.last = std::min(all, p.first + piece);
      const cuda::Launch l = launch(p.last - p.first, gpu->blocks, gpu->ranks > 1);
      if (gpu->ranks > 1)
        gpu->launch(*peers, &p, sizeof p, l);
      else
        jit::launch(*peers, p, l);
    }
  }

  void with_nccl() const {
    const flashinfer::comm::NcclGroup::Stream stream = Context::current().stream;
    ColumnsCudaParams p = params();
    const bool apart = call.in_stride != call.in_width && call.in_rows > 1, together = call.out_rows > 1;
    const int64_t parts = call.to_each ? gpu->ranks : 1;
    Tensor sent, received;
    const auto* from = static_cast<const std::byte*>(call.in);
    if (apart && own_bytes() > 0) {
      sent = Tensor::empty({parts * own_bytes()}, DType::kU8, gpu->device);
      p.parts = sent.data();
      jit::launch(*split, p, launch(own_bytes(), 1 << 16, false));
      from = static_cast<const std::byte*>(sent.data());
    }
    auto* to = static_cast<std::byte*>(call.out);
    if (together) {
      received = Tensor::empty({call.out_rows * call.begin.back()}, DType::kU8, gpu->device);
      to = static_cast<std::byte*>(received.data());
    }
    exchange(from, to, stream);
    p.parts = to;
    if (together) jit::launch(*merge, p, launch(most_bytes(), 1 << 16, false));
  }
  /// The parts, one behind another at `from` and `to`.
  void exchange(const std::byte* from, std::byte* to, flashinfer::comm::NcclGroup::Stream stream) const {
    bool even = !call.to_each;
    for (int r = 0; r < gpu->ranks; ++r) even = even && bytes_from(r) == own_bytes();
    if (even) return gpu->nccl->all_gather(from, to, static_cast<size_t>(own_bytes()), stream);
    std::vector<Part> sends, receives;
    for (int r = 0; r < gpu->ranks; ++r) {
      const int64_t at = call.to_each ? r * own_bytes() : 0;
      sends.push_back({r, const_cast<std::byte*>(from + at), static_cast<size_t>(own_bytes())});
      receives.push_back(
          {r, to + call.out_rows * call.begin[static_cast<size_t>(r)], static_cast<size_t>(bytes_from(r))});
    }
    gpu->nccl->exchange(sends, receives, stream);
  }
  void run() const {
    gpu->begin(call.signature);
    if (most_bytes() == 0) return;
    if (gpu->nccl && gpu->ranks > 1)
      with_nccl();
    else
      through_peers();
  }
};
}  // namespace

op::Prepared prepare_columns_on_gpu(ColumnsOnGpu call, const Gpu& gpu) {
  if (call.in_rows <= 1) call.in_stride = 0;  // whatever it is
  if (call.out_rows <= 1) call.out_stride = 0;
  Columns c{std::move(call), gpu};
  const unsigned char unit = c.unit();
  if (c.most_bytes() / unit > int64_t{UINT32_MAX})
    return op::Unsupported{
        str("a rank's part of ", c.most_bytes(), " bytes is larger than 2^32 pieces of ", unit, " bytes")};
  const auto kernel = [&](ColumnsWay way) {
    return &jit::cuda_kernel<kColumns>(ColumnsCudaConfig{way, unit, static_cast<unsigned short>(gpu->ranks), kThreads},
                                       gpu->device);
  };
  if (gpu->nccl && gpu->ranks > 1)
    c.split = kernel(ColumnsWay::kSplit), c.merge = kernel(ColumnsWay::kMerge);
  else
    c.peers = kernel(ColumnsWay::kPeers);
  for (const jit::CudaLoaded* k : {c.peers, c.split, c.merge})
    if (k && !k->why_not.empty()) return op::Unsupported{k->why_not};
  return [c = std::move(c)] { c.run(); };
}

void look_up_columns_kernels(Device device) {
  for (const unsigned short ranks : {2, 4, 8})
    jit::cuda_kernel<kColumns>(ColumnsCudaConfig{ColumnsWay::kPeers, 16, ranks, kThreads}, device);
}

}  // namespace flashinfer::ops::comm
