// SPDX-License-Identifier: Apache-2.0
// Lists of kernels to precompile, which machines without a compiler depend on: a call of several kernels lists all.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "flashinfer/cases/warmup.h"
#include "flashinfer/op/registry.h"

namespace flashinfer {
namespace {

TEST(KernelLists, HoldEveryLaunchOfACall) {
  const op::Op* const ops[] = {op::find_op("cutlass_fused_moe"), op::find_op("gdn_fused_decode_step"),
                               op::find_op("nvfp4_quantize_paged_kv_cache"), op::find_op("trtllm_bf16_moe")};
  const std::vector<jit::Request> all = cases::cuda_kernels(ops, op::kAot, 90);
  for (const char* name :
       {"moe.moe_route", "moe.moe_choices", "moe.moe_permute", "moe.moe_activate", "moe.moe_sum", "gemm.gemm",
        "quantization.block_quantize", "quantization.group8", "linear_attention.gdn_front",
        "linear_attention.gdn_decode", "quantization.nvfp4_cache_scales", "quantization.nvfp4_quantize_cache"})
    EXPECT_TRUE(std::ranges::any_of(all, [&](const jit::Request& r) {
      return r.text().starts_with(std::string(name) + "{");
    })) << name;
  // Products gather the rows of product 1 and follow offsets.
  EXPECT_TRUE(
      std::ranges::any_of(all, [](const jit::Request& r) { return r.text().find("gather=1") != std::string::npos; }));
}

TEST(KernelLists, HoldWhatNoCaseRowNeeds) {
  const std::vector<jit::Request> beside = cases::cuda_kernels_beside_cases(90);
  for (const char* name :
       {"comm.all_reduce", "comm.move_columns", "comm.cp_reduce", "comm.moe_plan", "comm.moe_send", "comm.moe_sanitize",
        "comm.moe_share", "comm.moe_combine", "comm.mixed_comm", "comm.quantized_sum", "common.print_statistics"})
    EXPECT_TRUE(std::ranges::any_of(beside, [&](const jit::Request& r) {
      return r.text().starts_with(std::string(name) + "{");
    })) << name;
  for (const char* part : {"ranks=2", "ranks=4", "ranks=8"})
    EXPECT_TRUE(std::ranges::any_of(beside, [&](const jit::Request& r) {
      return r.text().starts_with("comm.all_reduce{") && r.text().find(part) != std::string::npos;
    })) << part;
}

}  // namespace
}  // namespace flashinfer
