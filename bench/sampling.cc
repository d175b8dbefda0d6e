// SPDX-License-Identifier: Apache-2.0
// Sampling and top-k of a vocabulary of 131072 against reading the same rows (or copying them, where rows are written)
// on the library's threads: batches of 1 and 64 out of 256 MB, so that rows come from memory. Op and limit alternate;
// prints medians and the median of the ratios (limit / op).
//   bench_sampling [repeats [name]]        name: only the lines that contain it
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "bench/limits.h"
#include "flashinfer/core/context.h"
#include "flashinfer/ops/sampling/op.h"
#include "flashinfer/ops/topk/op.h"

namespace {
using namespace flashinfer;
using namespace flashinfer::bench;

constexpr int64_t kV = 131072, kRows = 512;

/// Logits as a model's: normal with a standard deviation of 3 (the softmax's top token has a tenth of the mass or so),
/// and probabilities of them; flat ones beside: every value within 30 % of 1 / kV.
struct Data {
  Tensor logits = Tensor::empty({kRows, kV}, DType::kF32), probs, flat = Tensor::empty({kRows, kV}, DType::kF32),
         out = Tensor::zeros({kRows, kV}, DType::kF32);
  Data() {
    parallel_for(kRows, [&](int64_t r) {
      uint64_t x = static_cast<uint64_t>(r) * 77777 + 1;
      const auto uniform = [&] {
        x = x * 6364136223846793005ull + 1442695040888963407ull;
        return (static_cast<double>(x >> 33) + 0.5) * 0x1p-31;
      };
      for (int64_t i = 0; i < kV; ++i) {
        const double u = uniform(), v = uniform();
        logits.data_as<float>()[r * kV + i] =
            static_cast<float>(3 * std::sqrt(-2 * std::log(u)) * std::cos(6.283185307 * v));
        flat.data_as<float>()[r * kV + i] = static_cast<float>((0.7 + 0.6 * u) / kV);
      }
    });
    probs = softmax({.logits = logits});
  }
};

std::string only;

/// run(first row, rows) against reading or copying those rows, all rows once a turn.
void line(const char* name, const Data& d, int64_t batch, bool copies, int repeats, int64_t item,
          const std::function<void(int64_t, int64_t)>& run) {
  if (std::string(name).find(only) == std::string::npos) return;
  const char* from = d.probs.data_as<char>();
  const auto limit = [&] {
    for (int64_t r = 0; r < kRows; r += batch) {
      const int64_t at = r * kV * item, bytes = batch * kV * item;
      copies ? copy_all(d.out.data_as<char>() + at, from + at, bytes) : read_all(from + at, bytes);
    }
  };
  const auto op = [&] {
    for (int64_t r = 0; r < kRows; r += batch) run(r, batch);
  };
  limit();
  op();
  std::vector<double> times, bounds, ratio;
  for (int i = 0; i < repeats; ++i) {
    double bound = seconds(limit);
    times.push_back(seconds(op));
    bound = (bound + seconds(limit)) / 2;
    bounds.push_back(bound);
    ratio.push_back(bound / times.back());
  }
  const double gb = static_cast<double>(kRows * kV * item * (copies ? 2 : 1)) * 1e-9;
  std::printf("%-46s batch %2d %8.1f us a row %6.1f GB/s  %s %6.1f GB/s  ratio %.2f\n", name, static_cast<int>(batch),
              median(times) / kRows * 1e6, gb / median(times), copies ? "copy" : "read", gb / median(bounds),
              median(ratio));
}

}  // namespace

int main(int argc, char** argv) {
  const int repeats = argc > 1 ? std::max(1, std::atoi(argv[1])) : 5;
  if (argc > 2) only = argv[2];
  const Data d;
  std::printf("%d threads, %d repeats\n", Context::current().executor.threads, repeats);
  const auto rows = [&](const Tensor& t, int64_t r, int64_t n) { return t.view().slice(0, r, r + n); };
  const Tensor half = Tensor::empty({kRows, kV}, DType::kBF16);
  for (int64_t i = 0; i < half.numel(); ++i) half.data_as<bf16_t>()[i] = bf16_t(d.logits.data_as<float>()[i]);
  const int64_t seed = 1, offset = 0;
  for (int64_t batch : {int64_t{1}, int64_t{64}}) {
    const auto row = [&](const char* name, bool copies, const std::function<void(int64_t, int64_t)>& run) {
      line(name, d, batch, copies, repeats, 4, run);
    };
    row("top_k=50 top_p=0.9 from probs", false, [&](int64_t r, int64_t n) {
      top_k_top_p_sampling_from_probs(
          {.probs = rows(d.probs, r, n), .top_k = 50, .top_p = 0.9, .seed = seed, .offset = offset});
    });
    row("top_p=0.9 from probs", false, [&](int64_t r, int64_t n) {
      top_p_sampling_from_probs({.probs = rows(d.probs, r, n), .top_p = 0.9, .seed = seed, .offset = offset});
    });
    row("joint from probs", false, [&](int64_t r, int64_t n) {
      top_k_top_p_sampling_from_probs({.probs = rows(d.probs, r, n),
                                       .top_k = 50,
                                       .top_p = 0.9,
                                       .filter_apply_order = "joint",
                                       .seed = seed,
                                       .offset = offset});
    });
    row("top_k=50 from probs", false, [&](int64_t r, int64_t n) {
      top_k_sampling_from_probs({.probs = rows(d.probs, r, n), .top_k = 50, .seed = seed, .offset = offset});
    });
    row("top_k=50 top_p=0.9 from flat probs", false, [&](int64_t r, int64_t n) {
      top_k_top_p_sampling_from_probs(
          {.probs = rows(d.flat, r, n), .top_k = 50, .top_p = 0.9, .seed = seed, .offset = offset});
    });
    row("top_p=0.9 from flat probs", false, [&](int64_t r, int64_t n) {
      top_p_sampling_from_probs({.probs = rows(d.flat, r, n), .top_p = 0.9, .seed = seed, .offset = offset});
    });
    row("min_p=0.1 from probs", false, [&](int64_t r, int64_t n) {
      min_p_sampling_from_probs({.probs = rows(d.probs, r, n), .min_p = 0.1, .seed = seed, .offset = offset});
    });
    row("top_k=50 top_p=0.9 from logits", false, [&](int64_t r, int64_t n) {
      top_k_top_p_sampling_from_logits(
          {.logits = rows(d.logits, r, n), .top_k = 50, .top_p = 0.9, .seed = seed, .offset = offset});
    });
    row("sampling_from_logits", false, [&](int64_t r, int64_t n) {
      sampling_from_logits({.logits = rows(d.logits, r, n), .seed = seed, .offset = offset});
    });
    row("top_k k=50 sorted", false,
        [&](int64_t r, int64_t n) { top_k({.input = rows(d.logits, r, n), .k = 50, .sorted = true}); });
    row("top_k k=2048", false, [&](int64_t r, int64_t n) { top_k({.input = rows(d.logits, r, n), .k = 2048}); });
    line("top_k k=50 bf16", d, batch, false, repeats, 2,
         [&](int64_t r, int64_t n) { top_k({.input = rows(half, r, n), .k = 50}); });
    row("softmax", true,
        [&](int64_t r, int64_t n) { softmax({.logits = rows(d.logits, r, n), .out = rows(d.out, r, n)}); });
    row("top_p_renorm_probs 0.9", true, [&](int64_t r, int64_t n) {
      top_p_renorm_probs({.probs = rows(d.probs, r, n), .top_p = 0.9, .renorm_probs = rows(d.out, r, n)});
    });
    row("top_p_renorm_probs 0.9 flat", true, [&](int64_t r, int64_t n) {
      top_p_renorm_probs({.probs = rows(d.flat, r, n), .top_p = 0.9, .renorm_probs = rows(d.out, r, n)});
    });
    row("top_k_mask_logits k=50", true, [&](int64_t r, int64_t n) {
      top_k_mask_logits({.logits = rows(d.logits, r, n), .top_k = 50, .masked_logits = rows(d.out, r, n)});
    });
  }
}
