// SPDX-License-Identifier: Apache-2.0
// all_gather against its definition: rank r's column i is column first[r] + i of the result.
#include <gtest/gtest.h>

#include "flashinfer/core/check.h"
#include "flashinfer/flashinfer.h"
#include "tests/comm/ranks.h"

namespace flashinfer {
namespace {

float value(int rank, int64_t row, int64_t column) {
  return static_cast<float>(rank * 1000 + (row * 131 + column * 7) % 997);
}

struct Gathered {
  std::vector<int64_t> columns;
  int64_t tokens, stride_more = 0;  // columns behind each row of input and result
  int calls = 3, threads = 1;
};

void check(const Gathered& g) {
  const std::string name = fresh_name();
  const int ranks = static_cast<int>(g.columns.size());
  const auto outcomes = run_threads(ranks, [&](int rank) {
    const auto pool = make_thread_pool(g.threads);
    Context context;
    context.executor = *pool;
    const ContextScope scope(context);
    AllReduceFusionWorkspace workspace({.group = name,
                                        .rank = rank,
                                        .world_size = ranks,
                                        .max_token_num = 64,
                                        .hidden_dim = 64,
                                        .dtype = DType::kF32});
    int64_t all = 0;
    for (const int64_t n : g.columns) all += n;
    const int64_t own = g.columns[static_cast<size_t>(rank)];
    const Tensor input = Tensor::empty({g.tokens, own + g.stride_more}, DType::kF32),
                 out = Tensor::empty({g.tokens, all + g.stride_more}, DType::kF32);
    for (int call = 0; call < g.calls; ++call) {
      for (int64_t r = 0; r < g.tokens; ++r)
        for (int64_t i = 0; i < own + g.stride_more; ++i)
          input.data_as<float>()[r * (own + g.stride_more) + i] = value(rank, r + call, i);
      for (int64_t i = 0; i < out.numel(); ++i) out.data_as<float>()[i] = -1;
      all_gather({.input = input.view().slice(1, 0, own),
                  .workspace = workspace,
                  .columns = g.columns,
                  .out = out.view().slice(1, 0, all)});
      for (int64_t r = 0; r < g.tokens; ++r) {
        const float* row = out.data_as<float>() + r * (all + g.stride_more);
        for (int from = 0; from < ranks; ++from)
          for (int64_t i = 0; i < g.columns[static_cast<size_t>(from)]; ++i)
            FI_CHECK(*row++ == value(from, r + call, i), ValueError, "row ", r, ", rank ", from, ", column ", i);
        for (int64_t i = 0; i < g.stride_more; ++i) FI_CHECK(*row++ == -1, ValueError, "row ", r, " is written behind");
      }
    }
  });
  for (const auto& o : outcomes) EXPECT_EQ(o, "");
}

TEST(AllGather, PutsColumnsSideBySide) {
  check({.columns = {5}, .tokens = 3});
  check({.columns = {5, 5}, .tokens = 1});
  check({.columns = {3, 0, 8, 1}, .tokens = 7});
  check({.columns = {4, 9}, .tokens = 0});
}

TEST(AllGather, LargeInputsGoInPieces) {  // of 16 KB, the size of the workspace; rows may be longer than a piece
  check({.columns = {100, 37, 0}, .tokens = 300, .stride_more = 3, .calls = 2});
  check({.columns = {9000, 20000}, .tokens = 3, .threads = 2});
}

TEST(AllGather, AWrongListIsAnErrorOnAllRanks) {
  for (const bool differs : {false, true}) {
    const std::string name = fresh_name();
    const auto outcomes = run_threads(2, [&](int rank) {
      AllReduceFusionWorkspace workspace({.group = name, .rank = rank, .world_size = 2, .dtype = DType::kF32});
      const Tensor x = Tensor::zeros({2, 3}, DType::kF32);
      std::vector<int64_t> columns = {3, 3};
      if (rank == 1 && !differs) columns = {3, 4};
      if (rank == 1 && differs) columns = {4, 3};
      all_gather({.input = x, .workspace = workspace, .columns = columns});
    });
    EXPECT_HAS(outcomes[0],
               differs ? "calls all_gather(rows=2, columns=7, dtype=float32)" : "columns has 4 for rank 1");
    EXPECT_HAS(outcomes[1], differs ? "calls all_gather(rows=2, columns=6, dtype=float32)"
                                    : "input.shape[1] is 3, but columns has 4 for rank 1");
  }
}

}  // namespace
}  // namespace flashinfer
