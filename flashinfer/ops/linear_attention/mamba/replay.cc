// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/linear_attention/mamba/replay.h"

#include <set>

#include "flashinfer/op/call.h"
#include "flashinfer/ops/common/task_scratch.h"
#include "flashinfer/ops/linear_attention/cases.h"
#include "flashinfer/ops/linear_attention/gate_checks.h"
#include "flashinfer/ops/linear_attention/mamba/replay_cuda.h"
#include "flashinfer/ops/linear_attention/mamba/replay_ref.h"
#include "flashinfer/ops/linear_attention/ops.h"
#include "flashinfer/ops/linear_attention/parts.h"

namespace flashinfer {
namespace {
namespace la = ops::linear_attention;
using Ssu = CheckpointingSsu;
using Layer = ReplaySsmMaterializeLayer;
using la::check_shape;
inline constexpr jit::Kernel kReplay{"flashinfer/ops/linear_attention/kernels/mamba/replay.h",
                                     "flashinfer::cpu::mamba_replay", "flashinfer::ReplayParams"};
constexpr int64_t kMaxWindow = 16;
constexpr DTypeSet kStates = op::floats | DType::kI8 | DType::kF8E4M3;

// ---- checks ----
/// One number a head: [heads] and axes of one number in memory.
void check_heads(const char* name, const TensorView& t, int64_t heads) {
  bool one = t.rank() >= 1 && t.size(0) == heads;
  for (int i = 1; i < t.rank(); ++i) one = one && (t.size(i) == 1 || t.stride(i) == 0);
  FI_CHECK(one, ValueError, name, " is ", to_string(t), ", but must be one number for each of ", heads,
           " heads: extents behind the first must be 1 or have stride 0 (broadcasted)");
}
template <class B>
void check_pools(const B& a, const TensorView& x_cache) {
  const int64_t slots = x_cache.size(0), heads = a.state.size(1), ring = x_cache.size(2), groups = a.B_cache.size(1);
  FI_CHECK(groups > 0 && heads % groups == 0, ValueError, "B_cache has ", groups, " groups, which do not divide the ",
           heads, " heads of state");
  FI_CHECK(ring > 0, ValueError, "x_cache is ", to_string(x_cache), ", but a ring needs rows");
  check_shape("x_cache", x_cache, {slots, heads, ring, a.state.size(2)});
  check_shape("B_cache", a.B_cache, {slots, groups, ring, a.state.size(3)});
  check_shape("dt_cache", a.dt_cache, {slots, heads, ring});
  const bool scaled = a.state.dtype() == DType::kI8 || a.state.dtype() == DType::kF8E4M3;
  FI_CHECK(scaled == a.state_scale.has_value(), ValueError, "state_scale is ", a.state_scale ? "given" : "missing",
           ", but state is ", to_string(a.state), " (int8 and e4m3 states have scales, others none)");
  if (a.state_scale) check_shape("state_scale", *a.state_scale, {a.state.size(0), heads, a.state.size(2)});
  if (!a.rand_seed) return;
  FI_CHECK(a.rand_seed->numel() == 1, ValueError, "rand_seed is ", to_string(*a.rand_seed), ", but must be one number");
  FI_CHECK(a.state.dtype() == DType::kF16 || a.state.dtype() == DType::kF8E4M3, ValueError,
           "rand_seed is given, but state is ", to_string(a.state), ": random rounding is for f16 and e4m3 states");
  FI_CHECK(a.philox_rounds > 0, ValueError, "philox_rounds is ", a.philox_rounds, ", but must be at least 1");
}
void check_tokens(const Ssu& a) {
  const int64_t heads = a.state.size(1), rows = a.x.size(0), steps = a.x.size(1), dim = a.state.size(2);
  check_shape("x", a.x, {rows, steps, heads, dim});
  if (a.z) check_shape("z", *a.z, {rows, steps, heads, dim});
  FI_CHECK(a.dt.rank() == 4 && a.dt.size(0) == rows && a.dt.size(1) == steps && a.dt.size(2) == heads &&
               (a.dt.size(3) == 1 || (a.dt.size(3) == dim && a.dt.stride(3) == 0)),
           ValueError, "dt is ", to_string(a.dt),
           ", but must have the shape of x, its last stride must be 0 (broadcasted)");
  check_shape("B", a.B, {rows, steps, a.B_cache.size(1), a.state.size(3)});
  check_shape("C", a.C, {rows, steps, a.B_cache.size(1), a.state.size(3)});
  check_heads("A", a.A, heads);
  if (a.dt_bias) check_heads("dt_bias", *a.dt_bias, heads);
  FI_CHECK(!a.D || (a.D->rank() == 2 && a.D->size(0) == heads && (a.D->size(1) == 1 || a.D->size(1) == dim)),
           ValueError, "D is ", to_string(a.D.value_or(a.x)), ", but must be [", heads, ", ", dim, "]");
}
void check_slots(const Ssu& a, int64_t window) {
  const int64_t slots = a.state.size(0);
  for (int64_t i = 0; i < la::replay_count(a); ++i) {
    const int64_t s = la::replay_slot(a, i);
    if (s == a.pad_slot_id) continue;
    FI_CHECK(s >= 0 && s < slots, ValueError, "state_batch_indices[", i, "] is ", s, ", but state has ", slots,
             " slots (pad_slot_id is ", a.pad_slot_id, ")");
    const int64_t start = op::index_at(a.ring_start, s), k = op::index_at(a.prev_num_accepted_tokens, s);
    FI_CHECK(start >= 0 && start < a.x_cache.size(2), ValueError, "ring_start[", s, "] is ", start,
             ", but x_cache has rings of ", a.x_cache.size(2), " rows");
    FI_CHECK(k >= 0 && k <= window, ValueError, "prev_num_accepted_tokens[", s, "] is ", k, ", but must be in [0, ",
             window, "]");
  }
}
/// dt of the rows of the rings that are replayed; the others hold anything.
void check_rings(const auto& a, const std::vector<ReplayRow>& rows) {
  if (!la::gates_readable(a.dt_cache)) return;
  const int64_t ring = a.x_cache.size(2);
  for (const ReplayRow& r : rows)
    for (int64_t t = 0; t < r.replay && r.read >= 0; ++t) {
      const int64_t at = (r.start + t) % ring;
      FI_CHECK(!la::has_nan(a.dt_cache.select(0, r.read).select(1, at)), ValueError, "dt_cache[", r.read, ", :, ", at,
               "] has a nan, but gates must be numbers");
    }
}
void check_gates(const Ssu& a) {
  la::check_gate("A", a.A);
  if (a.dt_bias) la::check_gate("dt_bias", *a.dt_bias);
  const std::vector<ReplayRow> rows = la::replay_rows(a);
  check_rings(a, rows);
  la::check_gate(
      "dt", a.dt,
      [&](int64_t row) {
        const auto of_row = [&](const ReplayRow& r) {
          return a.cu_seqlens ? r.first <= row && row < r.first + r.tokens : r.row == row;
        };
        const auto it = std::ranges::find_if(rows, of_row);
        return it != rows.end() && it->read >= 0;
      },
      a.cu_seqlens ? 1 : 0);
}
void validate_ssu(const Ssu& a) {
  check_pools(a, a.x_cache);
  FI_CHECK(a.x_cache.size(0) == a.state.size(0), ValueError, "x_cache is ", to_string(a.x_cache), ", but state has ",
           a.state.size(0), " slots");
  check_tokens(a);
  FI_CHECK(a.cu_seqlens.has_value() == a.max_seqlen.has_value(), ValueError, "max_seqlen is ",
           a.max_seqlen ? "given" : "missing", ", but comes with cu_seqlens");
  FI_CHECK(!a.cu_seqlens || (a.cu_seqlens->size(0) >= 1 && a.x.size(0) == 1), ValueError, "x is ", to_string(a.x),
           ", but its first extent must be 1 with cu_seqlens");
  const int64_t t = la::replay_tokens(a), window = a.x_cache.size(2) - t;
  if (window > kMaxWindow || t > window)
    throw_error(ErrorKind::kAssertionError,
                str("x_cache has rings of ", a.x_cache.size(2), " rows and ", t,
                    " tokens are new, but their difference must be at least that and at most ", kMaxWindow));
  check_shape("ring_start", a.ring_start, {a.state.size(0)});
  check_shape("prev_num_accepted_tokens", a.prev_num_accepted_tokens, {a.state.size(0)});
  if (a.state_batch_indices)
    check_shape("state_batch_indices", *a.state_batch_indices, {la::replay_count(a)});
  else
    FI_CHECK(la::replay_count(a) <= a.state.size(0), ValueError, "state has ", a.state.size(0),
             " slots, fewer than the ", la::replay_count(a), " sequences of x");
  if (op::inferring() || a.ring_start.device() != kCpu) return;
  if (a.cu_seqlens) {
    const int64_t end = op::check_indptr("cu_seqlens", *a.cu_seqlens);
    FI_CHECK(end == a.x.size(1), ValueError, "cu_seqlens ends at ", end, ", but x has ", a.x.size(1), " tokens");
    for (int64_t i = 0; i < la::replay_count(a); ++i) {
      const int64_t n = op::index_at(*a.cu_seqlens, i + 1) - op::index_at(*a.cu_seqlens, i);
      FI_CHECK(n <= t, ValueError, "sequence ", i, " of cu_seqlens has ", n, " tokens, but max_seqlen is ", t);
    }
  }
  check_slots(a, window);
  check_gates(a);
}
void validate_layer(const Layer& a) {
  check_pools(a, a.x_cache);
  const int64_t n = a.src_slots.size(0), slots = a.state.size(0), ring = a.x_cache.size(2);
  check_shape("A", a.A, {a.state.size(1)});
  check_shape("dst_slots", a.dst_slots, {n});
  check_shape("ring_start", a.ring_start, {n});
  check_shape("replay_prefix_len", a.replay_prefix_len, {n});
  if (op::inferring() || a.src_slots.device() != kCpu) return;
  for (const ReplayRow& r : la::replay_rows(a)) {
    FI_CHECK(r.read >= 0 && r.read < std::min(slots, a.x_cache.size(0)), ValueError, "src_slots has ", r.read,
             ", but state has ", slots, " slots and x_cache ", a.x_cache.size(0));
    FI_CHECK(r.write >= 0 && r.write < slots, ValueError, "dst_slots has ", r.write, ", but state has ", slots,
             " slots");
    FI_CHECK(r.start >= 0 && r.start < ring, ValueError, "ring_start has ", r.start, ", but x_cache has rings of ",
             ring, " rows");
    FI_CHECK(r.replay >= 0 && r.replay <= kMaxWindow, ValueError, "replay_prefix_len has ", r.replay,
             ", but must be in [0, ", kMaxWindow, "]");
  }
  la::check_gate("A", a.A);
  check_rings(a, la::replay_rows(a));
}

// ---- launch ----
SsuOperand operand(const std::optional<TensorView>& t) {  // [rows, tokens, heads, n]
  if (!t) return {};
  return {t->data(), t->stride(0), t->stride(1), t->stride(2), t->stride(3), t->dtype()};
}
SsuOperand per_head(const std::optional<TensorView>& t) {
  if (!t) return {};
  const int64_t dim = t->rank() == 2 && t->size(1) > 1 ? t->stride(1) : 0;
  return {t->data(), 0, 0, t->stride(0), dim, t->dtype()};
}
ReplayRing ring(const TensorView& t) { return {t.data(), t.stride(0), t.stride(1), t.stride(2)}; }

template <class B>
ReplayParams params_of(const B& a) {
  ReplayParams p{};
  p.heads = a.state.size(1), p.dim = a.state.size(2), p.dstate = a.state.size(3), p.ring = a.x_cache.size(2);
  p.heads_per_group = p.heads / a.B_cache.size(1);
  p.state.data = a.state.data(), p.state.slot = a.state.stride(0), p.state.head = a.state.stride(1),
  p.state.dim = a.state.stride(2);
  if (a.state_scale)
    p.state.scale = a.state_scale->template data_as<float>(), p.state.scale_slot = a.state_scale->stride(0),
    p.state.scale_head = a.state_scale->stride(1), p.state.scale_dim = a.state_scale->stride(2);
  p.x_cache = ring(a.x_cache), p.b_cache = ring(a.B_cache), p.dt_cache = ring(a.dt_cache), p.a = per_head(a.A);
  if (a.rand_seed) p.rounds = a.philox_rounds;
  if constexpr (requires { a.x; }) {
    p.softplus = a.dt_softplus;
    p.x = operand(a.x), p.dt = operand(a.dt), p.z = operand(a.z), p.out = operand(a.out), p.b = operand(a.B),
    p.c = operand(a.C), p.d = per_head(a.D), p.dt_bias = per_head(a.dt_bias);
  }
  return p;
}
/// Whether a sequence touches a slot that another one writes.
bool share_slots(const std::vector<ReplayRow>& rows, bool rings) {
  std::set<int64_t> written, read;
  for (const ReplayRow& r : rows) {
    const int64_t to = r.write >= 0 ? r.write : rings ? r.read : -1;
    if (to >= 0 && (!written.insert(to).second || read.contains(to))) return true;
    if (r.read >= 0 && r.read != to && written.contains(r.read)) return true;
    read.insert(r.read);
  }
  return false;
}
template <class B>
op::Prepared prepare_cpu(const B& a) {
  return ops::with_kernel<kReplay>(ReplayConfig{a.state.dtype(), a.x_cache.dtype()}, [&a](jit::CpuFn fn) {
    const std::vector<ReplayRow> rows = la::replay_rows(a);
    ReplayParams p = params_of(a);
    if (a.rand_seed) p.seed = static_cast<uint64_t>(*a.rand_seed->template data_as<int64_t>());
    p.rows = rows.data(), p.count = static_cast<int64_t>(rows.size());
    p.in_order = share_slots(rows, requires { a.x; });
    const int64_t units = p.in_order ? p.heads : p.count * p.heads;
    p.per_task = ops::rows_per_task(units, 2 * p.dim * p.dstate * a.state.item_size());
    ops::run_rows_with_scratch(fn, p, p.count ? units : 0, p.per_task, replay_scratch(p.dim, p.dstate));
  });
}
template <class B>
op::Prepared prepare_cuda(const B& a, const op::Call& call) {
  const bool in_order = call.device.type == DeviceType::kEmu && share_slots(la::replay_rows(a), requires { a.x; });
  return la::prepare_replay_cuda(a, call, params_of(a), in_order);
}

// ---- tables ----
template <class B>
op::Cost cost(const B& a) {
  double n = 0;
  if constexpr (requires { a.x; })
    n = static_cast<double>(la::replay_count(a));
  else
    n = static_cast<double>(a.src_slots.size(0));
  const double cells = n * static_cast<double>(a.state.size(1) * a.state.size(2) * a.state.size(3));
  return {.bytes = 2 * cells * static_cast<double>(a.state.item_size()), .flops = 60 * cells};
}
op::Shape out_shape(const Ssu& a) { return {4, {a.x.size(0), a.x.size(1), a.x.size(2), a.x.size(3)}}; }
constexpr op::Field ssu_fields[] = {
    op::inout<&Ssu::state>("state", "p nh dim ds", kStates),
    op::inout<&Ssu::x_cache>("x_cache", "p nh ring dim", op::floats),
    op::inout<&Ssu::B_cache>("B_cache", "p ng ring ds", op::same_as("x_cache")),
    op::inout<&Ssu::dt_cache>("dt_cache", "p nh ring", DType::kF32),
    op::in<&Ssu::ring_start>("ring_start", "p", DType::kI32, op::any_layout),
    op::in<&Ssu::prev_num_accepted_tokens>("prev_num_accepted_tokens", "p", DType::kI32, op::any_layout),
    op::in<&Ssu::x>("x", "b t nh dim", op::same_as("x_cache")),
    op::in<&Ssu::dt>("dt", nullptr, op::floats, op::any_layout),
    op::in<&Ssu::A>("A", nullptr, op::floats, op::any_layout),
    op::in<&Ssu::B>("B", "b t ng ds", op::same_as("x_cache")),
    op::in<&Ssu::C>("C", "b t ng ds", op::same_as("x_cache")),
    op::out<&Ssu::out>("out", nullptr, op::same_as("x_cache"), op::shape<out_shape>, op::required),
    op::in<&Ssu::D>("D", nullptr, op::floats, op::any_layout),
    op::in<&Ssu::z>("z", "b t nh dim", op::same_as("x_cache")),
    op::in<&Ssu::dt_bias>("dt_bias", nullptr, op::floats, op::any_layout),
    op::attr<&Ssu::dt_softplus>("dt_softplus"),
    op::in<&Ssu::state_batch_indices>("state_batch_indices", "n", op::indices, op::any_layout),
    op::attr<&Ssu::pad_slot_id>("pad_slot_id"),
    op::inout<&Ssu::state_scale>("state_scale", "p nh dim", DType::kF32),
    op::in<&Ssu::rand_seed>("rand_seed", nullptr, DType::kI64),
    op::attr<&Ssu::philox_rounds>("philox_rounds"),
    op::attr<&Ssu::d_split>("d_split"),
    op::in<&Ssu::cu_seqlens>("cu_seqlens", "m", DType::kI32, op::any_layout),
    op::attr<&Ssu::max_seqlen>("max_seqlen", op::doc("bound of the sequences' lengths, with cu_seqlens")),
    op::attr<&Ssu::enable_pdl>("enable_pdl"),
    op::in<&Ssu::cb_scaled>("cb_scaled", nullptr, op::floats, op::any_layout),
    op::in<&Ssu::cumAdt_vec>("cumAdt_vec", nullptr, op::floats, op::any_layout),
    op::in<&Ssu::cb_old>("cb_old", nullptr, op::floats, op::any_layout),
    op::attr<&Ssu::precompute_heads_per_cta>("precompute_heads_per_cta"),
    op::attr<&Ssu::algorithm>("algorithm", op::choices("auto|monolith|two-kernel"),
                              op::doc("a hint for GPUs; without effect here")),
};
constexpr op::Field layer_fields[] = {
    op::inout<&Layer::state>("state", "p nh dim ds", kStates),
    op::in<&Layer::x_cache>("x_cache", "r nh ring dim", op::floats),
    op::in<&Layer::B_cache>("B_cache", "r ng ring ds", op::same_as("x_cache")),
    op::in<&Layer::dt_cache>("dt_cache", "r nh ring", DType::kF32),
    op::in<&Layer::A>("A", "nh", op::floats, op::any_layout),
    op::in<&Layer::src_slots>("src_slots", "b", op::indices, op::any_layout),
    op::in<&Layer::dst_slots>("dst_slots", "b", op::indices, op::any_layout),
    op::in<&Layer::ring_start>("ring_start", "b", op::indices, op::any_layout),
    op::in<&Layer::replay_prefix_len>("replay_prefix_len", "b", op::indices, op::any_layout),
    op::inout<&Layer::state_scale>("state_scale", "p nh dim", DType::kF32),
    op::attr<&Layer::pad_slot_id>("pad_slot_id"),
    op::in<&Layer::rand_seed>("rand_seed", nullptr, DType::kI64),
    op::attr<&Layer::philox_rounds>("philox_rounds"),
};
constexpr op::Candidate ssu_candidates[] = {op::cuda<prepare_cuda<Ssu>>(), op::cpu<prepare_cpu<Ssu>>(),
                                            op::reference<ref::checkpointing_ssu>()};
constexpr op::Candidate layer_candidates[] = {op::cuda<prepare_cuda<Layer>>(), op::cpu<prepare_cpu<Layer>>(),
                                              op::reference<ref::replayssm_materialize_layer>()};
}  // namespace

namespace ops::linear_attention {
constinit const op::Op checkpointing_ssu_op = op::define<Ssu, validate_ssu, cost<Ssu>>(
    "checkpointing_ssu", "flashinfer.mamba",
    "Mamba's step for draft tokens: replays the accepted tokens of a ring on the state, then takes the new ones.",
    ssu_fields, ssu_candidates, checkpointing_ssu_cases);
constinit const op::Op replayssm_materialize_layer_op = op::define<Layer, validate_layer, cost<Layer>>(
    "replayssm_materialize_layer", "flashinfer.mamba",
    "States of one layer after some rows of their rings, to other slots. Not in FlashInfer, whose "
    "replayssm_materialize calls it.",
    layer_fields, layer_candidates, replayssm_materialize_layer_cases);
}  // namespace ops::linear_attention

Tensor checkpointing_ssu(const Ssu& a) { return op::call(la::checkpointing_ssu_op, a); }
void replayssm_materialize_layer(const Layer& a) { op::call(la::replayssm_materialize_layer_op, a); }

}  // namespace flashinfer
