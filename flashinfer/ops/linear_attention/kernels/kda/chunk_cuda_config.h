// SPDX-License-Identifier: Apache-2.0
// What the kernel by blocks of 16 tokens on tensor cores is compiled for. Freestanding.
#pragma once
#include <stdint.h>

#include "flashinfer/core/scalar.h"
#include "flashinfer/ops/linear_attention/kernels/common/channel_block_layout.h"

namespace flashinfer {

struct KdaChunkCudaConfig {
  DType state;          // f32, f16, bf16; inputs and outputs are bf16
  unsigned char width;  // K: 64 or 128
  short threads;        // of a block: 128

  constexpr ChannelBlockLayout layout() const { return {width}; }
  /// Behind it, in floats: dt_bias, then k, q and g of the next tokens.
  constexpr int bias_at() const { return layout().end(); }
  constexpr int raw_at() const { return bias_at() + width; }
  constexpr int shared_bytes() const { return 4 * (raw_at() + 3 * layout().operand()); }

  constexpr int min_blocks() const { return 2; }  // up to 255 registers
  static constexpr const char* kName = "flashinfer::KdaChunkCudaConfig";
  template <class V>
  constexpr void visit(V&& v) const {
    v("state", state);
    v("width", width);
    v("threads", threads);
  }
  friend constexpr bool operator==(const KdaChunkCudaConfig&, const KdaChunkCudaConfig&) = default;
};

}  // namespace flashinfer
