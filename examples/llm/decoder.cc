// SPDX-License-Identifier: Apache-2.0
#include "decoder.h"

#include <algorithm>
#include <cstring>

#include <flashinfer/core/int_math.h>

namespace llm {

using flashinfer::Device;
using flashinfer::DeviceType;
using flashinfer::DType;
using flashinfer::Tensor;
using flashinfer::TensorView;

namespace {

bool has_graphs(Device device) { return device.type == DeviceType::kCUDA; }

Tensor filled(int64_t n, int32_t first, int32_t step, Device device) {
  std::vector<int32_t> v;
  for (int64_t i = 0; i < n; ++i) v.push_back(first + static_cast<int32_t>(i) * step);
  return flashinfer::to_device(TensorView(std::span<const int32_t>(v)), device);
}

/// What tells a step from the next: request, tokens in the cache, tokens generated.
using Progress = std::vector<std::array<int64_t, 3>>;
Progress progress_of(std::span<const DecodeSlot> slots, int64_t further) {
  Progress p;
  for (const DecodeSlot& s : slots) p.push_back({s.id, s.cached + further, s.drawn + further});
  return p;
}

}  // namespace

/// Memory of the steps with this many requests. Its addresses are the captured graph's.
struct Decoder::Batch {
  Batch(const Model& model, int64_t n, int64_t pages)
      : requests(n),
        words(4 * n + n * (2 + pages)),
        indptr(filled(n + 1, 0, static_cast<int32_t>(pages), model.device())),
        last_page_len(filled(n, static_cast<int32_t>(model.page_size()), 0, model.device())),
        batch_indices(Tensor::empty({n}, DType::kI32, model.device())),
        positions(Tensor::empty({n}, DType::kI32, model.device())),
        logits(Tensor::empty({n, model.shape().vocabulary}, DType::kF32, model.device())),
        sent(filled(words, 0, 0, model.device())),
        wrapper({.use_cuda_graph = true,
                 .paged_kv_indptr_buffer = indptr,
                 .paged_kv_indices_buffer = table(),
                 .paged_kv_last_page_len_buffer = last_page_len}),
        host(static_cast<size_t>(n)) {
    if (has_graphs(model.device())) pinned.emplace(static_cast<size_t>(n) * 4, model.device().index);
    // The most pages for every request: the work lists get room for what lengths on the device may ask for.
    const Tensor full = filled(n + 1, 0, static_cast<int32_t>(pages), flashinfer::kCpu),
                 none = Tensor::zeros({n * pages}, DType::kI32),
                 last = filled(n, static_cast<int32_t>(model.page_size()), 0, flashinfer::kCpu);
    model.plan_decode(wrapper, full, none, last);
  }
  TensorView part(int64_t first, int64_t n, DType type) const {
    return TensorView(sent.data_as<int32_t>() + first, type, {n}, sent.device());
  }
  TensorView seeds() const { return part(0, requests, DType::kI64); }
  TensorView offsets() const { return part(2 * requests, requests, DType::kI64); }
  TensorView tokens() const { return part(4 * requests, requests, DType::kI32); }
  TensorView lengths() const { return part(5 * requests, requests, DType::kI32); }
  TensorView table() const { return part(6 * requests, words - 6 * requests, DType::kI32); }

  int64_t requests, words;
  Tensor indptr, last_page_len, batch_indices, positions, logits;
  Tensor sent;  // i64 seeds and offsets, i32 tokens, lengths and rows of page ids: one copy
  flashinfer::BatchDecodeWithPagedKVCacheWrapper wrapper;
  Progress progress;  // that `sent` is at
  std::vector<int32_t> host;
  std::optional<flashinfer::cuda::Pinned> pinned;
  std::optional<flashinfer::cuda::Graph> graph;
};

Decoder::Decoder(Model* model, int64_t context, const Sampling& sampling)
    : model_(model), pages_(flashinfer::ceil_div(context, model->page_size())), sampler_(sampling) {
  if (has_graphs(model->device())) capture_ = std::make_unique<flashinfer::cuda::Stream>(model->device().index);
}
Decoder::~Decoder() = default;

Decoder::Batch& Decoder::batch_of(int64_t requests) {
  auto& b = batches_[requests];
  if (!b) b = std::make_unique<Batch>(*model_, requests, pages_);
  return *b;
}

TensorView Decoder::logits(int64_t requests) const { return batches_.at(requests)->logits; }

void Decoder::send(Batch& b, std::span<const DecodeSlot> slots) {
  std::vector<int32_t> image(static_cast<size_t>(b.words), 0);
  const auto n = static_cast<size_t>(b.requests);
  for (size_t i = 0; i < n; ++i) {
    const DecodeSlot& s = slots[i];
    // A step adds its own numbers to the offset before it draws.
    const int64_t seed = sampler_.seed_of(s.id), offset = sampler_.offset_of(s.drawn - 1);
    std::memcpy(&image[2 * i], &seed, sizeof seed);
    std::memcpy(&image[2 * n + 2 * i], &offset, sizeof offset);
    image[4 * n + i] = s.token;
    image[5 * n + i] = static_cast<int32_t>(s.cached);
    std::copy(s.pages.begin(), s.pages.end(), image.begin() + static_cast<std::ptrdiff_t>(6 * n + i * pages_));
  }
  const size_t bytes = image.size() * sizeof(int32_t);
  const Device device = model_->device();
  if (has_graphs(device))
    flashinfer::cuda::enqueue_upload(b.sent.data(), image.data(), bytes, device.index,
                                     flashinfer::Context::current().stream);
  else
    flashinfer::copy_bytes(b.sent.data(), device, image.data(), flashinfer::kCpu, bytes);
}

/// A step, in the order of the current stream.
void Decoder::enqueue(Batch& b) {
  const TensorView lengths = b.lengths(), tokens = b.tokens(), offsets = b.offsets();
  flashinfer::advance_decode_step({.seq_lens = lengths,
                                   .max_seq_len = pages_ * model_->page_size(),
                                   .offsets = offsets,
                                   .offset_step = Sampler::kNumbersPerDraw,
                                   .batch_indices = b.batch_indices,
                                   .positions = b.positions});
  b.wrapper.plan_on_device(lengths);
  model_->decode(tokens, {b.positions, b.batch_indices, b.table(), b.indptr, b.last_page_len}, b.wrapper, b.logits);
  sampler_.draw(b.logits, b.seeds(), offsets, tokens);
  if (b.pinned)
    flashinfer::cuda::enqueue_download(b.pinned->data(), tokens.data(), b.host.size() * 4, model_->device().index,
                                       flashinfer::Context::current().stream);
}

std::span<const int32_t> Decoder::step(std::span<const DecodeSlot> slots) {
  Batch& b = batch_of(static_cast<int64_t>(slots.size()));
  if (b.progress != progress_of(slots, 0)) send(b, slots);
  b.progress = progress_of(slots, 1);
  const Device device = model_->device();
  if (!has_graphs(device)) {
    enqueue(b);
    flashinfer::copy_bytes(b.host.data(), flashinfer::kCpu, b.tokens().data(), device, b.host.size() * 4);
    return b.host;
  }
  flashinfer::Context context = flashinfer::Context::current();
  const bool first = !b.graph;
  if (first)  // loads the kernels and chooses those of the products, which a capture cannot
    enqueue(b);
  else
    b.graph->launch(context.stream);
  flashinfer::cuda::synchronize(device.index, context.stream);
  std::memcpy(b.host.data(), b.pinned->data(), b.host.size() * 4);
  if (first) {
    context.stream = capture_->get();
    const flashinfer::ContextScope scope(context);
    b.graph.emplace(device.index, capture_->get(), [&] { enqueue(b); });
  }
  return b.host;
}

}  // namespace llm
