// SPDX-License-Identifier: Apache-2.0
// MLA's plans and calls with bad or unneeded input; graph mode.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tests/ops/errors.h"
#include "tests/ops/mla_batch.h"

namespace flashinfer::mla_test {
namespace {

template <class F>
void expect_plan_error(ErrorKind kind, const std::string& part, F change) {
  Request r;
  BatchMlaPlan p = r.plan();
  change(p, r);
  expect_error(kind, part, [&] { r.w.plan(p); });
}
template <class F, class G>
void expect_run_error(const std::string& part, F change_plan, G change_run) {
  Request r;
  BatchMlaPlan p = r.plan();
  change_plan(p);
  r.w.plan(p);
  BatchMlaRun a = r.run();
  change_run(a, r);
  expect_error(ErrorKind::kValueError, part, [&] { r.w.run(a); });
}
void as_it_is(BatchMlaPlan&) {}

TEST(MlaPlan, BadPlansAreRejected) {
  constexpr ErrorKind kValue = ErrorKind::kValueError;
  expect_plan_error(kValue, "kv_len_arr[0] is 33, but the request's 2 pages of 16 tokens hold 0..32",
                    [](auto&, Request& r) { r.len.data_as<int32_t>()[0] = 33; });
  expect_plan_error(kValue, "kv_len_arr[0] is -1", [](auto&, Request& r) { r.len.data_as<int32_t>()[0] = -1; });
  expect_plan_error(kValue, "kv_indices[1] is -3, but a page id must be at least 0",
                    [](auto&, Request& r) { r.indices.data_as<int32_t>()[1] = -3; });
  expect_plan_error(kValue, "kv_indptr[1] is 9, but kv_indices has only 2",
                    [](auto&, Request& r) { r.indptr.data_as<int32_t>()[1] = 9; });
  expect_plan_error(kValue, "kv_indptr[1] is -1, but kv_indptr[0] is 0",
                    [](auto&, Request& r) { r.indptr.data_as<int32_t>()[1] = -1; });
  expect_plan_error(kValue, "qo_indptr[0] is 1, but must be 0",
                    [](auto&, Request& r) { r.qo.data_as<int32_t>()[0] = 1; });
  expect_plan_error(kValue, "qo_indptr.shape[0] is 2, but kv_len_arr describes 2 requests",
                    [](auto& p, Request& r) { p.kv_len_arr = r.qo; });
  expect_plan_error(kValue, "kv_indices is missing: a CSR page table has it",
                    [](auto& p, Request&) { p.kv_indices = std::nullopt; });
  expect_plan_error(ErrorKind::kTypeError, "plan() missing required arguments: sm_scale",
                    [](auto& p, Request&) { p.sm_scale = std::nullopt; });
  expect_plan_error(ErrorKind::kTypeError, "plan() requires metadata or flat metadata arguments",
                    [](auto& p, Request&) { p.qo_indptr = p.kv_indptr = p.kv_indices = p.kv_len_arr = std::nullopt; });
  expect_plan_error(kValue, "sm_scale is inf", [](auto& p, Request&) { p.sm_scale = INFINITY; });
  expect_plan_error(kValue, "num_heads is 0", [](auto& p, Request&) { p.num_heads = 0; });
  expect_plan_error(kValue, "head_dim_kpe is -1", [](auto& p, Request&) { p.head_dim_kpe = -1; });
  expect_plan_error(kValue, "q_data_type is uint8", [](auto& p, Request&) { p.q_data_type = DType::kU8; });
  expect_plan_error(kValue, "output_dtype is float8_e4m3fn",
                    [](auto& p, Request&) { p.output_dtype = DType::kF8E4M3; });
  expect_plan_error(kValue, "max_q_len is 2, but request 0 has 3 query tokens",
                    [](auto& p, Request&) { p.max_q_len = 2; });
  expect_plan_error(kValue, "lse_mode is 'base10'", [](auto& p, Request&) { p.lse_mode = "base10"; });
  expect_plan_error(ErrorKind::kTypeError, "metadata is int", [](auto& p, Request&) { p.metadata = 1; });
  expect_plan_error(kValue, "metadata was given, so the page table",
                    [](auto& p, Request&) { p.metadata = op::DictValue{}; });
  Tensor table = Tensor::zeros({1, 2}, DType::kI32);
  expect_plan_error(kValue, "entry 0 of kv_indices and block_tables is 1 and 0",
                    [&](auto& p, Request& r) { p.cum_seq_lens_q = r.qo, p.block_tables = table, p.seq_lens = r.len; });
  const Tensor narrow = Tensor::zeros({1, 1}, DType::kI32);
  expect_plan_error(kValue, "seq_lens[0] is 20, but block_tables has room for 0..16", [&](auto& p, Request& r) {
    p.qo_indptr = p.kv_indptr = p.kv_indices = p.kv_len_arr = std::nullopt;
    p.cum_seq_lens_q = r.qo, p.block_tables = narrow, p.seq_lens = r.len;
  });
  constexpr ErrorKind kNot = ErrorKind::kNotImplementedError;
  expect_plan_error(kNot, "skip_softmax=True is not supported", [](auto& p, Request&) { p.skip_softmax = true; });
  expect_plan_error(kNot, "output_scale='per-tensor' is not supported",
                    [](auto& p, Request&) { p.output_scale = "per-tensor"; });
  expect_plan_error(kNot, "use_profiler=True is not supported", [](auto& p, Request&) { p.use_profiler = true; });
  Tensor workspace = Tensor::empty({0}, DType::kU8);
  expect_error(kNot, "backend='cutile'", [&] { BatchMLAPagedAttentionWrapper w(workspace, "cutile"); });
  expect_error(kValue, "backend is 'fa9'", [&] { BatchMLAPagedAttentionWrapper w(workspace, "fa9"); });
}

TEST(MlaPlan, GraphModeFillsItsBuffersAndKeepsTheBatchSize) {
  Request r;
  Tensor workspace = Tensor::empty({0}, DType::kU8), qo = ints({9, 9}), indptr = ints({9, 9}),
         indices = ints({9, 9, 9}), len = ints({9});
  BatchMlaInit init{.float_workspace_buffer = workspace,
                    .use_cuda_graph = true,
                    .qo_indptr = qo,
                    .kv_indptr = indptr,
                    .kv_indices = indices,
                    .kv_len_arr = len};
  const auto rejected = [&](auto change, const char* part) {
    BatchMlaInit i = init;
    change(i);
    expect_error(ErrorKind::kValueError, part, [&] { BatchMLAPagedAttentionWrapper w(i); });
  };
  rejected([](auto& i) { i.kv_indices = std::nullopt; }, "use_cuda_graph=True needs kv_indices, which is None");
  rejected([](auto& i) { i.use_cuda_graph = false; }, "qo_indptr belongs to use_cuda_graph=True, which is False");
  rejected([&](auto& i) { i.kv_indptr = indices; }, "kv_indptr has 3 entries, but a batch of 1 needs 2");
  BatchMLAPagedAttentionWrapper w(init);
  w.plan(r.plan());
  EXPECT_EQ(indices.data_as<int32_t>()[0], r.indices.data_as<int32_t>()[0]);
  EXPECT_EQ(len.data_as<int32_t>()[0], r.len.data_as<int32_t>()[0]);
  EXPECT_EQ(qo.data_as<int32_t>()[1], r.qo.data_as<int32_t>()[1]);
  r.w.plan(r.plan());
  expect_bits(w.run(r.run()), Tensor(r.w.run(r.run())).view(), "graph mode");
  const Tensor two = ints({0, 1, 3}), pages = ints({0, 1, 2}), lengths = ints({4, 4});
  BatchMlaPlan more = r.plan();
  more.qo_indptr = two, more.kv_indptr = pages, more.kv_len_arr = lengths;
  expect_error(ErrorKind::kValueError, "the batch has 2 requests, but the buffers of use_cuda_graph=True are for 1",
               [&] { w.plan(more); });
}

/// From the arguments themselves, in double precision: the reference of the cases reads the plan, which may be wrong.
TEST(MlaPlan, ResultsAreTheDefinitionOverTheArguments) {
  Request r;
  r.w.plan(r.plan());
  BatchMlaRun a = r.run();
  a.return_lse = true;
  const std::pair<Tensor, Tensor> got = r.w.run(a);
  const auto at = [](const Tensor& t, int64_t i) {
    return static_cast<double>(static_cast<float>(t.data_as<bf16_t>()[i]));
  };
  for (int64_t row = 0; row < 3 * Request::kHeads; ++row) {
    std::vector<double> out(kCkv, 0.0);
    double sum = 0;
    for (int64_t j = 0; j <= row / Request::kHeads + 17; ++j) {
      const int64_t slot = r.indices.data_as<int32_t>()[j / 16] * 16 + j % 16;
      double dot = 0;
      for (int64_t d = 0; d < kCkv; ++d) dot += at(r.q_nope, row * kCkv + d) * at(r.ckv, slot * kCkv + d);
      for (int64_t d = 0; d < kKpe; ++d) dot += at(r.q_pe, row * kKpe + d) * at(r.kpe, slot * kKpe + d);
      const double weight = std::exp(0.1 * dot);
      sum += weight;
      for (int64_t d = 0; d < kCkv; ++d) out[static_cast<size_t>(d)] += weight * at(r.ckv, slot * kCkv + d);
    }
    for (int64_t d = 0; d < kCkv; ++d)
      ASSERT_NEAR(at(got.first, row * kCkv + d), out[static_cast<size_t>(d)] / sum, 0.02) << row << ", " << d;
    ASSERT_NEAR(static_cast<double>(got.second.data_as<float>()[row]), std::log2(sum), 1e-4) << row;
  }
}

TEST(MlaPlan, UnneededPageIdsAreNotLookedAt) {
  Request r;
  r.len.data_as<int32_t>()[0] = 16;  // the keys of the first page
  const Tensor one_page = ints({0, 1});
  BatchMlaPlan plan = r.plan();
  plan.kv_indptr = one_page, plan.kv_indices = r.indices.view().slice(0, 0, 1);
  r.w.plan(plan);
  const Tensor want = r.w.run(r.run());
  for (const int32_t unneeded : {-1, 0, 2, 1 << 30}) {
    r.indices.data_as<int32_t>()[1] = unneeded;
    r.w.plan(r.plan());
    expect_bits(r.w.run(r.run()), want, str("second id ", unneeded));
  }
}

TEST(MlaPlan, ArgumentsThatDifferFromThePlanAreRejected) {
  const Tensor f16 = Tensor::zeros({3, 4, kCkv}, DType::kF16), few = Tensor::zeros({2, 4, kCkv}, DType::kBF16),
               t = Tensor::zeros({4}, DType::kF32);
  const Tensor small = Tensor::zeros({1, 16, kCkv}, DType::kBF16),
               small_kpe = Tensor::zeros({1, 16, kKpe}, DType::kBF16);
  const Tensor page8 = Tensor::zeros({3, 8, kCkv}, DType::kBF16), all = Tensor::zeros({3, 16, kAll + 1}, DType::kBF16);
  expect_run_error("q_nope is float16[3, 4, 96], but plan() was given bfloat16[3, 4, 96]", as_it_is,
                   [&](auto& a, Request&) { a.q_nope = f16; });
  expect_run_error("q_nope is bfloat16[2, 4, 96]", as_it_is, [&](auto& a, Request&) { a.q_nope = few; });
  expect_run_error("q_pe is missing", as_it_is, [&](auto& a, Request&) { a.q_pe = std::nullopt; });
  expect_run_error("ckv_cache is missing", as_it_is, [&](auto& a, Request&) { a.ckv_cache = std::nullopt; });
  expect_run_error("ckv_cache is bfloat16[3, 8, 96]", as_it_is, [&](auto& a, Request&) { a.ckv_cache = page8; });
  expect_run_error("kv_cache was given, so ckv_cache and kpe_cache", as_it_is,
                   [&](auto& a, Request&) { a.kv_cache = op::PagedKv(all); });
  expect_run_error("kv_cache[..., 96:] is bfloat16[3, 16, 33]", as_it_is, [&](auto& a, Request&) {
    a.ckv_cache = a.kpe_cache = std::nullopt;
    a.kv_cache = op::PagedKv(all);
  });
  expect_run_error("kv_indices of plan() go up to 1, but the cache has 1 pages", as_it_is,
                   [&](auto& a, Request&) { a.ckv_cache = small, a.kpe_cache = small_kpe; });
  const std::string differs = "MLA planned run argument ";
  expect_run_error(differs + "sinks was given", as_it_is, [&](auto& a, Request&) { a.sinks = t; });
  expect_run_error(differs + "sinks is missing", [](auto& p) { p.use_sinks = true; }, [](auto&, Request&) {});
  expect_run_error(differs + "ckv_scale was given", as_it_is, [](auto& a, Request&) { a.ckv_scale = 2.0; });
  expect_run_error("o_scale is only supported with the cutlass back end, but backend is 'auto'", as_it_is,
                   [](auto& a, Request&) { a.o_scale = 2.0; });
  expect_run_error(differs + "skip_softmax_threshold_scale_factor", as_it_is,
                   [](auto& a, Request&) { a.skip_softmax_threshold_scale_factor = 2.0; });
  expect_run_error(differs + "return_lse=False", [](auto& p) { p.lse_mode = "base2"; }, [](auto&, Request&) {});
  expect_run_error(
      differs + "return_lse=True, return_lse_base_on_e=True", [](auto& p) { p.lse_mode = "base2"; },
      [](auto& a, Request&) { a.return_lse = a.return_lse_base_on_e = true; });
  const auto kv = [](BatchMlaPlan& p) { p.scale_mode = "kv-per-tensor"; };
  expect_run_error(differs + "ckv_scale or ckv_scale_arr, exactly one", kv, [](auto&, Request&) {});
  expect_run_error(differs + "kpe_scale is missing", kv, [](auto& a, Request&) { a.ckv_scale = 1.0; });
  expect_run_error("ckv_scale is 0, but must be positive", kv,
                   [](auto& a, Request&) { a.ckv_scale = 0.0, a.kpe_scale = 1.0; });
  expect_run_error("ckv_scale_arr is float32[4], but must be [3, 16, 1]", kv,
                   [&](auto& a, Request&) { a.ckv_scale_arr = t, a.kpe_scale = 1.0; });
  const auto bmm = [](BatchMlaPlan& p) { p.scale_mode = "bmm-tensor"; };
  expect_run_error(differs + "bmm1_scale is missing", bmm, [](auto&, Request&) {});
  expect_run_error(differs + "bmm1_scale is a number", bmm,
                   [](auto& a, Request&) { a.bmm1_scale = 1.0, a.bmm2_scale = 1.0; });
  expect_run_error(
      "out.dtype is bfloat16, but must be float32", [](auto& p) { p.output_dtype = DType::kF32; },
      [](auto& a, Request& r) { a.out = r.q_nope; });
  Request r;
  expect_error(ErrorKind::kRuntimeError, "plan() has not been called", [&] { r.w.run(r.run()); });
}

TEST(MlaPlan, AppendIsRejectedAsAWholeOrWritesItsRows) {
  Tensor ckv = Tensor::zeros({3, 4, 8}, DType::kF32), kpe = Tensor::zeros({3, 4, 2}, DType::kF32);
  const Tensor rows_ckv = random_tensor<float>({2, 8}, 1), rows_kpe = random_tensor<float>({2, 2}, 2),
               request = ints({0, -7});
  const Tensor indices = ints({2, 0}), indptr = ints({0, 2}), last = ints({2});
  Tensor positions = ints({5, 99});
  auto append = [&] {
    append_paged_mla_kv_cache({.append_ckv = rows_ckv,
                               .append_kpe = rows_kpe,
                               .batch_indices = request,
                               .positions = positions,
                               .ckv_cache = ckv,
                               .kpe_cache = kpe,
                               .kv_indices = indices,
                               .kv_indptr = indptr,
                               .kv_last_page_len = last});
  };
  positions.data_as<int32_t>()[0] = 8;
  expect_error(ErrorKind::kValueError, "positions[0] is 8, but request 0 has 2 pages of 4 tokens", append);
  for (float x : ckv.span<float>()) ASSERT_EQ(x, 0);
  positions.data_as<int32_t>()[0] = 5;
  append();
  expect_bits(ckv.view().select(0, 0).select(0, 1), rows_ckv.view().select(0, 0), "ckv");
  expect_bits(kpe.view().select(0, 0).select(0, 1), rows_kpe.view().select(0, 0), "kpe");
  indices.data_as<int32_t>()[1] = 3;
  expect_error(ErrorKind::kValueError, "kv_indices[1] is 3, but the pool has 3 pages", append);
}

}  // namespace
}  // namespace flashinfer::mla_test
