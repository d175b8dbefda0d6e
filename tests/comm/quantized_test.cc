// SPDX-License-Identifier: Apache-2.0
// The all-reduce of e4m3 codes against its definition, in double precision where that rounds nowhere else.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "flashinfer/core/check.h"
#include "flashinfer/flashinfer.h"
#include "flashinfer/ops/common/reference.h"
#include "tests/comm/ranks.h"

namespace flashinfer {
namespace {

Tensor input_of(int64_t n, int rank) {
  std::mt19937 random(static_cast<unsigned>(rank) + 5);
  std::normal_distribution<double> normal;
  Tensor t = Tensor::empty({n}, DType::kBF16);
  for (int64_t i = 0; i < n; ++i) ref::put(t.view(), {i}, normal(random) * (i % 97 == 3 ? 50 : 1));
  return t;
}
double as(DType dtype, double v) {
  const Tensor one = Tensor::empty({1}, dtype);
  ref::put(one.view(), {0}, v);
  return ref::at(one.view(), {0});
}
float scale_of(const std::vector<double>& x) {
  double most = 1e-12;
  for (const double v : x) most = std::max(most, std::abs(v));
  return static_cast<float>(static_cast<float>(most) / 448.0f);
}
std::vector<double> through_codes(const std::vector<double>& x) {
  const float scale = scale_of(x);
  std::vector<double> y;
  for (const double v : x) {
    const double code = as(DType::kF8E4M3, std::clamp<double>(static_cast<float>(v) / scale, -448, 448));
    y.push_back(code * double{scale});
  }
  return y;
}
std::vector<double> expected(int64_t n, int64_t group, int ranks) {
  std::vector<double> out;
  std::vector<Tensor> inputs;
  for (int r = 0; r < ranks; ++r) inputs.push_back(input_of(n, r));
  for (int64_t first = 0; first < n; first += group) {
    const int64_t size = std::min(group, n - first);
    std::vector<double> sum(static_cast<size_t>(size));
    for (int r = 0; r < ranks; ++r) {
      std::vector<double> x;
      for (int64_t i = 0; i < size; ++i) x.push_back(ref::at(inputs[static_cast<size_t>(r)].view(), {first + i}));
      x = through_codes(x);
      for (size_t i = 0; i < x.size(); ++i) sum[i] = static_cast<float>(sum[i] + x[i]);
    }
    for (const double v : through_codes(sum)) out.push_back(as(DType::kBF16, static_cast<float>(v)));
  }
  return out;
}

void check(int ranks, int64_t n, int64_t group, int64_t capacity, int threads = 1) {
  const std::string name = fresh_name();
  const std::vector<double> want = expected(n, group, ranks);
  const auto outcomes = run_threads(ranks, [&](int rank) {
    const auto pool = make_thread_pool(threads);
    Context context;
    context.executor = *pool;
    const ContextScope scope(context);
    AllReduceFusionWorkspace workspace(
        {.group = name, .rank = rank, .world_size = ranks, .max_token_num = 1, .hidden_dim = capacity});
    const Tensor x = input_of(n, rank);
    const Tensor y = quantized_all_reduce({.inp = x, .workspace = workspace, .scale_group = group});
    quantized_all_reduce({.inp = x, .workspace = workspace, .scale_group = group, .output = x});  // in place
    FI_CHECK(std::memcmp(x.data(), y.data(), static_cast<size_t>(y.view().nbytes())) == 0, ValueError, "in place");
    for (int64_t i = 0; i < n; ++i)
      FI_CHECK(ref::at(y.view(), {i}) == want[static_cast<size_t>(i)], ValueError, "element ", i, " is ",
               ref::at(y.view(), {i}), ", want ", want[static_cast<size_t>(i)]);
  });
  for (const auto& o : outcomes) EXPECT_EQ(o, "");
}

TEST(QuantizedAllReduce, SumsCodesAndQuantisesOnceMore) {
  check(1, 512, 256, 4096);
  check(2, 512, 256, 4096);
  check(3, 1000, 64, 4096);  // the last group has 40 elements
  check(4, 8, 256, 4096);
  check(2, 5000, 2048, 1 << 16);  // groups of more than a part
}
TEST(QuantizedAllReduce, LargeTensorsGoInPieces) {
  check(2, 100'000, 128, 300);
  check(2, 200'000, 256, 1 << 16, 2);
}

TEST(QuantizedAllReduce, ANumberThatIsNotFiniteMakesItsGroupNaN) {
  const std::string name = fresh_name();
  const auto outcomes = run_threads(2, [&](int rank) {
    AllReduceFusionWorkspace workspace({.group = name, .rank = rank, .world_size = 2, .hidden_dim = 4096});
    const Tensor x = input_of(24, rank);
    if (rank == 1) ref::put(x.view(), {9}, INFINITY);
    const Tensor y = quantized_all_reduce({.inp = x, .workspace = workspace, .scale_group = 8});
    for (int64_t i = 0; i < 24; ++i)
      FI_CHECK(std::isnan(ref::at(y.view(), {i})) == (i >= 8 && i < 16), ValueError, "element ", i);
  });
  for (const auto& o : outcomes) EXPECT_EQ(o, "");
}

TEST(QuantizedAllReduce, BadArgumentsNameTheArgument) {
  AllReduceFusionWorkspace workspace({.group = fresh_name(), .hidden_dim = 64});
  const auto error = [&](int64_t n, int64_t group) {
    const Tensor x = Tensor::zeros({n}, DType::kBF16);
    return outcome_of([&] { quantized_all_reduce({.inp = x, .workspace = workspace, .scale_group = group}); });
  };
  EXPECT_HAS(error(12, 8), "its elements must be a multiple of 8");
  EXPECT_HAS(error(16, 12), "scale_group is 12");
  EXPECT_HAS(error(16, 256), "workspace moves 128 bytes at a time, but a group needs 260");
}

}  // namespace
}  // namespace flashinfer
