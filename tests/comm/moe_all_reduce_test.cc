// SPDX-License-Identifier: Apache-2.0
// Patterns 6 and 7 of allreduce_fusion: what each rank's experts add, written out in double precision with the stated
// roundings; what follows the sum is that of the patterns without experts.
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "flashinfer/core/check.h"
#include "flashinfer/flashinfer.h"
#include "flashinfer/kernels/common/scale_layout.h"
#include "flashinfer/ops/common/reference.h"
#include "tests/comm/ranks.h"

namespace flashinfer {
namespace {

constexpr int64_t kTokens = 6, kHidden = 80, kExperts = 3, kChoices = 4, kRows = 11;

Tensor random_tensor(std::initializer_list<int64_t> shape, DType dtype, unsigned seed) {
  const Tensor t = Tensor::empty(shape, dtype);
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  for (int64_t i = 0; i < t.numel(); ++i) ref::put(t.view().view({t.numel()}), {i}, normal(random));
  return t;
}
double rounded(double x, DType dtype) {
  const Tensor one = Tensor::empty({1}, dtype);
  ref::put(one.view(), {0}, x);
  return ref::at(one.view(), {0});
}
std::string bytes_of(const Tensor& t) {
  return {static_cast<const char*>(t.data()), static_cast<size_t>(t.view().nbytes())};
}

/// The inputs of a rank.
struct Inputs {
  Inputs(DType dtype, DType scales, int rank) : dtype(dtype) {
    const auto seed = static_cast<unsigned>(10 * rank);
    x = random_tensor({kExperts * kTokens, kHidden}, dtype, seed),
    token = random_tensor({kTokens, kHidden}, dtype, seed + 1);
    scale = random_tensor({kExperts, kTokens}, scales, seed + 2);
    permuted = random_tensor({kRows, kHidden}, dtype, seed + 3),
    weights = random_tensor({kTokens, kChoices}, scales, seed + 4);
    index = Tensor::empty({kTokens, kChoices}, DType::kI32);
    std::mt19937 random(seed + 5);
    for (int64_t i = 0; i < index.numel(); ++i)
      index.data_as<int32_t>()[i] = static_cast<int32_t>(random() % (kRows + 1)) - 1;  // -1: none
  }
  double step(double sum, double row, double factor) const {
    return rounded(sum + rounded(row * factor, dtype), dtype);
  }
  double reduction(int64_t t, int64_t i) const {
    double sum = 0;
    for (int64_t e = 0; e < kExperts; ++e)
      sum = step(sum, ref::at(x.view(), {e * kTokens + t, i}), ref::at(scale.view(), {e, t}));
    return rounded(sum + ref::at(token.view(), {t, i}), dtype);
  }
  double finalized(int64_t t, int64_t i, bool scaled, bool shared) const {
    double sum = 0;
    for (int64_t k = 0; k < kChoices; ++k) {
      const auto row = static_cast<int64_t>(ref::at(index.view(), {t, k}));
      if (row >= 0) sum = step(sum, ref::at(permuted.view(), {row, i}), scaled ? ref::at(weights.view(), {t, k}) : 1);
    }
    return shared ? rounded(sum + ref::at(token.view(), {t, i}), dtype) : sum;
  }
  DType dtype;
  Tensor x, token, scale, permuted, weights, index;
};
/// What the rank adds, as a tensor.
template <class F>
Tensor addend(DType dtype, F f) {
  Tensor t = Tensor::empty({kTokens, kHidden}, dtype);
  for (int64_t r = 0; r < kTokens; ++r)
    for (int64_t i = 0; i < kHidden; ++i) ref::put(t.view(), {r, i}, f(r, i));
  return t;
}
void check(bool ok, const std::string& what) {
  if (!ok) throw RuntimeError(what);
}
void expect_none(const std::vector<Outcome>& outcomes) {
  for (size_t r = 0; r < outcomes.size(); ++r) EXPECT_EQ(outcomes[r], "") << "rank " << r;
}
constexpr int kRanks = 3;
struct Rank {
  Rank(const std::string& name, int rank, DType dtype, DType scales)
      : inputs(dtype, scales, rank),
        workspace({.group = name,
                   .rank = rank,
                   .world_size = kRanks,
                   .max_token_num = 8,
                   .hidden_dim = kHidden,
                   .dtype = dtype}),
        residual(random_tensor({kTokens, kHidden}, dtype, 7)),
        gamma(random_tensor({kHidden}, dtype, 8)) {
    for (Tensor* t : {&sum, &h, &n}) *t = Tensor::empty({kTokens, kHidden}, dtype);
  }
  AllReduceFusion args(const TensorView& input, int64_t pattern) {
    AllReduceFusion a{.input = input, .workspace = workspace, .pattern = pattern};
    a.residual_in = residual, a.rms_gamma = gamma, a.rms_eps = 1e-5;
    return a;
  }
  AllReduceFusion reduction() {
    AllReduceFusion a = args(inputs.token, 6);
    a.moe_reduction_device_num_experts = kExperts, a.moe_reduction_scale_input = inputs.scale;
    a.moe_reduction_active_experts_token_input = inputs.x, a.moe_reduction_token_input = inputs.token;
    return a;
  }
  /// The sum, h and n of an addend, by the patterns without experts.
  void expect(const TensorView& own) {
    AllReduceFusion a{.input = own, .workspace = workspace};
    want_sum = allreduce_fusion(a);
    a = args(own, 1);
    want_h = Tensor::empty({kTokens, kHidden}, inputs.dtype), a.residual_out = want_h;
    want_n = allreduce_fusion(a);
  }
  Inputs inputs;
  AllReduceFusionWorkspace workspace;
  Tensor residual, gamma, sum, h, n, want_sum, want_h, want_n;
};

TEST(MoeAllReduce, ReductionAddsTheExpertsRowsInTheirOrder) {
  for (const auto& [dtype, scales] : {std::pair{DType::kBF16, DType::kF32}, std::pair{DType::kF16, DType::kF16},
                                      std::pair{DType::kF32, DType::kF32}}) {
    const std::string name = fresh_name();
    expect_none(run_threads(kRanks, [&, dtype = dtype, scales = scales](int rank) {
      Rank r(name, rank, dtype, scales);
      r.expect(addend(dtype, [&](int64_t t, int64_t i) { return r.inputs.reduction(t, i); }).view());
      AllReduceFusion a = r.reduction();
      check(bytes_of(allreduce_fusion(a)) == bytes_of(r.want_n), "n, when nothing is given");
      a.residual_out = r.h, a.norm_out = r.n, a.output = r.sum;  // all
      check(bytes_of(allreduce_fusion(a)) == bytes_of(r.want_n) && bytes_of(r.n) == bytes_of(r.want_n), "n");
      check(bytes_of(r.h) == bytes_of(r.want_h), "h");
      check(bytes_of(r.sum) == bytes_of(r.want_sum), "the sum");
      std::memset(r.h.data(), 0, static_cast<size_t>(r.h.view().nbytes()));
      a.norm_out = a.output = std::nullopt;
      check(bytes_of(allreduce_fusion(a)) == bytes_of(r.want_h) && bytes_of(r.h) == bytes_of(r.want_h), "h alone");
      a.residual_out = std::nullopt, a.output = r.sum;
      check(bytes_of(allreduce_fusion(a)) == bytes_of(r.want_sum), "the sum alone");
    }));
  }
}

TEST(MoeAllReduce, FinalizeAddsTheRowsOfEachChoice) {
  for (const DType dtype : {DType::kBF16, DType::kF16})
    for (const bool scaled : {false, true})
      for (const bool shared : {false, true}) {
        const std::string name = fresh_name();
        expect_none(run_threads(kRanks, [&](int rank) {
          Rank r(name, rank, dtype, scaled ? DType::kF32 : dtype);
          r.expect(
              addend(dtype, [&](int64_t t, int64_t i) { return r.inputs.finalized(t, i, scaled, shared); }).view());
          AllReduceFusion a = r.args(r.inputs.permuted, 7);
          a.expanded_idx_to_permuted_idx = r.inputs.index, a.residual_out = r.h;
          if (scaled) a.expert_scale_factor = r.inputs.weights;
          if (shared) a.shared_expert_output = r.inputs.token;
          check(bytes_of(allreduce_fusion(a)) == bytes_of(r.want_n), "n");
          check(bytes_of(r.h) == bytes_of(r.want_h), "h");
        }));
      }
}

TEST(MoeAllReduce, QuantisesAsPattern3) {
  const std::string name = fresh_name();
  expect_none(run_threads(kRanks, [&](int rank) {
    Rank r(name, rank, DType::kBF16, DType::kF32);
    const Tensor own = addend(DType::kBF16, [&](int64_t t, int64_t i) { return r.inputs.reduction(t, i); });
    Tensor codes[2], scales[2];
    for (int k = 0; k < 2; ++k) {
      codes[k] = Tensor::zeros({kTokens, kHidden / 2}, DType::kU8);
      scales[k] = Tensor::zeros({sf_bytes(SfLayout::k128x4, kTokens, kHidden / 16)}, DType::kU8);
      AllReduceFusion a = k ? r.reduction() : r.args(own, 3);
      a.quant_out = codes[k], a.scale_out = scales[k], a.scale_factor = op::ScalarOrTensor(3.0);
      allreduce_fusion(a);
    }
    check(bytes_of(codes[0]) == bytes_of(codes[1]) && bytes_of(scales[0]) == bytes_of(scales[1]), "codes");
  }));
}

TEST(MoeAllReduce, FinalizeQuantisesAsPattern2) {
  const std::string name = fresh_name();
  expect_none(run_threads(kRanks, [&](int rank) {
    Rank r(name, rank, DType::kBF16, DType::kF32);
    const Tensor own = addend(DType::kBF16, [&](int64_t t, int64_t i) { return r.inputs.finalized(t, i, true, true); });
    AllReduceFusion two = r.args(own, 2), twelve = r.args(r.inputs.permuted, 12);
    two.scale_factor = twelve.scale_factor = op::ScalarOrTensor(0.01);  // some codes saturate
    twelve.expanded_idx_to_permuted_idx = r.inputs.index, twelve.expert_scale_factor = r.inputs.weights;
    twelve.shared_expert_output = r.inputs.token, twelve.residual_out = r.h, two.residual_out = r.n;
    const Tensor codes = allreduce_fusion(twelve);
    check(codes.dtype() == DType::kF8E4M3 && bytes_of(codes) == bytes_of(allreduce_fusion(two)), "codes");
    check(bytes_of(r.h) == bytes_of(r.n), "h");
  }));
}

TEST(MoeAllReduce, BadArgumentsNameTheArgument) {
  AllReduceFusionWorkspace workspace({.group = fresh_name(),
                                      .rank = 0,
                                      .world_size = 1,
                                      .max_token_num = 8,
                                      .hidden_dim = kHidden,
                                      .dtype = DType::kBF16});
  const Inputs in(DType::kBF16, DType::kF32, 0);
  const Tensor gamma = Tensor::zeros({kHidden}, DType::kBF16),
               far = Tensor::copy_of<int32_t>(std::vector<int32_t>(kTokens, kRows), {kTokens, 1});
  const auto error = [&](int64_t pattern, const std::function<void(AllReduceFusion&)>& change) {
    AllReduceFusion a{
        .input = pattern == 6 ? in.token.view() : in.permuted.view(), .workspace = workspace, .pattern = pattern};
    a.residual_in = in.token, a.rms_gamma = gamma;
    if (pattern == 6) {
      a.moe_reduction_device_num_experts = kExperts, a.moe_reduction_scale_input = in.scale;
      a.moe_reduction_active_experts_token_input = in.x, a.moe_reduction_token_input = in.token;
    } else {
      a.expanded_idx_to_permuted_idx = in.index;
    }
    change(a);
    return outcome_of([&] { allreduce_fusion(a); });
  };
  using A = AllReduceFusion;
  EXPECT_EQ(error(6, [](A&) {}), "");
  EXPECT_EQ(error(7, [](A&) {}), "");
  EXPECT_HAS(error(6, [](A& a) { a.moe_reduction_scale_input = {}; }),
             "moe_reduction_scale_input is required for pattern 6");
  EXPECT_HAS(error(6, [](A& a) { a.moe_reduction_device_num_experts = 2; }), "must be bfloat16[12, 80]");
  EXPECT_HAS(error(6, [&](A& a) { a.moe_reduction_scale_input = in.weights; }), "moe_reduction_scale_input is");
  EXPECT_HAS(error(6, [](A& a) { a.residual_in = {}; }), "residual_in is required for pattern 6");
  EXPECT_HAS(error(6, [&](A& a) { a.expanded_idx_to_permuted_idx = in.index; }), "belongs to pattern 7");
  EXPECT_HAS(error(7, [](A& a) { a.expanded_idx_to_permuted_idx = {}; }), "expanded_idx_to_permuted_idx is required");
  EXPECT_HAS(error(7, [&](A& a) { a.expanded_idx_to_permuted_idx = far; }),
             "expanded_idx_to_permuted_idx[0][0] is 11, but input has 11 rows");
  EXPECT_HAS(error(7, [](A& a) { a.use_oneshot = false; }), "use_oneshot is False");
  EXPECT_HAS(error(7, [&](A& a) { a.shared_expert_output = in.permuted; }), "shared_expert_output is");
  EXPECT_HAS(error(7, [&](A& a) { a.norm_out = in.permuted; }), "norm_out");
  EXPECT_EQ(error(12, [](A&) {}), "");
  EXPECT_HAS(error(12, [](A& a) { a.expanded_idx_to_permuted_idx = {}; }), "is required for pattern 12");
  EXPECT_HAS(error(12, [](A& a) { a.scale_factor = op::ScalarOrTensor(-1.0); }), "scale_factor is -1");
}

}  // namespace
}  // namespace flashinfer
