// SPDX-License-Identifier: Apache-2.0
// What is one launch: cut requests with their merge, prefills beside decodes, heads with patterns of their own, levels;
// each with the bits of the launches that it replaces, under four schedules.
#include <gtest/gtest.h>

#include "flashinfer/jit/cuda.h"
#include "flashinfer/jit/emulator.h"
#include "flashinfer/kernels/emu/emu.h"
#include "flashinfer/ops/attention/cuda/launch.h"
#include "flashinfer/ops/cascade/op.h"
#include "flashinfer/ops/pod/op.h"
#include "flashinfer/ops/sparse/op.h"
#include "graph_plan.h"

namespace flashinfer::graph_plan_test {
namespace {

const Tensor& workspace() {
  static const Tensor& t = *new Tensor(Tensor::empty({0}, DType::kU8, kEmulator));
  return t;
}
/// run() under each schedule, with its number of launches.
template <class Run>
void each_schedule(size_t launches, const Run& run) {
  for (uint64_t seed = 0; seed < 4; ++seed) {
    const jit::Emulation seen(seed);
    run();
    EXPECT_EQ(seen.launches().size(), launches) << "schedule " << seed;
  }
}
/// A page table on the host.
struct Pages : Table {
  Tensor at_indptr = ints(indptr), at_indices = ints(indices), at_last = ints(last);
  explicit Pages(const std::vector<int32_t>& lengths, int32_t step = 7) : Table(lengths, step) {}
};
AttentionResult decode_of(const Pages& t, const Tensor& q) {
  BatchDecodeWithPagedKVCacheWrapper w({.float_workspace_buffer = workspace()});
  w.plan(decode_plan(t.at_indptr, t.at_indices, t.at_last));
  return w.run({.q = q, .paged_kv_cache = op::PagedKv(cache().view()), .return_lse = true});
}
BatchPrefillPlan prefill_plan(const Tensor& qo, const Pages& t, bool causal) {
  return {.qo_indptr = qo,
          .paged_kv_indptr = t.at_indptr,
          .paged_kv_indices = t.at_indices,
          .paged_kv_last_page_len = t.at_last,
          .num_qo_heads = kHeads,
          .num_kv_heads = kKvHeads,
          .head_dim_qk = kDim,
          .page_size = kPage,
          .causal = causal,
          .q_data_type = DType::kF16};
}
AttentionResult prefill_of(const Tensor& qo, const Pages& t, const Tensor& q, bool causal) {
  BatchPrefillWithPagedKVCacheWrapper w({.float_workspace_buffer = workspace()});
  w.plan(prefill_plan(qo, t, causal));
  return w.run({.q = q, .paged_kv_cache = op::PagedKv(cache().view()), .return_lse = true});
}

/// The counters of a graph are 0 behind each run: a second run without a plan gives the same.
TEST(OneLaunch, TheLastBlockMergesAgainAndAgain) {
  const Buffers b;
  const Pages t({5, 1000, 400});
  const Tensor q = normal({3, kHeads, kDim}, 2);
  const AttentionResult want = decode_of(t, q);
  BatchDecodeWithPagedKVCacheWrapper graph(graph_init(b));
  graph.plan(decode_plan(t.at_indptr, t.at_indices, t.at_last));
  each_schedule(1, [&] {
    const AttentionResult got = graph.run({.q = q, .paged_kv_cache = op::PagedKv(cache().view()), .return_lse = true});
    expect_same(got[0], want[0]);
    expect_same(got[1], want[1]);
  });
}

TEST(OneLaunch, APrefillBesideDecodes) {
  const Pages t({300, 9, 1100});
  const Tensor q_d = normal({3, kHeads, kDim}, 2), q_p = normal({150, kHeads, kDim}, 3),
               k = normal({200, kKvHeads, kDim}, 4), v = normal({200, kKvHeads, kDim}, 5);
  const AttentionResult want = decode_of(t, q_d);
  const Tensor want_p = single_prefill_with_kv_cache({.q = q_p, .k = k, .v = v, .causal = true})[0];
  PODWithPagedKVCacheWrapper pod({.float_workspace_buffer = workspace()});
  pod.plan({.indptr = t.at_indptr,
            .indices = t.at_indices,
            .last_page_len = t.at_last,
            .num_qo_heads = kHeads,
            .num_kv_heads = kKvHeads,
            .head_dim = kDim,
            .page_size = kPage,
            .q_data_type = DType::kF16});
  each_schedule(1, [&] {
    const op::Results got = pod.run({.q_p = q_p,
                                     .k_p = k,
                                     .v_p = v,
                                     .q_d = q_d,
                                     .paged_kv_cache_d = op::PagedKv(cache().view()),
                                     .causal_p = true,
                                     .return_lse_d = true});
    expect_same(got[0], want_p);
    expect_same(got[1], want[0]);
    expect_same(got[2], want[1]);
  });
}

/// BatchPOD, and BatchAttention over requests of both kinds.
TEST(OneLaunch, ABatchOfPrefillsBesideOneOfDecodes) {
  const Pages p({200, 40}, 3), d({300, 9, 1100});
  const Tensor qo_p = ints({0, 70, 100}), qo_d = ints({0, 1, 2, 3}), q_p = normal({100, kHeads, kDim}, 3),
               q_d = normal({3, kHeads, kDim}, 2);
  const AttentionResult want_p = prefill_of(qo_p, p, q_p, true), want_d = prefill_of(qo_d, d, q_d, false);
  BatchPODWithPagedKVCacheWrapper pod({.float_workspace_buffer = workspace()});
  pod.plan({.qo_indptr_p = qo_p,
            .kv_indptr_p = p.at_indptr,
            .kv_indices_p = p.at_indices,
            .last_page_len_p = p.at_last,
            .qo_indptr_d = qo_d,
            .kv_indptr_d = d.at_indptr,
            .kv_indices_d = d.at_indices,
            .last_page_len_d = d.at_last,
            .num_qo_heads = kHeads,
            .num_kv_heads = kKvHeads,
            .head_dim = kDim,
            .page_size = kPage,
            .q_data_type = DType::kF16});
  each_schedule(1, [&] {
    const op::Results got = pod.run({.q_p = q_p,
                                     .paged_kv_cache_p = op::PagedKv(cache().view()),
                                     .q_d = q_d,
                                     .paged_kv_cache_d = op::PagedKv(cache().view()),
                                     .causal_p = true,
                                     .return_lse = true});
    for (int i = 0; i < 2; ++i) expect_same(got[i], want_p[i]), expect_same(got[2 + i], want_d[i]);
  });

  const std::vector<int32_t> lengths{600, 130, 4};
  const Pages both(lengths, 11);
  const Tensor qo = ints({0, 1, 90, 91}), len = ints(lengths), q = normal({91, kHeads, kDim}, 6);
  const AttentionResult want = prefill_of(qo, both, q, true);
  BatchAttention batch;
  batch.plan({.qo_indptr = qo,
              .kv_indptr = both.at_indptr,
              .kv_indices = both.at_indices,
              .kv_len_arr = len,
              .num_qo_heads = kHeads,
              .num_kv_heads = kKvHeads,
              .head_dim_qk = kDim,
              .head_dim_vo = kDim,
              .page_size = kPage,
              .causal = true,
              .q_data_type = DType::kF16,
              .kv_data_type = DType::kF16});
  each_schedule(1, [&] {
    const op::Results got = batch.run({.q = q, .kv_cache = op::PagedKv(cache().view())});
    expect_same(got[0], want[0]);
    expect_same(got[1], want[1]);
  });
}

/// Rows and keys of requests; heads. BatchAttention takes them in one launch of four blocks, or of one a work item
/// where there are fewer, and gives the bits of the wrappers' launches.
struct Batch {
  std::vector<std::array<int32_t, 2>> requests;
  int64_t heads, kv_heads, dim;
  unsigned blocks;
};
TEST(OneLaunch, BlocksOfAPersistentLaunchTakeTileAfterTile) {
  const std::vector<Batch> batches{
      {{{1, 9}, {20, 40}}, 1, 1, 64, 2},                   // an item for each of two blocks
      {{{1, 0}, {3, 7}, {0, 30}, {18, 18}}, 2, 1, 64, 3},  // no keys, no rows
      {{{1, 700}, {1, 3}, {30, 300}, {1, 520}, {2, 90}, {150, 200}, {1, 256}, {70, 70}}, 4, 2, 128, 4},  // cut, many
      {{{40, 400}, {40, 300}, {1, 12}}, 4, 2, 64, 4},        // most are of many rows
      {{{1, 300}, {17, 70}, {1, 20}}, 1, 1, 512, 4},         // two blocks share V's columns
      {{{1, 700}, {2, 40}, {1, 300}, {0, 9}}, 4, 2, 64, 4},  // few rows alone
      {{{80, 90}, {20, 40}}, 2, 1, 64, 3},                   // many rows alone
  };
  for (size_t i = 0; i < batches.size(); ++i) {
    const Batch& b = batches[i];
    std::vector<int32_t> rows{0}, lengths;
    for (const auto& [n, keys] : b.requests) rows.push_back(rows.back() + n), lengths.push_back(keys);
    const Pages t(lengths, 11);
    const Tensor qo = ints(rows), len = ints(lengths), q = normal({rows.back(), b.heads, b.dim}, 6),
                 kv = normal({kPages, 2, kPage, b.kv_heads, b.dim}, 7);
    BatchPrefillPlan plan = prefill_plan(qo, t, true);
    plan.num_qo_heads = b.heads, plan.num_kv_heads = b.kv_heads, plan.head_dim_qk = b.dim;
    BatchPrefillWithPagedKVCacheWrapper apart({.float_workspace_buffer = workspace()});
    apart.plan(plan);
    const AttentionResult want = apart.run({.q = q, .paged_kv_cache = op::PagedKv(kv.view()), .return_lse = true});
    BatchAttention batch;
    batch.plan({.qo_indptr = qo,
                .kv_indptr = t.at_indptr,
                .kv_indices = t.at_indices,
                .kv_len_arr = len,
                .num_qo_heads = b.heads,
                .num_kv_heads = b.kv_heads,
                .head_dim_qk = b.dim,
                .head_dim_vo = b.dim,
                .page_size = kPage,
                .causal = true,
                .q_data_type = DType::kF16,
                .kv_data_type = DType::kF16});
    for (uint64_t seed = 0; seed < 4; ++seed) {
      const jit::Emulation seen(seed);
      const op::Results got = batch.run({.q = q, .kv_cache = op::PagedKv(kv.view())});
      expect_same(got[0], want[0]);
      expect_same(got[1], want[1]);
      ASSERT_EQ(seen.launches().size(), 1u) << "batch " << i;
      const unsigned* grid = seen.launches()[0].launch.grid;
      EXPECT_EQ(std::vector(grid, grid + 3), (std::vector<unsigned>{b.blocks, 1, 1})) << "batch " << i;
    }
  }
}

/// The decodes' buffers have room for many more tiles than a plan makes: blocks that come to the first of these take
/// the prefill's, and a list is found anew by each run.
TEST(OneLaunch, APodWithSurplusTilesFollowsEveryPlan) {
  const Buffers b, more;
  const Tensor many_pages = there(Tensor::zeros({50 * kPages}, DType::kI32));
  PodInit init{.float_workspace_buffer = workspace()};
  PODWithPagedKVCacheWrapper plain(init);
  init.use_cuda_graph = true;
  init.paged_kv_indptr_buffer = b.indptr, init.paged_kv_indices_buffer = b.indices,
  init.paged_kv_last_page_len_buffer = b.last;
  PODWithPagedKVCacheWrapper graph(init);
  init.paged_kv_indptr_buffer = more.indptr, init.paged_kv_indices_buffer = many_pages,
  init.paged_kv_last_page_len_buffer = more.last;
  PODWithPagedKVCacheWrapper larger(init);
  const Tensor q_d = normal({3, kHeads, kDim}, 2), q_p = normal({150, kHeads, kDim}, 3),
               k = normal({200, kKvHeads, kDim}, 4), v = normal({200, kKvHeads, kDim}, 5);
  uint64_t seed = 0;
  for (const std::vector<int32_t>& lengths : {std::vector{300, 9, 1100}, {1, 1, 1}, {700, 512, 257}}) {
    const Pages t(lengths);
    const PodPlan plan{.indptr = t.at_indptr,
                       .indices = t.at_indices,
                       .last_page_len = t.at_last,
                       .num_qo_heads = kHeads,
                       .num_kv_heads = kKvHeads,
                       .head_dim = kDim,
                       .page_size = kPage,
                       .q_data_type = DType::kF16};
    graph.plan(plan), plain.plan(plan), larger.plan(plan);
    const PodRun run{.q_p = q_p,
                     .k_p = k,
                     .v_p = v,
                     .q_d = q_d,
                     .paged_kv_cache_d = op::PagedKv(cache().view()),
                     .causal_p = true,
                     .return_lse_d = true};
    const op::Results want = plain.run(run);
    for (int i = 0; i < 3; ++i) {
      const jit::Emulation seen(seed++);
      const op::Results got = graph.run(run);
      for (int r = 0; r < 3; ++r) expect_same(got[r], want[r]);
      ASSERT_EQ(seen.launches().size(), 1u);
      EXPECT_EQ(seen.launches()[0].launch.grid[0], 4u);
    }
    // Room for fifty times the tiles costs nothing.
    uint64_t atomics[2], bytes[2];
    for (int i = 0; i < 2; ++i) {
      const jit::Emulation seen(0, true);
      const op::Results got = (i ? larger : graph).run(run);
      for (int r = 0; r < 3; ++r) expect_same(got[r], want[r]);
      const emu::Counts& counts = *seen.launches().at(0).counts;
      atomics[i] = counts.atomics, bytes[i] = counts.global_load_bytes;
    }
    EXPECT_LE(atomics[1], atomics[0] + 8);  // a block may come to the end of both lists once more
    EXPECT_LE(bytes[1], bytes[0] + 4 * 128 * sizeof(AttentionTile));
  }
}

/// A graph is replayed over the same counters.
TEST(OneLaunch, TheLastBlockLeavesTheCountersAsTheyWere) {
  static constexpr jit::Kernel kPair{"flashinfer/ops/attention/kernels/cuda/pair.cuh", "flashinfer::cu::attention_pair",
                                     "flashinfer::AttentionPairParams"};
  const AttentionCudaConfig config{.q = DType::kF16,
                                   .kv = DType::kF16,
                                   .o = DType::kF16,
                                   .warps_k = 1,
                                   .dqk = 64,
                                   .dvo = 64,
                                   .threads = 128,
                                   .copy = 16};
  const jit::CudaLoaded& kernel = jit::cuda_kernel<kPair>(config, kEmulator);
  ASSERT_EQ(kernel.why_not, "");
  const Tensor tiles = Tensor::zeros({100 * static_cast<int64_t>(sizeof(AttentionTile))}, DType::kU8, kEmulator),
               counters = Tensor::zeros({cuda::kTurnCounters}, DType::kU32, kEmulator);
  AttentionPairParams p{};
  p.few.tiles = p.many.tiles = reinterpret_cast<const AttentionTile*>(tiles.data());
  p.few.a.num_kv_heads = p.many.a.num_kv_heads = 2;
  for (const auto& [few, many] : {std::pair{30, 20}, {100, 0}, {0, 3}}) {
    p.turns = cuda::attention_turns(config, few, many, 2, 4, counters.data_as<uint32_t>());
    for (int run = 0; run < 2; ++run) {
      jit::launch(kernel, p, cuda::attention_pair_launch(config, p.turns, true));
      EXPECT_EQ(values(counters), std::vector<int32_t>(3)) << few << " and " << many;
    }
  }
}
TEST(OneLaunch, ALaunchHasFewerThan2To31Items) {
  const AttentionCudaConfig config{.threads = 128, .halves = 1};
  EXPECT_EQ(cuda::attention_turns(config, 1 << 20, 1, 1023, 264, nullptr).items[0], 1023u << 21);
  expect_error(kValue, "1048576 tiles of few rows and 0 of many for 2048 heads are 2147483648 work items",
               [&] { cuda::attention_turns(config, 1 << 20, 0, 1024, 264, nullptr); });
}

/// Heads with other block sizes and blocks: each as if it were attended alone. A row block sees 600 keys, in chunks.
TEST(OneLaunch, HeadsWithPatternsOfTheirOwn) {
  const int32_t rows[2][2] = {{4, 8}, {6, 6}}, cols[2][3] = {{8, 592, 24}, {240, 8, 376}};
  const uint8_t map[2][2][3] = {{{1, 1, 0}, {0, 0, 0}}, {{1, 0, 1}, {0, 1, 0}}};
  const auto at = [](const auto& x, DType t, const std::vector<int64_t>& shape) {
    Tensor y = Tensor::empty(shape, t);
    std::memcpy(y.data(), &x, sizeof(x));
    return y;
  };
  const Tensor row_sz = at(rows, DType::kI32, {2, 2}), col_sz = at(cols, DType::kI32, {2, 3}),
               mask = at(map, DType::kBool, {2, 2, 3});
  const Tensor q = normal({kHeads, 12, kDim}, 2), k = normal({kKvHeads, 624, kDim}, 3),
               v = normal({kKvHeads, 624, kDim}, 4);
  const auto plan_of = [&](const TensorView& m, const TensorView& r, const TensorView& c, int64_t heads) {
    return VariableBlockSparsePlan{.block_mask_map = m,
                                   .block_row_sz = r,
                                   .block_col_sz = c,
                                   .num_qo_heads = 2 * heads,
                                   .num_kv_heads = heads,
                                   .head_dim = kDim,
                                   .q_data_type = DType::kF16};
  };
  std::vector<op::Results> want;
  for (int64_t h = 0; h < 2; ++h) {
    const auto head = [&](const Tensor& t, int64_t n) { return t.view().slice(0, n * h, n * (h + 1)); };
    VariableBlockSparseAttentionWrapper alone({.float_workspace_buffer = workspace()});
    alone.plan(plan_of(head(mask, 1), head(row_sz, 1), head(col_sz, 1), 1));
    want.push_back(alone.run({.q = head(q, 2), .k = head(k, 1), .v = head(v, 1), .return_lse = true}));
  }
  VariableBlockSparseAttentionWrapper all({.float_workspace_buffer = workspace()});
  all.plan(plan_of(mask, row_sz, col_sz, 2));
  each_schedule(1, [&] {
    const op::Results got = all.run({.q = q, .k = k, .v = v, .return_lse = true});
    for (int64_t h = 0; h < 2; ++h)
      for (int i = 0; i < 2; ++i) {
        const Tensor whole = to_device(got[i].view(), kCpu);
        expect_same(Tensor::clone(whole.view().slice(0, 2 * h, 2 * h + 2)), want[static_cast<size_t>(h)][i]);
      }
  });
}

/// Level 0 has all rows; level 1 each request's own. A captured run follows plans with other keys and segments.
TEST(OneLaunch, LevelsFollowEveryPlan) {
  const Buffers shared, own;
  const Tensor shared_qo = there(Tensor::zeros({2}, DType::kI32)),
               shared_indptr = there(Tensor::zeros({2}, DType::kI32)),
               shared_last = there(Tensor::zeros({1}, DType::kI32));
  const auto views = [](const Tensor& a, const Tensor& b) { return std::vector<TensorView>{a.view(), b.view()}; };
  MultiLevelCascadeAttentionWrapper graph({.num_levels = 2,
                                           .float_workspace_buffer = workspace(),
                                           .use_cuda_graph = true,
                                           .qo_indptr_buf_arr = views(shared_qo, own.qo),
                                           .paged_kv_indptr_buf_arr = views(shared_indptr, own.indptr),
                                           .paged_kv_indices_buf_arr = views(shared.indices, own.indices),
                                           .paged_kv_last_page_len_buf_arr = views(shared_last, own.last)}),
      plain({.num_levels = 2, .float_workspace_buffer = workspace()});
  const Tensor q = normal({30, kHeads, kDim}, 2), shared_rows = ints({0, 30});
  uint64_t seed = 0;
  for (const auto& [keys, rows, lengths] :
       {std::tuple{900, std::vector{0, 10, 20, 30}, std::vector{90, 300, 30}}, {40, {0, 1, 29, 30}, {500, 40, 16}}}) {
    const Pages prefix({keys}, 3), suffix(lengths);
    const Tensor qo = ints(rows);
    const CascadePlan plan{.qo_indptr_arr = views(shared_rows, qo),
                           .paged_kv_indptr_arr = views(prefix.at_indptr, suffix.at_indptr),
                           .paged_kv_indices_arr = views(prefix.at_indices, suffix.at_indices),
                           .paged_kv_last_page_len = views(prefix.at_last, suffix.at_last),
                           .num_qo_heads = kHeads,
                           .num_kv_heads = kKvHeads,
                           .head_dim = kDim,
                           .page_size = kPage,
                           .causal = true,
                           .q_data_type = DType::kF16};
    graph.plan(plan), plain.plan(plan);
    const Tensor want = plain.run({.q = q, .paged_kv_cache = op::PagedKv(cache().view())});
    for (int i = 0; i < 2; ++i) {
      const jit::Emulation seen(seed++);
      expect_same(graph.run({.q = q, .paged_kv_cache = op::PagedKv(cache().view())}), want);
      EXPECT_EQ(seen.launches().size(), 3u);  // both kinds of tiles of each level, and the merge of the levels
    }
  }
}

}  // namespace
}  // namespace flashinfer::graph_plan_test
