// SPDX-License-Identifier: Apache-2.0
// Every instruction set that the kernels are written for: rows of the case tables again, compiled for AVX-512 without
// BF16, AVX2 and plain vectors (the tables themselves run on what the machine has, and as test cases.x86-64-v3). Rows
// are chosen to share few kernels: five of attention, one of each other family.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <string>

#include "flashinfer/cases/run.h"
#include "flashinfer/core/env.h"
#include "flashinfer/jit/engine.h"
#include "flashinfer/op/registry.h"

namespace flashinfer {
namespace {

constexpr const char* kVariable = "FLASHINFER_CPU_ISA";

/// While it lives, kernels are compiled for `target`.
class ForTarget {
 public:
  explicit ForTarget(jit::Target target) {
    if (const char* text = std::getenv(kVariable)) before_ = text;
    ::setenv(kVariable, jit::name(target), 1);
    renew();
  }
  ~ForTarget() {
    if (before_)
      ::setenv(kVariable, before_->c_str(), 1);
    else
      ::unsetenv(kVariable);
    renew();
  }

 private:
  static void renew() {
    env::reload();
    jit::reset();
  }
  std::optional<std::string> before_;
};

struct Rows {
  const char* op;
  std::vector<std::string_view> names;
};
const std::vector<Rows>& attention() {
  static const std::vector<Rows> r = {
      {"single_prefill_with_kv_cache",
       {"causal", "more_rows_than_keys", "mask_window", "window", "strided", "group16", "alibi", "mask_all_hidden",
        "chunks"}},
      {"BatchDecodeWithPagedKVCacheWrapper.run",
       {"page16", "page1", "hnd_pair_strided", "window_cap_scales", "three_tokens_each", "group13_window", "sinks",
        "e4m3_group16_d80", "fp8_query"}},
      {"BatchPrefillWithPagedKVCacheWrapper.run",
       {"packed_mask", "items_window_sinks", "sinks_mask_cap", "dims_192_128_page64", "lse_ln_hn"}},
      {"BatchPrefillWithRaggedKVCacheWrapper.run", {"fused_qkv", "mask_scales"}},
      {"BatchMLAPagedAttentionWrapper.run",
       {"prefill_causal", "odd_dims", "odd_dims_four_heads", "chunks_two_heads", "decode_one_head"}},
  };
  return r;
}

const std::vector<Rows>& others() {
  static const std::vector<Rows> r = {
      {"mm_bf16", {"m2", "m3_row_major_odd", "m7_bias"}},
      {"mm_fp8", {"plain", "low_latency"}},
      {"mm_fp4", {"nvfp4", "one_row"}},
      {"mm_gguf", {"q4_0", "q4_k"}},
      {"cutlass_fused_moe", {"bf16", "one_token"}},
      {"rmsnorm", {"decode", "below_a_vector"}},
      {"silu_and_mul", {"decode", "one_pair"}},
      {"nvfp4_quantize", {"one_scale", "row_scales"}},
      {"mxfp8_quantize", {"bf16", "padded_columns"}},
      {"softmax", {"decode"}},
      {"top_k_top_p_sampling_from_probs", {"batch", "joint"}},
  };
  return r;
}

class Targets : public ::testing::TestWithParam<jit::Target> {
 protected:
  static void run(const std::vector<Rows>& rows) {
    if (const auto why = jit::why_not_runnable(GetParam()); !why.empty()) GTEST_SKIP() << why;
    const ForTarget target(GetParam());
    for (const Rows& r : rows) {
      const op::Op* found = op::find_op(r.op);
      ASSERT_NE(found, nullptr) << r.op;
      for (std::string_view name : r.names) {
        const auto cases = found->cases();
        const auto c = std::find_if(cases.begin(), cases.end(), [&](const op::Case& x) { return x.name == name; });
        ASSERT_NE(c, cases.end()) << r.op << " " << name;
        const cases::CaseResult result = cases::run_case(*found, *c);
        EXPECT_TRUE(result.passed) << result.failure << "\n  " << kVariable << "=" << jit::name(GetParam()) << " "
                                   << result.repro;
      }
    }
    for (const jit::Module& m : jit::modules()) EXPECT_EQ(m.target, jit::name(GetParam())) << m.text;
    EXPECT_FALSE(jit::modules().empty());
  }
};

/// Rows whose kernels use what a level of x86-64 is extended by, without what comes after it.
const std::vector<Rows>& extensions(jit::Target t) {
  static const std::vector<Rows> avx_vnni = {{"mm_gguf", {"bytes_q4_0", "bytes_panels_q8_0"}}, {"mm_fp4", {"nvfp4"}}};
  static const std::vector<Rows> vnni = {{"mm_gguf", {"bytes_panels_q8_0"}}, {"mm_fp8", {"plain"}}};
  return t == jit::Target::kX86V3AvxVnni ? avx_vnni : vnni;
}

TEST_P(Targets, Attention) { run(attention()); }
TEST_P(Targets, Others) { run(others()); }
INSTANTIATE_TEST_SUITE_P(All, Targets,
                         ::testing::Values(jit::Target::kX86V4, jit::Target::kX86V3, jit::Target::kPortable),
                         [](const auto& info) {
                           return std::string(info.index == 0 ? "V4" : info.index == 1 ? "V3" : "Portable");
                         });

class Extensions : public Targets {};
TEST_P(Extensions, Rows) { run(extensions(GetParam())); }
INSTANTIATE_TEST_SUITE_P(All, Extensions, ::testing::Values(jit::Target::kX86V3AvxVnni, jit::Target::kX86V4Vnni),
                         [](const auto& info) { return std::string(info.index == 0 ? "AvxVnni" : "Vnni"); });

}  // namespace
}  // namespace flashinfer
