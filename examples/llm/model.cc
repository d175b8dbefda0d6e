// SPDX-License-Identifier: Apache-2.0
#include "model.h"

#include <algorithm>
#include <array>

#include <flashinfer/core/int_math.h>

namespace llm {

using flashinfer::bf16_t;
using flashinfer::Device;
using flashinfer::DeviceType;
using flashinfer::DType;
using flashinfer::Tensor;
using flashinfer::TensorView;

static TensorView ids(const std::vector<int32_t>& v) { return TensorView(std::span<const int32_t>(v)); }

Model::Model(const Gguf& file, int64_t pages, int64_t page_size, int64_t max_rows, const OnProgress& progress,
             Device device, const Parallel& parallel)
    : file_(file),
      shape_(file_),
      split_(shape_, parallel.rank, parallel.size),
      pages_(pages),
      page_size_(page_size),
      device_(device),
      embedding_(&file_.tensor("token_embd.weight", {shape_.width, shape_.vocabulary})),
      weights_(load_weights(file_, shape_, split_, device, progress)) {
  for (int64_t i = 0; i < shape_.layers; ++i)
    caches_.push_back(Tensor::empty({pages, 2, page_size, split_.kv_heads, shape_.head_dim}, DType::kBF16, device));
  make_buffers(max_rows, parallel);
  if (device != flashinfer::kCpu) embedding_rows_ = embedding_on(file_, shape_, weights_, device);
}

void Model::make_buffers(int64_t max_rows, const Parallel& parallel) {
  const ModelShape& s = shape_;
  const Split& own = split_;
  const auto buffer = [&](int64_t n) { return Tensor::empty({max_rows, n}, DType::kBF16, device_); };
  residual_ = buffer(s.width);
  embedded_ = flashinfer::host_can_read(device_) ? residual_ : Tensor::empty({max_rows, s.width}, DType::kBF16);
  hidden_ = buffer(s.width);
  qkv_ = buffer(own.query.own + 2 * own.key.own);
  attention_ = buffer(own.query.own);
  gate_up_ = buffer(2 * own.hidden.own);
  activated_ = buffer(own.hidden.own);
  all_attention_ = attention_, all_activated_ = activated_;
  if (parallel.size == 1) return;
  all_attention_ = buffer(s.heads * s.head_dim), all_activated_ = buffer(s.hidden);
  own_ = buffer(own.width.own);
  int64_t most = 0;  // columns that a rank gives the others
  for (const Columns* c : {&own.query, &own.width, &own.hidden}) most = std::max(most, std::ranges::max(c->of));
  const int64_t logits_as_bf16 = flashinfer::ceil_div(2 * std::ranges::max(own.vocabulary.of), most);
  shared_ = std::make_unique<flashinfer::AllReduceFusionWorkspace>(
      flashinfer::AllReduceFusionWorkspaceInit{.group = parallel.group,
                                               .rank = parallel.rank,
                                               .world_size = parallel.size,
                                               .max_token_num = std::max(max_rows, logits_as_bf16),
                                               .hidden_dim = most,
                                               .dtype = DType::kBF16});
}

/// The same memory for the CPU: the emulator's is the host's.
static TensorView for_cpu(const TensorView& v) { return TensorView(v.data(), v.dtype(), v.shape(), v.strides()); }

Tensor Model::placed(const std::vector<int32_t>& v) const {
  return device_ == flashinfer::kCpu ? Tensor(ids(v), nullptr) : flashinfer::to_device(ids(v), device_);
}

void Model::multiply(const TensorView& a, const Weight& w, const TensorView& out) const {
  if (device_.type == DeviceType::kCUDA)
    flashinfer::mm_bf16({.a = a, .b = w.data.view().transpose(0, 1), .out = out, .out_dtype = out.dtype()});
  else if (w.format.empty())
    flashinfer::mm_bf16({.a = for_cpu(a), .b = w.data, .out = for_cpu(out), .out_dtype = out.dtype()});
  else
    flashinfer::mm_gguf({.a = for_cpu(a),
                         .b_blocks = w.data,
                         .format = w.format,
                         .out = for_cpu(out),
                         .out_dtype = out.dtype(),
                         .quantize_a = quantize_});
}

void Model::gather(const TensorView& own, const Columns& columns, const TensorView& out) {
  flashinfer::all_gather({.input = own, .workspace = *shared_, .columns = columns.of, .out = out});
}

void Model::multiply_all(const TensorView& a, const Weight& w, const Columns& columns, const TensorView& out) {
  if (!shared_) return multiply(a, w, out);
  const TensorView own = rows(own_, a.size(0));
  multiply(a, w, own);
  gather(own, columns, out);
}

void Model::embed(std::span<const int32_t> tokens) {
  const TensorView out = for_cpu(embedded_);
  for (size_t i = 0; i < tokens.size(); ++i) {
    const auto row = static_cast<int64_t>(i);
    dequantize(*embedding_, tokens[i], out.slice(0, row, row + 1));
  }
  if (embedded_.data() != residual_.data())
    flashinfer::copy_bytes(residual_.data(), device_, embedded_.data(), flashinfer::kCpu,
                           tokens.size() * static_cast<size_t>(shape_.width) * sizeof(bf16_t));
}

void Model::plan_decode(flashinfer::BatchDecodeWithPagedKVCacheWrapper& wrapper, const TensorView& page_indptr,
                        const TensorView& pages, const TensorView& last_page_len) const {
  wrapper.plan({.indptr = page_indptr,
                .indices = pages,
                .last_page_len = last_page_len,
                .num_qo_heads = split_.heads,
                .num_kv_heads = split_.kv_heads,
                .head_dim = shape_.head_dim,
                .page_size = page_size_,
                .q_data_type = DType::kBF16});
}

void Model::plan(const Batch& batch) {
  if (batch.decode.requests() > 0)
    plan_decode(decode_, ids(batch.decode.page_indptr), ids(batch.decode.pages), ids(batch.decode.last_page_len));
  if (batch.prefill.requests() > 0)
    prefill_.plan({.qo_indptr = ids(batch.prefill.row_indptr),
                   .paged_kv_indptr = ids(batch.prefill.page_indptr),
                   .paged_kv_indices = ids(batch.prefill.pages),
                   .paged_kv_last_page_len = ids(batch.prefill.last_page_len),
                   .num_qo_heads = split_.heads,
                   .num_kv_heads = split_.kv_heads,
                   .head_dim_qk = shape_.head_dim,
                   .page_size = page_size_,
                   .causal = true,
                   .q_data_type = DType::kBF16});
}

/// From the fused projection in qkv_ to attention_: rotate, append to the cache, attend.
void Model::attend(int64_t n, const Indices& at, const Tensor& cache, const Attend& attention_of) {
  const int64_t d = shape_.head_dim;
  const TensorView fused = rows(qkv_, n);
  const auto heads = [&](int64_t first, int64_t count) {  // heads of the fused rows as [n, count, d]
    return TensorView(fused.data_as<bf16_t>() + first * d, DType::kBF16, std::array{n, count, d},
                      std::array{fused.stride(0), d, int64_t{1}}, device_);
  };
  const TensorView q = heads(0, split_.heads), k = heads(split_.heads, split_.kv_heads),
                   v = heads(split_.heads + split_.kv_heads, split_.kv_heads);
  flashinfer::apply_rope_pos_ids_inplace({.q = q,
                                          .k = k,
                                          .pos_ids = at.positions,
                                          .rotary_dim = shape_.rotary_dim,
                                          .interleave = true,  // the order Q and K have in files of this architecture
                                          .rope_scale = shape_.rope_scale,
                                          .rope_theta = shape_.rope_theta});
  flashinfer::append_paged_kv_cache({.append_key = k,
                                     .append_value = v,
                                     .batch_indices = at.request_of_row,
                                     .positions = at.positions,
                                     .paged_kv_cache = cache,
                                     .kv_indices = at.pages,
                                     .kv_indptr = at.page_indptr,
                                     .kv_last_page_len = at.last_page_len});
  attention_of(q, cache, rows(attention_, n).view({n, split_.heads, d}));
}

TensorView Model::forward(const Batch& batch) {
  const auto n = static_cast<int64_t>(batch.tokens.size()), decoding = batch.decode.rows();
  embed(batch.tokens);
  plan(batch);
  const std::array arrays{placed(batch.positions), placed(batch.request_of_row), placed(batch.all.pages),
                          placed(batch.all.page_indptr), placed(batch.all.last_page_len)};
  const TensorView hidden = layers(
      n, {arrays[0], arrays[1], arrays[2], arrays[3], arrays[4]},
      [&](const TensorView& q, const Tensor& cache, const TensorView& out) {
        if (decoding > 0)
          decode_.run({.q = q.slice(0, 0, decoding), .paged_kv_cache = cache, .out = out.slice(0, 0, decoding)});
        if (n > decoding)
          prefill_.run({.q = q.slice(0, decoding, n), .paged_kv_cache = cache, .out = out.slice(0, decoding, n)});
      });
  return logits_of(hidden, batch.logit_rows);
}

void Model::decode(const TensorView& tokens, const Indices& at, flashinfer::BatchDecodeWithPagedKVCacheWrapper& wrapper,
                   const TensorView& logits) {
  const int64_t n = tokens.size(0);
  flashinfer::gather_rows({.input = embedding_rows_, .indices = tokens, .out = rows(residual_, n)});
  const TensorView hidden = layers(n, at, [&](const TensorView& q, const Tensor& cache, const TensorView& out) {
    wrapper.run({.q = q, .paged_kv_cache = cache, .out = out});
  });
  multiply(hidden, weights_.lm_head, logits);
}

TensorView Model::layers(int64_t n, const Indices& at, const Attend& attention_of) {
  const TensorView residual = rows(residual_, n), hidden = rows(hidden_, n), qkv = rows(qkv_, n),
                   attention = rows(all_attention_, n), gate_up = rows(gate_up_, n),
                   own_activated = rows(activated_, n), activated = rows(all_activated_, n);
  for (size_t i = 0; i < weights_.layers.size(); ++i) {
    const LayerWeights& layer = weights_.layers[i];
    if (i == 0)
      flashinfer::rmsnorm({.input = residual, .weight = layer.attention_norm, .eps = shape_.eps, .out = hidden});
    else  // the same call adds the previous layer's output to the residual stream
      flashinfer::fused_add_rmsnorm(
          {.input = hidden, .residual = residual, .weight = layer.attention_norm, .eps = shape_.eps});
    multiply(hidden, layer.qkv, qkv);
    attend(n, at, caches_[i], attention_of);
    if (shared_) gather(rows(attention_, n), split_.query, attention);
    multiply_all(attention, layer.output, split_.width, hidden);
    flashinfer::fused_add_rmsnorm({.input = hidden, .residual = residual, .weight = layer.mlp_norm, .eps = shape_.eps});
    multiply(hidden, layer.gate_up, gate_up);
    flashinfer::silu_and_mul({.input = gate_up, .out = own_activated});
    if (shared_) gather(own_activated, split_.hidden, activated);
    multiply_all(activated, layer.down, split_.width, hidden);
  }
  flashinfer::fused_add_rmsnorm(
      {.input = hidden, .residual = residual, .weight = weights_.final_norm, .eps = shape_.eps});
  return hidden;
}

TensorView Model::logits_of(const TensorView& hidden, const std::vector<int32_t>& logit_rows) {
  const auto wanted = static_cast<int64_t>(logit_rows.size());
  if (wanted == 0) return {};
  if (!logits_ || logits_.size(0) < wanted) {
    wanted_ = Tensor::empty({wanted, shape_.width}, DType::kBF16, device_);
    logits_ = Tensor::empty({wanted, shape_.vocabulary}, DType::kF32, device_);
    if (shared_) own_logits_ = Tensor::empty({wanted, split_.vocabulary.own}, DType::kF32, device_);
  }
  for (int64_t i = 0; i < wanted; ++i)
    flashinfer::copy_bytes(wanted_.data_as<bf16_t>() + i * shape_.width, device_,
                           hidden.data_as<bf16_t>() + logit_rows[static_cast<size_t>(i)] * shape_.width, device_,
                           static_cast<size_t>(shape_.width) * sizeof(bf16_t));
  const TensorView logits = rows(logits_, wanted);
  if (!shared_) {
    multiply(rows(wanted_, wanted), weights_.lm_head, logits);
    return logits;
  }
  const TensorView own = rows(own_logits_, wanted);
  multiply(rows(wanted_, wanted), weights_.lm_head, own);
  for (int64_t i = 0; i < wanted; ++i)  // the shared memory has room for one row
    gather(own.slice(0, i, i + 1), split_.vocabulary, logits.slice(0, i, i + 1));
  return logits;
}

}  // namespace llm
