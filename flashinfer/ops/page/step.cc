// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/page/step.h"

#include <cstring>
#include <limits>

#include "flashinfer/core/context.h"
#include "flashinfer/core/int_math.h"
#include "flashinfer/op/call.h"
#include "flashinfer/ops/common/append.h"
#include "flashinfer/ops/common/cuda.h"
#include "flashinfer/ops/page/cases.h"
#include "flashinfer/ops/page/kernels/step_params.h"
#include "flashinfer/ops/page/ops.h"
#include "flashinfer/ops/page/step_ref.h"

namespace flashinfer {
namespace {

inline constexpr jit::Kernel kGatherCuda{"flashinfer/ops/page/kernels/cuda/step.cuh", "flashinfer::cu::gather_rows",
                                         "flashinfer::GatherRowsParams"};
inline constexpr jit::Kernel kAdvanceCuda{"flashinfer/ops/page/kernels/cuda/step.cuh", "flashinfer::cu::advance_step",
                                          "flashinfer::AdvanceStepParams"};

void validate_gather(const GatherRows& a) {
  if (a.indices.device().type == DeviceType::kCUDA) return;
  op::check_index_range("indices", a.indices, -1, a.input.size(0), "a row of input, or -1");
}
void launch_gather(const GatherRows& a) {
  const int64_t item = a.input.item_size(), bytes = a.input.size(1) * item, n = a.indices.size(0);
  const auto copy = [&](int64_t i) {
    const int64_t from = op::index_at(a.indices, i);
    char* to = a.out->data_as<char>() + i * a.out->stride(0) * item;
    if (from < 0)
      std::memset(to, 0, static_cast<size_t>(bytes));
    else
      std::memcpy(to, a.input.data_as<char>() + from * a.input.stride(0) * item, static_cast<size_t>(bytes));
  };
  if (bytes == 0) return;
  const int64_t per_task = std::max<int64_t>(1, 32768 / bytes), tasks = ceil_div(n, per_task);  // as an append
  const auto task = [&](int64_t t) {
    for (int64_t i = t * per_task; i < std::min(n, (t + 1) * per_task); ++i) copy(i);
  };
  if (tasks == 1) return task(0);
  if (tasks > 1) parallel_for(tasks, task);
}
op::Prepared prepare_gather_cuda(const GatherRows& a, const op::Call& call) {
  const int64_t item = a.input.item_size();
  const GatherRowsParams p{.input = a.input.data(),
                           .out = a.out->data(),
                           .indices = ops::strided_indices(a.indices),
                           .rows = a.input.size(0),
                           .bytes = a.input.size(1) * item,
                           .input_stride = a.input.stride(0) * item,
                           .out_stride = a.out->stride(0) * item};
  const uint64_t places = reinterpret_cast<uintptr_t>(p.input) | reinterpret_cast<uintptr_t>(p.out) |
                          static_cast<uint64_t>(p.input_stride | p.out_stride | p.bytes);
  const GatherRowsConfig c{.piece = places % 16 == 0 ? 16 : static_cast<int>(item), .threads = 128};
  cuda::Launch l;
  l.grid[0] = cuda::grid_size(p.bytes ? a.indices.size(0) : 0);
  l.block[0] = static_cast<unsigned>(c.threads);
  l.pdl = true;
  return ops::prepare_cuda<kGatherCuda>(c, p, call.device, l);
}
op::Cost cost_gather(const GatherRows& a) { return {.bytes = 2.0 * static_cast<double>(a.out->nbytes())}; }

void validate_advance(const AdvanceDecodeStep& a) {
  FI_CHECK(a.max_seq_len >= 1 && a.max_seq_len <= std::numeric_limits<int32_t>::max(), ValueError, "max_seq_len is ",
           a.max_seq_len, ", but must be in [1, 2^31)");
  FI_CHECK(a.offset_step >= 0, ValueError, "offset_step is ", a.offset_step, ", but must not be negative");
}
AdvanceStepParams advance_params(const AdvanceDecodeStep& a) {
  return {.seq_lens = a.seq_lens.data_as<int32_t>(),
          .offsets = a.offsets ? a.offsets->data_as<int64_t>() : nullptr,
          .batch_indices = a.batch_indices->data_as<int32_t>(),
          .positions = a.positions->data_as<int32_t>(),
          .batch_stride = a.batch_indices->stride(0),
          .position_stride = a.positions->stride(0),
          .offset_step = a.offset_step,
          .slots = static_cast<int32_t>(a.seq_lens.size(0)),
          .max_seq_len = static_cast<int32_t>(a.max_seq_len)};
}
void launch_advance(const AdvanceDecodeStep& a) {
  const AdvanceStepParams p = advance_params(a);
  for (int32_t b = 0; b < p.slots; ++b) advance_slot(p, b);
}
op::Prepared prepare_advance_cuda(const AdvanceDecodeStep& a, const op::Call& call) {
  const AdvanceStepParams p = advance_params(a);
  constexpr AdvanceStepConfig c{128};
  cuda::Launch l;
  l.grid[0] = cuda::grid_size(ceil_div(p.slots, c.threads));
  l.block[0] = static_cast<unsigned>(c.threads);
  l.pdl = true;
  return ops::prepare_cuda<kAdvanceCuda>(c, p, call.device, l);
}

constexpr op::Field gather_fields[] = {
    op::in<&GatherRows::input>("input", "m d", op::floats | op::fp8),
    op::in<&GatherRows::indices>("indices", "n", op::indices, op::any_layout),
    op::out<&GatherRows::out>("out", "n d", op::same_as("input")),
};
constexpr op::Field advance_fields[] = {
    op::inout<&AdvanceDecodeStep::seq_lens>("seq_lens", "b", DType::kI32, op::contiguous),
    op::attr<&AdvanceDecodeStep::max_seq_len>("max_seq_len", op::required),
    op::inout<&AdvanceDecodeStep::offsets>("offsets", "b", DType::kI64, op::contiguous,
                                           op::doc("random numbers that each slot has used, for the samplers")),
    op::attr<&AdvanceDecodeStep::offset_step>("offset_step"),
    op::out<&AdvanceDecodeStep::batch_indices>("batch_indices", "b", DType::kI32),
    op::out<&AdvanceDecodeStep::positions>("positions", "b", DType::kI32),
};
constexpr op::Candidate gather_candidates[] = {op::cuda<prepare_gather_cuda>(), op::cpu<launch_gather>(),
                                               op::reference<ref::gather_rows>()};
constexpr op::Candidate advance_candidates[] = {op::cuda<prepare_advance_cuda>(), op::cpu<launch_advance>(),
                                                op::reference<ref::advance_decode_step>()};
}  // namespace

namespace ops::page {
constinit const op::Op gather_rows_op = op::define<GatherRows, validate_gather, cost_gather>(
    "gather_rows", "flashinfer.page", "Copies the rows of a table that indices name. Not in FlashInfer.", gather_fields,
    gather_candidates, gather_rows_cases);
constinit const op::Op advance_op = op::define<AdvanceDecodeStep, validate_advance>(
    "advance_decode_step", "flashinfer.page",
    "Request and position of the next token of every slot, whose length grows by one. Not in FlashInfer.",
    advance_fields, advance_candidates, advance_cases);
}  // namespace ops::page

Tensor gather_rows(const GatherRows& a) { return op::call(ops::page::gather_rows_op, a); }
std::pair<Tensor, Tensor> advance_decode_step(const AdvanceDecodeStep& a) { return op::call(ops::page::advance_op, a); }

}  // namespace flashinfer
