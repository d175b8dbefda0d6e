// SPDX-License-Identifier: Apache-2.0
// What the scan of Mamba-2 by chunks on tensor cores is compiled for. Freestanding.
#pragma once
#include <stdint.h>

#include "flashinfer/core/scalar.h"

namespace flashinfer {

inline constexpr int kSsdCudaChunk = 64, kSsdCudaDims = 64;  // tokens of a chunk, elements of a head of a block

struct SsdCudaConfig {
  DType state;          // f32, f16, bf16; x, B, C, z, out are bf16
  unsigned char width;  // dstate: 64 or 128
  short threads;        // of a block: 128

  /// bf16 elements of x, B and C of a chunk: one chunk is computed while the next one is on its way.
  constexpr int stage() const { return kSsdCudaChunk * (kSsdCudaDims + 2 * width); }
  constexpr int shared_bytes() const {
    return 2 * (2 * stage() + kSsdCudaDims * width) + 4 * kSsdCudaChunk * 6;  // the state's copy; L, dt, shares, D
  }

  constexpr int min_blocks() const { return 2; }  // as many as shared memory lets an SM hold: up to 255 registers

  static constexpr const char* kName = "flashinfer::SsdCudaConfig";
  template <class V>
  constexpr void visit(V&& v) const {
    v("state", state);
    v("width", width);
    v("threads", threads);
  }
  friend constexpr bool operator==(const SsdCudaConfig&, const SsdCudaConfig&) = default;
};

}  // namespace flashinfer
