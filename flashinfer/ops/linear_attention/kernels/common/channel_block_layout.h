// SPDX-License-Identifier: Apache-2.0
// Where a block of a GPU keeps what it computes 16 tokens with gates of channels from (cuda/channel_block.cuh).
// Freestanding.
#pragma once

namespace flashinfer {

inline constexpr int kChannelCudaTokens = 16, kChannelCudaValues = 64;  // tokens of a step, value channels of a block

/// Places in shared memory, in floats: operands in two bf16 parts each (D o k, D o q, E o k; T, P; v), partial sums of
/// the 4 warps, A, the tokens' numbers, D at the end.
struct ChannelBlockLayout {
  int width;  // K

  constexpr int operand() const { return kChannelCudaTokens * width / 2; }
  constexpr int pairs_at() const { return 6 * operand(); }
  constexpr int values_at() const { return pairs_at() + 4 * kChannelCudaTokens * kChannelCudaTokens / 2; }
  constexpr int partial_at() const { return values_at() + kChannelCudaTokens * kChannelCudaValues / 2; }
  constexpr int sums_at() const { return partial_at() + 4 * 3 * 32 * 4; }
  constexpr int a_at() const { return sums_at() + 4 * 3 * kChannelCudaTokens; }
  constexpr int tokens_at() const { return a_at() + 24 * kChannelCudaTokens; }
  constexpr int whole_at() const { return tokens_at() + 3 * kChannelCudaTokens; }
  constexpr int end() const { return whole_at() + width; }
};

}  // namespace flashinfer
