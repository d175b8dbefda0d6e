// SPDX-License-Identifier: Apache-2.0
// The weights of a Llama-type model, read from its file and packed for this library's products.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include <flashinfer/flashinfer.h>

#include "gguf.h"
#include "shape.h"
#include "split.h"

namespace llm {

/// A linear layer, packed: of blocks in the file's `format`, or of bf16 when that is empty. On a GPU it is
/// unpacked: bf16 [outputs, inputs].
struct Weight {
  flashinfer::Tensor data;
  std::string format;
};

struct LayerWeights {
  flashinfer::Tensor attention_norm, mlp_norm;  // bf16 [width]
  Weight qkv, output, gate_up, down;
};
struct ModelWeights {
  std::vector<LayerWeights> layers;
  flashinfer::Tensor final_norm;  // bf16 [width]
  Weight lm_head;
};

using OnProgress = std::function<void(double done)>;
/// This rank's columns of every linear layer, and the norms, on `device`. On the CPU Q4_0, Q4_1 and Q8_0 are packed for
/// mm_gguf, others are decoded to bf16 and packed for mm_bf16. UserError, before any of them is packed: a tensor is
/// missing or of another size.
ModelWeights load_weights(const Gguf& file, const ModelShape& shape, const Split& own, flashinfer::Device device,
                          const OnProgress& progress);

/// The embedding as bf16 [vocabulary, width] on a GPU or the emulator: the last layer's weight, where they are one.
flashinfer::Tensor embedding_on(const Gguf& file, const ModelShape& shape, const ModelWeights& weights,
                                flashinfer::Device device);

}  // namespace llm
