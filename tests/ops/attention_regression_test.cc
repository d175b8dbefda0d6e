// SPDX-License-Identifier: Apache-2.0
// Faults that users of FlashInfer reported, and its special cases: one test for each that shows on a CPU, named after
// what it proves. attention_regression.h holds the definition they are compared with.
//
// What other tests hold:
// - wrong mask sizes, page ids outside the pool, last_page_len, indptr: Attention.BadTablesAreRejected
// - window at run() only, dtypes, shapes, other page size: Attention.TensorsThatDifferFromThePlanAreRejected
// - a paged plan without a mask after one with it: Attention.APlanWithoutAMaskForgetsTheLastOne
// - rows without keys, more rows than keys: Attention.ARowThatSeesNothingIsZeroAndMinusInfinity
// - NaN in unused slots and hidden keys: Attention.WhatAHiddenKeyHoldsStaysHidden*, AttentionDecode.*
// - offsets past 2^31: Attention.OffsetsPast2To31Elements, Mla.*, AppendRegression.*
// - independence of batch, page size, threads, splits: Attention.RowsAreBitwiseTheSame*, AttentionDecode.Splitting*
// - appends (padding, wrong dtype, wrong axis, one long request): AppendRegression.*
// - segments of packed bits, fp32 cos/sin: PackBits.*, Rope.*
// - a variable block-sparse pattern with empty and full rows: case tables of VariableBlockSparseAttentionWrapper
#include "tests/ops/attention_regression.h"

#include "flashinfer/ops/cascade/op.h"

namespace flashinfer::attention_test {
namespace {

// ---- the LSE ----
TEST(AttentionRegression, LseIsInBaseTwoUnlessAskedOtherwise) {
  const Problem p;
  const Pages pages(p);
  const Tensor workspace = no_workspace(), qo = ints({0, 5});
  BatchPrefillWithPagedKVCacheWrapper w(workspace);
  w.plan(prefill_plan(p, pages, qo));
  const Expected want = expected(p, {});
  const std::pair<Tensor, Tensor> two = w.run({.q = p.q, .paged_kv_cache = pages.cache, .return_lse = true});
  expect_both(two, want, "base 2");
  const std::pair<Tensor, Tensor> e =
      w.run({.q = p.q, .paged_kv_cache = pages.cache, .return_lse = true, .lse_base = "ln"});
  expect_values(e.second, want.lse, 2e-5, "base e");
}

TEST(AttentionRegression, StatesOfTwoHalvesMergeToTheWhole) {
  Problem p(5, 40);
  const auto half = [&](int64_t from, int64_t to) -> std::pair<Tensor, Tensor> {
    return single_prefill_with_kv_cache(
        {.q = p.q, .k = p.k.view().slice(0, from, to), .v = p.v.view().slice(0, from, to), .return_lse = true});
  };
  const auto a = half(0, 13), b = half(13, 40);
  expect_both(merge_state({.v_a = a.first, .s_a = a.second, .v_b = b.first, .s_b = b.second}), expected(p, {}),
              "13 + 27 keys");
  const auto none = half(0, 0);
  for (float x : none.second.span<float>()) ASSERT_EQ(x, -INFINITY);
  const auto merged = merge_state({.v_a = none.first, .s_a = none.second, .v_b = none.first, .s_b = none.second});
  for (float x : merged.first.span<float>()) ASSERT_EQ(x, 0);
  for (float x : merged.second.span<float>()) ASSERT_EQ(x, -INFINITY);
}

// ---- masks are -inf ----
TEST(AttentionRegression, AVeryNegativeLogitBeatsAMask) {
  for (const int64_t rows : {1, 12}) {  // both kernels
    Problem p(rows, 90, 4, 2, 32);
    for (int64_t i = 0; i < p.q.numel(); ++i) p.q.data_as<float>()[i] = i % 32 == 0 ? -2500.0f : 0.0f;
    for (int64_t i = 0; i < p.k.numel(); ++i)
      p.k.data_as<float>()[i] = i % 32 == 0 ? 97.0f + static_cast<float>(i / 64 % 3) / 2500 : 1.0f;
    Rules r = causal(p);
    r.scale = 1.0;  // logits near -2.45e5, which differ by 1
    expect_both(single_prefill_with_kv_cache(
                    {.q = p.q, .k = p.k, .v = p.v, .causal = true, .sm_scale = 1.0, .return_lse = true}),
                expected(p, r), std::to_string(rows) + " rows", 2e-3);
  }
}

TEST(AttentionRegression, BlocksAndChunksWithoutVisibleKeysLeaveNoNaN) {
  Problem p(12, 4500, 2, 1, 16);  // chunks of 512 and 2048 keys
  Tensor mask = Tensor::zeros({12, 4500}, DType::kBool);
  const auto seen = [](int64_t i, int64_t j) { return i != 3 && (j == 5 + i || j == 4400 + i); };  // row 3 sees none
  for (int64_t i = 0; i < 12; ++i)
    for (int64_t j = 0; j < 4500; ++j) mask.data_as<bool>()[i * 4500 + j] = seen(i, j);
  Rules r;
  r.sees = seen;
  expect_both(single_prefill_with_kv_cache({.q = p.q, .k = p.k, .v = p.v, .custom_mask = mask, .return_lse = true}),
              expected(p, r), "mask");
  const Problem one(1, 4500, 2, 1, 16);
  r.sees = [](int64_t, int64_t j) { return j >= 4489; };
  expect_both(single_prefill_with_kv_cache({.q = one.q, .k = one.k, .v = one.v, .window_left = 10, .return_lse = true}),
              expected(one, r), "decode");
}

// ---- windows and alignment ----
TEST(AttentionRegression, AWindowCountsTheKeysBeforeTheRow) {
  for (const int64_t rows : {1, 4, 20})
    for (const bool is_causal : {true, false}) {
      const Problem p(rows, 37);
      Rules r;
      r.sees = [&](int64_t i, int64_t j) {
        return j >= i + 37 - rows - 6 && (!is_causal || j <= i + 37 - rows);
      };  // 7 keys with itself
      expect_both(single_prefill_with_kv_cache(
                      {.q = p.q, .k = p.k, .v = p.v, .causal = is_causal, .window_left = 6, .return_lse = true}),
                  expected(p, r), str(rows, " rows, causal ", is_causal));
    }
}

TEST(AttentionRegression, CausalIsAlignedAtTheLastKey) {
  // 3 rows, 5 keys:  1 1 1 0 0 / 1 1 1 1 0 / 1 1 1 1 1. With values of one dim each, a row's output shows what it sees.
  Problem p(3, 5, 1, 1, 8);
  std::memset(p.v.data(), 0, static_cast<size_t>(p.v.nbytes()));
  for (int64_t j = 0; j < 5; ++j) p.v.data_as<float>()[j * 8 + j] = 1;
  const Tensor o = single_prefill_with_kv_cache({.q = p.q, .k = p.k, .v = p.v, .causal = true});
  const std::string want[3] = {"11100", "11110", "11111"};
  for (int64_t i = 0; i < 3; ++i) {
    std::string have;
    for (int64_t j = 0; j < 5; ++j) have += o.data_as<float>()[i * 8 + j] > 0 ? '1' : '0';
    EXPECT_EQ(have, want[i]) << "row " << i;
  }
}

/// SGLang plans without the window that it gives to forward(): there it holds. A plan's own window stays.
TEST(AttentionRegression, AWindowInForwardAloneHolds) {
  const Problem p;
  const Pages pages(p);
  const Tensor workspace = no_workspace(), qo = ints({0, static_cast<int32_t>(p.rows)});
  BatchPrefillWithPagedKVCacheWrapper w(workspace);
  BatchPrefillPlan plan = prefill_plan(p, pages, qo);
  w.plan(plan);
  Rules rules = causal(p);
  rules.sees = [sees = rules.sees, off = p.keys - p.rows](int64_t i, int64_t j) {
    return sees(i, j) && j >= i + off - 3;
  };
  expect_values(w.forward({.q = p.q, .paged_kv_cache = pages.cache, .causal = true, .window_left = 3}),
                expected(p, rules).out, 2e-5, "window 3");
  plan.window_left = 2;
  w.plan(plan);
  for (const int64_t other : {3, -1})
    expect_error(ErrorKind::kAssertionError, str("window_left is ", other, ", but plan() was given 2"),
                 [&] { w.forward({.q = p.q, .paged_kv_cache = pages.cache, .window_left = other}); });
}

// ---- tables ----
TEST(AttentionRegression, LayoutsAndWaysGiveTheSameBits) {
  const Problem p(5, 70);
  const Tensor workspace = no_workspace(), qo = ints({0, 5}), kv = ints({0, 70});
  const Tensor want = single_prefill_with_kv_cache({.q = p.q, .k = p.k, .v = p.v, .causal = true});
  for (const bool hnd : {false, true})
    for (const int64_t size : {1, 64}) {
      const Pages pages(p, size, hnd);
      BatchPrefillWithPagedKVCacheWrapper w(workspace, hnd ? "HND" : "NHD");
      BatchPrefillPlan plan = prefill_plan(p, pages, qo);
      plan.causal = true;
      w.plan(plan);
      expect_bits(w.run({.q = p.q, .paged_kv_cache = pages.cache}), want,
                  str(hnd ? "HND" : "NHD", ", pages of ", size));
    }
  BatchPrefillWithRaggedKVCacheWrapper ragged(BatchRaggedInit{.float_workspace_buffer = workspace});
  ragged.plan({.qo_indptr = qo,
               .kv_indptr = kv,
               .num_qo_heads = p.hq,
               .num_kv_heads = p.hkv,
               .head_dim_qk = p.d,
               .causal = true,
               .q_data_type = DType::kF32});
  expect_bits(ragged.run({.q = p.q, .k = p.k, .v = p.v}), want, "ragged");
}

TEST(AttentionRegression, Int64IndicesMeanWhatInt32Mean) {
  const Problem p;
  const Pages pages(p);
  const Tensor workspace = no_workspace(), qo = ints<int64_t>({0, 5}), indptr = ints<int64_t>({0, 3}),
               indices = ints<int64_t>({2, 1, 0}), last = ints<int64_t>({5});
  BatchPrefillWithPagedKVCacheWrapper w(workspace);
  BatchPrefillPlan plan = prefill_plan(p, pages, qo);
  plan.paged_kv_indptr = indptr, plan.paged_kv_indices = indices, plan.paged_kv_last_page_len = last;
  w.plan(plan);
  expect_both(w.run({.q = p.q, .paged_kv_cache = pages.cache, .return_lse = true}), expected(p, {}), "int64");
}

TEST(AttentionRegression, AStackedCacheWithPlanesInFrontIsRejected) {
  const Problem p;
  const Pages pages(p);
  const Tensor workspace = no_workspace(), qo = ints({0, 5}),
               front = Tensor::zeros({2, 4, 16, p.hkv, p.d}, DType::kF32);
  BatchPrefillWithPagedKVCacheWrapper w(workspace);
  w.plan(prefill_plan(p, pages, qo));
  expect_error(ErrorKind::kValueError, "paged_kv_cache", [&] { w.run({.q = p.q, .paged_kv_cache = front}); });
}

TEST(AttentionRegression, SlicesOfFusedTensorsAndInterleavedPagesAreRead) {
  Problem p(6, 30);
  Tensor qkv = random_tensor<float>({30, p.hq + 2 * p.hkv, p.d}, 9);  // one projection's rows; q of the last 6 tokens
  const TensorView all = qkv.view(), q = all.slice(1, 0, p.hq).slice(0, 24, 30), k = all.slice(1, p.hq, p.hq + p.hkv),
                   v = all.slice(1, p.hq + p.hkv, p.hq + 2 * p.hkv);
  p.q = Tensor::clone(q), p.k = Tensor::clone(k), p.v = Tensor::clone(v);
  expect_both(single_prefill_with_kv_cache({.q = q, .k = k, .v = v, .causal = true, .return_lse = true}),
              expected(p, causal(p)), "fused");
}

// ---- sinks ----
TEST(AttentionRegression, SinksJoinTheDenominatorOnce) {
  const Tensor workspace = no_workspace(), sinks = random_tensor<float>({4}, 5, 3.0f);
  const auto pool = make_thread_pool(3);
  Context context = Context::current();
  context.executor = *pool;
  ContextScope scope(context);  // 4500 keys are split over threads
  for (const auto& [rows, keys] : {std::pair(int64_t{1}, int64_t{4500}), std::pair(int64_t{9}, int64_t{4500}),
                                   std::pair(int64_t{3}, int64_t{0})}) {
    const Problem p(rows, keys, 4, 2, 16);
    const Pages pages(p);
    const Tensor qo = ints({0, static_cast<int32_t>(rows)});
    BatchPrefillWithPagedKVCacheWrapper w(workspace);
    w.plan(prefill_plan(p, pages, qo));
    Rules r;
    r.sinks = sinks.data_as<float>();  // a row that sees nothing: zeros, and the sink's logit as LSE
    expect_both(w.run({.q = p.q, .paged_kv_cache = pages.cache, .return_lse = true, .sinks = sinks}), expected(p, r),
                str(rows, " rows, ", keys, " keys"));
    if (rows != 1) continue;
    BatchDecodeWithPagedKVCacheWrapper d(workspace);
    d.plan(decode_plan(p, pages));
    expect_both(d.run({.q = p.q, .paged_kv_cache = pages.cache, .return_lse = true, .sinks = sinks}), expected(p, r),
                "decode");
  }
}

// ---- custom masks ----
TEST(AttentionRegression, PackedMasksOfSeveralRequestsAreFoundByBytes) {
  const Problem p(6, 35);  // requests of 3 x 17 = 51 bits and 3 x 18 = 54 bits over the same kind of keys
  const Tensor workspace = no_workspace(), qo = ints({0, 3, 6}), kv = ints({0, 17, 35});
  Tensor bools = Tensor::zeros({105}, DType::kBool), bytes = Tensor::zeros({14}, DType::kU8);
  std::mt19937 g(3);
  for (int64_t e = 0; e < 105; ++e) {
    const bool on = g() % 3 != 0;
    const int64_t bit = e < 51 ? e : 56 + e - 51;
    bools.data_as<bool>()[e] = on;
    bytes.data_as<uint8_t>()[bit / 8] =
        static_cast<uint8_t>(bytes.data_as<uint8_t>()[bit / 8] | (on ? 1 : 0) << bit % 8);
  }
  BatchPrefillWithRaggedKVCacheWrapper w(BatchRaggedInit{.float_workspace_buffer = workspace});
  BatchRaggedPlan plan{
      .qo_indptr = qo, .kv_indptr = kv, .num_qo_heads = p.hq, .num_kv_heads = p.hkv, .head_dim_qk = p.d};
  plan.q_data_type = DType::kF32, plan.custom_mask = bools;
  w.plan(plan);
  const Tensor want = w.run({.q = p.q, .k = p.k, .v = p.v});
  Rules r;
  r.sees = [&](int64_t i, int64_t j) {
    return i < 3 ? j < 17 && bools.data_as<bool>()[i * 17 + j]
                 : j >= 17 && bools.data_as<bool>()[51 + (i - 3) * 18 + j - 17];
  };
  expect_values(want, expected(p, r).out, 2e-5, "bools");
  plan.custom_mask = std::nullopt, plan.packed_custom_mask = bytes;
  w.plan(plan);
  expect_bits(w.run({.q = p.q, .k = p.k, .v = p.v}), want, "bytes");
  plan.packed_custom_mask = std::nullopt;  // a ragged plan without a mask forgets the last one
  w.plan(plan);
  r.sees = [](int64_t i, int64_t j) { return i < 3 ? j < 17 : j >= 17; };
  expect_values(w.run({.q = p.q, .k = p.k, .v = p.v}), expected(p, r).out, 2e-5, "without");
}

TEST(AttentionRegression, AMaskReplacesCausalAndMeetsTheWindow) {
  const Problem p(6, 20);
  Tensor mask = Tensor::zeros({6, 20}, DType::kBool);
  for (int64_t e = 0; e < 120; ++e) mask.data_as<bool>()[e] = e * 7 % 5 < 3;
  Rules r;
  r.sees = [&](int64_t i, int64_t j) { return mask.data_as<bool>()[i * 20 + j] && j >= i + 14 - 8; };
  expect_both(
      single_prefill_with_kv_cache(
          {.q = p.q, .k = p.k, .v = p.v, .custom_mask = mask, .causal = true, .window_left = 8, .return_lse = true}),
      expected(p, r), "mask");
}

TEST(AttentionRegression, ItemsAreScoredInRaggedBatchesToo) {
  // A prefix of 10 tokens and items of 4 + delimiter: distances 0 1 2 3 4 0 1 2 3 4 ... from position 10 on.
  const Problem p(20, 30);
  const Tensor workspace = no_workspace(), qo = ints({0, 20}), kv = ints({0, 30}), prefix = ints({10});
  Tensor pos = Tensor::empty({20}, DType::kI32);
  for (int32_t i = 0; i < 20; ++i) pos.data_as<int32_t>()[i] = i % 5;
  BatchPrefillWithRaggedKVCacheWrapper w(BatchRaggedInit{.float_workspace_buffer = workspace});
  BatchRaggedPlan plan{
      .qo_indptr = qo, .kv_indptr = kv, .num_qo_heads = p.hq, .num_kv_heads = p.hkv, .head_dim_qk = p.d};
  plan.q_data_type = DType::kF32, plan.prefix_len_ptr = prefix, plan.token_pos_in_items_ptr = pos,
  plan.token_pos_in_items_len = 26;  // the last request's row ends with its tokens
  w.plan(plan);
  Rules r;
  r.sees = [](int64_t i, int64_t j) { return j <= i + 10 && (j < 10 || j > i + 10 - i % 5); };
  expect_both(w.run({.q = p.q, .k = p.k, .v = p.v, .return_lse = true}), expected(p, r), "items");
}

// ---- scales ----
TEST(AttentionRegression, RaggedScalesAreApplied) {
  const Problem p;
  const Tensor workspace = no_workspace(), qo = ints({0, 5}), kv = ints({0, 37});
  BatchPrefillWithRaggedKVCacheWrapper w(BatchRaggedInit{.float_workspace_buffer = workspace});
  w.plan({.qo_indptr = qo,
          .kv_indptr = kv,
          .num_qo_heads = p.hq,
          .num_kv_heads = p.hkv,
          .head_dim_qk = p.d,
          .q_data_type = DType::kF32});
  Rules r;
  r.scale = 1 / std::sqrt(32.0) * 0.5 * 3.0;
  Expected want = expected(p, r);
  for (double& x : want.out) x *= 0.25;
  expect_both(
      w.run({.q = p.q, .k = p.k, .v = p.v, .q_scale = 0.5, .k_scale = 3.0, .v_scale = 0.25, .return_lse = true}), want,
      "scales");
}

// ---- positions ----
TEST(AttentionRegression, AlibiAndACapScaleOnce) {
  const Problem p(6, 20);
  const double slopes[4] = {0.25, 0.0625, 0.015625, 0.00390625};  // 2^(-8i/4)
  for (const double cap : {0.0, 1.5}) {
    Rules r = causal(p);
    r.logit = [&](double x, int64_t i, int64_t j, int64_t h) {
      const double y =
          x + slopes[h] * static_cast<double>(j - i);  // the row's number, not its position: shifts the LSE alone
      return cap > 0 ? cap * std::tanh(y / cap) : y;
    };
    SinglePrefill a{.q = p.q, .k = p.k, .v = p.v, .causal = true, .pos_encoding_mode = "ALIBI", .return_lse = true};
    if (cap > 0) a.logits_soft_cap = cap;
    expect_both(single_prefill_with_kv_cache(a), expected(p, r), str("cap ", cap));
  }
}

// ---- coverage ----
/// flashinfer#1606: a share of the heads needs the slopes of the whole model's heads.
TEST(AttentionRegression, HalfOfTheHeadsMayHaveTheSlopesOfAll) {
  const Problem whole(5, 37, 8, 8, 32);
  const Tensor workspace = no_workspace(), qo = ints({0, 5}), kv = ints({0, 37});
  BatchPrefillWithRaggedKVCacheWrapper w(workspace);
  BatchRaggedPlan plan{.qo_indptr = qo,
                       .kv_indptr = kv,
                       .num_qo_heads = 8,
                       .num_kv_heads = 8,
                       .head_dim_qk = 32,
                       .pos_encoding_mode = "ALIBI",
                       .q_data_type = DType::kF32};
  w.plan(plan);
  const Tensor all = w.run({.q = whole.q, .k = whole.k, .v = whole.v});
  Tensor slopes = Tensor::empty({4}, DType::kF32);
  for (int i = 0; i < 4; ++i)
    slopes.data_as<float>()[i] = std::exp2(-1.0f * static_cast<float>(i + 5));  // of heads 4 to 7 of 8
  plan.num_qo_heads = plan.num_kv_heads = 4, plan.alibi_slopes = slopes;
  w.plan(plan);
  const auto half = [](const Tensor& t) { return t.view().slice(1, 4, 8); };
  const Tensor share = w.run({.q = half(whole.q), .k = half(whole.k), .v = half(whole.v)});
  expect_bits(share, Tensor::clone(half(all)), "heads 4 to 7");
}

TEST(AttentionRegression, DecodeTakesAnyGroup) {
  const Tensor workspace = no_workspace();
  for (const int64_t group : {5, 7, 16, 64}) {
    const Problem p(1, 70, group, 1, 32);
    const Pages pages(p);
    BatchDecodeWithPagedKVCacheWrapper w(workspace);
    w.plan(decode_plan(p, pages));
    expect_both(w.run({.q = p.q, .paged_kv_cache = pages.cache, .return_lse = true}), expected(p, {}),
                str("group ", group));
  }
}

TEST(AttentionRegression, AnyHeadDimIsSupported) {
  const Tensor workspace = no_workspace(), qo = ints({0, 12});
  for (const int64_t dim : {56, 80, 96, 112, 224, 576})
    for (const int64_t rows : {1, 12}) {
      const Problem p(rows, 40, 2, 1, dim);
      expect_both(single_prefill_with_kv_cache({.q = p.q, .k = p.k, .v = p.v, .causal = true, .return_lse = true}),
                  expected(p, causal(p)), str("dim ", dim, ", ", rows, " rows"));
    }
}

TEST(AttentionRegression, AnEmptyWorkspaceIsEnoughForManyHeads) {
  const Problem p(1, 3000, 128, 8, 16);
  const Pages pages(p, 16);
  const Tensor workspace = no_workspace();
  BatchDecodeWithPagedKVCacheWrapper w(workspace);
  w.plan(decode_plan(p, pages));
  expect_both(w.run({.q = p.q, .paged_kv_cache = pages.cache, .return_lse = true}), expected(p, {}), "128 heads");
  const auto bytes = w.workspace_size(decode_plan(p, pages));
  EXPECT_GT(bytes.first, 16);
  EXPECT_GT(bytes.second, 0);
}

TEST(AttentionRegression, WithoutPartialResultsTheWorkspaceIsNotEmpty) {
  const Problem p(1, 20, 1, 1, 16);
  const Pages pages(p, 16);
  const Tensor workspace = no_workspace();
  BatchDecodeWithPagedKVCacheWrapper w(workspace);
  EXPECT_EQ(w.workspace_size(decode_plan(p, pages)).first, 16);
}

}  // namespace
}  // namespace flashinfer::attention_test
