// SPDX-License-Identifier: Apache-2.0
// What a decode loop computes between two steps, so that it can be captured into a graph: nothing is read by the host.
#pragma once
#include <optional>
#include <utility>

#include "flashinfer/core/tensor.h"

#pragma GCC visibility push(default)

namespace flashinfer {

/// out[i, :] = input[indices[i], :], bit for bit: rows of an embedding, of hidden states. Index -1 (padding) gives a
/// row of zeros. ValueError: an index outside [-1, m); on a GPU, whose contents the host does not read, such rows are
/// zeros.
struct GatherRows {
  TensorView input;                    // [m, d] floats or fp8, rows may be strided
  TensorView indices;                  // [n] i32|i64
  std::optional<TensorView> out = {};  // [n, d] dtype of input; made when absent
};
Tensor gather_rows(const GatherRows& args);

/// The next token of every slot of a batch of fixed size. A slot with 0 < seq_lens[b] < max_seq_len takes one: its
/// batch index is b, its position seq_lens[b], and seq_lens[b] and offsets[b] grow by 1 and `offset_step`. The others
/// stay as they are, with batch index -1 and position 0, which appends skip: slots without a request have length 0.
/// ValueError: max_seq_len beyond int32 or below 1, offset_step below 0.
struct AdvanceDecodeStep {
  TensorView seq_lens;                                           // [b] i32, contiguous: tokens in the cache; written
  int64_t max_seq_len = 0;                                       // tokens that a slot's pages hold
  std::optional<TensorView> offsets = {};                        // [b] i64, contiguous: of the samplers; written
  int64_t offset_step = 32;                                      // numbers that a draw may use
  std::optional<TensorView> batch_indices = {}, positions = {};  // [b] i32; made when absent
};
std::pair<Tensor, Tensor> advance_decode_step(const AdvanceDecodeStep& args);

}  // namespace flashinfer

#pragma GCC visibility pop
