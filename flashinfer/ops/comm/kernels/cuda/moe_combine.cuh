// SPDX-License-Identifier: Apache-2.0
// Combine of an expert all-to-all between GPUs: each rank reads the rows of its tokens where the ranks of their experts
// wrote them, in launches before, and adds them in the order of the experts in f32: the CPU's bits.
#pragma once
#include "flashinfer/kernels/cuda/block_quantize.h"
#include "flashinfer/kernels/cuda/rows.h"
#include "flashinfer/ops/comm/kernels/cuda/meet.cuh"
#include "flashinfer/ops/comm/kernels/moe_a2a_cuda_params.h"

namespace flashinfer::cu {

/// The rows of slice block_y() that other ranks will read. With `narrow` a block takes a row's pieces in their order
/// and writes behind a barrier: what it overwrites, of this row, has been read.
template <MoeShareCudaConfig C>
FI_GLOBAL_FN void moe_share(const MoeShareCudaParams& p) {
  if ((p.ranks >> block_y() & 1) == 0) return;
  const int64_t slice = block_y() * p.runtime_max * p.row_bytes, rows = p.counts[block_y()];
  if constexpr (C.narrow != 0) {
    constexpr int N = 8;
    constexpr bool kAligned = C.unit == 16;
    const int64_t d = p.row_bytes / 2;
    for (int64_t r = block_x(); r < rows; r += blocks_x()) {
      const bf16_t* const from = reinterpret_cast<const bf16_t*>(p.from + slice + r * p.row_bytes);
      uint8_t* const to = reinterpret_cast<uint8_t*>(p.to + slice + r * p.row_bytes);
      for (int64_t begin = 0; begin < d; begin += C.threads * N) {
        const int64_t at = begin + thread_x() * N;
        float v[N] = {};
        if (at < d) load_piece<kAligned, N>(from, at, d, v);
        sync_threads();
        uint32_t words[N / 4];
        narrow<e4m3_t>(v, words);
        if constexpr (kAligned) {
          if (at < d) store_codes<true, N>(to + at, words);
        } else {
#pragma unroll
          for (int i = 0; i < N; ++i)
            if (at + i < d) to[at + i] = static_cast<uint8_t>(words[i / 4] >> (8 * (i % 4)));
        }
      }
    }
  } else {
    using Unit = Pack<unsigned short, C.unit / 2>;
    const int64_t units = rows * p.row_bytes / C.unit;
    for (int64_t i = int64_t{block_x()} * C.threads + thread_x(); i < units; i += int64_t{blocks_x()} * C.threads) {
      const auto* const from = reinterpret_cast<const unsigned short*>(p.from + slice + i * C.unit);
      const Unit x = load<C.unit / 2, Hint::kOnce>(from);
      store(reinterpret_cast<unsigned short*>(p.to + slice + i * C.unit), x);
    }
  }
}

template <MoeCombineCudaConfig C>
struct MoeCombine {
  using T = scalar_of_t<C.payload>;
  static constexpr bool kNv = C.quant == MoeCombineQuant::kNvfp4, kFp8 = C.quant == MoeCombineQuant::kMxfp8,
                        kQuantises = C.quant != MoeCombineQuant::kNone, kAligned = C.aligned != 0;
  static constexpr int N = sizeof(T) == 4 ? 4 : 8;  // of a piece, which belongs to a thread
  static constexpr int kBlock = kNv ? 16 : 32, kLanes = kBlock / N;
  static constexpr int64_t kStep = int64_t{C.threads} * N;
  const MoeCombineParams& p;

  struct Rows {
    const T* row[kMoeA2aRanks];
    int n;
  };
  FI_GLOBAL_FN static Rows& rows() { return *reinterpret_cast<Rows*>(shared() + kMeetSharedBytes); }

  /// The rows of token t, by its first warp: top_k is at most 32.
  FI_GLOBAL_FN void find(int64_t t) const {
    if (warp() != 0) return;
    const uint32_t place = lane() < p.top_k ? p.places[t * p.top_k + lane()] : kMoeNoPlace;
    const uint32_t with = ballot(place != kMoeNoPlace);
    if (place != kMoeNoPlace) {
      const auto* const first = static_cast<const char*>(p.source[place >> kMoePlaceBits]);
      rows().row[count_bits(with & ((1u << lane()) - 1))] =
          reinterpret_cast<const T*>(first + (place & ((1u << kMoePlaceBits) - 1)) * p.row_bytes);
    }
    if (lane() == 0) rows().n = count_bits(with);
  }
  FI_GLOBAL_FN void sum(int64_t at, bool ok, float (&v)[N]) const {
#pragma unroll
    for (int i = 0; i < N; ++i) v[i] = ok ? 0.0f : __builtin_bit_cast(float, 0x7fc00000u);
    const int n = ok && at < p.d ? rows().n : 0;
#pragma unroll 4
    for (int k = 0; k < n; ++k) {
      float x[N];
      load_piece<kAligned, N, Hint::kOnce>(rows().row[k], at, p.d, x);
#pragma unroll
      for (int i = 0; i < N; ++i) v[i] = add_rn(v[i], x[i]);
    }
  }
  FI_GLOBAL_FN void quantize(int64_t t, bool ok) const {
    const int64_t columns = p.d / kBlock;
    uint8_t* const codes = static_cast<uint8_t*>(p.out) + t * p.d / (kFp8 ? 1 : 2);
    uint8_t* const scales = static_cast<uint8_t*>(p.scales) + sf_row_offset(p.layout, t, columns);
    const float a = kNv ? mul_rn(p.scale, 1.0f / 6.0f) : 1.0f, b = kNv ? 1.0f / p.scale : 1.0f;
    for (int64_t base = 0; base < p.d; base += kStep) {  // whole warps
      const int64_t at = base + thread_x() * N;
      float v[N];
      sum(at, ok, v);
      if (at >= p.d) {
#pragma unroll
        for (float& x : v) x = 0.0f;
      }
      const BlockScale s = block_scale<!kNv, kFp8>(block_magnitude<kLanes>(v), a, b);
      if (at >= p.d) continue;
      uint32_t words[2];
      block_codes<kFp8>(v, s, words);
      store_codes<kAligned, kFp8 ? N : N / 2>(codes + at / (kFp8 ? 1 : 2), words);
      // Codes of e2m1 have no NaN.
      if (at % kBlock == 0)
        scales[sf_column_offset(p.layout, at / kBlock)] = static_cast<uint8_t>(ok ? s.byte : kNv ? 0x7fu : 0xffu);
    }
    for (int64_t c = columns + thread_x(); c < sf_padded_columns(p.layout, columns); c += C.threads)
      scales[sf_column_offset(p.layout, c)] = 0;
  }
  FI_GLOBAL_FN void clear(int64_t t) const {
    const int64_t columns = p.d / kBlock;
    uint8_t* const scales = static_cast<uint8_t*>(p.scales) + sf_row_offset(p.layout, t, columns);
    for (int64_t c = thread_x(); c < sf_padded_columns(p.layout, columns); c += C.threads)
      scales[sf_column_offset(p.layout, c)] = 0;
  }
  FI_GLOBAL_FN void token(int64_t t, bool ok) const {
    if (ok) find(t);
    sync_threads();
    if constexpr (kQuantises) {
      quantize(t, ok);
    } else {
      using U = scalar_of_t<C.out>;
      U* const out = static_cast<U*>(p.out) + t * p.d;
      for (int64_t at = thread_x() * N; at < p.d; at += kStep) {
        float v[N];
        sum(at, ok, v);
        store_piece<kAligned, N>(out, at, p.d, v);
      }
    }
    sync_threads();  // the rows were read
  }
};

/// A block a token at a time.
template <MoeCombineCudaConfig C>
FI_GLOBAL_FN void moe_combine(const MoeCombineCudaParams& p) {
  Meeting<kMoeA2aRanks> ranks(p.memory, p.meet);
  ranks.meet(1);
  const MoeCombine<C> combine{p.row};
  for (int64_t t = block_x(); t < p.row.tokens; t += blocks_x()) combine.token(t, ranks.ok());
  if constexpr (MoeCombine<C>::kQuantises)
    for (int64_t t = p.row.tokens + block_x(); t < p.row.padded_rows; t += blocks_x()) combine.clear(t);
  ranks.end(C.threads);
}

}  // namespace flashinfer::cu
