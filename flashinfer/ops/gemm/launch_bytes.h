// SPDX-License-Identifier: Apache-2.0
// Products with quantised rows of A (bytes_cpu.h): what run() and refuse() call for them.
#pragma once
#include "flashinfer/ops/gemm/launch.h"

namespace flashinfer::gemm {
std::string refuse_bytes(const Product& p);
void run_bytes(const Product& p);
}  // namespace flashinfer::gemm
