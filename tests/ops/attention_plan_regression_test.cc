// SPDX-License-Identifier: Apache-2.0
// As attention_regression_test.cc: plans, CUDA-graph mode and the classes made of others.
#include "tests/ops/attention_regression.h"

#include "flashinfer/ops/cascade/op.h"
#include "flashinfer/ops/pod/op.h"
#include "flashinfer/ops/sparse/op.h"

namespace flashinfer::attention_test {
namespace {

// ---- plans ----
TEST(AttentionRegression, PlansOfTwoWrappersDoNotTouchEachOther) {
  const Problem a(1, 37), b(1, 61, 4, 2, 32, 7);
  const Pages pa(a), pb(b);
  const Tensor workspace = no_workspace();
  BatchDecodeWithPagedKVCacheWrapper wa(workspace), wb(workspace);
  Tensor indices = Tensor::clone(pa.indices.view());
  BatchDecodePlan plan = decode_plan(a, pa);
  plan.indices = indices;
  wa.plan(plan);
  wb.plan(decode_plan(b, pb));
  for (int32_t& x : indices.span<int32_t>()) x = -1;  // plan() keeps nothing of the caller's memory
  expect_both(wa.run({.q = a.q, .paged_kv_cache = pa.cache, .return_lse = true}), expected(a, {}), "first");
  expect_both(wb.run({.q = b.q, .paged_kv_cache = pb.cache, .return_lse = true}), expected(b, {}), "second");
}

TEST(AttentionRegression, FixedSplitsAreAcceptedAndChangeNoBit) {
  const Problem p(1, 3000, 4, 2, 16);
  const Pages pages(p);
  const Tensor workspace = no_workspace();
  BatchDecodeWithPagedKVCacheWrapper w(workspace);
  BatchDecodePlan plan = decode_plan(p, pages);
  w.plan(plan);
  const Tensor want = w.run({.q = p.q, .paged_kv_cache = pages.cache});
  plan.fixed_split_size = 8;
  w.plan(plan);
  expect_bits(w.run({.q = p.q, .paged_kv_cache = pages.cache}), want, "fixed_split_size");
  plan.fixed_split_size = std::nullopt, plan.disable_split_kv = true;
  w.plan(plan);
  expect_bits(w.run({.q = p.q, .paged_kv_cache = pages.cache}), want, "disable_split_kv");
}

// ---- CUDA-graph mode ----
struct GraphBatch {
  Tensor workspace = no_workspace(), qo = ints({9, 9}), indptr = ints({9, 9}), indices = ints({9, 9, 9, 9}),
         last = ints({9});
  Tensor mask = Tensor::zeros({64}, DType::kU8), mask_indptr = ints({9, 9});
  BatchPrefillInit init() const {
    return {.float_workspace_buffer = workspace,
            .use_cuda_graph = true,
            .qo_indptr_buf = qo,
            .paged_kv_indptr_buf = indptr,
            .paged_kv_indices_buf = indices,
            .paged_kv_last_page_len_buf = last,
            .custom_mask_buf = mask,
            .mask_indptr_buf = mask_indptr};
  }
};
TEST(AttentionRegression, GraphModeFillsItsBuffersAndMaySwitchMasks) {
  const Problem p(5, 37);
  const Pages pages(p);
  const Tensor qo = ints({0, 5});
  GraphBatch g;
  BatchPrefillWithPagedKVCacheWrapper w(g.init());
  BatchPrefillPlan plan = prefill_plan(p, pages, qo);
  plan.causal = true;
  w.plan(plan);
  EXPECT_EQ(g.qo.data_as<int32_t>()[1], 5);
  EXPECT_EQ(g.indptr.data_as<int32_t>()[1], 3);
  EXPECT_EQ(g.indices.data_as<int32_t>()[0], 2);
  EXPECT_EQ(g.indices.data_as<int32_t>()[3], 9);  // beyond what the plan has
  EXPECT_EQ(g.last.data_as<int32_t>()[0], 5);
  expect_both(w.run({.q = p.q, .paged_kv_cache = pages.cache, .return_lse = true}), expected(p, causal(p)), "no mask");
  Tensor bools = Tensor::zeros({185}, DType::kBool);
  for (int64_t e = 0; e < 185; ++e) bools.data_as<bool>()[e] = e % 3 == 0;
  plan.custom_mask = bools;
  w.plan(plan);
  EXPECT_EQ(g.mask.data_as<uint8_t>()[0], 0x49);
  Rules r;
  r.sees = [](int64_t i, int64_t j) { return (i * 37 + j) % 3 == 0; };
  expect_both(w.run({.q = p.q, .paged_kv_cache = pages.cache, .return_lse = true}), expected(p, r), "mask");
  plan.custom_mask = std::nullopt;
  w.plan(plan);
  expect_both(w.run({.q = p.q, .paged_kv_cache = pages.cache, .return_lse = true}), expected(p, causal(p)),
              "no mask again");
}

// ---- the other classes ----
TEST(AttentionRegression, BatchAttentionTakesItsCapFromThePlan) {
  const Problem p(5, 37);
  const Pages pages(p);
  const Tensor qo = ints({0, 5}), len = ints({37});
  BatchAttention w;
  w.plan({.qo_indptr = qo,
          .kv_indptr = pages.indptr,
          .kv_indices = pages.indices,
          .kv_len_arr = len,
          .num_qo_heads = p.hq,
          .num_kv_heads = p.hkv,
          .head_dim_qk = p.d,
          .head_dim_vo = p.d,
          .page_size = 16,
          .causal = true,
          .logits_soft_cap = 0.7,
          .q_data_type = DType::kF32,
          .kv_data_type = DType::kF32});
  Rules r = causal(p);
  r.logit = [](double x, int64_t, int64_t, int64_t) { return 0.7 * std::tanh(x / 0.7); };
  expect_both(w.run({.q = p.q, .kv_cache = pages.cache}), expected(p, r), "cap");
  expect_error(ErrorKind::kValueError, "logits_soft_cap is 0.5, but plan() was given 0.7",
               [&] { w.run({.q = p.q, .kv_cache = pages.cache, .logits_soft_cap = 0.5}); });
}

TEST(AttentionRegression, PodReturnsBothLseAndZerosForRowsBeforeTheKeys) {
  const Problem prefill(9, 4), decode(1, 37, 4, 2, 32, 5);
  const Pages pages(decode);
  const Tensor workspace = no_workspace();
  PODWithPagedKVCacheWrapper w(workspace);
  w.plan({.indptr = pages.indptr,
          .indices = pages.indices,
          .last_page_len = pages.last,
          .num_qo_heads = 4,
          .num_kv_heads = 2,
          .head_dim = 32,
          .page_size = 16,
          .q_data_type = DType::kF32});
  op::Results r = w.run({.q_p = prefill.q,
                         .k_p = prefill.k,
                         .v_p = prefill.v,
                         .q_d = decode.q,
                         .paged_kv_cache_d = pages.cache,
                         .causal_p = true,
                         .return_lse_p = true,
                         .return_lse_d = true});
  expect_both({r[0], r[1]}, expected(prefill, causal(prefill)), "prefill");
  expect_both({r[2], r[3]}, expected(decode, {}), "decode");
}

TEST(AttentionRegression, CascadeIsAttentionOverAllLevels) {
  const Problem p(3, 53);  // one request: 32 keys shared, 21 of its own, in pages of 16
  const Pages pages(p);
  const Tensor qo = ints({0, 3}), a = ints({0, 2}), b = ints({0, 2}), ia = ints({3, 2}), ib = ints({1, 0}),
               la = ints({16}), lb = ints({5});
  MultiLevelCascadeAttentionWrapper w;
  w.plan({.qo_indptr_arr = {qo, qo},
          .paged_kv_indptr_arr = {a, b},
          .paged_kv_indices_arr = {ia, ib},
          .paged_kv_last_page_len = {la, lb},
          .num_qo_heads = 4,
          .num_kv_heads = 2,
          .head_dim = 32,
          .page_size = 16,
          .causal = true,
          .q_data_type = DType::kF32});
  expect_values(w.run({.q = p.q, .paged_kv_cache = pages.cache}), expected(p, causal(p)).out, 2e-5, "levels");
}

TEST(AttentionRegression, MergeInPlaceRejectsAnLseOfAnotherType) {
  const Tensor v = Tensor::zeros({2, 4, 32}, DType::kF16), s = Tensor::zeros({2, 4}, DType::kF16),
               f = Tensor::zeros({2, 4}, DType::kF32);
  expect_error(ErrorKind::kValueError, "s.dtype is float16, but must be float32",
               [&] { merge_state_in_place({.v = v, .s = s, .v_other = v, .s_other = f}); });
}

TEST(AttentionRegression, BlockSparseChecksTheLastBlockAndKeepsTheTypeOfQ) {
  const Problem p(8, 30);
  const Tensor workspace = no_workspace(), indptr = ints({0, 2, 3}), indices = ints({0, 2, 1}),
               beyond = ints({0, 3, 1}), none = ints({0, 0, 0}), empty = ints({});
  BlockSparseAttentionWrapper w(workspace);
  BlockSparsePlan plan{.indptr = indptr,
                       .indices = indices,
                       .M = 8,
                       .N = 30,
                       .R = 4,
                       .C = 10,
                       .num_qo_heads = 4,
                       .num_kv_heads = 2,
                       .head_dim = 32};
  plan.q_data_type = DType::kF32;
  w.plan(plan);
  Rules r;
  r.sees = [](int64_t i, int64_t j) { return i < 4 ? j < 10 || j >= 20 : j >= 10 && j < 20; };
  const op::Results got = w.run({.q = p.q, .k = p.k, .v = p.v, .return_lse = true});
  expect_both({got[0], got[1]}, expected(p, r), "blocks");
  r.logit = [](double x, int64_t, int64_t, int64_t) { return 2 * std::tanh(x / 2); };
  BlockSparseForward forward;
  forward.q = p.q, forward.k = p.k, forward.v = p.v, forward.logits_soft_cap = 2.0;
  expect_values(w.forward(forward), expected(p, r).out, 2e-5, "forward");
  plan.indices = beyond;
  expect_error(ErrorKind::kValueError, "indices has key block 3, which ends at 40, but N is 30", [&] { w.plan(plan); });
  plan.indptr = none, plan.indices = empty;
  w.plan(plan);
  const Tensor zeros = w.run({.q = p.q, .k = p.k, .v = p.v});
  for (float x : zeros.span<float>()) ASSERT_EQ(x, 0);
}

/// Images in a prompt: causal, and both directions within a span.
TEST(AttentionRegression, RangesAreSeenInBothDirections) {
  const Problem p(30, 37);
  const Pages pages(p);
  const Tensor workspace = no_workspace(), qo = ints({0, 30});
  Tensor spans = Tensor::empty({30, 2}, DType::kI32);
  for (int32_t i = 0; i < 30; ++i) {
    const bool image = i >= 8 && i < 20;
    spans.data_as<int32_t>()[2 * i] = image ? 15 : -1, spans.data_as<int32_t>()[2 * i + 1] = image ? 26 : -1;
  }
  BatchPrefillWithCausalBidirectionalRangesWrapper w({.float_workspace_buffer = workspace,
                                                      .q_data_type = DType::kF32,
                                                      .kv_data_type = DType::kF32,
                                                      .head_dim_qk = 32,
                                                      .head_dim_vo = 32});
  BatchRangesRun run{.q = p.q, .paged_kv_cache = pages.cache, .bidirectional_ranges = spans, .return_lse = true};
  expect_error(ErrorKind::kValueError, "plan() has not been called", [&] { w.run(run); });
  BatchRangesPlan plan{prefill_plan(p, pages, qo), {}};
  w.plan(plan);
  for (const auto& [before, within] :
       {std::pair(int64_t{-1}, int64_t{-1}), std::pair(int64_t{4}, int64_t{0}), std::pair(int64_t{0}, int64_t{3})}) {
    Rules r;
    r.sees = [&, b = before, n = within](int64_t i, int64_t j) {
      const int64_t at = i + 7;
      const bool image = i >= 8 && i < 20 && j >= 15 && j <= 26 && (n <= 0 || at - j < n);
      return image || (j <= at && (b < 0 || at - j <= b));
    };
    run.causal_window_left = before, run.range_window_left = within;
    expect_both(w.run(run), expected(p, r), str("windows ", before, " and ", within));
  }
  plan.causal = true;
  expect_error(ErrorKind::kValueError, "causal=True is given, but run()'s ranges", [&] { w.plan(plan); });
}

}  // namespace
}  // namespace flashinfer::attention_test
