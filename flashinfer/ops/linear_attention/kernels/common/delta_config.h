// SPDX-License-Identifier: Apache-2.0
// How a GPU's threads hold the rows of a delta-rule state [V][K]: a group of lanes holds a few rows, each lane the same
// columns of all of them. Freestanding.
#pragma once
#include <stdint.h>

#include "flashinfer/core/scalar.h"

namespace flashinfer {

struct DeltaCudaConfig {
  DType state;    // of states in memory; kF32 where a kernel takes the type from its parameters
  bool channels;  // a decay for each key channel
  short width;    // K when it is 64 or 128 and rows of states are 16-byte aligned, else 0: any K up to 256
  short keys;     // 1: the product with the state is taken of beta o k (chunk_gated_delta_rule2)
  short threads;  // of a block

  /// Columns that a lane takes side by side: 16 bytes of the state.
  constexpr int per() const { return width && state != DType::kF32 ? 8 : 4; }
  constexpr int lanes() const { return width ? width / per() : 32; }
  constexpr int pieces() const { return width ? 1 : 2; }
  constexpr int rows() const { return width ? 4 : 2; }
  constexpr int block_rows() const { return threads / lanes() * rows(); }

  /// Left to itself the compiler takes so few registers for some of these kernels, for the sake of occupancy, that it
  /// spills some: they get up to 102, 128, 168 or 255.
  constexpr int min_blocks() const {
    if (channels) return state == DType::kF16 ? 2 : state == DType::kF32 && width ? 4 : 3;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
    constexpr int kBlocksOfBf16 = 4;  // NVRTC 12.4 spills with 5
#else
    constexpr int kBlocksOfBf16 = 5;
#endif
    return !width ? 4 : state == DType::kBF16 ? kBlocksOfBf16 : 0;
  }
  static constexpr const char* kName = "flashinfer::DeltaCudaConfig";
  template <class V>
  constexpr void visit(V&& v) const {
    v("state", state);
    v("channels", channels);
    v("width", width);
    v("keys", keys);
    v("threads", threads);
  }
  friend constexpr bool operator==(const DeltaCudaConfig&, const DeltaCudaConfig&) = default;
};
inline constexpr int64_t kDeltaCudaMaxWidth = 256;

}  // namespace flashinfer
