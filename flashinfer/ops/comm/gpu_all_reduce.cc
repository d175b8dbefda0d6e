// SPDX-License-Identifier: Apache-2.0
// Sums of GPU tensors. NCCL moves bytes alone: each rank adds what it has received in the order of the ranks, with the
// kernel that adds what it reads from the others' memory, so both give the CPU's bits.
#include <algorithm>

#include "flashinfer/core/context.h"
#include "flashinfer/core/int_math.h"
#include "flashinfer/core/transfer.h"
#include "flashinfer/ops/comm/gpu.h"
#include "flashinfer/ops/comm/kernels/cuda_params.h"
#include "flashinfer/ops/common/cuda.h"

namespace flashinfer::ops::comm {
namespace {
using Gpu = std::shared_ptr<AllReduceGpu>;
using Part = flashinfer::comm::NcclGroup::Part;

inline constexpr jit::Kernel kAllReduceCuda{"flashinfer/ops/comm/kernels/cuda/all_reduce.cuh",
                                            "flashinfer::cu::all_reduce", "flashinfer::AllReduceCudaParams"};

/// One launch of the kernel, once it is known where its sources are.
struct Launch {
  const jit::CudaLoaded* kernel = nullptr;
  AllReduceCudaParams params{};
  cuda::Launch at{};
  std::string why_not{};
};

bool is_aligned(const AllReduceOnGpu& c, int64_t elements) {
  const AllReduceParams& p = c.params;
  uint64_t bits = reinterpret_cast<uintptr_t>(c.input.data());
  for (const void* x : {p.residual_in, p.gamma, static_cast<const void*>(p.out),
                        static_cast<const void*>(p.residual_out), static_cast<const void*>(p.norm_out),
                        static_cast<const void*>(p.quant_out), c.experts.params.x, c.experts.params.add})
    bits |= reinterpret_cast<uintptr_t>(x);
  return (bits | static_cast<uint64_t>(elements * c.input.item_size())) % 16 == 0;
}
int threads_for(const AllReduceOnGpu& c) {
  if (!c.config.norm && c.experts.addend == AllReduceAddend::kInput) return 256;
  const int64_t pieces = ceil_div(c.params.d * c.input.item_size(), 16);
  return pieces <= 128 ? 128 : pieces <= 256 ? 256 : 512;
}

/// `elements`: of the tensor, of kScatter of a block; `ranks`: whose inputs are added; `by_rows`: rows of params.d
/// elements may begin anywhere in a source.
AllReduceCudaConfig config_of(const AllReduceOnGpu& call, AllReduceWay way, int ranks, int64_t elements,
                              bool by_rows = false) {
  const AllReduceConfig& c = call.config;
  const ExpertsOnGpu& e = call.experts;
  by_rows = by_rows || c.norm || e.addend != AllReduceAddend::kInput;
  return {.dtype = c.dtype,
          .weight = c.weight,
          .fp32_acc = c.fp32_acc && ranks > 2,  // two inputs are rounded once anyway
          .norm = c.norm,
          .quant = c.quant,
          .way = way,
          .aligned = is_aligned(call, by_rows ? call.params.d : elements),
          .ranks = static_cast<unsigned char>(ranks),
          .addend = e.addend,
          .scale = e.params.scales ? e.scale : c.dtype,
          .scaled = e.params.scales != nullptr,
          .adds = e.params.add != nullptr,
          .threads = threads_for(call)};
}
Launch launch_of(const AllReduceOnGpu& call, AllReduceWay way, int ranks, int64_t elements, const Gpu& gpu,
                 bool by_rows = false) {
  const AllReduceConfig& c = call.config;
  const ExpertsOnGpu& e = call.experts;
  const AllReduceCudaConfig config = config_of(call, way, ranks, elements, by_rows);
  const bool waits = way != AllReduceWay::kGathered && way != AllReduceWay::kAddend;
  const int64_t item = call.input.item_size();
  Launch l;
  AllReduceCudaParams& p = l.params;
  p.row = call.params, p.scale = call.scale, p.input = call.input.data();
  p.elements = elements;
  p.experts = e.params;
  const bool tiles = !c.norm && e.addend == AllReduceAddend::kInput;
  if (tiles) p.row.d = config.threads * (16 / item);
  p.row.last = tiles ? ceil_div(elements, p.row.d) : call.tokens;
  l.at = {.block = {static_cast<unsigned>(config.threads), 1, 1}, .cooperative = waits};
  if (c.norm) {
    const int64_t shared = 128 + round_up(p.row.d * item, 16),
                  most = jit::arch_of_number(jit::arch_number(gpu->device)).shared_bytes;
    if (shared > most)
      l.why_not =
          str("input.shape[1] is ", p.row.d, ", but a row must fit into ", most - 128, " bytes of shared memory");
    l.at.shared_bytes = static_cast<unsigned>(shared);
  }
  const int64_t share = way == AllReduceWay::kTwoShots ? ceil_div(p.row.last, ranks) : p.row.last;
  l.at.grid[0] = static_cast<unsigned>(std::min<int64_t>(share, waits ? gpu->blocks : 1 << 16));
  p.meet.rank = gpu->rank;
  if (waits) {
    for (int r = 0; r < ranks; ++r) p.row.source[r] = gpu->memory->of(r);
    p.meet = gpu->meet(call.signature);
    p.slot = gpu->slot;
    l.at.shared_bytes = std::max(l.at.shared_bytes, kMeetSharedBytes);
  }
  if (!l.why_not.empty()) return l;
  l.kernel = &jit::cuda_kernel<kAllReduceCuda>(config, gpu->device);
  l.why_not = l.kernel->why_not;
  return l;
}
op::Prepared prepare_on_peers(const Launch& l, const AllReduceOnGpu& call, const Gpu& gpu) {
  return [kernel = l.kernel, p = l.params, at = l.at, signature = call.signature, gpu] {
    gpu->begin(signature);
    if (at.grid[0] != 0) gpu->launch(*kernel, &p, sizeof p, at);
  };
}

// ---- with NCCL ----
std::byte* bytes_of(const Tensor& t) { return static_cast<std::byte*>(t.data()); }
Tensor scratch(int64_t bytes, const Gpu& gpu) { return Tensor::empty({bytes}, DType::kU8, gpu->device); }
/// The kernel over sources that lie `bytes` apart.
void run_over(Launch l, const void* sources, int64_t bytes, int ranks) {
  for (int r = 0; r < ranks; ++r) l.params.row.source[r] = static_cast<const std::byte*>(sources) + r * bytes;
  launch_unless_empty(*l.kernel, l.params, l.at);
}

/// A call with NCCL. One shot: every rank gathers what all add. Two: each gets its part of the rows from all, and
/// gathers the sums.
struct OverNccl {
  Gpu gpu;
  flashinfer::comm::Signature signature;
  bool one_shot;
  Launch addend, sum, finish;  // those without a kernel are left out; `finish` is of all rows
  const void* in;
  int64_t part = 0, own = 0, all;  // bytes: of a part, of this rank's, of the tensor

  void run() {
    gpu->begin(signature);
    if (all == 0) return;
    Tensor experts;
    const void* from = in;
    if (addend.kernel) {
      experts = scratch(all, gpu);
      addend.params.row.out = experts.data();
      launch_unless_empty(*addend.kernel, addend.params, addend.at);
      from = experts.data();
    }
    if (gpu->ranks == 1)
      run_over(finish, from, all, 1);
    else
      one_shot ? run_one_shot(from) : run_two_shots(static_cast<const std::byte*>(from));
  }
  void run_one_shot(const void* from) const {
    const Tensor inputs = scratch(gpu->ranks * all, gpu);
    gpu->nccl->all_gather(from, inputs.data(), static_cast<size_t>(all), Context::current().stream);
    run_over(finish, inputs.data(), all, gpu->ranks);
  }
  void run_two_shots(const std::byte* from) {
    const flashinfer::comm::NcclGroup::Stream stream = Context::current().stream;
    const Tensor received = scratch(gpu->ranks * own, gpu), sums = scratch(gpu->ranks * part, gpu);
    std::vector<Part> sends, receives;
    for (int r = 0; r < gpu->ranks; ++r) {
      const int64_t first = std::min(r * part, all), bytes = std::min(part, all - first);
      sends.push_back({r, const_cast<std::byte*>(from + first), static_cast<size_t>(bytes)});
      receives.push_back({r, bytes_of(received) + r * own, static_cast<size_t>(own)});
    }
    gpu->nccl->exchange(sends, receives, stream);
    std::byte* const mine = bytes_of(sums) + gpu->rank * part;
    sum.params.row.out = mine;
    run_over(sum, received.data(), own, gpu->ranks);
    gpu->nccl->all_gather(mine, sums.data(), static_cast<size_t>(part), stream);
    run_over(finish, sums.data(), 0, 1);
  }
};
/// The same rows as a call with the kernel's sum alone.
AllReduceOnGpu sum_of(const AllReduceOnGpu& call) {
  AllReduceOnGpu sum{.input = call.input, .config = call.config, .params = {}, .tokens = call.tokens};
  sum.params.d = call.params.d;
  sum.config.norm = 0, sum.config.quant = AllReduceQuant::kNone, sum.config.weight = call.config.dtype;
  return sum;
}
op::Prepared prepare_over_nccl(const AllReduceOnGpu& call, const Gpu& gpu) {
  const int64_t d = call.params.d, row = d * call.input.item_size(), elements = call.tokens * d;
  OverNccl c{.gpu = gpu,
             .signature = call.signature,
             .one_shot = call.one_shot || gpu->ranks == 1,
             .addend = {},
             .sum = {},
             .finish = {},
             .in = call.input.data(),
             .all = call.tokens * row};
  AllReduceOnGpu gathered = call;
  gathered.experts = {};  // the addends have them; what is left is that the sum may be a result beside the norm's
  if (call.config.norm && call.params.out) gathered.experts.addend = call.experts.addend;
  c.finish = launch_of(gathered, AllReduceWay::kGathered, c.one_shot ? gpu->ranks : 1, elements, gpu);
  if (!c.one_shot) {
    const int64_t rows = ceil_div(call.tokens, gpu->ranks), first = std::min(gpu->rank * rows, call.tokens),
                  own = std::min(rows, call.tokens - first);
    c.part = rows * row, c.own = own * row;
    c.sum = launch_of(sum_of(call), AllReduceWay::kGathered, gpu->ranks, own * d, gpu, true);
  }
  if (call.experts.addend != AllReduceAddend::kInput) {
    AllReduceOnGpu own = sum_of(call);
    own.experts = call.experts;
    c.addend = launch_of(own, AllReduceWay::kAddend, 1, elements, gpu);
  }
  for (const Launch* l : {&c.addend, &c.sum, &c.finish})
    if (!l->why_not.empty()) return op::Unsupported{l->why_not};
  return [c = std::move(c)]() mutable { c.run(); };
}

/// Blocks through slots that may be smaller: a launch for each part of them.
op::Prepared prepare_pieces(const Launch& whole, const TensorView& input, const TensorView& out,
                            const AllReduceOnGpu& call, const Gpu& gpu) {
  const int64_t item = input.item_size(), block = out.numel(), most = gpu->slot / gpu->ranks / 16 * 16 / item;
  return [whole, gpu, item, block, most, signature = call.signature, in = static_cast<const std::byte*>(input.data()),
          to = static_cast<std::byte*>(out.data())] {
    gpu->begin(signature);
    Launch l = whole;
    AllReduceCudaParams& p = l.params;
    for (int64_t at = 0; at < block; at += p.elements) {
      p.elements = std::min(most, block - at);
      p.gap = block - p.elements;
      p.input = in + (at + gpu->rank * p.gap) * item;
      p.row.out = to + at * item;
      p.row.last = ceil_div(p.elements, p.row.d);
      l.at.grid[0] = static_cast<unsigned>(std::min<int64_t>(p.row.last, gpu->blocks));
      gpu->launch(*l.kernel, &p, sizeof p, l.at);
    }
  };
}
}  // namespace

op::Prepared prepare_on_gpu(const AllReduceOnGpu& call, const Gpu& gpu) {
  if (gpu->nccl) return prepare_over_nccl(call, gpu);
  const AllReduceWay way = call.one_shot ? AllReduceWay::kOneShot : AllReduceWay::kTwoShots;
  const Launch l = launch_of(call, way, gpu->ranks, call.tokens * call.params.d, gpu);
  if (!l.why_not.empty()) return op::Unsupported{l.why_not};
  return prepare_on_peers(l, call, gpu);
}

op::Prepared prepare_scatter_on_gpu(const TensorView& input, const TensorView& out, bool fp32_acc,
                                    const flashinfer::comm::Signature& signature, const Gpu& gpu) {
  if (gpu->ranks == 1)
    return [gpu, in = input.data(), to = out.data(), bytes = static_cast<size_t>(out.nbytes())] {
      ++gpu->calls;
      copy_bytes(to, gpu->device, in, gpu->device, bytes);
    };
  AllReduceOnGpu call{.input = input, .config = {}, .params = {}, .tokens = 0, .signature = signature};
  call.config = {input.dtype(), input.dtype(), fp32_acc, 0, AllReduceQuant::kNone};
  call.params.out = out.data();
  const AllReduceWay way = gpu->nccl ? AllReduceWay::kGathered : AllReduceWay::kScatter;
  const Launch l = launch_of(call, way, gpu->ranks, out.numel(), gpu);
  if (!l.why_not.empty()) return op::Unsupported{l.why_not};
  if (!gpu->nccl) return prepare_pieces(l, input, out, call, gpu);
  return [l, gpu, signature, in = input.data(), bytes = out.nbytes()] {
    gpu->begin(signature);
    if (bytes == 0) return;
    const Tensor received = scratch(gpu->ranks * bytes, gpu);
    gpu->nccl->all_to_all(in, received.data(), static_cast<size_t>(bytes), Context::current().stream);
    run_over(l, received.data(), bytes, gpu->ranks);
  };
}

void look_up_all_reduce_kernels(Device device) {
  using Way = AllReduceWay;
  constexpr int64_t kRow = 4096;
  for (const bool norm : {false, true})
    for (const Way way : {Way::kOneShot, Way::kTwoShots, Way::kScatter})
      for (const int ranks : {2, 4, 8}) {
        AllReduceOnGpu call{.input = TensorView(nullptr, DType::kBF16, {1, kRow}),
                            .config = {DType::kBF16, DType::kBF16, 0, norm, AllReduceQuant::kNone},
                            .params = {},
                            .tokens = 1};
        call.params.d = kRow;
        if (!norm || way != Way::kScatter) jit::cuda_kernel<kAllReduceCuda>(config_of(call, way, ranks, kRow), device);
      }
}

}  // namespace flashinfer::ops::comm
