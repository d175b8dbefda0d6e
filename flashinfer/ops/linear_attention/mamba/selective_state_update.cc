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

// ---- checks ----
bool readable(const TensorView& t) { return t.device() == kCpu; }

void check_rows(const char* name, const std::optional<TensorView>& t, int64_t rows, int max_rank = 1) {
  if (!t) return;
  FI_CHECK(t->rank() >= 1 && t->rank() <= max_rank && t->size(0) == rows, ValueError, name, " is ", to_string(*t),
           ", but must have an entry for each of ", rows, " sequences");
}
void check_options(const Ssu& a, const la::SsuForm& f) {
  if (a.x.rank() == 4 || f.packed) {
    FI_CHECK(a.cache_steps >= 1, ValueError, "cache_steps is ", a.cache_steps, ", but must be at least 1 with ",
             f.packed ? "cu_seqlens" : "several tokens (x has four dimensions)");
    FI_CHECK(f.packed || a.cache_steps >= f.steps, ValueError, "cache_steps is ", a.cache_steps, ", but x has ",
             f.steps, " tokens of each sequence");
  }
  FI_CHECK((a.state.dtype() == DType::kI16) == a.state_scale.has_value(), ValueError, "state_scale is ",
           a.state_scale ? "given" : "missing", ", but state is ", to_string(a.state),
           " (int16 states have scales, others none)");
  FI_CHECK(!a.intermediate_states_buffer || !la::ssu_dst_each_token(a), ValueError,
           "intermediate_states_buffer and dst_state_batch_indices [b, T] are given together");
  FI_CHECK(a.intermediate_states_buffer || !a.intermediate_state_indices, ValueError,
           "intermediate_state_indices is given without intermediate_states_buffer");
  FI_CHECK(a.intermediate_state_scales.has_value() ==
               (a.intermediate_states_buffer.has_value() && a.state.dtype() == DType::kI16),
           ValueError, "intermediate_state_scales is ", a.intermediate_state_scales ? "given" : "missing",
           " (int16 intermediate states have scales, others none)");
  FI_CHECK(!a.num_accepted_tokens || a.state_batch_indices, ValueError,
           "num_accepted_tokens is given without state_batch_indices");
  FI_CHECK(!a.state_batch_indices || !a.dst_state_batch_indices ||
               a.state_batch_indices->dtype() == a.dst_state_batch_indices->dtype(),
           ValueError, "dst_state_batch_indices is ", to_string(*a.dst_state_batch_indices),
           ", but must have the dtype of state_batch_indices, ", to_string(*a.state_batch_indices));
}
void check_seed(const Ssu& a) {
  if (!a.rand_seed) return;
  FI_CHECK(a.rand_seed->dtype() == DType::kI64, TypeError, "rand_seed is ", to_string(*a.rand_seed),
           ", but must be int64");
  FI_CHECK(a.rand_seed->numel() == 1, ValueError, "rand_seed is ", to_string(*a.rand_seed),
           ", but must have one element");
  FI_CHECK(a.philox_rounds > 0, ValueError, "philox_rounds is ", a.philox_rounds, ", but must be at least 1");
  FI_CHECK(!a.state_scale, ValueError, "rand_seed and state_scale are given together");
  FI_CHECK(a.state.dtype() == DType::kF16, ValueError, "rand_seed is given, but state is ", to_string(a.state),
           " (only float16 states are rounded with random bits)");
}
void check_pools(const Ssu& a, const la::SsuForm& f) {
  const auto scales = [&](const char* name, const TensorView& t, const TensorView& of) {
    FI_CHECK(t.rank() + 1 == of.rank() && std::equal(t.shape().begin(), t.shape().end(), of.shape().begin()),
             ValueError, name, " is ", to_string(t), ", but must have the shape of ", to_string(of),
             " without its last extent");
  };
  if (a.state_scale) scales("state_scale", *a.state_scale, a.state);
  if (!a.intermediate_states_buffer) return;
  const TensorView& t = *a.intermediate_states_buffer;
  FI_CHECK(t.rank() == 5 && t.size(1) >= f.steps && t.size(2) == f.heads && t.size(3) == f.dim && t.size(4) == f.dstate,
           ValueError, "intermediate_states_buffer is ", to_string(t), ", but must be [n, at least ", f.steps, ", ",
           f.heads, ", ", f.dim, ", ", f.dstate, "]");
  if (a.intermediate_state_scales) scales("intermediate_state_scales", *a.intermediate_state_scales, t);
}
/// The values of index arrays, which only host memory tells.
void check_slots(const Ssu& a, const la::SsuForm& f) {
  const auto slot = [&](const char* name, int64_t i, int64_t value, int64_t slots, const char* of) {
    FI_CHECK(value == a.pad_slot_id || (value >= 0 && value < slots), ValueError, name, "[", i, "] is ", value,
             ", but must be in [0, ", slots, ") (", of, ") or pad_slot_id, ", a.pad_slot_id);
  };
  const auto all = [&](const char* name, const std::optional<TensorView>& t) {
    if (!t || !readable(*t)) return;
    if (t->rank() == 1) {
      for (int64_t i = 0; i < t->size(0); ++i) slot(name, i, op::index_at(*t, i), f.slots, "slots of state");
    } else {
      for (int64_t i = 0; i < t->size(0); ++i)
        for (int64_t k = 0; k < t->size(1); ++k)
          slot(name, i * t->size(1) + k, op::index_at(t->select(0, i), k), f.slots, "slots of state");
    }
  };
  all("state_batch_indices", a.state_batch_indices);
  all("dst_state_batch_indices", a.dst_state_batch_indices);
  if (!a.state_batch_indices)
    FI_CHECK(f.slots >= f.sequences, ValueError, "state has ", f.slots, " slots, fewer than the ", f.sequences,
             " sequences of x (state_batch_indices is missing)");
  if (a.num_accepted_tokens && readable(*a.num_accepted_tokens) && f.sequences > 0) {
    const int64_t columns = a.state_batch_indices->rank() == 2 ? a.state_batch_indices->size(1) : 1;
    op::check_index_range("num_accepted_tokens", *a.num_accepted_tokens, INT32_MIN, columns + 1,
                          "columns of state_batch_indices");
  }
  if (a.intermediate_states_buffer) {
    const int64_t n = a.intermediate_states_buffer->size(0);
    if (a.intermediate_state_indices) {
      op::check_index_range("intermediate_state_indices", *a.intermediate_state_indices, -1, n,
                            "rows of intermediate_states_buffer, or -1 for none");
    } else {
      const auto on_host = [](const std::optional<TensorView>& t) { return !t || readable(*t); };
      if (!on_host(a.state_batch_indices) || !on_host(a.cu_seqlens) || !on_host(a.num_accepted_tokens)) return;
      for (int64_t i = 0; i < f.sequences; ++i) {
        const int64_t row = la::ssu_sequence(a, f, i).cache;
        FI_CHECK(row < n, ValueError, "intermediate_states_buffer has ", n, " rows, but sequence ", i, " has slot ",
                 row, " (intermediate_state_indices is missing)");
      }
    }
  }
}
void check_lengths(const Ssu& a, const la::SsuForm& f) {
  if (!a.cu_seqlens || !readable(*a.cu_seqlens)) return;
  const int64_t total = op::check_indptr("cu_seqlens", *a.cu_seqlens);
  FI_CHECK(total == f.x.size(1), ValueError, "cu_seqlens ends at ", total, ", but x has ", f.x.size(1), " tokens");
  for (int64_t i = 0; i < f.sequences; ++i) {
    const int64_t n = op::index_at(*a.cu_seqlens, i + 1) - op::index_at(*a.cu_seqlens, i);
    FI_CHECK(n <= a.cache_steps, ValueError, "cu_seqlens gives sequence ", i, " ", n,
             " tokens, more than cache_steps, ", a.cache_steps);
  }
}
void validate(const Ssu& a) {
  FI_CHECK(!a.cu_seqlens || (a.cu_seqlens->rank() == 1 && a.cu_seqlens->size(0) >= 1), ValueError, "cu_seqlens is ",
           to_string(*a.cu_seqlens), ", but must be [sequences + 1]");
  const la::SsuForm f = la::ssu_form(a);
  check_rows("state_batch_indices", a.state_batch_indices, f.sequences, 2);
  check_rows("num_accepted_tokens", a.num_accepted_tokens, f.sequences);
  check_rows("intermediate_state_indices", a.intermediate_state_indices, f.sequences);
  if (a.dst_state_batch_indices) {
    const TensorView& t = *a.dst_state_batch_indices;
    const bool each = la::ssu_dst_each_token(a);
    FI_CHECK(t.size(0) == f.sequences && (each ? t.rank() == 2 && t.size(1) >= f.steps : t.rank() == 1), ValueError,
             "dst_state_batch_indices is ", to_string(t), ", but must be [", f.sequences,
             each ? str(", ", f.steps, "]") : std::string("]"));
  }
  check_options(a, f);
  check_seed(a);
  check_pools(a, f);
  if (op::inferring()) return;
  check_lengths(a, f);
  check_slots(a, f);
}

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
    op::define<Ssu, validate, cost>(
        "selective_state_update", "flashinfer.mamba",
        "Mamba's step: S = S exp(A dt) + dt x B; out = (sum over dstate of S C + D x) silu(z), with S in a pool.",
        fields, candidates, selective_state_update_cases),
    "cake_selective_state_update");
}  // namespace ops::linear_attention

Tensor selective_state_update(const Ssu& args) { return op::call(la::selective_state_update_op, args); }

}  // namespace flashinfer
