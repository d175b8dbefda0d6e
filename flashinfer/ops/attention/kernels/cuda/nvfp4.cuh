// SPDX-License-Identifier: Apache-2.0
// Attention over NVFP4 caches on tensor cores: e2m1 elements, two a byte, and an e4m3 scale for each 16. An element
// becomes an f16 that is 2^14 smaller, its bits only moved, and is multiplied by its scale: both and the product are
// exact, subnormals too. The logits' factor and the outputs have the 2^14.
//
//   K: ldmatrix gives a lane elements 8t .. 8t + 7 of 32 of a row, which belong to one scale.
//   V, transposed: columns 4g .. 4g + 3 of keys 2t and 2t + 1, an element each of four products; two scales.
#pragma once
#include "flashinfer/ops/attention/kernels/cuda/narrow.cuh"

namespace flashinfer::cu::attn {

/// Pairs (0, 4), (1, 5), (2, 6) and (3, 7) of a register of eight e2m1, 2^14 smaller, in f16: sign and magnitude are
/// moved to the upper byte, where the magnitude's bits are the lowest of the exponent and the highest of the mantissa.
struct FourPairs {
  uint32_t r[4];
};
FI_GLOBAL_FN FourPairs small_e2m1_halves(uint32_t codes) {
  const uint32_t even = (codes << 1 & 0x0e0e0e0eu) | (codes << 4 & 0x80808080u),
                 odd = (codes >> 3 & 0x0e0e0e0eu) | (codes & 0x80808080u);
  return {{pick_bytes(even, 0, 0x2404), pick_bytes(odd, 0, 0x2404), even & 0xff00ff00u, odd & 0xff00ff00u}};
}

/// Rows of scales of a tile's keys, a key a thread; those of keys from `count` on, and behind a row's end, are 0.
template <AttentionCudaConfig C, int kDim>
FI_GLOBAL_FN void copy_scales(uint8_t* to, const uint8_t* from, const int64_t* offsets, int32_t count) {
  constexpr uint32_t kPitch = C.scale_pitch(kDim), kRow = kDim / 16, kCopy = C.scale_copy;
  const uint32_t key = thread_x();
  if (key >= C.keys()) return;
  const bool there = static_cast<int32_t>(key) < count;
  const uint8_t* x = from + load_shared<1>(offsets + key)[0];
  if constexpr (kCopy >= 4) {
#pragma unroll
    for (uint32_t i = 0; i < kPitch; i += kCopy) {
      const uint32_t left = i < kRow ? kRow - i : 0;
      copy_async<kCopy>(to + key * kPitch + i, x + (left ? i : 0), !there ? 0 : left < kCopy ? left : kCopy);
    }
  } else {
#pragma unroll
    for (uint32_t i = 0; i < kPitch; i += 4) {
      uint32_t word = 0;
#pragma unroll
      for (uint32_t b = 0; b < 4; ++b)
        if (i + b < kRow && there) word |= static_cast<uint32_t>(load<1>(x + i + b)[0]) << 8 * b;
      store_shared(reinterpret_cast<uint32_t*>(to + key * kPitch + i), Pack<uint32_t, 1>{{word}});
    }
  }
}

/// S = Q K for the warp's rows and kBlocks * 8 keys, whose scales begin at `scales`.
template <AttentionCudaConfig C, int kBlocks, class QRow, class KRow>
FI_GLOBAL_FN void nvfp4_logits(Acc (&s)[C.row_tiles()][kBlocks], const HeldQueries<C>& held, const QRow& q,
                               const KRow& k, const uint8_t* scales) {
  constexpr uint32_t kPitch = C.scale_pitch(C.dqk), kPieces = C.used_bytes(C.dqk) / 16;
  static_assert(C.held == 0 || C.held == 2 * kPieces);
  const uint32_t mine = lane() % 4 < 2 ? 0x0000 : 0x1111;  // the piece's first or second scale, for both of a pair
  const auto multiply = [&](const Frag4(&a)[C.row_tiles()], const Frag4(&b)[C.row_tiles()], uint32_t piece) {
#pragma unroll
    for (uint32_t n = 0; n < kBlocks; n += 4) {
      const Frag4 keys = load_matrix4(k.piece(n * 8, piece));
#pragma unroll
      for (uint32_t e = 0; e < 4; ++e) {
        const auto* at = reinterpret_cast<const uint16_t*>(scales + ((n + e) * 8 + lane() / 4) * kPitch + piece * 2);
        const uint32_t two = load_shared<1>(at)[0], scale = e4m3_halves(pick_bytes(two, 0, mine));
        const FourPairs x = small_e2m1_halves(keys.r[e]);
        const Frag2 low{{mul_pairs<f16_t>(x.r[0], scale), mul_pairs<f16_t>(x.r[1], scale)}},
            high{{mul_pairs<f16_t>(x.r[2], scale), mul_pairs<f16_t>(x.r[3], scale)}};
#pragma unroll
        for (uint32_t r = 0; r < C.row_tiles(); ++r) {
          s[r][n + e] = mma<f16_t>(a[r], low, s[r][n + e]);
          s[r][n + e] = mma<f16_t>(b[r], high, s[r][n + e]);
        }
      }
    }
  };
  clear(s);
  if constexpr (C.held > 0) {
#pragma unroll
    for (uint32_t piece = 0; piece < kPieces; ++piece) multiply(held.a[2 * piece], held.a[2 * piece + 1], piece);
  } else {
#pragma unroll 2
    for (uint32_t piece = 0; piece < kPieces; ++piece) {
      Frag4 a[C.row_tiles()], b[C.row_tiles()];
#pragma unroll
      for (uint32_t r = 0; r < C.row_tiles(); ++r) {
        a[r] = load_matrix4(q.at(16 * r, piece / 2 * 8, piece % 2 * 2));
        b[r] = load_matrix4(q.at(16 * r, piece / 2 * 8, piece % 2 * 2 + 1));
      }
      multiply(a, b, piece);
    }
  }
}

/// O += P V: columns 4 c + i of 32 in o[4 piece + i].
template <AttentionCudaConfig C, int kBlocks, class Row>
FI_GLOBAL_FN void add_nvfp4_values(Outputs<C>& o, const Weights<C, kBlocks>& w, const Row& v, const uint8_t* scales) {
  constexpr uint32_t kPitch = C.scale_pitch(C.dvo);
  const uint8_t* mine = scales + lane() % 4 * 2 * kPitch + lane() / 16;
#pragma unroll
  for (uint32_t n = 0; n < kBlocks; n += 4) {
#pragma unroll
    for (uint32_t piece = 0; piece < C.used_bytes(C.dvo) / 16; ++piece) {
      const Frag4 values = load_matrix4_transposed(v.piece(n * 8, piece));
#pragma unroll
      for (uint32_t i = 0; i < 2; ++i) {
        uint32_t scale[2];
#pragma unroll
        for (uint32_t e = 0; e < 2; ++e) {
          const uint8_t* at = mine + (n + 2 * i + e) * 8 * kPitch + piece * 2;
          scale[e] = e4m3_halves(load_shared<1>(at)[0] | static_cast<uint32_t>(load_shared<1>(at + kPitch)[0]) << 8);
        }
        const FourPairs x = small_e2m1_halves(values.r[2 * i]), y = small_e2m1_halves(values.r[2 * i + 1]);
#pragma unroll
        for (uint32_t c = 0; c < 4; ++c) {
          const Frag2 of_column{{mul_pairs<f16_t>(x.r[c], scale[0]), mul_pairs<f16_t>(y.r[c], scale[1])}};
#pragma unroll
          for (uint32_t r = 0; r < C.row_tiles(); ++r)
            o[r][4 * piece + c] = mma<f16_t>(w.a[r][n / 2 + i], of_column, o[r][4 * piece + c]);
        }
      }
      sync_warp();  // what ptxas would convert ahead spills
    }
  }
}

}  // namespace flashinfer::cu::attn
