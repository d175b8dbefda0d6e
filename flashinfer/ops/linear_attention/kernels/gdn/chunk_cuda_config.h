// SPDX-License-Identifier: Apache-2.0
// What the kernels by chunks on tensor cores are compiled for. Freestanding.
#pragma once
#include <stdint.h>

#include "flashinfer/ops/linear_attention/kernels/common/channel_block_layout.h"

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

/// Gates of channels.
struct GdnChannelsCudaConfig {
  short width;    // K: 64 or 128
  short threads;  // of a block: 128

  constexpr ChannelBlockLayout layout() const { return {width}; }
  /// Behind it, in floats, of the next tokens: k, q and beta; g, f32 or of 16 bits; w.
  constexpr int raw_at() const { return layout().end(); }
  constexpr int decays_at() const { return raw_at() + 3 * layout().operand(); }
  constexpr int writes_at() const { return decays_at() + kChannelCudaTokens * width; }
  constexpr int shared_bytes() const { return 4 * (writes_at() + kChannelCudaTokens * kChannelCudaValues / 2); }

  constexpr int min_blocks() const { return 2; }  // up to 255 registers
  static constexpr const char* kName = "flashinfer::GdnChannelsCudaConfig";
  template <class V>
  constexpr void visit(V&& v) const {
    v("width", width);
    v("threads", threads);
  }
  friend constexpr bool operator==(const GdnChannelsCudaConfig&, const GdnChannelsCudaConfig&) = default;
};

}  // namespace flashinfer
