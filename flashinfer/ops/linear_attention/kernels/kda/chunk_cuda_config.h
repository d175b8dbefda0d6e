// SPDX-License-Identifier: Apache-2.0
// What the kernel by blocks of 16 tokens on tensor cores is compiled for. Freestanding.
#pragma once
#include <stdint.h>

#include "flashinfer/core/scalar.h"
#include "flashinfer/ops/linear_attention/kernels/kda/params.h"

namespace flashinfer {

struct KdaChunkCudaConfig {
  DType state;          // f32, f16, bf16; inputs and outputs are bf16
  unsigned char width;  // K: 64 or 128
  short threads;        // of a block: 128

  /// Places in shared memory, in floats: operands in two bf16 parts each (D o k, D o q, E o k; T, P; v), partial sums
  /// of the 4 warps, A, the tokens' numbers, D at the end,
  /// dt_bias, k, q and g of the next tokens.
  constexpr int operand() const { return kKdaCudaTokens * width / 2; }
  constexpr int pairs_at() const { return 6 * operand(); }
  constexpr int values_at() const { return pairs_at() + 4 * kKdaCudaTokens * kKdaCudaTokens / 2; }
  constexpr int partial_at() const { return values_at() + kKdaCudaTokens * kKdaCudaValues / 2; }
  constexpr int sums_at() const { return partial_at() + 4 * 3 * 32 * 4; }
  constexpr int a_at() const { return sums_at() + 4 * 3 * kKdaCudaTokens; }
  constexpr int tokens_at() const { return a_at() + 24 * kKdaCudaTokens; }
  constexpr int whole_at() const { return tokens_at() + 3 * kKdaCudaTokens; }
  constexpr int bias_at() const { return whole_at() + width; }
  constexpr int raw_at() const { return bias_at() + width; }
  constexpr int shared_bytes() const { return 4 * (raw_at() + 3 * operand()); }

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
