// SPDX-License-Identifier: Apache-2.0
// Faults that users of FlashInfer reported in the operators that append to a cache, one test each.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <vector>

#include "flashinfer/core/context.h"
#include "flashinfer/ops/page/op.h"
#include "tests/ops/data.h"
#include "tests/ops/errors.h"

namespace flashinfer {
namespace {

/// bf16 values that differ everywhere.
Tensor counting(std::initializer_list<int64_t> shape) {
  Tensor t = Tensor::empty(shape, DType::kBF16);
  for (int64_t i = 0; i < t.numel(); ++i) t.data_as<bf16_t>()[i] = bf16_t(static_cast<float>(i % 251 - 125) / 16);
  return t;
}

struct Batch {
  Tensor key = counting({3, 2, 64}), value = counting({3, 2, 64});
  Tensor requests = ints<int32_t>({0, 1, -1}), positions = ints<int32_t>({5, 0, 0}), indices = ints<int32_t>({2, 0, 3}),
         indptr = ints<int32_t>({0, 2, 3}), last = ints<int32_t>({2, 1});
  Tensor cache = Tensor::zeros({4, 2, 4, 2, 64}, DType::kBF16);
  Tensor fp4 = Tensor::zeros({4, 2, 4, 2, 32}, DType::kU8), sf = Tensor::zeros({4, 2, 4, 2, 4}, DType::kF8E4M3);
  AppendPagedKvCache plain() {
    return {.append_key = key,
            .append_value = value,
            .batch_indices = requests,
            .positions = positions,
            .paged_kv_cache = cache,
            .kv_indices = indices,
            .kv_indptr = indptr,
            .kv_last_page_len = last};
  }
  Nvfp4AppendPagedKvCache nvfp4() {
    return {.append_key = key,
            .append_value = value,
            .batch_indices = requests,
            .positions = positions,
            .paged_kv_cache = fp4,
            .kv_cache_sf = sf,
            .kv_indices = indices,
            .kv_indptr = indptr,
            .kv_last_page_len = last,
            .k_scale = 0.5,
            .v_scale = 0.5};
  }
};
bool equal(const Tensor& a, const Tensor& b) {
  return a.nbytes() == b.nbytes() && std::memcmp(a.data(), b.data(), static_cast<size_t>(a.nbytes())) == 0;
}

// flashinfer#725, PR#737, quirk 17: int64 indices were read as int32.
TEST(AppendRegression, Int64IndicesMeanWhatInt32Mean) {
  Batch a, b;
  append_paged_kv_cache(a.plain());
  nvfp4_quantize_append_paged_kv_cache(a.nvfp4());
  b.requests = ints<int64_t>({0, 1, -1}), b.positions = ints<int64_t>({5, 0, 0}), b.indices = ints<int64_t>({2, 0, 3});
  b.indptr = ints<int64_t>({0, 2, 3}), b.last = ints<int64_t>({2, 1});
  append_paged_kv_cache(b.plain());
  nvfp4_quantize_append_paged_kv_cache(b.nvfp4());
  EXPECT_TRUE(equal(a.cache, b.cache));
  EXPECT_TRUE(equal(a.fp4, b.fp4));
  EXPECT_TRUE(equal(a.sf, b.sf));
  EXPECT_NE(a.cache.data_as<uint16_t>()[((0 * 2 + 0) * 4 + 1) * 128], 0);
}

// flashinfer#320: last_page_len beyond page_size went unnoticed. Section 4: positions and page ids neither.
TEST(AppendRegression, TablesThatPointElsewhereAreRejected) {
  const auto refused = [](const std::string& part, const std::function<void(Batch&)>& change) {
    Batch b;
    change(b);
    for (const auto& [op, f] :
         {std::pair("append_paged_kv_cache", std::function<void()>([&] { append_paged_kv_cache(b.plain()); })),
          std::pair("nvfp4_quantize_append_paged_kv_cache",
                    std::function<void()>([&] { nvfp4_quantize_append_paged_kv_cache(b.nvfp4()); }))}) {
      const std::string m = message_of(f);
      EXPECT_TRUE(holds(m, std::string("ValueError: ") + op + ": " + part)) << m;
    }
    EXPECT_TRUE(equal(b.cache, Batch().cache) && equal(b.fp4, Batch().fp4) && equal(b.sf, Batch().sf)) << part;
  };
  refused("kv_last_page_len[1] is 5, but must be in 1..4", [](Batch& b) { b.last.data_as<int32_t>()[1] = 5; });
  refused("kv_last_page_len[0] is 0, but must be in 1..4", [](Batch& b) { b.last.data_as<int32_t>()[0] = 0; });
  refused("positions[0] is 8, but request 0 has 2 pages of 4 tokens",
          [](Batch& b) { b.positions.data_as<int32_t>()[0] = 8; });
  refused("kv_indices[2] is 4, but the pool has 4 pages", [](Batch& b) { b.indices.data_as<int32_t>()[2] = 4; });
  refused("batch_indices[0] is 2, but there are 2 requests", [](Batch& b) { b.requests.data_as<int32_t>()[0] = 2; });
}

// Quirk 7: negative batch indices (padding of graphs) were written out of bounds.
TEST(AppendRegression, PaddingWritesNothing) {
  Batch b;
  b.requests = ints<int32_t>({-1, -7, -1});
  b.positions = ints<int32_t>({1 << 30, -5, 0});
  append_paged_kv_cache(b.plain());
  nvfp4_quantize_append_paged_kv_cache(b.nvfp4());
  EXPECT_TRUE(equal(b.cache, Batch().cache) && equal(b.fp4, Batch().fp4) && equal(b.sf, Batch().sf));
}

// vllm PR#7982 and its kin: 16-bit rows copied into an FP8 cache as if they were FP8.
TEST(AppendRegression, AnotherDtypeIsRejectedNotReinterpreted) {
  Batch b;
  b.cache = Tensor::zeros({4, 2, 4, 2, 64}, DType::kF8E4M3);
  const std::string m = message_of([&] { append_paged_kv_cache(b.plain()); });
  EXPECT_TRUE(holds(m, "append_key.dtype is bfloat16, but paged_kv_cache.dtype is float8_e4m3fn")) << m;
}

// ovg-project/kvcached#321: [2, pages, ...] given where [pages, 2, ...] is meant.
TEST(AppendRegression, PlanesOnTheWrongAxisAreRejected) {
  Batch b;
  b.cache = Tensor::zeros({2, 4, 4, 2, 64}, DType::kBF16);
  const std::string m = message_of([&] { append_paged_kv_cache(b.plain()); });
  EXPECT_TRUE(holds(m, "paged_kv_cache.shape[1] is 4, but must be 2 (K and V)")) << m;
  b.sf = Tensor::zeros({2, 4, 4, 2, 4}, DType::kF8E4M3);
  const std::string n = message_of([&] { nvfp4_quantize_append_paged_kv_cache(b.nvfp4()); });
  EXPECT_TRUE(holds(n, "kv_cache_sf.shape[1] is 4, but must be 2 (K and V)")) << n;
}

// flashinfer#506, PR#513: strides of slices, and of K apart from V (vLLM interleaves them by block).
TEST(AppendRegression, KAndVMayHaveDifferentStrides) {
  Batch dense, b;
  append_paged_kv_cache(dense.plain());
  const Tensor k = Tensor::zeros({4, 9, 3, 64}, DType::kBF16), v = Tensor::zeros({4, 2, 4, 96}, DType::kBF16);
  const TensorView kv_k = k.view().slice(1, 0, 4).slice(2, 1, 3);  // NHD within wider pages
  const int64_t shape[] = {4, 4, 2, 64}, stride[] = {2 * 4 * 96, 96, 4 * 96, 1};
  const TensorView kv_v(v.data(), DType::kBF16, shape, stride);  // head-major behind the same axes
  AppendPagedKvCache a = b.plain();
  a.paged_kv_cache = op::PagedKv(kv_k, kv_v);
  append_paged_kv_cache(a);
  for (int64_t page = 0; page < 4; ++page)
    for (int64_t n = 0; n < 4; ++n)
      for (int64_t h = 0; h < 2; ++h) {
        const auto* want = dense.cache.data_as<uint16_t>() + ((page * 2 * 4 + n) * 2 + h) * 64;
        EXPECT_EQ(std::memcmp(k.data_as<uint16_t>() + ((page * 9 + n) * 3 + h + 1) * 64, want, 128), 0);
        EXPECT_EQ(std::memcmp(v.data_as<uint16_t>() + ((page * 2 + h) * 4 + n) * 96, want + 4 * 2 * 64, 128), 0);
      }
}

// flashinfer PR#3136, #3219: 32-bit page times stride lost far pages of large pools.
TEST(AppendRegression, PagesBeyond31BitsAreReached) {
  constexpr int64_t kPages = 3, kPageStride = (int64_t{1} << 30) + 4096;  // elements; page 2 begins past 2^31
  const size_t bytes = static_cast<size_t>(kPages * kPageStride) * 2;
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  Batch b;
  b.indices = ints<int32_t>({0, 2, 1});
  const int64_t shape[] = {kPages, 4, 2, 64}, stride[] = {kPageStride, 128, 64, 1};
  const TensorView far(memory, DType::kBF16, shape, stride);
  const Tensor v = Tensor::zeros({kPages, 4, 2, 64}, DType::kBF16);
  AppendPagedKvCache a = b.plain();
  a.paged_kv_cache = op::PagedKv(far, v);
  append_paged_kv_cache(a);
  EXPECT_EQ(std::memcmp(static_cast<bf16_t*>(memory) + 2 * kPageStride + 128, b.key.data(), 128 * 2), 0);

  const int64_t byte_shape[] = {kPages, 4, 2, 32}, byte_stride[] = {kPageStride, 64, 32, 1};
  const TensorView far_bytes(memory, DType::kU8, byte_shape, byte_stride);
  const Tensor v4 = Tensor::zeros({kPages, 4, 2, 32}, DType::kU8),
               sf = Tensor::zeros({kPages, 2, 4, 2, 4}, DType::kF8E4M3);
  Nvfp4AppendPagedKvCache q = b.nvfp4();
  q.paged_kv_cache = op::PagedKv(far_bytes, v4);
  q.kv_cache_sf = sf;
  nvfp4_quantize_append_paged_kv_cache(q);
  EXPECT_EQ(
      std::memcmp(static_cast<uint8_t*>(memory) + 2 * kPageStride + 64, v4.data_as<uint8_t>() + 2 * 4 * 64 + 64, 64), 0)
      << "K and V were given the same rows and scale";
  munmap(memory, bytes);
}

// flashinfer PR#583, PR#588: a grid over requests left one long request to one worker.
TEST(AppendRegression, OneLongRequestIsSharedByTheThreads) {
  constexpr int64_t kTokens = 2048;
  std::atomic<int64_t> most{0};
  Context context = Context::current();
  context.executor.threads = 4;
  context.executor.self = &most;
  context.executor.run = [](void* self, int64_t n, void (*task)(void*, int64_t), void* arg) {
    auto& seen = *static_cast<std::atomic<int64_t>*>(self);
    seen = std::max(seen.load(), n);
    for (int64_t i = 0; i < n; ++i) task(arg, i);
  };
  ContextScope scope(context);
  const Tensor key = counting({kTokens, 2, 64});
  std::vector<int32_t> request(kTokens, 0), position(kTokens), pages(kTokens / 16);
  for (size_t i = 0; i < position.size(); ++i) position[i] = static_cast<int32_t>(i);
  for (size_t i = 0; i < pages.size(); ++i) pages[i] = static_cast<int32_t>(pages.size() - 1 - i);
  const Tensor b = ints(request), p = ints(position), i = ints(pages), ptr = ints<int32_t>({0, kTokens / 16}),
               last = ints<int32_t>({16}), cache = Tensor::zeros({kTokens / 16, 2, 16, 2, 64}, DType::kBF16),
               fp4 = Tensor::zeros({kTokens / 16, 2, 16, 2, 32}, DType::kU8),
               sf = Tensor::zeros({kTokens / 16, 2, 16, 2, 4}, DType::kU8);
  append_paged_kv_cache({.append_key = key,
                         .append_value = key,
                         .batch_indices = b,
                         .positions = p,
                         .paged_kv_cache = cache,
                         .kv_indices = i,
                         .kv_indptr = ptr,
                         .kv_last_page_len = last});
  EXPECT_GE(most.load(), 8);
  most = 0;
  nvfp4_quantize_append_paged_kv_cache({.append_key = key,
                                        .append_value = key,
                                        .batch_indices = b,
                                        .positions = p,
                                        .paged_kv_cache = fp4,
                                        .kv_cache_sf = sf,
                                        .kv_indices = i,
                                        .kv_indptr = ptr,
                                        .kv_last_page_len = last});
  EXPECT_GE(most.load(), 8);
}

}  // namespace
}  // namespace flashinfer
