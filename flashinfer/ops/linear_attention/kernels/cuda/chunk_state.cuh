// SPDX-License-Identifier: Apache-2.0
// What the kernels by chunks share beside products: a state in the accumulators of a block, and sums of the logarithms
// of a chunk's decays.
#pragma once
#include "flashinfer/kernels/cuda/math.h"
#include "flashinfer/kernels/cuda/memory.h"
#include "flashinfer/kernels/cuda/warp.h"
#include "flashinfer/ops/linear_attention/kernels/cuda/chunk_tiles.cuh"

namespace flashinfer::cu::linear {

/// Rows and columns of this warp's and lane's elements of an accumulator tile.
FI_GLOBAL_FN uint32_t warp_row() { return 16 * warp(); }
FI_GLOBAL_FN uint32_t lane_row() { return lane() / 4; }
FI_GLOBAL_FN uint32_t lane_pair() { return lane() % 4 * 2; }

/// 0, which the compiler does not know: addresses made of it in a loop are computed there, instead of being kept in
/// registers from before it.
FI_GLOBAL_FN uint32_t unknown_zero() {
  Pack<uint32_t, 1> x{{0}};
  forget(x);
  return x[0];
}

/// Column j of 16, which two neighbouring tiles hold, of the lane's row: element kRow of the tiles' registers (0: row
/// lane / 4; 2: that + 8). j is no constant.
template <int kRow>
FI_GLOBAL_FN float of_column(const Acc (&x)[2], uint32_t j) {
  const float left = j % 2 ? x[0].r[kRow + 1] : x[0].r[kRow], right = j % 2 ? x[1].r[kRow + 1] : x[1].r[kRow];
  return shuffle(j < 8 ? left : right, lane() / 4 * 4 + j % 8 / 2);
}
/// Infinite or NaN.
FI_GLOBAL_FN bool not_finite(float x) { return x - x != 0.0f; }

/// Of 16 rows or columns of a tile, the value channel of the one that a lane holds in half h of a register tile: in
/// order, or, kQuads, so that a lane's two columns of one half and of the other are four channels side by side.
template <bool kQuads>
FI_GLOBAL_FN uint32_t channel_of(uint32_t at, uint32_t h) {
  return kQuads ? at / 2 * 4 + 2 * h + at % 2 : at + 8 * h;
}
/// f(element, its pair's place) for each pair of the warp's rows 16 warp .. + 16 of a state, of which `rows` exist.
/// Rows are aligned to 16 bytes.
template <int N, bool kQuads, class T, class F>
FI_GLOBAL_FN void each_pair(T* tile, int64_t stride, int32_t rows, F f) {
#pragma unroll
  for (int i = 0; i < 4; i += 2) {
    const uint32_t row = warp_row() + channel_of<kQuads>(lane_row(), static_cast<uint32_t>(i) / 2);
    if (static_cast<int32_t>(row) >= rows) continue;
    T* const at = tile + row * stride + lane_pair();
#pragma unroll
    for (int j = 0; j < N; ++j) f(at + 8 * j, i, j);
  }
}
template <bool kQuads = false, int N, class T>
FI_GLOBAL_FN void load_state(Acc (&s)[N], const T* tile, int64_t stride, int32_t rows) {
  each_pair<N, kQuads>(tile, stride, rows, [&](const T* at, int i, int j) {
    const Pack<T, 2> x = load<2>(at);
    s[j].r[i] = to_f32(x[0]), s[j].r[i + 1] = to_f32(x[1]);
  });
}
template <bool kQuads = false, int N, class T>
FI_GLOBAL_FN void store_state(const Acc (&s)[N], T* tile, int64_t stride, int32_t rows) {
  each_pair<N, kQuads>(tile, stride, rows, [&](T* at, int i, int j) {
    store(at, Pack<T, 2>{{from_f32<T>(s[j].r[i]), from_f32<T>(s[j].r[i + 1])}});
  });
}
/// The warp's rows, which begin at `row`, of a state to bf16 in shared memory; `low`, if any: what the rounding leaves.
template <int N>
FI_GLOBAL_FN void spread_state(const Acc (&s)[N], uint32_t row, bf16_t* high, bf16_t* low) {
#pragma unroll
  for (uint32_t j = 0; j < N; ++j)
#pragma unroll
    for (uint32_t i = 0; i < 4; i += 2) {
      const uint32_t at = piece_index<N>(row + lane_row() + i / 2 * 8, j) * 8 + lane_pair();
      const float x = s[j].r[i], y = s[j].r[i + 1];
      *reinterpret_cast<uint32_t*>(high + at) = pack2<bf16_t>(x, y);
      if (low) *reinterpret_cast<uint32_t*>(low + at) = pack2<bf16_t>(low_part(x), low_part(y));
    }
}

/// L_i, the sum of the logarithms of the decays up to token i of a chunk of 64, as two floats, because differences of
/// large sums matter. A decay of 0 is left out and counted: the factor between two tokens with a 0 between them is 0.
struct ChunkDecays {
  float *high, *low;
  int32_t* zeros;  // decays of 0 up to a token

  static constexpr int kBytes = 3 * 4 * 64;
  FI_GLOBAL_FN explicit ChunkDecays(float* memory)
      : high(memory), low(memory + 64), zeros(reinterpret_cast<int32_t*>(memory + 128)) {}

  /// By one warp: lane l has the logarithms of tokens l and l + 32, 0 for a decay of 0.
  FI_GLOBAL_FN void sum(float first, float second, bool first_zero, bool second_zero) const {
    const double x = sum_below(static_cast<double>(first)), y = sum_below(static_cast<double>(second));
    put(lane(), x), put(lane() + 32, from_lane(x, 31) + y);
    const uint32_t firsts = ballot(first_zero), seconds = ballot(second_zero), to_here = kFullMask >> (31 - lane());
    zeros[lane()] = count_bits(firsts & to_here),
    zeros[lane() + 32] = count_bits(firsts) + count_bits(seconds & to_here);
  }
  /// e^(L_i - L_j), 0 with a factor of 0 between them.
  FI_GLOBAL_FN float between(uint32_t i, uint32_t j) const {
    return zeros[i] == zeros[j] ? exp_fast((high[i] - high[j]) + (low[i] - low[j])) : 0.0f;
  }
  /// x e^(L_i): of what was before the chunk, nothing, not even infinity, gets past a factor of 0.
  FI_GLOBAL_FN float since_begin(uint32_t i, float x) const {
    return zeros[i] == 0 ? x * exp_fast(high[i] + low[i]) : 0.0f;
  }

 private:
  FI_GLOBAL_FN void put(uint32_t i, double l) const {
    high[i] = static_cast<float>(l), low[i] = static_cast<float>(l - static_cast<double>(high[i]));
  }
  /// The sum of x over lanes 0 .. lane.
  FI_GLOBAL_FN static double sum_below(double x) {
#pragma unroll
    for (uint32_t d = 1; d < 32; d *= 2) {
      const double before = from_lane(x, lane() >= d ? lane() - d : lane());
      if (lane() >= d) x += before;
    }
    return x;
  }
  FI_GLOBAL_FN static double from_lane(double x, uint32_t source) {
    const uint64_t u = __builtin_bit_cast(uint64_t, x);
    const uint64_t low = shuffle_bits(static_cast<uint32_t>(u), source);
    const uint64_t high = shuffle_bits(static_cast<uint32_t>(u >> 32), source);
    return __builtin_bit_cast(double, high << 32 | low);
  }
};

}  // namespace flashinfer::cu::linear
