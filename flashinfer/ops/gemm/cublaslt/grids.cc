// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/gemm/cublaslt/grids.h"

#include <algorithm>

#include "flashinfer/core/int_math.h"
#include "flashinfer/jit/targets.h"
#include "flashinfer/ops/common/cuda.h"
#include "flashinfer/ops/gemm/kernels/grid_layout_params.h"

namespace flashinfer::gemm {
namespace {

inline constexpr jit::Kernel kGridLayout{"flashinfer/ops/gemm/kernels/cuda/grid_layout.cuh",
                                         "flashinfer::cu::grid_layout", "flashinfer::GridLayoutParams"};
constexpr GridLayoutConfig kConfig{.threads = 128};

}  // namespace

LtGrid lt_grid(const BlockScales& given, int64_t lines, int64_t k, bool squares) {
  const int64_t blocks = ceil_div(k, int64_t{128});
  const bool aligned = reinterpret_cast<uintptr_t>(given.p) % 16 == 0;
  if (squares && given.lines == 128) {
    LtGrid g{.mode = cublaslt::kBlock128F32,
             .lines = ceil_div(lines, int64_t{128}),
             .blocks = blocks,
             .padded = round_up(blocks, int64_t{4})};
    g.as_given = aligned && blocks == g.padded && given.k_stride == 1 && (given.line_stride == blocks || g.lines == 1);
    return g;
  }
  LtGrid g{.lines = lines, .blocks = blocks, .padded = blocks, .share = given.lines};
  g.as_given = aligned && given.lines == 1 && given.line_stride == 1 && (given.k_stride == lines || blocks == 1);
  return g;
}

op::Prepared prepare_grid_layout(std::span<const GridMove> moves, Device device) {
  GridLayoutParams p{};
  int64_t lines = 0, padded = 0;
  for (size_t i = 0; i < moves.size(); ++i) {
    const auto& [from, to, memory] = moves[i];
    const bool squares = to.mode == cublaslt::kBlock128F32;
    p.of[i] = {.from = from.p,
               .to = memory,
               .from_line = from.line_stride,
               .from_block = from.k_stride,
               .to_line = squares ? to.padded : 1,
               .to_block = squares ? 1 : to.lines,
               .lines = static_cast<uint32_t>(to.lines),
               .share = static_cast<uint32_t>(std::min<int64_t>(to.share, UINT32_MAX)),
               .blocks = static_cast<uint32_t>(to.blocks),
               .padded = static_cast<uint32_t>(to.padded)};
    lines = std::max(lines, to.lines), padded = std::max(padded, to.padded);
  }
  const cuda::Launch launch{.grid = {cuda::grid_size(ceil_div(lines, int64_t{kConfig.threads})),
                                     cuda::grid_size(ceil_div(padded, int64_t{GridLayoutConfig::kBlocks})),
                                     cuda::grid_size(std::ssize(moves))},
                            .block = {static_cast<unsigned>(kConfig.threads), 1, 1},
                            .pdl = true};
  return ops::prepare_cuda<kGridLayout>(kConfig, p, device, launch);
}

void look_up_grid_layout(Device device) {
  if (jit::arch_number(device) == 90) jit::cuda_kernel<kGridLayout>(kConfig, device);
}

}  // namespace flashinfer::gemm
