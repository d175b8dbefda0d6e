// SPDX-License-Identifier: Apache-2.0
// A Llama-type model on this library's operators: weights in the file's format (or bf16), packed once, a paged KV
// cache, one forward pass over a ragged batch.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include <flashinfer/flashinfer.h>

#include "batch.h"
#include "gguf.h"
#include "shape.h"
#include "split.h"
#include "weights.h"

namespace llm {

class Model {
 public:
  /// Packs all weights, Q4_0, Q4_1 and Q8_0 for mm_gguf, others decoded to bf16 for mm_bf16. `max_rows` bounds a
  /// batch. UserError as Gguf and ModelShape. The rows that mm_gguf multiplies are quantised to 8-bit blocks until
  /// quantize_activations(false). On a GPU all weights are bf16 and every operator runs there; on the emulator all but
  /// the products, which run on the CPU.
  /// A rank of several has its part of the weights and of the cache; all ranks call forward() with the same batches,
  /// and all get the logits. Their constructors and forward() are collective: RuntimeError on every rank when one ends.
  Model(const Gguf& file, int64_t pages, int64_t page_size, int64_t max_rows, const OnProgress& progress,
        flashinfer::Device device = flashinfer::kCpu, const Parallel& parallel = {});

  void quantize_activations(bool on) { quantize_ = on; }
  const ModelShape& shape() const { return shape_; }
  int64_t pages() const { return pages_; }
  int64_t page_size() const { return page_size_; }
  int64_t kv_bytes() const { return pages_ * page_size_ * shape_.kv_bytes_per_token(); }
  flashinfer::Device device() const { return device_; }
  /// Runs all rows; returns those rows' logits, f32 [logit_rows, vocabulary] on the model's device, valid until
  /// the next call.
  flashinfer::TensorView forward(const Batch& batch);

  /// A step's index arrays on the operators' device.
  struct Indices {
    flashinfer::TensorView positions, request_of_row, pages, page_indptr, last_page_len;
  };
  /// One token of each request, on a GPU or the emulator with nothing from the host: `tokens` and the arrays of `at`
  /// are there, `wrapper` is planned. `logits`: f32 [requests, vocabulary] there.
  void decode(const flashinfer::TensorView& tokens, const Indices& at,
              flashinfer::BatchDecodeWithPagedKVCacheWrapper& wrapper, const flashinfer::TensorView& logits);
  /// plan() of a wrapper for this model.
  void plan_decode(flashinfer::BatchDecodeWithPagedKVCacheWrapper& wrapper, const flashinfer::TensorView& page_indptr,
                   const flashinfer::TensorView& pages, const flashinfer::TensorView& last_page_len) const;

 private:
  /// From queries in the first argument to the output in the third, over a layer's cache.
  using Attend = std::function<void(const flashinfer::TensorView& q, const flashinfer::Tensor& cache,
                                    const flashinfer::TensorView& out)>;
  flashinfer::Tensor placed(const std::vector<int32_t>& v) const;
  void multiply(const flashinfer::TensorView& a, const Weight& w, const flashinfer::TensorView& out) const;
  /// The columns of all ranks in `out`, of which this rank computes its own.
  void multiply_all(const flashinfer::TensorView& a, const Weight& w, const Columns& columns,
                    const flashinfer::TensorView& out);
  void gather(const flashinfer::TensorView& own, const Columns& columns, const flashinfer::TensorView& out);
  void make_buffers(int64_t max_rows, const Parallel& parallel);
  void embed(std::span<const int32_t> tokens);
  void plan(const Batch& batch);
  /// All layers and the last norm, of the first `n` rows of the residual stream: their hidden states.
  flashinfer::TensorView layers(int64_t n, const Indices& at, const Attend& attention_of);
  void attend(int64_t n, const Indices& at, const flashinfer::Tensor& cache, const Attend& attention_of);
  /// Those rows of `hidden` times the output layer.
  flashinfer::TensorView logits_of(const flashinfer::TensorView& hidden, const std::vector<int32_t>& logit_rows);
  flashinfer::TensorView rows(const flashinfer::Tensor& buffer, int64_t n) const {
    return buffer.view().slice(0, 0, n);
  }

  Gguf file_;  // the embedding's rows are decoded from the mapping as they are looked up
  ModelShape shape_;
  Split split_;
  int64_t pages_, page_size_;
  flashinfer::Device device_;
  const GgufTensor* embedding_;
  ModelWeights weights_;
  flashinfer::Tensor embedding_rows_;       // bf16 [vocabulary, width] on a GPU or the emulator, for decode()
  std::vector<flashinfer::Tensor> caches_;  // by layer: [pages, 2, page_size, kv_heads, head_dim]
  std::unique_ptr<flashinfer::AllReduceFusionWorkspace> shared_;  // of several ranks
  bool quantize_ = true;
  // Buffers of max_rows rows, made once. own_: this rank's columns of a product; all_attention_, all_activated_: those
  // of all ranks, of one rank attention_ and activated_ themselves.
  flashinfer::Tensor residual_, hidden_, qkv_, attention_, gate_up_, activated_, wanted_, logits_;
  flashinfer::Tensor own_, own_logits_, all_attention_, all_activated_;
  flashinfer::Tensor embedded_;  // in host memory, on its way to residual_
  flashinfer::BatchDecodeWithPagedKVCacheWrapper decode_;
  flashinfer::BatchPrefillWithPagedKVCacheWrapper prefill_;
};

}  // namespace llm
