// SPDX-License-Identifier: Apache-2.0
// Products on GPUs, of all formats, by one kernel (kernels/cuda/gemm.cuh).
#pragma once
#include <optional>

#include "flashinfer/jit/cuda.h"
#include "flashinfer/op/call.h"
#include "flashinfer/ops/gemm/cpu/launch.h"
#include "flashinfer/ops/gemm/kernels/cuda_params.h"

namespace flashinfer::gemm {

/// The groups of a product as arrays that the kernel reads: no host needs their contents.
struct GroupIndex {
  GemmGroups kind = GemmGroups::kBatch;
  std::optional<TensorView> index{};    // GemmGroups, i32 or i64
  std::optional<TensorView> weights{};  // the matrix of each group, i32 or i64
  std::optional<TensorView> alpha{};    // f32, a factor of each group
  int64_t groups = 0;                   // kOffsets, kLengths
  unsigned char factor_pad = 0;         // GemmCudaParams
  std::optional<TensorView> gather{};   // i32: the line of A, of `lines`, of each row of the result
  int64_t lines = 0;
  int64_t matrices = 1;  // of B
  float beta = 0;        // factor of what the result holds before
};

/// The tile of a product: rows of a group on average, columns, blocks of scales along k (0: none).
struct GemmTile {
  short rows, columns, depth;
  unsigned char warps_m, warps_n, warps_k;
};
/// Nothing: scales of blocks of that length are unsupported.
std::optional<GemmTile> choose_tile(int64_t rows, int64_t groups, int64_t n, int64_t grid, bool tensor_cores,
                                    bool gguf = false);

/// Unsupported: packed weights, blocks of scales that are no multiple of 16, extents from 2^31 on.
op::Prepared prepare_cuda(const Product& p, const GroupIndex& groups, Device device);

}  // namespace flashinfer::gemm
