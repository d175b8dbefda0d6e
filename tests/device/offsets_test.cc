// SPDX-License-Identifier: Apache-2.0
// Strides and offsets beyond 2^31 elements, on the emulator: large blocks of its memory are sparse, so that only the
// pages that a kernel touches take memory. A kernel that computed an address in 32 bits would read another place, which
// holds zeros, or lie out of bounds.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "flashinfer/core/transfer.h"
#include "flashinfer/ops/activation/op.h"
#include "flashinfer/ops/attention/op.h"
#include "flashinfer/ops/norm/op.h"
#include "flashinfer/ops/page/op.h"

namespace flashinfer {
namespace {

constexpr Device kEmulator{DeviceType::kEmu, 0};
constexpr int64_t kFar = (int64_t{1} << 31) + 8;  // elements between rows

std::mt19937 random_bits(7);
void fill(const TensorView& row) {
  std::normal_distribution<float> d;
  for (int64_t i = 0; i < row.numel(); ++i) row.data_as<bf16_t>()[i] = bf16_t(d(random_bits));
}
/// [rows, d] with rows `kFar` elements apart.
struct FarRows {
  Tensor memory;
  TensorView view;
  FarRows(int64_t rows, int64_t d) : memory(Tensor::empty({(rows - 1) * kFar + d}, DType::kBF16, kEmulator)) {
    const int64_t shape[] = {rows, d}, strides[] = {kFar, 1};
    view = TensorView(memory.data(), DType::kBF16, shape, strides, kEmulator);
  }
};
/// The same rows without gaps.
Tensor compact(const TensorView& v) {
  Tensor t = Tensor::empty({v.size(0), v.size(1)}, v.dtype(), kEmulator);
  for (int64_t r = 0; r < v.size(0); ++r)
    std::memcpy(t.data_as<bf16_t>() + r * v.size(1), v.data_as<bf16_t>() + r * v.stride(0),
                static_cast<size_t>(v.size(1)) * 2);
  return t;
}
void expect_same(const TensorView& a, const TensorView& b) {
  ASSERT_EQ(a.numel(), b.numel());
  ASSERT_TRUE(a.is_contiguous() && b.is_contiguous());
  EXPECT_EQ(std::memcmp(a.data(), b.data(), static_cast<size_t>(a.nbytes())), 0);
}

TEST(FarOffsets, Norm) {
  const FarRows x(3, 64), y(3, 64);
  for (int64_t r = 0; r < 3; ++r) fill(x.view.select(0, r));
  const Tensor w = Tensor::empty({64}, DType::kBF16, kEmulator);
  fill(w);
  const Tensor near = compact(x.view), want = rmsnorm({.input = near, .weight = w});
  rmsnorm({.input = x.view, .weight = w, .out = y.view});
  expect_same(compact(y.view).view(), want.view());
}

TEST(FarOffsets, Activation) {
  const FarRows x(3, 128);
  for (int64_t r = 0; r < 3; ++r) fill(x.view.select(0, r));
  const Tensor near = compact(x.view);
  expect_same(silu_and_mul({.input = x.view}).view(), silu_and_mul({.input = near}).view());
}

/// A pool of 2.2 million pages: 9 * 10^9 elements, of which a handful is used.
class Pool : public ::testing::Test {
 protected:
  static constexpr int64_t kPages = 2200000, kPage = 16, kHeads = 2, kDim = 64;
  static Tensor pool(DType t) { return Tensor::empty({kPages, 2, kPage, kHeads, kDim}, t, kEmulator); }
  static Tensor ints(const std::vector<int32_t>& v) {
    return to_device(TensorView(std::span<const int32_t>(v)), kEmulator);
  }
};

TEST_F(Pool, IsAppendedToAndRead) {
  const Tensor far = pool(DType::kBF16), near = Tensor::empty({4, 2, kPage, kHeads, kDim}, DType::kBF16, kEmulator);
  std::memset(near.data(), 0, static_cast<size_t>(near.nbytes()));
  const std::vector<int32_t> far_pages{2199999, 1048577, 524289}, near_pages{3, 1, 2};
  const Tensor k = Tensor::empty({40, kHeads, kDim}, DType::kBF16, kEmulator),
               v = Tensor::empty({40, kHeads, kDim}, DType::kBF16, kEmulator),
               q = Tensor::empty({1, 8, kDim}, DType::kBF16, kEmulator);
  for (const Tensor& t : {k, v, q}) fill(t);
  std::vector<int32_t> positions(40), zeros(40);
  for (int32_t i = 0; i < 40; ++i) positions[static_cast<size_t>(i)] = i;
  const Tensor batch = ints(zeros), position = ints(positions), indptr = ints({0, 3}), last = ints({8}),
               workspace = Tensor::empty({0}, DType::kU8, kEmulator);
  Tensor out[2];
  for (const bool is_far : {false, true}) {
    const Tensor pages = ints(is_far ? far_pages : near_pages);
    const Tensor& cache = is_far ? far : near;
    append_paged_kv_cache({.append_key = k,
                           .append_value = v,
                           .batch_indices = batch,
                           .positions = position,
                           .paged_kv_cache = op::PagedKv(cache.view()),
                           .kv_indices = pages,
                           .kv_indptr = indptr,
                           .kv_last_page_len = last});
    BatchDecodeWithPagedKVCacheWrapper decode({.float_workspace_buffer = workspace});
    decode.plan({.indptr = indptr,
                 .indices = pages,
                 .last_page_len = last,
                 .num_qo_heads = 8,
                 .num_kv_heads = kHeads,
                 .head_dim = kDim,
                 .page_size = kPage,
                 .q_data_type = DType::kBF16});
    out[is_far] = decode.run({.q = q, .paged_kv_cache = op::PagedKv(cache.view())});
  }
  for (size_t i = 0; i < 3; ++i) expect_same(far.view().select(0, far_pages[i]), near.view().select(0, near_pages[i]));
  expect_same(out[1].view(), out[0].view());
}

}  // namespace
}  // namespace flashinfer
