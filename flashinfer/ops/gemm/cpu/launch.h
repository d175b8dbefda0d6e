// SPDX-License-Identifier: Apache-2.0
// From checked arguments to kernel calls: which artifact, which blocks, which scratch.
#pragma once
#include <span>

#include "flashinfer/core/int_math.h"
#include "flashinfer/core/tensor.h"
#include "flashinfer/ops/common/lookup.h"
#include "flashinfer/ops/gemm/kernels/params.h"

namespace flashinfer::gemm {

/// Rows of A or columns of B, each along k; strides in elements of storage (FP4: bytes).
struct Operand {
  const void* data = nullptr;
  GemmFormat format = GemmFormat::kBF16;
  int64_t line = 0, step = 0, batch = 0;
  ScaleFactors sf{};
  int64_t block_k = 0, block_stride = 0;  // GemmParams::b_block_k
  bool interleaved = false;
};
GemmFormat format_of(DType t);  // bf16, f16, e4m3, e5m2; FP4 for its two names
/// [batch, m, k], [m, k], FP4: [..., k / 2]
Operand rows_of(const TensorView& a);
/// [batch, k, n], [k, n], FP4: [..., k / 2, n]
Operand columns_of(const TensorView& b);

/// Rows [row, row + rows) of A and of the output, times matrix `weight` of B's batch.
struct Group {
  int64_t row = 0, rows = 0, weight = 0;
  int64_t sf_first = 0;  // row of A's scale factors that is the group's first
  float alpha = 1;
};

/// What all products of the family are: out[i] = (a[i] . b[i]) * scale_a * scale_b * alphas + bias, or with groups,
/// out[rows of g] = (a[rows of g] . b[weight of g]) * scale_a * scale_b * alpha of g.
struct Product {
  int64_t batch = 1, m = 0, n = 0, k = 0;
  int64_t split_k = 0;  // GemmParams
  Operand a, b;
  bool packed = false;         // b is panels of a prepare op, `line` elements (bytes, but for bf16) apart
  const void* bias = nullptr;  // bf16[n]
  float scale_a = 1, scale_b = 1;
  const float *alpha_a = nullptr, *alpha_b = nullptr;  // one more factor each, read when the product is computed
  void* out = nullptr;
  int64_t out_row = 0, out_batch = 0;
  DType out_dtype = DType::kBF16;
  BlockScales a_grid{}, b_grid{};
  int64_t grid_k = 0;  // of a block of the grids; 0: none
  bool grouped = false;
  std::span<const Group> groups{};
  bool quantize_a = false;  // GGUF b: rows of a (bf16) in blocks of 8 bits

  void set_out(const TensorView& t);  // [batch, m, n] or [m, n]; sets the extents too
};

/// How a product is cut into tasks; results do not depend on it.
struct Blocks {
  int64_t rows_per_task, panels_per_task;
  int64_t packed_rows;  // rows of A brought into blocks of 8 first
  bool copy_rest;       // the rows after them are copied too: not bf16, k strided or odd
};
Blocks choose_blocks(int64_t batch, int64_t m, int64_t n, int64_t k, bool direct_a, int threads,
                     double bytes_of_element = 2, double gflops = 220);

/// The kernels of a product.
struct Kernels {
  jit::CpuFn product = nullptr;
  jit::CpuFn rows = nullptr;  // packs or quantises rows of A; null where they are read in place
  jit::CpuFn sums = nullptr;  // GGUF with minima: sums of rows of A
  bool plain_rows = false;    // product takes rows of A with k contiguous, not blocks (kernels/cpu/gemm_amx.h)
};
/// They depend on formats, packing, the blocks of scales, and whether m > 8; not on pointers, groups or other extents.
Kernels find_kernels(const Product& p, ops::Lookup& lookup);
void run(const Product& p, const Kernels& kernels);
/// Both; not for grouped products, whose groups belong to the caller (grouped/work.h).
op::Prepared prepare(const Product& p);

/// Fills out[panels, lines, 32] from b[k, n].
op::Prepared prepare_pack_weights(const TensorView& b, const TensorView& out);

}  // namespace flashinfer::gemm
