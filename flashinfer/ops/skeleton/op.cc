// SPDX-License-Identifier: Apache-2.0
// The family's ops: for each a table of its block's members, its candidates in order, and the value that names both.
// Checks and their messages, log, recordings, replay, calls from other languages, cases, bench and AOT come from these.
#include "flashinfer/ops/skeleton/op.h"

#include <cmath>

#include "flashinfer/op/call.h"
#include "flashinfer/ops/common/cuda.h"
#include "flashinfer/ops/common/rows.h"
#include "flashinfer/ops/skeleton/cases.h"
#include "flashinfer/ops/skeleton/kernels/params.h"
#include "flashinfer/ops/skeleton/ref.h"

namespace flashinfer {
namespace {

// A kernel: its header, its function template, and the type that it is launched with.
inline constexpr jit::Kernel kSkeleton{"flashinfer/ops/skeleton/kernels/cpu/skeleton.h", "flashinfer::cpu::skeleton",
                                       "flashinfer::SkeletonParams"};
inline constexpr jit::Kernel kSkeletonCuda{"flashinfer/ops/skeleton/kernels/cuda/skeleton.cuh",
                                           "flashinfer::cu::skeleton", "flashinfer::SkeletonParams"};

SkeletonParams params_of(const Skeleton& a) {
  SkeletonParams p{};
  p.input = a.input.data();
  p.out = a.out->data();
  p.d = a.input.size(1);
  p.rows = p.d ? a.input.size(0) : 0;
  p.input_stride = a.input.stride(0);
  p.out_stride = a.out->stride(0);
  p.rows_per_task = ops::rows_per_task(p.rows, 2 * p.d * a.input.item_size());
  p.peak = static_cast<float>(a.peak);
  return p;
}

// A candidate's prepare() returns a launch, or why the call is unsupported (op::Unsupported); the helpers prepare_rows
// and prepare_cuda also return that when the kernel can neither be found nor compiled. Tensors are on the candidate's
// device already, and outputs have memory.
op::Prepared prepare_cpu(const Skeleton& a) {
  const SkeletonParams p = params_of(a);
  return ops::prepare_rows<kSkeleton>(SkeletonConfig{.dtype = a.input.dtype()}, p, p.rows, p.rows_per_task);
}

op::Prepared prepare_cuda(const Skeleton& a, const op::Call& call) {
  const SkeletonParams p = params_of(a);
  const int64_t item = a.input.item_size();
  const uint64_t places = reinterpret_cast<uintptr_t>(p.input) | reinterpret_cast<uintptr_t>(p.out) |
                          static_cast<uint64_t>((p.input_stride | p.out_stride | p.d) * item);
  const SkeletonCudaConfig config{.dtype = a.input.dtype(), .aligned = places % 16 == 0, .threads = 256};
  cuda::Launch launch;  // a grid without blocks is nothing to do
  launch.grid[0] = cuda::grid_size(p.rows);
  launch.block[0] = static_cast<unsigned>(config.threads);
  launch.shared_bytes = static_cast<unsigned>(config.threads) / 32 * sizeof(float);  // of block_reduce
  launch.pdl = true;
  return ops::prepare_cuda<kSkeletonCuda>(config, p, call.device, launch);
}

void reference(const Skeleton& a) { ref::skeleton(a.input, a.peak, *a.out); }

/// What the table cannot say. The op's name is put in front of the message.
void validate(const Skeleton& a) {
  FI_CHECK(std::isfinite(a.peak) && a.peak >= 0, ValueError, "peak is ", a.peak, ", but must be finite and at least 0");
}

/// What must move and be computed, for bench.
op::Cost cost(const Skeleton& a) {
  const double n = static_cast<double>(a.input.numel());
  return {.bytes = 2 * n * static_cast<double>(a.input.item_size()), .flops = 2 * n};
}

// Order and names are those of the signature: skeleton(input, peak=1.0, out=None).
constexpr op::Field fields[] = {
    op::in<&Skeleton::input>("input", "n d", op::floats),
    op::attr<&Skeleton::peak>("peak"),
    op::out<&Skeleton::out>("out", "n d", op::same_as("input"), op::may_alias("input")),
};
constexpr op::Candidate candidates[] = {op::cuda<prepare_cuda>(), op::cpu<prepare_cpu>(), op::reference<reference>()};
constinit const op::Op skeleton_op = op::define<Skeleton, validate, cost>(
    "skeleton", "flashinfer",  // the Python module; a family of several ops: "flashinfer.norm"
    "input[i, :] * (peak / max |input[i, :]|): scales each row so that its largest magnitude is peak.", fields,
    candidates, ops::skeleton::skeleton_cases);

constexpr const op::Op* kOps[] = {&skeleton_op};
}  // namespace

Tensor skeleton(const Skeleton& args) { return op::call(skeleton_op, args); }

namespace ops::skeleton {
extern const std::span<const op::Op* const> all;
constinit const std::span<const op::Op* const> all = kOps;
}  // namespace ops::skeleton

}  // namespace flashinfer
