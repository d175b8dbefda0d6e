// SPDX-License-Identifier: Apache-2.0
// Products of bf16 pairs on AMX: tiles of up to 16 rows x 16 columns, 16 pairs of k in one instruction. The library
// asks the kernel for the tiles' registers before it compiles for them (jit/toolchain.cc).
#pragma once
#include "flashinfer/kernels/cpu/tile.h"

#if defined(__AMX_BF16__) && defined(FI_CPU_TILE_ASM)
#include <immintrin.h>
#define FI_CPU_AMX 1

namespace flashinfer::cpu {

/// The shapes that this thread's tile registers have; 0: none.
inline thread_local uint32_t t_tile_shapes = 0;

/// A task that multiplies by tiles holds one: other code in this thread may use tiles before and after it, and the
/// registers are not saved at context switches when they are released.
struct TileScope {
  TileScope() { t_tile_shapes = 0; }
  ~TileScope() {
    if (t_tile_shapes != 0) _tile_release();
    t_tile_shapes = 0;
  }
  TileScope(const TileScope&) = delete;
  TileScope& operator=(const TileScope&) = delete;
};

namespace detail {
struct alignas(64) TileConfig {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};
};

/// Tiles 0 to 3: sums [rows][16]. 4 and 5: operands [rows][16 pairs] and [16 pairs][16]. 6 and 7: the same with `tail`
/// pairs.
inline void shape_tiles(int64_t rows, int64_t tail) {
  const uint32_t shapes = static_cast<uint32_t>(256 * rows + tail);
  if (t_tile_shapes == shapes) return;
  t_tile_shapes = shapes;
  TileConfig c;
  for (int t = 0; t < 6; ++t) c.row_bytes[t] = 64, c.rows[t] = static_cast<uint8_t>(rows);
  c.rows[5] = 16;
  if (tail > 0) {
    c.row_bytes[6] = static_cast<uint16_t>(4 * tail), c.rows[6] = static_cast<uint8_t>(rows);
    c.row_bytes[7] = 64, c.rows[7] = static_cast<uint8_t>(tail);
  }
  asm volatile("ldtilecfg %0" ::"m"(c));  // g++ 12's intrinsic reads 8 bytes of it
}

/// 16 * N columns; N is 2 or 4.
template <int N>
inline void multiply_tiles(const uint32_t* a, int64_t lda, const uint32_t* b, int64_t ldb, float* c, int64_t ldc,
                           int64_t n, bool add) {
  if (add) {
    _tile_loadd(0, c, 4 * ldc);
    _tile_loadd(1, c + 16, 4 * ldc);
    if constexpr (N == 4) {
      _tile_loadd(2, c + 32, 4 * ldc);
      _tile_loadd(3, c + 48, 4 * ldc);
    }
  } else {
    _tile_zero(0);
    _tile_zero(1);
    if constexpr (N == 4) {
      _tile_zero(2);
      _tile_zero(3);
    }
  }
#define FI_TILE_STEP(A, B)           \
  _tile_loadd(A, a, 4 * lda);        \
  _tile_loadd(B, b, 4 * ldb);        \
  _tile_dpbf16ps(0, A, B);           \
  _tile_loadd(B, b + 16, 4 * ldb);   \
  _tile_dpbf16ps(1, A, B);           \
  if constexpr (N == 4) {            \
    _tile_loadd(B, b + 32, 4 * ldb); \
    _tile_dpbf16ps(2, A, B);         \
    _tile_loadd(B, b + 48, 4 * ldb); \
    _tile_dpbf16ps(3, A, B);         \
  }
  for (; n >= 16; n -= 16, a += 16, b += 16 * ldb) {
    FI_TILE_STEP(4, 5)
  }
  if (n > 0) {
    FI_TILE_STEP(6, 7)
  }
#undef FI_TILE_STEP
  _tile_stored(0, c, 4 * ldc);
  _tile_stored(1, c + 16, 4 * ldc);
  if constexpr (N == 4) {
    _tile_stored(2, c + 32, 4 * ldc);
    _tile_stored(3, c + 48, 4 * ldc);
  }
}
}  // namespace detail

/// c[rows][columns] (+)= a[rows][n cells] * b[n cells][columns], a cell being two bf16; rows <= 16, columns a multiple
/// of 32, n >= 1. Of each 16 cells the first and the second elements are summed one after another, then both sums are
/// added to c: an element's value depends on neither rows nor columns. Within a TileScope.
inline void tile_product(int64_t rows, const uint32_t* a, int64_t lda, const uint32_t* b, int64_t ldb, float* c,
                         int64_t ldc, int64_t n, int64_t columns, bool add) {
  detail::shape_tiles(rows, n % 16);
  asm volatile("" ::: "memory");  // g++ 12's tile loads do not say that they read memory
  int64_t j = 0;
  for (; j + 64 <= columns; j += 64) detail::multiply_tiles<4>(a, lda, b + j, ldb, c + j, ldc, n, add);
  if (j < columns) detail::multiply_tiles<2>(a, lda, b + j, ldb, c + j, ldc, n, add);
}

}  // namespace flashinfer::cpu
#endif
