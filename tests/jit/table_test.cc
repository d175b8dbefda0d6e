// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/jit/table.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "flashinfer/jit/jit.h"

namespace flashinfer::jit::detail {
namespace {

struct Wide {
  int32_t a, b, c;  // 12 bytes: a whole word and a rest
};
Table<Wide> table_of_wide;

TEST(Table, FindsWhatWasInsertedThroughGrowth) {
  static Loaded loaded[1000];
  Table<Wide>& table = table_of_wide;
  for (int i = 0; i < 1000; ++i) {
    const Wide key{i, -i, 7};
    EXPECT_EQ(table.find(key, hash_bytes(key)), nullptr);
    table.insert(key, hash_bytes(key), &loaded[i]);
    table.insert(key, hash_bytes(key), nullptr);  // the second is ignored
  }
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(table.find(Wide{i, -i, 7}, hash_bytes(Wide{i, -i, 7})), &loaded[i]);
  EXPECT_EQ(table.find(Wide{0, 0, 8}, hash_bytes(Wide{0, 0, 8})), nullptr);
  forget_tables();
  EXPECT_EQ(table.find(Wide{1, -1, 7}, hash_bytes(Wide{1, -1, 7})), nullptr);
}

TEST(Table, KeysThatCollideAreDistinguished) {
  static Loaded loaded[3];
  static Table<Wide> table;
  for (int i = 0; i < 3; ++i) table.insert(Wide{i, 0, 0}, 15, &loaded[i]);  // one hash for all, at the array's end
  for (int i = 0; i < 3; ++i) EXPECT_EQ(table.find(Wide{i, 0, 0}, 15), &loaded[i]);
  EXPECT_EQ(table.find(Wide{3, 0, 0}, 15), nullptr);
}

TEST(Table, HashesOfNeighboursSpread) {
  std::vector<int> buckets(256);
  for (int a = 0; a < 16; ++a)
    for (int b = 0; b < 16; ++b)
      for (int c = 0; c < 16; ++c) ++buckets[hash_bytes(Wide{a, b, c}) & 255];
  for (const int n : buckets) EXPECT_LT(n, 48);  // 16 expected, sd 4
}

TEST(Table, ReadersNeverWaitNorSeeHalf) {
  static Loaded loaded[2000];
  static Table<Wide> table;
  std::atomic<bool> stop{false};
  std::atomic<int64_t> wrong{0};
  std::vector<std::thread> readers;
  for (int r = 0; r < 2; ++r)
    readers.emplace_back([&] {
      while (!stop.load(std::memory_order_relaxed))
        for (int i = 0; i < 2000; ++i) {
          const Loaded* found = table.find(Wide{i, 1, 2}, hash_bytes(Wide{i, 1, 2}));
          if (found != nullptr && found != &loaded[i]) ++wrong;
        }
    });
  for (int i = 0; i < 2000; ++i) table.insert(Wide{i, 1, 2}, hash_bytes(Wide{i, 1, 2}), &loaded[i]);
  stop = true;
  for (std::thread& t : readers) t.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace flashinfer::jit::detail
