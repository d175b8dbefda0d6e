// SPDX-License-Identifier: Apache-2.0
// use_cuda_graph=True with buffers on a device: what a captured kernel cannot follow, and the sizes that it was given.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "flashinfer/core/check.h"
#include "flashinfer/core/env.h"
#include "flashinfer/op/call.h"
#include "flashinfer/op/index_checks.h"
#include "flashinfer/ops/attention/cuda/launch.h"
#include "flashinfer/ops/linear_attention/kda/kda.h"
#include "flashinfer/ops/sampling/op.h"
#include "graph_plan.h"

namespace flashinfer::graph_plan_test {
namespace {

/// A wrapper for graphs that has planned and run requests of these lengths.
struct Planned {
  const Buffers b;
  BatchDecodeWithPagedKVCacheWrapper graph{graph_init(b)};
  const Tensor indptr, indices, last, q = normal({3, kHeads, kDim}, 2);
  const BatchDecodePlan first = decode_plan(indptr, indices, last);
  explicit Planned(const std::vector<int32_t>& lengths) : Planned(Table(lengths)) {}
  explicit Planned(const Table& t) : indptr(ints(t.indptr)), indices(ints(t.indices)), last(ints(t.last)) {
    graph.plan(first);
    run();
  }
  BatchDecodeRun call() const { return {.q = q, .paged_kv_cache = op::PagedKv(cache().view())}; }
  Tensor run() { return graph.run(call()); }
};

TEST(GraphPlan, WhatACapturedKernelCannotFollowIsRejected) {
  Planned p({5, 6, 7});
  BatchDecodeWithPagedKVCacheWrapper& graph = p.graph;
  const BatchDecodePlan& first = p.first;
  BatchDecodePlan plan = first;
  plan.window_left = 3;
  expect_error(kValue, "window_left is 3, but the first plan() had -1, and with use_cuda_graph=True it may not change",
               [&] { graph.plan(plan); });
  plan = first, plan.sm_scale = 0.5;
  expect_error(kValue, "sm_scale is 0.5, but the first plan() had 0.125", [&] { graph.plan(plan); });
  plan = first, plan.q_len_per_req = 2;
  expect_error(kValue, "q_len_per_req is 2, but the first plan() was given 1", [&] { graph.plan(plan); });
  const Tensor beyond = ints({1, 2, kPages});
  plan = first, plan.indices = beyond;
  expect_error(kValue, "the page table names page 100, but the pool given to run() has 100", [&] { graph.plan(plan); });
  const Table two({5, 6});
  const Tensor indptr2 = ints(two.indptr), indices2 = ints(two.indices), last2 = ints(two.last);
  expect_error(kValue, "the batch has 2 requests, but the buffers of use_cuda_graph=True are for 3",
               [&] { graph.plan(decode_plan(indptr2, indices2, last2)); });
  const std::vector<int32_t> long_request{5, 6, kPage * kPages};
  const Table many(long_request);
  const Tensor indptr3 = ints(many.indptr), indices3 = ints(many.indices), last3 = ints(many.last);
  expect_error(kValue, "the page table has 102 entries, but the buffer given to __init__ has 100",
               [&] { graph.plan(decode_plan(indptr3, indices3, last3)); });
  graph.plan(first);  // the failed call left nothing behind
  p.run();

  // Buffers and tensors on different devices.
  const Tensor here = Tensor::zeros({3}, DType::kI32), here4 = Tensor::zeros({4}, DType::kI32),
               pages = Tensor::zeros({kPages}, DType::kI32);
  BatchDecodeWithPagedKVCacheWrapper host({.float_workspace_buffer = Tensor::empty({0}, DType::kU8).view(),
                                           .use_cuda_graph = true,
                                           .paged_kv_indptr_buffer = here4,
                                           .paged_kv_indices_buffer = pages,
                                           .paged_kv_last_page_len_buffer = here});
  host.plan(first);
  expect_error(ErrorKind::kNotImplementedError,
               "the buffers of use_cuda_graph=True are in host memory, but q is on emu", [&] { host.run(p.call()); });
}

/// FLASHINFER_CUDA_CHECK_INDICES=1 while it lives.
struct CheckIndices {
  CheckIndices() { ::setenv("FLASHINFER_CUDA_CHECK_INDICES", "1", 1), env::reload(); }
  ~CheckIndices() { ::unsetenv("FLASHINFER_CUDA_CHECK_INDICES"), env::reload(); }
};
TEST(CheckIndices, APageOutsideThePoolIsNamed) {
  const CheckIndices on;
  Planned p({5, 40, 7});
  for (const int32_t page : {int32_t{kPages}, -1}) {
    copy_bytes(p.b.indices.data_as<int32_t>() + 3, kEmulator, &page, kCpu, sizeof page);
    expect_error(kValue,
                 str("paged_kv_indices_buffer[3], page 2 of request 1, is ", page,
                     ", but must be in [0, 100) (pages of the pool)"),
                 [&] { p.run(); });
  }
}
TEST(CheckIndices, PlanningOnTheDeviceNamesLengthsAndPages) {
  const CheckIndices on;
  Planned p({5, 40, 7});
  const int64_t width = p.b.indices.numel() / 3;
  std::vector<int32_t> table(static_cast<size_t>(3 * width));
  const auto write = [&] { copy_bytes(p.b.indices.data(), kEmulator, table.data(), kCpu, table.size() * 4); };
  write();
  const auto plan = [&](const std::vector<int32_t>& lengths) {
    const Tensor on_device = there(ints(lengths));
    p.graph.plan_on_device(on_device);
  };
  plan({5, 40, 7});
  expect_error(kValue, "seq_lens[1] is -1, but paged_kv_indices_buffer has room for", [&] { plan({5, -1, 7}); });
  table[static_cast<size_t>(2 * width)] = kPages;
  write();
  expect_error(kValue,
               str("paged_kv_indices_buffer[", 2 * width, "], page 0 of request 2, is ", kPages,
                   ", but must be in [0, 100) (pages of the pool)"),
               [&] { plan({5, 40, 7}); });
  plan({5, 40, 0});
}
TEST(CheckIndices, OpsCheckAsOnTheCpu) {
  const auto zeros = [](const std::vector<int64_t>& shape) { return there(Tensor::zeros(shape, DType::kF32)); };
  const Tensor k = zeros({2, 1, 16}), v = zeros({2, 1, 8}), beta = zeros({2, 1}), state = zeros({5, 1, 8, 16}),
               starts = there(ints({0, 1, 2})), slots = there(ints({4, 5}));
  const KdaRecurrence step{
      .q = k, .k = k, .v = v, .g = k, .beta = beta, .cu_seqlens = starts, .state = state.view(), .read_indices = slots};
  kda_recurrence(step);  // a slot that the pool does not have counts as none
  const CheckIndices on;
  expect_error(kValue, "read_indices[1] is 5, but state has 5 slots", [&] { kda_recurrence(step); });
}
TEST(CheckIndices, ThresholdsAndRowsOfSamplersToo) {
  const Tensor probs = there(Tensor::zeros({3, 8}, DType::kF32)), k = there(ints({1, -2, 1})),
               rows = there(ints({0, 3, 1}));
  TopKSamplingFromProbs call{.probs = probs, .top_k = k, .indices = rows};
  const auto sample = [&] { top_k_sampling_from_probs(call); };
  sample();  // a row that is not there gives token 0
  const CheckIndices on;
  expect_error(kValue, "indices[1] is 3, but must be in [0, 3) (rows of probs)", sample);
  call.indices.reset();
  expect_error(kValue, "top_k[1] is -2, but must be positive", sample);
}

/// What is found once is found anew after reload().
TEST(CheckIndices, ACachedVariableFollowsAReload) {
  static constinit env::Cached checks("FLASHINFER_CUDA_CHECK_INDICES"), rows("FLASHINFER_CUDA_PREFILL_ROWS");
  for (int i = 0; i < 2; ++i) {
    EXPECT_FALSE(checks.flag());
    const CheckIndices on;
    EXPECT_TRUE(checks.flag());
    EXPECT_EQ(rows.text(), env::text("FLASHINFER_CUDA_PREFILL_ROWS"));
  }
}

struct Lists {
  TensorView x;
  std::vector<TensorView> rows;
  op::Value more{};
};
void check_lists(const Lists& a) {
  const auto check = [&](const char* name, const TensorView& v) {  // as on a GPU, whose memory the host cannot read
    if (v.device() == kCpu) op::check_index_range(name, v, 0, a.x.size(0), "rows of x");
  };
  for (const TensorView& v : a.rows) check("rows", v);
  for (const op::Value& v : *op::sequence_items(a.more)) check("more", *v.tensor());
}
op::Prepared prepare_lists(const Lists&, const op::Call&) {
  return [] {};
}
constexpr op::Field kListFields[] = {op::in<&Lists::x>("x", "n d", op::floats),
                                     op::in<&Lists::rows>("rows", nullptr, op::indices),
                                     op::attr<&Lists::more>("more")};
constexpr op::Candidate kListCandidates[] = {op::cuda<prepare_lists>()};
constinit const op::Op kListOp =
    op::define<Lists, check_lists>("lists_of_indices", "tests", "", kListFields, kListCandidates, nullptr);
TEST(CheckIndices, ArraysInLists) {
  const Tensor x = there(Tensor::zeros({3, 8}, DType::kF32)), good = there(ints({0, 2})), bad = there(ints({1, 3}));
  const auto call = [&](const Tensor& second, const Tensor& third) {
    op::call(kListOp, Lists{.x = x, .rows = {good, second}, .more = op::ListValue{{third}}});
  };
  call(bad, bad);
  const CheckIndices on;
  call(good, good);
  expect_error(kValue, "rows[1] is 3, but must be in [0, 3) (rows of x)", [&] { call(bad, good); });
  expect_error(kValue, "more[1] is 3, but must be in [0, 3) (rows of x)", [&] { call(good, bad); });
}

TEST(GraphPlan, ADeviceNeedsTheBuffers) {
  CUDAGraphBatchDecodeWithPagedKVCacheWrapper graph;
  const Table t({5, 6, 7});
  const Tensor indptr = ints(t.indptr), indices = ints(t.indices), last = ints(t.last),
               q = normal({3, kHeads, kDim}, 2);
  graph.plan(decode_plan(indptr, indices, last));
  expect_error(ErrorKind::kNotImplementedError, "use_cuda_graph=True on a GPU needs the buffers of __init__",
               [&] { graph.run({.q = q, .paged_kv_cache = op::PagedKv(cache().view())}); });
}

/// The sizes of a captured graph hold for every plan.
TEST(GraphPlan, TheBoundIsOne) {
  std::mt19937 random(3);
  const auto upto = [&](int64_t n) { return static_cast<int32_t>(random() % static_cast<unsigned>(n + 1)); };
  for (int round = 0; round < 3000; ++round) {
    const int group = 1 << upto(3), requests = 1 + upto(6);
    std::vector<cuda::AttentionShape> shapes;
    int64_t rows = 0, keys = 0, most = 0;
    for (int b = 0; b < requests; ++b) {
      shapes.push_back({round % 3 ? upto(100) : upto(3), upto(round % 4 == 3 ? 200000 : round % 2 ? 20000 : 3000)});
      rows += shapes.back().tokens * group, keys += shapes.back().keys;
      most = std::max<int64_t>(most, shapes.back().tokens * group);
    }
    for (const bool few : {true, false})
      for (const int tile : {4, 16, 64, 128}) {
        const auto w = cuda::attention_tiles(shapes, group, tile, few);
        const auto bound = cuda::attention_bound(requests, rows, most, keys, tile, few);
        ASSERT_LE(w.tiles.size(), bound.tiles) << round;
        ASSERT_LE(w.cuts, bound.cuts) << round;
        ASSERT_LE(w.partial_rows, bound.partial_rows) << round;
      }
  }
}

}  // namespace
}  // namespace flashinfer::graph_plan_test
