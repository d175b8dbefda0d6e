// SPDX-License-Identifier: Apache-2.0
// reduce_scatter and mixed_comm against their definitions in double precision.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "flashinfer/core/check.h"
#include "flashinfer/flashinfer.h"
#include "flashinfer/ops/common/reference.h"
#include "tests/comm/ranks.h"

namespace flashinfer {
namespace {

/// With both zeros, and elements whose sums must be rounded.
double value(int rank, int64_t row, int64_t i) {
  const int64_t k = (rank * 7919 + row * 131 + i * 29) % 1021;
  return k % 17 == 0 ? -0.0 : static_cast<double>(k - 510) / 64;
}
Tensor input_of(int rank, int64_t rows, int64_t columns, DType dtype) {
  Tensor t = Tensor::empty({rows, columns}, dtype);
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t i = 0; i < columns; ++i) ref::put(t.view(), {r, i}, value(rank, r, i));
  return t;
}
double rounded(double v, DType dtype) {
  const Tensor one = Tensor::empty({1}, dtype);
  ref::put(one.view(), {0}, v);
  return ref::at(one.view(), {0});
}
AllReduceFusionWorkspaceInit init(const std::string& name, int rank, int ranks, int64_t elements) {
  return {.group = name, .rank = rank, .world_size = ranks, .max_token_num = 1, .hidden_dim = elements};
}
void expect_none(const std::vector<Outcome>& outcomes) {
  for (const auto& o : outcomes) EXPECT_EQ(o, "");
}

void check_reduce_scatter(int ranks, int64_t rows, int64_t columns, DType dtype, bool fp32_acc, int64_t capacity) {
  const std::string name = fresh_name();
  expect_none(run_threads(ranks, [&](int rank) {
    AllReduceFusionWorkspace workspace(init(name, rank, ranks, capacity));
    for (int call = 0; call < 3; ++call) {
      const Tensor x = input_of(rank + call, ranks * rows, columns, dtype),
                   y = reduce_scatter({.input = x, .workspace = workspace, .fp32_acc = fp32_acc});
      FI_CHECK(y.size(0) == rows && y.size(1) == columns, ValueError, to_string(y.view()));
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t i = 0; i < columns; ++i) {
          double sum = 0;
          for (int p = 0; p < ranks; ++p) {
            sum += rounded(value(p + call, rank * rows + r, i), dtype);
            if (!fp32_acc || p + 1 == ranks) sum = rounded(sum, dtype);
          }
          FI_CHECK(ref::at(y.view(), {r, i}) == sum, ValueError, "row ", r, ", column ", i);
        }
    }
  }));
}

TEST(ReduceScatter, AddsInTheOrderOfTheRanks) {
  for (const DType dtype : {DType::kF16, DType::kBF16, DType::kF32})
    for (const bool fp32_acc : {false, true}) check_reduce_scatter(3, 5, 24, dtype, fp32_acc, 4096);
  check_reduce_scatter(1, 5, 7, DType::kBF16, false, 64);
  check_reduce_scatter(2, 0, 7, DType::kBF16, false, 64);
}
TEST(ReduceScatter, ASumOfOneRankHasNoZerosWithASign) {
  AllReduceFusionWorkspace workspace(init(fresh_name(), 0, 1, 64));
  const Tensor x = Tensor::copy_of<float>(std::vector<float>{-0.0f, 1.0f}, {1, 2});
  EXPECT_FALSE(std::signbit(reduce_scatter({.input = x, .workspace = workspace}).data_as<float>()[0]));
}
TEST(ReduceScatter, LargeTensorsGoInPieces) {
  check_reduce_scatter(4, 30, 50, DType::kBF16, false, 100);
  check_reduce_scatter(2, 64, 1000, DType::kF32, false, 1 << 16);
}

struct Grid {
  int local_tp, local_dp, inter_tp, inter_dp;
  int tp() const { return local_tp * inter_tp; }
  int dp() const { return local_dp * inter_dp; }
  int ranks() const { return tp() * dp(); }
  /// Counted, not computed: ranks by node, then by data parallelism, then by tensor parallelism.
  int find(int tp_rank, int dp_rank) const {
    int rank = 0;
    for (int nd = 0; nd < inter_dp; ++nd)
      for (int nt = 0; nt < inter_tp; ++nt)
        for (int d = 0; d < local_dp; ++d)
          for (int t = 0; t < local_tp; ++t, ++rank)
            if (nt * local_tp + t == tp_rank && nd * local_dp + d == dp_rank) return rank;
    return -1;
  }
};

/// The sum of row `row` over ranks, in double precision: exact in f32 too, since the values have few bits.
double sum_of(const std::vector<int>& ranks, int64_t row, int64_t i) {
  double sum = 0;
  for (const int r : ranks) sum += rounded(value(r, row, i), DType::kBF16);
  return sum;
}
double expected(const Grid& g, MixedCommOp op, int tp_rank, int dp_rank, int64_t rows, int64_t row, int64_t i) {
  std::vector<int> ranks;
  switch (op) {
    case MixedCommOp::kAllReduce:
      for (int t = 0; t < g.tp(); ++t) ranks.push_back(g.find(t, dp_rank));
      return sum_of(ranks, row, i);
    case MixedCommOp::kAllGather: return sum_of({g.find(tp_rank, static_cast<int>(row / rows))}, row % rows, i);
    case MixedCommOp::kReduceScatter:
      for (int d = 0; d < g.dp(); ++d) ranks.push_back(g.find(tp_rank, d));
      return sum_of(ranks, dp_rank * (rows / g.dp()) + row, i);
    case MixedCommOp::kAllReduceAllGather:
      for (int t = 0; t < g.tp(); ++t) ranks.push_back(g.find(t, static_cast<int>(row / rows)));
      return sum_of(ranks, row % rows, i);
    case MixedCommOp::kReduceScatterAllReduce:
      for (int r = 0; r < g.ranks(); ++r) ranks.push_back(r);
      return sum_of(ranks, dp_rank * (rows / g.dp()) + row, i);
  }
  return 0;
}

void check_mixed(const Grid& g, int64_t rows, int64_t columns, int64_t capacity) {
  const std::string name = fresh_name();
  expect_none(run_threads(g.ranks(), [&](int rank) {
    AllReduceFusionWorkspace workspace(init(name, rank, g.ranks(), capacity));
    int tp_rank = 0, dp_rank = 0;
    for (int t = 0; t < g.tp(); ++t)
      for (int d = 0; d < g.dp(); ++d)
        if (g.find(t, d) == rank) tp_rank = t, dp_rank = d;
    const Tensor x = input_of(rank, rows, columns, DType::kBF16);
    for (int op = 0; op < 5; ++op) {
      const Tensor y = mixed_comm({.x_in = x,
                                   .workspace = workspace,
                                   .op = op,
                                   .local_tp_size = g.local_tp,
                                   .local_dp_size = g.local_dp,
                                   .inter_tp_size = g.inter_tp,
                                   .inter_dp_size = g.inter_dp});
      const bool scatters = op == 2 || op == 4, gathers = op == 1 || op == 3;
      FI_CHECK(y.size(0) == (scatters  ? rows / g.dp()
                             : gathers ? rows * g.dp()
                                       : rows),
               ValueError, op, ": ", to_string(y.view()));
      for (int64_t r = 0; r < y.size(0); ++r)
        for (int64_t i = 0; i < columns; ++i) {
          const double want =
              rounded(expected(g, static_cast<MixedCommOp>(op), tp_rank, dp_rank, rows, r, i), DType::kBF16);
          FI_CHECK(ref::at(y.view(), {r, i}) == want, ValueError, "op ", op, ", row ", r, ", column ", i, ": ",
                   ref::at(y.view(), {r, i}), ", want ", want);
        }
    }
  }));
}

TEST(MixedComm, SumsAndBlocksAreThoseOfTheGrid) {
  check_mixed({1, 1, 1, 1}, 3, 8, 64);
  check_mixed({2, 1, 1, 1}, 3, 8, 64);
  check_mixed({1, 2, 1, 1}, 4, 8, 64);
  check_mixed({2, 2, 1, 1}, 4, 40, 4096);
  check_mixed({2, 1, 1, 2}, 4, 40, 4096);
  check_mixed({1, 2, 2, 1}, 4, 40, 4096);
  check_mixed({2, 1, 2, 2}, 6, 24, 4096);
  check_mixed({1, 2, 2, 2}, 8, 24, 4096);
}
TEST(MixedComm, LargeTensorsGoInPieces) {
  check_mixed({2, 2, 1, 1}, 32, 100, 100);
  check_mixed({1, 3, 1, 1}, 9, 3000, 4096);
}

TEST(MixedComm, BadArgumentsNameTheArgument) {
  const std::string name = fresh_name();
  expect_none(run_threads(4, [&](int rank) {
    AllReduceFusionWorkspace workspace(init(name, rank, 4, 1));
    const Tensor x = Tensor::zeros({3, 4}, DType::kBF16), f = Tensor::zeros({6, 4}, DType::kF32);
    const auto error = [&](MixedComm a) {
      a.workspace = workspace;
      return outcome_of([&] { mixed_comm(a); });
    };
    EXPECT_HAS(error({.x_in = x, .op = 5, .local_tp_size = 4}), "op is 5, but must be in [0, 4]");
    EXPECT_HAS(error({.x_in = x, .op = 0, .local_tp_size = 3}), "a size is 3");
    EXPECT_HAS(error({.x_in = x, .op = 0, .local_tp_size = 2}), "is 2, but the group has 4 ranks");
    EXPECT_HAS(error({.x_in = x, .op = 4, .local_tp_size = 2, .local_dp_size = 2}), "must be divisible by 2 (dp_size)");
    EXPECT_HAS(error({.x_in = f, .op = 0, .local_tp_size = 4}), "x_in");
    EXPECT_HAS(outcome_of([&] { reduce_scatter({.input = x, .workspace = workspace}); }),
               "but its rows must be divisible by 4 (ranks)");
  }));
  expect_none(run_threads(32, [&](int rank) {  // a slot of 64 bytes is too small for 32 blocks of float32
    AllReduceFusionWorkspace workspace(init(name, rank, 32, 1));
    const Tensor x = Tensor::zeros({32, 4}, DType::kF32);
    EXPECT_HAS(outcome_of([&] { reduce_scatter({.input = x, .workspace = workspace}); }),
               "workspace moves 64 bytes at a time, but 128 are needed for 32 blocks");
  }));
}

}  // namespace
}  // namespace flashinfer
