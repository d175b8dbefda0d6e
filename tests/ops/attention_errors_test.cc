// SPDX-License-Identifier: Apache-2.0
// Bad input that one class alone can get: graph mode, items, POD, cascade, block-sparse, dense page tables. The message
// must name the argument and both values.
#include "flashinfer/ops/cascade/op.h"
#include "flashinfer/ops/pod/op.h"
#include "flashinfer/ops/sparse/op.h"
#include "tests/ops/attention_regression.h"

namespace flashinfer::attention_test {
namespace {

constexpr ErrorKind kValue = ErrorKind::kValueError, kNot = ErrorKind::kNotImplementedError;

/// One request of 5 rows and 37 keys, and buffers for one request of at most 4 pages.
struct Graph {
  Problem p;
  Pages pages{p};
  Tensor workspace = no_workspace(), qo = ints({0, 5});
  Tensor qo_buf = ints({0, 0}), indptr = ints({0, 0}), indices = ints({0, 0, 0, 0}), last = ints({0});
  BatchPrefillInit init() const {
    return {.float_workspace_buffer = workspace,
            .use_cuda_graph = true,
            .qo_indptr_buf = qo_buf,
            .paged_kv_indptr_buf = indptr,
            .paged_kv_indices_buf = indices,
            .paged_kv_last_page_len_buf = last};
  }
  BatchPrefillPlan plan() const { return prefill_plan(p, pages, qo); }
};

TEST(AttentionErrors, GraphBuffersMustBeThereAndFit) {
  const Graph g;
  const auto make = [&](auto change, const char* message) {
    BatchPrefillInit i = g.init();
    change(i);
    expect_error(kValue, message, [&] { BatchPrefillWithPagedKVCacheWrapper w(i); });
  };
  const Tensor three = ints({0, 0, 0}), floats = Tensor::zeros({2}, DType::kF32),
               bytes = Tensor::zeros({8}, DType::kU8);
  make([](auto& i) { i.paged_kv_indices_buf = std::nullopt; },
       "use_cuda_graph=True needs paged_kv_indices_buf, which is None");
  make([](auto& i) { i.use_cuda_graph = false; }, "qo_indptr_buf belongs to use_cuda_graph=True, which is False");
  make([&](auto& i) { i.qo_indptr_buf = three; }, "qo_indptr_buf has 3 entries, but a batch of 1 needs 2");
  make([&](auto& i) { i.paged_kv_indptr_buf = floats; }, "paged_kv_indptr_buf is float32[2]");
  make([&](auto& i) { i.custom_mask_buf = bytes; }, "custom_mask_buf and mask_indptr_buf must be given together");
}

TEST(AttentionErrors, GraphModeFreezesTheBatch) {
  Graph g;
  BatchPrefillWithPagedKVCacheWrapper w(g.init());
  w.plan(g.plan());
  BatchPrefillPlan more = g.plan();
  const Tensor six = ints({0, 6}), two_qo = ints({0, 2, 4}), two_kv = ints({0, 1, 3}), two_last = ints({16, 5});
  more.qo_indptr = six;
  expect_error(kValue, "there are 6 query tokens, but the first plan() had 5", [&] { w.plan(more); });
  more = g.plan();
  more.qo_indptr = two_qo, more.paged_kv_indptr = two_kv, more.paged_kv_last_page_len = two_last;
  expect_error(kValue, "the batch has 2 requests, but the buffers of use_cuda_graph=True are for 1",
               [&] { w.plan(more); });
  more = g.plan();
  const Tensor mask = Tensor::zeros({185}, DType::kBool);
  more.custom_mask = mask;
  expect_error(kValue, "a custom mask with use_cuda_graph=True needs custom_mask_buf and mask_indptr_buf",
               [&] { w.plan(more); });
  const Problem longer(5, 70);
  const Pages pages(longer);
  expect_error(kValue, "the page table has 5 entries, but the buffer given to __init__ has 4",
               [&] { w.plan(prefill_plan(longer, pages, g.qo)); });
}

TEST(AttentionErrors, AMaskBeyondItsGraphBuffer) {
  Graph g;
  BatchPrefillInit i = g.init();
  const Tensor few = Tensor::zeros({4}, DType::kU8), at = ints({0, 0}), mask = Tensor::zeros({185}, DType::kBool);
  i.custom_mask_buf = few, i.mask_indptr_buf = at;
  BatchPrefillWithPagedKVCacheWrapper w(i);
  BatchPrefillPlan plan = g.plan();
  plan.custom_mask = mask;
  expect_error(kValue, "the packed mask has 24 entries, but the buffer given to __init__ has 4", [&] { w.plan(plan); });
}

TEST(AttentionErrors, Items) {
  const Graph g;
  BatchPrefillWithPagedKVCacheWrapper w(g.workspace);
  const Tensor prefix = ints({30}), far = ints({20}), pos = ints({0, 1, 2, 3, 4, 5, 6, 7}), two = ints({30, 30}),
               negative = ints({0, -1, 2, 3, 4, 5, 6, 7});
  const Tensor mask = Tensor::zeros({185}, DType::kBool);
  const auto plan = [&](auto change, const char* message) {
    BatchPrefillPlan p = g.plan();
    p.prefix_len_ptr = prefix, p.token_pos_in_items_ptr = pos, p.token_pos_in_items_len = 8;
    change(p);
    expect_error(kValue, message, [&] { w.plan(p); });
  };
  plan([&](auto& p) { p.prefix_len_ptr = far; },
       "prefix_len_ptr[0] is 20, which leaves 17 tokens of request 0 to the items, but token_pos_in_items_len is 8");
  plan([&](auto& p) { p.prefix_len_ptr = two; }, "prefix_len_ptr is int32[2], but there are 1 requests");
  plan([](auto& p) { p.prefix_len_ptr = std::nullopt; }, "belong to prefix_len_ptr, which is None");
  plan([](auto& p) { p.token_pos_in_items_ptr = std::nullopt; }, "prefix_len_ptr needs token_pos_in_items_ptr");
  plan([](auto& p) { p.token_pos_in_items_len = 7; },
       "token_pos_in_items_ptr is int32[8], but must be 1 requests of token_pos_in_items_len=7");
  plan([&](auto& p) { p.token_pos_in_items_ptr = negative; },
       "token_pos_in_items_ptr[1] is -1, but must be in 0..65535");
  plan([&](auto& p) { p.custom_mask = mask; }, "prefix_len_ptr and a custom mask exclude each other");
  plan([&](auto& p) { p.max_item_len_ptr = two; }, "max_item_len_ptr has 2 entries, but there are 1 requests");
}

TEST(AttentionErrors, BoundsCapsAndWorkspaces) {
  const Graph g;
  BatchPrefillWithPagedKVCacheWrapper w(g.workspace);
  const auto plan = [&](auto change, const char* message) {
    BatchPrefillPlan p = g.plan();
    change(p);
    expect_error(kValue, message, [&] { w.plan(p); });
  };
  plan([](auto& p) { p.max_token_per_sequence = 4; }, "max_token_per_sequence is 4, but request 0 has 5 tokens");
  plan([](auto& p) { p.max_sequence_kv = 36; }, "max_sequence_kv is 36, but request 0 has 37 tokens");
  plan([](auto& p) { p.logits_soft_cap = INFINITY; },
       "logits_soft_cap is inf, but must be at least 0 (0: none) and finite");
  const Tensor slopes = Tensor::zeros({4}, DType::kF32), three = Tensor::zeros({3}, DType::kF32);
  plan([&](auto& p) { p.alibi_slopes = slopes; }, "alibi_slopes belongs to pos_encoding_mode='ALIBI', which is 'NONE'");
  plan([&](auto& p) { p.pos_encoding_mode = "ALIBI", p.alibi_slopes = three; },
       "alibi_slopes is float32[3], but must be float32[4] (num_qo_heads)");
  const Tensor bytes = Tensor::empty({64}, DType::kU8);
  const TensorView odd = bytes.view().slice(0, 8, 64);
  const char* message = "float_workspace_buffer must be 16-byte aligned";
  expect_error(kValue, message, [&] { BatchPrefillWithPagedKVCacheWrapper x(odd); });
  expect_error(kValue, message, [&] { BatchDecodeWithPagedKVCacheWrapper x(odd); });
  expect_error(kValue, message, [&] { BatchPrefillWithRaggedKVCacheWrapper x(odd); });
  expect_error(kValue, message, [&] { PODWithPagedKVCacheWrapper x(odd); });
  expect_error(kValue, message, [&] { BlockSparseAttentionWrapper x(odd); });
  expect_error(kValue, message,
               [&] { MultiLevelCascadeAttentionWrapper x({.num_levels = 1, .float_workspace_buffer = odd}); });
}

struct Pod {
  Problem prefill{9, 20}, decode{1, 37};
  Pages pages{decode};
  Tensor workspace = no_workspace();
  PODWithPagedKVCacheWrapper w{workspace};
  PodPlan plan() const {
    return {.indptr = pages.indptr,
            .indices = pages.indices,
            .last_page_len = pages.last,
            .num_qo_heads = 4,
            .num_kv_heads = 2,
            .head_dim = 32,
            .page_size = 16,
            .q_data_type = DType::kF32};
  }
  PodRun run() const {
    return {.q_p = prefill.q, .k_p = prefill.k, .v_p = prefill.v, .q_d = decode.q, .paged_kv_cache_d = pages.cache};
  }
};
TEST(AttentionErrors, Pod) {
  Pod pod;
  expect_error(ErrorKind::kAssertionError, "plan() has not been called", [&] { pod.w.run(pod.run()); });
  pod.w.plan(pod.plan());
  const auto run = [&](auto change, ErrorKind kind, const char* message) {
    PodRun r = pod.run();
    change(r);
    expect_error(kind, message, [&] { pod.w.run(r); });
  };
  const Tensor mask = Tensor::zeros({8, 20}, DType::kBool), small = Tensor::zeros({1, 2, 16, 2, 32}, DType::kF32),
               q = Tensor::zeros({1, 4, 32}, DType::kF16);
  const Tensor bytes = Tensor::zeros({4, 2, 16, 2, 16}, DType::kU8);
  run([&](auto& r) { r.custom_mask_p = mask; }, kValue, "custom_mask is bool[8, 20], but must be [9, 20]");
  run([&](auto& r) { r.custom_mask_d = mask; }, kNot, "custom_mask_d is not supported");
  run([&](auto& r) { r.paged_kv_cache_d = small; }, kValue,
      "indices[0] of plan() is 2, but paged_kv_cache has 1 pages");
  run([&](auto& r) { r.paged_kv_cache_d = bytes; }, kNot,
      "an NVFP4 cache is not supported: run() takes no kv_cache_sf");
  run([&](auto& r) { r.q_d = q; }, kValue, "q.dtype is float16, but plan() was given q_data_type=float32");
  run([](auto& r) { r.sm_scale_d = 9.0; }, kValue, "sm_scale_d is 9, but plan() was given");
  run([](auto& r) { r.window_left_d = 3; }, kValue, "window_left_d is 3, but plan() was given -1");
  run([](auto& r) { r.kv_layout_d = "HND"; }, kValue, "kv_layout_d is HND, but plan() was given NHD");
}

TEST(AttentionErrors, BatchPod) {
  const Problem p(5, 37);
  const Pages pages(p);
  const Tensor workspace = no_workspace(), qo = ints({0, 5}), one = ints({0, 1}),
               q = random_tensor<float>({1, 4, 32}, 3), mask = Tensor::zeros({184}, DType::kBool);
  BatchPODWithPagedKVCacheWrapper w(workspace);
  BatchPodPlan plan{.qo_indptr_p = qo,
                    .kv_indptr_p = pages.indptr,
                    .kv_indices_p = pages.indices,
                    .last_page_len_p = pages.last,
                    .qo_indptr_d = one,
                    .kv_indptr_d = pages.indptr,
                    .kv_indices_d = pages.indices,
                    .last_page_len_d = pages.last,
                    .num_qo_heads = 4,
                    .num_kv_heads = 2,
                    .head_dim = 32,
                    .page_size = 16,
                    .q_data_type = DType::kF32};
  w.plan(plan);
  BatchPodRun run{.q_p = p.q, .paged_kv_cache_p = pages.cache, .q_d = q, .paged_kv_cache_d = pages.cache};
  run.custom_mask_p = mask;
  expect_error(kValue, "custom_mask has 184 elements, but the requests have 185", [&] { w.run(run); });
  run.custom_mask_p = std::nullopt, run.q_d = p.q;
  expect_error(kValue, "q.shape[0] is 5, but plan() was given 1 query tokens", [&] { w.run(run); });
  const Tensor bad = ints({17});
  plan.last_page_len_d = bad;
  expect_error(kValue, "last_page_len_d[0] is 17, but must be in 1..16", [&] { w.plan(plan); });
}

TEST(AttentionErrors, Cascade) {
  const Problem p(3, 37);
  const Pages pages(p);
  const Tensor workspace = no_workspace(), qo = ints({0, 3}), other = ints({0, 2});
  expect_error(kValue, "num_levels is 0, but must be at least 1",
               [&] { MultiLevelCascadeAttentionWrapper w({.num_levels = 0, .float_workspace_buffer = workspace}); });
  MultiLevelCascadeAttentionWrapper w({.num_levels = 2, .float_workspace_buffer = workspace});
  const auto plan = [&](auto change, const char* message) {
    CascadePlan a{.qo_indptr_arr = {qo, qo},
                  .paged_kv_indptr_arr = {pages.indptr, pages.indptr},
                  .paged_kv_indices_arr = {pages.indices, pages.indices},
                  .paged_kv_last_page_len = {pages.last, pages.last},
                  .num_qo_heads = 4,
                  .num_kv_heads = 2,
                  .head_dim = 32,
                  .page_size = 16};
    change(a);
    expect_error(kValue, message, [&] { w.plan(a); });
  };
  plan([](auto& a) { a.qo_indptr_arr.pop_back(); }, "qo_indptr_arr has 1 tensors, but there are 2 levels");
  plan([&](auto& a) { a.qo_indptr_arr[1] = other; }, "qo_indptr_arr[1][-1] is 2, but that of level 0 is 3");
  plan([](auto& a) { a.window_left = 4; },
       "window_left is 4 and pos_encoding_mode 'NONE', but positions count within a level");
  plan([&](auto& a) { a.paged_kv_indices_arr[0] = p.q; }, "an index array is float32");
}

TEST(AttentionErrors, BlockSparse) {
  const Tensor workspace = no_workspace(), indptr = ints({0, 2, 3}), indices = ints({0, 2, 1}),
               mask = Tensor::zeros({3, 4, 9}, DType::kBool);
  const Tensor few = Tensor::zeros({2, 4, 10}, DType::kBool), q = Tensor::zeros({8, 4, 32}, DType::kF32),
               k = Tensor::zeros({29, 2, 32}, DType::kF32);
  BlockSparseAttentionWrapper w(workspace);
  const BlockSparsePlan good{.indptr = indptr,
                             .indices = indices,
                             .M = 8,
                             .N = 30,
                             .R = 4,
                             .C = 10,
                             .num_qo_heads = 4,
                             .num_kv_heads = 2,
                             .head_dim = 32,
                             .q_data_type = DType::kF32};
  const auto plan = [&](auto change, const char* message) {
    BlockSparsePlan a = good;
    change(a);
    expect_error(kValue, message, [&] { w.plan(a); });
  };
  plan([](auto& a) { a.M = 9; }, "M is 9, but indptr describes 2 row blocks of R=4");
  plan([](auto& a) { a.C = 0; }, "C is 0, but must be at least 1");
  plan([&](auto& a) { a.mask = mask; }, "mask is bool[3, 4, 9], but must be [blocks, R=4, C=10]");
  plan([&](auto& a) { a.mask = few; }, "mask.shape[0] is 2, but indptr describes 3 blocks");
  plan([](auto& a) { a.kv_splits = 2; }, "kv_splits belongs to special back ends of GPUs");
  w.plan(good);
  expect_error(kValue, "k.shape[0] is 29, but plan() was given N=30", [&] { w.run({.q = q, .k = k, .v = k}); });
  BlockSparseForward forward;
  forward.q = q, forward.k = k, forward.v = k;
  expect_error(kValue, "BlockSparseAttentionWrapper.forward: k.shape[0] is 29, but plan() was given N=30",
               [&] { w.forward(forward); });
}

TEST(AttentionErrors, VariableBlockSparse) {
  constexpr ErrorKind kAssertion = ErrorKind::kAssertionError;
  const Tensor workspace = no_workspace(), map = Tensor::zeros({2, 2, 3}, DType::kBool),
               rows = Tensor::zeros({2, 2}, DType::kI32), cols = Tensor::zeros({2, 3}, DType::kI32);
  VariableBlockSparseAttentionWrapper w(workspace);
  const auto plan = [&](auto change, ErrorKind kind, const char* message) {
    VariableBlockSparsePlan a{.block_mask_map = map,
                              .block_row_sz = rows,
                              .block_col_sz = cols,
                              .num_qo_heads = 4,
                              .num_kv_heads = 2,
                              .head_dim = 32};
    change(a);
    expect_error(kind, message, [&] { w.plan(a); });
  };
  Tensor uneven = Tensor::zeros({2, 2}, DType::kI32), negative = Tensor::zeros({2, 3}, DType::kI32);
  uneven.data_as<int32_t>()[3] = 1, negative.data_as<int32_t>()[4] = -2;
  plan([](auto& a) { a.num_kv_heads = 4; }, kAssertion, "block_mask_map.shape[0] is 2, but num_kv_heads is 4");
  plan([&](auto& a) { a.block_row_sz = cols; }, kAssertion,
       "block_row_sz is int32[2, 3], but block_mask_map is bool[2, 2, 3]");
  plan([&](auto& a) { a.block_row_sz = uneven; }, kAssertion, "block_row_sz[1] adds up to 1, but that of head 0 to 0");
  plan([&](auto& a) { a.block_col_sz = negative; }, kAssertion, "block_col_sz[1][1] is -2");
  plan([](auto& a) { a.pos_encoding_mode = "ALIBI"; }, kNot, "pos_encoding_mode='ALIBI' is not supported");
}

TEST(AttentionErrors, DensePageTables) {
  const Tensor workspace = no_workspace(), tables = ints({0, 1, 2, 3}), q = Tensor::zeros({2, 4, 32}, DType::kF32),
               cache = Tensor::zeros({4, 2, 2, 16, 32}, DType::kF32);
  const TensorView two = tables.view().view({2, 2});
  const Tensor lengths = ints({20, 32}), long_one = ints({20, 33}), bad = ints({0, -1, 2, 3}),
               beyond = ints({0, 1, 2, 4}), sinks = Tensor::zeros({3}, DType::kF32);
  const auto run = [&](auto change, ErrorKind kind, const char* message) {
    TrtllmBatchDecode a{.query = q,
                        .kv_cache = cache,
                        .workspace_buffer = workspace,
                        .block_tables = two,
                        .seq_lens = lengths,
                        .max_seq_len = 32};
    change(a);
    expect_error(kind, message, [&] { trtllm_batch_decode_with_kv_cache(a); });
  };
  run([&](auto& a) { a.seq_lens = long_one, a.max_seq_len = 33; }, kValue,
      "seq_lens[1] is 33, but block_tables has room for 2 pages of 16 tokens");
  run([](auto& a) { a.max_seq_len = 31; }, kValue, "max_seq_len is 31, but request 1 has 32");
  run([&](auto& a) { a.block_tables = bad.view().view({2, 2}); }, kValue, "block_tables[0][1] is -1");
  run([&](auto& a) { a.block_tables = beyond.view().view({2, 2}); }, kValue,
      "block_tables has page 4, but kv_cache has 4 pages");
  run([](auto& a) { a.q_len_per_req = 0; }, kValue, "q_len_per_req is 0");
  run([](auto& a) { a.max_q_len = 1; }, kValue, "cum_seq_lens_q and max_q_len must be given together");
  run([&](auto& a) { a.sinks = sinks; }, kValue, "sinks is float32[3], but must be [4] (num_qo_heads)");
  run([](auto& a) { a.o_sf_scale = 1.0; }, kNot, "o_sf_scale is not supported");
  run([](auto& a) { a.cp_world = 2; }, kValue, "cp_world and cp_rank require causal_seqlens_kv_global");
}

TEST(AttentionErrors, Ranges) {
  const Problem p;
  const Pages pages(p);
  const Tensor workspace = no_workspace(), qo = ints({0, 5}), spans = Tensor::zeros({4, 2}, DType::kI32),
               mask = Tensor::zeros({185}, DType::kBool);
  expect_error(kNot, "pos_encoding_mode is 'ALIBI', but must be 'NONE'", [&] {
    BatchPrefillWithCausalBidirectionalRangesWrapper w(
        {.float_workspace_buffer = workspace, .pos_encoding_mode = "ALIBI"});
  });
  expect_error(kValue, "q_data_type is float8_e4m3fn", [&] {
    BatchPrefillWithCausalBidirectionalRangesWrapper w(
        {.float_workspace_buffer = workspace, .q_data_type = DType::kF8E4M3});
  });
  BatchPrefillWithCausalBidirectionalRangesWrapper w({.float_workspace_buffer = workspace,
                                                      .q_data_type = DType::kF32,
                                                      .kv_data_type = DType::kF32,
                                                      .head_dim_qk = 32,
                                                      .head_dim_vo = 32});
  const auto plan = [&](auto change, ErrorKind kind, const char* message) {
    BatchRangesPlan a{prefill_plan(p, pages, qo), {}};
    change(a);
    expect_error(kind, message, [&] { w.plan(a); });
  };
  plan([](auto& a) { a.window_left = 3; }, kValue, "window_left is given, but run()'s ranges");
  plan([&](auto& a) { a.custom_mask = mask; }, kValue, "custom_mask is given, but run()'s ranges");
  plan([](auto& a) { a.logits_soft_cap = 1.0; }, kValue, "logits_soft_cap is not available with ranges");
  plan([](auto& a) { a.planned_q_data_type = DType::kF16; }, kValue,
       "q_data_type is float16, but __init__ was given float32");
  plan([](auto& a) { a.head_dim_qk = 64; }, kValue, "head_dim_qk is 64, but __init__ was given 32");
  plan([](auto& a) { a.max_sequence_kv = 9; }, kNot, "max_sequence_kv is not supported");
  w.plan({prefill_plan(p, pages, qo), {}});
  expect_error(kValue, "bidirectional_ranges",
               [&] { w.run({.q = p.q, .paged_kv_cache = pages.cache, .bidirectional_ranges = spans}); });
}

}  // namespace
}  // namespace flashinfer::attention_test
