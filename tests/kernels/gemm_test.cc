// SPDX-License-Identifier: Apache-2.0
// The matrix-product kernels on every ISA this machine has: against double, and rows bitwise equal however the work is
// cut.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "flashinfer/core/int_math.h"
#include "flashinfer/ops/gemm/kernels/gguf_layout.h"
#include "gemm_entry.h"
#include "isa.h"

namespace flashinfer::test {
namespace {

std::vector<bf16_t> random_bf16(int64_t n, unsigned seed) {
  std::mt19937 rng(seed);
  std::normal_distribution<float> normal;
  std::vector<bf16_t> v(static_cast<size_t>(n));
  for (bf16_t& x : v) x = bf16_t(normal(rng));
  return v;
}

class GemmTest : public IsaTest<GemmEntry> {
 protected:
  const GemmEntry& kernels = *GetParam();

  struct Cut {
    int64_t rows_per_task = 1 << 20, panels_per_task = 1 << 20, pairs_per_block = 1 << 20;
    bool packed = true, blocks = true;
  };

  /// Packs as `cut` says and runs all tasks; a [m, k], b [n, k] (a weight).
  std::vector<float> multiply(const std::vector<bf16_t>& a, const std::vector<bf16_t>& b, int64_t m, int64_t n,
                              int64_t k, Cut cut) {
    const int64_t even = round_up(k, 2);
    std::vector<bf16_t> rows(static_cast<size_t>(m * even) + 1);  // blocks of 8, then plain rows of even length
    GemmPackParams pack{.from = a.data(),
                        .line = k,
                        .step = 1,
                        .batch_stride = 0,
                        .to = rows.data(),
                        .to_batch = 0,
                        .lines = m,
                        .k = k,
                        .tasks_per_batch = ceil_div(m, 8)};
    for (int64_t t = 0; t < pack.tasks_per_batch; ++t) kernels.pack_a(pack, t);
    std::vector<bf16_t> panels(
        static_cast<size_t>(packed_panels(n) * packed_lines(GemmFormat::kBF16, k) * kPackedWidth) + 1);
    pack = {.from = b.data(),
            .line = k,
            .step = 1,
            .batch_stride = 0,
            .to = panels.data(),
            .to_batch = 0,
            .lines = n,
            .k = k,
            .tasks_per_batch = packed_panels(n)};
    for (int64_t t = 0; t < pack.tasks_per_batch; ++t) kernels.pack_b(pack, t);
    const bool direct = !cut.blocks && k % 2 == 0;
    std::vector<float> out(static_cast<size_t>(m * n) + 8, -7.0f);
    GemmParams p{.a_blocks = rows.data(),
                 .a_block = 8 * even,
                 .a_batch_blocks = 0,
                 .packed_rows = cut.blocks ? m / 8 * 8 : 0,
                 .a = direct ? a.data() : rows.data(),
                 .a_row = direct ? k : even,
                 .a_batch = 0,
                 .b = cut.packed ? panels.data() + kPackedWidth : b.data(),
                 .b_panel = packed_lines(GemmFormat::kBF16, k) * kPackedWidth,
                 .b_k = 1,
                 .b_n = k,
                 .b_batch = 0,
                 .bias = nullptr,
                 .out = out.data(),
                 .out_row = n,
                 .out_batch = 0,
                 .batch = 1,
                 .m = m,
                 .n = n,
                 .k = k,
                 .rows_per_task = cut.rows_per_task,
                 .panels_per_task = cut.panels_per_task,
                 .pairs_per_block = cut.pairs_per_block,
                 .scale_a = 1,
                 .scale_b = 1,
                 .out_dtype = DType::kF32};
    const int64_t tasks = ceil_div(packed_panels(n), cut.panels_per_task) * ceil_div(m, cut.rows_per_task);
    for (int64_t t = tasks - 1; t >= 0; --t) (cut.packed ? kernels.packed : kernels.plain)(p, t);
    for (size_t i = static_cast<size_t>(m * n); i < out.size(); ++i) EXPECT_EQ(out[i], -7.0f) << "written past the end";
    out.resize(static_cast<size_t>(m * n));
    return out;
  }
};

struct Shape {
  int64_t m, n, k;
};

TEST_P(GemmTest, AgreesWithDouble) {
  for (const Shape s : {Shape{1, 1, 1},
                        {1, 16, 2},
                        {2, 17, 3},
                        {3, 15, 31},
                        {7, 48, 64},
                        {8, 49, 130},
                        {9, 33, 576},
                        {23, 96, 577},
                        {130, 20, 300}}) {
    const auto a = random_bf16(s.m * s.k, 1), b = random_bf16(s.n * s.k, 2);
    for (const bool packed : {false, true}) {
      const auto out = multiply(a, b, s.m, s.n, s.k, {.packed = packed, .blocks = true});
      for (int64_t i = 0; i < s.m; ++i)
        for (int64_t j = 0; j < s.n; ++j) {
          double want = 0, size = 0;
          for (int64_t k = 0; k < s.k; ++k) {
            const double p =
                static_cast<double>(static_cast<float>(a[i * s.k + k])) * static_cast<float>(b[j * s.k + k]);
            want += p, size += std::fabs(p);
          }
          ASSERT_NEAR(out[i * s.n + j], want, 1e-6 * size + 1e-30)
              << s.m << "x" << s.n << "x" << s.k << " at " << i << "," << j;
        }
    }
  }
}

TEST_P(GemmTest, OneOrderHoweverItIsCut) {
  const int64_t m = 150, n = 200, k = 600;
  const auto a = random_bf16(m * k, 3), b = random_bf16(n * k, 4);
  const auto want = multiply(a, b, m, n, k, {});
  const std::vector<Cut> cuts = {{.rows_per_task = 8, .panels_per_task = 3, .pairs_per_block = 1000},
                                 {.rows_per_task = 64, .panels_per_task = 1, .pairs_per_block = 7},
                                 {.rows_per_task = 1000, .panels_per_task = 5, .pairs_per_block = 100},
                                 {.rows_per_task = 40, .panels_per_task = 4, .pairs_per_block = 64, .packed = false},
                                 {.rows_per_task = 8, .panels_per_task = 4, .packed = false, .blocks = false},
                                 {.rows_per_task = 24, .panels_per_task = 2, .packed = true, .blocks = false}};
  for (size_t c = 0; c < cuts.size(); ++c) {
    const auto got = multiply(a, b, m, n, k, cuts[c]);
    EXPECT_EQ(std::memcmp(got.data(), want.data(), want.size() * 4), 0) << "cut " << c;
  }
  for (int64_t rows : {1, 2, 3, 4, 5, 6, 7, 8, 9, 15, 16, 33, 129}) {
    const std::vector<bf16_t> some(a.begin() + 2 * k, a.begin() + (2 + rows > m ? m : 2 + rows) * k);
    for (const bool blocks : {false, true})
      for (const bool packed : {false, true}) {
        const auto got = multiply(some, b, rows, n, k, {.rows_per_task = 16, .packed = packed, .blocks = blocks});
        EXPECT_EQ(std::memcmp(got.data(), want.data() + 2 * n, got.size() * 4), 0) << rows << " rows";
      }
  }
}

TEST_P(GemmTest, PackedLayoutIsTheSameEverywhere) {
  for (const Shape s : {Shape{0, 16, 32}, {0, 17, 31}, {0, 5, 100}, {0, 40, 1}}) {
    const auto b = random_bf16(s.n * s.k, 5);
    std::vector<bf16_t> panels(
        static_cast<size_t>(packed_panels(s.n) * packed_lines(GemmFormat::kBF16, s.k) * kPackedWidth));
    const GemmPackParams pack{.from = b.data(),
                              .line = s.k,
                              .step = 1,
                              .batch_stride = 0,
                              .to = panels.data(),
                              .to_batch = 0,
                              .lines = s.n,
                              .k = s.k,
                              .tasks_per_batch = packed_panels(s.n)};
    for (int64_t t = 0; t < pack.tasks_per_batch; ++t) kernels.pack_b(pack, t);
    for (size_t i = 0; i < panels.size(); ++i) {
      const int64_t at = static_cast<int64_t>(i) % kPackedWidth, line = static_cast<int64_t>(i) / kPackedWidth;
      const int64_t panel = line / packed_lines(GemmFormat::kBF16, s.k),
                    pair = line % packed_lines(GemmFormat::kBF16, s.k) - 1;
      const int64_t k = 2 * pair + at % 2, n = 16 * panel + at / 2;
      if (pair < 0) continue;
      ASSERT_EQ(panels[i].bits, k < s.k && n < s.n ? b[n * s.k + k].bits : 0) << s.n << "x" << s.k << " element " << i;
    }
    const PackedHeader header = read_packed_header(panels.data());
    EXPECT_EQ(header.columns, s.n < 16 ? s.n : 16);
    EXPECT_EQ(header.k, s.k);
    EXPECT_EQ(header.format, GemmFormat::kBF16);
  }
}

/// Panels by the places that gguf_layout.h gives; quants over their whole range, -128 too.
TEST_P(GemmTest, GgufPanelsAreMultipliedExactly) {
  const int64_t m = 19, n = 20, k = 96, blocks = k / 32;
  for (const GemmFormat format : {GemmFormat::kQ4_1, GemmFormat::kQ8_0}) {
    const bool nibbles = format == GemmFormat::kQ4_1;
    const auto a = random_bf16(m * k, 7);
    std::mt19937 rng(8);
    const int64_t line = gguf_lines(format, k) * kPanelLine, quants = gguf_quant_bytes(format);
    std::vector<uint8_t> panels(static_cast<size_t>(2 * line));
    std::vector<double> b(static_cast<size_t>(n * k));
    for (int64_t j = 0; j < n; ++j)
      for (int64_t block = 0; block < blocks; ++block) {
        uint8_t *q = panels.data() + j / 16 * line + kPanelLine,
                *scales = q + blocks * quants + (block * 16 + j % 16) * 2;
        q += block * quants;
        const f16_t scale(0.25f + 0.125f * static_cast<float>(rng() % 8)),
            minimum(-1.0f + 0.25f * static_cast<float>(rng() % 8));
        std::memcpy(scales, &scale.bits, 2);
        if (nibbles) std::memcpy(scales + blocks * 32, &minimum.bits, 2);
        for (int64_t i = 0; i < 32; ++i) {
          const int64_t pair = i / 2, word = j % 16 * 2 + i % 2;
          const int code = static_cast<int>(rng() % (nibbles ? 16 : 256)),
                    value = nibbles || code < 128 ? code : code - 256;
          if (nibbles)
            q[pair / 4 * 64 + word * 2 + pair % 4 / 2] |= static_cast<uint8_t>(code << (pair % 2 * 4));
          else
            q[gguf_byte_place(pair, word)] = static_cast<uint8_t>(code);
          b[static_cast<size_t>(j * k + block * 32 + i)] =
              value * static_cast<double>(static_cast<float>(scale)) +
              (nibbles ? static_cast<double>(static_cast<float>(minimum)) : 0.0);
        }
      }
    std::vector<float> sums(static_cast<size_t>(m * blocks)), out(static_cast<size_t>(m * n));
    for (int64_t i = 0; i < m * k; ++i)
      sums[static_cast<size_t>(i / 32)] += static_cast<float>(a[static_cast<size_t>(i)]);
    GemmParams p{.a = a.data(),
                 .a_row = k,
                 .b = panels.data(),
                 .b_panel = line,
                 .out = out.data(),
                 .out_row = n,
                 .batch = 1,
                 .m = m,
                 .n = n,
                 .k = k,
                 .rows_per_task = 24,
                 .panels_per_task = 3,
                 .pairs_per_block = k,
                 .out_dtype = DType::kF32,
                 .grid_pairs = 16,
                 .a_sums = sums.data()};
    (nibbles ? kernels.q4_1 : kernels.q8_0)(p, 0);
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) {
        double want = 0, size = 0;
        for (int64_t x = 0; x < k; ++x) {
          const double product = static_cast<double>(static_cast<float>(a[static_cast<size_t>(i * k + x)])) *
                                 b[static_cast<size_t>(j * k + x)];
          want += product, size += std::fabs(product);
        }
        ASSERT_NEAR(out[static_cast<size_t>(i * n + j)], want, 3e-6 * size)
            << (nibbles ? "Q4_1 at " : "Q8_0 at ") << i << "," << j;
      }
  }
}

TEST_P(GemmTest, Fp8OperandsAreConvertedExactly) {
  const int64_t m = 11, n = 18, k = 70;
  std::vector<e5m2_t> a(static_cast<size_t>(m * k));
  std::vector<e4m3_t> b(static_cast<size_t>(k * n));  // row-major
  std::mt19937 rng(6);
  std::normal_distribution<float> normal;
  for (e5m2_t& x : a) x = e5m2_t(normal(rng));
  for (e4m3_t& x : b) x = e4m3_t(normal(rng));
  std::vector<bf16_t> rows(static_cast<size_t>(m * k));
  const GemmPackParams pack{.from = a.data(),
                            .line = k,
                            .step = 1,
                            .batch_stride = 0,
                            .to = rows.data(),
                            .to_batch = 0,
                            .lines = m,
                            .k = k,
                            .tasks_per_batch = 2};
  for (int64_t t = 0; t < 2; ++t) kernels.pack_a_e5m2(pack, t);
  std::vector<f16_t> out(static_cast<size_t>(m * n));
  GemmParams p{.a_blocks = rows.data(),
               .a_block = 8 * k,
               .a_batch_blocks = 0,
               .packed_rows = 8,
               .a = rows.data(),
               .a_row = k,
               .a_batch = 0,
               .b = b.data(),
               .b_panel = 0,
               .b_k = n,
               .b_n = 1,
               .b_batch = 0,
               .bias = nullptr,
               .out = out.data(),
               .out_row = n,
               .out_batch = 0,
               .batch = 1,
               .m = m,
               .n = n,
               .k = k,
               .rows_per_task = 100,
               .panels_per_task = 100,
               .pairs_per_block = 100,
               .scale_a = 0.5f,
               .scale_b = 0.25f,
               .out_dtype = DType::kF16};
  kernels.e4m3(p, 0);
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      double want = 0, size = 0;
      for (int64_t c = 0; c < k; ++c) {
        const double x = static_cast<double>(static_cast<float>(a[i * k + c])) * static_cast<float>(b[c * n + j]);
        want += x, size += std::fabs(x);
      }
      ASSERT_NEAR(static_cast<float>(out[i * n + j]), want / 8, std::fabs(want / 8) / 2000 + 1e-6 * size)
          << i << "," << j;
    }
}

INSTANTIATE_TEST_SUITE_P(Isa, GemmTest, testing::Values(&kGemmPortable, &kGemmV3, &kGemmV4, &kGemmBf16, &kGemmAmx),
                         isa_name<GemmEntry>);

}  // namespace
}  // namespace flashinfer::test
