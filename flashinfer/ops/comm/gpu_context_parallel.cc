// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/comm/gpu_context_parallel.h"

#include <algorithm>

#include "flashinfer/core/int_math.h"
#include "flashinfer/ops/comm/gpu.h"
#include "flashinfer/ops/comm/kernels/cp_reduce_params.h"
#include "flashinfer/ops/common/cuda.h"

namespace flashinfer::ops::comm {
namespace {
using Share = std::shared_ptr<GpuShare>;
using Signature = flashinfer::comm::Signature;

inline constexpr jit::Kernel kCpReduceCuda{"flashinfer/ops/comm/kernels/cuda/cp_reduce.cuh",
                                           "flashinfer::cu::cp_reduce", "flashinfer::CpReduceCudaParams"};
constexpr int kThreads = 128, kWarps = kThreads / 32;
constexpr unsigned kSharedBytes = kMeetSharedBytes + kWarps * kCpRanks * (sizeof(double) + sizeof(float));

int64_t rows_of(const TensorView& slices) {
  return slices.numel() == 0 ? 0 : slices.numel() / (slices.size(-2) * slices.size(-1));
}
op::Prepared no_memory() { return op::Unsupported{"workspace is not of share_on_gpu"}; }
using Columns = std::unique_ptr<op::Prepared>;
Columns columns_of(const TensorView& in, const TensorView& out, const Signature& signature, const Share& share) {
  const int64_t ranks = share->gpu->ranks, width = in.size(-1) * in.item_size(), rows = rows_of(in);
  ColumnsOnGpu c{.in = in.data(),
                 .in_rows = rows,
                 .in_stride = ranks * width,
                 .in_width = width,
                 .to_each = true,
                 .out = out.data(),
                 .out_rows = rows,
                 .out_stride = ranks * width,
                 .begin = {},
                 .signature = signature};
  for (int64_t r = 0; r <= ranks; ++r) c.begin.push_back(r * width);
  return Columns(new op::Prepared(prepare_columns_on_gpu(std::move(c), share->gpu)));
}

struct Reduce {
  Share share;
  Signature signature;
  const jit::CudaLoaded* kernel;
  CpReduceCudaParams params;
  int64_t row_bytes;  // of a rank's slices of a row
  int64_t item;

  static cuda::Launch launch(int64_t rows, int most, bool waits) {
    return {.grid = {static_cast<unsigned>(std::min<int64_t>(ceil_div(rows, int64_t{kWarps}), most)), 1, 1},
            .block = {kThreads, 1, 1},
            .shared_bytes = kSharedBytes,
            .cooperative = waits};
  }
  void through_peers() const {
    AllReduceGpu& gpu = *share->gpu;
    gpu.begin(signature);
    CpReduceCudaParams p = params;
    for (int r = 0; r < gpu.ranks; ++r) p.source[r] = gpu.memory->of(r);
    p.meet = gpu.meet(signature);
    p.slot = gpu.slot;
    const int64_t most = gpu.slot / row_bytes;
    for (int64_t first = 0; first < params.rows; first += p.rows) {
      p.rows = std::min(most, params.rows - first);
      p.in = static_cast<const std::byte*>(params.in) + first * p.ranks * p.d * item;
      p.lse = params.lse + first * p.ranks;
      p.out = static_cast<std::byte*>(params.out) + first * p.d * item;
      gpu.launch(*kernel, &p, sizeof p, launch(p.rows, gpu.blocks, true));
    }
  }
  void over(const void* in, const void* lse) const {
    CpReduceCudaParams p = params;
    p.in = in, p.lse = static_cast<const float*>(lse);
    launch_unless_empty(*kernel, p, launch(p.rows, 1 << 16, false));
  }
};
}  // namespace

op::Prepared prepare_slices_on_gpu(const std::vector<std::pair<TensorView, TensorView>>& tensors,
                                   const Signature& signature, const Share& share) {
  if (!share) return no_memory();
  std::vector<Columns> steps;
  for (const auto& [in, out] : tensors) {
    steps.push_back(columns_of(in, out, signature, share));
    if (!steps.back()->supported()) return op::Unsupported{std::move(steps.back()->why_not())};
  }
  return [steps = std::make_shared<std::vector<Columns>>(std::move(steps))] {
    for (const Columns& step : *steps) step->run();
  };
}

op::Prepared prepare_cp_reduce_on_gpu(const TensorView& partial_o, const TensorView& lse, bool base2,
                                      const TensorView& out, const Signature& signature, const Share& share) {
  if (!share) return no_memory();
  const AllReduceGpu& gpu = *share->gpu;
  const int64_t item = partial_o.item_size(), d = partial_o.size(-1);
  Reduce r{.share = share, .signature = signature, .kernel = nullptr, .params = {}, .row_bytes = 0, .item = item};
  r.row_bytes = gpu.ranks * (d * item + 4);
  CpReduceCudaParams& p = r.params;
  p.in = partial_o.data(), p.lse = lse.data_as<float>(), p.out = out.data();
  p.rows = rows_of(partial_o), p.d = d;
  p.ranks = gpu.ranks, p.base2 = base2;
  p.meet.rank = gpu.rank;
  const bool nccl = gpu.nccl && gpu.ranks > 1;
  const uint64_t bits = reinterpret_cast<uintptr_t>(p.in) | reinterpret_cast<uintptr_t>(p.out);
  r.kernel = &jit::cuda_kernel<kCpReduceCuda>(
      CpReduceCudaConfig{
          .dtype = partial_o.dtype(),
          .peers = static_cast<unsigned char>(gpu.ranks > 1 && !nccl),
          .aligned = static_cast<unsigned char>(nccl ? reinterpret_cast<uintptr_t>(p.out) % 16 == 0 : bits % 16 == 0),
          .threads = kThreads},
      gpu.device);
  if (!r.kernel->why_not.empty()) return op::Unsupported{r.kernel->why_not};
  if (gpu.ranks == 1)
    return [r] {
      ++r.share->gpu->calls;
      r.over(r.params.in, r.params.lse);
    };
  if (!nccl) {
    if (r.row_bytes > gpu.slot)
      return op::Unsupported{
          str("partial_o has rows of ", r.row_bytes, " bytes, but a third of the workspace is ", gpu.slot, " bytes")};
    return [r] { r.through_peers(); };
  }
  // What all ranks sent to this one, in the order of its rows.
  const Tensor got = Tensor::empty({partial_o.nbytes()}, DType::kU8, gpu.device),
               got_lse = Tensor::empty({lse.nbytes()}, DType::kU8, gpu.device);
  const auto as = [](const Tensor& t, const TensorView& like) {
    return TensorView(t.data(), like.dtype(),
                      {like.numel() / (like.size(-1) * like.size(-2)), like.size(-2), like.size(-1)}, t.device());
  };
  const TensorView lse3(lse.data(), lse.dtype(), {p.rows, gpu.ranks, 1}, lse.device());
  auto steps = std::make_shared<std::vector<Columns>>();
  steps->push_back(columns_of(partial_o, as(got, partial_o), signature, share));
  steps->push_back(columns_of(lse3, as(got_lse, lse3), signature, share));
  for (const Columns& step : *steps)
    if (!step->supported()) return op::Unsupported{std::move(step->why_not())};
  return [r, steps, got, got_lse] {
    for (const Columns& step : *steps) step->run();
    r.over(got.data(), got_lse.data());
  };
}

void look_up_context_parallel_kernels(Device device) {
  jit::cuda_kernel<kCpReduceCuda>(
      CpReduceCudaConfig{.dtype = DType::kBF16, .peers = 1, .aligned = 1, .threads = kThreads}, device);
}

}  // namespace flashinfer::ops::comm
