// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/gemm/kernels/cpu/gemm.h"
#include "gemm_entry.h"

#define FI_GEMM_ENTRY(variable, label)                                              \
  extern const GemmEntry variable;                                                  \
  const GemmEntry variable = {label,                                                \
                              cpu::gemm<GemmConfig{GemmFormat::kBF16, 0, 0}>,       \
                              cpu::gemm<GemmConfig{GemmFormat::kBF16, 1, 0}>,       \
                              cpu::gemm<GemmConfig{GemmFormat::kE4M3, 0, 0}>,       \
                              cpu::gemm<GemmConfig{GemmFormat::kQ4_1, 1, 1}>,       \
                              cpu::gemm<GemmConfig{GemmFormat::kQ8_0, 1, 1}>,       \
                              cpu::gemm_pack<GemmPackConfig{GemmFormat::kBF16, 1}>, \
                              cpu::gemm_pack<GemmPackConfig{GemmFormat::kE5M2, 1}>, \
                              cpu::gemm_pack<GemmPackConfig{GemmFormat::kBF16, 0}>}
