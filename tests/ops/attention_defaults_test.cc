// SPDX-License-Identifier: Apache-2.0
// What a C++ caller may leave out although a signature of Python's has it: each call equals the one that gives it.
#include "flashinfer/ops/cascade/op.h"
#include "flashinfer/ops/pod/op.h"
#include "flashinfer/ops/sparse/op.h"
#include "tests/ops/attention_regression.h"

namespace flashinfer::attention_test {
namespace {

TEST(AttentionDefaults, EveryWrapperNeedsNothing) {
  BatchDecodeWithPagedKVCacheWrapper decode;
  CUDAGraphBatchDecodeWithPagedKVCacheWrapper graph;
  BatchPrefillWithPagedKVCacheWrapper prefill;
  BatchPrefillWithRaggedKVCacheWrapper ragged;
  BatchAttentionWithAttentionSinkWrapper sink;
  BatchPrefillWithCausalBidirectionalRangesWrapper ranges;
  BatchAttention batch;
  MultiLevelCascadeAttentionWrapper cascade;
  BatchDecodeWithSharedPrefixPagedKVCacheWrapper shared_decode;
  BatchPrefillWithSharedPrefixPagedKVCacheWrapper shared_prefill;
  PODWithPagedKVCacheWrapper pod;
  BatchPODWithPagedKVCacheWrapper batch_pod;
  BlockSparseAttentionWrapper sparse;
  VariableBlockSparseAttentionWrapper variable;
}

TEST(AttentionDefaults, AGraphWrapperWithoutBuffersKeepsTheFirstPlansBatch) {
  const Problem p(1, 37);
  const Pages pages(p);
  BatchDecodeWithPagedKVCacheWrapper plain;
  CUDAGraphBatchDecodeWithPagedKVCacheWrapper graph;
  plain.plan(decode_plan(p, pages));
  for (int repeat = 0; repeat < 2; ++repeat) {
    graph.plan(decode_plan(p, pages));
    expect_bits(graph.run({.q = p.q, .paged_kv_cache = pages.cache}),
                plain.run({.q = p.q, .paged_kv_cache = pages.cache}), "graph");
  }
  const Tensor indptr = ints({0, 1, 2}), last = ints({16, 16});
  BatchDecodePlan two = decode_plan(p, pages);
  two.indptr = indptr, two.last_page_len = last;
  expect_error(ErrorKind::kValueError, "the batch has 2 requests, but the first plan() had 1",
               [&] { graph.plan(two); });
  const Tensor one = ints({0, 0});
  expect_error(ErrorKind::kValueError, "use_cuda_graph=True needs paged_kv_indices_buffer",
               [&] { CUDAGraphBatchDecodeWithPagedKVCacheWrapper w({.indptr_buffer = one}); });
}

TEST(AttentionDefaults, LevelsAreThoseOfTheFirstPlan) {
  const Problem p(3, 37);
  const Pages pages(p);
  const Tensor qo = ints({0, 3});
  MultiLevelCascadeAttentionWrapper w;
  CascadePlan plan{.qo_indptr_arr = {qo},
                   .paged_kv_indptr_arr = {pages.indptr},
                   .paged_kv_indices_arr = {pages.indices},
                   .paged_kv_last_page_len = {pages.last},
                   .num_qo_heads = 4,
                   .num_kv_heads = 2,
                   .head_dim = 32,
                   .page_size = 16,
                   .q_data_type = DType::kF32};
  w.plan(plan);
  expect_values(w.run({.q = p.q, .paged_kv_cache = pages.cache}), expected(p, {}).out, 2e-5, "one level");
  plan.qo_indptr_arr.push_back(qo);
  expect_error(ErrorKind::kValueError, "qo_indptr_arr has 2 tensors, but there are 1 levels", [&] { w.plan(plan); });
  plan.qo_indptr_arr.clear();
  expect_error(ErrorKind::kValueError, "qo_indptr_arr is empty",
               [&] { MultiLevelCascadeAttentionWrapper().plan(plan); });
  expect_error(ErrorKind::kValueError, "use_cuda_graph=True needs qo_indptr_buf_arr",
               [] { MultiLevelCascadeAttentionWrapper({.use_cuda_graph = true}); });
}

TEST(AttentionDefaults, AContextKnowsItsBatchAndLengths) {
  const Problem p(5, 32);
  const Pages pages(p);
  const Tensor table = ints({1, 0}), lengths = ints({32}), qo = ints({0, 5}), kv = ints({0, 32});
  TrtllmBatchContext a{.query = p.q,
                       .kv_cache = pages.cache,
                       .block_tables = table.view().view({1, 2}),
                       .seq_lens = lengths,
                       .bmm1_scale = 1 / std::sqrt(32.0),
                       .cum_seq_lens_q = qo,
                       .kv_layout = "NHD"};
  const Tensor got = trtllm_batch_context_with_kv_cache(a);
  expect_values(got, expected(p, causal(p)).out, 2e-5, "context");
  a.batch_size = 1, a.cum_seq_lens_kv = kv;
  expect_bits(trtllm_batch_context_with_kv_cache(a), got, "with both given");
  a.batch_size = 2;
  expect_error(ErrorKind::kValueError, "batch_size is 2, but block_tables.shape[0] is 1",
               [&] { trtllm_batch_context_with_kv_cache(a); });
}

TEST(AttentionDefaults, ASinkWrapperTakesTypesAndScaleFromThePlan) {
  const Problem p;
  const Pages pages(p);
  const Tensor qo = ints({0, 5});
  const std::vector<float> logits{0.5f, -1.0f, 3.0f, 0.0f};
  const Tensor sink = Tensor::copy_of(std::span<const float>(logits), {4});
  BatchAttentionWithAttentionSinkWrapper w;
  BatchPrefillPlan plan = prefill_plan(p, pages, qo);
  plan.causal = true, plan.sm_scale = 0.25;
  w.plan(plan);
  Rules rules = causal(p);
  rules.scale = 0.25, rules.sinks = logits.data();
  expect_both(w.run({.q = p.q, .paged_kv_cache = pages.cache, .sink = sink, .return_lse = true}), expected(p, rules),
              "sink");
  BatchAttentionWithAttentionSinkWrapper window({.window_left = 8});
  expect_error(ErrorKind::kValueError, "window_left is -1, but __init__ or the last plan() was given 8",
               [&] { window.plan(plan); });
}

}  // namespace
}  // namespace flashinfer::attention_test
