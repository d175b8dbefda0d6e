// SPDX-License-Identifier: Apache-2.0
// The vector type of one ISA behind function pointers, so that one test program holds the copies for all of them: each
// vec_<isa>.cc is compiled with its own -march and includes vec_entry-inl.h. No standard header goes there: an inline
// function of the standard library compiled for AVX-512 could be the copy that the linker keeps.
#pragma once
#include <stdint.h>

#include "flashinfer/core/scalar.h"

namespace flashinfer::test {

enum class Unary {
  kExp2,
  kExp,
  kSigmoid,
  kSilu,
  kTanh,
  kGeluTanh,
  kErf,
  kGeluErf,
  kSqrt,
  kRound,
  kAbs,
  kNeg,
  kSiluBf16,
  kSiluF16,
  kExp2Falling
};

struct VecEntry {
  const char* name;
  int lanes;
  void (*map)(Unary f, const float* x, float* y, int64_t n);  // full vectors, then one masked tail
  void (*widen)(DType from, const void* x, float* y, int64_t n);
  void (*narrow)(DType to, const float* x, void* y, int64_t n);                        // saturating for fp8
  void (*fused)(const float* a, const float* b, const float* c, float* y, int64_t n);  // fma, then fnma into y + n
  void (*order)(const float* a, const float* b, float* y, int64_t n);                  // min into y, max into y + n
  void (*reduce)(const float* x, float* y);                                            // one vector: sum, max, min
  void (*scale)(const float* x, const float* n, float* y, int64_t count);              // ldexp
  float (*dot)(const bf16_t* a, const bf16_t* b, int64_t n);                           // by Pairs, masked tail
  void (*to_e2m1)(const float* x, uint8_t* y, int64_t n);  // n a multiple of 16, two codes a byte
  void (*from_e2m1)(const uint8_t* x, float* y, int64_t n);
};

extern const VecEntry kVecPortable, kVecV3, kVecV4, kVecBf16;

}  // namespace flashinfer::test
