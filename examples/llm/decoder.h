// SPDX-License-Identifier: Apache-2.0
// Decoding on a GPU without the host in the loop. Everything that a step reads - tokens, lengths, page tables, random
// numbers - is on the device, where the step itself writes it for the next one; a step is one captured graph for each
// batch size, and the host waits once, for the token ids.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <flashinfer/core/cuda/memory.h>

#include "model.h"
#include "sampler.h"

namespace llm {

/// A request that decodes: its last token is not in the cache yet.
struct DecodeSlot {
  int64_t id = 0;
  int32_t token = 0;
  int64_t cached = 0;  // tokens in the cache
  int64_t drawn = 0;   // tokens generated so far
  std::span<const int32_t> pages;
};

class Decoder {
 public:
  /// `context`: tokens that a request may have. On the emulator, which has no graphs, each step's kernels are launched
  /// one by one.
  Decoder(Model* model, int64_t context, const Sampling& sampling);
  ~Decoder();

  /// The next token of each request, in order; valid until the next call. Sends the requests to the device only when
  /// they are not those of the last step with as many, each one token further.
  std::span<const int32_t> step(std::span<const DecodeSlot> slots);

  /// f32 [requests, vocabulary] on the model's device: of the last step with so many requests.
  flashinfer::TensorView logits(int64_t requests) const;

 private:
  struct Batch;
  Batch& batch_of(int64_t requests);
  void send(Batch& b, std::span<const DecodeSlot> slots);
  void enqueue(Batch& b);

  Model* model_;
  int64_t pages_;  // of a request at most
  Sampler sampler_;
  std::unique_ptr<flashinfer::cuda::Stream> capture_;  // a default stream cannot be captured
  std::map<int64_t, std::unique_ptr<Batch>> batches_;
};

}  // namespace llm
