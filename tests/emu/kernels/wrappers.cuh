// SPDX-License-Identifier: Apache-2.0
// Wrappers that few kernels of the library use, each alone in a kernel whose answer is known. The emulator runs them;
// NVRTC compiles them.
#pragma once
#include "flashinfer/kernels/cuda/async.h"
#include "flashinfer/kernels/cuda/cluster.h"
#include "flashinfer/kernels/cuda/halves.h"
#include "flashinfer/kernels/cuda/math.h"
#include "flashinfer/kernels/cuda/memory.h"
#include "flashinfer/kernels/cuda/mma.h"
#include "flashinfer/kernels/cuda/warp.h"
#include "tests/emu/kernels/params.h"

namespace flashinfer::cu {

/// out (16 x 8) = A (16 x 32) B (32 x 8) + out, in e4m3: fragments as mma.h draws them, four bytes of k a register. in:
/// A row-major, then B's columns, one byte an element.
FI_GLOBAL_FN void product_e4m3(const PlantedParams& p) {
  const uint32_t* a = reinterpret_cast<const uint32_t*>(p.in);  // 8 words a row
  const uint32_t* b = a + 128;                                  // 8 words a column
  const uint32_t g = lane() / 4, t = lane() % 4;
  Acc c;
  for (uint32_t i = 0; i < 4; ++i) c.r[i] = p.out[(g + i / 2 * 8) * 8 + 2 * t + i % 2];
  c = mma<e4m3_t>({{a[8 * g + t], a[8 * (g + 8) + t], a[8 * g + t + 4], a[8 * (g + 8) + t + 4]}},
                  {{b[8 * g + t], b[8 * g + t + 4]}}, c);
  for (uint32_t i = 0; i < 4; ++i) p.out[(g + i / 2 * 8) * 8 + 2 * t + i % 2] = c.r[i];
}

/// All codes of both 8-bit floats as f16, four at a time: 128 words of pairs (0, 1) and (2, 3), then of (0, 2) and
/// (1, 3); e4m3, then e5m2.
FI_GLOBAL_FN void eight_bits(const PlantedParams& p) {
  uint32_t* out = reinterpret_cast<uint32_t*>(p.out);
  for (uint32_t i = lane(); i < 64; i += 32) {
    const uint32_t codes = 0x03020100u + i * 0x04040404u;
    const TwoPairs all[] = {four_halves<e4m3_t, false>(codes), four_halves<e4m3_t, true>(codes),
                            four_halves<e5m2_t, false>(codes), four_halves<e5m2_t, true>(codes)};
    for (uint32_t j = 0; j < 8; ++j) out[j / 2 * 128 + 2 * i + j % 2] = all[j / 2].r[j % 2];
  }
}

/// A 16 x 16 tile of 16-bit numbers by stmatrix, from the layout of an mma's accumulators (matrix j: rows 8 (j % 2),
/// columns 8 (j / 2)), then row by row to out. kSync: with the barrier that shows the stores to other lanes; kSwizzled:
/// rows of 64 elements, else 16.
template <bool kSync, bool kSwizzled>
FI_GLOBAL_FN void store_tile(const PlantedParams& p) {
  constexpr uint32_t kPieces = kSwizzled ? 8 : 2;
  const auto at = [](uint32_t row, uint32_t piece) {
    return shared() + 16 * (kSwizzled ? swizzle<kPieces>(row, piece) : row * kPieces + piece);
  };
  const uint32_t g = lane() / 4, t = lane() % 4;
  Frag4 f;
  for (uint32_t j = 0; j < 4; ++j) {
    const uint32_t first = (g + j % 2 * 8) * 16 + j / 2 * 8 + 2 * t;  // the number of an element is its place
    f.r[j] = first | (first + 1) << 16;
  }
  store_matrix4(at(lane() % 16, lane() / 16), f);
  if (kSync) sync_warp();
  for (uint32_t i = lane(); i < 128; i += 32) {
    const uint32_t row = i / 8, word = i % 8;
    const Pack<uint32_t, 1> x = load_shared<1>(reinterpret_cast<const uint32_t*>(at(row, word / 4)) + word % 4);
    p.out[2 * i] = static_cast<float>(x[0] & 0xffffu), p.out[2 * i + 1] = static_cast<float>(x[0] >> 16);
  }
}

/// Copies of 1, 2, 4, 8 and 16 bytes a lane, each with both hints; two go through shared memory.
template <class T, int N>
FI_GLOBAL_FN void copy_piece(const char* from, char* to) {
  const T* x = reinterpret_cast<const T*>(from) + N * lane();
  T* y = reinterpret_cast<T*>(to) + N * lane();
  store<Hint::kOnce>(y, load<N>(x));
  T* tile = reinterpret_cast<T*>(shared()) + N * lane();
  store_shared(tile, load<N, Hint::kOnce>(x + 32 * N));
  store(y + 32 * N, load_shared<N>(tile));
  sync_warp();  // the next piece is cut otherwise
}
FI_GLOBAL_FN void copies(const PlantedParams& p) {
  const char* from = reinterpret_cast<const char*>(p.in);
  char* to = reinterpret_cast<char*>(p.out);
  copy_piece<uint8_t, 1>(from, to);
  copy_piece<uint16_t, 1>(from + 64, to + 64);
  copy_piece<uint8_t, 4>(from + 192, to + 192);
  copy_piece<uint16_t, 4>(from + 448, to + 448);
  copy_piece<float, 4>(from + 960, to + 960);
}

/// Two warps and a tile: warp 0 writes and only arrives, warp 1 waits, reads, and gives the tile back at another
/// barrier, four times.
template <bool kBack>
FI_GLOBAL_FN void hand_over(const PlantedParams& p) {
  float* tile = reinterpret_cast<float*>(shared());
  for (uint32_t round = 0; round < 4; ++round) {
    if (warp() == 0) {
      if (round > 0 && kBack) barrier_sync(2, 64);
      tile[lane()] = p.in[32 * round + lane()];
      barrier_arrive(1, 64);
    } else {
      barrier_sync(1, 64);
      p.out[32 * round + lane()] = tile[31 - lane()];
      if (round < 3 && kBack) barrier_arrive(2, 64);
    }
  }
}

/// Each block of a cluster sums what all of them hold; the kernel in front is waited for, the next one let go.
FI_GLOBAL_FN void cluster_sum(const PlantedParams& p) {
  float* mine = reinterpret_cast<float*>(shared());
  depend_wait();
  mine[thread_x()] = p.in[block_x() * 32 + thread_x()];
  cluster_arrive();
  cluster_wait();
  float sum = 0;
  for (uint32_t r = 0; r < cluster_blocks(); ++r)
    sum += *map_shared(mine + thread_x(), (cluster_rank() + r) % cluster_blocks());
  p.out[block_x() * 32 + thread_x()] = sum;
  cluster_arrive();
  cluster_wait();  // no block leaves while others read
  depend_launch();
}

/// out[8 l ..] of lane l: the special functions of in[l].
FI_GLOBAL_FN void special(const PlantedParams& p) {
  const float x = p.in[lane()];
  float* y = p.out + 8 * lane();
  y[0] = exp2_fast(x), y[1] = log2_fast(x * x), y[2] = rcp_fast(x), y[3] = rsqrt_fast(x * x), y[4] = tanh_fast(x),
  y[5] = exp_fast(x), y[6] = sigmoid_fast(x);
}

}  // namespace flashinfer::cu
