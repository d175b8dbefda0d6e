// SPDX-License-Identifier: Apache-2.0
// packbits by numbers written out, byte alignment of segments, given memory, errors.
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "flashinfer/ops/quantization/op.h"
#include "tests/ops/data.h"

namespace flashinfer {
namespace {

Tensor bytes(const std::vector<uint8_t>& v) {
  return Tensor::copy_of(std::span<const uint8_t>(v), {static_cast<int64_t>(v.size())});
}

TEST(PackBits, BothOrdersWrittenOut) {
  const Tensor x = bytes({1, 0, 0, 2, 0, 0, 0, 128, 0, 255, 1});
  const Tensor big = packbits({.x = x}), little = packbits({.x = x, .bitorder = "little"});
  ASSERT_EQ(big.numel(), 2);
  EXPECT_EQ(big.data_as<uint8_t>()[0], 0x91);
  EXPECT_EQ(big.data_as<uint8_t>()[1], 0x60);
  EXPECT_EQ(little.data_as<uint8_t>()[0], 0x89);
  EXPECT_EQ(little.data_as<uint8_t>()[1], 0x06);
}
TEST(PackBits, EveryElementReachesItsBit) {
  for (int64_t n : {1, 7, 8, 63, 64, 65, 129, 200})
    for (const char* order : {"big", "little"})
      for (int64_t i = 0; i < n; ++i) {
        std::vector<uint8_t> v(static_cast<size_t>(n), 0);
        v[static_cast<size_t>(i)] = 1;
        const Tensor x = bytes(v), y = packbits({.x = x, .bitorder = order});
        for (int64_t b = 0; b < y.numel(); ++b)
          ASSERT_EQ(y.data_as<uint8_t>()[b], b != i / 8 ? 0 : 1 << (order[0] == 'b' ? 7 - i % 8 : i % 8))
              << n << " " << i << " " << order;
      }
}
// flashinfer PR#2201: offsets of packed masks are bytes, and every segment begins with a byte of its own.
TEST(PackBits, SegmentsBeginAtBytes) {
  const Tensor x = bytes(std::vector<uint8_t>(20, 1)), ptr = ints<int64_t>({0, 3, 3, 12, 20});
  const auto [y, to] = segment_packbits({.x = x, .indptr = ptr, .bitorder = "little"});
  const std::vector<int64_t> want = {0, 1, 1, 3, 4};
  ASSERT_EQ(to.dtype(), DType::kI64);
  EXPECT_EQ(std::memcmp(to.data(), want.data(), 5 * 8), 0);
  const uint8_t packed[] = {0x07, 0xff, 0x01, 0xff};
  EXPECT_EQ(std::memcmp(y.data(), packed, 4), 0);
}
// sglang PR#12790: no allocation (and, on a GPU, no wait) when the caller brings the memory.
TEST(PackBits, ResultsGoWhereTheCallerSays) {
  const Tensor x = bytes(std::vector<uint8_t>(20, 1)), ptr = ints<int32_t>({0, 9, 20}),
               y = bytes(std::vector<uint8_t>(4, 0)), to = ints<int32_t>({7, 7, 7});
  const auto [a, b] = segment_packbits({.x = x, .indptr = ptr, .y = y, .new_indptr = to});
  EXPECT_EQ(a.data(), y.data());
  EXPECT_EQ(b.data(), to.data());
  EXPECT_EQ(to.data_as<int32_t>()[2], 4);
  EXPECT_EQ(y.data_as<uint8_t>()[3], 0xe0);
}
TEST(PackBits, Errors) {
  const Tensor x = bytes(std::vector<uint8_t>(20, 1)), less = ints<int32_t>({0, 9}),
               down = ints<int32_t>({0, 9, 5, 20}), f = Tensor::zeros({8}, DType::kF32), y = bytes({0, 0});
  EXPECT_THROW(segment_packbits({.x = x, .indptr = less}), ValueError);
  EXPECT_THROW(segment_packbits({.x = x, .indptr = down}), ValueError);
  EXPECT_THROW(packbits({.x = f}), ValueError);
  EXPECT_THROW(packbits({.x = x, .bitorder = "middle"}), ValueError);
  EXPECT_THROW(packbits({.x = x, .y = y}), ValueError) << "two bytes do not hold twenty bits";
}

}  // namespace
}  // namespace flashinfer
