// SPDX-License-Identifier: Apache-2.0
// Products with exact integer sums (kernels/cpu/int8_tile.h): what find_kernels() and run() call for them.
#pragma once
#include "flashinfer/ops/gemm/cpu/launch.h"

namespace flashinfer::gemm {

/// GGUF weights with quantised rows of A.
Kernels find_int8_kernels(const Product& p, ops::Lookup& lookup);
void run_int8(const Product& p, const Kernels& kernels);

/// Both operands FP4 with scales for the same blocks.
bool is_fp4_product(const Product& p);
Kernels find_fp4_kernels(const Product& p, ops::Lookup& lookup);
void run_fp4(const Product& p, const Kernels& kernels, std::span<const Group> groups);

}  // namespace flashinfer::gemm
