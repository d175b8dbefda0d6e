// SPDX-License-Identifier: Apache-2.0
// Attention without plan() whose tables are on a device: a kernel plans from them. On the emulator, against a wrapper's
// plan of the host, to the bit.
#include <gtest/gtest.h>

#include <limits>

#include "flashinfer/jit/emulator.h"
#include "graph_plan.h"

namespace flashinfer::graph_plan_test {
namespace {

/// Requests with pages in a dense table, scattered.
struct Dense {
  int64_t requests, width;
  Tensor pages, lengths;  // on the device
  std::vector<int32_t> indptr{0}, indices, last;

  Dense(const std::vector<int32_t>& keys, int64_t width) : requests(static_cast<int64_t>(keys.size())), width(width) {
    std::mt19937 random(7);
    Tensor table = Tensor::empty({requests, width}, DType::kI32);
    for (int32_t& p : table.span<int32_t>()) p = static_cast<int32_t>(random() % kPages);
    for (int64_t b = 0; b < requests; ++b) {
      const int32_t n = keys[static_cast<size_t>(b)];
      const auto used = static_cast<int32_t>(ceil_div(n, kPage));
      for (int32_t i = 0; i < used; ++i) indices.push_back(table.span<int32_t>()[static_cast<size_t>(b * width + i)]);
      indptr.push_back(indptr.back() + used), last.push_back(n ? (n - 1) % kPage + 1 : 1);
    }
    pages = there(table), lengths = there(ints(keys));
  }
};
const Tensor& workspace() {
  static const Tensor& t = *new Tensor(Tensor::empty({0}, DType::kU8, kEmulator));
  return t;
}
TrtllmBatchDecode decode_of(const Dense& d, const Tensor& q) {
  TrtllmBatchDecode a{.query = q, .kv_cache = op::PagedKv(cache().view())};
  a.workspace_buffer = workspace(), a.block_tables = d.pages, a.seq_lens = d.lengths;
  a.max_seq_len = d.width * kPage, a.bmm1_scale = 0.125, a.kv_layout = "NHD", a.return_lse = true;
  return a;
}
/// What BatchPrefillWithPagedKVCacheWrapper gives for the same rows.
AttentionResult wrapper_result(const Dense& d, const Tensor& q, const std::vector<int32_t>& rows) {
  BatchPrefillWithPagedKVCacheWrapper w({.float_workspace_buffer = workspace()});
  const Tensor qo = ints(rows), indptr = ints(d.indptr), indices = ints(d.indices), last = ints(d.last);
  BatchPrefillPlan plan{.qo_indptr = qo,
                        .paged_kv_indptr = indptr,
                        .paged_kv_indices = indices,
                        .paged_kv_last_page_len = last,
                        .num_qo_heads = kHeads,
                        .num_kv_heads = kKvHeads,
                        .head_dim_qk = kDim,
                        .page_size = kPage};
  plan.causal = true, plan.sm_scale = 0.125, plan.q_data_type = DType::kF16;
  w.plan(plan);
  return w.run({.q = q, .paged_kv_cache = op::PagedKv(cache().view()), .return_lse = true});
}

/// Whole and cut requests, an empty one, more requests than the kernel has threads.
TEST(NoPlanOnDevice, DecodeGivesTheBitsOfAPlan) {
  std::vector<int32_t> many(300);
  for (size_t b = 0; b < many.size(); ++b) many[b] = static_cast<int32_t>(b * 37 % 290);
  for (const std::vector<int32_t>& keys : {std::vector<int32_t>{600, 0, 256, 257}, many}) {
    const Dense d(keys, keys.size() > 4 ? 19 : 40);
    const Tensor q = normal({d.requests, kHeads, kDim}, 2);
    std::vector<int32_t> rows(keys.size() + 1);
    for (size_t b = 0; b < rows.size(); ++b) rows[b] = static_cast<int32_t>(b);
    const AttentionResult want = wrapper_result(d, q, rows);
    for (uint64_t seed = 0; seed < 4; ++seed) {
      const jit::Emulation schedule(seed);
      const AttentionResult got = trtllm_batch_decode_with_kv_cache(decode_of(d, q));
      expect_same(got[0], want[0]), expect_same(got[1], want[1]);
    }
  }
}

/// Requests of few and of many rows, cut and whole, in one call.
TEST(NoPlanOnDevice, ContextGivesTheBitsOfAPlan) {
  const std::vector<int32_t> keys{300, 40, 0, 600, 90}, rows{0, 3, 43, 43, 44, 134};
  const Dense d(keys, 40);
  const Tensor q = normal({rows.back(), kHeads, kDim}, 3), first = there(ints(rows));
  const AttentionResult want = wrapper_result(d, q, rows);
  for (uint64_t seed = 0; seed < 4; ++seed) {
    const jit::Emulation schedule(seed);
    TrtllmBatchContext a{.query = q, .kv_cache = op::PagedKv(cache().view())};
    a.workspace_buffer = workspace(), a.block_tables = d.pages, a.seq_lens = d.lengths, a.cum_seq_lens_q = first;
    a.cum_seq_lens_kv = first;  // not read
    a.max_q_len = 90, a.max_kv_len = 600, a.batch_size = d.requests, a.bmm1_scale = 0.125, a.kv_layout = "NHD";
    a.return_lse = true;
    const AttentionResult got = trtllm_batch_context_with_kv_cache(a);
    expect_same(got[0], want[0]), expect_same(got[1], want[1]);
  }
}

/// Tables of 64 bits and with gaps are copied by the kernel; scales stay on the device.
TEST(NoPlanOnDevice, OtherTablesAndScalesGiveTheSameBits) {
  const Dense d({600, 31, 256, 1}, 40);
  const Tensor q = normal({d.requests, kHeads, kDim}, 2);
  const AttentionResult want = trtllm_batch_decode_with_kv_cache(decode_of(d, q));
  const std::vector<int32_t> page = values(d.pages.view()), length = values(d.lengths.view());
  Tensor wide = Tensor::zeros({d.requests, 2 * d.width}, DType::kI64), wide_lengths = Tensor::zeros({8}, DType::kU32);
  for (int64_t b = 0; b < d.requests; ++b) {
    for (int64_t i = 0; i < d.width; ++i)
      wide.data_as<int64_t>()[(b * d.width + i) * 2] = page[static_cast<size_t>(b * d.width + i)];
    wide_lengths.data_as<uint32_t>()[2 * b] = static_cast<uint32_t>(length[static_cast<size_t>(b)]);
  }
  const Tensor there_wide = there(wide), there_lengths = there(wide_lengths);
  const int64_t shape[] = {d.requests, d.width}, strides[] = {2 * d.width, 2}, stride[] = {2};
  TrtllmBatchDecode a = decode_of(d, q);
  a.block_tables = TensorView(there_wide.data(), DType::kI64, shape, strides, kEmulator);
  a.seq_lens = TensorView(there_lengths.data(), DType::kU32, std::span(shape).first(1), stride, kEmulator);
  const AttentionResult got = trtllm_batch_decode_with_kv_cache(a);
  expect_same(got[0], want[0]), expect_same(got[1], want[1]);

  Tensor one = Tensor::empty({1}, DType::kF32);
  one.data_as<float>()[0] = 2;
  const Tensor two = there(one);
  TrtllmBatchDecode scaled = decode_of(d, q), number = decode_of(d, q);
  scaled.bmm2_scale = two.view(), number.bmm2_scale = 2.0;
  expect_same(trtllm_batch_decode_with_kv_cache(scaled)[0], trtllm_batch_decode_with_kv_cache(number)[0]);
}

/// Pages of V that lie in another order than those of K: on tensor cores and without them, tables of both types.
TEST(NoPlanOnDevice, PagesOfVMayLieAnywhere) {
  const Dense d({600, 31, 0, 256, 1}, 40);
  const Tensor k = Tensor::clone(cache().view().select(1, 0)), v = Tensor::clone(cache().view().select(1, 1)),
               moved = Tensor::empty(v.shape(), v.dtype(), kEmulator);
  const auto to = [](int64_t page) { return (page * 37 + 5) % kPages; };
  const int64_t bytes = v.nbytes() / kPages;
  for (int64_t p = 0; p < kPages; ++p)
    std::memcpy(moved.data_as<char>() + to(p) * bytes, v.data_as<char>() + p * bytes, static_cast<size_t>(bytes));
  const std::vector<int32_t> page = values(d.pages.view());
  Tensor both = Tensor::empty({d.requests, 2, d.width}, DType::kI32), wide = Tensor::empty(both.shape(), DType::kI64);
  for (int64_t i = 0; i < both.numel(); ++i) {
    const int32_t of_k = page[static_cast<size_t>(i / (2 * d.width) * d.width + i % d.width)];
    const auto id = i / d.width % 2 == 0 ? of_k : static_cast<int32_t>(to(of_k));
    both.data_as<int32_t>()[i] = id, wide.data_as<int64_t>()[i] = id;
  }
  const Tensor there_both = there(both), there_wide = there(wide);
  const Tensor half = normal({d.requests, kHeads, kDim}, 2);
  const Tensor full = there(Tensor::zeros(half.shape(), DType::kF32));
  for (int64_t i = 0; i < full.numel(); ++i) full.data_as<float>()[i] = static_cast<float>(half.data_as<f16_t>()[i]);
  for (const Tensor& q : {half, full}) {
    const AttentionResult want = trtllm_batch_decode_with_kv_cache(decode_of(d, q));
    for (uint64_t seed = 0; seed < 4; ++seed) {
      const jit::Emulation schedule(seed);
      TrtllmBatchDecode a = decode_of(d, q);
      a.kv_cache = op::PagedKv(k.view(), moved.view()), a.uses_shared_paged_kv_idx = false;
      a.block_tables = seed % 2 ? there_both : there_wide;
      const AttentionResult got = trtllm_batch_decode_with_kv_cache(a);
      expect_same(got[0], want[0]), expect_same(got[1], want[1]);
    }
  }
  both.data_as<int32_t>()[d.width + 2] = 100;  // of V, of request 0
  TrtllmBatchDecode a = decode_of(d, half);
  const Tensor bad = there(both);
  a.kv_cache = op::PagedKv(k.view(), moved.view()), a.uses_shared_paged_kv_idx = false, a.block_tables = bad;
  expect_error(kValue, "block_tables[0][1][2] is 100, but the cache has 100 pages",
               [&] { trtllm_batch_decode_with_kv_cache(a); });
}

/// Ragged K and V of DeepSeek's heads; offsets in rows or, as cuDNN counts, in elements; the LSE padded.
TEST(NoPlanOnDevice, RaggedGivesTheBitsOfAPlan) {
  const std::vector<int32_t> rows{0, 20, 23, 23, 90}, keys{0, 300, 300, 301, 391};
  constexpr int64_t kDk = 192, kDv = 128, kRequests = 4;
  const Tensor q = normal({90, kHeads, kDk}, 1), k = normal({391, kKvHeads, kDk}, 2),
               v = normal({391, kKvHeads, kDv}, 3);
  BatchPrefillWithRaggedKVCacheWrapper w({.float_workspace_buffer = workspace()});
  const Tensor qo = ints(rows), kv = ints(keys);
  BatchRaggedPlan plan{.qo_indptr = qo, .kv_indptr = kv, .num_qo_heads = kHeads, .num_kv_heads = kKvHeads};
  plan.head_dim_qk = kDk, plan.head_dim_vo = kDv, plan.causal = true, plan.sm_scale = 0.0625;
  plan.q_data_type = DType::kF16;
  w.plan(plan);
  const AttentionResult want = w.run({.q = q, .k = k, .v = v, .return_lse = true});
  std::vector<int32_t> elements[3];
  for (size_t b = 0; b <= kRequests; ++b)
    elements[0].push_back(rows[b] * static_cast<int32_t>(kHeads * kDk)),
        elements[1].push_back(keys[b] * static_cast<int32_t>(kKvHeads * kDk)),
        elements[2].push_back(keys[b] * static_cast<int32_t>(kKvHeads * kDv));
  const Tensor first_q = there(qo), first_k = there(kv), lengths = there(ints({300, 0, 1, 90})),
               q_lengths = there(ints({20, 3, 0, 67})), in_q = there(ints(elements[0])),
               in_k = there(ints(elements[1])), in_v = there(ints(elements[2]));
  const Tensor q_on_host = ints({20, 3, 0, 67}), k_on_host = ints({300, 0, 1, 90});
  for (uint64_t seed = 0; seed < 4; ++seed) {
    const jit::Emulation schedule(seed);
    TrtllmRaggedDeepseek a{.query = q, .key = k, .value = v};
    a.workspace_buffer = workspace(), a.seq_lens = lengths, a.max_q_len = 67, a.max_kv_len = 300;
    a.bmm1_scale = 0.0625, a.batch_size = kRequests, a.cum_seq_lens_q = first_q, a.cum_seq_lens_kv = first_k;
    a.is_causal = a.return_lse = true;
    if (seed % 2) a.q_seq_lens_cpu = q_on_host, a.kv_seq_lens_cpu = k_on_host;
    const op::Results ragged = trtllm_ragged_attention_deepseek(a);
    expect_same(ragged[0], want[0]), expect_same(ragged[1], want[1]);

    CudnnBatchPrefill c{.q = q, .k_cache = k, .v_cache = v, .scale = 0.0625};
    c.workspace_buffer = workspace(), c.max_token_per_sequence = 70, c.max_sequence_kv = 300, c.causal = true;
    c.return_lse = true, c.actual_seq_lens_q = q_lengths, c.actual_seq_lens_kv = lengths;
    c.batch_offsets_q = in_q, c.batch_offsets_k = in_k, c.batch_offsets_v = in_v;
    const op::Results padded = cudnn_batch_prefill_with_kv_cache(c);
    expect_same(padded[0], want[0]);
    const Tensor lse = to_device(padded[1].view(), kCpu), packed = to_device(want[1].view(), kCpu);
    for (int64_t b = 0; b < kRequests; ++b)
      for (int64_t i = 0; i < 70; ++i)
        for (int64_t h = 0; h < kHeads; ++h) {
          const int64_t at = rows[static_cast<size_t>(b)] + i;
          EXPECT_EQ(lse.data_as<float>()[(b * 70 + i) * kHeads + h], at < rows[static_cast<size_t>(b) + 1]
                                                                         ? packed.data_as<float>()[at * kHeads + h]
                                                                         : -std::numeric_limits<float>::infinity());
        }
  }
}

}  // namespace
}  // namespace flashinfer::graph_plan_test
