// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/moe/lora_steps.h"

#include <algorithm>
#include <memory>

#include "flashinfer/core/transfer.h"
#include "flashinfer/op/call.h"
#include "flashinfer/ops/common/append.h"
#include "flashinfer/ops/common/reference.h"
#include "flashinfer/ops/common/rows.h"
#include "flashinfer/ops/moe/cases.h"
#include "flashinfer/ops/moe/cuda/lora.h"
#include "flashinfer/ops/moe/kernels/lora_steps_params.h"
#include "flashinfer/ops/moe/ops.h"

namespace flashinfer {
namespace {
using Shrink = BgmvMoeShrinkWeights;
using Expand = BgmvMoeExpandWeights;
inline constexpr jit::Kernel kStep{"flashinfer/ops/moe/kernels/cpu/lora_steps.h", "flashinfer::cpu::moe_lora_step",
                                   "flashinfer::MoeLoraStepParams"};

/// A pair that is multiplied.
struct Pair {
  bool counts;
  int64_t token, adapter, expert;
};
template <class B>
Pair pair_of(const B& a, int64_t p) {
  Pair r{false, op::index_at(a.sorted_token_ids, p), -1, op::index_at(a.expert_ids, p)};
  if (r.token < 0 || r.token >= a.lora_indices.size(0)) return r;
  r.adapter = op::index_at(a.lora_indices, r.token);
  r.counts = r.adapter >= 0;
  return r;
}
int64_t source(const Shrink& a, int64_t p, int64_t token) { return a.per_pair_input ? p : token; }
int64_t source(const Expand&, int64_t p, int64_t) { return p; }
float weight_of(const Shrink&, int64_t) { return 1.0f; }
float weight_of(const Expand& a, int64_t p) {
  return a.finalize ? a.topk_weights.data_as<float>()[p * a.topk_weights.stride(0)] : 1.0f;
}
int64_t row_of(const Shrink&, int64_t p, int64_t) { return p; }
int64_t row_of(const Expand& a, int64_t p, int64_t token) { return a.finalize ? token : p; }
int64_t rows_of(const Shrink& a) { return a.sorted_token_ids.size(0); }
int64_t rows_of(const Expand& a) { return a.finalize ? a.lora_indices.size(0) : a.sorted_token_ids.size(0); }
bool adds(const Shrink&) { return true; }
bool adds(const Expand& a) { return a.finalize; }
int64_t column_of(const Shrink&, size_t) { return 0; }
int64_t column_of(const Expand& a, size_t s) { return op::index_at(a.slice_start_loc, static_cast<int64_t>(s)); }

// ---- checks ----
template <class B>
void check_matrices(const B& a, int64_t slices, int64_t k) {
  FI_CHECK(static_cast<int64_t>(a.weights.size()) == slices && slices > 0, ValueError, "weights has ", a.weights.size(),
           " slices, but ", slices, " are wanted, and at least one");
  for (size_t s = 0; s < a.weights.size(); ++s) {
    const TensorView &w = a.weights[s], &first = a.weights[0];
    FI_CHECK(w.rank() == 4 && w.size(3) == k && w.size(0) == first.size(0) && w.size(1) == first.size(1), ValueError,
             "weights[", s, "] is ", to_string(w), ", but must be [adapters, experts, n, ", k,
             "], with the adapters and experts of weights[0]");
    FI_CHECK(w.dtype() == first.dtype() && w.stride(3) == 1, ValueError, "weights[", s, "] is ", to_string(w),
             ", but must have the dtype of weights[0] and contiguous rows");
  }
  for (const TensorView* t : {&a.sorted_token_ids, &a.expert_ids, &a.lora_indices})
    if (!host_can_read(t->device())) return;
  for (int64_t p = 0; p < a.sorted_token_ids.size(0); ++p) {
    const Pair one = pair_of(a, p);
    if (!one.counts) continue;
    const TensorView& w = a.weights[0];
    FI_CHECK(one.expert >= 0 && one.expert < w.size(1), ValueError, "expert_ids[", p, "] is ", one.expert,
             ", but there are ", w.size(1), " experts");
    FI_CHECK(one.adapter < w.size(0), ValueError, "lora_indices[", one.token, "] is ", one.adapter, ", but there are ",
             w.size(0), " adapters");
  }
}
void validate_shrink(const Shrink& a) {
  const int64_t rows = a.per_pair_input ? a.sorted_token_ids.size(0) : a.lora_indices.size(0);
  FI_CHECK(a.x.size(0) == rows, ValueError, "x.shape[0] is ", a.x.size(0), ", but there are ", rows,
           a.per_pair_input ? " pairs" : " lora_indices");
  check_matrices(a, a.y.size(0), a.x.size(1));
  for (size_t s = 0; s < a.weights.size(); ++s)
    FI_CHECK(a.weights[s].size(2) == a.y.size(2), ValueError, "weights[", s, "] has rank ", a.weights[s].size(2),
             ", but y.shape[2] is ", a.y.size(2));
}
void validate_expand(const Expand& a) {
  FI_CHECK(a.y.size(0) == rows_of(a), ValueError, "y.shape[0] is ", a.y.size(0), ", but there are ", rows_of(a),
           a.finalize ? " lora_indices" : " pairs");
  check_matrices(a, a.x.size(0), a.x.size(2));
  FI_CHECK(a.output_slices.size() == a.weights.size(), ValueError, "output_slices has ", a.output_slices.size(),
           " numbers, but there are ", a.weights.size(), " slices");
  for (size_t s = 0; s < a.weights.size(); ++s) {
    const int64_t n = a.output_slices[s];
    FI_CHECK(a.weights[s].size(2) == n, ValueError, "weights[", s, "] has ", a.weights[s].size(2),
             " rows, but output_slices[", s, "] is ", n);
    if (!host_can_read(a.slice_start_loc.device())) continue;
    FI_CHECK(column_of(a, s) >= 0 && column_of(a, s) + n <= a.y.size(1), ValueError, "slice_start_loc[", s, "] is ",
             column_of(a, s), " and output_slices[", s, "] ", n, ", but y has ", a.y.size(1), " columns");
  }
}

// ---- launches ----
struct Work {
  std::vector<MoeLoraMatrix> slices;
  std::vector<MoeLoraItem> items;
  std::vector<int64_t> first;
};
template <class B>
std::shared_ptr<const Work> work_of(const B& a) {
  auto w = std::make_shared<Work>();
  for (size_t s = 0; s < a.weights.size(); ++s) {
    const TensorView& m = a.weights[s];
    w->slices.push_back({m.data(), m.stride(0), m.stride(1), m.stride(2), column_of(a, s), m.size(2)});
  }
  const int64_t pairs = a.sorted_token_ids.size(0);
  w->first.assign(static_cast<size_t>(rows_of(a)) + 1, 0);
  std::vector<Pair> all;
  for (int64_t p = 0; p < pairs; ++p) {
    all.push_back(pair_of(a, p));
    if (all.back().counts) ++w->first[static_cast<size_t>(row_of(a, p, all.back().token)) + 1];
  }
  for (size_t r = 1; r < w->first.size(); ++r) w->first[r] += w->first[r - 1];
  w->items.resize(static_cast<size_t>(w->first.back()));
  std::vector<int64_t> next(w->first.begin(), w->first.end() - 1);
  for (int64_t p = 0; p < pairs; ++p) {
    const Pair& one = all[static_cast<size_t>(p)];
    if (!one.counts) continue;
    const auto row = static_cast<size_t>(row_of(a, p, one.token));
    w->items[static_cast<size_t>(next[row]++)] = {static_cast<int32_t>(one.adapter), static_cast<int32_t>(one.expert),
                                                  source(a, p, one.token), weight_of(a, p)};
  }
  return w;
}
template <class B>
op::Prepared prepare(const B& a) {
  const auto work = work_of(a);
  const bool slices = a.x.rank() == 3;  // of x; else of y
  MoeLoraStepParams p{};
  p.x = a.x.data(), p.y = a.y.data(), p.k = a.x.size(-1);
  p.x_slice = slices ? a.x.stride(0) : 0, p.x_row = a.x.stride(slices ? 1 : 0);
  p.y_slice = slices ? 0 : a.y.stride(0), p.y_row = a.y.stride(slices ? 0 : 1);
  p.slices = work->slices.data(), p.num_slices = static_cast<int64_t>(work->slices.size());
  p.items = work->items.data(), p.first = work->first.data();
  p.rows = rows_of(a), p.add = adds(a);
  int64_t bytes = 0;
  for (const MoeLoraMatrix& m : work->slices) bytes += m.n * p.k * a.weights[0].item_size();
  p.rows_per_task = ops::rows_per_task(p.rows, bytes * (1 + static_cast<int64_t>(work->items.size()) / (p.rows + 1)));
  return ops::with_kernel<kStep>(MoeLoraStepConfig{a.x.dtype(), a.weights[0].dtype(), a.y.dtype()},
                                 [p, work](jit::CpuFn fn) { ops::run_rows(fn, p, p.rows, p.rows_per_task); });
}

int64_t rows_by_pair(const Shrink& a) { return a.per_pair_input; }
int64_t rows_by_pair(const Expand&) { return 1; }
template <class B>
op::Prepared prepare_cuda(const B& a, const op::Call& call) {
  const int64_t pairs = a.sorted_token_ids.size(0), tokens = a.lora_indices.size(0);
  if (pairs >= int64_t{1} << 30 || tokens >= int64_t{1} << 30) return op::Unsupported{"there are 2^30 or more rows"};
  const auto steps = std::make_shared<ops::CudaSteps>(call.device);
  const bool slices = a.x.rank() == 3;  // of x; else of y
  moe::LoraStep step{.x = a.x.dtype(), .w = a.weights[0].dtype(), .y = a.y.dtype(), .rows = rows_of(a)};
  MoeLoraCudaParams& p = step.params;
  p.pairs = moe::lora_pairs(a.sorted_token_ids, a.expert_ids, a.lora_indices, a.weights[0]);
  p.x_row = a.x.stride(slices ? 1 : 0), p.y_row = a.y.stride(slices ? 0 : 1), p.y_columns = a.y.size(-1);
  p.x_by_pair = static_cast<int32_t>(rows_by_pair(a)), p.add = adds(a);
  if constexpr (std::is_same_v<B, Expand>) {
    p.column = ops::strided_indices(a.slice_start_loc);
    if (a.finalize) {
      p.weights = a.topk_weights.template data_as<float>(), p.weight_stride = a.topk_weights.stride(0);
      const moe::LoraTokens by_token = moe::add_lora_tokens(*steps, p.pairs);
      p.offsets = by_token.offsets.template data_as<int32_t>();
      p.entry_of = by_token.entry_of.template data_as<int32_t>();
    }
  }
  for (size_t s = 0; s < a.weights.size(); ++s) {
    const auto i = static_cast<int64_t>(s);
    step.slices.push_back(moe::lora_slice(a.weights[s], slices ? a.x.select(0, i).data() : a.x.data(),
                                          slices ? a.y.data() : a.y.select(0, i).data()));
  }
  moe::add_lora_step(*steps, step);
  return ops::CudaSteps::prepared(steps);
}

template <class B>
void reference(const B& a) {
  const auto x = [&](int64_t s, int64_t row, int64_t i) {
    return a.x.rank() == 3 ? ref::at(a.x, {s, row, i}) : ref::at(a.x, {row, i});
  };
  const int64_t k = a.x.size(-1);
  for (size_t s = 0; s < a.weights.size(); ++s) {
    const auto slice = static_cast<int64_t>(s);
    const int64_t n = a.weights[s].size(2);
    const auto y = [&](int64_t row, int64_t i) {
      return a.y.rank() == 3 ? a.y.select(0, slice).select(0, row).slice(0, i, i + 1)
                             : a.y.select(0, row).slice(0, column_of(a, s) + i, column_of(a, s) + i + 1);
    };
    for (int64_t row = 0; row < rows_of(a); ++row)
      for (int64_t i = 0; i < n; ++i) {
        double sum = adds(a) ? ref::at(y(row, i), {0}) : 0.0;
        for (int64_t p = 0; p < a.sorted_token_ids.size(0); ++p) {
          const Pair one = pair_of(a, p);
          if (!one.counts || row_of(a, p, one.token) != row) continue;
          double dot = 0;
          for (int64_t j = 0; j < k; ++j)
            dot += ref::at(a.weights[s], {one.adapter, one.expert, i, j}) * x(slice, source(a, p, one.token), j);
          sum += static_cast<double>(weight_of(a, p)) * dot;
        }
        ref::put(y(row, i), {0}, sum);
      }
  }
}
template <class B>
op::Cost cost(const B& a) {
  op::Cost c;
  for (const TensorView& w : a.weights) {
    const double n = static_cast<double>(a.sorted_token_ids.size(0) * w.size(2) * w.size(3));
    c.flops += 2 * n, c.bytes += n * static_cast<double>(w.item_size());
  }
  return c;
}

// ---- tables ----
constexpr op::Field shrink_fields[] = {
    op::inout<&Shrink::y>("y", "s p r", op::floats),
    op::in<&Shrink::x>("x", "rows h", op::floats),
    op::in<&Shrink::weights>("weights", nullptr, op::floats),
    op::in<&Shrink::sorted_token_ids>("sorted_token_ids", "p", op::indices, op::any_layout),
    op::in<&Shrink::expert_ids>("expert_ids", "p", op::indices, op::any_layout),
    op::in<&Shrink::lora_indices>("lora_indices", "t", op::indices, op::any_layout),
    op::attr<&Shrink::per_pair_input>("per_pair_input"),
};
constexpr op::Field expand_fields[] = {
    op::inout<&Expand::y>("y", "rows columns", op::floats),
    op::in<&Expand::x>("x", "s p r", op::floats),
    op::in<&Expand::weights>("weights", nullptr, op::floats),
    op::in<&Expand::sorted_token_ids>("sorted_token_ids", "p", op::indices, op::any_layout),
    op::in<&Expand::expert_ids>("expert_ids", "p", op::indices, op::any_layout),
    op::in<&Expand::topk_weights>("topk_weights", "p", DType::kF32, op::any_layout),
    op::in<&Expand::lora_indices>("lora_indices", "t", op::indices, op::any_layout),
    op::in<&Expand::slice_start_loc>("slice_start_loc", "s", op::indices, op::any_layout),
    op::attr<&Expand::output_slices>("output_slices", op::required),
    op::attr<&Expand::finalize>("finalize"),
};
constexpr op::Candidate shrink_candidates[] = {op::cuda<prepare_cuda<Shrink>>(), op::cpu<prepare<Shrink>>(),
                                               op::reference<reference<Shrink>>()};
constexpr op::Candidate expand_candidates[] = {op::cuda<prepare_cuda<Expand>>(), op::cpu<prepare<Expand>>(),
                                               op::reference<reference<Expand>>()};
constexpr op::Case kShrinkCases[] = {
    {"two_slices",
     "y=bf16:2x7x16 x=bf16:4x256 weights=(bf16:2x3x16x256:normal(0,0.1),bf16:2x3x16x256:normal(0,0.1)) "
     "sorted_token_ids=i64:[0,0,1,2,3,3,-1] expert_ids=i64:[2,1,0,0,1,2,99] lora_indices=i64:[1,0,-1,1]",
     "cpu", op::kAot},
    {"per_pair",
     "y=f32:1x4x5 x=f16:4x37^pad3 weights=(f16:1x2x5x37) sorted_token_ids=i32:[2,0,2,9] expert_ids=i32:[0,1,1,0] "
     "lora_indices=i32:[0,0,0] per_pair_input=True",
     "cpu", op::kAot},
    {"no_pairs",
     "y=f32:1x0x4 x=f32:3x8 weights=(f32:1x2x4x8) sorted_token_ids=i32:[] expert_ids=i32:[] lora_indices=i32:[0,0,0]"},
};
constexpr op::Case kExpandCases[] = {
    {"finalize",
     "y=f32:4x80 x=bf16:2x7x16 weights=(bf16:2x3x32x16,bf16:2x3x48x16) "
     "sorted_token_ids=i64:[0,0,1,2,3,3,-1] expert_ids=i64:[2,1,0,0,1,2,99] topk_weights=f32:7 "
     "lora_indices=i64:[1,0,-1,1] "
     "slice_start_loc=i64:[48,0] output_slices=(32,48)",
     "cpu", op::kAot},
    {"pairs",
     "y=bf16:4x11 x=f32:1x4x5 weights=(f16:1x2x11x5) sorted_token_ids=i32:[2,0,2,9] expert_ids=i32:[0,1,1,0] "
     "topk_weights=f32:4 lora_indices=i32:[0,-1,0] slice_start_loc=i32:[0] output_slices=(11) finalize=False",
     "cpu", op::kAot},
};
std::span<const op::Case> shrink_cases() { return kShrinkCases; }
std::span<const op::Case> expand_cases() { return kExpandCases; }
}  // namespace

namespace ops::moe {
constinit const op::Op lora_shrink_op = op::define<Shrink, validate_shrink, cost<Shrink>>(
    "bgmv_moe_shrink_weights", "flashinfer.fused_moe",
    "The first step of bgmv_moe: rows times the matrices A of their adapters and experts.", shrink_fields,
    shrink_candidates, shrink_cases);
constinit const op::Op lora_expand_op = op::define<Expand, validate_expand, cost<Expand>>(
    "bgmv_moe_expand_weights", "flashinfer.fused_moe",
    "The second step of bgmv_moe: rows of the first times the matrices B, added up by token or pair by pair.",
    expand_fields, expand_candidates, expand_cases);
}  // namespace ops::moe

void bgmv_moe_shrink_weights(const Shrink& a) { op::call(ops::moe::lora_shrink_op, a); }
void bgmv_moe_expand_weights(const Expand& a) { op::call(ops::moe::lora_expand_op, a); }

}  // namespace flashinfer
