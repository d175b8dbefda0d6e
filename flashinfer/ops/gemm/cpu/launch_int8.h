// SPDX-License-Identifier: Apache-2.0
// Products with exact integer sums (kernels/cpu/int8_tile.h): what run() and refuse() call for them.
#pragma once
#include "flashinfer/ops/gemm/cpu/launch.h"

namespace flashinfer::gemm {

/// GGUF weights with quantised rows of A.
std::string refuse_bytes(const Product& p);
void run_bytes(const Product& p);

/// Both operands FP4 with scales for the same blocks.
bool is_fp4_product(const Product& p);
std::string refuse_fp4(const Product& p);
void run_fp4(const Product& p, std::span<const Group> groups);

}  // namespace flashinfer::gemm
