// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/attention/plan/rope_table.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <mutex>
#include <span>

#include "flashinfer/core/fork_mutex.h"
#include "flashinfer/core/transfer.h"

namespace flashinfer::attention {
namespace {

constexpr size_t kKept = 4;  // a process runs few models

std::shared_ptr<const RopeTable> make(double theta, double scale, int64_t dim, int64_t first, int64_t end) {
  auto t = std::make_shared<RopeTable>(RopeTable{theta, scale, dim, first, end, {}});
  const int64_t half = dim / 2;
  t->values.resize(static_cast<size_t>((end - first) * dim));
  std::vector<double> frequency(static_cast<size_t>(half));
  for (int64_t d = 0; d < half; ++d)
    frequency[static_cast<size_t>(d)] =
        std::pow(theta, -2.0 * static_cast<double>(d) / static_cast<double>(dim)) / scale;
  for (int64_t i = first; i < end; ++i) {
    float* row = t->values.data() + (i - first) * dim;
    for (int64_t d = 0; d < half; ++d) {
      const double angle = static_cast<double>(i) * frequency[static_cast<size_t>(d)];
      row[d] = static_cast<float>(std::cos(angle));
      row[half + d] = static_cast<float>(std::sin(angle));
    }
  }
  return t;
}

int64_t grown(int64_t n) {
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(n, 512))));
}

}  // namespace

std::shared_ptr<const RopeTable> rope_table(double theta, double scale, int64_t dim, int64_t first, int64_t end) {
  static constinit ForkMutex mutex(ForkLayer::kOps);
  static std::vector<std::shared_ptr<const RopeTable>> kept;  // the last used one is the last
  const std::lock_guard lock(mutex);
  const auto same = std::find_if(
      kept.begin(), kept.end(), [&](const auto& t) { return t->theta == theta && t->scale == scale && t->dim == dim; });
  std::shared_ptr<const RopeTable> table;
  if (same != kept.end()) {
    table = *same;
    kept.erase(same);
  }
  if (!table || table->first > first || table->end < end) {
    if (table) first = std::min(first, table->first), end = std::max(end, table->end);
    table = make(theta, scale, dim, first < 0 ? -grown(-first) : 0, grown(end));
  }
  if (kept.size() == kKept) kept.erase(kept.begin());
  kept.push_back(table);
  return table;
}

Tensor values_on(const std::shared_ptr<const RopeTable>& table, Device device) {
  struct Copy {
    std::weak_ptr<const RopeTable> of;
    Device device;
    Tensor values;
  };
  static constinit ForkMutex mutex(ForkLayer::kOps);
  static auto& copies = *new std::vector<Copy>;  // no device memory is given back after the driver is gone
  const std::lock_guard lock(mutex);
  std::erase_if(copies, [](const Copy& c) { return c.of.expired(); });
  for (const Copy& c : copies)
    if (c.of.lock() == table && c.device == device) return c.values;
  copies.push_back({table, device, to_device(TensorView(std::span<const float>(table->values)), device)});
  return copies.back().values;
}

}  // namespace flashinfer::attention
