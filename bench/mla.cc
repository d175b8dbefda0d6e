// SPDX-License-Identifier: Apache-2.0
// MLA decode beside what binds it, measured in the same turn on the same threads: the BF16 dot peak (registers only, in
// asm, so that the compiler cannot spill the accumulators) and the page sum (the call's pages, read whole in the call's
// order). A line on standard input is "heads batch kv_len page_size [q_len [bf16|f16|f32|e4m3]]"; the answer is seconds
// of the call, GFLOP/s of the peak, and seconds of the page sum, medians of a few repeats. Without lines, prints the
// table of docs/performance.md.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iostream>
#include <memory>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "bench/limits.h"
#include "flashinfer/core/context.h"
#include "flashinfer/core/int_math.h"
#include "flashinfer/ops/mla/op.h"

namespace {
using namespace flashinfer;
using namespace flashinfer::bench;

struct Shape {
  int64_t heads, batch, kv_len, page_size, q_len = 1;
  DType type = DType::kBF16;
  friend bool operator==(const Shape&, const Shape&) = default;
};

typedef int64_t Wide __attribute__((vector_size(64), aligned(1), may_alias));
void sum(const char* p, int64_t bytes) {
  Wide s[4] = {};
  int64_t j = 0;
  for (; j + 256 <= bytes; j += 256)
    for (int k = 0; k < 4; ++k) s[k] ^= *reinterpret_cast<const Wide*>(p + j + 64 * k);
  for (; j < bytes; j += 64) s[0] ^= *reinterpret_cast<const Wide*>(p + j);
  const Wide all = s[0] ^ s[1] ^ s[2] ^ s[3];
  asm volatile("" : : "m"(all));
}

/// A batch over one 576-wide cache of at least 256 MB, its pages in random order.
struct Batch {
  Shape s;
  Tensor cache, q, out, qo, indptr, indices, len, workspace = Tensor::empty({0}, DType::kU8);
  BatchMLAPagedAttentionWrapper w{workspace};
  explicit Batch(const Shape& shape) : s(shape) {
    const DType q_type = s.type == DType::kF8E4M3 ? DType::kBF16 : s.type;
    const int64_t pages = ceil_div(s.kv_len, s.page_size), used = s.batch * pages;
    const int64_t pool = std::max(used, (int64_t{256} << 20) / (s.page_size * 576 * size_of(s.type)));
    cache = Tensor::empty({pool, s.page_size, 576}, s.type);
    q = Tensor::empty({s.batch * s.q_len, s.heads, 576}, q_type);
    out = Tensor::empty({s.batch * s.q_len, s.heads, 512}, q_type);
    std::mt19937 g(1);
    for (const Tensor* t : {&cache, &q}) {  // values in +-[0.5, 2)
      auto* p = static_cast<uint8_t*>(t->data());
      for (int64_t i = 0; i < t->nbytes(); i += size_of(t->dtype())) {
        const uint32_t x = g();
        if (t->dtype() == DType::kF32)
          *reinterpret_cast<float*>(p + i) = static_cast<float>(static_cast<int32_t>(x)) * 1e-9f;
        else if (t->dtype() == DType::kF16)
          *reinterpret_cast<uint16_t*>(p + i) = static_cast<uint16_t>(0x3800 + (x >> 21) + (x << 15));
        else if (t->dtype() == DType::kBF16)
          *reinterpret_cast<uint16_t*>(p + i) = static_cast<uint16_t>(0x3f00 + (x >> 24) + (x << 15));
        else
          p[i] = static_cast<uint8_t>(0x30 + (x >> 28) + (x << 7));
      }
    }
    std::vector<int32_t> ids(static_cast<size_t>(pool)), first, rows,
        lengths(static_cast<size_t>(s.batch), static_cast<int32_t>(s.kv_len));
    for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int32_t>(i);
    std::shuffle(ids.begin(), ids.end(), g);
    for (int64_t b = 0; b <= s.batch; ++b)
      first.push_back(static_cast<int32_t>(b * pages)), rows.push_back(static_cast<int32_t>(b * s.q_len));
    auto ints = [](const std::vector<int32_t>& v) {
      return Tensor::copy_of(std::span<const int32_t>(v), {static_cast<int64_t>(v.size())});
    };
    qo = ints(rows), indptr = ints(first), indices = ints(ids), len = ints(lengths);
    w.plan({.qo_indptr = qo,
            .kv_indptr = indptr,
            .kv_indices = indices,
            .kv_len_arr = len,
            .num_heads = s.heads,
            .head_dim_ckv = 512,
            .head_dim_kpe = 64,
            .page_size = s.page_size,
            .causal = true,
            .sm_scale = 0.005,
            .q_data_type = q_type,
            .kv_data_type = s.type});
  }
  void run() {
    BatchMlaRun a{.out = out, .query = op::PagedKv(q), .kv_cache = op::PagedKv(cache)};
    if (s.type == DType::kF8E4M3) a.ckv_scale = a.kpe_scale = 1.0;
    w.run(a);
  }
  /// The same pages in the same order, cut like the call: 1024 keys of a request a task.
  void page_sum() {
    const int64_t per_task = std::max<int64_t>(1, 1024 / s.page_size), pages = ceil_div(s.kv_len, s.page_size);
    const int64_t parts = ceil_div(pages, per_task), bytes = s.page_size * 576 * size_of(s.type);
    parallel_for(s.batch * parts, [&](int64_t i) {
      const int64_t b = i / parts, begin = i % parts * per_task;
      for (int64_t j = begin; j < std::min(begin + per_task, pages); ++j)
        sum(cache.data_as<char>() + indices.data_as<int32_t>()[b * pages + j] * bytes, bytes);
    });
  }
  double flops() const {
    const double keys = static_cast<double>(s.kv_len) - static_cast<double>(s.q_len - 1) / 2;
    return 2.0 * static_cast<double>(s.batch * s.q_len * s.heads) * keys * (576 + 512);
  }
  double bytes() const { return static_cast<double>(s.batch * s.kv_len * 576 * size_of(s.type)); }
};

struct Turn {
  double call, peak, sum;
};
Turn measure(Batch& b, int repeats) {
  b.run(), b.page_sum(), dot_peak();
  std::vector<double> call, top, sums;
  for (int i = 0; i < repeats; ++i) {
    sums.push_back(seconds([&] { b.page_sum(); }));
    call.push_back(seconds([&] { b.run(); }));
    top.push_back(dot_peak() * 1e-9);
  }
  return {median(call), median(top), median(sums)};
}

DType type_of(const std::string& t) {
  return t == "f16" ? DType::kF16 : t == "f32" ? DType::kF32 : t == "e4m3" ? DType::kF8E4M3 : DType::kBF16;
}
void print(const Shape& s) {
  Batch b(s);
  const Turn t = measure(b, 7);
  std::printf("%5lld %5lld %7lld %5lld %5lld %-14s %9.3f ms %7.1f GFLOP/s %5.2f of peak %6.1f GB/s %5.2f of page sum\n",
              static_cast<long long>(s.heads), static_cast<long long>(s.batch), static_cast<long long>(s.kv_len),
              static_cast<long long>(s.page_size), static_cast<long long>(s.q_len), std::string(name(s.type)).c_str(),
              t.call * 1e3, b.flops() / t.call * 1e-9, b.flops() / t.call * 1e-9 / t.peak, b.bytes() / t.call * 1e-9,
              t.sum / t.call);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::string(argv[1]) == "-") {
    std::string line;
    Shape last{};
    std::unique_ptr<Batch> batch;
    while (std::getline(std::cin, line)) {
      std::istringstream in(line);
      Shape s{};
      std::string type;
      in >> s.heads >> s.batch >> s.kv_len >> s.page_size;
      if (in >> s.q_len >> type) s.type = type_of(type);
      if (s.q_len < 1) s.q_len = 1;
      if (!batch || !(s == last)) batch.reset(), batch = std::make_unique<Batch>(s), last = s;
      const Turn t = measure(*batch, 3);
      std::printf("%.9f %.3f %.9f\n", t.call, t.peak, t.sum);
      std::fflush(stdout);
    }
    return 0;
  }
  if (argc > 4) {
    Shape s{std::atoll(argv[1]), std::atoll(argv[2]), std::atoll(argv[3]), std::atoll(argv[4])};
    if (argc > 5) s.q_len = std::atoll(argv[5]);
    if (argc > 6) s.type = type_of(argv[6]);
    print(s);
    return 0;
  }
  std::printf("%d threads; dims 512 + 64\nheads batch kv_len  page q_len\n", Context::current().executor.threads);
  const Shape shapes[] = {{128, 1, 4096, 64},
                          {128, 4, 2048, 64},
                          {16, 1, 8192, 64},
                          {16, 8, 4096, 64},
                          {1, 8, 8192, 64},
                          {2, 8, 8192, 64},
                          {4, 8, 8192, 64},
                          {8, 8, 8192, 64},
                          {16, 8, 4096, 1},
                          {1, 8, 8192, 1},
                          {16, 8, 4096, 64, 4},
                          {16, 8, 4096, 64, 1, DType::kF8E4M3},
                          {16, 8, 4096, 64, 1, DType::kF16},
                          {128, 4, 2048, 64, 1, DType::kF32}};
  for (const Shape& s : shapes) print(s);
}
