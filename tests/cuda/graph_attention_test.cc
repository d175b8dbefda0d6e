// SPDX-License-Identifier: Apache-2.0
// Attention that makes its work list during a capture: it is sent beside the capture, and stays where the graph reads
// it.
#include <algorithm>
#include <cstring>
#include <functional>

#include "call.h"
#include "flashinfer/ops/attention/cuda/arrays.h"
#include "flashinfer/ops/attention/cuda/launch.h"
#include "flashinfer/ops/attention/op.h"
#include "flashinfer/ops/pod/op.h"

namespace flashinfer {
namespace {

class GraphAttention : public Call {
 protected:
  void SetUp() override {
    Call::SetUp();
    gpu().kernel = nullptr;
    q_ = zeros({9, 8, 64}), k_ = zeros({30, 2, 64}), out_ = zeros({9, 8, 64});
  }
  void TearDown() override {
    q_ = k_ = out_ = Tensor();
    Call::TearDown();
  }
  static Tensor ints(const std::vector<int32_t>& v) {
    return Tensor::copy_of(std::span<const int32_t>(v), {static_cast<int64_t>(v.size())});
  }
  static Tensor zeros(std::initializer_list<int64_t> shape) { return Tensor::zeros(shape, DType::kBF16, kGpu); }
  /// Captures `call`; the attention kernels in the graph. Nothing but kernels and what frees their scratch is in it.
  template <class F>
  std::vector<fake::Launched> capture(F call, size_t bytes = sizeof(AttentionCudaParams)) {
    gpu().launches.clear(), gpu().calls.clear();
    gpu().begin_capture(stream_->get());
    call();
    EXPECT_GT(gpu().end_capture(stream_->get()), 0);  // not invalidated
    EXPECT_EQ(gpu().calls["cuStreamSynchronize"] + gpu().calls["cuCtxSynchronize"], 0);
    std::vector<fake::Launched> found;
    for (const fake::Launched& l : gpu().launches)
      if (l.bytes == bytes && l.config.stream == stream_->get()) found.push_back(l);
    return found;
  }
  /// That the kernel's tiles are those of one request of 9 tokens and 30 keys, 4 rows a token, after everything else
  /// that could take their place.
  void expect_tiles(const fake::Launched& l) {
    expect_tiles(*reinterpret_cast<const AttentionCudaParams*>(l.params), l.config.grid[0]);
  }
  void expect_tiles(const AttentionCudaParams& params, size_t tiles) {
    for (int i = 0; i < 8; ++i) single_prefill_with_kv_cache({.q = q_, .k = k_, .v = k_, .out = out_.view()});
    cuda::synchronize(0, stream_->get());
    const std::vector<cuda::AttentionShape> shapes{{9, 30}};
    const cuda::AttentionWorkList want = cuda::attention_tiles(shapes, 4, 64, false);
    ASSERT_EQ(tiles, want.tiles.size());
    EXPECT_EQ(std::memcmp(fake::host(params.tiles), want.tiles.data(), want.tiles.size() * sizeof(AttentionTile)), 0);
    EXPECT_EQ(first_kv_len(params), 30);
    EXPECT_TRUE(gpu().faults.empty()) << gpu().faults[0];
  }

  /// What the decodes of these tests plan: 8 query heads, 2 KV heads of 64, pages of 16.
  template <class Plan = BatchDecodePlan>
  static Plan plan_of(const Tensor& indptr, const Tensor& pages, const Tensor& last_len) {
    return {.indptr = indptr,
            .indices = pages,
            .last_page_len = last_len,
            .num_qo_heads = 8,
            .num_kv_heads = 2,
            .head_dim = 64,
            .page_size = 16,
            .q_data_type = DType::kBF16};
  }
  static int32_t first_kv_len(const fake::Launched& l) {
    return first_kv_len(*reinterpret_cast<const AttentionCudaParams*>(l.params));
  }
  static int32_t first_kv_len(const AttentionCudaParams& params) {
    return static_cast<const int32_t*>(fake::host(params.a.kv_len))[0];
  }

  Tensor q_, k_, out_;
};

TEST_F(GraphAttention, ASinglePrefillTakesItsWorkListBesideTheCapture) {
  single_prefill_with_kv_cache({.q = q_, .k = k_, .v = k_, .out = out_.view()});  // compiled
  cuda::synchronize(0, stream_->get());
  const auto launched = capture([&] { single_prefill_with_kv_cache({.q = q_, .k = k_, .v = k_, .out = out_.view()}); });
  ASSERT_EQ(launched.size(), 1u);
  expect_tiles(launched[0]);
}

/// Tables and scales on the GPU are read by kernels alone: nothing is copied to the host, and the call is captured.
TEST_F(GraphAttention, ACallWithTablesOnTheGpuReadsNothingOnTheHost) {
  const Tensor tables = Tensor::zeros({2, 40}, DType::kI32, kGpu), lengths = Tensor::zeros({2}, DType::kI32, kGpu),
               first = Tensor::zeros({3}, DType::kI32, kGpu), scale = Tensor::zeros({1}, DType::kF32, kGpu),
               words = Tensor::zeros({4, 2}, DType::kU16, kGpu), before = Tensor::zeros({2}, DType::kI32, kGpu),
               workspace = Tensor::empty({0}, DType::kU8, kGpu), q = zeros({4, 8, 64}),
               cache = zeros({90, 2, 16, 2, 64}), out = zeros({4, 8, 64});
  TrtllmBatchDecode decode{.query = q, .kv_cache = op::PagedKv(cache.view())};
  decode.workspace_buffer = workspace, decode.block_tables = tables, decode.seq_lens = lengths;
  decode.kv_layout = "NHD", decode.q_len_per_req = 2, decode.out = out;
  TrtllmBatchDecode masked = decode, share = decode, scaled = decode;
  masked.mask = words, share.causal_seqlens_kv_global = before, share.cp_world = 2;
  scaled.bmm2_scale = scale.view();
  TrtllmBatchContext context{.query = q, .kv_cache = op::PagedKv(cache.view())};
  context.workspace_buffer = workspace, context.block_tables = tables, context.seq_lens = lengths;
  context.cum_seq_lens_q = first, context.cum_seq_lens_kv = first, context.kv_layout = "NHD";
  context.batch_size = 2, context.max_q_len = 3, context.out = out;
  XqaBatchDecode xqa{.query = q, .kv_cache = op::PagedKv(cache.view())};
  xqa.workspace_buffer = workspace, xqa.block_tables = tables, xqa.seq_lens = lengths, xqa.kv_layout = "NHD";
  xqa.max_seq_len = 640, xqa.q_len_per_req = 2, xqa.mask = words, xqa.out = out;
  const Tensor two_tables = Tensor::zeros({2, 2, 40}, DType::kI32, kGpu), pages = zeros({90, 16, 2, 64});
  TrtllmBatchDecode apart = decode;
  apart.kv_cache = op::PagedKv(pages.view(), pages.view()), apart.uses_shared_paged_kv_idx = false;
  apart.block_tables = two_tables;
  const Tensor rows_on_host = ints({1, 3});
  TrtllmRaggedDeepseek ragged{.query = q, .key = k_, .value = k_, .workspace_buffer = workspace, .seq_lens = lengths};
  ragged.max_q_len = 3, ragged.max_kv_len = 30, ragged.batch_size = 2, ragged.out = out;
  ragged.cum_seq_lens_q = first, ragged.cum_seq_lens_kv = first;
  ragged.q_seq_lens_cpu = rows_on_host, ragged.kv_seq_lens_cpu = rows_on_host;
  const std::vector<std::function<void()>> calls{
      [&] { trtllm_batch_decode_with_kv_cache(decode); },   [&] { trtllm_batch_decode_with_kv_cache(masked); },
      [&] { trtllm_batch_decode_with_kv_cache(share); },    [&] { trtllm_batch_decode_with_kv_cache(scaled); },
      [&] { trtllm_batch_context_with_kv_cache(context); }, [&] { xqa_batch_decode_with_kv_cache(xqa); },
      [&] { trtllm_batch_decode_with_kv_cache(apart); },    [&] { trtllm_ragged_attention_deepseek(ragged); }};
  for (const auto& call : calls) {
    gpu().calls.clear();
    call();
    EXPECT_EQ(gpu().calls["cuMemcpyDtoHAsync_v2"] + gpu().calls["cuMemcpyAsync"] + waits(), 0);
    cuda::synchronize(0, stream_->get());
    EXPECT_EQ(capture(call).size(), 1u);  // beside the plan
  }
  EXPECT_TRUE(gpu().faults.empty()) << gpu().faults[0];

  const auto message = [&](int64_t most_rows, int64_t most_keys, const Tensor& keys) {
    ragged.max_q_len = most_rows, ragged.max_kv_len = most_keys, ragged.kv_seq_lens_cpu = keys;
    return error([&] { trtllm_ragged_attention_deepseek(ragged); });
  };
  EXPECT_NE(message(2, 30, rows_on_host).find("q_seq_lens_cpu[1] is 3, but max_q_len is 2"), std::string::npos);
  EXPECT_NE(message(3, 2, rows_on_host).find("kv_seq_lens_cpu[1] is 3, but max_kv_len is 2"), std::string::npos);
  EXPECT_NE(message(3, 30, ints({1})).find("but there are 2 requests"), std::string::npos);
}

/// plan() and run(), or plan() and a replay, step after step: the host never waits for the GPU.
TEST_F(GraphAttention, ADecodeLoopWaitsForNothing) {
  for (const bool graph : {false, true}) {
    const Tensor indptr_buf = Tensor::zeros({3}, DType::kI32, kGpu),
                 indices_buf = Tensor::zeros({90}, DType::kI32, kGpu), last_buf = Tensor::zeros({2}, DType::kI32, kGpu),
                 workspace = Tensor::empty({0}, DType::kU8, kGpu), q = zeros({2, 8, 64}),
                 cache = zeros({90, 2, 16, 2, 64}), out = zeros({2, 8, 64});
    BatchDecodeInit init{.float_workspace_buffer = workspace, .use_cuda_graph = graph};
    if (graph)
      init.paged_kv_indptr_buffer = indptr_buf, init.paged_kv_indices_buffer = indices_buf,
      init.paged_kv_last_page_len_buffer = last_buf;
    BatchDecodeWithPagedKVCacheWrapper wrapper(init);
    int32_t lengths = 0;
    gpu().kernel = [&](const fake::Launched& l) {
      if (l.bytes == sizeof(AttentionCudaParams)) lengths = first_kv_len(l);
    };
    const Tensor indptr = ints({0, 2, 5}), pages = ints({7, 8, 3, 4, 5});
    const auto step = [&](int32_t last) {
      const Tensor last_len = ints({last, 16});
      wrapper.plan(plan_of(indptr, pages, last_len));
    };
    const auto run = [&] {
      BatchDecodeRun r{.q = q, .paged_kv_cache = op::PagedKv(cache.view())};
      r.out = out.view();
      wrapper.run(r);
    };
    step(1), run();  // compiled
    cuda::synchronize(0, stream_->get());
    if (graph) {
      gpu().begin_capture(stream_->get());
      run();
      ASSERT_GT(gpu().end_capture(stream_->get()), 0);
    }
    const uint64_t captured = gpu().last_graph();
    gpu().calls.clear();
    for (int32_t i = 2; i <= 16; ++i) {
      step(i);
      if (graph)
        gpu().launch_graph(captured, stream_->get());
      else
        run();
      gpu().enqueue(stream_->get(), "look", [&, i] { EXPECT_EQ(lengths, 16 + i) << graph; });
    }
    EXPECT_EQ(waits() + gpu().calls["cuCtxSynchronize"] + gpu().calls["cuMemFree_v2"], 0) << graph;
    cuda::synchronize(0, stream_->get());
    EXPECT_TRUE(gpu().faults.empty());
  }
}

/// An eager run() takes the work list of its plan, which the first one makes; another plan has another list.
TEST_F(GraphAttention, ARunDoesNotMakeItsWorkListAgain) {
  gpu().kernel = [](const fake::Launched&) {};
  const Tensor indptr = ints({0, 1, 2, 3}), indices = ints({0, 0, 0}), last_len = ints({16, 16, 16}),
               workspace = Tensor::empty({0}, DType::kU8, kGpu), q = zeros({3, 8, 64}),
               cache = zeros({1, 2, 16, 2, 64}), out = zeros({3, 8, 64});
  BatchDecodeWithPagedKVCacheWrapper wrapper(BatchDecodeInit{.float_workspace_buffer = workspace});
  BatchDecodeRun r{.q = q, .paged_kv_cache = op::PagedKv(cache.view())};
  r.out = out.view();
  for (int plan = 0; plan < 3; ++plan) {
    wrapper.plan(plan_of(indptr, indices, last_len));
    const int64_t before = attention::work_lists_made();
    for (int i = 0; i < 4; ++i) {
      gpu().launches.clear();
      wrapper.run(r);
      EXPECT_EQ(attention::work_lists_made() - before, 1) << "plan " << plan << ", run " << i;
      cuda::synchronize(0, stream_->get());
      ASSERT_EQ(gpu().launches.size(), 1u);
      EXPECT_EQ(gpu().launches[0].config.grid[0], 3u);
    }
  }
}

/// With back ends that take the rows of a request from q: a plan for each number of rows, made once for all parts of a
/// run and for all runs, of which the last eight are kept.
TEST_F(GraphAttention, RunsOfOtherRowsMakeTheirPlanOnce) {
  gpu().kernel = [](const fake::Launched&) {};
  const Tensor indptr = ints({0, 1, 2, 3}), indices = ints({0, 0, 0}), last_len = ints({16, 16, 16}),
               workspace = Tensor::empty({0}, DType::kU8, kGpu), cache = zeros({1, 2, 16, 2, 64});
  BatchDecodeWithPagedKVCacheWrapper wrapper({.float_workspace_buffer = workspace, .backend = "trtllm-gen"});
  struct Made {
    int64_t plans, lists;
    bool operator==(const Made&) const = default;
  };
  const auto made_by = [&](int64_t rows) {
    const Made before{attention::set_work_calls(), attention::work_lists_made()};
    const Tensor q = zeros({3 * rows, 8, 64}), out = zeros({3 * rows, 8, 64});
    gpu().launches.clear();
    wrapper.run({.q = q, .paged_kv_cache = op::PagedKv(cache.view()), .out = out.view()});
    cuda::synchronize(0, stream_->get());
    EXPECT_EQ(gpu().launches.size(), 1u) << rows;
    return Made{attention::set_work_calls() - before.plans, attention::work_lists_made() - before.lists};
  };
  for (int plan = 0; plan < 2; ++plan) {
    wrapper.plan(plan_of(indptr, indices, last_len));
    EXPECT_EQ(made_by(1), (Made{0, 1})) << plan;  // plan()'s own
    EXPECT_EQ(made_by(2), (Made{1, 1})) << plan;
    for (int i = 0; i < 3; ++i)
      for (const int64_t rows : {1, 2}) EXPECT_EQ(made_by(rows), (Made{0, 0})) << plan << ", " << rows;
  }
  for (int64_t rows = 3; rows <= 9; ++rows) EXPECT_EQ(made_by(rows).plans, 1) << rows;
  for (const int64_t rows : {2, 9}) EXPECT_EQ(made_by(rows).plans, 0) << rows;
  EXPECT_EQ(made_by(10).plans, 1);  // in the place of that of 3
  for (const int64_t rows : {2, 4}) EXPECT_EQ(made_by(rows).plans, 0) << rows;
  EXPECT_EQ(made_by(3).plans, 1);
}

/// A run asks how long the longest request is: the plan knows, until its offsets are others.
TEST_F(GraphAttention, APlanKnowsItsLongestRequest) {
  attention::Plan p;
  p.batch_size = 2, p.num_qo_heads = p.num_kv_heads = 1, p.head_dim_qk = p.head_dim_vo = 64;
  p.qo_indptr = ints({0, 3, 4}), p.kv_len = ints({5, 6});
  attention::set_work(p);
  p.qo_indptr.data_as<int32_t>()[1] = 2;  // is not looked at
  EXPECT_EQ(attention::longest_rows(p), 3);
  p.qo_indptr = ints({0, 1, 9});
  EXPECT_EQ(attention::longest_rows(p), 8);
  attention::set_work(p);
  EXPECT_EQ(attention::longest_rows(p), 8);
}

/// Arrays that were sent on one stream, read on another.
TEST_F(GraphAttention, AnotherStreamWaitsForThePlansArrays) {
  const Tensor workspace = Tensor::empty({0}, DType::kU8, kGpu), q = zeros({1, 8, 64}),
               cache = zeros({9, 2, 16, 2, 64}), out = zeros({1, 8, 64}), indptr = ints({0, 2}), pages = ints({7, 8}),
               last_len = ints({5});
  BatchDecodeWithPagedKVCacheWrapper wrapper({.float_workspace_buffer = workspace});
  int32_t length = 0;
  gpu().kernel = [&](const fake::Launched& l) {
    if (l.bytes == sizeof(AttentionCudaParams)) length = first_kv_len(l);
  };
  wrapper.plan(plan_of(indptr, pages, last_len));
  BatchDecodeRun r{.q = q, .paged_kv_cache = op::PagedKv(cache.view())};
  r.out = out.view();
  gpu().calls.clear();
  wrapper.run(r);
  EXPECT_EQ(gpu().calls["cuStreamWaitEvent"], 1);  // as any stream does until the copy is done
  EXPECT_EQ(waits(), 0);
  cuda::Stream other(0);
  Context context = Context::current();
  context.stream = other.get();
  const ContextScope scope(context);
  wrapper.run(r);
  length = 0;
  cuda::synchronize(0, other.get());
  EXPECT_EQ(length, 21);
  cuda::synchronize(0, stream_->get());
}

/// An item for each block that fits, and no more blocks than the GPU holds at once.
TEST_F(GraphAttention, ABatchOfBothKindsIsAPersistentLaunch) {
  const int64_t fits = cuda::device_info(0).sms * 6;  // blocks of 34 KB of shared memory
  for (const auto& [requests, grid] : {std::pair<int32_t, int64_t>{3, 2 * 4}, {fits, fits}}) {
    std::vector<int32_t> rows{0, 20}, pages{0, 1}, keys{16}, ids{0};
    for (int32_t i = 0; i < requests; ++i)
      rows.push_back(rows.back() + 1), pages.push_back(i + 2), keys.push_back(9), ids.push_back(0);
    const Tensor qo = ints(rows), indptr = ints(pages), indices = ints(ids), len = ints(keys),
                 q = zeros({rows.back(), 8, 64}), cache = zeros({1, 2, 16, 2, 64}), out = zeros({rows.back(), 8, 64});
    BatchAttention batch;
    batch.plan({.qo_indptr = qo,
                .kv_indptr = indptr,
                .kv_indices = indices,
                .kv_len_arr = len,
                .num_qo_heads = 8,
                .num_kv_heads = 2,
                .head_dim_qk = 64,
                .head_dim_vo = 64,
                .page_size = 16,
                .q_data_type = DType::kBF16,
                .kv_data_type = DType::kBF16});
    gpu().launches.clear(), gpu().calls.clear();
    BatchAttentionRun run{.q = q, .kv_cache = op::PagedKv(cache.view())};
    run.out = out.view();
    for (int i = 0; i < 3; ++i) batch.run(run);
    EXPECT_LE(gpu().calls["cuOccupancyMaxActiveBlocksPerMultiprocessor"], 1);  // its answer is kept
    cuda::synchronize(0, stream_->get());
    std::vector<int64_t> grids;
    for (const fake::Launched& l : gpu().launches)
      if (l.bytes == sizeof(AttentionPairParams)) grids.push_back(l.config.grid[0]);
    EXPECT_EQ(grids, std::vector<int64_t>(3, grid));
  }
}

/// A captured launch of both kinds has as many blocks as the GPU holds, whatever room its buffers have; each replay
/// finds the tiles of the latest plan, and the counters as the capture left them.
TEST_F(GraphAttention, PodFollowsThePlanOfItsDecodeHalf) {
  const Tensor indptr_buf = Tensor::zeros({3}, DType::kI32, kGpu),
               indices_buf = Tensor::zeros({70000}, DType::kI32, kGpu),
               last_buf = Tensor::zeros({2}, DType::kI32, kGpu), workspace = Tensor::empty({0}, DType::kU8, kGpu),
               q = zeros({2, 8, 64}), cache = zeros({90, 2, 16, 2, 64}), out = zeros({2, 8, 64});
  PODWithPagedKVCacheWrapper pod(PodInit{.float_workspace_buffer = workspace,
                                         .use_cuda_graph = true,
                                         .paged_kv_indptr_buffer = indptr_buf,
                                         .paged_kv_indices_buffer = indices_buf,
                                         .paged_kv_last_page_len_buffer = last_buf});
  const auto plan = [&](const std::vector<int32_t>& indptr, const std::vector<int32_t>& last) {
    std::vector<int32_t> pages;
    for (int32_t i = 0; i < indptr.back(); ++i) pages.push_back(89 - i);
    const Tensor a = ints(indptr), b = ints(pages), c = ints(last);
    pod.plan(plan_of<PodPlan>(a, b, c));
  };
  plan({0, 2, 5}, {9, 16});
  PodRun run{.q_p = q_, .k_p = k_, .v_p = k_, .q_d = q, .paged_kv_cache_d = op::PagedKv(cache.view())};
  run.out_p = out_.view(), run.out_d = out.view();
  const auto launched = capture([&] { pod.run(run); }, sizeof(AttentionPairParams));
  ASSERT_EQ(launched.size(), 1u);
  const uint64_t captured = gpu().last_graph();
  const auto& both = *reinterpret_cast<const AttentionPairParams*>(launched[0].params);
  const auto& grid = launched[0].config.grid;
  const uint32_t blocks = static_cast<uint32_t>(cuda::device_info(0).sms) * 8;  // of 27 KB of shared memory each
  EXPECT_GT(both.turns.items[0], blocks);
  EXPECT_EQ(std::vector(grid, grid + 3), (std::vector<unsigned>{blocks, 1, 1}));
  EXPECT_EQ(both.turns.first[0] + both.turns.first[1], blocks);
  EXPECT_EQ(both.turns.items[1], 2u);  // a tile for each KV head
  std::vector<int> counts;
  int32_t lengths = 0;
  gpu().kernel = [&](const fake::Launched& l) {
    if (l.bytes != sizeof(AttentionPairParams)) return;
    const auto& p = *reinterpret_cast<const AttentionPairParams*>(l.params);
    const auto* tiles = static_cast<const AttentionTile*>(fake::host(p.few.tiles));
    const size_t room = p.turns.items[0] / p.turns.heads;
    counts.push_back(
        static_cast<int>(std::find_if(tiles, tiles + room, [](const AttentionTile& t) { return !t.rows; }) - tiles));
    lengths = first_kv_len(p.few);
    const auto* counters = static_cast<const uint32_t*>(fake::host(p.turns.counters));
    EXPECT_EQ(std::vector(counters, counters + cuda::kTurnCounters), std::vector<uint32_t>(cuda::kTurnCounters));
  };
  for (const auto& [first, keys] : {std::pair{80, 79 * 16 + 4}, {2, 16 + 4}, {33, 32 * 16 + 4}}) {
    plan({0, first, first + 3}, {4, 1});
    gpu().launch_graph(captured, stream_->get());
    cuda::synchronize(0, stream_->get());
    EXPECT_EQ(lengths, keys);
  }
  EXPECT_EQ(counts, (std::vector{6, 2, 4}));  // one in 256 keys, and the second request's
  gpu().kernel = nullptr;
  plan({0, 80, 83}, {4, 1});
  expect_tiles(both.many, both.turns.items[1] / both.turns.heads);
  EXPECT_EQ(both.few.a.kv_indices, indices_buf.data());
  EXPECT_EQ(first_kv_len(both.few), 79 * 16 + 4);
}

}  // namespace
}  // namespace flashinfer
