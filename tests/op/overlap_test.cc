// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/op/overlap.h"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <vector>

namespace flashinfer::op {
namespace {

/// All bytes of a view, one by one.
std::set<intptr_t> bytes_of(const TensorView& t) {
  std::set<intptr_t> out;
  if (t.numel() == 0) return out;
  std::vector<int64_t> at(static_cast<size_t>(t.rank()));
  for (;;) {
    intptr_t p = reinterpret_cast<intptr_t>(t.data());
    for (int i = 0; i < t.rank(); ++i) p += at[static_cast<size_t>(i)] * t.stride(i) * t.item_size();
    for (int64_t u = 0; u < t.item_size(); ++u) out.insert(p + u);
    int i = t.rank() - 1;
    while (i >= 0 && ++at[static_cast<size_t>(i)] == t.size(i)) at[static_cast<size_t>(i--)] = 0;
    if (i < 0) return out;
  }
}
bool share(const TensorView& a, const TensorView& b) {
  const std::set<intptr_t> x = bytes_of(a), y = bytes_of(b);
  for (intptr_t p : x)
    if (y.count(p)) return true;
  return false;
}
alignas(64) char g_memory[4096];

class RandomViews {
 public:
  explicit RandomViews(unsigned seed) : random_(seed) {}
  int64_t number(int64_t lo, int64_t hi) { return std::uniform_int_distribution<int64_t>(lo, hi)(random_); }
  TensorView view(int64_t reach) {
    constexpr DType kTypes[] = {DType::kU8, DType::kF16, DType::kF32, DType::kI64};
    std::vector<int64_t> shape, stride;
    for (int64_t rank = number(0, 4); rank > 0; --rank) {
      shape.push_back(number(0, 40) ? number(1, 4) : 0);
      stride.push_back(number(-reach, reach));
    }
    return TensorView(g_memory + 2048 + number(-60, 60), kTypes[number(0, 3)], shape, stride);
  }

 private:
  std::mt19937 random_;
};

TEST(Overlap, AgreesWithEveryByteOfRandomViews) {
  RandomViews random(7);
  int yes = 0, no_in_range = 0;
  for (int i = 0; i < 30000; ++i) {
    const TensorView a = random.view(i % 2 ? 6 : 40), b = random.view(i % 2 ? 6 : 40);
    const bool want = share(a, b);
    ASSERT_EQ(overlap(a, b), want) << to_string(a) << " at " << static_cast<char*>(a.data()) - g_memory << ", "
                                   << to_string(b) << " at " << static_cast<char*>(b.data()) - g_memory;
    ASSERT_EQ(overlap(b, a), want);
    yes += want;
    no_in_range += !want && a.may_overlap(b);
  }
  EXPECT_GT(yes, 3000);
  EXPECT_GT(no_in_range, 1000) << "views whose ranges intersect, but which share nothing";
}

TEST(Overlap, PartsOfOneBuffer) {
  std::vector<char> memory(64 * 8 * 192);
  const auto part = [&](int64_t from, int64_t to) {
    const int64_t shape[] = {64, 8, to - from}, stride[] = {8 * 192, 192, 1};
    return TensorView(memory.data() + from, DType::kF8E4M3, shape, stride);
  };
  EXPECT_FALSE(overlap(part(0, 128), part(128, 192)));
  EXPECT_TRUE(overlap(part(0, 129), part(128, 192)));
  const int64_t half[] = {32, 8, 192}, twice[] = {16 * 192, 192, 1};
  const TensorView even(memory.data(), DType::kU8, half, twice), odd(memory.data() + 8 * 192, DType::kU8, half, twice);
  EXPECT_FALSE(overlap(even, odd));
  EXPECT_TRUE(overlap(even, part(0, 1)));
  const int64_t columns[] = {192, 512}, turned[] = {1, 192};
  EXPECT_TRUE(overlap(TensorView(memory.data(), DType::kU8, columns, turned), part(3, 4)));
  EXPECT_FALSE(overlap(part(0, 0), part(0, 192))) << "empty";
}

/// Large coprime strides: a solution that exists is found, and the search ends.
TEST(Overlap, StridesThatDoNotFitIntoEachOther) {
  auto* const base = reinterpret_cast<char*>(int64_t{1} << 40);  // never read
  const int64_t shape[] = {1000, 1000}, one[] = {1009 * 64, 64}, two[] = {1013 * 64, 1019 * 64};
  EXPECT_TRUE(overlap(TensorView(base, DType::kU8, shape, one), TensorView(base, DType::kU8, shape, two)));
  EXPECT_FALSE(overlap(TensorView(base, DType::kU8, shape, one), TensorView(base + 32, DType::kU8, shape, two)));
  const int64_t far[] = {int64_t{1} << 60, 1};
  EXPECT_TRUE(overlap(TensorView(base, DType::kU8, shape, far), TensorView(base + 1, DType::kU8, shape, far)))
      << "no memory is that large";
}

}  // namespace
}  // namespace flashinfer::op
