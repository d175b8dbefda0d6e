// SPDX-License-Identifier: Apache-2.0
// Mixed collectives and sums of codes of GPU tensors: in pieces through the ranks' memory, a launch each, or gathered
// with NCCL and added here, by the same arithmetic.
#include <algorithm>

#include "flashinfer/core/context.h"
#include "flashinfer/core/int_math.h"
#include "flashinfer/ops/comm/gpu.h"
#include "flashinfer/ops/comm/kernels/mixed_comm_params.h"
#include "flashinfer/ops/comm/kernels/quantized_sum_params.h"
#include "flashinfer/ops/common/cuda.h"

namespace flashinfer::ops::comm {
namespace {
using Gpu = std::shared_ptr<AllReduceGpu>;
using Signature = flashinfer::comm::Signature;

inline constexpr jit::Kernel kMixedCuda{"flashinfer/ops/comm/kernels/cuda/mixed_comm.cuh", "flashinfer::cu::mixed_comm",
                                        "flashinfer::MixedCommCudaParams"};
inline constexpr jit::Kernel kQuantizedCuda{"flashinfer/ops/comm/kernels/cuda/quantized_sum.cuh",
                                            "flashinfer::cu::quantized_sum", "flashinfer::QuantizedSumCudaParams"};
constexpr int kThreads = 256, kWarps = kThreads / 32;

bool through_peers(const AllReduceGpu& gpu) { return gpu.memory && gpu.ranks > 1; }
cuda::Launch launch(int64_t blocks, int64_t most, bool waits) {
  return {.grid = {static_cast<unsigned>(std::min(blocks, most)), 1, 1},
          .block = {kThreads, 1, 1},
          .shared_bytes = waits ? kMeetSharedBytes : 0,
          .cooperative = waits};
}
Tensor scratch(int64_t bytes, const Gpu& gpu) { return Tensor::empty({bytes}, DType::kU8, gpu->device); }
bool is_aligned(const TensorView& in, const TensorView& out, int64_t bytes) {
  return (reinterpret_cast<uintptr_t>(in.data()) | reinterpret_cast<uintptr_t>(out.data()) |
          static_cast<uint64_t>(bytes)) %
             16 ==
         0;
}

struct Mixed {
  Gpu gpu;
  Signature signature;
  const jit::CudaLoaded* kernel;
  MixedCommCudaParams params;
  int64_t item;

  void run() const {
    gpu->begin(signature);
    MixedCommCudaParams p = params;
    if (p.block == 0) return;
    const int64_t tile = kThreads * (16 / item);
    if (!through_peers(*gpu)) {
      const auto bytes = static_cast<size_t>(p.blocks * p.block * item);
      Tensor all;
      p.source[0] = p.in;
      if (gpu->ranks > 1) {
        all = scratch(static_cast<int64_t>(bytes) * gpu->ranks, gpu);
        gpu->nccl->all_gather(p.in, all.data(), bytes, Context::current().stream);
        for (int r = 0; r < gpu->ranks; ++r)
          p.source[r] = static_cast<const std::byte*>(all.data()) + static_cast<size_t>(r) * bytes;
      }
      p.last = p.block;
      return jit::launch(*kernel, p, launch(ceil_div(p.block, tile), 1 << 16, false));
    }
    for (int r = 0; r < gpu->ranks; ++r) p.source[r] = gpu->memory->of(r);
    p.meet = gpu->meet(signature);
    p.slot = gpu->slot;
    const int64_t most = gpu->slot / p.blocks / item / 64 * 64;
    for (; p.first < p.block; p.first = p.last) {
      p.last = std::min(p.block, p.first + most);
      gpu->launch(*kernel, &p, sizeof p, launch(ceil_div(p.last - p.first, tile), gpu->blocks, true));
    }
  }
};

struct QuantizedSum {
  Gpu gpu;
  Signature signature;
  const jit::CudaLoaded *kernel, *gathered;  // through the memory, or what quantises and what adds
  QuantizedSumCudaParams params;

  int64_t bytes_of(int64_t groups) const { return groups * (params.group + 4); }
  void run() const {
    gpu->begin(signature);
    QuantizedSumCudaParams p = params;
    if (p.n == 0) return;
    const int64_t all = ceil_div(p.n, p.group);
    if (!through_peers(*gpu)) {
      p.groups = all, p.slot = round_up(bytes_of(all), 16);  // of each rank
      const cuda::Launch l = launch(ceil_div(all, int64_t{kWarps}), 1 << 16, false);
      const Tensor own = scratch(p.slot, gpu);
      p.own = static_cast<uint8_t*>(own.data());
      jit::launch(*kernel, p, l);
      Tensor received = own;
      if (gpu->ranks > 1) {
        received = scratch(p.slot * gpu->ranks, gpu);
        gpu->nccl->all_gather(own.data(), received.data(), static_cast<size_t>(p.slot), Context::current().stream);
      }
      p.own = static_cast<uint8_t*>(received.data());
      return jit::launch(*gathered, p, l);
    }
    for (int r = 0; r < gpu->ranks; ++r) p.source[r] = gpu->memory->of(r);
    p.meet = gpu->meet(signature);
    p.slot = gpu->slot;
    const int64_t most = std::max<int64_t>(1, gpu->slot / (p.group + 4));
    for (int64_t first = 0; first < all; first += p.groups) {
      const int64_t at = first * p.group;
      p.groups = std::min(most, all - first);
      p.n = std::min(params.n - at, p.groups * p.group);
      p.x = static_cast<const std::byte*>(params.x) + 2 * at;
      p.out = static_cast<std::byte*>(params.out) + 2 * at;
      gpu->launch(*kernel, &p, sizeof p, launch(ceil_div(p.groups, int64_t{kWarps}), gpu->blocks, true));
    }
  }
};
}  // namespace

op::Prepared prepare_mixed_comm_on_gpu(const MixedCommOnGpu& call, const Gpu& gpu) {
  const int64_t item = call.in.item_size();
  Mixed m{.gpu = gpu, .signature = call.signature, .kernel = nullptr, .params = {}, .item = item};
  MixedCommCudaParams& p = m.params;
  p.in = call.in.data(), p.out = call.out.data();
  p.block = call.in.numel() / call.blocks;
  p.blocks = static_cast<int>(call.blocks), p.own = static_cast<int>(call.own);
  p.sums = static_cast<int>(call.sums.size()), p.addends = static_cast<int>(call.sums[0].size());
  p.copies = call.copies;
  p.meet.rank = gpu->rank;
  int n = 0;
  for (const std::vector<int>& sum : call.sums)
    for (const int r : sum) p.rank[n++] = static_cast<unsigned char>(r);
  m.kernel = &jit::cuda_kernel<kMixedCuda>(MixedCommCudaConfig{.dtype = call.in.dtype(),
                                                               .peers = through_peers(*gpu),
                                                               .aligned = is_aligned(call.in, call.out, p.block * item),
                                                               .threads = kThreads},
                                           gpu->device);
  if (!m.kernel->why_not.empty()) return op::Unsupported{m.kernel->why_not};
  return [m] { m.run(); };
}

op::Prepared prepare_quantized_sum_on_gpu(const TensorView& in, const TensorView& out, int64_t group,
                                          const Signature& signature, const Gpu& gpu) {
  QuantizedSum q{.gpu = gpu, .signature = signature, .kernel = nullptr, .gathered = nullptr, .params = {}};
  q.params.x = in.data(), q.params.out = out.data();
  q.params.n = in.numel(), q.params.group = group, q.params.ranks = gpu->ranks;
  q.params.meet.rank = gpu->rank;
  const auto kernel = [&](QuantizedSumWay way) {
    return &jit::cuda_kernel<kQuantizedCuda>(
        QuantizedSumCudaConfig{.way = way, .aligned = is_aligned(in, out, 0), .threads = kThreads}, gpu->device);
  };
  const bool peers = through_peers(*gpu);
  q.kernel = kernel(peers ? QuantizedSumWay::kPeers : QuantizedSumWay::kQuantize);
  if (!peers) q.gathered = kernel(QuantizedSumWay::kGathered);
  for (const jit::CudaLoaded* k : {q.kernel, q.gathered})
    if (k && !k->why_not.empty()) return op::Unsupported{k->why_not};
  return [q] { q.run(); };
}

void look_up_sums_kernels(Device device) {
  jit::cuda_kernel<kMixedCuda>(
      MixedCommCudaConfig{.dtype = DType::kBF16, .peers = 1, .aligned = 1, .threads = kThreads}, device);
  jit::cuda_kernel<kQuantizedCuda>(
      QuantizedSumCudaConfig{.way = QuantizedSumWay::kPeers, .aligned = 1, .threads = kThreads}, device);
}

}  // namespace flashinfer::ops::comm
