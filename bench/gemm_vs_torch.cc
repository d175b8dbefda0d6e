// SPDX-License-Identifier: Apache-2.0
// Our side of bench/gemm_vs_torch.py: a line "mm M N K COUNT packed|plain" answers the median seconds of COUNT products
// in a row, as a model's stream of calls makes them, "read M N K COUNT" those of reading the weights that one product
// reads. Weights rotate through at least 128 MB, so that no cache holds them.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <map>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "bench/limits.h"
#include "flashinfer/core/int_math.h"
#include "flashinfer/flashinfer.h"

namespace {
using namespace flashinfer;
using namespace flashinfer::bench;

struct Set {
  Tensor a;
  std::vector<Tensor> plain, packed;  // copies of [n, k]
  size_t next = 0;
};
Tensor random_bf16(int64_t rows, int64_t columns) {
  static std::minstd_rand rng(1);
  const Tensor t = Tensor::empty({rows, columns}, DType::kBF16);
  for (bf16_t& x : t.span<bf16_t>()) x = bf16_t(static_cast<float>(rng() % 1024) / 1024.0f - 0.5f);
  return t;
}
Set make_set(int64_t m, int64_t n, int64_t k) {
  Set s{.a = random_bf16(m, k), .plain = {}, .packed = {}};
  const int64_t copies = std::clamp<int64_t>((int64_t{128} << 20) / std::max<int64_t>(1, n * k * 2) + 1, 1, 200);
  // One block each for all copies: weights of under 2 MB would miss the huge pages that a model's arena has.
  const Tensor plain = random_bf16(copies * n, k),
               packed = Tensor::empty({copies * ceil_div(n, 16), 1 + ceil_div(k, 2), 32}, DType::kBF16);
  for (int64_t i = 0; i < copies; ++i) {
    s.plain.emplace_back(plain.view().slice(0, i * n, (i + 1) * n), plain.owner());
    const int64_t panels = ceil_div(n, 16);
    s.packed.emplace_back(packed.view().slice(0, i * panels, (i + 1) * panels), packed.owner());
    prepare_mm_weights({.b = s.plain.back().view().transpose(0, 1), .out = s.packed.back().view()});
  }
  return s;
}

/// Seconds to read all of `t`: sums of 16-byte words, four streams a task, as one stream a core leaves memory idle at
/// page ends.
double read_seconds(const TensorView& t) {
  typedef uint64_t Word __attribute__((vector_size(16)));
  constexpr int64_t kTask = 1 << 16, kStreams = 4, kStream = kTask / kStreams / static_cast<int64_t>(sizeof(Word));
  const Word* words = static_cast<const Word*>(t.data());
  const int64_t tasks = std::max<int64_t>(1, t.nbytes() / kTask);
  const double time = seconds([&] {
    parallel_for(tasks, [&](int64_t task) {
      const Word* p = words + task * kStreams * kStream;
      Word sum[kStreams * 2] = {};
      for (int64_t i = 0; i < kStream; i += 4)
        for (int64_t s = 0; s < kStreams; ++s) {
          const Word* q = p + s * kStream + i;
          sum[2 * s] += q[0] ^ q[1];
          sum[2 * s + 1] += q[2] ^ q[3];
        }
      for (int64_t s = 1; s < 2 * kStreams; ++s) sum[0] += sum[s];
      asm volatile("" ::"x"(sum[0]));
    });
  });
  return time * static_cast<double>(t.nbytes()) / static_cast<double>(tasks * kTask);  // the last task may be missing
}

double once(Set& s, const std::string& what, const std::string& form, const Tensor& out) {
  const size_t i = s.next++ % s.plain.size();
  if (what == "read") return read_seconds(s.packed[i]);
  if (form == "packed") return seconds([&] { mm_bf16({.a = s.a, .b = s.packed[i], .out = out}); });
  const TensorView b = s.plain[i].view().transpose(0, 1);
  return seconds([&] { mm_bf16({.a = s.a, .b = b, .out = out}); });
}
double answer(const std::string& line) {
  static std::map<std::string, Set> sets;
  std::istringstream in(line);
  std::string what, form;
  int64_t m = 0, n = 0, k = 0, count = 1;
  in >> what >> m >> n >> k >> count >> form;
  const std::string key = str(m, "x", n, "x", k);
  if (!sets.count(key)) {
    sets.clear();  // one at a time: they are large
    sets.emplace(key, make_set(m, n, k));
  }
  const Tensor out = Tensor::empty({m, n}, DType::kBF16);
  std::vector<double> times;
  for (int64_t i = 0; i < count; ++i) times.push_back(once(sets.at(key), what, form, out));
  return median(times);
}

}  // namespace

int main() {
  for (std::string line; std::getline(std::cin, line);) {
    std::printf("%.9f\n", answer(line));
    std::fflush(stdout);
  }
}
