// SPDX-License-Identifier: Apache-2.0
// trtllm_sage_attention_quantize on a GPU.
#include "flashinfer/ops/quantization/fp8/sage_cuda.h"
#include "flashinfer/core/int_math.h"
#include "flashinfer/ops/common/append.h"
#include "flashinfer/ops/common/cuda.h"
#include "flashinfer/ops/quantization/kernels/sage_params.h"

namespace flashinfer::ops {
namespace {
using S = TrtllmSageAttentionQuantize;
inline constexpr const char* kFile = "flashinfer/ops/quantization/kernels/cuda/sage.cuh";
inline constexpr jit::Kernel kBlocks{kFile, "flashinfer::cu::sage_blocks", "flashinfer::SageCudaParams"},
    kPartials{kFile, "flashinfer::cu::sage_partials", "flashinfer::SageCudaParams"},
    kFinish{kFile, "flashinfer::cu::sage_finish", "flashinfer::SageCudaParams"},
    kChannels{kFile, "flashinfer::cu::sage_channels", "flashinfer::SageCudaParams"};

/// Tokens of a sum: the CPU's, so that the mean has its bits.
constexpr int64_t kMeanChunk = 256;
constexpr int kThreads = 128;

struct Launches {
  const jit::CudaLoaded *q, *k, *partials, *finish, *channels, *sums = nullptr, *mean = nullptr;
};
SageCudaParams params_of(const TensorView& x, const TensorView* q, const TensorView& scales) {
  SageCudaParams p{};
  p.x = x.data(), p.q = q ? q->data() : nullptr, p.scales = scales.data_as<float>();
  p.tokens = x.size(0), p.heads = x.size(1), p.dim = x.size(2), p.columns = scales.size(1), p.requests = 1;
  return p;
}
bool aligned(const TensorView& x, const TensorView* q, const TensorView* mean) {
  const auto place = [](const TensorView* t) { return t ? reinterpret_cast<uintptr_t>(t->data()) : 0; };
  return place(&x) % 16 == 0 && place(q) % 8 == 0 && place(mean) % 16 == 0 && x.size(2) % 8 == 0;
}
void launch(const jit::CudaLoaded& kernel, const SageCudaParams& p, int64_t blocks, int64_t chunks) {
  cuda::Launch l;
  l.grid[0] = cuda::grid_size(blocks), l.grid[1] = cuda::grid_size(chunks);
  l.block[0] = kThreads;
  l.pdl = true;
  launch_unless_empty(kernel, p, l);
}
void launch_blocks(const jit::CudaLoaded& kernel, SageCudaParams p, int64_t block, const std::optional<TensorView>& cum,
                   const std::optional<TensorView>& mean) {
  p.block = block;
  if (cum) p.cum = strided_indices(*cum), p.requests = cum->size(0) - 1;
  if (mean) p.mean = mean->data_as<float>();
  launch(kernel, p, ceil_div(p.columns * p.heads, int64_t{kThreads / 32}), 1);
}
/// Partial results of chunks of tokens, then those of all: a scale or a mean for each channel.
void launch_channels(const jit::CudaLoaded& partials, const jit::CudaLoaded& finish, SageCudaParams& p, int64_t chunk,
                     Device device, int per_thread) {
  const int64_t channels = p.heads * p.dim;
  p.chunk = chunk, p.chunks = ceil_div(p.tokens, chunk);
  const Tensor scratch = Tensor::empty({p.chunks * channels}, DType::kF32, device);
  p.partials = scratch.data_as<float>();
  launch(partials, p, ceil_div(channels, int64_t{kThreads} * per_thread), p.chunks);
  launch(finish, p, ceil_div(channels, int64_t{kThreads}), 1);
}
void run(const S& a, const Launches& l, Device device) {
  const std::optional<TensorView> none;
  if (l.sums) {
    SageCudaParams p = params_of(a.key, nullptr, *a.k_mean);
    launch_channels(*l.sums, *l.mean, p, kMeanChunk, device, aligned(a.key, nullptr, &*a.k_mean) ? 8 : 1);
  }
  launch_blocks(*l.q, params_of(a.query, &*a.q_quant, *a.q_scale), a.q_block_size, a.cum_seq_lens_q, none);
  launch_blocks(*l.k, params_of(a.key, &*a.k_quant, *a.k_scale), a.k_block_size, a.cum_seq_lens_kv,
                l.sums ? a.k_mean : none);
  SageCudaParams v = params_of(a.value, &*a.v_quant, *a.v_scale);
  const bool whole = aligned(a.value, &*a.v_quant, nullptr);
  // Chunks enough for a GPU, and no more than a thread of the second kernel reads quickly.
  launch_channels(*l.partials, *l.finish, v, std::max<int64_t>(64, ceil_div(v.tokens, 256)), device, whole ? 8 : 1);
  launch(*l.channels, v, ceil_div(v.heads * v.dim, int64_t{kThreads} * (whole ? 8 : 4)), v.chunks);
}
}  // namespace

op::Prepared prepare_sage_cuda(const S& a, const op::Call& call) {
  const Device device = call.device;
  if (std::max(a.query.size(0), a.key.size(0)) >= int64_t{1} << 23)  // chunks of tokens are a grid's second extent
    return op::Unsupported{"a GPU takes fewer than 2^23 tokens"};
  const DType t = a.query.dtype();
  const auto config = [&](DType out, bool mean, bool wide) {
    return SageCudaConfig{.dtype = t, .out = out, .mean = mean, .aligned = wide, .threads = kThreads};
  };
  const TensorView* const mean = a.smooth_k ? &*a.k_mean : nullptr;
  const bool q = aligned(a.query, &*a.q_quant, nullptr), k = aligned(a.key, &*a.k_quant, mean),
             v = aligned(a.value, &*a.v_quant, nullptr), sums = a.smooth_k && aligned(a.key, nullptr, mean);
  const DType f8 = DType::kF8E4M3;
  Launches l{.q = &jit::cuda_kernel<kBlocks>(config(a.qk_quant_dtype, false, q), device),
             .k = &jit::cuda_kernel<kBlocks>(config(a.qk_quant_dtype, false, k), device),
             .partials = &jit::cuda_kernel<kPartials>(config(f8, false, v), device),
             .finish = &jit::cuda_kernel<kFinish>(config(f8, false, false), device),
             .channels = &jit::cuda_kernel<kChannels>(config(f8, false, v), device)};
  if (a.smooth_k)
    l.sums = &jit::cuda_kernel<kPartials>(config(f8, true, sums), device),
    l.mean = &jit::cuda_kernel<kFinish>(config(f8, true, false), device);
  for (const jit::CudaLoaded* kernel : {l.q, l.k, l.partials, l.finish, l.channels, l.sums, l.mean})
    if (kernel && !kernel->why_not.empty()) return op::Unsupported{kernel->why_not};
  return [&a, l, device] { run(a, l, device); };
}

}  // namespace flashinfer::ops
