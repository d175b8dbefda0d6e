// SPDX-License-Identifier: Apache-2.0
// The matrix-product kernels of one ISA behind function pointers (see vec_entry.h).
#pragma once
#include "flashinfer/ops/gemm/kernels/params.h"

namespace flashinfer::test {

struct GemmEntry {
  const char* name;
  void (*plain)(const GemmParams&, int64_t task);   // b bf16 with strides, f32 out
  void (*packed)(const GemmParams&, int64_t task);  // b packed, f32 out
  void (*e4m3)(const GemmParams&, int64_t task);    // b e4m3 with strides, f16 out
  void (*q4_1)(const GemmParams&, int64_t task);    // prepared panels of GGUF blocks
  void (*q8_0)(const GemmParams&, int64_t task);
  void (*pack_a)(const GemmPackParams&, int64_t task);
  void (*pack_a_e5m2)(const GemmPackParams&, int64_t task);
  void (*pack_b)(const GemmPackParams&, int64_t task);
};

extern const GemmEntry kGemmPortable, kGemmV3, kGemmV4, kGemmBf16, kGemmAmx;

}  // namespace flashinfer::test
