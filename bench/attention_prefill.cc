// SPDX-License-Identifier: Apache-2.0
// Our side of bench/attention_prefill.py. A line "run DTYPE KV HQ HKV D BATCH NEW CONTEXT" answers the seconds of one
// causal batch prefill of NEW tokens a request behind CONTEXT cached ones, over scattered pages of 16; KV is bf16, f16,
// f32, e4m3 or nvfp4. "peak dot" and "peak fma" answer the GFLOP/s of all threads doing nothing but vdpbf16ps or
// vfmadd231ps on registers (0: the CPU has none).
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
#include "flashinfer/core/context.h"
#include "flashinfer/core/int_math.h"
#include "flashinfer/flashinfer.h"

namespace {
using namespace flashinfer;
using namespace flashinfer::bench;

constexpr int64_t kPage = 16;

Tensor random_tensor(std::initializer_list<int64_t> shape, DType type) {
  static std::minstd_rand rng(1);
  const Tensor t = Tensor::empty(shape, type);
  const auto fill = [&]<class T>(std::span<T> s) {
    for (T& x : s) x = T(static_cast<float>(rng() % 4096) / 1024.0f - 2.0f);
  };
  switch (type) {
    case DType::kF32: fill(t.span<float>()); break;
    case DType::kF16: fill(t.span<f16_t>()); break;
    case DType::kBF16: fill(t.span<bf16_t>()); break;
    case DType::kF8E4M3: fill(t.span<e4m3_t>()); break;
    default:
      for (int64_t i = 0; i < t.nbytes(); ++i) static_cast<uint8_t*>(t.data())[i] = static_cast<uint8_t>(rng() >> 8);
  }
  return t;
}
Tensor ints(const std::vector<int32_t>& v) {
  return Tensor::copy_of(std::span<const int32_t>(v), {static_cast<int64_t>(v.size())});
}

struct Shape {
  std::string type, kv;
  int64_t hq = 0, hkv = 0, d = 0, batch = 0, fresh = 0, context = 0;
  explicit Shape(std::istream& in) { in >> type >> kv >> hq >> hkv >> d >> batch >> fresh >> context; }
};
DType type_of(const std::string& name) {
  if (name == "f32") return DType::kF32;
  if (name == "f16") return DType::kF16;
  if (name == "bf16") return DType::kBF16;
  if (name == "e4m3") return DType::kF8E4M3;
  return DType::kU8;  // pairs of NVFP4
}

struct Run {
  Tensor workspace = Tensor::empty({0}, DType::kU8), q, k, v, k_sf, v_sf, out;
  BatchPrefillWithPagedKVCacheWrapper wrapper{workspace};
  bool scaled;

  explicit Run(const Shape& s) : scaled(s.kv == "nvfp4") {
    const int64_t pages = ceil_div(s.context + s.fresh, kPage), pool = pages * s.batch;
    std::vector<int32_t> qo{0}, kv{0}, ids, last;
    for (int64_t b = 0; b < s.batch; ++b) {
      qo.push_back(static_cast<int32_t>((b + 1) * s.fresh)), kv.push_back(static_cast<int32_t>((b + 1) * pages));
      last.push_back(static_cast<int32_t>((s.context + s.fresh - 1) % kPage + 1));
    }
    for (int64_t i = 0; i < pool; ++i) ids.push_back(static_cast<int32_t>(i));
    std::shuffle(ids.begin(), ids.end(), std::minstd_rand(2));
    q = random_tensor({s.batch * s.fresh, s.hq, s.d}, type_of(s.type));
    out = Tensor::empty({s.batch * s.fresh, s.hq, s.d}, type_of(s.type));
    const int64_t row = scaled ? s.d / 2 : s.d;
    k = random_tensor({pool, kPage, s.hkv, row}, type_of(s.kv));
    v = random_tensor({pool, kPage, s.hkv, row}, type_of(s.kv));
    if (scaled) {
      k_sf = random_tensor({pool, kPage, s.hkv, s.d / 16}, DType::kF8E4M3);
      v_sf = random_tensor({pool, kPage, s.hkv, s.d / 16}, DType::kF8E4M3);
    }
    const Tensor a = ints(qo), b = ints(kv), c = ints(ids), d = ints(last);
    wrapper.plan({.qo_indptr = a,
                  .paged_kv_indptr = b,
                  .paged_kv_indices = c,
                  .paged_kv_last_page_len = d,
                  .num_qo_heads = s.hq,
                  .num_kv_heads = s.hkv,
                  .head_dim_qk = s.d,
                  .page_size = kPage,
                  .causal = true,
                  .q_data_type = type_of(s.type),
                  .kv_data_type = type_of(s.kv)});
  }
  void operator()() {
    BatchPrefillRun a{.q = q, .paged_kv_cache = op::PagedKv{k, v}, .out = out};
    if (scaled) a.kv_cache_sf = op::PagedKv{k_sf, v_sf};
    wrapper.run(a);
  }
};

double answer(const std::string& line) {
  static std::map<std::string, Run> runs;
  std::istringstream in(line);
  std::string what;
  in >> what;
  if (what == "peak") {
    in >> what;
    return peak(what == "dot") * 1e-9;
  }
  if (!runs.count(line)) {
    runs.clear();  // one at a time: they are large
    runs.emplace(line, Shape(in));
  }
  Run& run = runs.at(line);
  return seconds([&] { run(); });
}

}  // namespace

int main() {
  for (std::string line; std::getline(std::cin, line);) {
    std::printf("%.9f\n", answer(line));
    std::fflush(stdout);
  }
}
