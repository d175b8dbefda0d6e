// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/gemm/cpu.h"
#include "gemm_entry.h"

#define FI_GEMM_ENTRY(variable, label)                                               \
  extern const GemmEntry variable;                                                   \
  const GemmEntry variable = {label,                                                 \
                              cpu::gemm<GemmConfig{DType::kBF16, DType::kF32, 0}>,   \
                              cpu::gemm<GemmConfig{DType::kBF16, DType::kF32, 1}>,   \
                              cpu::gemm<GemmConfig{DType::kF8E4M3, DType::kF16, 0}>, \
                              cpu::gemm_pack<GemmPackConfig{DType::kBF16, 1}>,       \
                              cpu::gemm_pack<GemmPackConfig{DType::kF8E5M2, 1}>,     \
                              cpu::gemm_pack<GemmPackConfig{DType::kBF16, 0}>}
