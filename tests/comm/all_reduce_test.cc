// SPDX-License-Identifier: Apache-2.0
// allreduce_fusion against the contract of its header, written out here in double precision with the stated roundings.
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <cstring>
#include <mutex>
#include <random>

#include "flashinfer/core/check.h"
#include "flashinfer/core/int_math.h"
#include "flashinfer/flashinfer.h"
#include "flashinfer/kernels/common/scale_layout.h"
#include "flashinfer/ops/common/reference.h"
#include "tests/comm/all_reduce_call.h"
#include "tests/comm/ranks.h"

namespace flashinfer {
namespace {

/// x as a number of `dtype`.
double rounded(double x, DType dtype) {
  const Tensor one = Tensor::empty({1, 1}, dtype);
  ref::put(one.view(), {0, 0}, x);
  return ref::at(one.view(), {0, 0});
}

struct Expected {
  std::vector<double> sum, h, n;
};
Expected expected(const std::vector<Tensor>& inputs, const Tensor& residual, const Tensor& gamma, bool fp32_acc,
                  double bias) {
  Expected e;
  const DType t = inputs[0].dtype();
  const int64_t rows = residual.size(0), d = residual.size(1);
  for (int64_t r = 0; r < rows; ++r) {
    double squares = 0;
    for (int64_t i = 0; i < d; ++i) {
      float sum = 0;
      for (const Tensor& x : inputs) {
        sum += static_cast<float>(ref::at(x.view(), {r, i}));
        if (!fp32_acc) sum = static_cast<float>(rounded(sum, t));
      }
      e.sum.push_back(rounded(sum, t));
      e.h.push_back(rounded(e.sum.back() + ref::at(residual.view(), {r, i}), t));
      squares += e.h.back() * e.h.back();
    }
    for (int64_t i = 0; i < d; ++i)
      e.n.push_back(e.h[static_cast<size_t>(r * d + i)] / std::sqrt(squares / static_cast<double>(d) + 1e-5) *
                    (bias + ref::at(gamma.view(), {0, i})));
  }
  return e;
}
void expect_close(const TensorView& t, const std::vector<double>& want, double relative, const std::string& what) {
  for (int64_t r = 0; r < t.size(0); ++r)
    for (int64_t i = 0; i < t.size(1); ++i) {
      const double x = ref::at(t, {r, i}), w = want[static_cast<size_t>(r * t.size(1) + i)];
      ASSERT_LE(std::abs(x - w), relative * std::abs(w) + 1e-30) << what << " [" << r << ", " << i << "]: " << x;
    }
}

TensorView view_of(std::string& bytes, Shape s, DType dtype) {
  const int64_t extents[] = {s.tokens, s.hidden};
  return TensorView(bytes.data(), dtype, extents);
}

TEST(AllReduce, SumsInTheOrderOfRanksWithTheStatedRoundings) {
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16})
    for (const int ranks : {1, 2, 3, 5})
      for (const bool fp32_acc : {false, true}) {
        const Call c{.shape = {7, 131}, .dtype = dtype, .ranks = ranks, .fp32_acc = fp32_acc};
        const Setting s(c);
        Outputs got = run(c, s);
        const Expected want = expected(s.inputs, s.residual, s.gamma, fp32_acc, 0);
        expect_close(view_of(got.result, c.shape, dtype), want.sum, 0, "sum");
        for (size_t i = 0; i < got.result.size() / static_cast<size_t>(size_of(dtype)); ++i)
          if (i % 131 % 37 == 5) {  // every rank's element is -0
            EXPECT_EQ(got.result[(i + 1) * static_cast<size_t>(size_of(dtype)) - 1], 0) << "a zero with a sign";
          }
      }
}

TEST(AllReduce, OneShotAndTwoShotsGiveTheSameBytes) {
  for (const int64_t pattern : {0, 1, 2, 3, 4, 5, 8, 9, 10, 11})
    for (const int64_t tokens : {5, 64})
      for (const int ranks : {2, 3, 4}) {
        Call c{.pattern = pattern, .shape = {tokens, 128}, .ranks = ranks, .one_shot = true};
        const Setting s(c);
        const Outputs one = run(c, s);
        c.one_shot = false;
        EXPECT_TRUE(run(c, s) == one) << "pattern " << pattern << ", " << tokens << " tokens, " << ranks << " ranks";
      }
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16})
    for (const Shape shape : {Shape{7, 200}, Shape{9, 131}, Shape{5000, 1}, Shape{4111, 512}}) {
      Call c{.pattern = 1, .shape = shape, .dtype = dtype, .ranks = 2, .one_shot = true, .bias = 1};
      const Setting s(c);
      const Outputs one = run(c, s);
      c.one_shot = false;
      EXPECT_TRUE(run(c, s) == one) << name(dtype) << " [" << shape.tokens << ", " << shape.hidden << "]";
    }
}
/// As in FlashInfer, whose ranks may hold other residuals: in one shot and in two.
TEST(AllReduce, EachRankAddsItsOwnResidual) {
  for (const bool one_shot : {true, false}) {
    const Call c{.pattern = 1, .shape = {6, 64}, .dtype = DType::kF32, .one_shot = one_shot};
    const Setting s(c);
    const std::string name = fresh_name();
    const auto outcomes = run_threads(c.ranks, [&](int r) {
      AllReduceFusionWorkspace workspace(
          {.group = name, .rank = r, .world_size = 2, .max_token_num = 6, .hidden_dim = 64, .dtype = DType::kF32});
      Arguments a(c, s.inputs[static_cast<size_t>(r)], to_device(s.residual, kCpu), s.gamma_row());
      const Tensor residual = random_tensor(c.shape, c.dtype, 99 + static_cast<uint64_t>(r)),
                   h = random_tensor(c.shape, c.dtype, 0);
      a.block.residual_in = residual, a.block.residual_out = h, a.block.workspace = workspace;
      allreduce_fusion(a.block);
      for (int64_t i = 0; i < 6 * 64; ++i) {
        const float sum = s.inputs[0].data_as<float>()[i] + s.inputs[1].data_as<float>()[i];
        if (h.data_as<float>()[i] != sum + residual.data_as<float>()[i])
          throw RuntimeError("element " + std::to_string(i) + " is not the sum with this rank's residual");
      }
    });
    for (const Outcome& o : outcomes) EXPECT_EQ(o, "") << (one_shot ? "one shot" : "two shots");
  }
}

TEST(AllReduce, ResidualAndNormFollowTheSum) {
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16})
    for (const double bias : {0.0, 1.0}) {
      // Whole blocks of 64 columns have a loop of their own in bf16, and so have two ranks.
      const Call c{.pattern = 1, .shape = {9, bias ? 256 : 200}, .dtype = dtype, .ranks = bias ? 2 : 3, .bias = bias};
      const Setting s(c);
      Outputs got = run(c, s);
      const Expected want = expected(s.inputs, s.residual, s.gamma, false, bias);
      expect_close(view_of(got.residual, c.shape, dtype), want.h, 0, "h");
      expect_close(view_of(got.norm, c.shape, dtype), want.n, dtype == DType::kF32 ? 1e-5 : 1.0 / 128, "n");
      EXPECT_EQ(got.result, got.norm);
    }
}

/// Quantised results follow from the normalised row that another pattern returns.
class Quantised : public testing::Test {
 protected:
  Outputs run_pattern(int64_t pattern) {
    call.pattern = pattern;
    return run(call, *setting);
  }
  void start(DType dtype, int64_t hidden) {
    call = {.shape = {6, hidden}, .dtype = dtype};
    setting = std::make_unique<Setting>(call);
    norm = run_pattern(1).norm;
  }
  double n(int64_t r, int64_t i) { return ref::at(view_of(norm, call.shape, call.dtype), {r, i}); }
  double code(Outputs& o, int64_t r, int64_t i) {
    return ref::at(view_of(o.codes, call.shape, DType::kF8E4M3), {r, i});
  }
  void expect_codes(Outputs& o, const std::function<double(int64_t r, int64_t i)>& scale, const char* what) {
    for (int64_t r = 0; r < call.shape.tokens; ++r)
      for (int64_t i = 0; i < call.shape.hidden; ++i) {
        const double x = static_cast<float>(n(r, i) / scale(r, i)), clamped = std::clamp(x, -448.0, 448.0);
        const double c = code(o, r, i);
        ASSERT_LE(std::abs(c - clamped), std::max(std::abs(clamped) / 16 * 1.001, 0x1p-10))
            << what << ' ' << r << ' ' << i;
        if (std::abs(x) > 448) {
          ASSERT_EQ(std::abs(c), 448);
        }
      }
  }
  Call call;
  std::unique_ptr<Setting> setting;
  std::string norm;
};
TEST_F(Quantised, Fp8WithOneScale) {
  for (const DType dtype : {DType::kF16, DType::kBF16}) {
    start(dtype, 96);
    Outputs with = run_pattern(4), without = run_pattern(2);
    EXPECT_EQ(with.norm, norm);
    EXPECT_EQ(with.result, norm);
    EXPECT_EQ(without.result, with.codes);
    EXPECT_EQ(without.codes, with.codes);
    expect_codes(with, [](int64_t, int64_t) { return 0.25; }, "fp8");
  }
}
TEST_F(Quantised, Fp8WithAScaleForEachRow) {
  start(DType::kBF16, 200);
  Outputs with = run_pattern(11), without = run_pattern(10);
  EXPECT_EQ(without.codes, with.codes);
  EXPECT_EQ(without.scales, with.scales);
  const auto* scales = reinterpret_cast<const float*>(with.scales.data());
  for (int64_t r = 0; r < call.shape.tokens; ++r) {
    double most = 0;
    for (int64_t i = 0; i < call.shape.hidden; ++i) most = std::max(most, std::abs(n(r, i)));
    EXPECT_EQ(scales[r], static_cast<float>(most) / 448.0f);
  }
  expect_codes(with, [&](int64_t r, int64_t) { return scales[r]; }, "dynamic fp8");
}
TEST_F(Quantised, Fp8WithPowersOfTwoForGroups) {
  start(DType::kBF16, 192);  // 6 groups: the last word has two empty bytes
  Outputs with = run_pattern(9), without = run_pattern(8);
  EXPECT_EQ(without.codes, with.codes);
  const auto* bytes = reinterpret_cast<const uint8_t*>(with.scales.data());
  const auto exponent = [&](int64_t r, int64_t g) { return bytes[4 * (g / 4 * 8 + r) + g % 4]; };  // 6 rows: stride 8
  for (int64_t r = 6; r < 8; ++r)
    for (int64_t g = 0; g < 8; ++g) EXPECT_EQ(exponent(r, g), g < 4 ? 0 : 0x7b);  // the last column keeps its bytes
  for (int64_t r = 0; r < 6; ++r)
    for (int64_t g = 0; g < 8; ++g) {
      if (g >= 6) {
        EXPECT_EQ(exponent(r, g), 0);
        continue;
      }
      double most = 0;
      for (int64_t i = g * kGroup; i < (g + 1) * kGroup; ++i) most = std::max(most, std::abs(n(r, i)));
      const double y = std::exp2(exponent(r, g) - 127.0);
      EXPECT_GE(y, most / 448);
      EXPECT_LT(y, 2 * most / 448);
    }
  expect_codes(with, [&](int64_t r, int64_t i) { return std::exp2(exponent(r, i / kGroup) - 127.0); }, "group fp8");
}
TEST_F(Quantised, Nvfp4IsThatOfTheQuantiser) {
  for (const int64_t layout : {0, 1, 2}) {
    start(DType::kBF16, 2304);  // more than one chunk of the kernel
    call.layout = layout;
    Outputs with = run_pattern(5), without = run_pattern(3);
    EXPECT_EQ(without.codes, with.codes);
    EXPECT_EQ(without.scales, with.scales);
    const op::Results r =
        nvfp4_quantize({.a = view_of(norm, call.shape, call.dtype), .a_global_sf = 3.0, .sfLayout = layout});
    EXPECT_EQ(bytes_of(r[0].view()), with.codes);
    EXPECT_EQ(bytes_of(r[1].view()), with.scales);
  }
}

TEST(AllReduce, SizesGrowAndShrinkOnOneWorkspace) {
  const std::string name = fresh_name();
  const auto outcomes = run_threads(3, [&](int r) {
    AllReduceFusionWorkspace workspace(
        {.group = name, .rank = r, .world_size = 3, .max_token_num = 40, .hidden_dim = 64, .dtype = DType::kF32});
    for (int64_t i = 0; i < 300; ++i) {
      const Tensor x = Tensor::empty({i * 7 % 41, 64}, DType::kF32);
      for (int64_t k = 0; k < x.numel(); ++k) x.data_as<float>()[k] = static_cast<float>(k * (r + 1) + i);
      const Tensor y = allreduce_fusion({.input = x, .workspace = workspace, .pattern = 0});
      for (int64_t k = 0; k < x.numel(); ++k)
        if (y.data_as<float>()[k] != static_cast<float>(6 * k + 3 * i))
          throw RuntimeError(str("call ", i, " element ", k));
    }
  });
  for (const Outcome& o : outcomes) EXPECT_EQ(o, "");
}

/// More than a slot of the workspace: what follows the sum is that of one rank that has the sum, which needs no pieces.
TEST(AllReduce, LargeInputsGiveWhatOneRankComputesOfTheirSum) {
  for (const Shape shape : {Shape{4111, 512}, Shape{3, 150'000}})
    for (const int ranks : {2, 4})
      for (const int64_t pattern : {1, 5}) {
        Call c{.pattern = 0, .shape = shape, .ranks = ranks};
        Setting s(c);
        std::string sums = run(c, s).result;
        c.pattern = pattern;
        const Outputs got = run(c, s);
        s.inputs = {Tensor(view_of(sums, shape, c.dtype), nullptr)};
        c.ranks = 1;
        EXPECT_TRUE(run(c, s) == got) << "pattern " << pattern << ", " << ranks << " ranks, hidden " << shape.hidden;
        if (pattern != 1) continue;
        // So few rows stay in the caches, which a large result goes around.
        c.shape = {2, shape.hidden};
        Setting few(c);
        few.inputs = {Tensor(view_of(sums, c.shape, c.dtype), nullptr)};
        few.residual = Tensor(s.residual.view().slice(0, 0, 2), s.residual.owner()), few.gamma = s.gamma;
        const std::string norm = run(c, few).norm;
        EXPECT_TRUE(got.norm.compare(0, norm.size(), norm) == 0) << ranks << " ranks, hidden " << shape.hidden;
      }
}
TEST(AllReduce, LargeSumsAreThoseOfTheirRows) {
  for (const int ranks : {2, 4})
    for (const Shape shape : {Shape{4111, 512}, Shape{3, 150'000}}) {
      const Call c{.shape = shape, .ranks = ranks};
      const Setting s(c);
      Outputs got = run(c, s);
      for (int64_t r = 0; r < shape.tokens; r += shape.tokens / 2)
        for (int64_t i = 0; i < shape.hidden; i += 97) {
          float sum = 0;
          for (const Tensor& x : s.inputs) {
            sum += static_cast<float>(ref::at(x.view(), {r, i}));
            sum = static_cast<float>(rounded(sum, c.dtype));
          }
          ASSERT_EQ(ref::at(view_of(got.result, shape, c.dtype), {r, i}), sum) << r << ' ' << i;
        }
    }
}

TEST(AllReduce, RanksThatDisagreeAllGetAnError) {
  const std::string name = fresh_name();
  const auto outcomes = run_threads(2, [&](int r) {
    AllReduceFusionWorkspace workspace(
        {.group = name, .rank = r, .world_size = 2, .max_token_num = 4, .hidden_dim = 64, .dtype = DType::kBF16});
    const Tensor x = Tensor::zeros({r == 0 ? 3 : 4, 64}, DType::kBF16);
    allreduce_fusion({.input = x, .workspace = workspace, .pattern = 0});
  });
  EXPECT_HAS(outcomes[0],
             "RuntimeError: allreduce_fusion: group '" + name +
                 "', rank 0: rank 1 calls allreduce_fusion(pattern=0, input=[4, 64] bfloat16, one shot), but "
                 "rank 0 calls allreduce_fusion(pattern=0, input=[3, 64] bfloat16, one shot)");
  EXPECT_HAS(outcomes[1], "rank 0 calls allreduce_fusion(pattern=0, input=[3, 64]");
  const auto patterns = run_threads(2, [&](int r) {
    AllReduceFusionWorkspace workspace(
        {.group = name, .rank = r, .world_size = 2, .max_token_num = 4, .hidden_dim = 64, .dtype = DType::kBF16});
    const Tensor x = Tensor::zeros({4, 64}, DType::kBF16), gamma = Tensor::zeros({64}, DType::kBF16);
    if (r == 0) allreduce_fusion({.input = x, .workspace = workspace, .pattern = 0});
    allreduce_fusion({.input = x, .workspace = workspace, .pattern = 1, .residual_in = x, .rms_gamma = gamma});
  });
  EXPECT_HAS(patterns[0], "rank 1 calls allreduce_fusion(pattern=1, input=[4, 64] bfloat16");
  EXPECT_HAS(patterns[1], "rank 0 calls allreduce_fusion(pattern=0, input=[4, 64] bfloat16");
  const auto sizes = run_threads(2, [&](int r) {
    AllReduceFusionWorkspace(
        {.group = name, .rank = r, .world_size = 2, .max_token_num = 4 + 100 * r, .hidden_dim = 64});
  });
  for (const Outcome& o : sizes)
    EXPECT_HAS(o, "rank 1 has max_token_num=104, hidden_dim=64, dtype=float16, but rank 0 has max_token_num=4, ");
  const auto none = run_threads(3, [&](int r) {
    AllReduceFusionWorkspace({.group = name, .rank = r, .world_size = 3, .max_token_num = 1 - r / 2, .hidden_dim = 64});
  });
  for (const Outcome& o : none)
    EXPECT_HAS(o, "ValueError: AllReduceFusionWorkspace.__init__: rank 2: max_token_num is 0");
}

/// Rank 1 alone passes `wrong`; the others get its reason at once, and the next call works.
TEST(AllReduce, AnArgumentThatIsWrongOnOneRankIsAnErrorOfAll) {
  const Tensor x = Tensor::zeros({4, 64}, DType::kBF16), more = Tensor::zeros({5, 64}, DType::kBF16),
               flat = Tensor::zeros({64}, DType::kBF16), ones = random_tensor({4, 64}, DType::kBF16, 1);
  for (int64_t r = 0; r < 4; ++r)
    for (int64_t i = 0; i < 64; ++i) ref::put(ones.view(), {r, i}, 1);
  AllReduceFusion wrong[4];
  for (AllReduceFusion& a : wrong) a.input = x;
  wrong[0].input = more;        // too large for the workspace
  wrong[1].pattern = 1;         // what the pattern needs is missing
  wrong[2].input = flat;        // another rank of tensor, which the schema's checks find
  wrong[3].residual_in = more;  // does not fit the input
  const char* const reasons[] = {"Workspace validation failed: input is", "residual_in is required for pattern 1",
                                 "input has rank 1", "residual_in.shape[0] is 5"};
  const std::string name = fresh_name();
  const auto begin = std::chrono::steady_clock::now();
  const auto outcomes = run_threads(3, [&](int r) {
    AllReduceFusionWorkspace workspace(
        {.group = name, .rank = r, .world_size = 3, .max_token_num = 4, .hidden_dim = 64, .dtype = DType::kBF16});
    for (size_t i = 0; i < std::size(wrong); ++i) {
      AllReduceFusion a{.input = x, .workspace = workspace};
      if (r == 1) a = wrong[i], a.workspace = workspace;
      EXPECT_HAS(outcome_of([&] { allreduce_fusion(a); }), reasons[i]);
      Tensor y;
      EXPECT_EQ(outcome_of([&] { y = allreduce_fusion({.input = ones, .workspace = workspace}); }), "");
      if (y.defined()) {
        EXPECT_EQ(ref::at(y.view(), {3, 63}), 3);
      }
    }
  });
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
  for (const Outcome& o : outcomes) EXPECT_EQ(o, "");
}

TEST(AllReduce, BadArgumentsNameTheArgument) {
  AllReduceFusionWorkspace workspace(
      {.group = fresh_name(), .rank = 0, .world_size = 1, .max_token_num = 4, .hidden_dim = 64, .dtype = DType::kBF16});
  const Tensor x = Tensor::zeros({4, 64}, DType::kBF16), more = Tensor::zeros({5, 64}, DType::kBF16),
               gamma = Tensor::zeros({64}, DType::kBF16), half = Tensor::zeros({64}, DType::kF16);
  const auto error = [&](AllReduceFusion a) {
    a.workspace = workspace;
    return outcome_of([&] { allreduce_fusion(a); });
  };
  EXPECT_HAS(error({.input = more}), "Workspace validation failed: input is");
  EXPECT_HAS(error({.input = x, .pattern = 13}), "pattern is 13, but must be in [0, 12]");
  EXPECT_HAS(error({.input = x, .pattern = 7}), "residual_in is required for pattern 7");
  EXPECT_HAS(error({.input = x, .pattern = 1}), "residual_in is required for pattern 1");
  EXPECT_HAS(error({.input = x, .pattern = 1, .residual_in = x}), "rms_gamma is required for pattern 1");
  EXPECT_HAS(error({.input = x, .pattern = 1, .residual_in = x, .rms_gamma = half}), "rms_gamma.dtype is float16");
  EXPECT_HAS(error({.input = x, .pattern = 4, .residual_in = x, .rms_gamma = gamma}), "quant_out is required");
  EXPECT_HAS(error({.input = x, .pattern = 3, .residual_in = x, .rms_gamma = gamma}), "scale_out is required");
  EXPECT_HAS(
      error({.input = x, .pattern = 2, .residual_in = x, .rms_gamma = gamma, .scale_factor = op::ScalarOrTensor(0.0)}),
      "scale_factor is 0");
  EXPECT_HAS(error({.input = x,
                    .pattern = 8,
                    .scale_out = more,
                    .residual_in = x,
                    .rms_gamma = gamma,
                    .block_quant_group_size = 48}),
             "block_quant_group_size is 48");
  EXPECT_HAS(error({.input = x, .use_oneshot = false, .expert_scale_factor = x}), "expert_scale_factor is given");
  EXPECT_HAS(error({.input = x, .residual_in = more}), "residual_in.shape[0] is 5");
  workspace.destroy();
  EXPECT_HAS(error({.input = x}), "workspace has no group");
  EXPECT_HAS(outcome_of([&] { AllReduceFusionWorkspace({.group = "a", .rank = 2, .world_size = 2}); }), "rank is 2");
}

TEST(AllReduce, AKilledRankIsAnErrorOfTheOthers) {
  const std::string name = fresh_name();
  std::vector<Process> ranks;
  for (int r = 0; r < 3; ++r)
    ranks.emplace_back([&, r] {
      AllReduceFusionWorkspace workspace(
          {.group = name, .rank = r, .world_size = 3, .max_token_num = 4, .hidden_dim = 64, .dtype = DType::kBF16});
      const Tensor x = Tensor::zeros({4, 64}, DType::kBF16);
      for (int i = 0;; ++i) {
        if (r == 2 && i == 100) raise(SIGKILL);
        allreduce_fusion({.input = x, .workspace = workspace, .pattern = 0});
      }
    });
  EXPECT_EQ(ranks[2].wait(), "killed");
  for (size_t r = 0; r < 2; ++r) EXPECT_HAS(ranks[r].wait(), "rank 2");
}

}  // namespace
}  // namespace flashinfer
