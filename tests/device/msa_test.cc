// SPDX-License-Identifier: Apache-2.0
// MiniMax sparse attention on a GPU without tensor cores of 16 x 8 by 16 (sm_75), where the case rows run on CUDA cores
// in f32; and a row's bits, which do not depend on its batch.
#include <gtest/gtest.h>

#include <algorithm>

#include "flashinfer/cases/run.h"
#include "flashinfer/core/transfer.h"
#include "flashinfer/jit/targets.h"
#include "flashinfer/op/registry.h"
#include "flashinfer/ops/msa/op.h"
#include "tests/device/sanitized.h"

namespace flashinfer {
namespace {
constexpr Device kEmu{DeviceType::kEmu, 0};

class MsaOnCores : public testing::TestWithParam<const char*> {};
TEST_P(MsaOnCores, AgreesWithTheReference) {
  const jit::EmulatedArch turing(75);
  const op::Op& op = *op::find_op(GetParam());
  size_t ran = 0;
  for (const op::Case& c : op.cases()) {
    if (c.tags == op::kBench || (&c - op.cases().data()) % (sanitized() ? 8 : 2)) continue;
    const cases::CaseResult r = cases::run_case(op, c, {.device = kEmu, .seeds = 1});
    EXPECT_TRUE(r.passed && r.unsupported.empty()) << c.name << ": " << r.failure << r.unsupported;
    ++ran;
  }
  EXPECT_GT(ran, 0u);
}
INSTANTIATE_TEST_SUITE_P(Ops, MsaOnCores,
                         testing::Values("msa_proxy_score", "msa_proxy_score_fp4", "msa_sparse_attention",
                                         "msa_sparse_decode_attention"),
                         [](const auto& info) { return std::string(info.param); });

TEST(Msa, ARowDoesNotDependOnItsBatch) {
  const op::Op& op = *op::find_op("msa_sparse_attention");
  const cases::Built b = cases::build(op,
                                      "q=bf16:5x6x128 k=bf16:520x2x128 v=bf16:520x2x128 "
                                      "q2k_indices=i32:2x5x4:randint(-1,6) cu_seqlens_q=i32:[0,3,3,5] "
                                      "cu_seqlens_k=i32:[0,300,301,520] return_softmax_lse=True",
                                      {.device = kEmu});
  const auto& a = *static_cast<const MsaSparseAttention*>(b.block.data());
  const op::Results all = msa_sparse_attention(a);
  const auto indices = [](std::initializer_list<int32_t> x) {
    return to_device(
        Tensor::copy_of(std::span<const int32_t>(x.begin(), x.size()), {static_cast<int64_t>(x.size())}).view(), kEmu);
  };
  // The last request alone.
  const Tensor q_ends = indices({0, 2}), k_ends = indices({0, 219});
  Tensor host = Tensor::empty({2, 2, 4}, DType::kI32);
  for (int g = 0; g < 2; ++g)
    std::copy_n(a.q2k_indices.data_as<int32_t>() + (g * 5 + 3) * 4, 8, host.data_as<int32_t>() + g * 8);
  const Tensor lists = to_device(host.view(), kEmu);
  const op::Results one = msa_sparse_attention({.q = a.q.slice(0, 3, 5),
                                                .k = a.k.slice(0, 301, 520),
                                                .v = a.v.slice(0, 301, 520),
                                                .q2k_indices = lists,
                                                .cu_seqlens_q = q_ends,
                                                .cu_seqlens_k = k_ends.view(),
                                                .return_softmax_lse = true});
  EXPECT_TRUE(cases::compare_bits(one[0].view(), all[0].view().slice(0, 3, 5)).equal);
  EXPECT_TRUE(cases::compare_bits(one[1].view(), all[1].view().slice(0, 3, 5)).equal);
}
}  // namespace
}  // namespace flashinfer
