// SPDX-License-Identifier: Apache-2.0
// The exchanges of heads and positions against their definition, element by element.
#include <gtest/gtest.h>

#include <cstring>

#include "flashinfer/core/check.h"
#include "flashinfer/flashinfer.h"
#include "flashinfer/ops/common/reference.h"
#include "tests/comm/ranks.h"

namespace flashinfer {
namespace {

struct Setting {
  int ranks;
  int64_t batch, positions, heads, d;  // positions and heads of a rank
  DType dtype = DType::kBF16;
  int64_t capacity = 4096;  // elements of the workspace
  int calls = 2, threads = 1;
};
/// Of the whole tensor [batch, positions * ranks, heads * ranks, d]; small integers, exact in every type.
double value(int64_t b, int64_t position, int64_t head, int64_t i, int call) {
  return static_cast<double>((b * 41 + position * 131 + head * 17 + i * 7 + call) % 251);
}
Tensor filled(const Setting& s, int64_t first_position, int64_t positions, int64_t first_head, int64_t heads,
              int call) {
  Tensor t = Tensor::empty({s.batch, positions, heads, s.d}, s.dtype);
  for (int64_t b = 0; b < s.batch; ++b)
    for (int64_t p = 0; p < positions; ++p)
      for (int64_t h = 0; h < heads; ++h)
        for (int64_t i = 0; i < s.d; ++i)
          ref::put(t.view(), {b, p, h, i}, value(b, first_position + p, first_head + h, i, call));
  return t;
}
bool same(const Tensor& a, const Tensor& b) {
  for (int i = 0; i < 4; ++i)
    if (a.size(i) != b.size(i)) return false;
  return std::memcmp(a.data(), b.data(), static_cast<size_t>(a.view().nbytes())) == 0;
}

void check(const Setting& s) {
  const std::string name = fresh_name();
  const auto outcomes = run_threads(s.ranks, [&](int rank) {
    const auto pool = make_thread_pool(s.threads);
    Context context;
    context.executor = *pool;
    const ContextScope scope(context);
    AllReduceFusionWorkspace workspace({.group = name,
                                        .rank = rank,
                                        .world_size = s.ranks,
                                        .max_token_num = 1,
                                        .hidden_dim = s.capacity,
                                        .dtype = DType::kBF16});
    for (int call = 0; call < s.calls; ++call) {
      const Tensor part = filled(s, rank * s.positions, s.positions, 0, s.heads * s.ranks, call),
                   whole = filled(s, 0, s.positions * s.ranks, rank * s.heads, s.heads, call);
      FI_CHECK(same(ulysses_scatter_heads({.x = part, .workspace = workspace}), whole), ValueError, "scatter ", call);
      const Tensor out = Tensor::zeros({s.batch, s.positions, s.heads * s.ranks, s.d}, s.dtype);
      ulysses_gather_heads({.x = whole, .workspace = workspace, .out = out});
      FI_CHECK(same(out, part), ValueError, "gather ", call);
    }
    workspace.destroy();
  });
  for (const auto& o : outcomes) EXPECT_EQ(o, "");
}

TEST(Ulysses, MovesEveryElementToItsPlace) {
  check({.ranks = 1, .batch = 2, .positions = 3, .heads = 2, .d = 5});
  check({.ranks = 2, .batch = 1, .positions = 3, .heads = 2, .d = 8});
  check({.ranks = 3, .batch = 2, .positions = 2, .heads = 1, .d = 7, .dtype = DType::kF32});
  check({.ranks = 4, .batch = 3, .positions = 1, .heads = 3, .d = 16, .dtype = DType::kF16});
}

TEST(Ulysses, LargeTensorsGoInPieces) {
  check({.ranks = 2, .batch = 2, .positions = 37, .heads = 3, .d = 32, .capacity = 100});
  check({.ranks = 4, .batch = 1, .positions = 9, .heads = 2, .d = 64, .capacity = 1});  // 64 bytes for three ranks
  check({.ranks = 2, .batch = 1, .positions = 512, .heads = 4, .d = 128, .capacity = 1 << 20, .threads = 2});
}

TEST(Ulysses, HeadsAndPositionsMustBeDivisible) {
  const std::string name = fresh_name();
  const auto outcomes = run_threads(3, [&](int rank) {
    AllReduceFusionWorkspace workspace({.group = name, .rank = rank, .world_size = 3});
    const Tensor x = Tensor::zeros({1, 3, 4, 2}, DType::kF16), y = Tensor::zeros({1, 4, 3, 2}, DType::kF16);
    EXPECT_HAS(outcome_of([&] { ulysses_scatter_heads({.x = x, .workspace = workspace}); }),
               "ValueError: ulysses_scatter_heads: x.shape[2] is 4 heads, but must be divisible by the 3 ranks");
    ulysses_gather_heads({.x = rank == 1 ? y.view() : x.view(), .workspace = workspace});
  });
  EXPECT_HAS(outcomes[1], "x.shape[1] is 4 positions, but must be divisible by the 3 ranks");
  for (const size_t r : {0u, 2u}) EXPECT_HAS(outcomes[r], "rank 1 raised ValueError: ulysses_gather_heads: x.shape[1]");
}

}  // namespace
}  // namespace flashinfer
