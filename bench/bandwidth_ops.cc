// SPDX-License-Identifier: Apache-2.0
// Row-wise ops against what the memory gives: the op and a memcpy (or a read) of as many bytes alternate on the
// library's threads, so that a noisy neighbour meets both. Prints medians and the median of the ratios. Buffers are 128
// MB and more: 4 times a last-level cache of 32 MB.
//
//   bench_bandwidth_ops [repeats [rows|paged|quant [name]]]
//     rows, paged, quant: only row-wise ops and small calls, ops on a paged cache, quantisers
//     name: only the lines whose names begin with it
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "bench/limits.h"
#include "flashinfer/core/context.h"
#include "flashinfer/ops/activation/op.h"
#include "flashinfer/ops/norm/op.h"
#include "flashinfer/ops/page/op.h"
#include "flashinfer/ops/quantization/op.h"
#include "flashinfer/ops/rope/op.h"
#include "flashinfer/ops/sampling/op.h"
#include "flashinfer/ops/topk/op.h"

namespace {
using namespace flashinfer;
using namespace flashinfer::bench;

constexpr int64_t kRows = 32768, kD = 4096, kTokens = 49152, kLogitRows = 768;
constexpr int64_t kBytes = kRows * kD * 2;  // 256 MB

/// Memory that everything works on, touched once.
struct Memory {
  Tensor a = Tensor::zeros({2 * kBytes}, DType::kU8), b = Tensor::zeros({kBytes}, DType::kU8);
  Memory() {
    uint32_t x = 1;  // bf16 values in +-[0.5, 2) from a generator of Lehmer's kind
    for (int64_t i = 0; i < kBytes; ++i) {
      x = x * 1664525u + 1013904223u;
      a.data_as<uint16_t>()[i] = static_cast<uint16_t>(0x3f00 + (x >> 23 & 0xff) + (x >> 16 & 0x8000));
    }
  }
};

struct Line {
  std::string name;
  int64_t moved;  // bytes read and written
  bool reads;     // the limit is reading
  std::function<void()> run;
};

std::string only;

void report(const Memory& m, const Line& line, int repeats) {
  if (!line.name.starts_with(only)) return;
  const auto limit = [&] {
    line.reads ? read_all(m.a.data(), line.moved) : copy_all(m.b.data(), m.a.data(), line.moved / 2);
  };
  limit();
  line.run();
  std::vector<double> op, bound, ratio;
  for (int i = 0; i < repeats; ++i) {
    bound.push_back(seconds(limit));
    op.push_back(seconds(line.run));
    bound.back() = (bound.back() + seconds(limit)) / 2;
    ratio.push_back(bound.back() / op.back());
  }
  const double gb = static_cast<double>(line.moved) * 1e-9;
  std::printf("%-34s %7.1f GB/s   %-6s %7.1f GB/s   ratio %.2f\n", line.name.c_str(), gb / median(op),
              line.reads ? "read" : "memcpy", gb / median(bound), median(ratio));
}

void small_calls() {
  const Tensor x = Tensor::zeros({8, 576}, DType::kBF16), w = Tensor::zeros({576}, DType::kBF16),
               out = Tensor::zeros({8, 576}, DType::kBF16);
  const Tensor q = Tensor::zeros({8, 9, 64}, DType::kBF16), k = Tensor::zeros({8, 3, 64}, DType::kBF16);
  const Tensor gate = Tensor::zeros({8, 3072}, DType::kBF16), act = Tensor::zeros({8, 1536}, DType::kBF16);
  const Tensor logits = Tensor::zeros({8, kTokens}, DType::kF32), values = Tensor::zeros({8, 1}, DType::kF32),
               indices = Tensor::zeros({8, 1}, DType::kI64), pos = Tensor::zeros({8}, DType::kI32);
  const auto each = [](const char* name, const std::function<void()>& f) {
    constexpr int kCalls = 2000;
    for (int i = 0; i < 100; ++i) f();
    std::vector<double> t;
    for (int r = 0; r < 15; ++r)
      t.push_back(seconds([&] {
                    for (int i = 0; i < kCalls; ++i) f();
                  }) /
                  kCalls);
    std::printf("%-34s %7.2f us a call\n", name, median(t) * 1e6);
  };
  for (int64_t rows : {1, 8}) {
    const std::string n = " " + std::to_string(rows) + " row" + (rows > 1 ? "s" : "");
    const TensorView xr = x.view().slice(0, 0, rows), yr = out.view().slice(0, 0, rows),
                     qr = q.view().slice(0, 0, rows), kr = k.view().slice(0, 0, rows),
                     gr = gate.view().slice(0, 0, rows), ar = act.view().slice(0, 0, rows),
                     lr = logits.view().slice(0, 0, rows), vr = values.view().slice(0, 0, rows),
                     ir = indices.view().slice(0, 0, rows), pr = pos.view().slice(0, 0, rows);
    each(("rmsnorm bf16 576," + n).c_str(), [&] { rmsnorm({.input = xr, .weight = w, .out = yr}); });
    each(("fused_add_rmsnorm bf16 576," + n).c_str(),
         [&] { fused_add_rmsnorm({.input = xr, .residual = yr, .weight = w}); });
    each(("silu_and_mul bf16 1536," + n).c_str(), [&] { silu_and_mul({.input = gr, .out = ar}); });
    each(("rope in place bf16 9+3 x 64," + n).c_str(),
         [&] { apply_rope_pos_ids_inplace({.q = qr, .k = kr, .pos_ids = pr}); });
    each(("top_k k=1 f32 49152," + n).c_str(), [&] { top_k({.input = lr, .k = 1, .values = vr, .indices = ir}); });
  }
}

/// One request of 32768 tokens, 8 heads of 128 for K and V each, its pages scattered over the pool.
struct Pages {
  static constexpr int64_t kAppended = 32768, kPage = 16, kHeads = 8, kDim = 128,
                           kElements = 2 * kAppended * kHeads * kDim;
  Tensor request = Tensor::zeros({kAppended}, DType::kI32), position = Tensor::zeros({kAppended}, DType::kI32),
         pages = Tensor::zeros({kAppended / kPage}, DType::kI32), indptr = Tensor::zeros({2}, DType::kI32),
         last = Tensor::zeros({1}, DType::kI32);
  Tensor slots = Tensor::zeros({kAppended}, DType::kI64), lengths = Tensor::zeros({1}, DType::kI32),
         one = Tensor::zeros({1}, DType::kF32);
  Tensor scales = Tensor::zeros({kAppended / kPage, 2, kPage, kHeads, kDim / 16}, DType::kU8);
  Tensor table = Tensor::zeros({kAppended, 64}, DType::kF32),
         q_rope = Tensor::zeros({kAppended, 2 * kHeads, 64}, DType::kF8E4M3),
         q_nope = Tensor::zeros({kAppended, 2 * kHeads, 64}, DType::kF8E4M3);
  TensorView key, value, cache, fp4, rope;
  explicit Pages(const Memory& m)
      : key(m.a.data(), DType::kBF16, {kAppended, kHeads, kDim}),
        value(m.a.data_as<bf16_t>() + kElements / 2, DType::kBF16, {kAppended, kHeads, kDim}),
        cache(m.b.data(), DType::kBF16, {kAppended / kPage, 2, kPage, kHeads, kDim}),
        fp4(m.b.data(), DType::kU8, {kAppended / kPage, 2, kPage, kHeads, kDim / 2}) {
    for (int64_t i = 0; i < kAppended; ++i) position.data_as<int32_t>()[i] = static_cast<int32_t>(i);
    const int64_t count = kAppended / kPage;
    for (int64_t i = 0; i < count; ++i)
      pages.data_as<int32_t>()[i] = static_cast<int32_t>(i * 797 % count);  // 797 is prime
    indptr.data_as<int32_t>()[1] = static_cast<int32_t>(count);
    last.data_as<int32_t>()[0] = kPage;
    lengths.data_as<int32_t>()[0] = kAppended;
    one.data_as<float>()[0] = 0.01f;
  }
};
void paged_lines(const Memory& m, int repeats) {
  constexpr int64_t kN = Pages::kElements;
  const Pages p(m);
  const TensorView tables(p.pages.data(), DType::kI32, {1, Pages::kAppended / Pages::kPage}),
      rows_k(m.a.data(), DType::kBF16, {1, Pages::kAppended, Pages::kHeads, Pages::kDim}),
      rows_v(m.a.data_as<bf16_t>() + kN / 2, DType::kBF16, {1, Pages::kAppended, Pages::kHeads, Pages::kDim});
  // 32 query and 16 K/V heads of 64 + 64: slices of the same memory.
  const TensorView q(m.a.data(), DType::kBF16, {Pages::kAppended, 16, 128});
  const TensorView k = p.key, ck(m.b.data(), DType::kF8E4M3, {Pages::kAppended / 16, 16, 8, 128}),
                   cv(m.b.data_as<uint8_t>() + kN / 2, DType::kF8E4M3, {Pages::kAppended / 16, 16, 8, 128});
  const TensorView bools(m.a.data(), DType::kBool, {kBytes}), bits(m.b.data(), DType::kU8, {kBytes / 8});
  const Line lines[] = {
      {"append_paged_kv_cache bf16", 4 * kN, false,
       [&] {
         append_paged_kv_cache({.append_key = p.key,
                                .append_value = p.value,
                                .batch_indices = p.request,
                                .positions = p.position,
                                .paged_kv_cache = p.cache,
                                .kv_indices = p.pages,
                                .kv_indptr = p.indptr,
                                .kv_last_page_len = p.last});
       }},
      {"nvfp4_quantize_append bf16", kN * 41 / 16, false,
       [&] {
         nvfp4_quantize_append_paged_kv_cache({.append_key = p.key,
                                               .append_value = p.value,
                                               .batch_indices = p.request,
                                               .positions = p.position,
                                               .paged_kv_cache = p.fp4,
                                               .kv_cache_sf = p.scales,
                                               .kv_indices = p.pages,
                                               .kv_indptr = p.indptr,
                                               .kv_last_page_len = p.last,
                                               .k_scale = 0.01,
                                               .v_scale = 0.01});
       }},
      {"nvfp4_kv_dequantize_paged bf16", kN * 41 / 16, false,
       [&] {
         nvfp4_kv_dequantize_paged({.paged_kv_cache = p.fp4,
                                    .kv_cache_sf = p.scales,
                                    .block_tables = tables,
                                    .seq_lens = p.lengths,
                                    .k_scale = 0.01,
                                    .v_scale = 0.01,
                                    .output_k = rows_k,
                                    .output_v = rows_v});
       }},
      {"rope_quantize_fp8_append 16+8 heads", kN * 2 * 3, false,
       [&] {
         rope_quantize_fp8_append_paged_kv_cache({.q_rope = q.slice(2, 0, 64),
                                                  .k_rope = k.slice(2, 0, 64),
                                                  .q_nope = q.slice(2, 64, 128),
                                                  .k_nope = k.slice(2, 64, 128),
                                                  .v = p.value,
                                                  .cos_sin_cache = p.table,
                                                  .pos_ids = p.position,
                                                  .paged_kv_cache = op::PagedKv(ck, cv),
                                                  .kv_indices = p.pages,
                                                  .kv_indptr = p.indptr,
                                                  .batch_indices = p.request,
                                                  .positions = p.position,
                                                  .q_rope_out = p.q_rope,
                                                  .q_nope_out = p.q_nope});
       }},
      {"packbits", kBytes + kBytes / 8, false, [&] { packbits({.x = bools, .y = bits}); }},
      {"packbits, of reading", kBytes, true, [&] { packbits({.x = bools, .y = bits}); }},
      {"packbits little", kBytes + kBytes / 8, false, [&] { packbits({.x = bools, .bitorder = "little", .y = bits}); }},
  };
  for (const Line& line : lines) report(m, line, repeats);
}

/// Quantisers and what is fused with them, from bf16 rows of 4096.
void quant_lines(const Memory& m, int repeats) {
  constexpr int64_t kN = kRows * kD;
  const TensorView x(m.a.data(), DType::kBF16, {kRows, kD}), lower(m.a.data(), DType::kBF16, {kRows / 2, kD}),
      upper(m.a.data_as<char>() + kBytes, DType::kBF16, {kRows / 2, kD}),
      gates(m.a.data(), DType::kBF16, {kRows / 2, 2 * kD});
  const TensorView codes(m.b.data(), DType::kU8, {kRows, kD / 2}), fp8(m.b.data(), DType::kF8E4M3, {kRows, kD});
  const Tensor w = Tensor::zeros({kD}, DType::kBF16), gs = Tensor::zeros({1}, DType::kF32),
               sf = Tensor::zeros({kRows, kD / 16}, DType::kU8), groups = Tensor::zeros({kRows, kD / 128}, DType::kF32);
  gs.data_as<float>()[0] = 1000;
  for (bf16_t& x : w.span<bf16_t>()) x = bf16_t(1.0f);  // with 0 all blocks would be empty, which is another path
  const TensorView sf32(sf.data(), DType::kU8, {kRows, kD / 32}), flat(sf.data(), DType::kU8, {kRows * kD / 32}),
      half_fp8 = fp8.slice(0, 0, kRows / 2), half_codes = codes.slice(0, 0, kRows / 2),
      half_sf = sf.view().slice(0, 0, kRows / 2), block_sf(sf.data(), DType::kF8E4M3, {kRows, kD / 16});
  const Line lines[] = {
      {"nvfp4_quantize", kN * 41 / 16, false,
       [&] { nvfp4_quantize({.a = x, .a_global_sf = gs, .x_q = codes, .sf = sf}); }},
      {"nvfp4_quantize linear", kN * 41 / 16, false,
       [&] { nvfp4_quantize({.a = x, .a_global_sf = gs, .sfLayout = 2, .x_q = codes, .sf = sf}); }},
      {"mxfp4_quantize", kN * 81 / 32, false, [&] { mxfp4_quantize({.a = x, .x_q = codes, .sf = sf32}); }},
      {"mxfp8_quantize", kN * 97 / 32, false, [&] { mxfp8_quantize({.input = x, .x_q = fp8, .sf = flat}); }},
      {"per_token_group_quant_8bit 128", kN * 3, false,
       [&] { per_token_group_quant_8bit({.x = x, .group_size = 128, .x_q = fp8, .x_s = groups}); }},
      {"per_tensor_quant_fp8, scale given", kN * 3, false,
       [&] { per_tensor_quant_fp8({.x = x, .scale = gs, .x_q = fp8}); }},
      {"silu_and_mul_nvfp4_quantize", kN / 2 * 73 / 16, false,
       [&] { silu_and_mul_nvfp4_quantize({.input = gates, .global_scale = gs, .x_q = half_codes, .sf = half_sf}); }},
      {"rmsnorm_quant e4m3", kN * 3, false,
       [&] { rmsnorm_quant({.out = fp8, .input = x, .weight = w, .scale = 0.1}); }},
      {"fused_add_rmsnorm_quant e4m3", kN / 2 * 7, false,
       [&] {
         fused_add_rmsnorm_quant({.out = half_fp8, .input = lower, .residual = upper, .weight = w, .scale = 0.1});
       }},
      {"rmsnorm_fp4quant", kN * 41 / 16, false,
       [&] {
         rmsnorm_fp4quant({.input = x, .weight = w, .y_fp4 = codes, .block_scale = block_sf, .global_scale = gs});
       }},
  };
  for (const Line& line : lines) report(m, line, repeats);
}

}  // namespace

int main(int argc, char** argv) {
  const int repeats = argc > 1 ? std::max(1, std::atoi(argv[1])) : 7;
  const Memory m;
  const Tensor w = Tensor::zeros({kD}, DType::kBF16);
  const TensorView x(m.a.data(), DType::kBF16, {kRows, kD}), y(m.b.data(), DType::kBF16, {kRows, kD}),
      gates(m.a.data(), DType::kBF16, {kRows, 2 * kD}), lower(m.a.data(), DType::kBF16, {kRows / 2, kD}),
      upper(m.a.data_as<char>() + kBytes, DType::kBF16, {kRows / 2, kD});
  const TensorView bf16_logits(m.a.data(), DType::kBF16, {2 * kLogitRows, kTokens}),
      f32_out(m.b.data(), DType::kF32, {kLogitRows, kTokens});
  const Tensor logits = Tensor::zeros({kLogitRows, kTokens}, DType::kF32),
               values = Tensor::zeros({kLogitRows, 1}, DType::kF32),
               indices = Tensor::zeros({kLogitRows, 1}, DType::kI64);
  for (int64_t i = 0; i < logits.numel(); ++i)
    logits.data_as<float>()[i] = static_cast<float>((i * 2654435761u) % 65521);
  std::printf("%d threads, %d repeats\n", Context::current().executor.threads, repeats);
  const int64_t logit_bytes = logits.nbytes();
  const Line lines[] = {
      {"rmsnorm bf16 4096", 2 * kBytes, false, [&] { rmsnorm({.input = x, .weight = w, .out = y}); }},
      {"fused_add_rmsnorm bf16 4096", 2 * kBytes, false,
       [&] { fused_add_rmsnorm({.input = lower, .residual = upper, .weight = w}); }},
      {"silu_and_mul bf16 4096", kBytes * 3 / 2, false,
       [&] { silu_and_mul({.input = gates.slice(0, 0, kRows / 2), .out = y.slice(0, 0, kRows / 2)}); }},
      {"gelu_and_mul bf16 4096", kBytes * 3 / 2, false,
       [&] { gelu_and_mul({.input = gates.slice(0, 0, kRows / 2), .out = y.slice(0, 0, kRows / 2)}); }},
      {"gelu_tanh_and_mul bf16 4096", kBytes * 3 / 2, false,
       [&] { gelu_tanh_and_mul({.input = gates.slice(0, 0, kRows / 2), .out = y.slice(0, 0, kRows / 2)}); }},
      {"softmax f32 49152", 2 * logit_bytes, false, [&] { softmax({.logits = logits, .out = f32_out}); }},
      {"softmax f32 49152, of reading", logit_bytes, true, [&] { softmax({.logits = logits, .out = f32_out}); }},
      {"top_k k=1 f32 49152", logit_bytes, true,
       [&] { top_k({.input = logits, .k = 1, .values = values, .indices = indices}); }},
      {"top_k k=50 f32 49152", logit_bytes, true, [&] { top_k({.input = logits, .k = 50, .sorted = true}); }},
      {"top_k k=1 bf16 49152", 2 * kLogitRows * kTokens * 2, true, [&] { top_k({.input = bf16_logits, .k = 1}); }},
  };
  const std::string group = argc > 2 ? argv[2] : "";
  if (argc > 3) only = argv[3];
  if (group.empty() || group == "rows") {
    for (const Line& line : lines) report(m, line, repeats);
    if (only.empty()) small_calls();
  }
  if (group.empty() || group == "paged") paged_lines(m, repeats);
  if (group.empty() || group == "quant") quant_lines(m, repeats);
}
