// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/moe/cuda/lora.h"

#include <algorithm>

#include "flashinfer/core/int_math.h"
#include "flashinfer/ops/common/append.h"
#include "flashinfer/ops/common/cuda.h"
#include "flashinfer/ops/moe/cuda/layer.h"

namespace flashinfer::moe {
namespace {
inline constexpr jit::Kernel kTokens{"flashinfer/ops/moe/kernels/cuda/lora.cuh", "flashinfer::cu::moe_lora_tokens",
                                     "flashinfer::MoeLoraTokensParams"};
inline constexpr jit::Kernel kStepCuda{"flashinfer/ops/moe/kernels/cuda/lora.cuh", "flashinfer::cu::moe_lora_step",
                                       "flashinfer::MoeLoraCudaParams"};
constexpr int kThreads = 128;

int64_t item_size(DType t) { return t == DType::kF32 ? 4 : 2; }
uint64_t bits_of(const void* data, std::initializer_list<int64_t> strides, DType t) {
  uint64_t bits = reinterpret_cast<uintptr_t>(data);
  for (const int64_t s : strides) bits |= static_cast<uint64_t>(s * item_size(t));
  return bits;
}
}  // namespace

MoeLoraPairs lora_pairs(const TensorView& sorted_token_ids, const TensorView& expert_ids,
                        const TensorView& lora_indices, const TensorView& w) {
  return {.token = ops::strided_indices(sorted_token_ids),
          .expert = ops::strided_indices(expert_ids),
          .adapter = ops::strided_indices(lora_indices),
          .pairs = static_cast<uint32_t>(sorted_token_ids.size(0)),
          .tokens = static_cast<uint32_t>(lora_indices.size(0)),
          .adapters = static_cast<uint32_t>(w.size(0)),
          .experts = static_cast<uint32_t>(w.size(1))};
}

LoraTokens add_lora_tokens(ops::CudaSteps& steps, const MoeLoraPairs& pairs) {
  const int64_t n = pairs.pairs, tokens = pairs.tokens;
  const TensorView ids = steps.scratch({n}, DType::kI32);
  const MoeLoraTokensParams named{pairs, ids.data_as<int32_t>()};
  constexpr int kEach = 256;
  steps.add([&] {
    const cuda::Launch l{
        .grid = {cuda::grid_size(ceil_div(n, int64_t{kEach})), 1, 1}, .block = {kEach, 1, 1}, .pdl = true};
    return ops::prepare_cuda<kTokens>(MoeCudaConfig{kEach}, named, steps.device(), l);
  });
  const LoraTokens out{steps.scratch({tokens + 1}, DType::kI32), steps.scratch({n}, DType::kI32)};
  const auto unused = [&] { return steps.scratch({n}, DType::kI32).data_as<int32_t>(); };
  const MoePermuteParams p{.ids = named.ids,
                           .offsets = out.offsets.data_as<int32_t>(),
                           .row_of = unused(),
                           .entry_of = out.entry_of.data_as<int32_t>(),
                           .expert_of = unused(),
                           .entries = static_cast<int32_t>(n),
                           .experts = static_cast<int32_t>(tokens),
                           .choices = 1,
                           .token_of = unused()};
  const cuda::Launch l = permute_launch(tokens);
  steps.add([&] {
    return ops::prepare_cuda<kPermuteCuda>(MoeCudaConfig{static_cast<int>(l.block[0])}, p, steps.device(), l);
  });
  return out;
}

MoeLoraCudaSlice lora_slice(const TensorView& w, const void* x, void* y) {
  return {.w = w.data(),
          .x = x,
          .y = y,
          .adapter = w.stride(0),
          .expert = w.stride(1),
          .row = w.stride(2),
          .n = static_cast<int32_t>(w.size(2)),
          .k = static_cast<int32_t>(w.size(3))};
}

void add_lora_step(ops::CudaSteps& steps, const LoraStep& step) {
  const int64_t n_of_piece = 16 / item_size(step.w);
  const auto x_piece = static_cast<uint64_t>(std::min<int64_t>(16, n_of_piece * item_size(step.x)));
  MoeLoraCudaConfig c{step.x, step.w, step.y, 1, 1, kThreads};
  int32_t widest = 0;
  int64_t pieces = 1;
  for (const MoeLoraCudaSlice& s : step.slices) {
    const uint64_t w = bits_of(s.w, {s.adapter, s.expert, s.row, s.k}, step.w),
                   x = bits_of(s.x, {step.params.x_row, s.k}, step.x);
    c.aligned = c.aligned && w % 16 == 0 && x % x_piece == 0;
    widest = std::max(widest, s.n);
    pieces = std::max(pieces, ceil_div(int64_t{s.k}, n_of_piece));
  }
  while (c.lanes < 32 && c.lanes < pieces) c.lanes = static_cast<short>(2 * c.lanes);
  const int64_t outputs = int64_t{kThreads / c.lanes} * kMoeLoraRows;
  for (size_t first = 0; first < step.slices.size(); first += kMoeLoraSlices) {
    MoeLoraCudaParams p = step.params;
    const size_t count = std::min<size_t>(kMoeLoraSlices, step.slices.size() - first);
    for (size_t i = 0; i < count; ++i) p.slice[i] = step.slices[first + i];
    if (p.column.data)
      p.column.data = static_cast<const char*>(p.column.data) +
                      static_cast<int64_t>(first) * p.column.stride * (p.column.wide ? 8 : 4);
    const cuda::Launch l{.grid = {cuda::grid_size(step.rows), cuda::grid_size(ceil_div(int64_t{widest}, outputs)),
                                  static_cast<unsigned>(count)},
                         .block = {kThreads, 1, 1},
                         .pdl = true};
    steps.add([&]() -> op::Prepared {
      if (step.rows >= int64_t{1} << 31) return op::Unsupported{"there are 2^31 rows or more"};
      return ops::prepare_cuda<kStepCuda>(c, p, steps.device(), l);
    });
  }
}

}  // namespace flashinfer::moe
