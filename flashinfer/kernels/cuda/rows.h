// SPDX-License-Identifier: Apache-2.0
// Rows of a tensor in pieces of 16 bytes: piece i belongs to thread i modulo the threads that share the row, whatever
// the alignment, so that sums have one order. If rows are aligned a piece is one load, else it is loaded element by
// element.
#pragma once
#include "flashinfer/kernels/cuda/convert.h"
#include "flashinfer/kernels/cuda/memory.h"

namespace flashinfer::cu {

template <class T>
inline constexpr int kPiece = 16 / static_cast<int>(sizeof(T));  // elements

/// N elements from x + at, in f32; those from `d` on are 0.
template <bool kAligned, int N, Hint H = Hint::kKeep, class T>
FI_GLOBAL_FN void load_piece(const T* x, int64_t at, int64_t d, float (&to)[N]) {
  if constexpr (kAligned) {
    constexpr int kStep = N * sizeof(T) > 16 ? 16 / static_cast<int>(sizeof(T)) : N;
#pragma unroll
    for (int j = 0; j < N; j += kStep) {
      const Pack<T, kStep> p = load<kStep, H>(x + at + j);
#pragma unroll
      for (int i = 0; i < kStep; ++i) to[j + i] = to_f32(p[i]);
    }
  } else {
#pragma unroll
    for (int i = 0; i < N; ++i) to[i] = at + i < d ? to_f32(x[at + i]) : 0.0f;
  }
}
/// N elements in their memory format. Issues several loads before using the first, so that all are in flight together.
template <class T, int N>
struct RawPiece {
  static constexpr int kStep = N * sizeof(T) > 16 ? 16 / static_cast<int>(sizeof(T)) : N;
  Pack<T, kStep> part[N / kStep];
  FI_GLOBAL_FN float operator[](int i) const { return to_f32(part[i / kStep][i % kStep]); }
  /// Called between two passes, so that the conversions of the first are not kept in registers (memory.h).
  FI_GLOBAL_FN void forget() {
    if constexpr (sizeof(T) * kStep >= 8) {
#pragma unroll
      for (auto& p : part) cu::forget(p);
    }
  }
};
/// Like load_piece; elements from `d` on are zeros.
template <bool kAligned, int N, Hint H = Hint::kKeep, class T>
FI_GLOBAL_FN void load_raw(const T* x, int64_t at, int64_t d, RawPiece<T, N>& to) {
  constexpr int kStep = RawPiece<T, N>::kStep;
#pragma unroll
  for (int j = 0; j < N / kStep; ++j) {
    if constexpr (kAligned) {
      to.part[j] = load_if<kStep, H>(at < d, x + at + j * kStep);
    } else {
#pragma unroll
      for (int i = 0; i < kStep; ++i)
        to.part[j][i] = at + j * kStep + i < d ? x[at + j * kStep + i] : from_f32<T>(0.0f);
    }
  }
}
template <bool kAligned, int N, Hint H = Hint::kKeep, class T>
FI_GLOBAL_FN void store_piece(T* y, int64_t at, int64_t d, const float (&from)[N]) {
  if constexpr (kAligned) {
    constexpr int kStep = N * sizeof(T) > 16 ? 16 / static_cast<int>(sizeof(T)) : N;
#pragma unroll
    for (int j = 0; j < N; j += kStep) {
      Pack<T, kStep> p;
#pragma unroll
      for (int i = 0; i < kStep; ++i) p[i] = from_f32<T>(from[j + i]);
      store<H>(y + at + j, p);
    }
  } else {
#pragma unroll
    for (int i = 0; i < N; ++i)
      if (at + i < d) y[at + i] = from_f32<T>(from[i]);
  }
}

}  // namespace flashinfer::cu
