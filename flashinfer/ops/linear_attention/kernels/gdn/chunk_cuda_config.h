// SPDX-License-Identifier: Apache-2.0
// What the chunk kernel on tensor cores is compiled for. Freestanding.
#pragma once
#include <stdint.h>

namespace flashinfer {

inline constexpr int kGdnCudaChunk = 64, kGdnCudaValues = 64;  // tokens of a chunk, value channels of a block

struct GdnChunkCudaConfig {
  short width;    // K: 64 or 128
  short threads;  // of a block: 128

  /// bf16 elements of the region that first holds the state and then U, both as two parts.
  constexpr int region() const {
    const int state = 2 * kGdnCudaValues * width, u = 4 * kGdnCudaChunk * kGdnCudaValues;
    return state > u ? state : u;
  }
  constexpr int shared_bytes() const {
    return 2 * (2 * kGdnCudaChunk * width + region()) +
           4 * (kGdnCudaChunk * (kGdnCudaChunk + kGdnCudaValues) + 4 * kGdnCudaChunk);
  }

  static constexpr const char* kName = "flashinfer::GdnChunkCudaConfig";
  template <class V>
  constexpr void visit(V&& v) const {
    v("width", width);
    v("threads", threads);
  }
  friend constexpr bool operator==(const GdnChunkCudaConfig&, const GdnChunkCudaConfig&) = default;
};

}  // namespace flashinfer
