// SPDX-License-Identifier: Apache-2.0
// From checked arguments to kernel calls: which artifact, which blocks, which scratch.
#pragma once
#include <string>

#include "flashinfer/core/tensor.h"
#include "flashinfer/ops/gemm/params.h"

namespace flashinfer::gemm {

/// What all products of the family are: out[i] = (a[i] . b[i]) * scale_a * scale_b + bias.
struct Product {
  TensorView a;  // [batch, m, k]
  TensorView b;  // [batch, k, n], or packed [panels, lines, 32] with batch 1
  bool packed = false;
  TensorView bias;  // [n] bf16, or undefined
  float scale_a = 1, scale_b = 1;
  TensorView out;  // [batch, m, n]
};

/// How a product is cut into tasks; results do not depend on it.
struct Blocks {
  int64_t rows_per_task, panels_per_task;
  int64_t packed_rows;  // rows of A brought into blocks of 8 first
  bool copy_rest;       // the rows after them are copied too: not bf16, k strided or odd
};
Blocks choose_blocks(int64_t batch, int64_t m, int64_t n, int64_t k, bool direct_a, int threads);
/// A is read in place when its rows are bf16 with k contiguous and even.
bool direct_a(const TensorView& a);

GemmConfig config_of(const Product& p);
GemmPackConfig pack_config_of(const TensorView& a);
/// Why the kernels that `p` needs cannot run here; empty when they can.
std::string refuse(const Product& p);
void run(const Product& p);

std::string refuse_pack_weights(const TensorView& b);
/// Fills out[panels, lines, 32] from b[k, n].
void pack_weights(const TensorView& b, const TensorView& out);

}  // namespace flashinfer::gemm
