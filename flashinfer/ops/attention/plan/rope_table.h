// SPDX-License-Identifier: Apache-2.0
// cos and sin of ROPE_LLAMA, computed once a process for each frequency and head dim.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "flashinfer/core/tensor.h"

namespace flashinfer::attention {

/// values[position - first][2][dim / 2]: cos, then sin, of position * theta^(-2d / dim) / scale, as the kernel reads
/// them.
struct RopeTable {
  double theta = 0, scale = 0;
  int64_t dim = 0, first = 0, end = 0;
  std::vector<float> values;
};

/// A table that covers positions [first, end), first <= 0. Tables are kept (the last few) and grow by doubling: a table
/// of 8192 positions of D 128 takes tens of milliseconds, and every layer of every step needs the same one.
/// Thread-safe.
std::shared_ptr<const RopeTable> rope_table(double theta, double scale, int64_t dim, int64_t first, int64_t end);

/// The table's values in memory of a GPU, copied once. Thread-safe.
Tensor values_on(const std::shared_ptr<const RopeTable>& table, Device device);

}  // namespace flashinfer::attention
