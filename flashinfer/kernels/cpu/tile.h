// SPDX-License-Identifier: Apache-2.0
// The register tile of AVX-512 products: 6 rows x 4 vectors of accumulators, 4 vectors of B and 4 broadcasts of A fill
// the 32 registers. Written in assembly because g++ 12 does not keep 24 accumulators in registers: with intrinsics it
// spills B or reloads it for every row, and reaches 0.81 of the peak from L1 where this reaches 0.97. 24 products take
// 4 loads and 6 broadcasts.
#pragma once
#include "flashinfer/kernels/cpu/vec.h"

// AddressSanitizer does not instrument assembly, so its builds use intrinsics.
#if defined(__AVX512F__) && !defined(__SANITIZE_ADDRESS__)
#define FI_CPU_TILE_ASM 1
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#undef FI_CPU_TILE_ASM
#endif
#endif
#endif

#if defined(FI_CPU_TILE_ASM)
namespace flashinfer::cpu {
namespace detail {

#define FI_TILE_EACH(OP, R0, R1, R2, R3, AT) OP(R0, AT, 0) OP(R1, AT, 64) OP(R2, AT, 128) OP(R3, AT, 192)
// clang-format off
#define FI_TILE_ROWS(OP)                                 \
  FI_TILE_EACH(OP, 0, 1, 2, 3, "(%[c])")                 \
  FI_TILE_EACH(OP, 4, 5, 6, 7, "(%[c],%[ldc])")          \
  FI_TILE_EACH(OP, 8, 9, 10, 11, "(%[c],%[ldc],2)")      \
  FI_TILE_EACH(OP, 12, 13, 14, 15, "(%[c3])")            \
  FI_TILE_EACH(OP, 16, 17, 18, 19, "(%[c3],%[ldc])")     \
  FI_TILE_EACH(OP, 20, 21, 22, 23, "(%[c3],%[ldc],2)")
// clang-format on
#define FI_TILE_LOAD(R, AT, OFFSET) "vmovups " #OFFSET AT ", %%zmm" #R "\n"
#define FI_TILE_STORE(R, AT, OFFSET) "vmovups %%zmm" #R ", " #OFFSET AT "\n"
#define FI_TILE_ZERO(R, AT, OFFSET) "vpxord %%zmm" #R ", %%zmm" #R ", %%zmm" #R "\n"
#define FI_TILE_ROW(MULTIPLY, R0, R1, R2, R3, AT, X)                                                         \
  "vpbroadcastd " AT ", %%zmm" #X "\n" MULTIPLY " %%zmm" #X ", %%zmm28, %%zmm" #R0 "\n" MULTIPLY " %%zmm" #X \
  ", %%zmm29, %%zmm" #R1 "\n" MULTIPLY " %%zmm" #X ", %%zmm30, %%zmm" #R2 "\n" MULTIPLY " %%zmm" #X          \
  ", %%zmm31, %%zmm" #R3 "\n"
#define FI_TILE(MULTIPLY) \
  asm volatile("test %[add], %[add]\n jz 1f\n" FI_TILE_ROWS(FI_TILE_LOAD) "jmp 2f\n"                            \
               "1:\n" FI_TILE_ROWS(FI_TILE_ZERO) ".p2align 5\n"                                                 \
               "2:\n vmovups (%[b]), %%zmm28\n vmovups 64(%[b]), %%zmm29\n vmovups 128(%[b]), %%zmm30\n"        \
               "vmovups 192(%[b]), %%zmm31\n add %[ldb], %[b]\n"                                                \
               FI_TILE_ROW(MULTIPLY, 0, 1, 2, 3, "(%[a])", 24)                                                  \
               FI_TILE_ROW(MULTIPLY, 4, 5, 6, 7, "(%[a],%[lda])", 25)                                           \
               FI_TILE_ROW(MULTIPLY, 8, 9, 10, 11, "(%[a],%[lda],2)", 26)                                       \
               FI_TILE_ROW(MULTIPLY, 12, 13, 14, 15, "(%[a3])", 27)                                             \
               FI_TILE_ROW(MULTIPLY, 16, 17, 18, 19, "(%[a3],%[lda])", 24)                                      \
               FI_TILE_ROW(MULTIPLY, 20, 21, 22, 23, "(%[a3],%[lda],2)", 25)                                    \
               "add $4, %[a]\n add $4, %[a3]\n dec %[n]\n jnz 2b\n" FI_TILE_ROWS(FI_TILE_STORE)                 \
               : [a] "+r"(a), [a3] "+r"(a3), [b] "+r"(b), [n] "+r"(n)                                           \
               : [lda] "r"(4 * lda), [ldb] "r"(4 * ldb), [c] "r"(c), [c3] "r"(c + 3 * ldc), [ldc] "r"(4 * ldc), \
                 [add] "r"(static_cast<int>(add))                                                               \
               : "memory", "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8",        \
                 "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15", "xmm16", "xmm17", "xmm18",       \
                 "xmm19", "xmm20", "xmm21", "xmm22", "xmm23", "xmm24", "xmm25", "xmm26", "xmm27", "xmm28",      \
                 "xmm29", "xmm30", "xmm31")
}  // namespace detail

/// c[6][64] (+)= a[6][n cells] * b[n cells][64], n >= 1; leading dimensions in cells of 4 bytes. A cell is a float or,
/// with Pairs, two bf16. Each element is one chain, ascending in cells, as in a loop of fma or dot_pairs.
template <bool Pairs>
inline void tile_6x4(const uint32_t* a, int64_t lda, const uint32_t* b, int64_t ldb, float* c, int64_t ldc, int64_t n,
                     bool add) {
  const uint32_t* a3 = a + 3 * lda;
  if constexpr (Pairs) {
#if defined(__AVX512BF16__)
    FI_TILE("vdpbf16ps");
#endif
  } else {
    FI_TILE("vfmadd231ps");
  }
}

#undef FI_TILE_EACH
#undef FI_TILE_ROWS
#undef FI_TILE_LOAD
#undef FI_TILE_STORE
#undef FI_TILE_ZERO
#undef FI_TILE_ROW
#undef FI_TILE
}  // namespace flashinfer::cpu
#endif
