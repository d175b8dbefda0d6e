// SPDX-License-Identifier: Apache-2.0
// f32 scales of blocks of 128 along k in the layouts that cuBLASLt reads on compute capability 9.0.
#pragma once
#include <span>

#include "flashinfer/core/cuda/cublaslt.h"
#include "flashinfer/op/call.h"
#include "flashinfer/ops/gemm/kernels/params.h"

namespace flashinfer::gemm {

/// How cuBLASLt reads the scales of `lines` x k elements: kVec128F32 [blocks, lines], a scale for each line;
/// kBlock128F32 [lines / 128, padded], a scale for 128 lines. Both begin at 16 bytes.
struct LtGrid {
  cublaslt::ScaleMode mode = cublaslt::kVec128F32;
  int64_t lines = 0;               // of scales
  int64_t blocks = 0, padded = 0;  // of 128 along k; rounded up to a multiple of 4 with kBlock128F32
  int64_t share = 1;               // so many of `lines` have the scales of one line of what is given
  bool as_given = false;           // what is given has this layout
  int64_t size() const { return lines * padded; }
};
/// The layout for scales `given` of blocks of given.lines x 128. `squares`: kBlock128F32 where they are for 128 lines.
LtGrid lt_grid(const BlockScales& given, int64_t lines, int64_t k, bool squares);

struct GridMove {
  BlockScales from;
  LtGrid to;
  float* memory;  // to.size() floats on the device
};
/// One launch that copies the scales of one or two operands; zeros where `padded` is more than `blocks`.
op::Prepared prepare_grid_layout(std::span<const GridMove> moves, Device device);
/// The kernel, which no case row needs: it runs beside cuBLASLt alone.
void look_up_grid_layout(Device device);

}  // namespace flashinfer::gemm
