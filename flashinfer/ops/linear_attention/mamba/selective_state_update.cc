// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/linear_attention/mamba/selective_state_update.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "flashinfer/op/call.h"
#include "flashinfer/ops/common/task_scratch.h"
#include "flashinfer/ops/linear_attention/cases.h"
#include "flashinfer/ops/linear_attention/mamba/ref.h"
#include "flashinfer/ops/linear_attention/mamba/ssu_cuda.h"
#include "flashinfer/ops/linear_attention/mamba/ssu_shape.h"
#include "flashinfer/ops/linear_attention/ops.h"
#include "flashinfer/ops/linear_attention/parts.h"

namespace flashinfer {
namespace {
namespace la = ops::linear_attention;
using Ssu = SelectiveStateUpdate;
inline constexpr jit::Kernel kSsu{"flashinfer/ops/linear_attention/kernels/mamba/ssu.h",
                                  "flashinfer::cpu::selective_state_update", "flashinfer::SsuParams"};

// ---- launch ----
SsuOperand operand(const TensorView& t) {  // [rows, T, heads, dim]
  if (!t.defined()) return {};
  return {t.data(), t.stride(0), t.stride(1), t.stride(2), t.stride(3), t.dtype()};
}
SsuOperand per_head(const TensorView& t) {  // [heads, dim]
  if (!t.defined()) return {};
  return {t.data(), 0, 0, t.stride(0), t.stride(1), t.dtype()};
}
/// Whether all elements of an axis are one in memory.
bool one(const TensorView& t, int axis) { return t.size(axis) == 1 || t.stride(axis) == 0; }

/// The slots of the call, and whether two sequences meet at one (then they go one after the other).
struct Work {
  std::vector<SsuRow> rows;
  std::vector<int64_t> dst;
  bool in_order = false;
};
Work work_of(const Ssu& a, const la::SsuForm& f) {
  Work w;
  const bool each = la::ssu_dst_each_token(a);
  const int64_t steps = f.steps;
  if (each) w.dst.assign(static_cast<size_t>(f.sequences * steps), -1);
  std::vector<int64_t> writer(static_cast<size_t>(f.slots), -1);
  const auto writes = [&](int64_t slot, int64_t i) {
    if (slot < 0) return;
    int64_t& last = writer[static_cast<size_t>(slot)];
    w.in_order |= last >= 0 && last != i;
    last = i;
  };
  for (int64_t i = 0; i < f.sequences; ++i) {
    const la::SsuSequence s = la::ssu_sequence(a, f, i);
    // Packed tokens count from the first row of x, whose step is a token.
    w.rows.push_back({f.packed ? s.first : s.row, s.tokens, s.read, s.tokens ? s.write : -1, s.cache});
    writes(w.rows.back().write, i);
    if (!each || a.disable_state_update || s.read < 0) continue;
    for (int64_t t = 0; t < s.tokens; ++t) {
      const int64_t slot = la::ssu_dst(a, i, t);
      w.dst[static_cast<size_t>(i * steps + t)] = slot;
      writes(slot, i);
    }
  }
  for (size_t i = 0; i < w.rows.size(); ++i) {
    const int64_t read = w.rows[i].read;
    if (read < 0) continue;
    const int64_t by = writer[static_cast<size_t>(read)];
    w.in_order |= by >= 0 && by != static_cast<int64_t>(i);
  }
  return w;
}

SsuPool pool(const TensorView& t, const std::optional<TensorView>& scale, bool steps) {
  SsuPool p{};
  const int at = steps ? 1 : 0;
  p.data = t.data(), p.slot = t.stride(0), p.step = steps ? t.stride(1) : 0;
  p.head = t.stride(1 + at), p.dim = t.stride(2 + at);
  p.flat_step = steps ? t.size(2) * t.size(3) * t.size(4) : 0;
  p.flat_slot = steps ? t.size(1) * p.flat_step : t.size(1) * t.size(2) * t.size(3);
  if (!scale) return p;
  p.scale = scale->data_as<float>();
  p.scale_slot = scale->stride(0), p.scale_step = steps ? scale->stride(1) : 0;
  p.scale_head = scale->stride(-2), p.scale_dim = scale->stride(-1);
  return p;
}
SsuParams params_of(const Ssu& a, const la::SsuForm& f) {
  SsuParams p{};
  p.sequences = f.sequences, p.heads = f.heads, p.dim = f.dim, p.dstate = f.dstate;
  p.heads_per_group = f.heads / f.groups, p.softplus = a.dt_softplus;
  std::optional<TensorView> scale = a.state_scale;
  if (scale && scale->rank() == 2) scale = scale->unsqueeze(1);
  p.source = p.pool = p.dst_pool = pool(f.state, scale, false);
  p.dt_min = -std::numeric_limits<float>::infinity(), p.dt_max = -p.dt_min;
  if (a.intermediate_states_buffer) p.cache = pool(*a.intermediate_states_buffer, a.intermediate_state_scales, true);
  p.x = operand(f.x), p.dt = operand(f.dt), p.z = operand(f.z), p.out = operand(f.out);
  p.b = operand(f.b), p.c = operand(f.c);
  if (f.packed)
    for (SsuOperand* o : {&p.x, &p.dt, &p.z, &p.out, &p.b, &p.c}) o->row = o->step;
  p.a = {f.a.data(), f.a.stride(2), 0, f.a.stride(0), f.a.stride(1), DType::kF32};
  p.d = per_head(f.d), p.dt_bias = per_head(f.dt_bias);
  p.step_elements = f.state.numel();
  if (a.rand_seed) p.rounds = a.philox_rounds;
  return p;
}
bool one_decay_a_head(const Ssu& a, const la::SsuForm& f) {
  return one(f.a, 1) && one(f.a, 2) && one(f.dt, 3) && (!a.dt_bias || one(f.dt_bias, 1));
}
op::Prepared prepare_cpu(const Ssu& a) {
  const bool one_decay = one_decay_a_head(a, la::ssu_form(a));
  const SsuConfig config{.state = a.state.dtype(), .io = a.x.dtype(), .one_decay = one_decay};
  return ops::with_kernel<kSsu>(config, [&a](jit::CpuFn fn) {
    const la::SsuForm form = la::ssu_form(a);
    const Work work = work_of(a, form);
    SsuParams p = params_of(a, form);
    p.rows = work.rows.data();
    p.dots = a.state.dtype() == DType::kBF16 && a.x.dtype() == DType::kBF16 && la::fast_bf16_dots();
    if (!work.dst.empty()) p.dst = work.dst.data(), p.dst_stride = form.steps;
    p.in_order = work.in_order;
    if (a.rand_seed) p.seed = static_cast<uint64_t>(*a.rand_seed->data_as<int64_t>());
    const int64_t state_bytes = 2 * form.dim * form.dstate * a.state.item_size();
    const int64_t units = p.in_order ? p.heads : p.sequences * p.heads;
    p.units_per_task = ops::rows_per_task(units, state_bytes * (p.in_order ? p.sequences : 1));
    ops::run_rows_with_scratch(fn, p, units, p.units_per_task, ssu_scratch(form.dim, form.dstate));
  });
}

/// Indices and the seed are read by the kernel alone. Sequences that share a slot have no order on a GPU.
op::Prepared prepare_cuda(const Ssu& a, const op::Call& call) {
  const la::SsuForm f = la::ssu_form(a);
  if (call.device.type == DeviceType::kEmu && work_of(a, f).in_order)
    return op::Unsupported{"sequences share a slot that one of them writes: on a GPU they have no order"};
  SsuCudaParams p{params_of(a, f)};
  p.steps = f.steps, p.pad = a.pad_slot_id, p.slots = f.slots, p.updates = !a.disable_state_update;
  p.columns = a.state_batch_indices && a.state_batch_indices->rank() == 2 ? a.state_batch_indices->size(1) : 1;
  p.dst_each_token = p.updates && la::ssu_dst_each_token(a);
  p.wide = la::rows_aligned(f.b) && la::rows_aligned(f.c);
  p.lengths = la::ssu_indices(a.cu_seqlens), p.read = la::ssu_indices(a.state_batch_indices);
  p.dst = la::ssu_indices(a.dst_state_batch_indices), p.cache_row = la::ssu_indices(a.intermediate_state_indices);
  p.accepted = la::ssu_indices(a.num_accepted_tokens);
  bool aligned = la::rows_aligned(f.state);
  if (a.intermediate_states_buffer) {
    p.cache_rows = a.intermediate_states_buffer->size(0);
    aligned = aligned && la::rows_aligned(*a.intermediate_states_buffer);
  }
  if (a.rand_seed) p.seed = a.rand_seed->data_as<int64_t>();
  return la::prepare_ssu_cuda(p, a.state.dtype(), aligned, one_decay_a_head(a, f), call.device);
}

op::Shape out_shape(const Ssu& a) {
  op::Shape s{a.x.rank(), {}};
  for (int i = 0; i < a.x.rank(); ++i) s.size[i] = a.x.size(i);
  return s;
}
op::Cost cost(const Ssu& a) {
  const la::SsuForm f = la::ssu_form(a);
  const double state = static_cast<double>(f.sequences * f.heads * f.dim * f.dstate);
  const double tokens = static_cast<double>(f.x.size(0) * f.x.size(1));
  return {.bytes = 2 * state * static_cast<double>(a.state.item_size()) +
                   static_cast<double>(a.x.nbytes() * 2 + a.B.nbytes() * 2),
          .flops = 6 * tokens * static_cast<double>(f.heads * f.dim * f.dstate)};
}

// ---- table ----
constexpr op::Field fields[] = {
    op::inout<&Ssu::state>("state", nullptr, op::floats | DType::kI16),
    op::in<&Ssu::x>("x", nullptr, op::floats),
    op::in<&Ssu::dt>("dt", nullptr, op::floats, op::any_layout),
    op::in<&Ssu::A>("A", nullptr, DType::kF32, op::any_layout),
    op::in<&Ssu::B>("B", nullptr, op::same_as("x")),
    op::in<&Ssu::C>("C", nullptr, op::same_as("x")),
    op::in<&Ssu::D>("D", nullptr, op::same_as("dt"), op::any_layout),
    op::in<&Ssu::z>("z", nullptr, op::same_as("x")),
    op::in<&Ssu::dt_bias>("dt_bias", nullptr, op::floats, op::any_layout),
    op::attr<&Ssu::dt_softplus>("dt_softplus"),
    op::in<&Ssu::state_batch_indices>("state_batch_indices", nullptr, op::indices, op::any_layout),
    op::attr<&Ssu::pad_slot_id>("pad_slot_id"),
    op::inout<&Ssu::state_scale>("state_scale", nullptr, DType::kF32),
    op::out<&Ssu::out>("out", nullptr, op::same_as("x"), op::shape<out_shape>),
    op::attr<&Ssu::disable_state_update>("disable_state_update"),
    op::inout<&Ssu::intermediate_states_buffer>("intermediate_states_buffer", nullptr, op::same_as("state")),
    op::in<&Ssu::intermediate_state_indices>("intermediate_state_indices", nullptr, op::indices, op::any_layout),
    op::inout<&Ssu::intermediate_state_scales>("intermediate_state_scales", nullptr, DType::kF32),
    op::in<&Ssu::rand_seed>("rand_seed", nullptr),
    op::attr<&Ssu::philox_rounds>("philox_rounds"),
    op::attr<&Ssu::cache_steps>("cache_steps"),
    op::attr<&Ssu::algorithm>("algorithm", op::choices("auto|simple|vertical|horizontal|async_horizontal"),
                              op::doc("a hint for GPUs; without effect here")),
    op::in<&Ssu::dst_state_batch_indices>("dst_state_batch_indices", nullptr, op::indices, op::any_layout),
    op::in<&Ssu::cu_seqlens>("cu_seqlens", nullptr, op::indices),
    op::in<&Ssu::num_accepted_tokens>("num_accepted_tokens", nullptr, op::indices, op::any_layout),
    op::attr<&Ssu::backend>("backend", op::backends("auto|flashinfer|cake")),
};
constexpr op::Candidate candidates[] = {op::cuda<prepare_cuda>(), op::cpu<prepare_cpu>(),
                                        op::reference<ref::selective_state_update>()};
}  // namespace

namespace ops::linear_attention {
constinit const op::Op selective_state_update_op = op::also_named(
    op::define<Ssu, la::check, cost>(
        "selective_state_update", "flashinfer.mamba",
        "Mamba's step: S = S exp(A dt) + dt x B; out = (sum over dstate of S C + D x) silu(z), with S in a pool.",
        fields, candidates, selective_state_update_cases),
    "cake_selective_state_update");
}  // namespace ops::linear_attention

Tensor selective_state_update(const Ssu& args) { return op::call(la::selective_state_update_op, args); }

}  // namespace flashinfer
