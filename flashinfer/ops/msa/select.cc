// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <vector>

#include "flashinfer/op/call.h"
#include "flashinfer/op/index_checks.h"
#include "flashinfer/ops/common/rows.h"
#include "flashinfer/ops/msa/cases.h"
#include "flashinfer/ops/msa/cuda.h"
#include "flashinfer/ops/msa/ops.h"
#include "flashinfer/ops/msa/ref.h"

namespace flashinfer {
namespace {
using T = MsaTopkSelect;
inline constexpr jit::Kernel kSelectCuda{"flashinfer/ops/msa/kernels/cuda/select.cuh", "flashinfer::cu::msa_select",
                                         "flashinfer::MsaSelectParams"};
constexpr int64_t kRows = 16;  // of a task: their scores adjoin, a cache line for each block

op::Shape chosen_shape(const T& a) { return {3, {a.max_score.size(2), a.max_score.size(0), a.topk}}; }

int64_t valid_of(const T& a, int64_t row) {
  const int64_t all = a.max_score.size(1);
  if (!a.num_valid_pages) return all;
  const TensorView* each = a.num_valid_pages->tensor();
  return each ? std::clamp<int64_t>(op::index_at(*each, row), 0, all)
              : static_cast<int64_t>(a.num_valid_pages->number());
}
void check_valid(const T& a) {
  const int64_t all = a.max_score.size(1), forced = a.force_begin_blocks + a.force_end_blocks;
  if (const TensorView* each = a.num_valid_pages ? a.num_valid_pages->tensor() : nullptr) {
    FI_CHECK(each->rank() == 1 && each->dtype() == DType::kI32, ValueError, "num_valid_pages is ", to_string(*each),
             ", but must be a number or a 1D int32 tensor");
    FI_CHECK(each->size(0) == a.max_score.size(2), ValueError, "num_valid_pages.shape[0] is ", each->size(0),
             ", but total_qo_len is ", a.max_score.size(2), " (from max_score.shape[2])");
    return;
  }
  const double n = a.num_valid_pages ? a.num_valid_pages->number() : static_cast<double>(all);
  FI_CHECK(!a.num_valid_pages || (n == std::floor(n) && n >= 1 && n <= static_cast<double>(all)), ValueError,
           "num_valid_pages is ", n, ", but must be in [1, ", all, "] (max_score.shape[1])");
  FI_CHECK(static_cast<double>(forced) <= n, ValueError, "force_begin_blocks + force_end_blocks is ", forced,
           ", but num_valid_pages is ", n);
}
void validate(const T& a) {
  FI_CHECK(a.topk >= 1 && a.topk <= INT32_MAX, ValueError, "topk is ", a.topk, ", but must be at least 1");
  FI_CHECK(a.force_begin_blocks >= 0, ValueError, "force_begin_blocks is ", a.force_begin_blocks,
           ", but must be at least 0");
  FI_CHECK(a.force_end_blocks >= 0, ValueError, "force_end_blocks is ", a.force_end_blocks, ", but must be at least 0");
  FI_CHECK(a.force_begin_blocks <= a.topk && a.force_end_blocks <= a.topk - a.force_begin_blocks, ValueError,
           "force_begin_blocks is ", a.force_begin_blocks, " and force_end_blocks ", a.force_end_blocks,
           ", but topk is only ", a.topk);
  check_valid(a);
}

/// The blocks of one row in ascending order; `scores` are its valid ones.
void choose(const float* scores, int64_t valid, const T& a, std::vector<int32_t>& order, int32_t* out) {
  const int64_t begin = std::min(a.force_begin_blocks, valid);
  const int64_t end = std::max(begin, valid - a.force_end_blocks);  // of the blocks that compete
  const int64_t most = std::min(a.topk, valid), free = std::min(most - begin - (valid - end), end - begin);
  order.clear();
  for (int64_t t = begin; t < end; ++t) order.push_back(static_cast<int32_t>(t));
  const auto better = [&](int32_t x, int32_t y) {
    const float p = scores[x], q = scores[y];
    if (std::isnan(p) != std::isnan(q)) return std::isnan(p);
    return p > q || (!(p < q) && x < y);
  };
  if (free < end - begin) std::nth_element(order.begin(), order.begin() + free, order.end(), better);
  order.resize(static_cast<size_t>(free));
  for (int64_t t = 0; t < begin; ++t) order.push_back(static_cast<int32_t>(t));
  for (int64_t t = end; t < valid; ++t) order.push_back(static_cast<int32_t>(t));
  std::sort(order.begin(), order.end());
  std::fill(std::copy(order.begin(), order.end(), out), out + a.topk, -1);
}
void choose_rows(const T& a, int64_t h, int64_t first) {
  const TensorView& s = a.max_score;
  const int64_t n = std::min(kRows, s.size(2) - first), blocks = s.size(1);
  std::vector<float> scores(static_cast<size_t>(n * blocks));
  std::vector<int32_t> order;
  for (int64_t t = 0; t < blocks; ++t)
    for (int64_t i = 0; i < n; ++i)
      scores[static_cast<size_t>(i * blocks + t)] =
          s.data_as<float>()[h * s.stride(0) + t * s.stride(1) + (first + i) * s.stride(2)];
  for (int64_t i = 0; i < n; ++i)
    choose(scores.data() + i * blocks, valid_of(a, first + i), a, order,
           a.output->data_as<int32_t>() + (first + i) * a.output->stride(0) + h * a.output->stride(1));
}
op::Prepared prepare(const T& a) {
  const int64_t tiles = ceil_div(a.max_score.size(2), kRows), items = tiles * a.max_score.size(0);
  const int64_t per_task = ops::rows_per_task(items, kRows * a.max_score.size(1) * 8);
  return [&a, tiles, items, per_task] {
    ops::for_rows(items, per_task, [&](int64_t i) { choose_rows(a, i / tiles, i % tiles * kRows); });
  };
}
op::Prepared prepare_cuda(const T& a, const op::Call& call) {
  const TensorView &s = a.max_score, &out = *a.output;
  constexpr MsaSelectConfig c{.threads = 256};
  MsaSelectParams p{.score = s.data_as<float>(),
                    .score_head = s.stride(0),
                    .score_tile = s.stride(1),
                    .score_row = s.stride(2),
                    .n = s.size(2),
                    .blocks = s.size(1),
                    .topk = a.topk,
                    .begin = a.force_begin_blocks,
                    .end = a.force_end_blocks,
                    .valid = msa::cuda_indices(a.num_valid_pages ? a.num_valid_pages->tensor() : nullptr),
                    .all_valid = s.size(1),
                    .out = out.data_as<int32_t>(),
                    .out_row = out.stride(0),
                    .out_head = out.stride(1)};
  if (a.num_valid_pages && !p.valid.data) p.all_valid = static_cast<int64_t>(a.num_valid_pages->number());
  cuda::Launch l;
  l.grid[0] = cuda::grid_size(ceil_div(p.n, c.threads / 32)), l.grid[1] = cuda::grid_size(s.size(0));
  l.block[0] = static_cast<unsigned>(c.threads), l.pdl = true;
  return ops::prepare_cuda<kSelectCuda>(c, p, call.device, l);
}
void reference(const T& a) {
  for (int64_t r = 0; r < a.max_score.size(2); ++r)
    for (int64_t h = 0; h < a.max_score.size(0); ++h) {
      const auto chosen =
          ref::msa_select(a.max_score, h, r, a.topk, valid_of(a, r), a.force_begin_blocks, a.force_end_blocks);
      for (int64_t c = 0; c < a.topk; ++c)
        ref::put(*a.output, {r, h, c}, static_cast<double>(chosen[static_cast<size_t>(c)]));
    }
}
op::Cost cost(const T& a) {
  return {.bytes = static_cast<double>(a.max_score.nbytes()), .flops = static_cast<double>(a.max_score.numel())};
}

constexpr op::Field fields[] = {
    op::in<&T::max_score>("max_score", "h x n", DType::kF32, op::any_layout),
    op::attr<&T::topk>("topk", op::required),
    op::attr<&T::num_valid_pages>("num_valid_pages"),
    op::out<&T::output>("output", nullptr, DType::kI32, op::shape<chosen_shape>),
    op::attr<&T::force_begin_blocks>("force_begin_blocks"),
    op::attr<&T::force_end_blocks>("force_end_blocks"),
};
constexpr op::Candidate candidates[] = {op::cuda<prepare_cuda>(), op::cpu<prepare>(), op::reference<reference>()};
}  // namespace

namespace ops::msa {
constinit const op::Op select_op = op::define<T, validate, cost>(
    "msa_topk_select", "flashinfer.msa_ops",
    "The topk blocks of each row and head with the largest scores, in ascending order, then -1.", fields, candidates,
    select_cases);
}  // namespace ops::msa

Tensor msa_topk_select(const T& a) { return op::call(ops::msa::select_op, a); }

}  // namespace flashinfer
