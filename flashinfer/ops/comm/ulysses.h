// SPDX-License-Identifier: Apache-2.0
// Attention with a sequence that is spread over ranks (Ulysses): before it, each rank gets the whole sequence for its
// part of the heads; after it, all heads for its part of the sequence.
#pragma once
#include <optional>

#include "flashinfer/op/call.h"

#pragma GCC visibility push(default)

namespace flashinfer {

struct UlyssesHeads {
  TensorView x;                     // [batch, sequence, heads, d] f16|bf16|f32, the same shape on every rank
  op::Object* workspace = nullptr;  // AllReduceFusionWorkspace of any size: the tensor goes through it in pieces
  std::optional<TensorView> out{};
  int64_t call = -1;  // as AllReduceFusion::call
};
/// [b, s, h, d] -> [b, s * ranks, h / ranks, d]: out[:, p * s + i, j] = rank p's x[:, i, rank * h / ranks + j].
/// Collective. Bytes are copied. ValueError: h is no multiple of the ranks; RuntimeError as allreduce_fusion.
Tensor ulysses_scatter_heads(const UlyssesHeads& args);
/// The inverse, [b, s, h, d] -> [b, s / ranks, h * ranks, d]: out[:, i, p * h + j] = rank p's x[:, rank * s / ranks +
/// i, j]. ValueError: s is no multiple of the ranks.
Tensor ulysses_gather_heads(const UlyssesHeads& args);

}  // namespace flashinfer

#pragma GCC visibility pop
