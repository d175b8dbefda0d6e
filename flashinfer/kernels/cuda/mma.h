// SPDX-License-Identifier: Apache-2.0
// Tensor core instructions of sm_80: a warp multiplies 16 x 8 tiles from registers. Lane l = 4g + t (g = l / 4 is 0..7,
// t = l % 4):
//
//   A, 16 x 16, row-major              B, 16 x 8 (k x n), column-major     C, D, 16 x 8
//          k 2t,2t+1   2t+8,2t+9               n g                                 n 2t,2t+1
//   row g    a[0]        a[2]           k 2t,2t+1     b[0]                 row g    c[0] c[1]
//   row g+8  a[1]        a[3]           k 2t+8,2t+9   b[1]                 row g+8  c[2] c[3]
//
// A register holds two neighbouring elements, the lower index in the lower half. With e4m3 (k 32) it holds four: 2t
// becomes 4t, 8 becomes 16. So two accumulators of neighbouring n, rounded to pairs, are the A operand of a product
// over n: attention keeps P in registers.
//
// ldmatrix loads 8 x 8 matrices of 16-bit elements: lane l of 8j..8j+7 gives the address of row l - 8j of matrix j (16
// bytes, in shared memory), and lane 4g + t gets elements (g, 2t), (g, 2t + 1) of each matrix; transposed: (2t, g), (2t
// + 1, g). 8 rows of 16 bytes that cover all 32 banks are read without conflicts; rows of 64 or 128 elements need the
// swizzle below.
#pragma once
#include "flashinfer/core/scalar.h"
#include "flashinfer/kernels/cuda/cu.h"

namespace flashinfer::cu {

/// Operands and results of the wrappers (by value: an array whose address escapes would be kept in memory on the host).
struct Frag4 {
  uint32_t r[4];
};
struct Frag2 {
  uint32_t r[2];
};
struct Acc {
  float r[4];
};

/// Index of a 16-byte piece in shared rows of kPieces pieces (a power of two >= 2): pieces are permuted within groups
/// of 8 by the row, so that the 8 rows of a matrix fall into 8 different bank groups, for any column. It is its own
/// inverse: loads and stores use the same.
template <uint32_t kPieces>
FI_GLOBAL_FN constexpr uint32_t swizzle(uint32_t row, uint32_t piece) {
  if constexpr (kPieces >= 8)
    return row * kPieces + (piece ^ (row & 7u));
  else
    return row * kPieces + (piece ^ (row / (8 / kPieces) & (kPieces - 1)));
}

#if !defined(__CUDACC__)
namespace emulated {
#define FI_TWIN                                                                                        \
  __attribute__((noinline, no_sanitize("thread", "address", "bounds", "bounds-strict", "object-size"), \
                 optimize("O3"))) inline
struct Matrix {
  const void* row;
  uint32_t count, transposed, r[4];
};
FI_TWIN void load_matrices(void* const* operands, uint32_t) {
  const uint32_t n = static_cast<const Matrix*>(operands[0])->count,
                 transposed = static_cast<const Matrix*>(operands[0])->transposed;
  for (uint32_t j = 0; j < n; ++j) {
    uint16_t m[8][8];
    for (uint32_t i = 0; i < 8; ++i) __builtin_memcpy(m[i], static_cast<const Matrix*>(operands[8 * j + i])->row, 16);
    for (uint32_t l = 0; l < 32; ++l) {
      const uint32_t g = l / 4, t = l % 4;
      const uint32_t low = transposed ? m[2 * t][g] : m[g][2 * t],
                     high = transposed ? m[2 * t + 1][g] : m[g][2 * t + 1];
      static_cast<Matrix*>(operands[l])->r[j] = low | high << 16;
    }
  }
}
FI_TWIN void store_matrices(void* const* operands, uint32_t) {
  const uint32_t n = static_cast<const Matrix*>(operands[0])->count;
  for (uint32_t j = 0; j < n; ++j)
    for (uint32_t i = 0; i < 8; ++i) {
      char* row = const_cast<char*>(static_cast<const char*>(static_cast<const Matrix*>(operands[8 * j + i])->row));
      for (uint32_t t = 0; t < 4; ++t)
        __builtin_memcpy(row + 4 * t, &static_cast<const Matrix*>(operands[4 * i + t])->r[j], 4);
    }
}
FI_TWIN Matrix matrices(const void* row, uint32_t n, uint32_t transposed, const void* pc) {
  Matrix m{row, n, transposed, {}};
  emu::api->count(emu::Count::kMatrix, 1);
  if ((emu::api->now->linear & 31u) < 8 * n) emu::api->access(row, 16, emu::kRead | emu::kMatrix, pc);
  emu::api->meet(emu::Meeting::kMatrixLoad, kFullMask, &m, load_matrices, pc);
  return m;
}

struct Mma {
  Frag4 a;
  Frag2 b;
  Acc c, d;
};
/// Elements in f32, without branches, so that loops over them vectorise (the conversions of scalar.h took most of the
/// time of an emulated mma).
__attribute__((always_inline, no_sanitize("thread", "address"))) inline float widen(uint32_t bits, int exponent_bits,
                                                                                    int mantissa_bits,
                                                                                    bool finite_only) {
  const uint32_t magnitude = bits & ((1u << (exponent_bits + mantissa_bits)) - 1),
                 sign = bits >> (exponent_bits + mantissa_bits) << 31;
  const float scale =
      __builtin_bit_cast(float, static_cast<uint32_t>(127 + 127 - ((1 << (exponent_bits - 1)) - 1)) << 23);
  float y = __builtin_bit_cast(float, magnitude << (23 - mantissa_bits)) * scale;
  const uint32_t top =
      finite_only ? (1u << (exponent_bits + mantissa_bits)) - 1 : ((1u << exponent_bits) - 1) << mantissa_bits;
  if (magnitude >= top) y = magnitude > top || finite_only ? __builtin_nanf("") : __builtin_inff();
  return __builtin_bit_cast(float, __builtin_bit_cast(uint32_t, y) | sign);
}
template <class T>
__attribute__((always_inline, no_sanitize("thread", "address"))) inline float element(T x) {
  if constexpr (kSame<T, bf16_t>)
    return __builtin_bit_cast(float, static_cast<uint32_t>(x.bits) << 16);
  else if constexpr (kSame<T, f16_t>)
    return widen(x.bits, 5, 10, false);
  else
    return widen(x.bits, 4, 3, true);
}
/// 16 bits: the sum is computed in double and rounded once; a GPU's own order and truncation stay within 2^-10 of the
/// largest product.
template <class T>
FI_TWIN void multiply(void* const* operands, uint32_t) {
  constexpr int kPer = 4 / sizeof(T), kK = 8 * kPer;
  float a[16][kK];
  double b[kK][8], d[16][8];
  for (int l = 0; l < 32; ++l) {
    const Mma& m = *static_cast<const Mma*>(operands[l]);
    const int g = l / 4, t = l % 4;
    T x[kPer];
    for (int i = 0; i < 4; ++i) {
      __builtin_memcpy(x, &m.a.r[i], 4);
      for (int e = 0; e < kPer; ++e) a[g + i % 2 * 8][kPer * t + e + i / 2 * (kK / 2)] = element(x[e]);
    }
    for (int i = 0; i < 2; ++i) {
      __builtin_memcpy(x, &m.b.r[i], 4);
      for (int e = 0; e < kPer; ++e) b[kPer * t + e + i * (kK / 2)][g] = static_cast<double>(element(x[e]));
    }
    for (int i = 0; i < 4; ++i) d[g + i / 2 * 8][2 * t + i % 2] = static_cast<double>(m.c.r[i]);
  }
  for (int i = 0; i < 16; ++i)
    for (int k = 0; k < kK; ++k)
      for (int j = 0; j < 8; ++j) d[i][j] += static_cast<double>(a[i][k]) * b[k][j];
  for (int l = 0; l < 32; ++l)
    for (int i = 0; i < 4; ++i)
      static_cast<Mma*>(operands[l])->d.r[i] = static_cast<float>(d[l / 4 + i / 2 * 8][2 * (l % 4) + i % 2]);
}
/// FP8: products and c are aligned to the largest of them and cut to 14 bits before they are added, as GPUs are known
/// to do; so sums of many steps, or of terms of different size, lose what a kernel must not rely on.
template <>
FI_TWIN void multiply<e4m3_t>(void* const* operands, uint32_t) {
  double a[16][32], b[8][32];
  for (int l = 0; l < 32; ++l) {
    const Mma& m = *static_cast<const Mma*>(operands[l]);
    const int g = l / 4, t = l % 4;
    e4m3_t x[4];
    for (int i = 0; i < 4; ++i) {
      __builtin_memcpy(x, &m.a.r[i], 4);
      for (int e = 0; e < 4; ++e) a[g + i % 2 * 8][4 * t + e + i / 2 * 16] = static_cast<double>(element(x[e]));
    }
    for (int i = 0; i < 2; ++i) {
      __builtin_memcpy(x, &m.b.r[i], 4);
      for (int e = 0; e < 4; ++e) b[g][4 * t + e + i * 16] = static_cast<double>(element(x[e]));
    }
  }
  for (int l = 0; l < 32; ++l)
    for (int i = 0; i < 4; ++i) {
      Mma& m = *static_cast<Mma*>(operands[l]);
      const double *x = a[l / 4 + i / 2 * 8], *y = b[2 * (l % 4) + i % 2], c = static_cast<double>(m.c.r[i]);
      double terms[33], largest = c < 0 ? -c : c, sum = 0;
      terms[32] = c;
      for (int k = 0; k < 32; ++k) {
        terms[k] = x[k] * y[k];
        const double magnitude = terms[k] < 0 ? -terms[k] : terms[k];
        if (!(magnitude <= largest)) largest = magnitude;  // NaN stays
      }
      const uint64_t exponent = __builtin_bit_cast(uint64_t, largest) >> 52;
      if (exponent < 64 || exponent == 0x7ff) {  // nothing to align; infinities and NaN
        for (const double term : terms) sum += term;
      } else {
        // Adding 1.5 * 2^52 units rounds to units; one that is larger in magnitude than the term was rounded up.
        const double unit = __builtin_bit_cast(double, (exponent - 13) << 52), large = unit * 0x1.8p52;
        for (const double term : terms) {
          const double near = (term + large) - large;
          sum += near > term && term > 0 ? near - unit : near < term && term < 0 ? near + unit : near;
        }
      }
      m.d.r[i] = static_cast<float>(sum);
    }
}
#undef FI_TWIN
}  // namespace emulated
#endif

/// Loads four 8 x 8 matrices: lane l gives the address of row l % 8 of matrix l / 8. All lanes must participate.
FI_CU Frag4 load_matrix4(const void* row) {
#if defined(__CUDACC__)
  Frag4 f;
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(f.r[0]), "=r"(f.r[1]), "=r"(f.r[2]), "=r"(f.r[3])
               : "r"(static_cast<uint32_t>(__cvta_generic_to_shared(row)))
               : "memory");
  return f;
#else
  const emulated::Matrix m = emulated::matrices(row, 4, 0, FI_EMU_PC);
  return {{m.r[0], m.r[1], m.r[2], m.r[3]}};
#endif
}
/// The same, each matrix transposed: B from row-major memory (V of attention).
FI_CU Frag4 load_matrix4_transposed(const void* row) {
#if defined(__CUDACC__)
  Frag4 f;
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(f.r[0]), "=r"(f.r[1]), "=r"(f.r[2]), "=r"(f.r[3])
               : "r"(static_cast<uint32_t>(__cvta_generic_to_shared(row)))
               : "memory");
  return f;
#else
  const emulated::Matrix m = emulated::matrices(row, 4, 1, FI_EMU_PC);
  return {{m.r[0], m.r[1], m.r[2], m.r[3]}};
#endif
}
/// Stores four matrices to shared memory, addresses as for load_matrix4. One instruction on sm_90; before it, four
/// stores a lane.
FI_CU void store_matrix4(void* row, Frag4 f) {
#if !defined(__CUDACC__)
  emulated::Matrix m{row, 4, 0, {f.r[0], f.r[1], f.r[2], f.r[3]}};
  emu::api->count(emu::Count::kMatrix, 1);
  emu::api->access(row, 16, emu::kWrite | emu::kMatrix, FI_EMU_PC);
  emu::api->meet(emu::Meeting::kMatrixStore, kFullMask, &m, emulated::store_matrices, FI_EMU_PC);
#elif __CUDA_ARCH__ >= 900
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1,%2,%3,%4};" ::"r"(
                   static_cast<uint32_t>(__cvta_generic_to_shared(row))),
               "r"(f.r[0]), "r"(f.r[1]), "r"(f.r[2]), "r"(f.r[3])
               : "memory");
#else
  const uint32_t at = static_cast<uint32_t>(__cvta_generic_to_shared(row));
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    const uint32_t to = __shfl_sync(kFullMask, at, 8 * j + static_cast<int>(lane()) / 4) + lane() % 4 * 4;
    asm volatile("st.shared.u32 [%0], %1;" ::"r"(to), "r"(f.r[j]) : "memory");
  }
#endif
}

/// a * b + c for T = f16_t or bf16_t (m16n8k16), e4m3_t (m16n8k32, sm_89), products and sums in f32. All lanes must
/// participate.
template <class T>
FI_CU Acc mma(Frag4 a, Frag2 b, Acc c) {
#if defined(__CUDACC__)
  Acc d;
#define FI_MMA(shape, types)                                                                                \
  asm volatile("mma.sync.aligned." shape ".row.col.f32." types                                              \
               ".f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%11,%12,%13};"                             \
               : "=f"(d.r[0]), "=f"(d.r[1]), "=f"(d.r[2]), "=f"(d.r[3])                                     \
               : "r"(a.r[0]), "r"(a.r[1]), "r"(a.r[2]), "r"(a.r[3]), "r"(b.r[0]), "r"(b.r[1]), "f"(c.r[0]), \
                 "f"(c.r[1]), "f"(c.r[2]), "f"(c.r[3]))
  if constexpr (kSame<T, f16_t>)
    FI_MMA("m16n8k16", "f16.f16");
  else if constexpr (kSame<T, bf16_t>)
    FI_MMA("m16n8k16", "bf16.bf16");
  else
    FI_MMA("m16n8k32", "e4m3.e4m3");
#undef FI_MMA
  return d;
#else
  emulated::Mma m{a, b, c, {}};
  emu::api->count(emu::Count::kMma, 1);
  emu::api->meet(emu::Meeting::kMma, kFullMask, &m, emulated::multiply<T>, FI_EMU_PC);
  return m.d;
#endif
}

/// Rounds two f32 to a register of two T, `low` in the lower half.
template <class T>
FI_CU uint32_t pack2(float low, float high) {
#if defined(__CUDACC__)
  uint32_t y;
  if constexpr (kSame<T, f16_t>)
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(y) : "f"(high), "f"(low));
  else
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(y) : "f"(high), "f"(low));
  return y;
#else
  return static_cast<uint32_t>(T(low).bits) | static_cast<uint32_t>(T(high).bits) << 16;
#endif
}

}  // namespace flashinfer::cu
