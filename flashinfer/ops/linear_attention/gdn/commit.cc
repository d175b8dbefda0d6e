// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "flashinfer/op/call.h"
#include "flashinfer/ops/common/cuda.h"
#include "flashinfer/ops/common/task_scratch.h"
#include "flashinfer/ops/linear_attention/cases.h"
#include "flashinfer/ops/linear_attention/cuda_launch.h"
#include "flashinfer/ops/linear_attention/gate_checks.h"
#include "flashinfer/ops/linear_attention/gdn/decode.h"
#include "flashinfer/ops/linear_attention/gdn/decode_ref.h"
#include "flashinfer/ops/linear_attention/kernels/gdn/commit_params.h"
#include "flashinfer/ops/linear_attention/ops.h"

namespace flashinfer {
namespace {
using Commit = GatedDeltaRuleReplayssmCommit;
inline constexpr jit::Kernel kGdnCommit{"flashinfer/ops/linear_attention/kernels/gdn/commit.h",
                                        "flashinfer::cpu::gdn_commit", "flashinfer::GdnCommitParams"};
inline constexpr jit::Kernel kGdnCommitCuda{"flashinfer/ops/linear_attention/kernels/cuda/gdn_commit.cuh",
                                            "flashinfer::cu::gdn_commit", "flashinfer::GdnCommitParams"};

GdnCommitParams params_of(const Commit& a) {
  GdnCommitParams p{};
  const TensorView &s = a.checkpoint_state, &v = a.rawv_cache, &k = a.rawk_cache, &g = a.g_cache, &b = a.beta_cache;
  p.layers = s.size(0), p.batch = a.state_indices.size(0), p.heads = k.size(2), p.value_heads = s.size(2);
  p.states = s.data_as<float>(), p.layer = s.stride(0), p.slot = s.stride(1), p.head = s.stride(2), p.row = s.stride(3);
  p.raw_v = v.data_as<bf16_t>(), p.raw_k = k.data_as<bf16_t>();
  p.v_layer = v.stride(0), p.v_slot = v.stride(1), p.v_head = v.stride(2), p.v_token = v.stride(3);
  p.k_layer = k.stride(0), p.k_slot = k.stride(1), p.k_head = k.stride(2), p.k_token = k.stride(3);
  p.log_decay = g.data_as<float>(), p.g_layer = g.stride(0), p.g_slot = g.stride(1), p.g_head = g.stride(2);
  p.beta = b.data_as<float>(), p.beta_layer = b.stride(0), p.beta_slot = b.stride(1), p.beta_head = b.stride(2);
  p.slots = a.state_indices.data_as<int32_t>(), p.slots_stride = a.state_indices.stride(0);
  p.accepted = a.accept_lens.data_as<int32_t>(), p.accepted_stride = a.accept_lens.stride(0);
  if (a.track_steps) {
    p.track_slots = a.track_state_indices->data_as<int32_t>(), p.track_slots_stride = a.track_state_indices->stride(0);
    p.track_steps = a.track_steps->data_as<int32_t>(), p.track_steps_stride = a.track_steps->stride(0);
  }
  p.null_slot = a.null_block_id, p.l2norm = a.use_qk_l2norm;
  p.pool = s.size(1), p.tokens = v.size(3);
  return p;
}
op::Prepared prepare_cpu(const Commit& a) {
  return ops::with_kernel<kGdnCommit>(GdnCommitConfig{kGdnCommitWidth}, [p = params_of(a)](jit::CpuFn fn) {
    ops::run_rows_with_scratch(fn, p, p.layers * p.batch * p.value_heads, 1, gdn_commit_scratch(p.tokens));
  });
}
/// Indices are read by the kernel alone.
op::Prepared prepare_cuda(const Commit& a, const op::Call& call) {
  namespace la = ops::linear_attention;
  GdnCommitParams p = params_of(a);
  p.wide = la::rows_aligned(a.rawk_cache);
  if (!la::rows_aligned(a.checkpoint_state))
    return op::Unsupported{"checkpoint_state begins at no multiple of 16 bytes"};
  const DeltaCudaConfig config = la::delta_config(DType::kF32, kGdnCommitWidth, true);
  const int64_t items = p.layers * p.batch * p.value_heads;
  if (std::string why = la::grid_unsupported(items, kGdnCommitWidth, config.block_rows()); !why.empty())
    return op::Unsupported{std::move(why)};
  return ops::prepare_cuda<kGdnCommitCuda>(
      config, p, call.device, la::delta_launch(items, kGdnCommitWidth, config.block_rows(), config.threads));
}

void reference_head(const Commit& a, int64_t layer, int64_t i, int64_t h) {
  const int64_t slot = op::index_at(a.state_indices, i), tokens = op::index_at(a.accept_lens, i);
  const int64_t track = a.track_steps ? op::index_at(*a.track_state_indices, i) : a.null_block_id;
  if (slot <= a.null_block_id || tokens == 0) return;
  const TensorView& c = a.checkpoint_state;
  const int64_t n = c.size(4), query = h * a.rawk_cache.size(2) / c.size(2);
  ref::GdnState s(static_cast<size_t>(c.size(3)), std::vector<double>(static_cast<size_t>(n)));
  const auto each = [&](auto f) {
    for (int64_t v = 0; v < c.size(3); ++v)
      for (int64_t k = 0; k < n; ++k) f(v, k, s[static_cast<size_t>(v)][static_cast<size_t>(k)]);
  };
  each([&](int64_t v, int64_t k, double& x) { x = ref::at(c, {layer, slot, h, v, k}); });
  const TensorView keys = a.rawk_cache.select(0, layer), values = a.rawv_cache.select(0, layer);
  for (int64_t t = 0; t < tokens; ++t) {
    ref::gdn_update(s, std::exp(ref::at(a.g_cache, {layer, slot, h, t})), ref::at(a.beta_cache, {layer, slot, h, t}),
                    ref::gdn_row(keys, slot, query, t, a.use_qk_l2norm, 1), ref::gdn_row(values, slot, h, t, false, 1));
    if (a.track_steps && t == op::index_at(*a.track_steps, i) && track > a.null_block_id)
      each([&](int64_t v, int64_t k, double x) { ref::put(c, {layer, track, h, v, k}, x); });
  }
  each([&](int64_t v, int64_t k, double x) { ref::put(c, {layer, slot, h, v, k}, x); });
}
void reference(const Commit& a) {
  for (int64_t layer = 0; layer < a.checkpoint_state.size(0); ++layer)
    for (int64_t i = 0; i < a.state_indices.size(0); ++i)
      for (int64_t h = 0; h < a.checkpoint_state.size(2); ++h) reference_head(a, layer, i, h);
}

/// The slots above null_block_id of both arrays are in the pool, and none occurs twice.
void check_slots(const Commit& a) {
  struct Named {
    int64_t slot;
    const char* name;
    int64_t i;
  };
  std::vector<Named> all;
  const auto add = [&](const char* name, const TensorView& t) {
    for (int64_t i = 0; i < t.size(0); ++i) {
      const int64_t slot = op::index_at(t, i), slots = a.checkpoint_state.size(1);
      FI_CHECK(slot < slots, ValueError, name, "[", i, "] is ", slot, ", but checkpoint_state has ", slots, " slots");
      if (slot > a.null_block_id) all.push_back({slot, name, i});
    }
  };
  add("state_indices", a.state_indices);
  if (a.track_state_indices) add("track_state_indices", *a.track_state_indices);
  std::ranges::sort(all, {}, &Named::slot);
  for (size_t i = 1; i < all.size(); ++i)
    FI_CHECK(all[i - 1].slot != all[i].slot, ValueError, all[i].name, "[", all[i].i, "] and ", all[i - 1].name, "[",
             all[i - 1].i, "] are both ", all[i].slot, ", but slots must differ");
}
/// Of the accepted tokens alone: what the caches hold behind them was never written, or is of a rejected token.
void check_gates(const Commit& a) {
  if (!ops::linear_attention::gates_readable(a.g_cache)) return;
  for (const auto& [name, t] : {std::pair{"g_cache", &a.g_cache}, std::pair{"beta_cache", &a.beta_cache}})
    for (int64_t i = 0; i < a.state_indices.size(0); ++i) {
      const int64_t slot = op::index_at(a.state_indices, i), tokens = op::index_at(a.accept_lens, i);
      if (slot <= a.null_block_id || tokens == 0) continue;
      const TensorView accepted = t->slice(1, slot, slot + 1).slice(3, 0, tokens);
      FI_CHECK(!ops::linear_attention::has_nan(accepted), ValueError, name, "[:, ", slot, ", :, :", tokens,
               "], of the accepted tokens of state_indices[", i, "], has a nan, but gates must be numbers");
    }
}
void validate(const Commit& a) {
  const TensorView& s = a.checkpoint_state;
  FI_CHECK(a.null_block_id >= -1, ValueError, "null_block_id is ", a.null_block_id, ", but must be at least -1");
  FI_CHECK(a.track_state_indices.has_value() == a.track_steps.has_value(), ValueError,
           a.track_steps ? "track_state_indices is None, but track_steps is given"
                         : "track_steps is None, but track_state_indices is given");
  FI_CHECK(s.size(0) > 0 && s.size(1) > 0, ValueError, "checkpoint_state is ", to_string(s),
           ", but must have at least one layer and one slot");
  const int64_t tokens = a.rawv_cache.size(3), heads = a.rawk_cache.size(2);
  FI_CHECK(tokens > 0, ValueError, "rawv_cache.shape[3] is 0, but must be at least 1");
  FI_CHECK(heads > 0 && s.size(2) % heads == 0, ValueError, "checkpoint_state.shape[2] is ", s.size(2),
           ", but must be a multiple of rawk_cache.shape[2], ", heads);
  if (a.state_indices.device().type == DeviceType::kCUDA) return;
  op::check_index_range("accept_lens", a.accept_lens, 0, tokens + 1, "tokens of the cache");
  check_slots(a);
  check_gates(a);
}
op::Cost cost(const Commit& a) {
  const double pairs = static_cast<double>(a.checkpoint_state.size(0) * a.checkpoint_state.size(2)) *
                       static_cast<double>(a.state_indices.size(0));
  const double cells = static_cast<double>(kGdnCommitWidth * kGdnCommitWidth);
  return {.bytes = pairs * cells * 8, .flops = 4 * pairs * cells * static_cast<double>(a.rawv_cache.size(3))};
}

constexpr op::Field fields[] = {
    op::inout<&Commit::checkpoint_state>("checkpoint_state", "l p hv 128 128", DType::kF32, op::contiguous),
    op::in<&Commit::rawv_cache>("rawv_cache", "l p hv t 128", DType::kBF16),
    op::in<&Commit::rawk_cache>("rawk_cache", "l p h t 128", DType::kBF16),
    op::in<&Commit::g_cache>("g_cache", "l p hv t", DType::kF32),
    op::in<&Commit::beta_cache>("beta_cache", "l p hv t", DType::kF32),
    op::in<&Commit::state_indices>("state_indices", "b", DType::kI32),
    op::in<&Commit::accept_lens>("accept_lens", "b", DType::kI32),
    op::in<&Commit::track_state_indices>("track_state_indices", "b", DType::kI32, op::keyword_only),
    op::in<&Commit::track_steps>("track_steps", "b", DType::kI32),
    op::attr<&Commit::use_qk_l2norm>("use_qk_l2norm"),
    op::attr<&Commit::null_block_id>("null_block_id"),
    op::attr<&Commit::backend>("backend", op::choices("auto|simt|tcgen05")),
};
constexpr op::Candidate candidates[] = {op::cuda<prepare_cuda>(), op::cpu<prepare_cpu>(), op::reference<reference>()};
}  // namespace

namespace ops::linear_attention {
extern const op::Op gdn_commit_op;
constinit const op::Op gdn_commit_op = op::define<Commit, validate, cost>(
    "gated_delta_rule_replayssm_commit", "flashinfer.gdn_decode",
    "Applies the accepted tokens of gated_delta_rule_mtp's replay cache to the states of all layers, in place.", fields,
    candidates, gdn_commit_cases);
}  // namespace ops::linear_attention

void gated_delta_rule_replayssm_commit(const Commit& a) { op::call(ops::linear_attention::gdn_commit_op, a); }

}  // namespace flashinfer
