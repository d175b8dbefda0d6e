// SPDX-License-Identifier: Apache-2.0
// The attention kernels of GPUs on the emulator, against the definition in double: ragged batches, pages, masks, cut
// keys; under several schedules; and what their memory accesses cost.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <optional>
#include <random>

#include "flashinfer/core/int_math.h"
#include "flashinfer/kernels/emu/emu.h"
#include "flashinfer/ops/attention/cuda/launch.h"
#include "flashinfer/ops/attention/ref.h"
#include "flashinfer/ops/common/reference.h"
#include "test_paths.h"

namespace flashinfer {
namespace {

/// Memory whose bounds the emulator knows, 256-byte aligned, of exactly the size requested.
class Memory {
 public:
  template <class T>
  T* make(size_t n) {
    void* p = std::aligned_alloc(256, round_up(n * sizeof(T) + 256, 256));
    all_.push_back({p, n * sizeof(T)});
    return static_cast<T*>(p);
  }
  template <class T>
  T* copy(const std::vector<T>& v) {
    T* p = make<T>(v.size());
    std::copy(v.begin(), v.end(), p);
    return p;
  }
  std::vector<emu::Range> sorted() const {
    std::vector<emu::Range> r = all_;
    std::sort(r.begin(), r.end(), [](const emu::Range& a, const emu::Range& b) { return a.begin < b.begin; });
    return r;
  }
  ~Memory() {
    for (const emu::Range& r : all_) std::free(const_cast<void*>(r.begin));
  }

 private:
  std::vector<emu::Range> all_;
};

struct Call {
  DType dtype = DType::kBF16, out = DType::kBF16;
  std::optional<DType> cache = {};                            // another type than `dtype`
  int dqk = 64, dvo = 64, heads = 4, kv_heads = 2, page = 0;  // page 0: ragged
  std::vector<cuda::AttentionShape> requests;
  bool causal = false;
  int window = -1;
  float cap = 0;
  bool mask = false, sinks = false, alibi = false;
  int e4m3 = 0;  // AttentionCudaConfig
};

void* module() {
  static void* so = [] {
    void* m = ::dlopen(FI_TEST_LIBRARY("libemu_attention"), RTLD_NOW | RTLD_LOCAL);
    if (m == nullptr) throw std::runtime_error(::dlerror());
    reinterpret_cast<void (*)(void*)>(::dlsym(m, "flashinfer_emu_bind"))(emu::hooks());
    return m;
  }();
  return so;
}

class Attention {
 public:
  explicit Attention(const Call& s) : s_(s) {
    std::mt19937 random(7);
    const auto values = [&](DType type, size_t n) {  // each array from its own seed: a longer one begins alike
      std::mt19937 random(static_cast<unsigned>(++arrays_));
      std::normal_distribution<float> normal;
      const auto fill = [&]<class T>(T* x) -> void* {
        for (size_t i = 0; i < n; ++i) x[i] = T(normal(random));
        return x;
      };
      switch (type) {
        case DType::kF32: return fill(memory_.make<float>(n));
        case DType::kF16: return fill(memory_.make<f16_t>(n));
        case DType::kBF16: return fill(memory_.make<bf16_t>(n));
        case DType::kF8E5M2: return fill(memory_.make<e5m2_t>(n));
        default: return fill(memory_.make<e4m3_t>(n));
      }
    };
    const DType cache = s.cache.value_or(s.dtype);
    std::vector<int32_t> qo{0}, kv{0}, len, pages;
    std::vector<int64_t> masks{0};
    for (const auto& r : s.requests) {
      qo.push_back(qo.back() + r.tokens), len.push_back(r.keys);
      kv.push_back(kv.back() + (s.page ? ceil_div(r.keys, s.page) : r.keys));
      masks.push_back(masks.back() + ceil_div(int64_t{r.tokens} * r.keys, 8));
    }
    const int64_t slots = s.page ? int64_t{kv.back()} * s.page : kv.back();
    for (int32_t i = 0; i < (s.page ? kv.back() : 0); ++i) pages.push_back(i);
    std::shuffle(pages.begin(), pages.end(), random);
    p_.q = values(s.dtype, static_cast<size_t>(int64_t{qo.back()} * s.heads * s.dqk));
    p_.k = values(cache, static_cast<size_t>(slots * s.kv_heads * s.dqk));
    p_.v = values(cache, static_cast<size_t>(slots * s.kv_heads * s.dvo));
    rows_ = int64_t{qo.back()} * s.heads;
    item_ = s.out == DType::kF32 ? 4 : 2;
    o_ = memory_.make<char>(static_cast<size_t>(rows_ * s.dvo) * item_);
    p_.o = o_, p_.lse = memory_.make<float>(static_cast<size_t>(rows_));
    p_.q_stride_n = s.heads * s.dqk, p_.q_stride_h = s.dqk, p_.o_stride_n = s.heads * s.dvo, p_.o_stride_h = s.dvo;
    p_.lse_stride_n = s.heads, p_.lse_stride_h = 1;
    p_.k_stride_n = s.kv_heads * s.dqk, p_.k_stride_h = s.dqk, p_.v_stride_n = s.kv_heads * s.dvo,
    p_.v_stride_h = s.dvo;
    p_.k_stride_page = s.page * p_.k_stride_n, p_.v_stride_page = s.page * p_.v_stride_n, p_.page_size = s.page;
    p_.num_qo_heads = s.heads, p_.num_kv_heads = s.kv_heads, p_.head_dim_qk = s.dqk, p_.head_dim_vo = s.dvo;
    p_.qo_indptr = memory_.copy(qo), p_.kv_indptr = memory_.copy(kv), p_.kv_len = memory_.copy(len);
    if (s.page) p_.kv_indices = memory_.copy(pages);
    p_.causal = s.causal, p_.window_left = s.window, p_.soft_cap = s.cap, p_.v_scale = 1.5f, p_.lse_factor = 1.0f;
    p_.scale = 1.0f / std::sqrt(static_cast<float>(s.dqk));
    if (s.mask) {
      std::vector<uint8_t> bits(static_cast<size_t>(masks.back()));
      for (uint8_t& b : bits) b = static_cast<uint8_t>(random());
      p_.mask = memory_.copy(bits), p_.mask_indptr = memory_.copy(masks);
    }
    std::vector<float> slopes(static_cast<size_t>(s.heads), -0.03f), sinks(static_cast<size_t>(s.heads), 0.7f);
    if (s.alibi) p_.alibi_slopes = memory_.copy(slopes);
    if (s.sinks) p_.sinks = memory_.copy(sinks);
  }

  /// Runs every kind of tile; returns what the emulator said.
  /// `spare`: tiles without rows, as in the grid of a captured graph.
  /// `wide`: 32 rows a warp where there are many.
  std::string run(uint64_t seed, bool count = false, size_t spare = 0, bool wide = false) {
    std::string error;
    const AttentionConfig c{s_.dtype, s_.cache.value_or(s_.dtype), s_.out, false};
    const bool cores = !cuda::attention_refusal(c, p_, true).empty();
    EXPECT_EQ(cores ? cuda::attention_cores_refusal(c, p_) : "", "");
    EXPECT_TRUE(cores || cuda::attention_copy_bytes(c, p_) == 16);
    const int group = s_.heads / s_.kv_heads;
    const std::string type = s_.dtype == DType::kF32      ? "f32"
                             : s_.dtype == DType::kBF16   ? "bf16"
                             : s_.dtype == DType::kF8E4M3 ? "e4m3"
                                                          : "f16",
                      cache = c.kv == c.q              ? ""
                              : c.kv == DType::kF8E5M2 ? "_e5m2"
                                                       : "_e4m3",
                      dim = std::to_string(s_.dqk);
    for (const bool few : {true, false}) {
      int64_t most = 0;
      for (const auto& r : s_.requests) most = std::max<int64_t>(most, int64_t{r.tokens} * group);
      AttentionCudaConfig cfg =
          cuda::attention_config(c, p_, few, most, {.shared_bytes = 232448, .wide = false, .e4m3 = s_.e4m3});
      if (!few) {  // those that were built
        cfg.threads = s_.dqk == 128 && !wide ? 256 : 128;
        cfg.wide = wide, cfg.held = wide && s_.dqk == 64 ? 4 : 0;
      }
      const AttentionCoresConfig plain = cuda::attention_cores_config(c, p_);
      cuda::AttentionWorkList w = cuda::attention_tiles(s_.requests, group, cores ? plain.rows : cfg.rows(), few);
      if (w.tiles.empty()) continue;
      w.tiles.resize(w.tiles.size() + spare);
      Memory more;
      const size_t counters = w.cuts * static_cast<size_t>(s_.kv_heads);
      AttentionCudaParams pp{p_, more.copy(w.tiles), more.copy(std::vector<uint32_t>(counters))};
      cuda::attention_tile_steps(pp, cfg), pp.group = static_cast<uint32_t>(group);
      pp.a.partial_o = more.make<float>(static_cast<size_t>(w.partial_rows * s_.kv_heads * s_.dvo));
      pp.a.softmax_state = more.make<float>(static_cast<size_t>(w.partial_rows * s_.kv_heads));
      std::vector<emu::Range> ranges = memory_.sorted(), others = more.sorted();
      ranges.insert(ranges.end(), others.begin(), others.end());
      std::sort(ranges.begin(), ranges.end(),
                [](const emu::Range& a, const emu::Range& b) { return a.begin < b.begin; });
      const auto launch = [&](const std::string& name, const cuda::Launch& l) {
        auto* kernel = reinterpret_cast<void (*)(const void*)>(::dlsym(module(), name.c_str()));
        if (kernel == nullptr) throw std::runtime_error("no kernel " + name);
        const emu::Report r =
            emu::run(kernel, &pp, sizeof(pp), l, {.seed = seed, .races = true, .count = count, .memory = ranges});
        error += r.error;
        counts_ = r.counts;
      };
      if (cores) {
        launch("cores" + (c.kv == DType::kF32 ? "_f32" : cache) + "_" + dim,
               cuda::attention_cores_launch(plain, pp, w.tiles.size(), false));
      } else {
        launch(type + cache + "_" + dim +
                   (few        ? "_few"
                    : cfg.wide ? "_wide"
                               : "_many") +
                   (s_.e4m3 == 2 ? "_all" : ""),
               cuda::attention_launch(cfg, pp, w.tiles.size(), false));
      }
      for (size_t i = 0; i < counters; ++i) EXPECT_EQ(pp.counters[i], 0u) << "counter " << i;  // for the next launch
    }
    return error;
  }

  /// The largest difference of outputs and of LSE from the definition.
  std::pair<double, double> worst() {
    std::vector<char> o(static_cast<size_t>(rows_ * s_.dvo) * 4);
    std::vector<float> lse(static_cast<size_t>(rows_));
    for (size_t b = 0; b < s_.requests.size(); ++b)
      define(static_cast<int64_t>(b), reinterpret_cast<float*>(o.data()), lse.data());
    std::pair<double, double> w{0, 0};
    for (int64_t i = 0; i < rows_ * s_.dvo; ++i) {
      const double mine = element(s_.out, o_, i), truth = reinterpret_cast<const float*>(o.data())[i];
      w.first = std::isnan(mine) ? INFINITY : std::fmax(w.first, std::fabs(mine - truth));
    }
    for (int64_t i = 0; i < rows_; ++i) {
      if (lse[static_cast<size_t>(i)] == p_.lse[i]) continue;  // infinities
      const double d = std::fabs(static_cast<double>(lse[static_cast<size_t>(i)]) - static_cast<double>(p_.lse[i]));
      w.second = std::isnan(d) ? INFINITY : std::fmax(w.second, d);
    }
    return w;
  }
  std::vector<char> output() const { return {o_, o_ + rows_ * s_.dvo * static_cast<int64_t>(item_)}; }
  const emu::Counts& counts() const { return counts_; }

 private:
  static double element(DType t, const void* p, int64_t i) { return ref::load_element(TensorView(p, t, {i + 1}), i); }
  static std::vector<double> row(DType t, const void* p, int64_t at, int64_t n) {
    std::vector<double> x;
    for (int64_t d = 0; d < n; ++d) x.push_back(element(t, p, at + d));
    return x;
  }
  /// Request b by the definition.
  void define(int64_t b, float* o, float* lse) const {
    const int64_t first = p_.qo_indptr[b], keys = p_.kv_len[b];
    const int64_t rows = p_.qo_indptr[b + 1] - first;
    const DType cache = s_.cache.value_or(s_.dtype);
    const auto slot = [&](int64_t j) -> int64_t {
      if (!s_.page) return p_.kv_indptr[b] + j;
      return int64_t{p_.kv_indices[p_.kv_indptr[b] + j / s_.page]} * s_.page + j % s_.page;
    };
    ref::AttentionRequest r{.rows = rows, .keys = keys, .heads = s_.heads, .kv_heads = s_.kv_heads, .dim_vo = s_.dvo};
    r.query = [&](int64_t i, int64_t h) { return row(s_.dtype, p_.q, ((first + i) * s_.heads + h) * s_.dqk, s_.dqk); };
    r.key = [&](int64_t j, int64_t g) { return row(cache, p_.k, (slot(j) * s_.kv_heads + g) * s_.dqk, s_.dqk); };
    r.value = [&](int64_t j, int64_t g) { return row(cache, p_.v, (slot(j) * s_.kv_heads + g) * s_.dvo, s_.dvo); };
    r.visible = [&](int64_t i, int64_t j) {
      const int64_t at = i + keys - rows, bit = i * keys + j;
      if (s_.window >= 0 && j < at - s_.window) return false;
      if (s_.mask) return (p_.mask[p_.mask_indptr[b] + bit / 8] >> (bit % 8) & 1) != 0;
      return !s_.causal || j <= at;
    };
    r.logit = [&](int64_t i, int64_t j, int64_t h, double dot) {
      double x = dot / std::sqrt(static_cast<double>(s_.dqk));
      if (s_.alibi) x += static_cast<double>(p_.alibi_slopes[h]) * static_cast<double>(j - i);
      return s_.cap > 0 ? s_.cap * std::tanh(x / s_.cap) : x;
    };
    if (s_.sinks) r.sink = [&](int64_t h) { return static_cast<double>(p_.sinks[h]); };
    r.store = [&](int64_t i, int64_t h, const std::vector<double>& out, double l) {
      const int64_t at = (first + i) * s_.heads + h;
      for (int64_t d = 0; d < s_.dvo; ++d)
        o[at * s_.dvo + d] = static_cast<float>(1.5 * out[static_cast<size_t>(d)]);  // v_scale
      lse[at] = static_cast<float>(l / std::log(2.0));
    };
    ref::attention(r);
  }

  Call s_;
  Memory memory_;
  AttentionParams p_{};
  char* o_;
  size_t item_;
  int arrays_ = 0;
  int64_t rows_;
  emu::Counts counts_;
};

void check(const char* name, const Call& s) {
  Attention first(s);
  for (const uint64_t seed : {0, 1, 2}) {
    Attention a(s);
    EXPECT_EQ(a.run(seed), "") << name << ", seed " << seed;
    const auto [o, lse] = a.worst();
    // Sums of e4m3 keep 14 bits; weights of e4m3 four.
    const double most = s.e4m3 == 2              ? 0.2
                        : s.out == DType::kBF16  ? 0.03
                        : s.out == DType::kF16   ? 0.004
                        : s.dtype == DType::kF32 ? 1e-5
                                                 : 0.004;
    EXPECT_LT(o, most) << name << ", seed " << seed;
    EXPECT_LT(lse, s.e4m3 != 0 ? 4e-3 : 1e-3) << name << ", seed " << seed;
    if (seed == 0) first.run(0);
    EXPECT_TRUE(a.output() == first.output()) << name << ": the schedule changed the result";
    if (s.dtype == DType::kF32 || s.dqk > 128) continue;
    Attention wide(s);
    EXPECT_EQ(wide.run(seed, false, 0, true), "") << name << ", 32 rows a warp, seed " << seed;
    EXPECT_TRUE(wide.output() == first.output()) << name << ": 32 rows a warp changed the result";
  }
}

TEST(EmuAttention, Decode) {
  check("ragged keys", {.requests = {{1, 1}, {1, 63}, {1, 64}, {1, 65}, {1, 200}}});
  check("pages of 16", {.heads = 8, .kv_heads = 2, .page = 16, .requests = {{1, 17}, {1, 100}, {1, 0}}});
  check("f16, D 128, pages of 5",
        {.dtype = DType::kF16, .out = DType::kF16, .dqk = 128, .dvo = 128, .page = 5, .requests = {{1, 77}, {2, 130}}});
  check("cut keys", {.heads = 2, .kv_heads = 1, .page = 16, .requests = {{1, 2100}, {1, 40}}});
}
TEST(EmuAttention, Prefill) {
  check("causal, ragged", {.requests = {{40, 40}, {33, 100}, {0, 5}, {1, 1}}, .causal = true});
  check("not causal, paged", {.page = 16, .requests = {{70, 90}}});
  check("window", {.requests = {{90, 150}}, .causal = true, .window = 37});
  check("cap and alibi", {.requests = {{50, 70}}, .causal = true, .cap = 5.0f, .alibi = true});
  check("mask", {.requests = {{35, 71}, {20, 20}}, .mask = true});
  check("sinks", {.requests = {{35, 71}, {1, 9}}, .causal = true, .sinks = true});
  check("more tokens than keys", {.requests = {{50, 20}}, .causal = true});
  check("f16, D 128, tiles of 128 rows",
        {.dtype = DType::kF16, .out = DType::kF16, .dqk = 128, .dvo = 128, .requests = {{75, 140}}, .causal = true});
  check("192 and 128 to f32",
        {.dtype = DType::kF16, .out = DType::kF32, .dqk = 192, .dvo = 128, .requests = {{40, 70}}, .causal = true});
}

TEST(EmuAttention, WithoutTensorCores) {
  const DType f32 = DType::kF32;
  check("f32, ragged", {.dtype = f32, .out = f32, .requests = {{1, 1}, {1, 63}, {5, 77}, {1, 0}}, .causal = true});
  check("f32, cut keys, pages, sinks",
        {.dtype = f32, .out = f32, .heads = 6, .kv_heads = 1, .page = 16, .requests = {{1, 1100}}, .sinks = true});
  check("f32, D 256, window, cap", {.dtype = f32,
                                    .out = f32,
                                    .dqk = 256,
                                    .dvo = 256,
                                    .requests = {{3, 50}},
                                    .causal = true,
                                    .window = 11,
                                    .cap = 5.0f});
  check("e4m3 cache", {.dtype = f32,
                       .out = f32,
                       .cache = DType::kF8E4M3,
                       .dqk = 128,
                       .dvo = 128,
                       .page = 7,
                       .requests = {{1, 130}, {2, 60}},
                       .causal = true});
  check("e4m3 cache, mask and alibi", {.dtype = f32,
                                       .out = f32,
                                       .cache = DType::kF8E4M3,
                                       .dqk = 128,
                                       .dvo = 128,
                                       .requests = {{4, 70}},
                                       .mask = true,
                                       .alibi = true});
}

TEST(EmuAttention, NarrowCaches) {
  Call e4m3{.dtype = DType::kF16, .out = DType::kF16, .cache = DType::kF8E4M3, .dqk = 128, .dvo = 128},
      e5m2{.cache = DType::kF8E5M2};
  const auto with = [](Call s, std::vector<cuda::AttentionShape> requests) {
    s.requests = std::move(requests);
    return s;
  };
  check("e4m3, ragged keys", with(e4m3, {{1, 1}, {1, 127}, {1, 128}, {1, 129}, {1, 300}}));
  check("e5m2, bf16 queries", with(e5m2, {{1, 1}, {1, 127}, {2, 128}, {1, 300}}));
  e4m3.page = 7, e4m3.heads = 8, e4m3.kv_heads = 2;
  check("e4m3, pages of 7, cut keys", with(e4m3, {{1, 600}, {1, 17}, {1, 0}}));
  e4m3.causal = e5m2.causal = true;
  check("e4m3, prefill", with(e4m3, {{40, 40}, {33, 100}, {0, 5}, {1, 1}}));
  check("e5m2, prefill", with(e5m2, {{70, 90}, {40, 20}}));
  e4m3.cap = 5.0f, e4m3.alibi = true, e5m2.mask = e5m2.sinks = true;
  check("e4m3, cap and alibi", with(e4m3, {{50, 70}, {2, 200}}));
  check("e5m2, mask and sinks", with(e5m2, {{35, 71}, {3, 140}}));
  e4m3.window = 37;
  check("e4m3, window", with(e4m3, {{90, 150}, {1, 350}}));
}

/// Queries and caches of e4m3, multiplied as such: the logits, or all.
TEST(EmuAttention, ProductsOfE4m3) {
  for (const int e4m3 : {1, 2}) {
    Call s{.dtype = DType::kF8E4M3, .dqk = 128, .dvo = 128, .e4m3 = e4m3};
    const auto with = [&](std::vector<cuda::AttentionShape> requests) {
      s.requests = std::move(requests);
      return s;
    };
    check("e4m3, decode", with({{1, 1}, {1, 127}, {1, 128}, {2, 129}, {1, 600}}));
    s.causal = true;
    check("e4m3, prefill", with({{40, 40}, {33, 100}, {0, 5}, {1, 1}, {20, 5}}));
    s.page = 7, s.cap = 5.0f, s.alibi = true, s.window = 37;
    check("e4m3, cap, alibi, window, pages", with({{50, 70}, {90, 150}}));
  }
}

TEST(EmuAttention, ARowDoesNotDependOnItsBatch) {
  const Call alone{.requests = {{40, 90}}, .causal = true},
      among{.requests = {{40, 90}, {300, 300}, {1, 500}}, .causal = true};
  Attention a(alone), b(among);
  EXPECT_EQ(a.run(0), "");
  EXPECT_EQ(b.run(0), "");
  const std::vector<char> x = a.output(), y = b.output();  // the first request is the same in both
  ASSERT_LT(x.size(), y.size());
  EXPECT_TRUE(std::equal(x.begin(), x.end(), y.begin()));
}

TEST(EmuAttention, TheMainLoopHasNoBankConflictsAndWholeSectors) {
  struct Kind {
    bool few;
    int cache;  // 0: f16, 1: e4m3, 2: e4m3 queries too, whose logits are products of e4m3, 3: and outputs
    bool wide;
  };
  std::vector<Kind> kinds;
  for (const int cache : {0, 1, 2, 3})
    for (const auto& [few, wide] : {std::pair{true, false}, {false, false}, {false, true}})
      kinds.push_back({few, cache, wide});
  for (const auto& [few, cache, wide] : kinds) {
    const bool narrow = cache > 0;
    Call s{.dtype = DType::kF16, .out = DType::kF16, .dqk = 128, .dvo = 128, .heads = 4, .kv_heads = 1};
    if (narrow) s.cache = DType::kF8E4M3;
    if (cache > 1) s.dtype = DType::kF8E4M3, s.out = DType::kBF16, s.e4m3 = cache - 1;
    s.requests = few ? std::vector<cuda::AttentionShape>{{1, 256}} : std::vector<cuda::AttentionShape>{{32, 256}};
    Attention a(s);
    EXPECT_EQ(a.run(0, true, 0, wide), "");
    const emu::Counts& c = a.counts();
    for (const emu::LineCount& l : c.lines) {
      const bool loop = l.where.find("async.h") != std::string::npos || l.where.find("mma.h") != std::string::npos;
      if (l.shared || loop) {
        EXPECT_EQ(l.units, l.least) << l.where;
      }
    }
    // K and V once, Q once: 256 keys of 2 x 256 bytes (8-bit: 128), and the queries.
    const uint64_t least = 256 * (narrow ? 256 : 512) + s.requests[0].tokens * 4ull * (cache > 1 ? 128 : 256);
    EXPECT_GE(c.global_load_sectors * 32, least);
    EXPECT_LE(c.global_load_sectors * 32, least * 104 / 100 + 4096) << c.text();
    EXPECT_GT(c.mma, 0u);
  }
}

/// A captured grid is for the largest batch: its spare blocks read their tile and return.
TEST(EmuAttention, SpareTilesDoNothing) {
  Call tensor{.dtype = DType::kF16, .out = DType::kF16, .dqk = 128, .dvo = 128, .heads = 4, .kv_heads = 1};
  Call cores{.dtype = DType::kF32, .out = DType::kF32, .dqk = 64, .dvo = 64, .heads = 4, .kv_heads = 1};
  for (Call s : {tensor, cores}) {
    s.requests = {{1, 100}};
    Attention alone(s), beside(s);
    EXPECT_EQ(alone.run(0, true), "");
    EXPECT_EQ(beside.run(0, true, 8), "");
    EXPECT_EQ(beside.output(), alone.output());
    EXPECT_EQ(beside.counts().shared_requests, alone.counts().shared_requests);
    EXPECT_EQ(beside.counts().barriers, alone.counts().barriers);
    EXPECT_EQ(beside.counts().global_store_bytes, alone.counts().global_store_bytes);
    EXPECT_LE(beside.counts().global_load_bytes, alone.counts().global_load_bytes + 8 * 256 * sizeof(AttentionTile));
  }
}

}  // namespace
}  // namespace flashinfer
