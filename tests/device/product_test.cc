// SPDX-License-Identifier: Apache-2.0
// The products' kernel: the memory traffic of each format, without bank conflicts, and where NaN and infinity go.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <iostream>

#include "flashinfer/bench/bench.h"
#include "flashinfer/cases/run.h"
#include "flashinfer/core/check.h"
#include "flashinfer/core/env.h"
#include "flashinfer/core/int_math.h"
#include "flashinfer/core/transfer.h"
#include "flashinfer/kernels/common/scale_layout.h"
#include "flashinfer/kernels/emu/emu.h"
#include "flashinfer/op/registry.h"
#include "flashinfer/ops/gemm/cublaslt/grids.h"
#include "flashinfer/ops/gemm/op.h"
#include "flashinfer/ops/gemm/scaled/scaled.h"

namespace flashinfer {
namespace {

constexpr Device kEmu{DeviceType::kEmu, 0};

/// `bytes`: what the tiles need: A once for each tile of columns, B once for each tile of rows, the result once. With
/// up to 16 rows B, with its scale factors, is read once from memory; 128 columns are 4 tiles, which find A in L2.
struct Row {
  const char *name, *op, *args;
  int64_t bytes;
};
const Row kRows[] = {
    {"bf16_few", "mm_bf16", "a=bf16:16x4096 b=bf16:4096x128^t", 4 * 16 * 8192 + 128 * 8192 + 16 * 256},
    {"bf16_large", "mm_bf16", "a=bf16:1024x64 b=bf16:64x1024^t", 8 * 2 * 1024 * 128 + 1024 * 2048},
    {"fp8_few", "mm_fp8", "a=e4m3:16x4096 b=e4m3:128x4096", 4 * 16 * 4096 + 128 * 4096 + 16 * 256},
    // Of the scale factors of 16 rows of A every sector, for each tile of columns; of B's a sector once more, from L1.
    {"nvfp4_few", "mm_fp4",
     "a=u8:16x2048:randint(0,256) b=u8:2048x128:randint(0,256)^t a_descale=e4m3:128x256:uniform(0.1,1) "
     "b_descale=e4m3:256x128:uniform(0.1,1)^t alpha=f32:1:const(0.125)",
     4 * 16 * (2048 + 1024) + 128 * (2048 + 2 * 256) + 16 * 256},
    {"nvfp4_large", "mm_fp4",
     "a=u8:1024x64:randint(0,256) b=u8:64x1024:randint(0,256)^t a_descale=e4m3:1024x8:uniform(0.1,1) "
     "b_descale=e4m3:8x1024:uniform(0.1,1)^t",
     8 * 2 * 1024 * (64 + 8) + 1024 * 2048},
    {"mxfp8_few", "mm_mxfp8",
     "a=e4m3:16x4096 b=e4m3:4096x128^t a_descale=u8:16384:randint(120,130) b_descale=u8:16384:randint(120,130)",
     4 * 16 * (4096 + 512) + 128 * (4096 + 2 * 128) + 16 * 256},
    // f32 scales: a sector a row and step of 128, and one for the columns, for both of its warps.
    {"fp8_blocks", "gemm_fp8_nt_groupwise",
     "a=e4m3:16x4096 b=e4m3:128x4096 a_scale=f32:16x32:uniform(0.01,0.1) b_scale=f32:1x32:uniform(0.01,0.1) "
     "scale_major_mode='K'",
     4 * 16 * 4096 + 128 * 4096 + 16 * 256 + 4 * 32 * 18 * 32},
    // Quants at 16 bytes of a sector: five sectors for four; 16 bytes of scales for each block of 32, mostly from L1.
    {"q4_k", "mm_gguf", "a=bf16:16x4096 b_blocks=u8:128x2304:Q4_K format='Q4_K'",
     4 * 16 * 8192 + 128 * 16 * (5 * 32 + 8 * 32) + 16 * 256},
    // Groups of 16, 0, 32 and 16 rows: four tiles of 16 rows.
    {"groups", "grouped_mm_bf16", "a=bf16:64x2048 b=bf16:4x64x2048 m_indptr=i32:[0,16,16,48,64]",
     2 * 64 * 4096 + 4 * 64 * 4096 + 64 * 128},
};

class Products : public testing::TestWithParam<Row> {};
TEST_P(Products, MoveWhatTheirTilesNeed) {
  const Row& row = GetParam();
  const bench::CountedRow r = bench::count(*op::find_op(row.op), {row.name, row.args});
  ASSERT_EQ(r.launches.size(), 1u);
  const emu::Counts& n = *r.launches[0].counts;
  EXPECT_EQ(n.bank_conflicts(), 0u) << n.text();
  const auto moved = static_cast<double>((n.global_load_sectors + n.global_store_sectors) * 32),
             needed = static_cast<double>(row.bytes);
  std::cout << row.name << ": " << moved << " of " << needed << " bytes (" << moved / needed << ")\n";
  EXPECT_LE(moved, needed * 1.02) << n.text();
  EXPECT_GE(moved, needed * 0.98) << "what the tiles need is wrong";
}
INSTANTIATE_TEST_SUITE_P(Formats, Products, testing::ValuesIn(kRows),
                         [](const auto& info) { return std::string(info.param.name); });

/// Products of 5 or 70 rows by 40 columns whose elements are 1, but for what a test sets.
struct Fp4 {
  int64_t m;
  bool nv;  // blocks of 16 with scales of e4m3, else of 32 with powers of two
  Tensor a = codes(m), b = codes(40), a_sf = scales(m), b_sf = scales(40);

  static constexpr int64_t kDepth = 128;
  int64_t columns() const { return kDepth / (nv ? 16 : 32); }
  static Tensor codes(int64_t rows) {
    Tensor t = Tensor::empty({rows, kDepth / 2}, DType::kU8);
    std::memset(t.data(), 0x22, static_cast<size_t>(rows * kDepth / 2));
    return t;
  }
  Tensor scales(int64_t rows) const {
    const int64_t bytes = sf_bytes(SfLayout::k128x4, rows, columns());
    Tensor t = Tensor::empty({bytes}, DType::kU8);
    std::memset(t.data(), nv ? 0x38 : 127, static_cast<size_t>(bytes));
    return t;
  }
  uint8_t& scale(Tensor& of, int64_t row, int64_t column) const {
    return of.data_as<uint8_t>()[sf_offset(SfLayout::k128x4, row, column, columns())];
  }
  Tensor product() const {
    const Tensor x = to_device(a, kEmu), y = to_device(b, kEmu), xs = to_device(a_sf, kEmu), ys = to_device(b_sf, kEmu);
    const Tensor z = mm_fp4({.a = x,
                             .b = y.view().transpose(0, 1),
                             .a_descale = xs,
                             .b_descale = ys,
                             .out_dtype = DType::kF16,
                             .block_size = nv ? 16 : 32,
                             .use_nvfp4 = nv});
    return to_device(z, kCpu);
  }
};
float at(const Tensor& t, int64_t i, int64_t j) { return static_cast<float>(t.data_as<f16_t>()[i * t.size(1) + j]); }

/// A scale that is NaN makes its row, or column, NaN and nothing else; codes have neither NaN nor infinity.
TEST(ProductsNaN, AScaleOfFp4) {
  for (const int64_t m : {5, 70})
    for (const bool nv : {true, false}) {
      Fp4 p{.m = m, .nv = nv};
      p.scale(p.a_sf, 3, 1) = nv ? 0x7f : 255, p.scale(p.b_sf, 17, 0) = nv ? 0x7f : 255;
      const Tensor y = p.product();
      for (int64_t i = 0; i < m; ++i)
        for (int64_t j = 0; j < 40; ++j) {
          if (i == 3 || j == 17)
            EXPECT_TRUE(std::isnan(at(y, i, j))) << m << " " << nv << ": " << i << ", " << j;
          else
            EXPECT_EQ(at(y, i, j), 128.0f) << m << " " << nv << ": " << i << ", " << j;
        }
    }
}
/// Every code times every scale: exact, subnormal scales too.
TEST(ProductsNaN, CodesTimesScalesAreExact) {
  for (const bool nv : {true, false}) {
    Fp4 p{.m = 16, .nv = nv};
    std::memset(p.b.data(), 0, static_cast<size_t>(40 * Fp4::kDepth / 2));
    for (int64_t j = 0; j < 40; ++j) p.b.data_as<uint8_t>()[j * (Fp4::kDepth / 2)] = 0x02;  // takes element 0 of A
    for (const uint8_t scale : {uint8_t{1}, uint8_t{3}, uint8_t{8}, uint8_t{0x39}, uint8_t{0x7e}}) {
      for (int64_t i = 0; i < 16; ++i) {
        p.a.data_as<uint8_t>()[i * (Fp4::kDepth / 2)] = static_cast<uint8_t>(i);
        p.scale(p.a_sf, i, 0) = nv ? scale : static_cast<uint8_t>(scale % 16 + 120);
      }
      const Tensor y = p.product();
      for (int64_t i = 0; i < 16; ++i) {
        e4m3_t s;
        s.bits = scale;
        const float by = nv ? static_cast<float>(s) : std::ldexp(1.0f, scale % 16 - 7);
        EXPECT_EQ(at(y, i, 5), e2m1_to_f32(static_cast<uint8_t>(i)) * by) << nv << ": code " << i << ", " << int{scale};
      }
    }
  }
}
TEST(ProductsNaN, ElementsOf16And8Bits) {
  const auto check = [](const Tensor& y, const char* what) {
    for (int64_t i = 0; i < y.size(0); ++i)
      for (int64_t j = 0; j < y.size(1); ++j) {
        const float v = static_cast<float>(y.data_as<bf16_t>()[i * y.size(1) + j]);
        if (i == 2)
          EXPECT_TRUE(std::isnan(v)) << what << ": " << i << ", " << j;
        else if (i == 4)
          EXPECT_TRUE(std::string_view(what) == "bf16" ? std::isinf(v) : v == 64.0f) << what << ": " << i << ", " << j;
        else
          EXPECT_EQ(v, 64.0f) << what << ": " << i << ", " << j;
      }
  };
  for (const int64_t m : {9, 70}) {
    Tensor a = Tensor::empty({m, 64}, DType::kBF16), b = Tensor::empty({48, 64}, DType::kBF16);
    for (int64_t i = 0; i < m * 64; ++i) a.data_as<bf16_t>()[i] = bf16_t(1.0f);
    for (int64_t i = 0; i < 48 * 64; ++i) b.data_as<bf16_t>()[i] = bf16_t(1.0f);
    a.data_as<bf16_t>()[2 * 64 + 33] = bf16_t(NAN), a.data_as<bf16_t>()[4 * 64 + 7] = bf16_t(INFINITY);
    const Tensor x = to_device(a, kEmu), y = to_device(b, kEmu);
    const Tensor z = mm_bf16({.a = x, .b = y.view().transpose(0, 1)});
    check(to_device(z, kCpu), "bf16");
    Tensor a8 = Tensor::empty({m, 64}, DType::kF8E4M3), b8 = Tensor::empty({48, 64}, DType::kF8E4M3);
    std::memset(a8.data(), 0x38, static_cast<size_t>(m * 64)), std::memset(b8.data(), 0x38, 48 * 64);
    a8.data_as<uint8_t>()[2 * 64 + 33] = 0x7f;
    const Tensor x8 = to_device(a8, kEmu), y8 = to_device(b8, kEmu);
    const Tensor z8 = mm_fp8({.a = x8, .b = y8});
    check(to_device(z8, kCpu), "e4m3");
  }
}

/// FLASHINFER_CUDA_CHECK_INDICES=1 while it lives.
struct CheckIndices {
  CheckIndices() { ::setenv("FLASHINFER_CUDA_CHECK_INDICES", "1", 1), env::reload(); }
  ~CheckIndices() { ::unsetenv("FLASHINFER_CUDA_CHECK_INDICES"), env::reload(); }
};
struct BadIndex {
  const char *op, *args, *says;
};
/// Rows of groups on a GPU, each with one bad entry.
const BadIndex kBad[] = {
    {"grouped_mm_bf16", "a=bf16:20x64 b=bf16:2x16x64 m_indptr=i32:[0,21,20]", "m_indptr[0] and the next are 0 and 21"},
    {"grouped_mm_fp8", "a=e4m3:20x64 b=e4m3:2x16x64 m_indptr=i32:[0,9,21]", "m_indptr[1] and the next are 9 and 21"},
    {"group_gemm_mxfp4_nt_groupwise",
     "a=e4m3:31x128 b=u8:3x33x64 a_scale=u8:384x4 b_scale=u8:3x128x4 m_indptr=i32:[0,4,4,32]",
     "m_indptr[2] and the next are 4 and 32"},
    {"group_deepgemm_fp8_nt_groupwise",
     "a=e4m3:3x128 b=e4m3:3x20x128 a_scale=f32:3x1 b_scale=f32:3x1x1 m_indices=i32:[0,1,3]",
     "m_indices[2] is 3, but b has 3 matrices"},
    {"group_gemm_fp8_nt_groupwise_contiguous",
     "a=e4m3:3x128 b=e4m3:3x20x128 a_scale=f32:3x1 b_scale=f32:3x1x1 m_indices=i32:[0,1,1]",
     "m_indices[1] is 1 after 0, but indices must not decrease"},
    {"batch_deepgemm_fp8_nt_groupwise",
     "a=e4m3:2x10x128 b=e4m3:2x33x128 a_scale=f32:2x10x1 b_scale=f32:2x1x1 masked_m=i32:[10,11] expected_m=4",
     "masked_m[1] is 11, but must be in [0, 10]"},
    {"masked_bmm", "a=bf16:2x6x64 b=bf16:2x64x16 masked_m=i32:[6,-1]", "masked_m[1] is -1, but must be in [0, 6]"},
    {"ragged_bmm", "a=bf16:12x64 b=bf16:2x16x64 m_indptr=i32:[0,9,12] max_m=8", "m_indptr makes segment 0 9 rows long"},
    {"SegmentGEMMWrapper.run",
     "init.float_workspace_buffer=u8:64 x=bf16:20x64 weights=bf16:2x16x64 batch_size=2 weight_column_major=True "
     "seg_lens=i64:[3,18]",
     "seg_lens[1] is 18 after 3 rows, but x has 20"},
    {"SegmentGEMMWrapper.run",
     "init.float_workspace_buffer=u8:64 x=bf16:20x64 weights=bf16:2x16x64 batch_size=2 weight_column_major=True "
     "seg_indptr=i32:[0,3,20] weight_indices=i64:[1,2]",
     "segment 1 takes weight 2, but there are 2"},
    {"moe_gemm_fp8_nt_groupwise",
     "a=e4m3:20x128 b=e4m3:2x64x128 a_scale=f32:1x24 b_scale=f32:2x1x1 m_indptr=i32:[0,3,19]",
     "m_indptr goes from 0 to 19"},
    {"cutlass_fused_moe",
     "input=bf16:2x64 token_selected_experts=i32:2x1:const(4) token_final_scales=f32:2x1 "
     "fc1_expert_weights=bf16:4x96x64 "
     "fc2_expert_weights=bf16:4x64x48 output_dtype=bfloat16 quant_scales=None",
     "token_selected_experts[0][0] is 4, but must be in [0, 4)"},
};
TEST(ProductIndices, AreCheckedWhenAskedFor) {
  for (const BadIndex& bad : kBad) {
    const auto run = [&] {
      cases::Built b = cases::build(*op::find_op(bad.op), bad.args, {.device = kEmu});
      cases::run_block(b);
    };
    EXPECT_NO_THROW(run()) << bad.op;
    const CheckIndices on;
    try {
      run();
      ADD_FAILURE() << bad.op << ": no error";
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::kValueError) << bad.op;
      EXPECT_NE(std::string_view(e.what()).find(bad.says), std::string_view::npos) << e.what();
    }
  }
}

/// Scales of 260 lines, for 1, 2 or 128 of them each and for 128 along k = 400, from both orders into the layouts of
/// cuBLASLt (grids.h); memory behind what is written stays.
TEST(GridLayout, CopiesScalesWhereCublasLtReadsThem) {
  constexpr int64_t kLines = 260, kBlocks = 4, kDepth = 400;
  const auto given = [](int64_t line, int64_t block) { return static_cast<float>(line * 16 + block + 1); };
  for (const int64_t of : {1, 2, 128})
    for (const bool k_first : {false, true})
      for (const bool squares : {false, true}) {
        for (const int64_t blocks : {kBlocks, int64_t{3}}) {
          SCOPED_TRACE(str(of, " lines, ", k_first ? "k first, " : "", squares ? "squares, " : "", blocks, " blocks"));
          const int64_t lines = ceil_div(kLines, of);
          Tensor from = Tensor::empty({lines * blocks}, DType::kF32);
          BlockScales s{.lines = of, .line_stride = k_first ? 1 : blocks, .k_stride = k_first ? lines : 1};
          for (int64_t l = 0; l < lines; ++l)
            for (int64_t b = 0; b < blocks; ++b)
              from.data_as<float>()[l * s.line_stride + b * s.k_stride] = given(l, b);
          const Tensor there = to_device(from.view(), kEmu);
          s.p = there.data_as<float>();
          const gemm::LtGrid g = gemm::lt_grid(s, kLines, blocks == kBlocks ? kDepth : 384, squares);
          const bool square = squares && of == 128;
          ASSERT_EQ(g.mode, square ? cublaslt::kBlock128F32 : cublaslt::kVec128F32);
          ASSERT_EQ(g.size(), square ? 3 * 4 : kLines * blocks);
          EXPECT_EQ(g.as_given, square ? !k_first && blocks == 4 : of == 1 && k_first);
          BlockScales behind = s;
          behind.p += 1;  // not at 16 bytes
          EXPECT_FALSE(gemm::lt_grid(behind, kLines, kDepth, squares).as_given);
          Tensor before = Tensor::empty({g.size() + 1}, DType::kF32);
          std::ranges::fill(before.span<float>(), -1.0f);
          const Tensor to = to_device(before.view(), kEmu);
          const gemm::GridMove move{s, g, to.data_as<float>()};
          op::Prepared launch = gemm::prepare_grid_layout({&move, 1}, kEmu);
          ASSERT_TRUE(launch.supported()) << launch.why_not();
          launch.run();
          const Tensor got = to_device(to.view(), kCpu);
          const float* out = got.data_as<float>();
          if (square) {
            for (int64_t l = 0; l < 3; ++l)
              for (int64_t b = 0; b < 4; ++b) EXPECT_EQ(out[l * 4 + b], b < blocks ? given(l, b) : 0) << l << " " << b;
          } else {
            for (int64_t l = 0; l < kLines; ++l)
              for (int64_t b = 0; b < blocks; ++b) ASSERT_EQ(out[b * kLines + l], given(l / of, b)) << l << " " << b;
          }
          EXPECT_EQ(out[g.size()], -1);
        }
      }
}

}  // namespace
}  // namespace flashinfer
