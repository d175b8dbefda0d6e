// SPDX-License-Identifier: Apache-2.0
// Products whose time is that of reading weights: a GEMV, and a token through 8 of 64 experts; beside each the same
// bytes only read, in turns. Then MoE with many tokens beside the dense product of the same rows. Weights are random
// and rotate, so that no cache holds them.
//   bench_weight_reads [names with commas, or "" for all] [rounds]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "bench/limits.h"
#include "flashinfer/flashinfer.h"

namespace {
using namespace flashinfer;
using namespace flashinfer::bench;

constexpr int64_t kK = 4096, kN = 14336, kHidden = 2048, kInter = 1024, kExperts = 64, kTopK = 8;

/// Bytes in [from, to), one random MB repeated: what a byte holds does not change the time.
Tensor bytes(std::vector<int64_t> shape, DType type, int from, int to) {
  const Tensor t = Tensor::empty(shape, type);
  std::minstd_rand rng(1);
  auto* p = static_cast<uint8_t*>(t.data());
  for (int64_t i = 0; i < t.nbytes(); ++i)
    p[i] = i < 1000003 ? static_cast<uint8_t>(from + static_cast<int>(rng() / 7 % static_cast<unsigned>(to - from)))
                       : p[i - 1000003];
  return t;
}
Tensor bf16s(std::vector<int64_t> shape, float size) {
  const Tensor t = Tensor::empty(shape, DType::kBF16);
  std::minstd_rand rng(1);
  auto* p = t.data_as<bf16_t>();
  for (int64_t i = 0; i < t.numel(); ++i)
    p[i] = i < 500009 ? bf16_t(size * (static_cast<float>(rng() % 2048) / 1024.0f - 1.0f)) : p[i - 500009];
  return t;
}
Tensor f32s(std::vector<int64_t> shape, float x) {
  const Tensor t = Tensor::empty(shape, DType::kF32);
  for (float& y : t.span<float>()) y = x;
  return t;
}

struct Subject {
  std::string name;
  std::vector<std::vector<TensorView>> reads;  // of turn i
  std::function<void(size_t)> run;
  double scales = 0;  // bytes of scale factors that are not in `reads`, as a part of those
};

void measure(const Subject& s, int rounds) {
  std::vector<double> read, run, share;
  s.run(0);
  for (int r = 0; r < rounds; ++r) {
    const size_t turn = static_cast<size_t>(r) % s.reads.size();
    double n = 0;
    for (const TensorView& t : s.reads[turn]) n += static_cast<double>(t.nbytes() / kChunk * kChunk);
    const double a = (1 + s.scales) * seconds([&] {
                       for (const TensorView& t : s.reads[turn]) read_all(t.data(), t.nbytes() / kChunk * kChunk);
                     });
    n *= 1 + s.scales;
    const double b = seconds([&] { s.run((turn + s.reads.size() / 2) % s.reads.size()); });
    read.push_back(n / a * 1e-9), run.push_back(n / b * 1e-9), share.push_back(a / b);
  }
  std::printf("%-28s read %5.1f GB/s  product %5.1f GB/s  share %.2f\n", s.name.c_str(), median(read), median(run),
              median(share));
  std::fflush(stdout);
}

using Fill = std::function<Tensor(std::vector<int64_t>)>;
/// One row times weights [n, k / per_element_of_storage], copies of 128 MB in all.
Subject row(const std::string& name, const Fill& fill, int64_t width, std::function<void(const TensorView&)> product,
            double scales = 0) {
  const Tensor probe = fill({16, width});
  const int64_t copies = std::max<int64_t>(2, (int64_t{192} << 20) / (probe.nbytes() / 16 * kN));
  const Tensor all = fill({copies * kN, width});
  Subject s{name, {}, {}, scales};
  for (int64_t i = 0; i < copies; ++i) s.reads.push_back({all.view().slice(0, i * kN, (i + 1) * kN)});
  s.run = [all, product](size_t turn) {
    product(all.view().slice(0, static_cast<int64_t>(turn) * kN, static_cast<int64_t>(turn + 1) * kN));
  };
  return s;
}

/// The same with copies from prepare_quantized_weights, whose bytes are what is read.
Subject packed_row(const std::string& name, const Fill& fill, int64_t width, const std::optional<TensorView>& scales,
                   std::function<void(const TensorView&, const TensorView&)> product,
                   std::optional<int64_t> block = std::nullopt) {
  const Tensor weight = fill({kN, width});
  std::vector<std::pair<Tensor, Tensor>> copies;
  Subject s{name, {}, {}};
  for (int64_t bytes = 0; bytes < int64_t{192} << 20 || copies.size() < 2; bytes += weight.nbytes()) {
    copies.push_back(prepare_quantized_weights({.b = weight, .b_descale = scales, .block_size = block}));
    s.reads.push_back({copies.back().first});
    if (scales) s.reads.back().push_back(copies.back().second);
  }
  s.run = [copies, product](size_t turn) {
    product(copies[turn].first, copies[turn].second.defined() ? copies[turn].second.view() : TensorView());
  };
  return s;
}

struct Experts {
  Tensor fc1, fc2;
  std::optional<std::vector<TensorView>> scales{};
  std::function<void(CutlassFusedMoe&)> set = [](CutlassFusedMoe&) {};
  std::vector<Tensor> keep{};

  void run(const Tensor& x, const Tensor& ids, const Tensor& weights, const Tensor& out) const {
    CutlassFusedMoe a{.input = x,
                      .token_selected_experts = ids,
                      .token_final_scales = weights,
                      .fc1_expert_weights = fc1,
                      .fc2_expert_weights = fc2};
    a.quant_scales = scales;
    a.output = out;
    set(a);
    cutlass_fused_moe(a);
  }
};
/// With weights and scale factors from prepare_quantized_weights.
Experts packed(Experts e, int64_t block, bool swizzled, size_t first_scale, size_t second_scale) {
  const auto prepare = [&](Tensor& weight, size_t scale) {
    const auto [b, sf] = prepare_quantized_weights(
        {.b = weight, .b_descale = (*e.scales)[scale], .block_size = block, .is_sf_swizzled_layout = swizzled});
    weight = b;
    e.keep.push_back(sf);
    (*e.scales)[scale] = e.keep.back();
  };
  e.keep.clear();
  prepare(e.fc1, first_scale), prepare(e.fc2, second_scale);
  return e;
}
Subject one_token(const std::string& name, const Experts& e) {
  Subject s{name, {}, {}};
  for (const Tensor& t : e.keep)
    s.scales += static_cast<double>(t.nbytes()) / static_cast<double>(e.fc1.nbytes() + e.fc2.nbytes());
  std::vector<Tensor> ids;
  for (int64_t turn = 0; turn < kExperts / kTopK; ++turn) {
    ids.push_back(Tensor::empty({1, kTopK}, DType::kI32));
    s.reads.emplace_back();
    for (int64_t j = 0; j < kTopK; ++j) {
      const int64_t expert = j * (kExperts / kTopK) + turn;
      ids.back().data_as<int32_t>()[j] = static_cast<int32_t>(expert);
      s.reads.back().push_back(e.fc1.view().select(0, expert));
      s.reads.back().push_back(e.fc2.view().select(0, expert));
    }
  }
  const Tensor x = bf16s({1, kHidden}, 1), w = f32s({1, kTopK}, 0.125f),
               out = Tensor::empty({1, kHidden}, DType::kBF16);
  s.run = [=](size_t turn) { e.run(x, ids[turn], w, out); };
  return s;
}
/// GFLOP/s of a mixture of `tokens` tokens and of mm_bf16 with a packed weight: as many rows as an expert has, times
/// one expert.
void many_tokens(const std::string& name, const Experts& e, int64_t tokens, int rounds) {
  const Tensor ids = Tensor::empty({tokens, kTopK}, DType::kI32), w = f32s({tokens, kTopK}, 0.125f);
  std::minstd_rand rng(3);
  for (int64_t t = 0; t < tokens; ++t) {
    int32_t at[kExperts];
    for (int i = 0; i < kExperts; ++i) at[i] = i;
    for (int j = 0; j < kTopK; ++j) {
      std::swap(at[j], at[j + static_cast<int>(rng() / 7 % static_cast<unsigned>(kExperts - j))]);
      ids.data_as<int32_t>()[t * kTopK + j] = at[j];
    }
  }
  const Tensor x = bf16s({tokens, kHidden}, 1), out = Tensor::empty({tokens, kHidden}, DType::kBF16);
  const int64_t n = 2 * kInter;
  const Tensor dense = bf16s({n, kHidden}, 0.1f), y = Tensor::empty({tokens, n}, DType::kBF16);
  const Tensor packed = prepare_mm_weights({.b = dense.view().transpose(0, 1)});
  const double flops = 2.0 * static_cast<double>(tokens * kTopK) * static_cast<double>(3 * kInter * kHidden),
               dense_flops = 2.0 * static_cast<double>(tokens) * static_cast<double>(n * kHidden);
  std::vector<double> a, b, share;
  e.run(x, ids, w, out);
  for (int r = 0; r < rounds; ++r) {
    mm_bf16({.a = x, .b = packed, .out = y});
    const double d = seconds([&] {
                       for (int i = 0; i < 4; ++i) mm_bf16({.a = x, .b = packed, .out = y});
                     }) /
                     4;
    const double m = seconds([&] { e.run(x, ids, w, out); });
    a.push_back(dense_flops / d * 1e-9), b.push_back(flops / m * 1e-9), share.push_back(b.back() / a.back());
  }
  std::printf("%-28s dense %5.0f GFLOP/s  mixture %5.0f GFLOP/s  share %.2f\n", name.c_str(), median(a), median(b),
              median(share));
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string only = argc > 1 ? argv[1] : "";
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 11;
  const auto wanted = [&](const std::string& name) {
    return only.empty() || ("," + only + ",").find("," + name + ",") != std::string::npos;
  };
  const auto any = [&](const std::string& name) {
    return wanted(name + "_1") || wanted(name + "_64") || wanted(name + "_1024") || wanted(name + "_packed_1") ||
           wanted(name + "_packed_1024");
  };
  const Tensor a = bf16s({1, kK}, 1), a8 = bytes({1, kK}, DType::kF8E4M3, 0x20, 0x40),
               a4 = bytes({1, kK / 2}, DType::kU8, 0, 256);
  const Tensor out = Tensor::empty({1, kN}, DType::kBF16), one = f32s({1}, 1);
  const Fill e4m3 = [](std::vector<int64_t> shape) { return bytes(std::move(shape), DType::kF8E4M3, 0, 0x70); };
  const Fill codes = [](std::vector<int64_t> shape) { return bytes(std::move(shape), DType::kU8, 0, 256); };
  const Tensor mx_a = bytes({128 * kK / 32}, DType::kU8, 120, 130), mx_b = bytes({kN * kK / 32}, DType::kU8, 120, 130);
  const Tensor nv_a = bytes({128, kK / 16}, DType::kF8E4M3, 0x28, 0x38),
               nv_b = bytes({kN, kK / 16}, DType::kF8E4M3, 0x28, 0x38);
  const Tensor grid_a = f32s({1, kK / 128}, 0.01f), grid_b = f32s({kN / 128, kK / 128}, 0.01f);

  if (wanted("mm_bf16"))
    measure(row(
                "mm_bf16", [](auto shape) { return bf16s(std::move(shape), 1); }, kK,
                [&](const TensorView& b) { mm_bf16({.a = a, .b = b.transpose(0, 1), .out = out}); }),
            rounds);
  if (wanted("mm_fp8"))
    measure(row("mm_fp8", e4m3, kK, [&](const TensorView& b) { mm_fp8({.a = a8, .b = b, .out = out}); }), rounds);
  if (wanted("gemm_fp8_nt_groupwise"))
    measure(row("gemm_fp8_nt_groupwise", e4m3, kK,
                [&](const TensorView& b) {
                  gemm_fp8_nt_groupwise(
                      {.a = a8, .b = b, .a_scale = grid_a, .b_scale = grid_b, .scale_major_mode = "K", .out = out});
                }),
            rounds);
  if (wanted("mm_mxfp8"))
    measure(row(
                "mm_mxfp8", e4m3, kK,
                [&](const TensorView& b) {
                  mm_mxfp8({.a = a8, .b = b.transpose(0, 1), .a_descale = mx_a, .b_descale = mx_b, .out = out});
                },
                1.0 / 32),
            rounds);
  if (wanted("mm_fp4_nvfp4"))
    measure(
        row(
            "mm_fp4_nvfp4", codes, kK / 2,
            [&](const TensorView& b) {
              mm_fp4({.a = a4, .b = b.transpose(0, 1), .a_descale = nv_a, .b_descale = nv_b, .alpha = one, .out = out});
            },
            1.0 / 8),
        rounds);
  if (wanted("mm_fp4_mxfp4"))
    measure(row(
                "mm_fp4_mxfp4", codes, kK / 2,
                [&](const TensorView& b) {
                  mm_fp4({.a = a4,
                          .b = b.transpose(0, 1),
                          .a_descale = mx_a,
                          .b_descale = mx_b,
                          .out = out,
                          .block_size = 32,
                          .use_nvfp4 = false});
                },
                1.0 / 16),
            rounds);
  if (wanted("mm_bf16_packed")) {
    const Tensor weight = bf16s({kN, kK}, 1);
    const Tensor copies[] = {prepare_mm_weights({.b = weight.view().transpose(0, 1)}),
                             prepare_mm_weights({.b = weight.view().transpose(0, 1)})};
    measure({"mm_bf16_packed",
             {{copies[0]}, {copies[1]}},
             [&](size_t turn) { mm_bf16({.a = a, .b = copies[turn], .out = out}); }},
            rounds);
  }
  if (wanted("mm_fp8_packed"))
    measure(packed_row("mm_fp8_packed", e4m3, kK, {},
                       [&](const TensorView& b, const TensorView&) { mm_fp8({.a = a8, .b = b, .out = out}); }),
            rounds);
  if (wanted("gemm_fp8_nt_groupwise_packed"))
    measure(
        packed_row("gemm_fp8_nt_groupwise_packed", e4m3, kK, {},
                   [&](const TensorView& b, const TensorView&) {
                     gemm_fp8_nt_groupwise(
                         {.a = a8, .b = b, .a_scale = grid_a, .b_scale = grid_b, .scale_major_mode = "K", .out = out});
                   }),
        rounds);
  if (wanted("mm_mxfp8_packed"))
    measure(packed_row("mm_mxfp8_packed", e4m3, kK, mx_b,
                       [&](const TensorView& b, const TensorView& sf) {
                         mm_mxfp8({.a = a8, .b = b, .a_descale = mx_a, .b_descale = sf, .out = out});
                       }),
            rounds);
  if (wanted("mm_fp4_nvfp4_packed"))
    measure(packed_row("mm_fp4_nvfp4_packed", codes, kK / 2, nv_b,
                       [&](const TensorView& b, const TensorView& sf) {
                         mm_fp4({.a = a4, .b = b, .a_descale = nv_a, .b_descale = sf, .alpha = one, .out = out});
                       }),
            rounds);
  if (wanted("mm_fp4_mxfp4_packed"))
    measure(packed_row(
                "mm_fp4_mxfp4_packed", codes, kK / 2, mx_b,
                [&](const TensorView& b, const TensorView& sf) {
                  mm_fp4({.a = a4,
                          .b = b,
                          .a_descale = mx_a,
                          .b_descale = sf,
                          .out = out,
                          .block_size = 32,
                          .use_nvfp4 = false});
                },
                32),
            rounds);

  if (any("moe_bf16")) {
    const Experts e{.fc1 = bf16s({kExperts, 2 * kInter, kHidden}, 0.1f),
                    .fc2 = bf16s({kExperts, kHidden, kInter}, 0.1f)};
    if (wanted("moe_bf16_1")) measure(one_token("moe_bf16_1", e), rounds);
    if (wanted("moe_bf16_64")) many_tokens("moe_bf16_64", e, 64, rounds);
    if (wanted("moe_bf16_1024")) many_tokens("moe_bf16_1024", e, 1024, std::max(1, rounds / 4));
  }
  const Tensor fc1 = any("moe_mxfp4") || any("moe_nvfp4")
                         ? bytes({kExperts, 2 * kInter, kHidden / 2}, DType::kU8, 0, 256)
                         : Tensor(),
               fc2 = fc1.defined() ? bytes({kExperts, kHidden, kInter / 2}, DType::kU8, 0, 256) : Tensor();
  if (any("moe_mxfp4")) {
    const Tensor s1 = bytes({kExperts, 2 * kInter, kHidden / 32}, DType::kU8, 116, 122),
                 s2 = bytes({kExperts, kHidden, kInter / 32}, DType::kU8, 116, 122);
    Experts e{.fc1 = fc1, .fc2 = fc2};
    e.scales = std::vector<TensorView>{s1, s2};
    e.keep = {s1, s2};
    e.set = [](CutlassFusedMoe& m) { m.use_w4_group_scaling = true; };
    if (wanted("moe_mxfp4_1")) measure(one_token("moe_mxfp4_1", e), rounds);
    if (wanted("moe_mxfp4_packed_1")) measure(one_token("moe_mxfp4_packed_1", packed(e, 32, false, 0, 1)), rounds);
    if (wanted("moe_mxfp4_packed_1024"))
      many_tokens("moe_mxfp4_packed_1024", packed(e, 32, false, 0, 1), 1024, std::max(1, rounds / 4));
    if (wanted("moe_mxfp4_64")) many_tokens("moe_mxfp4_64", e, 64, rounds);
    if (wanted("moe_mxfp4_1024")) many_tokens("moe_mxfp4_1024", e, 1024, std::max(1, rounds / 4));
  }
  if (any("moe_nvfp4")) {
    const Tensor s1 = bytes({kExperts, 2 * kInter, kHidden / 16}, DType::kU8, 0x20, 0x30),
                 s2 = bytes({kExperts, kHidden, kInter / 16}, DType::kU8, 0x20, 0x30), gs = f32s({1}, 400),
                 factor = f32s({kExperts}, 1e-3f);
    Experts e{.fc1 = fc1, .fc2 = fc2};
    e.scales = std::vector<TensorView>{gs, s1, factor, gs, s2, factor};
    e.keep = {s1, s2, gs, factor};
    if (wanted("moe_nvfp4_1")) measure(one_token("moe_nvfp4_1", e), rounds);
    if (wanted("moe_nvfp4_packed_1")) measure(one_token("moe_nvfp4_packed_1", packed(e, 16, true, 1, 4)), rounds);
    if (wanted("moe_nvfp4_packed_1024"))
      many_tokens("moe_nvfp4_packed_1024", packed(e, 16, true, 1, 4), 1024, std::max(1, rounds / 4));
    if (wanted("moe_nvfp4_64")) many_tokens("moe_nvfp4_64", e, 64, rounds);
    if (wanted("moe_nvfp4_1024")) many_tokens("moe_nvfp4_1024", e, 1024, std::max(1, rounds / 4));
  }
}
