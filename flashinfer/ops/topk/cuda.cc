// SPDX-License-Identifier: Apache-2.0
#include <bit>

#include "flashinfer/jit/targets.h"
#include "flashinfer/ops/topk/launch.h"

namespace flashinfer::ops::topk {

TopKCudaParams cuda_params_of(const TensorView& input, int64_t k, int64_t tie_break) {
  TopKCudaParams p{};
  p.input = input.data();
  p.rows = input.size(0), p.d = input.size(1), p.k = k;
  p.input_stride = input.stride(0);
  p.keys_size = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(k)));
  p.large = tie_break == 2;
  p.next_n = p.ratio = 1;
  return p;
}

op::Prepared prepare_top_k_cuda(const TensorView& input, const TopKCudaParams& params, Device device) {
  const uint64_t bits = reinterpret_cast<uintptr_t>(params.input) |
                        static_cast<uint64_t>(params.rows > 1 ? params.input_stride * input.item_size() : 0);
  // Long rows: 512 threads, since a decode batch has fewer rows than the chip has SMs; with 1024, whose registers are
  // at most 64, ptxas spilled.
  const TopKCudaConfig c{input.dtype(), bits % 16 == 0, static_cast<short>(params.d >= 8192 ? 512 : 256)};
  if (params.rows >= int64_t{1} << 31 || params.d >= int64_t{1} << 31)
    return op::Unsupported{"on a GPU there are fewer than 2^31 rows, of fewer than 2^31 elements"};
  return with_cuda_kernel<kTopKCuda>(c, device, [params, c, device](const jit::CudaLoaded& kernel) {
    TopKCudaParams p = params;
    const bool scratch = p.sorted && p.keys_size > kTopKSharedKeys;
    const Tensor keys = scratch ? Tensor::empty({p.rows * p.keys_size}, DType::kU64, device) : Tensor();
    if (scratch) p.keys = keys.data_as<uint64_t>();
    cuda::Launch l;
    // Blocks of a row, on which no result depends: parts of 8192 elements or more, while a batch leaves SMs idle.
    unsigned blocks = 1;
    while (jit::arch_of_number(jit::arch_number(device)).clusters && blocks < kTopKBlocks && p.rows * blocks <= 64 &&
           p.d >= int64_t{16384} * blocks)
      blocks *= 2;
    l.grid[0] = cuda::grid_size(p.rows * blocks), l.cluster[0] = blocks, l.block[0] = static_cast<unsigned>(c.threads);
    l.shared_bytes = kTopKShared;
    l.pdl = true;
    launch_unless_empty(kernel, p, l);
  });
}

}  // namespace flashinfer::ops::topk
