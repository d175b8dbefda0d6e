// SPDX-License-Identifier: Apache-2.0
// 8-bit queries: exact, with a scale for each head, and what a plan says of types.
#include <cstring>

#include "attention_batch.h"
#include "flashinfer/ops/cascade/op.h"
#include "flashinfer/ops/mla/op.h"
#include "flashinfer/ops/pod/op.h"
#include "flashinfer/ops/sparse/op.h"
#include "tests/ops/errors.h"

namespace flashinfer::attention_test {
namespace {

constexpr ErrorKind kValue = ErrorKind::kValueError, kNot = ErrorKind::kNotImplementedError,
                    kType = ErrorKind::kTypeError;
constexpr DType kE4 = DType::kF8E4M3;

Features fp8() {
  Features s;
  s.q = s.kv = kE4, s.mask = "causal", s.qo = {20, 3, 1, 9, 0, 1};
  return s;
}
Tensor as_bf16(const Tensor& t) {
  Tensor x = Tensor::empty({t.size(0), t.size(1), t.size(2)}, DType::kBF16);
  for (int64_t i = 0; i < t.numel(); ++i) ref::store_element(x.view(), i, ref::load_element(t.view(), i));
  return x;
}
void expect_same_bits(const Tensor& a, const Tensor& b) {
  ASSERT_EQ(a.nbytes(), b.nbytes());
  EXPECT_EQ(a.dtype(), b.dtype());
  EXPECT_EQ(std::memcmp(a.data(), b.data(), static_cast<size_t>(a.nbytes())), 0);
}
Tensor scales(std::initializer_list<float> v) {
  const std::vector<float> x(v);
  return Tensor::copy_of(std::span<const float>(x), {static_cast<int64_t>(x.size())});
}
op::Value list(std::initializer_list<op::Value> items) {
  op::ListValue l;
  l.items = items;
  return op::Value(std::move(l));
}

TEST(AttentionFp8Query, IsTheSixteenBitQueryOfTheSameValues) {
  const Batch b(fp8());
  const Tensor wide = as_bf16(b.q);
  BatchPrefillWithPagedKVCacheWrapper w(b.workspace);
  w.plan(b.plan());
  const std::pair<Tensor, Tensor> narrow = w.run(b.run());
  EXPECT_EQ(narrow.first.dtype(), DType::kBF16);
  BatchPrefillPlan p = b.plan();
  p.q_data_type = DType::kBF16;
  w.plan(p);
  BatchPrefillRun r = b.run();
  r.q = wide;
  const std::pair<Tensor, Tensor> sixteen = w.run(r);
  expect_same_bits(narrow.first, sixteen.first);
  expect_same_bits(narrow.second, sixteen.second);
}

TEST(AttentionFp8Query, AScaleForEachHeadByPosition) {
  const Batch b(fp8());
  const Tensor q = scales({0.5f, 2.0f, 1.25f, 0.1f}), k = scales({3.0f, 0.7f}), v = scales({2.0f, 0.25f}),
               even_q = scales({0.5f, 0.5f, 0.5f, 0.5f}), even_k = scales({3.0f, 3.0f});
  BatchPrefillWithPagedKVCacheWrapper w(b.workspace);
  w.plan(b.plan());
  const std::pair<Tensor, Tensor> plain = w.run(b.run());
  for (const op::Value& args : {list({q, k, v}), list({even_q, even_k, v}), list({q, op::Value(), op::Value()})}) {
    BatchPrefillRun r = b.run();
    r.args = args, r.q_scale = 2.0;
    expect_reference(b.s, [&]() -> std::pair<Tensor, Tensor> { return w.run(r); });
    const std::pair<Tensor, Tensor> scaled = w.run(r);
    EXPECT_FALSE(cases::compare(scaled.first.view(), plain.first.view(), 1e-2, 1e-2).equal);
    EXPECT_FALSE(cases::compare(scaled.second.view(), plain.second.view(), 1e-2, 1e-2).equal);
  }
  // One scale for all heads is the number of the same value.
  BatchPrefillRun tensors = b.run(), numbers = b.run();
  tensors.args = list({even_q, even_k, op::Value()}), numbers.q_scale = 0.5, numbers.k_scale = 3.0;
  const std::pair<Tensor, Tensor> x = w.run(tensors), y = w.run(numbers);
  expect_same_bits(x.first, y.first);
  expect_same_bits(x.second, y.second);
}

TEST(AttentionFp8Query, WrongScalesAreRejected) {
  const Batch b(fp8());
  const Tensor q = scales({1, 1, 1, 1}), k = scales({1, 1}), bytes = Tensor::zeros({4}, DType::kU8);
  BatchPrefillWithPagedKVCacheWrapper w(b.workspace);
  w.plan(b.plan());
  const auto run = [&](op::Value args, ErrorKind kind, const char* part) {
    BatchPrefillRun r = b.run();
    r.args = std::move(args);
    expect_error(kind, part, [&] { w.run(r); });
  };
  run(list({q, k}), kType, "there are 2 additional arguments, but an 8-bit q has three: scale_q, scale_k, scale_v");
  run(list({q, 1.0, k}), kType, "additional argument 1 must be a tensor (scale_q, scale_k, scale_v), but is float");
  run(list({k, k, k}), kValue, "scale_q is float32[2], but must be float32[4]");
  run(list({q, k, q}), kValue, "scale_v is float32[4], but must be float32[2]");
  run(list({bytes, k, k}), kValue, "scale_q is uint8[4], but must be float32[4]");
  Features s = fp8();
  s.q = DType::kBF16;
  const Batch wide(s);
  w.plan(wide.plan());
  BatchPrefillRun r = wide.run();
  r.args = list({q, k, k});
  expect_error(kType, "3 additional arguments were given, but there are no jit_args that declare any",
               [&] { w.run(r); });
}

TEST(AttentionFp8Query, EightBitOutputsThatThePlanHasNotAreRejected) {
  const Batch b(fp8());
  BatchPrefillWithPagedKVCacheWrapper w(b.workspace);
  BatchPrefillPlan p = b.plan();
  p.o_data_type = DType::kF8E5M2;
  expect_error(kValue, "o_data_type is float8_e5m2, but must be", [&] { w.plan(p); });
  w.plan(b.plan());
  BatchPrefillRun r = b.run();
  const Tensor out = Tensor::empty({b.q.size(0), b.s.hq, b.s.dim}, kE4);
  r.out = out;
  expect_error(kValue, "out.dtype is float8_e4m3fn", [&] { w.run(r); });
  const Tensor tables = Tensor::zeros({1, 1}, DType::kI32), lengths = ints({16}),
               q = Tensor::zeros({1, 4, 64}, DType::kF8E5M2), kv = Tensor::zeros({1, 2, 2, 16, 64}, kE4);
  expect_error(kValue, "out_dtype is None, which means query's, float8_e5m2", [&] {
    trtllm_batch_decode_with_kv_cache({.query = q,
                                       .kv_cache = kv,
                                       .workspace_buffer = b.workspace,
                                       .block_tables = tables,
                                       .seq_lens = lengths,
                                       .max_seq_len = 16});
  });
}

TEST(AttentionFp8Query, DataTypeIsTheCachesWhereQHasItsOwn) {
  const Tensor indptr = ints({0, 1}), indices = ints({0}), last = ints({16}),
               workspace = Tensor::empty({0}, DType::kU8);
  BatchDecodeWithPagedKVCacheWrapper w(workspace);
  w.plan({.indptr = indptr,
          .indices = indices,
          .last_page_len = last,
          .num_qo_heads = 4,
          .num_kv_heads = 2,
          .head_dim = 64,
          .page_size = 16,
          .q_data_type = DType::kBF16,
          .data_type = kE4});
  const Tensor q = Tensor::zeros({1, 4, 64}, DType::kBF16), kv = Tensor::zeros({1, 2, 16, 2, 64}, kE4);
  EXPECT_EQ(Tensor(w.run({.q = q, .paged_kv_cache = kv})).dtype(), DType::kBF16);
}

TEST(AttentionFp8Query, ANvfp4CacheIsRejectedByPlansWhoseRunHasNoScales) {
  const Tensor one = ints({0, 1}), page = ints({0}), last = ints({16}), workspace = Tensor::empty({0}, DType::kU8);
  const char* part = "kv_data_type=uint8 is not supported: an NVFP4 cache needs kv_cache_sf, which run() does not take";
  PODWithPagedKVCacheWrapper pod(workspace);
  expect_error(kNot, part, [&] {
    pod.plan({.indptr = one,
              .indices = page,
              .last_page_len = last,
              .num_qo_heads = 4,
              .num_kv_heads = 2,
              .head_dim = 64,
              .page_size = 16,
              .kv_data_type = DType::kU8});
  });
  BatchPODWithPagedKVCacheWrapper both(workspace);
  expect_error(kNot, part, [&] {
    both.plan({.qo_indptr_p = one,
               .kv_indptr_p = one,
               .kv_indices_p = page,
               .last_page_len_p = last,
               .qo_indptr_d = one,
               .kv_indptr_d = one,
               .kv_indices_d = page,
               .last_page_len_d = last,
               .num_qo_heads = 4,
               .num_kv_heads = 2,
               .head_dim = 64,
               .page_size = 16,
               .data_type = DType::kU8});
  });
  BlockSparseAttentionWrapper block(workspace);
  expect_error(kNot, part, [&] {
    block.plan({.indptr = one,
                .indices = page,
                .M = 8,
                .N = 16,
                .R = 8,
                .C = 16,
                .num_qo_heads = 4,
                .num_kv_heads = 2,
                .head_dim = 64,
                .kv_data_type = DType::kU8});
  });
  VariableBlockSparseAttentionWrapper variable(workspace);
  const Tensor map = Tensor::zeros({2, 1, 1}, DType::kBool), sizes = Tensor::zeros({2, 1}, DType::kI32);
  expect_error(kNot, part, [&] {
    variable.plan({.block_mask_map = map,
                   .block_row_sz = sizes,
                   .block_col_sz = sizes,
                   .num_qo_heads = 4,
                   .num_kv_heads = 2,
                   .head_dim = 64,
                   .kv_data_type = DType::kU8});
  });
  MultiLevelCascadeAttentionWrapper levels({.num_levels = 1, .float_workspace_buffer = workspace});
  expect_error(kNot, part, [&] {
    levels.plan({.qo_indptr_arr = {one},
                 .paged_kv_indptr_arr = {one},
                 .paged_kv_indices_arr = {page},
                 .paged_kv_last_page_len = {last},
                 .num_qo_heads = 4,
                 .num_kv_heads = 2,
                 .head_dim = 64,
                 .page_size = 16,
                 .kv_data_type = DType::kU8});
  });
  BatchDecodeWithSharedPrefixPagedKVCacheWrapper shared(workspace);
  expect_error(kNot, part, [&] {
    shared.begin_forward({.unique_kv_indptr = one,
                          .unique_kv_indices = page,
                          .unique_kv_last_page_len = last,
                          .num_qo_heads = 4,
                          .num_kv_heads = 2,
                          .head_dim = 64,
                          .page_size = 16,
                          .data_type = DType::kU8});
  });
}

TEST(HeadScales, DifferentOnesOfF32Queries) {
  const Tensor q = random_tensor<float>({5, 4, 32}, 1), k = random_tensor<float>({37, 2, 32}, 2);
  const Tensor scale_q = scales({0.5f, 1.0f, 2.0f, 3.0f});
  const auto run = [&] { return Tensor(single_prefill_with_kv_cache({.q = q, .k = k, .v = k, .scale_q = scale_q})); };
  const Tensor got = run();
  const op::ForceCandidate reference("reference");
  const Tensor want = run();
  for (int64_t i = 0; i < want.numel(); ++i) ASSERT_NEAR(got.data_as<float>()[i], want.data_as<float>()[i], 1e-5) << i;
}

}  // namespace
}  // namespace flashinfer::attention_test
