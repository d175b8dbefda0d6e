// SPDX-License-Identifier: Apache-2.0
// A seed and an offset give one token, whichever back end draws it: the CUDA kernels on the emulator against the CPU's,
// bit for bit.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "flashinfer/cases/run.h"
#include "flashinfer/core/transfer.h"
#include "flashinfer/jit/cuda.h"
#include "flashinfer/jit/emulator.h"
#include "flashinfer/jit/jit.h"
#include "flashinfer/jit/targets.h"
#include "flashinfer/op/registry.h"
#include "flashinfer/ops/sampling/op.h"
#include "tests/device/exact_params.h"
#include "tests/device/sanitized.h"

namespace flashinfer {
namespace {

constexpr Device kEmu{DeviceType::kEmu, 0};

struct Row {
  const char *op, *args;
};
/// Peaked and flat rows, draws that are decided in the first round and after many, all filters, all element types.
const Row kRows[] = {
    {"sampling_from_probs", "probs=f32:12x5003:probs"},
    {"sampling_from_probs", "probs=f32:12x2048:const(0.00048828125)"},
    {"sampling_from_probs", "probs=bf16:12x1500:probs"},
    {"top_k_sampling_from_probs", "probs=f32:12x5003:probs top_k=40"},
    {"top_p_sampling_from_probs", "probs=f32:12x5003:probs top_p=0.3"},
    {"top_p_sampling_from_probs", "probs=f16:12x1030:probs top_p=0.95"},
    {"min_p_sampling_from_probs", "probs=f32:12x5003:probs min_p=0.02"},
    {"top_k_top_p_sampling_from_probs", "probs=f32:5x17000:probs top_k=700 top_p=0.6"},
    {"top_k_top_p_sampling_from_probs", "probs=f32:12x5003:probs top_k=30 top_p=0.2 filter_apply_order='joint'"},
    {"top_k_top_p_sampling_from_logits", "logits=f32:12x5003:normal(0,3) top_k=30 top_p=0.7"},
    {"top_k_top_p_sampling_from_logits", "logits=bf16:12x3000:normal(0,2) top_k=0 top_p=0.9"},
    {"top_k_top_p_sampling_from_logits", "logits=f32:12x3000 top_k=90 top_p=0.9 filter_apply_order='joint'"},
    {"sampling_from_logits", "logits=f32:12x20002:normal(0,3)"},
    {"sampling_from_logits", "logits=f16:12x5001"},
    {"chain_speculative_sampling",
     "draft_probs=f32:12x5x3001:probs draft_token_ids=i32:12x5:randint(0,40) target_probs=f32:12x6x3001:probs"},
    {"chain_speculative_sampling",
     "draft_probs=bf16:9x3x1500:probs draft_token_ids=i64:9x3:randint(-1,1500) target_probs=bf16:9x4x1500:probs"},
    {"top_k_renorm_probs", "probs=f32:12x5003:probs top_k=300"},
    {"top_k_mask_logits", "logits=bf16:9x3001 top_k=300"},
};

/// The outputs keep what they lie in.
cases::Outputs outputs(const op::Op& op, const std::string& args, Device device) {
  cases::Built b = cases::build(op, args, {.device = device});
  return cases::run_block(b);
}

class SamplingOnTheEmulator : public testing::TestWithParam<Row> {};
TEST_P(SamplingOnTheEmulator, GivesTheTokensOfTheCpu) {
  const op::Op& op = *op::find_op(GetParam().op);
  const bool draws = std::string(op.name).find("sampling") != std::string::npos;
  for (int seed = 1; seed <= (draws ? 2 : 1); ++seed) {
    std::string args = GetParam().args;
    if (draws) args += " seed=" + std::to_string(seed * 977) + " offset=" + std::to_string(seed % 4);
    const cases::Outputs want = outputs(op, args, kCpu);
    const jit::Emulation emulation(static_cast<uint64_t>(seed));
    const cases::Outputs got = outputs(op, args, kEmu);
    ASSERT_EQ(got.tensors.size(), want.tensors.size());
    for (size_t i = 0; i < got.tensors.size(); ++i) {
      const cases::Comparison c = cases::compare_bits(got.tensors[i].second.view(), want.tensors[i].second.view());
      EXPECT_TRUE(c.equal) << op.name << " " << args << ": " << got.tensors[i].first << " " << c.text;
    }
    EXPECT_FALSE(emulation.launches().empty());
  }
}
INSTANTIATE_TEST_SUITE_P(Rows, SamplingOnTheEmulator, testing::ValuesIn(kRows), [](const auto& info) {
  return std::string(info.param.op) + "_" + std::to_string(info.index);
});

/// A row of a decode batch is spread over as many blocks as a cluster has, where there are clusters; the token, or the
/// row, is the same bit by bit.
TEST(SamplingOnTheEmulator, AFewLongRowsTakeSeveralBlocksEach) {
  const Row rows[] = {
      {"top_k_top_p_sampling_from_probs", "probs=f32:1x131072:probs top_k=64 top_p=0.8 seed=4 offset=0"},
      {"top_k_top_p_sampling_from_logits", "logits=bf16:2x66001:normal(0,3) top_k=0 top_p=0.9 seed=4 offset=0"},
      {"top_k_renorm_probs", "probs=bf16:1x70001:probs top_k=3000"},
      {"chain_speculative_sampling",
       "draft_probs=f32:1x1x66000:probs draft_token_ids=i32:1x1:const(7) target_probs=f32:1x2x66000:probs seed=3 "
       "offset=0"},
      {"top_k", "input=f32:1x131072 k=1500 sorted=True"},
      {"top_k", "input=bf16:2x70001:randint(0,99) k=3000 tie_break=2"},
      {"top_k", "input=bf16:1x70001:randint(0,99) k=1 tie_break=1"},
  };
  for (const Row& row : rows) {
    const op::Op& op = *op::find_op(row.op);
    const cases::Outputs want = outputs(op, row.args, kCpu);
    for (const int arch : sanitized() ? std::vector<int>{90} : std::vector<int>{90, 80}) {
      const jit::EmulatedArch gpu(arch);
      const jit::Emulation emulation(arch == 90 ? 3 : 0);
      const cases::Outputs got = outputs(op, row.args, kEmu);
      for (size_t i = 0; i < got.tensors.size(); ++i)
        EXPECT_TRUE(cases::compare_bits(got.tensors[i].second.view(), want.tensors[i].second.view()).equal)
            << op.name << " " << row.args << " on sm_" << arch << ": " << got.tensors[i].first;
      ASSERT_FALSE(emulation.launches().empty());
      EXPECT_EQ(emulation.launches()[0].launch.cluster[0], arch == 90 ? 8u : 1u) << row.args;
    }
  }
}

TEST(SamplingOnTheEmulator, ThresholdsAndSeedsMayLieOnTheDevice) {
  const op::Op& op = *op::find_op("top_k_top_p_sampling_from_probs");
  const std::string args =
      "probs=f32:4x500:probs top_k=i64:[1,5,500,0] top_p=f64:[0.9,0.1,0.5,0] indices=i64:[3,1,2,0,1] "
      "seed=u64:[1,2,3,4,5] offset=i64:[0,0,4,0,2]";
  const cases::Outputs want = outputs(op, args, kCpu), got = outputs(op, args, kEmu);
  EXPECT_TRUE(cases::compare_bits(got.tensors[0].second.view(), want.tensors[0].second.view()).equal);
}

/// The host does not look at indices on a GPU: a row that is not there gives token 0, and says so.
TEST(SamplingOnTheEmulator, ARowThatIsNotThereIsNotRead) {
  Tensor probs = Tensor::empty({2, 100}, DType::kF32);
  for (float& p : probs.span<float>()) p = 0.01f;
  const int32_t rows[] = {0, 2, -1, 1};
  const Tensor p = to_device(probs.view(), kEmu),
               i = to_device(Tensor::copy_of(std::span<const int32_t>(rows), {4}).view(), kEmu);
  const jit::Emulation emulation(0);
  const Samples s = sampling_from_probs({.probs = p, .indices = i, .seed = 3, .offset = 0, .return_valid = true});
  const auto valid = s.valid.span<bool>();
  EXPECT_TRUE(valid[0] && !valid[1] && !valid[2] && valid[3]);
  EXPECT_EQ(s.samples.span<int32_t>()[1], 0);
}

inline constexpr jit::Kernel kHost{"tests/device/exact_probe.h", "probe::exact_host", "probe::ExactParams"};
inline constexpr jit::Kernel kDevice{"tests/device/exact_probe.cuh", "probe::exact_device", "probe::ExactParams"};

/// exact.h repeats the CPU's polynomials operation by operation; where the CPU has no fused multiply-add it cannot.
TEST(Exact, ExpAndLog2GiveTheBitsOfTheCpu) {
  constexpr int64_t kN = 64 * 512;
  Tensor t = Tensor::empty({6, kN}, DType::kF32);
  float* row[6];
  for (int i = 0; i < 6; ++i) row[i] = t.data_as<float>() + i * kN;
  std::mt19937 random(5);
  for (int64_t i = 0; i < kN; ++i) {
    row[0][i] = std::uniform_real_distribution<float>(-110.0f, 92.0f)(random);
    row[1][i] = i % 2 ? std::uniform_real_distribution<float>(1e-7f, 1.0f)(random)
                      : std::uniform_real_distribution<float>(0.9f, 40.0f)(random);
  }
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const float special[] = {0.0f,    -0.0f,  kInfinity, -kInfinity, std::numeric_limits<float>::quiet_NaN(),
                           -104.0f, -87.4f, 88.72f,    1e-20f};
  std::memcpy(row[0], special, sizeof special);
  probe::ExactParams p{row[0], row[1], row[2], row[3], kN};
  const auto& host = jit::cpu_kernel<kHost>(probe::ExactConfig{.threads = 128});
  ASSERT_EQ(host.why_not, "");
  host.fn(&p, 0);
  const Tensor there = to_device(t.view(), kEmu);
  for (int i = 0; i < 6; ++i) row[i] = there.data_as<float>() + i * kN;
  const jit::CudaLoaded& k = jit::cuda_kernel<kDevice>(probe::ExactConfig{.threads = 128}, kEmu);
  ASSERT_EQ(k.why_not, "");
  cuda::Launch l;
  l.block[0] = 128;
  jit::launch(k, probe::ExactParams{row[0], row[1], row[4], row[5], kN}, l);
  for (int64_t i = 0; i < kN; ++i) {
    const bool nan = std::isnan(row[2][i]) && std::isnan(row[4][i]);
    ASSERT_TRUE(nan || std::bit_cast<uint32_t>(row[4][i]) == std::bit_cast<uint32_t>(row[2][i])) << "exp " << row[0][i];
    ASSERT_EQ(std::bit_cast<uint32_t>(row[5][i]), std::bit_cast<uint32_t>(row[3][i])) << "log2 " << row[1][i];
  }
}

}  // namespace
}  // namespace flashinfer
