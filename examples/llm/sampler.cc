// SPDX-License-Identifier: Apache-2.0
#include "sampler.h"

namespace llm {

using flashinfer::Tensor;
using flashinfer::TensorView;

Tensor Sampler::draw(const TensorView& logits, const TensorView& seeds, const TensorView& offsets,
                     const std::optional<TensorView>& tokens) const {
  if (sampling_.temperature <= 0)  // no mass above the largest: that one, the first of equals
    return flashinfer::top_k_top_p_sampling_from_logits(
        {.logits = logits, .top_k = 1, .top_p = 0.0, .seed = 0, .offset = 0, .samples = tokens});
  const Tensor probs = flashinfer::softmax({.logits = logits, .temperature = sampling_.temperature});
  return flashinfer::top_k_top_p_sampling_from_probs({.probs = probs,
                                                      .top_k = sampling_.top_k,
                                                      .top_p = sampling_.top_p,
                                                      .seed = seeds,
                                                      .offset = offsets,
                                                      .samples = tokens});
}

std::vector<int32_t> Sampler::next(const TensorView& logits, std::span<const int64_t> request,
                                   std::span<const int64_t> drawn) {
  const int64_t rows = logits.size(0);
  std::vector<int32_t> tokens(static_cast<size_t>(rows));
  const bool here = logits.device() == flashinfer::kCpu;
  if (sampling_.temperature <= 0 && here) {
    constexpr int kSmallerIndexWins = 1;
    const std::pair<Tensor, Tensor> best = flashinfer::top_k({.input = logits, .k = 1, .tie_break = kSmallerIndexWins});
    for (int64_t i = 0; i < rows; ++i)
      tokens[static_cast<size_t>(i)] = static_cast<int32_t>(best.second.data_as<int64_t>()[i]);
    return tokens;
  }
  seeds_.clear();
  offsets_.clear();
  for (int64_t i = 0; i < rows; ++i) {
    seeds_.push_back(seed_of(request[static_cast<size_t>(i)]));
    offsets_.push_back(offset_of(drawn[static_cast<size_t>(i)]));
  }
  const auto placed = [&](const std::vector<int64_t>& v) {
    const TensorView view{std::span<const int64_t>(v)};
    return here || sampling_.temperature <= 0 ? Tensor(view, nullptr) : flashinfer::to_device(view, logits.device());
  };
  const Tensor seeds = placed(seeds_), offsets = placed(offsets_);
  const Tensor drawn_there = draw(logits, seeds, offsets, std::nullopt);
  const Tensor there = flashinfer::host_readable(drawn_there);
  for (int64_t i = 0; i < rows; ++i) tokens[static_cast<size_t>(i)] = there.data_as<int32_t>()[i];
  return tokens;
}

}  // namespace llm
