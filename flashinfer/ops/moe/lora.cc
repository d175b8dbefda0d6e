// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/moe/lora.h"

#include <algorithm>
#include <memory>

#include "flashinfer/core/int_math.h"
#include "flashinfer/core/transfer.h"
#include "flashinfer/op/call.h"
#include "flashinfer/ops/common/reference.h"
#include "flashinfer/ops/common/rows.h"
#include "flashinfer/ops/common/thread_scratch.h"
#include "flashinfer/ops/moe/cases.h"
#include "flashinfer/ops/moe/cuda/lora.h"
#include "flashinfer/ops/moe/kernels/lora_params.h"
#include "flashinfer/ops/moe/ops.h"

namespace flashinfer {
namespace {
using L = BgmvMoe;
inline constexpr jit::Kernel kLora{"flashinfer/ops/moe/kernels/cpu/lora.h", "flashinfer::cpu::moe_lora",
                                   "flashinfer::MoeLoraParams"};

int64_t columns(const L& a) {
  int64_t n = 0;
  for (const TensorView& b : a.lora_b_weights) n += b.rank() == 4 ? b.size(2) : 0;
  return n;
}
/// Whether pair p counts; its token.
bool counts(const L& a, int64_t p, int64_t& token) {
  token = op::index_at(a.sorted_token_ids, p);
  return token >= 0 && token < a.x.size(0) && op::index_at(a.lora_indices, token) >= 0;
}
void check_matrices(const L& a, size_t s) {
  const TensorView &w = a.lora_a_weights[s], &b = a.lora_b_weights[s];
  FI_CHECK(w.rank() == 4 && w.size(1) == a.num_experts && w.size(3) == a.x.size(1), ValueError, "lora_a_weights[", s,
           "] is ", to_string(w), ", but must be [adapters, ", a.num_experts, " (num_experts), rank, ", a.x.size(1),
           "] (from x.shape[1])");
  FI_CHECK(b.rank() == 4 && b.size(0) == w.size(0) && b.size(1) == a.num_experts && b.size(3) == w.size(2), ValueError,
           "lora_b_weights[", s, "] is ", to_string(b), ", but must be [", w.size(0), ", ", a.num_experts, ", out, ",
           w.size(2), "] (adapters, experts and rank of lora_a_weights[", s, "])");
}
void validate(const L& a) {
  FI_CHECK(!a.lora_a_weights.empty() && a.lora_a_weights.size() == a.lora_b_weights.size(), ValueError,
           "lora_a_weights has ", a.lora_a_weights.size(), " slices and lora_b_weights ", a.lora_b_weights.size(),
           ", but both must have as many, at least one");
  for (size_t s = 0; s < a.lora_a_weights.size(); ++s) check_matrices(a, s);
  FI_CHECK(!a.output_dim || *a.output_dim == columns(a), ValueError, "output_dim is ", a.output_dim.value_or(0),
           ", but the slices of lora_b_weights have ", columns(a), " rows");
  for (const TensorView* t : {&a.sorted_token_ids, &a.expert_ids, &a.lora_indices})
    if (!host_can_read(t->device())) return;
  for (int64_t p = 0; p < a.sorted_token_ids.size(0); ++p) {
    int64_t token;
    if (!counts(a, p, token)) continue;
    const int64_t e = op::index_at(a.expert_ids, p), l = op::index_at(a.lora_indices, token);
    FI_CHECK(e >= 0 && e < a.num_experts, ValueError, "expert_ids[", p, "] is ", e, ", but num_experts is ",
             a.num_experts);
    for (const TensorView& w : a.lora_a_weights)
      FI_CHECK(l < w.size(0), ValueError, "lora_indices[", token, "] is ", l, ", but there are ", w.size(0),
               " adapters");
  }
}

/// What the kernel points to.
struct Work {
  std::vector<MoeLoraSlice> slices;
  std::vector<MoeLoraPair> pairs;
  std::vector<int64_t> token_pairs;
};
std::shared_ptr<const Work> work_of(const L& a) {
  auto w = std::make_shared<Work>();
  for (size_t s = 0; s < a.lora_a_weights.size(); ++s) {
    const TensorView &m = a.lora_a_weights[s], &n = a.lora_b_weights[s];
    w->slices.push_back({m.data(), n.data(), m.stride(0), m.stride(1), m.stride(2), n.stride(0), n.stride(1),
                         n.stride(2), m.size(2), n.size(2)});
  }
  const int64_t tokens = a.x.size(0), pairs = a.sorted_token_ids.size(0);
  int64_t token;
  w->token_pairs.assign(static_cast<size_t>(tokens + 1), 0);
  for (int64_t p = 0; p < pairs; ++p)
    if (counts(a, p, token)) ++w->token_pairs[static_cast<size_t>(token + 1)];
  for (size_t t = 0; t < static_cast<size_t>(tokens); ++t) w->token_pairs[t + 1] += w->token_pairs[t];
  w->pairs.resize(static_cast<size_t>(w->token_pairs.back()));
  std::vector<int64_t> next(w->token_pairs.begin(), w->token_pairs.end() - 1);
  for (int64_t p = 0; p < pairs; ++p)
    if (counts(a, p, token))
      w->pairs[static_cast<size_t>(next[static_cast<size_t>(token)]++)] = {
          static_cast<int32_t>(op::index_at(a.lora_indices, token)),
          static_cast<int32_t>(op::index_at(a.expert_ids, p)),
          a.topk_weights.data_as<float>()[p * a.topk_weights.stride(0)]};
  return w;
}
op::Prepared prepare(const L& a) {
  const auto work = work_of(a);
  MoeLoraParams p{};
  p.x = a.x.data(), p.x_stride = a.x.stride(0), p.hidden = a.x.size(1);
  p.slices = work->slices.data(), p.num_slices = static_cast<int64_t>(work->slices.size());
  p.pairs = work->pairs.data(), p.token_pairs = work->token_pairs.data();
  p.out = a.output->data_as<float>(), p.out_stride = a.output->stride(0), p.columns = columns(a);
  p.tokens = a.x.size(0);
  int64_t rank = 1, bytes = 0;
  for (const MoeLoraSlice& s : work->slices) {
    rank = std::max(rank, s.rank);
    bytes += s.rank * (p.hidden + s.out) * a.x.item_size();
  }
  const int64_t pairs = p.tokens ? static_cast<int64_t>(work->pairs.size()) / p.tokens + 1 : 1;
  p.tokens_per_task = ops::rows_per_task(p.tokens, pairs * bytes);
  return ops::with_kernel<kLora>(MoeLoraConfig{a.x.dtype()}, [p, work, rank](jit::CpuFn fn) {
    const int64_t tasks = ceil_div(p.tokens, p.tokens_per_task);
    const auto task = [&](int64_t i) {
      MoeLoraParams mine = p;
      mine.scratch = static_cast<float*>(ops::thread_scratch(rank * 4));
      fn(&mine, i);
    };
    if (tasks == 1) return task(0);
    if (tasks > 1) parallel_for(tasks, task);
  });
}
/// A x of each pair in f32, then B times that, added up by token.
op::Prepared prepare_cuda(const L& a, const op::Call& call) {
  const int64_t pairs = a.sorted_token_ids.size(0), tokens = a.x.size(0), all = columns(a);
  if (pairs >= int64_t{1} << 30 || tokens >= int64_t{1} << 30) return op::Unsupported{"there are 2^30 or more rows"};
  const auto steps = std::make_shared<ops::CudaSteps>(call.device);
  const MoeLoraPairs of = moe::lora_pairs(a.sorted_token_ids, a.expert_ids, a.lora_indices, a.lora_a_weights[0]);
  const moe::LoraTokens by_token = moe::add_lora_tokens(*steps, of);
  int64_t rank = 1;
  for (const TensorView& w : a.lora_a_weights) rank = std::max(rank, round_up(w.size(2), 8));
  moe::LoraStep shrink{.x = a.x.dtype(), .w = a.x.dtype(), .y = DType::kF32, .rows = pairs},
      expand{.x = DType::kF32, .w = a.x.dtype(), .y = DType::kF32, .rows = tokens};
  shrink.params.pairs = expand.params.pairs = of;
  shrink.params.x_row = a.x.stride(0), shrink.params.y_row = shrink.params.y_columns = rank;
  expand.params.x_row = rank, expand.params.y_row = a.output->stride(0), expand.params.y_columns = all;
  expand.params.weights = a.topk_weights.data_as<float>(), expand.params.weight_stride = a.topk_weights.stride(0);
  expand.params.offsets = by_token.offsets.data_as<int32_t>();
  expand.params.entry_of = by_token.entry_of.data_as<int32_t>();
  expand.params.x_by_pair = 1;
  int64_t column = 0;
  for (size_t s = 0; s < a.lora_a_weights.size(); ++s) {
    const TensorView small = steps->scratch({pairs, rank}, DType::kF32);
    shrink.slices.push_back(moe::lora_slice(a.lora_a_weights[s], a.x.data(), small.data()));
    expand.slices.push_back(moe::lora_slice(a.lora_b_weights[s], small.data(), a.output->data_as<float>() + column));
    column += a.lora_b_weights[s].size(2);
  }
  moe::add_lora_step(*steps, shrink);
  moe::add_lora_step(*steps, expand);
  return ops::CudaSteps::prepared(steps);
}
void reference(const L& a) {
  std::vector<double> out(static_cast<size_t>(a.x.size(0) * columns(a)), 0.0);
  for (int64_t p = 0; p < a.sorted_token_ids.size(0); ++p) {
    int64_t token, column = 0;
    if (!counts(a, p, token)) continue;
    const int64_t e = op::index_at(a.expert_ids, p), l = op::index_at(a.lora_indices, token);
    for (size_t s = 0; s < a.lora_a_weights.size(); ++s) {
      const TensorView &m = a.lora_a_weights[s], &n = a.lora_b_weights[s];
      std::vector<double> small;
      for (int64_t r = 0; r < m.size(2); ++r) {
        double sum = 0;
        for (int64_t i = 0; i < a.x.size(1); ++i) sum += ref::at(m, {l, e, r, i}) * ref::at(a.x, {token, i});
        small.push_back(sum);
      }
      for (int64_t o = 0; o < n.size(2); ++o, ++column)
        for (int64_t r = 0; r < m.size(2); ++r)
          out[static_cast<size_t>(token * columns(a) + column)] +=
              ref::at(a.topk_weights, {p}) * ref::at(n, {l, e, o, r}) * small[static_cast<size_t>(r)];
    }
  }
  for (int64_t t = 0; t < a.x.size(0); ++t)
    for (int64_t i = 0; i < columns(a); ++i) ref::put(*a.output, {t, i}, out[static_cast<size_t>(t * columns(a) + i)]);
}
op::Shape out_shape(const L& a) { return {2, {a.x.size(0), columns(a)}}; }
op::Cost cost(const L& a) {
  op::Cost c;
  for (size_t s = 0; s < a.lora_a_weights.size(); ++s) {
    const double n = static_cast<double>(a.sorted_token_ids.size(0) * a.lora_a_weights[s].size(2) *
                                         (a.x.size(1) + a.lora_b_weights[s].size(2)));
    c.flops += 2 * n, c.bytes += n * static_cast<double>(a.x.item_size());
  }
  return c;
}

constexpr op::Field fields[] = {
    op::in<&L::x>("x", "t h", op::floats),
    op::in<&L::lora_a_weights>("lora_a_weights", nullptr, op::same_as("x")),
    op::in<&L::lora_b_weights>("lora_b_weights", nullptr, op::same_as("x")),
    op::in<&L::sorted_token_ids>("sorted_token_ids", "p", op::indices, op::any_layout),
    op::in<&L::expert_ids>("expert_ids", "p", op::indices, op::any_layout),
    op::in<&L::lora_indices>("lora_indices", "t", op::indices, op::any_layout),
    op::in<&L::topk_weights>("topk_weights", "p", DType::kF32, op::any_layout),
    op::attr<&L::num_experts>("num_experts", op::required),
    op::attr<&L::output_dim>("output_dim"),
    op::result<&L::output>("output", nullptr, DType::kF32, op::shape<out_shape>),
};
constexpr op::Candidate candidates[] = {op::cuda<prepare_cuda>(), op::cpu<prepare>(), op::reference<reference>()};
constexpr op::Case kCases[] = {
    {"one_slice",
     "x=bf16:4x256 lora_a_weights=(bf16:2x3x16x256:normal(0,0.1)) lora_b_weights=(bf16:2x3x64x16) "
     "sorted_token_ids=i64:[0,0,1,2,3,3,-1] expert_ids=i64:[2,1,0,0,1,2,99] lora_indices=i64:[1,0,-1,1] "
     "topk_weights=f32:7 num_experts=3",
     "cpu", op::kAot | op::kTrace},
    {"two_slices_odd",
     "x=f16:3x37^pad3 lora_a_weights=(f16:1x2x5x37,f16:1x2x7x37) lora_b_weights=(f16:1x2x11x5,f16:1x2x3x7) "
     "sorted_token_ids=i32:[2,0,2,9] expert_ids=i32:[0,1,1,0] lora_indices=i32:[0,0,0] topk_weights=f32:4 "
     "num_experts=2 output_dim=14"},
    {"no_pairs",
     "x=f32:3x8 lora_a_weights=(f32:1x2x4x8) lora_b_weights=(f32:1x2x8x4) sorted_token_ids=i32:[] expert_ids=i32:[] "
     "lora_indices=i32:[0,0,0] topk_weights=f32:0 num_experts=2"},
};
std::span<const op::Case> cases() { return kCases; }
}  // namespace

namespace ops::moe {
constinit const op::Op lora_op = op::define<L, validate, cost>(
    "bgmv_moe", "flashinfer.fused_moe",
    "Sum over a token's experts of topk_weights * lora_b (lora_a x), of the token's adapter, slice by slice.", fields,
    candidates, cases);
}  // namespace ops::moe

Tensor bgmv_moe(const L& a) { return op::call(ops::moe::lora_op, a); }

}  // namespace flashinfer
