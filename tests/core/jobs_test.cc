// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/core/jobs.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <vector>

namespace flashinfer {
namespace {

TEST(Jobs, EachRunsOnce) {
  std::vector<std::atomic<int>> runs(100);
  for_each_job(100, 4, [&](int64_t i) { ++runs[static_cast<size_t>(i)]; });
  for (const auto& n : runs) EXPECT_EQ(n, 1);
  for_each_job(0, 4, [&](int64_t) { FAIL(); });
}

TEST(Jobs, OneAtATimeRunsInOrder) {
  std::vector<int64_t> order;
  for_each_job(5, 1, [&](int64_t i) { order.push_back(i); });
  EXPECT_EQ(order, (std::vector<int64_t>{0, 1, 2, 3, 4}));
}

TEST(Jobs, AnErrorIsThrownWhenAllHaveEnded) {
  std::atomic<int> runs = 0;
  const auto job = [&](int64_t i) {
    ++runs;
    if (i == 3) throw std::runtime_error("job 3");
  };
  EXPECT_THROW(for_each_job(20, 3, job), std::runtime_error);
  EXPECT_EQ(runs, 20);
}

TEST(Jobs, WhatIsAroundTheLoopIsInItsThread) {
  thread_local bool inside = false;
  std::atomic<int> threads = 0, outside = 0;
  const auto around = [&](const std::function<void()>& loop) {
    ++threads;
    inside = true;
    loop();
    inside = false;
  };
  for_each_job(50, 3, [&](int64_t) { outside += !inside; }, around);
  EXPECT_EQ(outside, 0);
  EXPECT_EQ(threads, 3);
}

}  // namespace
}  // namespace flashinfer
