// SPDX-License-Identifier: Apache-2.0
// A Llama-type model on this library's operators: weights in the file's format (or bf16), packed once, a paged KV
// cache, one forward pass over a ragged batch.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <flashinfer/flashinfer.h>

#include "gguf.h"

namespace llm {

struct ModelShape {
  int64_t layers, width, heads, kv_heads, head_dim, hidden, vocabulary, context;
  int64_t rotary_dim;
  double eps, rope_scale, rope_theta;

  /// UserError: another architecture, missing keys, extents that do not fit together.
  explicit ModelShape(const Gguf& file);
  int64_t kv_bytes_per_token() const { return layers * 2 * kv_heads * head_dim * 2; }
};

/// One step's rows, requests that decode (one row each) first, then those that prefill. All index arrays describe the
/// state after this step's keys and values are appended.
struct Batch {
  struct Part {
    std::vector<int32_t> row_indptr{0};   // rows of each request
    std::vector<int32_t> page_indptr{0};  // pages of each request, in `pages`
    std::vector<int32_t> pages;
    std::vector<int32_t> last_page_len;
    int64_t requests() const { return static_cast<int64_t>(last_page_len.size()); }
    int64_t rows() const { return row_indptr.back(); }
  };
  Part decode, prefill;
  std::vector<int32_t> tokens, positions;  // of every row
  std::vector<int32_t> request_of_row;     // counts through decode and prefill
  std::vector<int32_t> logit_rows;         // rows whose logits are needed
  Part all;                                // decode and prefill together, for the append

  void clear();
  /// `length` tokens are in the cache before; `pages` has room for them and the new ones.
  void add(std::span<const int32_t> new_tokens, int64_t length, std::span<const int32_t> pages, int64_t page_size,
           bool decoding, bool wants_logits);
};

/// The columns of a matrix that each rank computes, and where this rank's begin. One rank has all.
struct Columns {
  std::vector<int64_t> of;  // by rank
  int64_t first = 0, own = 0;
};
/// A rank of several processes that compute one model (ranks.h).
struct Parallel {
  int rank = 0, size = 1;
  std::string group;  // of all ranks
};

/// How the ranks split a model: heads of attention, columns of everything else. No sum is split, so every element is
/// computed as by one rank: logits and tokens are the same to the bit, whatever the number of ranks.
struct Split {
  /// UserError: fewer key-value heads, or blocks of columns, than ranks.
  Split(const ModelShape& shape, int rank, int size);
  int64_t first_kv_head, kv_heads, heads;         // of this rank
  Columns query, key, width, hidden, vocabulary;  // query: columns of all heads; key: of keys, and of values
};

/// A linear layer, packed: of blocks in the file's `format`, or of bf16 when that is empty. On a GPU it is
/// unpacked: bf16 [outputs, inputs].
struct Weight {
  flashinfer::Tensor data;
  std::string format;
};

class Model {
 public:
  using Progress = std::function<void(double done)>;
  /// Packs all weights, Q4_0, Q4_1 and Q8_0 for mm_gguf, others decoded to bf16 for mm_bf16. `max_rows` bounds a
  /// batch. UserError as Gguf and ModelShape. The rows that mm_gguf multiplies are quantised to 8-bit blocks until
  /// quantize_activations(false). On a GPU all weights are bf16 and every operator runs there; on the emulator all but
  /// the products, which run on the CPU.
  /// A rank of several has its part of the weights and of the cache; all ranks call forward() with the same batches,
  /// and all get the logits. Their constructors and forward() are collective: RuntimeError on every rank when one ends.
  Model(const Gguf& file, int64_t pages, int64_t page_size, int64_t max_rows, const Progress& progress,
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

 private:
  struct Layer {
    flashinfer::Tensor attention_norm, mlp_norm;
    Weight qkv, output, gate_up, down;
    flashinfer::Tensor kv;  // [pages, 2, page_size, kv_heads, head_dim]
  };
  /// A step's index arrays on the operators' device.
  struct Indices {
    flashinfer::Tensor positions, request_of_row, pages, page_indptr, last_page_len;
  };
  flashinfer::Tensor placed(const std::vector<int32_t>& v) const;
  void multiply(const flashinfer::TensorView& a, const Weight& w, const flashinfer::TensorView& out) const;
  /// The columns of all ranks in `out`, of which this rank computes its own.
  void multiply_all(const flashinfer::TensorView& a, const Weight& w, const Columns& columns,
                    const flashinfer::TensorView& out);
  void gather(const flashinfer::TensorView& own, const Columns& columns, const flashinfer::TensorView& out);
  void embed(std::span<const int32_t> tokens);
  void plan(const Batch& batch);
  void attend(const Batch& batch, const Indices& at, const Layer& layer);
  flashinfer::TensorView rows(const flashinfer::Tensor& buffer, int64_t n) const {
    return buffer.view().slice(0, 0, n);
  }

  Gguf file_;  // the embedding's rows are decoded from the mapping as they are looked up
  ModelShape shape_;
  Parallel parallel_;
  Split split_;
  int64_t pages_, page_size_;
  flashinfer::Device device_;
  std::unique_ptr<flashinfer::AllReduceFusionWorkspace> shared_;  // of several ranks
  bool quantize_ = true;
  const GgufTensor* embedding_;
  std::vector<Layer> layers_;
  flashinfer::Tensor final_norm_;
  Weight lm_head_;
  // Buffers of max_rows rows, made once. own_: this rank's columns of a product; all_attention_, all_activated_: those
  // of all ranks, of one rank attention_ and activated_ themselves.
  flashinfer::Tensor residual_, hidden_, qkv_, attention_, gate_up_, activated_, wanted_, logits_;
  flashinfer::Tensor own_, own_logits_, all_attention_, all_activated_;
  flashinfer::Tensor embedded_;  // in host memory, on its way to residual_
  flashinfer::BatchDecodeWithPagedKVCacheWrapper decode_;
  flashinfer::BatchPrefillWithPagedKVCacheWrapper prefill_;
};

}  // namespace llm
