// SPDX-License-Identifier: Apache-2.0
// Patterns 6, 7 and 12 of allreduce_fusion on the emulator with a GPU a rank: the bytes of the CPU's ranks, whose test
// compares with the contract in double precision.
#include <gtest/gtest.h>

#include "flashinfer/core/check.h"
#include "flashinfer/kernels/emu/emu.h"
#include "tests/comm/all_reduce_call.h"
#include "tests/comm/gpu_collectives.h"

namespace flashinfer {
namespace {

/// A call's shapes, and what it wants.
struct Experts {
  int64_t pattern = 6, tokens = 7, hidden = 96, experts = 3, rows = 11;
  DType dtype = DType::kBF16, scales = DType::kF32;
  int ranks = 2;
  std::optional<bool> one_shot{};
  bool scaled = true, adds = true, sum = false, norm = true, quant = false;
};

Tensor indices(const Experts& c, unsigned seed) {
  const Tensor t = Tensor::empty({c.tokens, c.experts}, DType::kI32);
  std::mt19937 random(seed);
  for (int64_t i = 0; i < t.numel(); ++i)
    t.data_as<int32_t>()[i] = static_cast<int32_t>(random() % static_cast<uint64_t>(c.rows + 1)) - 1;  // -1: none
  return t;
}

/// A rank's tensors and its call, on a device.
struct RankOf {
  RankOf(const Experts& c, int rank, Device d) : c(c) {
    const auto seed = static_cast<unsigned>(10 * rank);
    const auto random = [&](int64_t rows, int64_t columns, DType dtype, unsigned s) {
      return on(random_tensor({rows, columns}, dtype, s), d);
    };
    x = random(c.pattern == 6 ? c.experts * c.tokens : c.rows, c.hidden, c.dtype, seed);
    scales = c.pattern == 6 ? random(c.experts, c.tokens, c.scales, seed + 1)
                            : random(c.tokens, c.experts, c.scales, seed + 1);
    add = random(c.tokens, c.hidden, c.dtype, seed + 2), index = on(indices(c, seed + 3), d);
    residual = random(c.tokens, c.hidden, c.dtype, 1000), gamma = random(1, c.hidden, c.dtype, 1001);
    for (Tensor* t : {&sum, &h, &n}) *t = random(c.tokens, c.hidden, c.dtype, 1002);
    const bool fp8 = c.pattern == 12;
    codes = on(Tensor::zeros({c.tokens, fp8 ? c.hidden : c.hidden / 2}, fp8 ? DType::kF8E4M3 : DType::kU8), d);
    factors = on(Tensor::zeros({sf_bytes(SfLayout::k128x4, c.tokens, c.hidden / 16)}, DType::kU8), d);
  }
  std::string call(op::Object* workspace) {
    const TensorView gamma_row = gamma.view().select(0, 0);
    AllReduceFusion a{.input = c.pattern == 6 ? add : x, .workspace = workspace, .pattern = c.pattern};
    a.residual_in = residual, a.rms_gamma = gamma_row, a.rms_eps = 1e-5, a.use_oneshot = c.one_shot;
    if (c.pattern == 6) {
      a.moe_reduction_device_num_experts = c.experts, a.moe_reduction_scale_input = scales;
      a.moe_reduction_active_experts_token_input = x, a.moe_reduction_token_input = add;
    } else {
      a.expanded_idx_to_permuted_idx = index;
      if (c.scaled) a.expert_scale_factor = scales;
      if (c.adds) a.shared_expert_output = add;
    }
    if (c.sum) a.output = sum;
    if (c.norm) a.residual_out = h;
    if (c.norm && c.pattern != 12) a.norm_out = n;
    if (c.quant || c.pattern == 12) a.quant_out = codes, a.scale_factor = op::ScalarOrTensor(0.5);
    if (c.quant) a.scale_out = factors;
    allreduce_fusion(a);
    return bytes_of(sum) + bytes_of(h) + bytes_of(n) + bytes_of(codes) + bytes_of(factors);
  }
  const Experts& c;
  Tensor x, scales, add, index, residual, gamma, sum, h, n, codes, factors;
};

struct GpuMoeAllReduce : GpuCollectives {
  static void check(const Experts& c, const std::string& what) {
    expect_cpus_bytes(c.ranks, what,
                      [&](int r, AllReduceFusionWorkspace& w, Device d) { return RankOf(c, r, d).call(w); });
  }
};

TEST_F(GpuMoeAllReduce, ReductionGivesTheBitsOfTheCpu) {
  for (const bool one_shot : {true, false})
    for (const bool quant : {true, false})
      check({.ranks = 3, .one_shot = one_shot, .sum = one_shot, .quant = quant},
            str("one shot ", one_shot, ", quant ", quant));
  check({.sum = true, .norm = false}, "the sum alone");
  check({.ranks = 1, .sum = true}, "one rank");
  check({.tokens = 5, .hidden = 75, .dtype = DType::kF16, .scales = DType::kF16, .ranks = 4, .one_shot = false},
        "not aligned");
  check({.tokens = 8, .hidden = 128, .experts = 1, .dtype = DType::kF32, .ranks = 2}, "f32");
}
TEST_F(GpuMoeAllReduce, FinalizeGivesTheBitsOfTheCpu) {
  for (const bool scaled : {true, false})
    for (const bool adds : {true, false})
      check({.pattern = scaled == adds ? 12 : 7, .scaled = scaled, .adds = adds}, str("pattern 7 or 12", scaled, adds));
  check({.pattern = 7, .tokens = 3, .hidden = 64, .experts = 8, .rows = 5, .ranks = 3, .quant = true}, "FP4");
  check({.pattern = 7, .tokens = 2, .hidden = 33, .dtype = DType::kF16, .scales = DType::kF16, .ranks = 3},
        "not aligned");
  check({.pattern = 7, .ranks = 1}, "one rank");
}

/// What crosses the links is what each rank adds, not its experts' rows.
TEST_F(GpuMoeAllReduce, MovesNoMoreThanTheOtherRanksAddends) {
  for (const int64_t pattern : {6, 7})
    for (const bool one_shot : {true, false}) {
      if (pattern == 7 && !one_shot) continue;
      const Experts c{.pattern = pattern, .tokens = 9, .hidden = 128, .ranks = 3, .one_shot = one_shot};
      const std::string group = fresh_name();
      std::shared_ptr<const emu::Counts> counts;
      for (const Outcome& o : run_threads(c.ranks, [&](int r) {
             const jit::Emulation emulation(0, true);
             AllReduceFusionWorkspace w(workspace(group, r, c.ranks, "peers"));
             RankOf(c, r, kEmu).call(w);
             if (r == 0) counts = emulation.launches().back().counts;
           }))
        ASSERT_EQ(o, "");
      const uint64_t bytes = 9 * 128 * 2, blocks = one_shot ? 4 : 3;
      EXPECT_EQ(counts->remote_load_bytes, (one_shot ? 3 : 2) * 2 * bytes) << "pattern " << pattern;
      EXPECT_EQ(counts->remote_store_bytes, 3 * 2 * 8 * blocks * (one_shot ? 1 : 2)) << "pattern " << pattern;
      EXPECT_EQ(counts->bank_conflicts(), 0u);
    }
}

}  // namespace
}  // namespace flashinfer
