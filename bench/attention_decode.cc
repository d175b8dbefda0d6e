// SPDX-License-Identifier: Apache-2.0
// Batch decode over paged KV beside its limits, measured in the same turn: the page sum (the same pages summed in the
// same order by the same threads) and the arithmetic peaks (bf16 dot product, f32 FMA).
//
//   bench_attention_decode [--only TEXT] [--pairs] [--turns N]
//     prints the table; --pairs: only the ratios between shapes
//   bench_attention_decode --serve
//     for bench/attention_decode.py: reads lines "BATCH KV HQ HKV D PAGE DTYPE what" (what: run, pages), prints the
//     seconds of each
#include <immintrin.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "bench/limits.h"
#include "flashinfer/core/context.h"
#include "flashinfer/core/int_math.h"
#include "flashinfer/flashinfer.h"

namespace {
using namespace flashinfer;
using namespace flashinfer::bench;

// ---- one shape ----
struct Shape {
  std::string name;
  std::vector<int64_t> lengths;
  int64_t hq = 32, hkv = 8, d = 128, page = 16;
  std::string dtype = "bf16";  // of the cache; q is f16 with an f16 cache, else bf16
  std::string layout = "NHD";
};
const std::map<std::string, DType> kTypes = {{"bf16", DType::kBF16},   {"f16", DType::kF16},     {"f32", DType::kF32},
                                             {"e4m3", DType::kF8E4M3}, {"e5m2", DType::kF8E5M2}, {"nvfp4", DType::kU8}};

/// Random values that are ordinary in `type`, a megabyte repeated.
void fill(const Tensor& t) {
  std::minstd_rand rng(1);
  const int64_t n = std::min<int64_t>(t.nbytes(), 1 << 20);
  char* p = static_cast<char*>(t.data());
  for (int64_t i = 0; i < n / 4; ++i) {
    const float x = static_cast<float>(rng() % 2048) / 1024.0f - 1.0f;
    const DType type = t.dtype();
    if (type == DType::kBF16)
      reinterpret_cast<bf16_t*>(p)[2 * i] = bf16_t(x), reinterpret_cast<bf16_t*>(p)[2 * i + 1] = bf16_t(-x);
    else if (type == DType::kF16)
      reinterpret_cast<f16_t*>(p)[2 * i] = f16_t(x), reinterpret_cast<f16_t*>(p)[2 * i + 1] = f16_t(-x);
    else if (type == DType::kF32)
      reinterpret_cast<float*>(p)[i] = x;
    else
      for (int64_t j = 0; j < 4; ++j)
        reinterpret_cast<uint8_t*>(p)[4 * i + j] = static_cast<uint8_t>((rng() >> 8) & 0xb7);
  }
  for (int64_t i = n; i < t.nbytes(); i += n) std::memcpy(p + i, p, static_cast<size_t>(std::min(n, t.nbytes() - i)));
}

struct Decode {
  Shape shape;
  Tensor cache, scales, q, out, workspace = Tensor::empty({0}, DType::kU8);
  Tensor indptr, indices, last;
  BatchDecodeWithPagedKVCacheWrapper wrapper;
  double keys = 0;

  explicit Decode(const Shape& s) : shape(s), wrapper(workspace, s.layout) {
    std::vector<int32_t> first{0}, ids, ends;
    for (int64_t n : s.lengths) {
      first.push_back(first.back() + static_cast<int32_t>(ceil_div(n, s.page)));
      ends.push_back(static_cast<int32_t>((n - 1) % s.page + 1));
      keys += static_cast<double>(n);
    }
    ids.resize(static_cast<size_t>(first.back()));
    std::iota(ids.begin(), ids.end(), 0);
    std::shuffle(ids.begin(), ids.end(), std::minstd_rand(7));
    auto tensor = [](const std::vector<int32_t>& v) {
      return Tensor::copy_of(std::span<const int32_t>(v), {static_cast<int64_t>(v.size())});
    };
    indptr = tensor(first), indices = tensor(ids), last = tensor(ends);
    const DType kv = kTypes.at(s.dtype), qt = s.dtype == "f16"   ? DType::kF16
                                              : s.dtype == "f32" ? DType::kF32
                                                                 : DType::kBF16;
    const auto batch = static_cast<int64_t>(s.lengths.size()), pages = static_cast<int64_t>(ids.size());
    const auto planes = [&](int64_t dim, DType t) {
      return s.layout == "NHD" ? Tensor::empty({pages, 2, s.page, s.hkv, dim}, t)
                               : Tensor::empty({pages, 2, s.hkv, s.page, dim}, t);
    };
    cache = planes(kv == DType::kU8 ? s.d / 2 : s.d, kv);
    if (kv == DType::kU8) scales = planes(s.d / 16, DType::kF8E4M3), fill(scales);
    q = Tensor::empty({batch, s.hq, s.d}, qt), out = Tensor::empty({batch, s.hq, s.d}, qt);
    fill(cache), fill(q);
    plan();
  }
  void plan() {
    const DType kv = cache.dtype();
    wrapper.plan({.indptr = indptr,
                  .indices = indices,
                  .last_page_len = last,
                  .num_qo_heads = shape.hq,
                  .num_kv_heads = shape.hkv,
                  .head_dim = shape.d,
                  .page_size = shape.page,
                  .q_data_type = q.dtype(),
                  .kv_data_type = kv});
  }
  double run() {
    BatchDecodeRun r{.q = q, .paged_kv_cache = cache, .out = out};
    if (scales.defined()) r.kv_cache_sf = scales;
    return seconds([&] { wrapper.run(r); });
  }
  double bytes() const {
    return keys * static_cast<double>(shape.hkv * shape.d * 2) *
           (scales.defined() ? 0.5 + 1.0 / 16 : static_cast<double>(size_of(cache.dtype())));
  }
  double flops() const { return keys * static_cast<double>(shape.hq * shape.d * 4); }

  /// Seconds to sum the pages in the order of the page table. Four streams a page: one leaves memory idle at page ends.
  double pages() const {
    typedef uint64_t Word __attribute__((vector_size(16)));
    const int64_t n = indices.size(0), page_bytes = cache.nbytes() / n;
    const int64_t each = std::max<int64_t>(1, (1 << 18) / page_bytes), tasks = ceil_div(n, each);
    const auto* ids = indices.data_as<int32_t>();
    const char* base = static_cast<const char*>(cache.data());
    return seconds([&] {
      parallel_for(tasks, [&](int64_t task) {
        Word sum[8] = {};
        for (int64_t i = task * each; i < std::min(n, (task + 1) * each); ++i) {
          const char* p = base + ids[i] * page_bytes;
          const int64_t quarter = page_bytes / 4;
          for (int64_t at = 0; at < quarter; at += 64)
            for (int64_t s = 0; s < 4; ++s) {
              const Word* w = reinterpret_cast<const Word*>(p + s * quarter + at);
              sum[2 * s] += w[0] ^ w[1];
              sum[2 * s + 1] += w[2] ^ w[3];
            }
        }
        for (int s = 1; s < 8; ++s) sum[0] += sum[s];
        asm volatile("" ::"x"(sum[0]));
      });
    });
  }
};

std::vector<int64_t> times(int64_t n, int64_t length) { return std::vector<int64_t>(static_cast<size_t>(n), length); }
std::vector<int64_t> skewed() {
  std::vector<int64_t> v = times(32, 128);
  v[20] = 16384;
  return v;
}
std::vector<Shape> shapes() {
  return {
      {.name = "G4 1x16k", .lengths = times(1, 16384)},
      {.name = "G4 1x2k", .lengths = times(1, 2048)},
      {.name = "G4 8x4k", .lengths = times(8, 4096)},
      {.name = "G4 64x2k", .lengths = times(64, 2048)},
      {.name = "G1 8x4k", .lengths = times(8, 4096), .hq = 8},
      {.name = "G1 32 heads 2x4k", .lengths = times(2, 4096), .hq = 32, .hkv = 32},
      {.name = "G8 8x4k", .lengths = times(8, 4096), .hq = 64},
      {.name = "G16 8x4k", .lengths = times(8, 4096), .hq = 128},
      {.name = "G4 8x4k hnd", .lengths = times(8, 4096), .layout = "HND"},
      {.name = "G4 8x4k d64", .lengths = times(8, 4096), .d = 64},
      {.name = "G4 8x4k d256", .lengths = times(8, 4096), .hq = 16, .hkv = 4, .d = 256},
      {.name = "G1 8x4k f16", .lengths = times(8, 4096), .hq = 8, .dtype = "f16"},
      {.name = "G4 8x4k f16", .lengths = times(8, 4096), .dtype = "f16"},
      {.name = "G8 8x4k f16", .lengths = times(8, 4096), .hq = 64, .dtype = "f16"},
      {.name = "G1 8x4k e4m3", .lengths = times(8, 4096), .hq = 8, .dtype = "e4m3"},
      {.name = "G4 8x4k e4m3", .lengths = times(8, 4096), .dtype = "e4m3"},
      {.name = "G8 8x4k e4m3", .lengths = times(8, 4096), .hq = 64, .dtype = "e4m3"},
      {.name = "G16 8x4k e4m3", .lengths = times(8, 4096), .hq = 128, .dtype = "e4m3"},
      {.name = "G1 8x4k nvfp4", .lengths = times(8, 4096), .hq = 8, .dtype = "nvfp4"},
      {.name = "G4 8x4k nvfp4", .lengths = times(8, 4096), .dtype = "nvfp4"},
      {.name = "G8 8x4k nvfp4", .lengths = times(8, 4096), .hq = 64, .dtype = "nvfp4"},
      {.name = "G16 8x4k nvfp4", .lengths = times(8, 4096), .hq = 128, .dtype = "nvfp4"},
      {.name = "G4 8x4k page1", .lengths = times(8, 4096), .page = 1},
      {.name = "G4 8x4k page64", .lengths = times(8, 4096), .page = 64},
      {.name = "G4 skewed", .lengths = skewed()},
      {.name = "G4 balanced", .lengths = times(32, 636)},
  };
}

/// Turns of ours, pages and peaks, so that neighbours in time are compared; the memory of this kind of machine changes
/// by the second.
void print_row(const Shape& s, int turns) {
  Decode d(s);
  for (int i = 0; i < 2; ++i) d.run(), d.pages();
  std::vector<double> run, share, dot_share, fma_share, pages;
  for (int i = 0; i < turns; ++i) {
    const double peak = dot_peak(), fma = fma_peak(), a = d.run(), p = d.pages(), b = d.run();
    const double mine = (a + b) / 2;
    run.push_back(mine), pages.push_back(p), share.push_back(p / mine);
    dot_share.push_back(peak > 0 ? d.flops() / mine / peak : 0),
        fma_share.push_back(fma > 0 ? d.flops() / mine / fma : 0);
  }
  std::printf("%-18s %9.0f %9.2f %9.2f %7.2f %9.1f %7.2f %7.2f %10.2f\n", s.name.c_str(), median(run) * 1e6,
              d.bytes() / median(run) * 1e-9, d.bytes() / median(pages) * 1e-9, median(share),
              d.flops() / median(run) * 1e-9, median(dot_share), median(fma_share), d.keys / median(run) * 1e-6);
  std::fflush(stdout);
}

/// Keys a second of the first over the second, in turns.
void print_pair(const Shape& a, const Shape& b, int turns) {
  Decode x(a), y(b);
  for (int i = 0; i < 2; ++i) x.run(), y.run();
  std::vector<double> ratio;
  for (int i = 0; i < turns; ++i) {
    const double before = y.run(), mine = x.run(), after = y.run();
    ratio.push_back((before + after) / 2 / mine * x.keys / y.keys);
  }
  std::printf("%-18s over %-18s %7.2f\n", a.name.c_str(), b.name.c_str(), median(ratio));
  std::fflush(stdout);
}
void print_pairs(const std::string& only, int turns) {
  const std::vector<Shape> all = shapes();
  const auto find = [&](const std::string& name) {
    for (const Shape& s : all)
      if (s.name == name) return s;
    throw std::runtime_error("no shape " + name);
  };
  std::vector<std::pair<std::string, std::string>> pairs = {{"G4 8x4k page1", "G4 8x4k page64"},
                                                            {"G4 skewed", "G4 balanced"}};
  for (const std::string g : {"G1", "G4", "G8", "G16"})
    for (const std::string type : {" f16", " e4m3", " nvfp4"})
      if (g != "G16" || type != " f16") pairs.emplace_back(g + " 8x4k" + type, g + " 8x4k");
  for (const auto& [a, b] : pairs)
    if (a.find(only) != std::string::npos) print_pair(find(a), find(b), turns);
}

void print_plan() {
  for (const auto& [batch, length] : {std::pair<int64_t, int64_t>{256, 16}, {256, 16 * 512}}) {
    Decode d({.name = "plan", .lengths = times(batch, length), .hq = 4, .hkv = 1, .d = 16});
    std::vector<double> t;
    for (int i = 0; i < 300; ++i) t.push_back(seconds([&] { d.plan(); }));
    std::printf("plan: batch %lld, %lld page ids: %.1f us\n", static_cast<long long>(batch),
                static_cast<long long>(d.indices.size(0)), median(t) * 1e6);
  }
}

int serve() {
  std::unique_ptr<Decode> held;
  std::string of;
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream in(line);
    int64_t batch = 0, kv = 0;
    Shape s;
    std::string what;
    in >> batch >> kv >> s.hq >> s.hkv >> s.d >> s.page >> s.dtype >> what;
    s.lengths = times(batch, kv);
    const std::string key = line.substr(0, line.rfind(' '));
    if (key != of) held.reset(), held = std::make_unique<Decode>(s), of = key;
    std::printf("%.9f\n", what == "pages" ? held->pages() : held->run());
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Batch decode beside its limits");
  std::string only;
  int turns = 9;
  bool serving = false, pairs = false;
  app.add_option("--only", only, "rows whose name contains this");
  app.add_option("--turns", turns, "measurements of each row");
  app.add_flag("--pairs", pairs, "only the ratios between shapes");
  app.add_flag("--serve", serving, "answer lines of stdin");
  CLI11_PARSE(app, argc, argv);
  if (serving) return serve();
  std::printf("%d threads, medians of %d turns\n", Context::current().executor.threads, turns);
  std::printf("%-18s %9s %9s %9s %7s %9s %7s %7s %10s\n", "", "us", "KV GB/s", "pages", "/pages", "GFLOP/s", "/dot",
              "/fma", "Mkeys/s");
  for (const Shape& s : shapes())
    if (!pairs && s.name.find(only) != std::string::npos) print_row(s, turns);
  print_pairs(only, turns);
  if (std::string("plan").find(only) != std::string::npos) print_plan();
}
