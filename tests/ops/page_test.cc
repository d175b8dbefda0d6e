// SPDX-License-Identifier: Apache-2.0
// Errors of the page operators, and that a refused append writes nothing.
#include "flashinfer/ops/page/op.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <vector>

#include "tests/ops/data.h"

namespace flashinfer {
namespace {

struct Append {
  Tensor key = Tensor::zeros({3, 2, 8}, DType::kBF16), value = Tensor::zeros({3, 2, 8}, DType::kBF16);
  Tensor requests = ints({0, 1, -1}), positions = ints({5, 0, 0}), indices = ints({2, 0, 3}), indptr = ints({0, 2, 3}),
         last = ints({2, 1});
  Tensor cache = Tensor::empty({4, 2, 4, 2, 8}, DType::kBF16);
  Append() {
    std::memset(key.data(), 0x11, static_cast<size_t>(key.nbytes()));
    std::memset(value.data(), 0x22, static_cast<size_t>(value.nbytes()));
    std::memset(cache.data(), 0x77, static_cast<size_t>(cache.nbytes()));
  }
  AppendPagedKvCache args() {
    return {.append_key = key,
            .append_value = value,
            .batch_indices = requests,
            .positions = positions,
            .paged_kv_cache = cache,
            .kv_indices = indices,
            .kv_indptr = indptr,
            .kv_last_page_len = last};
  }
  /// Bytes of the cache that are no longer the pattern.
  int64_t changed() const {
    int64_t n = 0;
    for (int64_t i = 0; i < cache.nbytes(); ++i) n += cache.data_as<uint8_t>()[i] != 0x77;
    return n;
  }
};
void expect_refused(const std::string& part, const std::function<void(Append&)>& change) {
  Append a;
  change(a);
  try {
    append_paged_kv_cache(a.args());
    FAIL() << "no error; expected: " << part;
  } catch (const ValueError& e) {
    EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << e.what() << "\nlacks: " << part;
  }
  EXPECT_EQ(a.changed(), 0) << part;
}

TEST(Page, AppendWritesTwoSlotsAndSkipsPadding) {
  Append a;
  append_paged_kv_cache(a.args());
  EXPECT_EQ(a.changed(), 2 * 2 * 2 * 8 * 2);  // two tokens, K and V, two heads of 8 bf16
  const auto* cache = a.cache.data_as<uint8_t>();
  const auto at = [&](int64_t page, int64_t plane, int64_t entry) {
    return cache[((page * 2 + plane) * 4 + entry) * 2 * 8 * 2];
  };
  EXPECT_EQ(at(0, 0, 1), 0x11);  // position 5 of request 0: entry 1 of its second page, which is page 0
  EXPECT_EQ(at(0, 1, 1), 0x22);
  EXPECT_EQ(at(3, 0, 0), 0x11);
}

TEST(Page, AppendRejectsWhatWouldWriteElsewhere) {
  expect_refused("positions[0] is 8, but request 0 has 2 pages of 4 tokens",
                 [](Append& a) { a.positions.data_as<int32_t>()[0] = 8; });
  expect_refused("positions[0] is -1", [](Append& a) { a.positions.data_as<int32_t>()[0] = -1; });
  expect_refused("batch_indices[1] is 2, but there are 2 requests",
                 [](Append& a) { a.requests.data_as<int32_t>()[1] = 2; });
  expect_refused("kv_indices[1] is 4, but the pool has 4 pages",
                 [](Append& a) { a.indices.data_as<int32_t>()[1] = 4; });
  expect_refused("kv_indptr[1] is 9", [](Append& a) { a.indptr.data_as<int32_t>()[1] = 9; });
  expect_refused("kv_indptr[2] is 4, but kv_indices has only 3 entries",
                 [](Append& a) { a.indptr.data_as<int32_t>()[2] = 4; });
  expect_refused("kv_last_page_len[0] is 5, but must be in 1..4 (page_size)",
                 [](Append& a) { a.last.data_as<int32_t>()[0] = 5; });
  expect_refused("append_key.dtype is float16, but paged_kv_cache.dtype is bfloat16",
                 [](Append& a) { a.key = Tensor::zeros({3, 2, 8}, DType::kF16); });
  expect_refused("append_value.shape[2] is 9, but paged_kv_cache has a head dim of 8",
                 [](Append& a) { a.value = Tensor::zeros({3, 2, 9}, DType::kBF16); });
}

TEST(Page, PositionsRejectMoreNewTokensThanTheLength) {
  const Tensor indptr = ints({0, 3}), lens = ints({2});
  EXPECT_THROW(get_batch_indices_positions({.append_indptr = indptr, .seq_lens = lens, .nnz = 3}), ValueError);
  const Tensor enough = ints({3});
  EXPECT_THROW(get_batch_indices_positions({.append_indptr = indptr, .seq_lens = enough, .nnz = 2}),
               ValueError);  // no room for the third
}
TEST(Page, SeqLensRejectABadPageSize) {
  const Tensor indptr = ints({0, 3}), last = ints({2});
  EXPECT_THROW(get_seq_lens({.kv_indptr = indptr, .kv_last_page_len = last, .page_size = 0}), ValueError);
}

}  // namespace
}  // namespace flashinfer
