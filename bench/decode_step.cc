// SPDX-License-Identifier: Apache-2.0
// The products of one decoded token of a small model (SmolLM2-135M: 30 layers of four Q4_1 weights, a Q8_0 vocabulary),
// back to back, beside the same bytes only read in the same order and cut the same way, in turns: what the products
// cost beyond memory, without the rest of a step.
//   bench_decode_step [rounds]
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "bench/clock.h"
#include "flashinfer/flashinfer.h"

namespace {
using namespace flashinfer;
using namespace flashinfer::bench;

struct Matrix {
  const char* format;
  int64_t k, n;
};
constexpr Matrix kLayer[] = {{"Q4_1", 576, 960}, {"Q4_1", 576, 576}, {"Q4_1", 576, 3072}, {"Q4_1", 1536, 576}},
                 kHead = {"Q8_0", 576, 49152};
constexpr int kLayers = 30;

struct Weight {
  Matrix shape;
  TensorView data;
};

/// Panels of random quants and scales near 2^-7, which are copied to where the weights are.
Tensor packed(const Matrix& m) {
  const int64_t block = m.format[1] == '4' ? 20 : 34;
  const Tensor rows = Tensor::empty({m.n, m.k / 32 * block}, DType::kU8);
  std::minstd_rand rng(1);
  uint8_t* p = rows.data_as<uint8_t>();
  for (int64_t i = 0; i < rows.nbytes(); ++i) p[i] = static_cast<uint8_t>(rng() / 7);
  for (int64_t i = 0; i < rows.nbytes(); i += block)
    for (int j = 0; j < (block == 20 ? 4 : 2); j += 2) p[i + j] = 0, p[i + j + 1] = 0x20;
  return prepare_gguf_weights({.b_blocks = rows, .format = m.format});
}

struct Step {
  Tensor memory;
  std::vector<Weight> weights;
  Tensor a = Tensor::empty({1, 1536}, DType::kBF16), out = Tensor::empty({1, 49152}, DType::kF32);
  double bytes = 0;

  Step() {
    std::vector<Tensor> layer;
    for (const Matrix& m : kLayer) layer.push_back(packed(m));
    const Tensor head = packed(kHead);
    int64_t total = head.nbytes();
    for (const Tensor& t : layer) total += kLayers * t.nbytes();
    memory = Tensor::empty({total}, DType::kU8);
    int64_t used = 0;
    const auto add = [&](const Matrix& m, const Tensor& t) {
      uint8_t* to = memory.data_as<uint8_t>() + used;
      std::memcpy(to, t.data(), static_cast<size_t>(t.nbytes()));
      weights.push_back({m, TensorView(to, t.dtype(), t.view().shape(), t.view().strides())});
      used += t.nbytes();
    };
    for (int i = 0; i < kLayers; ++i)
      for (size_t j = 0; j < layer.size(); ++j) add(kLayer[j], layer[j]);
    add(kHead, head);
    bytes = static_cast<double>(total);
    for (int64_t i = 0; i < a.numel(); ++i) a.data_as<bf16_t>()[i] = bf16_t(0.01f * static_cast<float>(i % 13 - 6));
  }
  /// As mm_gguf's threads would read at best: each a half of every weight, all meet after each.
  void read() const {
    const int64_t threads = Context::current().executor.threads;
    for (const Weight& w : weights)
      parallel_for(threads, [&](int64_t t) {
        typedef int64_t Wide __attribute__((vector_size(64), aligned(64), may_alias));
        const int64_t lines = w.data.nbytes() / 64;
        const Wide *p = static_cast<const Wide*>(w.data.data()) + lines * t / threads,
                   *end = static_cast<const Wide*>(w.data.data()) + lines * (t + 1) / threads;
        Wide s[4] = {};
        for (; p + 4 <= end; p += 4)
          for (int k = 0; k < 4; ++k) __builtin_prefetch(p + k + 128, 0, 2), s[k] ^= p[k];
        const Wide all = s[0] ^ s[1] ^ s[2] ^ s[3];
        asm volatile("" : : "m"(all));
      });
  }
  void multiply(const Weight& w, bool quantize) const {
    const bool head = w.shape.n == kHead.n;
    const TensorView x = a.view().slice(1, 0, w.shape.k),
                     y = head ? out.view()
                              : TensorView(out.data(), DType::kBF16, std::array{int64_t{1}, w.shape.n},
                                           std::array{w.shape.n, int64_t{1}});
    mm_gguf({.a = x,
             .b_blocks = w.data,
             .format = w.shape.format,
             .out = y,
             .out_dtype = y.dtype(),
             .quantize_a = quantize});
  }
};

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 200;
  const Step step;
  const char* names[] = {"qkv 576 x 960", "output 576 x 576", "gate, up 576 x 3072", "down 1536 x 576",
                         "vocabulary 576 x 49152"};
  std::vector<double> read, all, exact, part[5], hot[5];
  const auto run = [&](bool quantize) {
    for (const Weight& w : step.weights) step.multiply(w, quantize);
  };
  run(true), run(false);
  for (int r = 0; r < rounds; ++r) {
    step.read();
    read.push_back(seconds([&] { step.read(); }));
    all.push_back(seconds([&] { run(true); }));
    std::vector<double> sums(5, 0.0);
    for (size_t i = 0; i < step.weights.size(); ++i)
      sums[i + 1 == step.weights.size() ? 4 : i % 4] += seconds([&] { step.multiply(step.weights[i], true); });
    for (size_t j = 0; j < 5; ++j) part[j].push_back(sums[j] / (j < 4 ? kLayers : 1));
    for (size_t j = 0; j < 5; ++j) {
      const Weight& w = step.weights[j < 4 ? j : step.weights.size() - 1];
      step.multiply(w, true);
      hot[j].push_back(seconds([&] { step.multiply(w, true); }));
    }
    exact.push_back(seconds([&] { run(false); }));
  }
  const double base = median(read);
  std::printf("%.1f MB: read %.2f ms (%.1f GB/s), products %.2f ms (%.1f GB/s, share %.2f), exact %.2f ms (%.2f)\n",
              step.bytes * 1e-6, base * 1e3, step.bytes / base * 1e-9, median(all) * 1e3,
              step.bytes / median(all) * 1e-9, base / median(all), median(exact) * 1e3, base / median(exact));
  for (size_t j = 0; j < 5; ++j) {
    const double n = static_cast<double>(step.weights[j < 4 ? j : step.weights.size() - 1].data.nbytes());
    std::printf("%-24s %8.1f us (%.1f GB/s), again at once %8.1f us (%.1f GB/s)\n", names[j], median(part[j]) * 1e6,
                n / median(part[j]) * 1e-9, median(hot[j]) * 1e6, n / median(hot[j]) * 1e-9);
  }
}
