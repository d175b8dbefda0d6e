// SPDX-License-Identifier: Apache-2.0
// use_cuda_graph=True with buffers on a device: plan() rewrites what a captured run() reads, and the grid stays. On the
// emulator, against wrappers without graphs; addresses and captures are tested in tests/cuda.
#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "flashinfer/jit/emulator.h"
#include "flashinfer/kernels/emu/emu.h"
#include "flashinfer/ops/pod/op.h"
#include "graph_plan.h"

namespace flashinfer::graph_plan_test {
namespace {

TEST(GraphPlan, DecodeFollowsEveryPlan) {
  const Buffers b;
  BatchDecodeWithPagedKVCacheWrapper graph(graph_init(b));
  BatchDecodeWithPagedKVCacheWrapper plain({.float_workspace_buffer = b.workspace});
  const Tensor q = normal({3, kHeads, kDim}, 2);
  std::vector<std::array<unsigned, 3>> grids;
  // 1100 keys are cut in two; a request may be empty.
  for (const std::vector<int32_t>& lengths :
       {std::vector<int32_t>{5, 1100, 33}, {1200, 0, 16}, {1, 1, 1}, {40, 300, 1030}}) {
    const Table t(lengths, 3 + static_cast<int32_t>(lengths[0]) % 5 * 2);
    const Tensor indptr = ints(t.indptr), indices = ints(t.indices), last = ints(t.last);
    graph.plan(decode_plan(indptr, indices, last));
    plain.plan(decode_plan(indptr, indices, last));
    const jit::Emulation seen(0);
    const AttentionResult got = graph.run({.q = q, .paged_kv_cache = op::PagedKv(cache().view()), .return_lse = true});
    for (const auto& l : seen.launches()) grids.push_back({l.launch.grid[0], l.launch.grid[1], l.launch.block[0]});
    const AttentionResult want = plain.run({.q = q, .paged_kv_cache = op::PagedKv(cache().view()), .return_lse = true});
    expect_same(got[0], want[0]);
    expect_same(got[1], want[1]);
    EXPECT_EQ(values(b.indptr.view()), t.indptr);
    EXPECT_EQ(values(b.last.view()), t.last);
    std::vector<int32_t> page = values(b.indices.view());
    page.resize(t.indices.size());
    EXPECT_EQ(page, t.indices);
  }
  ASSERT_EQ(grids.size(), 4u);  // of each run
  for (const auto& grid : grids) EXPECT_EQ(grid, grids[0]);
}

/// Caches of FP8, and of NVFP4 with its scales, are read through each plan's pages.
TEST(GraphPlan, NarrowCachesFollowEveryPlan) {
  const auto codes = [](int64_t width, DType type, uint32_t most) {
    std::mt19937 random(static_cast<unsigned>(width));
    const Tensor t = Tensor::empty({kPages, 2, kPage, kKvHeads, width}, type);
    for (int64_t i = 0; i < t.numel(); ++i) t.data_as<uint8_t>()[i] = static_cast<uint8_t>(random() % most);
    return there(t);
  };
  const Tensor q = normal({3, kHeads, kDim}, 2), scales = codes(kDim / 16, DType::kF8E4M3, 0x40);
  for (const DType type : {DType::kF8E4M3, DType::kU8}) {
    const Tensor narrow = type == DType::kU8 ? codes(kDim / 2, type, 256) : codes(kDim, type, 0x50);
    const Buffers b;
    BatchDecodeWithPagedKVCacheWrapper graph(graph_init(b));
    BatchDecodeWithPagedKVCacheWrapper plain({.float_workspace_buffer = b.workspace});
    for (const std::vector<int32_t>& lengths : {std::vector<int32_t>{5, 600, 33}, {40, 0, 530}}) {
      const Table t(lengths, 3 + static_cast<int32_t>(lengths[0]) % 5 * 2);
      const Tensor indptr = ints(t.indptr), indices = ints(t.indices), last = ints(t.last);
      AttentionResult got[2];
      int i = 0;
      for (BatchDecodeWithPagedKVCacheWrapper* w : {&graph, &plain}) {
        BatchDecodePlan plan = decode_plan(indptr, indices, last);
        plan.kv_data_type = type;
        w->plan(plan);
        BatchDecodeRun run{.q = q, .paged_kv_cache = op::PagedKv(narrow), .return_lse = true};
        if (type == DType::kU8) run.kv_cache_sf = op::PagedKv(scales);
        got[i++] = w->run(run);
      }
      expect_same(got[0][0], got[1][0]);
      expect_same(got[0][1], got[1][1]);
    }
  }
}

/// Lengths and page ids on the device; the results are those of the host's plan to the bit, whatever the schedule.
TEST(GraphPlan, LengthsOnTheDeviceGiveTheSameResults) {
  struct Shape {
    int64_t requests, width, heads, q_len;
  };
  // Cut and whole requests; more requests than the kernel has threads; rows that are not few (20 a request).
  for (const Shape& s : {Shape{3, 80, 4, 1}, {300, 2, 4, 1}, {2, 12, 40, 1}, {4, 40, 4, 2}}) {
    const Tensor indptr = Tensor::zeros({s.requests + 1}, DType::kI32),
                 pages = Tensor::zeros({s.requests * s.width}, DType::kI32),
                 last = Tensor::zeros({s.requests}, DType::kI32);
    std::mt19937 random(5);
    for (int64_t b = 0; b <= s.requests; ++b) indptr.span<int32_t>()[b] = static_cast<int32_t>(b * s.width);
    for (int32_t& p : pages.span<int32_t>()) p = static_cast<int32_t>(random() % kPages);
    for (int32_t& n : last.span<int32_t>()) n = kPage;
    const Tensor there_indptr = there(indptr), there_pages = there(pages), there_last = there(last),
                 workspace = Tensor::empty({0}, DType::kU8, kEmulator),
                 q = normal({s.requests * s.q_len, s.heads, kDim}, 2);
    BatchDecodeWithPagedKVCacheWrapper graph({.float_workspace_buffer = workspace,
                                              .use_cuda_graph = true,
                                              .paged_kv_indptr_buffer = there_indptr,
                                              .paged_kv_indices_buffer = there_pages,
                                              .paged_kv_last_page_len_buffer = there_last}),
        plain({.float_workspace_buffer = workspace});
    const auto plan_of = [&](const Tensor& i, const Tensor& p, const Tensor& l) {
      BatchDecodePlan plan = decode_plan(i, p, l);
      plan.num_qo_heads = s.heads, plan.q_len_per_req = s.q_len;
      return plan;
    };
    graph.plan(plan_of(indptr, pages, last));
    for (uint64_t seed = 0; seed < 4; ++seed) {
      const jit::Emulation schedule(seed);
      std::vector<int32_t> lengths, indices, offsets{0}, last_len;
      for (int64_t b = 0; b < s.requests; ++b) {
        const auto most = static_cast<int32_t>(s.width * kPage), least = static_cast<int32_t>(s.q_len);
        int32_t n = least + static_cast<int32_t>(random() % static_cast<uint32_t>(most - least + 1));
        if (s.q_len == 1 && b % 7 == 5) n = 0;
        if (b == 1) n = most;
        lengths.push_back(n);
        const auto used = static_cast<int32_t>(ceil_div(n, kPage));
        for (int32_t i = 0; i < used; ++i) indices.push_back(pages.span<int32_t>()[b * s.width + i]);
        offsets.push_back(offsets.back() + used), last_len.push_back(n ? (n - 1) % kPage + 1 : 1);
      }
      const Tensor there_lengths = there(ints(lengths));
      graph.plan_on_device(there_lengths);
      const AttentionResult got =
          graph.run({.q = q, .paged_kv_cache = op::PagedKv(cache().view()), .return_lse = true});
      const Tensor i = ints(offsets), p = ints(indices), l = ints(last_len);
      plain.plan(plan_of(i, p, l));
      const AttentionResult want =
          plain.run({.q = q, .paged_kv_cache = op::PagedKv(cache().view()), .return_lse = true});
      expect_same(got[0], want[0]);
      expect_same(got[1], want[1]);
    }
  }
}

/// Engines write page ids into the buffer themselves.
TEST(GraphPlan, PageIdsAreReadFromTheBuffer) {
  const Buffers b;
  BatchDecodeWithPagedKVCacheWrapper graph(graph_init(b));
  const Table t({20, 30, 40}), other({20, 30, 40}, 11);
  const Tensor q = normal({3, kHeads, kDim}, 2);
  const Tensor indptr = ints(t.indptr), indices = ints(t.indices), last = ints(t.last);
  graph.plan(decode_plan(indptr, indices, last));
  const Tensor now = ints(other.indices);
  copy_bytes(b.indices.data(), kEmulator, now.data(), kCpu, static_cast<size_t>(now.nbytes()));
  const AttentionResult got = graph.run({.q = q, .paged_kv_cache = op::PagedKv(cache().view())});
  BatchDecodeWithPagedKVCacheWrapper plain({.float_workspace_buffer = b.workspace});
  plain.plan(decode_plan(indptr, now, last));
  expect_same(got[0], plain.run({.q = q, .paged_kv_cache = op::PagedKv(cache().view())})[0]);
}

/// As engines call it: page ids and last pages in the wrapper's own buffers, the offsets on the host.
TEST(GraphPlan, FastPlansTakeTheBuffersThemselves) {
  const Buffers b;
  BatchDecodeWithPagedKVCacheWrapper graph(graph_init(b));
  const Table t({20, 30, 40}), other({70, 1100, 3}, 11);
  const Tensor q = normal({3, kHeads, kDim}, 2), indptr = ints(t.indptr), indices = ints(t.indices),
               last = ints(t.last);
  graph.plan(decode_plan(indptr, indices, last));
  const Tensor now = ints(other.indices), now_last = ints(other.last), now_indptr = ints(other.indptr);
  copy_bytes(b.indices.data(), kEmulator, now.data(), kCpu, static_cast<size_t>(now.nbytes()));
  copy_bytes(b.last.data(), kEmulator, now_last.data(), kCpu, static_cast<size_t>(now_last.nbytes()));
  graph.fast_decode_plan({.indptr = b.indptr,
                          .indices = b.indices,
                          .last_page_len = b.last,
                          .num_qo_heads = kHeads,
                          .num_kv_heads = kKvHeads,
                          .head_dim = kDim,
                          .page_size = kPage,
                          .global_override_indptr_cpu = now_indptr.view()});
  const AttentionResult got = graph.run({.q = q, .paged_kv_cache = op::PagedKv(cache().view())});
  BatchDecodeWithPagedKVCacheWrapper plain({.float_workspace_buffer = b.workspace});
  plain.plan(decode_plan(now_indptr, now, now_last));
  expect_same(got[0], plain.run({.q = q, .paged_kv_cache = op::PagedKv(cache().view())})[0]);
}

TEST(GraphPlan, PrefillFollowsEveryPlan) {
  const Buffers b;
  const Tensor mask_buf = there(Tensor::zeros({4096}, DType::kU8)),
               mask_indptr = there(Tensor::zeros({4}, DType::kI32));
  for (const bool masked : {false, true}) {
    BatchPrefillInit init{.float_workspace_buffer = b.workspace,
                          .use_cuda_graph = true,
                          .qo_indptr_buf = b.qo,
                          .paged_kv_indptr_buf = b.indptr,
                          .paged_kv_indices_buf = b.indices,
                          .paged_kv_last_page_len_buf = b.last};
    if (masked) init.custom_mask_buf = mask_buf, init.mask_indptr_buf = mask_indptr;
    BatchPrefillWithPagedKVCacheWrapper graph(init), plain({.float_workspace_buffer = b.workspace});
    struct Step {
      std::vector<int32_t> qo, kv;
    };
    for (const Step& s : {Step{{0, 40, 43, 60}, {90, 1100, 30}}, Step{{0, 1, 2, 3}, {1100, 20, 20}},
                          Step{{0, 0, 50, 58}, {5, 70, 60}}}) {
      const Table t(s.kv);
      const Tensor qo = ints(s.qo), indptr = ints(t.indptr), indices = ints(t.indices), last = ints(t.last);
      BatchPrefillPlan plan{.qo_indptr = qo,
                            .paged_kv_indptr = indptr,
                            .paged_kv_indices = indices,
                            .paged_kv_last_page_len = last,
                            .num_qo_heads = kHeads,
                            .num_kv_heads = kKvHeads,
                            .head_dim_qk = kDim,
                            .page_size = kPage,
                            .causal = !masked,
                            .q_data_type = DType::kF16};
      int64_t bits = 0;
      for (size_t r = 0; r < 3; ++r) bits += int64_t{s.qo[r + 1] - s.qo[r]} * s.kv[r];
      if (masked && bits / 8 + 3 > 4096) continue;
      const Tensor mask = Tensor::zeros({bits}, DType::kBool);
      for (int64_t i = 0; i < bits; ++i) mask.data_as<bool>()[i] = i % 3 != 1;
      if (masked) plan.custom_mask = mask;
      graph.plan(plan);
      plain.plan(plan);
      const Tensor q = normal({s.qo.back(), kHeads, kDim}, 2);
      expect_same(graph.run({.q = q, .paged_kv_cache = op::PagedKv(cache().view())})[0],
                  plain.run({.q = q, .paged_kv_cache = op::PagedKv(cache().view())})[0]);
    }
  }
}

struct Step {
  std::vector<int32_t> qo, kv;  // offsets of tokens, lengths
};
/// Rows of the later plans are fewer; a request is empty; 1100 keys are cut.
const Step kSteps[] = {
    {{0, 20, 23, 40}, {90, 1100, 30}}, {{0, 1, 2, 3}, {1100, 20, 100}}, {{0, 0, 30, 38}, {5, 70, 60}}};

TEST(GraphPlan, SinksFollowEveryPlan) {
  const Buffers b;
  BatchSinkInit init{.float_workspace_buffer = b.workspace,
                     .q_data_type = DType::kF16,
                     .kv_data_type = DType::kF16,
                     .head_dim_qk = kDim,
                     .head_dim_vo = kDim};
  BatchAttentionWithAttentionSinkWrapper plain(init);
  init.use_cuda_graph = true;
  init.qo_indptr_buf = b.qo, init.paged_kv_indptr_buf = b.indptr, init.paged_kv_indices_buf = b.indices,
  init.paged_kv_last_page_len_buf = b.last;
  BatchAttentionWithAttentionSinkWrapper graph(init);
  const std::vector<float> logits{0.5f, -1.0f, 3.0f, 0.0f};
  const Tensor sink = there(Tensor::copy_of(std::span<const float>(logits), {kHeads}));
  std::vector<std::array<unsigned, 2>> grids;
  for (const Step& s : kSteps) {
    const Table t(s.kv);
    const Tensor qo = ints(s.qo), indptr = ints(t.indptr), indices = ints(t.indices), last = ints(t.last);
    const BatchPrefillPlan plan{.qo_indptr = qo,
                                .paged_kv_indptr = indptr,
                                .paged_kv_indices = indices,
                                .paged_kv_last_page_len = last,
                                .num_qo_heads = kHeads,
                                .num_kv_heads = kKvHeads,
                                .head_dim_qk = kDim,
                                .page_size = kPage,
                                .causal = true,
                                .q_data_type = DType::kF16};
    graph.plan(plan);
    plain.plan(plan);
    const Tensor q = normal({s.qo.back(), kHeads, kDim}, 2);
    const BatchSinkRun run{
        .q = q, .paged_kv_cache = op::PagedKv(cache().view()), .sink = sink, .sm_scale = 0.125, .return_lse = true};
    const jit::Emulation seen(0);
    const AttentionResult got = graph.run(run);
    for (const auto& l : seen.launches()) grids.push_back({l.launch.grid[0], l.launch.block[0]});
    const AttentionResult want = plain.run(run);
    expect_same(got[0], want[0]);
    expect_same(got[1], want[1]);
  }
  ASSERT_EQ(grids.size() % 3, 0u);
  for (size_t i = grids.size() / 3; i < grids.size(); ++i) EXPECT_EQ(grids[i], grids[i % (grids.size() / 3)]);
}

TEST(GraphPlan, RaggedFollowsEveryPlan) {
  const Buffers b;
  BatchPrefillWithRaggedKVCacheWrapper graph({.float_workspace_buffer = b.workspace,
                                              .use_cuda_graph = true,
                                              .qo_indptr_buf = b.qo,
                                              .kv_indptr_buf = b.indptr});
  BatchPrefillWithRaggedKVCacheWrapper plain({.float_workspace_buffer = b.workspace});
  const auto plan_of = [](const Tensor& qo, const Tensor& kv) {
    return BatchRaggedPlan{.qo_indptr = qo,
                           .kv_indptr = kv,
                           .num_qo_heads = kHeads,
                           .num_kv_heads = kKvHeads,
                           .head_dim_qk = kDim,
                           .causal = true};
  };
  const auto offsets = [](const std::vector<int32_t>& lengths) {
    std::vector<int32_t> at{0};
    for (const int32_t n : lengths) at.push_back(at.back() + n);
    return ints(at);
  };
  for (const Step& s : kSteps) {
    const Tensor qo = ints(s.qo), kv = offsets(s.kv);
    graph.plan(plan_of(qo, kv));
    plain.plan(plan_of(qo, kv));
    const int64_t keys = kv.data_as<int32_t>()[3];
    const Tensor q = normal({s.qo.back(), kHeads, kDim}, 2), k = normal({keys, kKvHeads, kDim}, 3),
                 v = normal({keys, kKvHeads, kDim}, 4);
    expect_same(graph.run({.q = q, .k = k, .v = v})[0], plain.run({.q = q, .k = k, .v = v})[0]);
    EXPECT_EQ(values(b.qo.view()), s.qo);
  }
  const Tensor qo = ints({0, 20, 23, 40}), more = offsets({90, 1200, 30});
  expect_error(kValue,
               "there are 1320 keys, but the first plan() had 1220, and with use_cuda_graph=True they may not grow",
               [&] { graph.plan(plan_of(qo, more)); });
}

/// The table of cosines and sines is rewritten as requests grow; the kernel reads it where it was.
TEST(GraphPlan, RotationFollowsEveryPlan) {
  const Buffers b;
  BatchDecodeWithPagedKVCacheWrapper graph(graph_init(b));
  BatchDecodeWithPagedKVCacheWrapper plain({.float_workspace_buffer = b.workspace});
  const Tensor q = normal({3, kHeads, kDim}, 2);
  for (const std::vector<int32_t>& lengths :
       {std::vector<int32_t>{20, 1, 40}, {600, 0, 9}, {3, 1100, 5}}) {  // tables of 512, 1024, 2048 positions
    const Table t(lengths);
    const Tensor indptr = ints(t.indptr), indices = ints(t.indices), last = ints(t.last);
    BatchDecodePlan plan = decode_plan(indptr, indices, last);
    plan.pos_encoding_mode = "ROPE_LLAMA", plan.rope_theta = 5e5;
    graph.plan(plan), plain.plan(plan);
    expect_same(graph.run({.q = q, .paged_kv_cache = op::PagedKv(cache().view())})[0],
                plain.run({.q = q, .paged_kv_cache = op::PagedKv(cache().view())})[0]);
  }
  const Table t({5, 6, 7});
  const Tensor indptr = ints(t.indptr), indices = ints(t.indices), last = ints(t.last);
  BatchDecodePlan plan = decode_plan(indptr, indices, last);
  plan.pos_encoding_mode = "ROPE_LLAMA", plan.rope_theta = 1e4;
  expect_error(kValue, "rope_theta is 10000, but the first plan() had 500000", [&] { graph.plan(plan); });
}

/// Items of a prompt, other ones with each plan.
TEST(GraphPlan, MultiItemScoringFollowsEveryPlan) {
  const Buffers b;
  BatchPrefillInit init{.float_workspace_buffer = b.workspace,
                        .use_cuda_graph = true,
                        .qo_indptr_buf = b.qo,
                        .paged_kv_indptr_buf = b.indptr,
                        .paged_kv_indices_buf = b.indices,
                        .paged_kv_last_page_len_buf = b.last};
  BatchPrefillWithPagedKVCacheWrapper graph(init), plain({.float_workspace_buffer = b.workspace});
  const auto step = [&](const std::vector<int32_t>& lengths, const std::vector<uint32_t>& prefixes, int64_t width) {
    const Table t(lengths);
    std::vector<int32_t> qo{0};
    std::vector<uint16_t> items(3 * static_cast<size_t>(width), 0);
    for (size_t r = 0; r < 3; ++r) {
      qo.push_back(qo.back() + lengths[r]);  // the prompts have no cache before them
      for (size_t i = 0; i < static_cast<size_t>(lengths[r]) - prefixes[r]; ++i)
        items[r * static_cast<size_t>(width) + i] = static_cast<uint16_t>(i % (4 + r));
    }
    const Tensor q_at = ints(qo), indptr = ints(t.indptr), indices = ints(t.indices), last = ints(t.last),
                 prefix = Tensor::copy_of(std::span<const uint32_t>(prefixes), {3}),
                 pos = Tensor::copy_of(std::span<const uint16_t>(items), {3, width}),
                 longest = Tensor::copy_of(std::span<const uint16_t>(std::vector<uint16_t>{7, 7, 7}), {3});
    BatchPrefillPlan plan{.qo_indptr = q_at,
                          .paged_kv_indptr = indptr,
                          .paged_kv_indices = indices,
                          .paged_kv_last_page_len = last,
                          .num_qo_heads = kHeads,
                          .num_kv_heads = kKvHeads,
                          .head_dim_qk = kDim,
                          .page_size = kPage};
    plan.q_data_type = DType::kF16;
    plan.prefix_len_ptr = prefix, plan.token_pos_in_items_ptr = pos, plan.token_pos_in_items_len = width,
    plan.max_item_len_ptr = longest;
    graph.plan(plan), plain.plan(plan);
    const Tensor q = normal({qo.back(), kHeads, kDim}, 5);
    expect_same(graph.run({.q = q, .paged_kv_cache = op::PagedKv(cache().view())})[0],
                plain.run({.q = q, .paged_kv_cache = op::PagedKv(cache().view())})[0]);
  };
  step({30, 20, 25}, {8, 5, 11}, 24);
  step({18, 29, 27}, {3, 9, 4}, 24);
  step({12, 21, 20}, {2, 13, 10}, 12);  // shorter rows than the first plan's
  expect_error(kValue, "token_pos_in_items_len is 26, but the first plan() had 24",
               [&] { step({18, 29, 27}, {3, 9, 4}, 26); });
}

TEST(GraphPlan, PodFollowsEveryPlan) {
  const Buffers b;
  PODWithPagedKVCacheWrapper graph(PodInit{.float_workspace_buffer = b.workspace,
                                           .use_cuda_graph = true,
                                           .paged_kv_indptr_buffer = b.indptr,
                                           .paged_kv_indices_buffer = b.indices,
                                           .paged_kv_last_page_len_buffer = b.last});
  PODWithPagedKVCacheWrapper plain(PodInit{.float_workspace_buffer = b.workspace});
  const Tensor q = normal({3, kHeads, kDim}, 2), q_p = normal({9, kHeads, kDim}, 4),
               k = normal({30, kKvHeads, kDim}, 3);
  for (const std::vector<int32_t>& lengths : {std::vector<int32_t>{20, 30, 40}, {70, 0, 9}}) {
    const Table t(lengths);
    const Tensor indptr = ints(t.indptr), indices = ints(t.indices), last = ints(t.last);
    const PodPlan plan{.indptr = indptr,
                       .indices = indices,
                       .last_page_len = last,
                       .num_qo_heads = kHeads,
                       .num_kv_heads = kKvHeads,
                       .head_dim = kDim,
                       .page_size = kPage};
    graph.plan(plan), plain.plan(plan);
    PodRun run{.q_p = q_p, .k_p = k, .v_p = k, .q_d = q, .paged_kv_cache_d = op::PagedKv(cache().view())};
    run.causal_p = true;
    const auto got = graph.run(run), want = plain.run(run);
    expect_same(got[0], want[0]);
    expect_same(got[1], want[1]);
  }
}

}  // namespace
}  // namespace flashinfer::graph_plan_test
