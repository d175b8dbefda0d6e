// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/linear_attention/mamba/ssd.h"

#include <algorithm>
#include <limits>
#include <set>
#include <vector>

#include "flashinfer/op/call.h"
#include "flashinfer/ops/common/task_scratch.h"
#include "flashinfer/ops/linear_attention/cases.h"
#include "flashinfer/ops/linear_attention/gate_checks.h"
#include "flashinfer/ops/linear_attention/kernels/mamba/ssd_cuda_config.h"
#include "flashinfer/ops/linear_attention/kernels/mamba/ssd_params.h"
#include "flashinfer/ops/linear_attention/kernels/mamba/ssu_params.h"
#include "flashinfer/ops/linear_attention/mamba/ssd_ref.h"
#include "flashinfer/ops/linear_attention/mamba/ssu_cuda.h"
#include "flashinfer/ops/linear_attention/ops.h"

namespace flashinfer {
namespace {
namespace la = ops::linear_attention;
using Ssd = SsdChunkScan;
inline constexpr jit::Kernel kSsd{"flashinfer/ops/linear_attention/kernels/mamba/ssd.h", "flashinfer::cpu::ssd",
                                  "flashinfer::SsdParams"};
inline constexpr jit::Kernel kSsu{"flashinfer/ops/linear_attention/kernels/mamba/ssu.h",
                                  "flashinfer::cpu::selective_state_update", "flashinfer::SsuParams"};
inline constexpr jit::Kernel kSsdChunkCuda{"flashinfer/ops/linear_attention/kernels/cuda/ssd_chunk.cuh",
                                           "flashinfer::cu::ssd_chunk", "flashinfer::SsuCudaParams"};
constexpr int64_t kMaxDim = 256, kMaxHeads = 16;  // of the kernel's scratch; heads of a task

int64_t sequences_of(const Ssd& a) { return a.cu_seqlens ? a.cu_seqlens->size(0) - 1 : a.x.size(0); }

void check_shapes(const Ssd& a) {
  const int64_t heads = a.x.size(2);
  FI_CHECK(a.B.size(2) > 0 && heads % a.B.size(2) == 0, ValueError, "B has ", a.B.size(2),
           " groups, which do not divide the ", heads, " heads of x");
  if (a.D)
    FI_CHECK((a.D->rank() == 1 || (a.D->rank() == 2 && a.D->size(1) == a.x.size(3))) && a.D->size(0) == heads,
             ValueError, "D is ", to_string(*a.D), ", but must be [", heads, "] or [", heads, ", ", a.x.size(3), "]");
  FI_CHECK(!a.cu_seqlens || (a.cu_seqlens->size(0) >= 1 && a.x.size(0) == 1), ValueError, "cu_seqlens is ",
           to_string(*a.cu_seqlens), ", but must have an entry, and x is ", to_string(a.x),
           ", of which the first extent must be 1 with it");
  const int64_t n = sequences_of(a);
  const auto states = [&](const char* name, const std::optional<TensorView>& t, bool pool) {
    if (!t) return;
    FI_CHECK(t->rank() == 4 && (pool || t->size(0) == n) && t->size(1) == heads && t->size(2) == a.x.size(3) &&
                 t->size(3) == a.B.size(3),
             ValueError, name, " is ", to_string(*t), ", but must be [", pool ? "slots" : str(n), ", ", heads, ", ",
             a.x.size(3), ", ", a.B.size(3), "]");
    FI_CHECK(t->dtype() == a.state_dtype, ValueError, name, " is ", to_string(*t), ", but state_dtype is ",
             flashinfer::name(a.state_dtype));
  };
  states("initial_states", a.initial_states, false);
  states("checkpoint_states", a.checkpoint_states, true);
  FI_CHECK(a.checkpoint_states.has_value() == a.checkpoint_token_indices.has_value() &&
               a.checkpoint_states.has_value() == a.checkpoint_state_slots.has_value(),
           ValueError, "checkpoint_states is ", a.checkpoint_states ? "given" : "missing",
           ", but checkpoint_token_indices, checkpoint_state_slots and checkpoint_states come together");
  for (const auto& [name, t] : {std::pair{"checkpoint_token_indices", &a.checkpoint_token_indices},
                                std::pair{"checkpoint_state_slots", &a.checkpoint_state_slots}})
    FI_CHECK(!*t || ((*t)->rank() == 1 && (*t)->size(0) == n), ValueError, name, " is ", to_string(**t),
             ", but must be [", n, "] (sequences)");
  FI_CHECK(!a.dt_min || !a.dt_max || *a.dt_min <= *a.dt_max, ValueError, "dt_min is ", a.dt_min.value_or(0),
           ", above dt_max, ", a.dt_max.value_or(0));
}
void validate(const Ssd& a) {
  check_shapes(a);
  const auto on_host = [](const std::optional<TensorView>& t) { return !t || t->device() == kCpu; };
  if (op::inferring() || !on_host(a.cu_seqlens) || !on_host(a.checkpoint_token_indices) ||
      !on_host(a.checkpoint_state_slots))
    return;
  if (a.cu_seqlens) {
    const int64_t total = op::check_indptr("cu_seqlens", *a.cu_seqlens);
    FI_CHECK(total == a.x.size(1), ValueError, "cu_seqlens ends at ", total, ", but x has ", a.x.size(1), " tokens");
  }
  std::set<int64_t> slots;
  for (int64_t i = 0; a.checkpoint_states && i < sequences_of(a); ++i) {
    const la::SsdSequence s = la::ssd_sequence(a, i);
    if (s.slot < 0) continue;
    FI_CHECK(s.slot < a.checkpoint_states->size(0), ValueError, "checkpoint_state_slots[", i, "] is ", s.slot,
             ", but checkpoint_states has ", a.checkpoint_states->size(0), " slots");
    FI_CHECK(s.checkpoint >= 0 && s.checkpoint <= s.tokens, ValueError, "checkpoint_token_indices[", i, "] is ",
             s.checkpoint + s.first, ", but sequence ", i, " has the tokens ", s.first, " to ", s.first + s.tokens);
    FI_CHECK(slots.insert(s.slot).second, ValueError, "checkpoint_state_slots[", i, "] is ", s.slot,
             ", the slot of another sequence, too");
  }
  la::check_gate("A", a.A), la::check_gate("dt", a.dt);
  if (a.dt_bias) la::check_gate("dt_bias", *a.dt_bias);
}

float bound(const std::optional<double>& x, float otherwise) { return x ? static_cast<float>(*x) : otherwise; }
constexpr float kInfinite = std::numeric_limits<float>::infinity();

// ---- chunks ----
SsdOperand operand(const TensorView& t) { return {t.data(), t.stride(0), t.stride(1), t.stride(2), t.dtype()}; }
SsdStates states_of(const std::optional<TensorView>& t) {
  if (!t) return {};
  return {t->data(), t->stride(0), t->stride(1), t->stride(2)};
}
/// The greatest number of heads of a task that divides those of a group, with enough tasks for the threads.
int64_t heads_per_task(int64_t sequences, int64_t heads, int64_t per_group) {
  const int64_t wanted = 2 * Context::current().executor.threads;
  int64_t n = std::min(per_group, kMaxHeads);
  while (n > 1 && (per_group % n != 0 || (sequences * heads / n < wanted && n > 4))) --n;
  return n;
}
void run_chunks(jit::CpuFn fn, const Ssd& a) {
  SsdParams p{};
  std::vector<SsdRow> rows;
  p.sequences = sequences_of(a), p.heads = a.x.size(2), p.dim = a.x.size(3), p.dstate = a.B.size(3);
  for (int64_t i = 0; i < p.sequences; ++i) {
    const la::SsdSequence s = la::ssd_sequence(a, i);
    rows.push_back(
        {s.row, s.first, s.tokens, a.initial_states ? i : -1, a.final_states ? i : -1, s.checkpoint, s.slot});
  }
  p.rows = rows.data();
  p.heads_per_group = p.heads / a.B.size(2);
  p.heads_per_task = heads_per_task(p.sequences, p.heads, p.heads_per_group);
  p.x = operand(a.x), p.out = operand(*a.out), p.b = operand(a.B), p.c = operand(a.C);
  if (a.z) p.z = operand(*a.z);
  p.dt = {a.dt.data(), a.dt.stride(0), a.dt.stride(1), a.dt.stride(2), a.dt.dtype()};
  p.source = states_of(a.initial_states), p.pool = states_of(a.final_states),
  p.checkpoints = states_of(a.checkpoint_states);
  p.a = a.A.data_as<float>(), p.a_head = a.A.stride(0);
  if (a.D) {
    p.d = a.D->data(), p.d_dtype = a.D->dtype(), p.d_head = a.D->stride(0);
    p.d_dim = a.D->rank() == 2 ? a.D->stride(1) : 0;
  }
  if (a.dt_bias)
    p.dt_bias = a.dt_bias->data(), p.dt_bias_dtype = a.dt_bias->dtype(), p.dt_bias_head = a.dt_bias->stride(0);
  p.softplus = a.dt_softplus, p.dt_min = bound(a.dt_min, -kInfinite), p.dt_max = bound(a.dt_max, kInfinite);
  ops::run_rows_with_scratch(fn, p, p.sequences * p.heads / p.heads_per_task, 1,
                             ssd_scratch(p.dim, p.dstate, p.heads_per_task).size);
}

// ---- token by token ----
SsuPool pool_of(const std::optional<TensorView>& t) {
  SsuPool p{};
  if (t) p.data = t->data(), p.slot = t->stride(0), p.head = t->stride(1), p.dim = t->stride(2);
  return p;
}
SsuParams token_params(const Ssd& a) {
  SsuParams p{};
  p.sequences = sequences_of(a), p.heads = a.x.size(2), p.dim = a.x.size(3), p.dstate = a.B.size(3);
  p.heads_per_group = p.heads / a.B.size(2), p.softplus = a.dt_softplus;
  p.dt_min = bound(a.dt_min, -kInfinite), p.dt_max = bound(a.dt_max, kInfinite);
  p.source = pool_of(a.initial_states), p.pool = pool_of(a.final_states), p.dst_pool = pool_of(a.checkpoint_states);
  const auto tokens = [&](const TensorView& t) {
    return SsuOperand{t.data(),    a.cu_seqlens ? t.stride(1) : t.stride(0), t.stride(1),
                      t.stride(2), t.rank() == 4 ? t.stride(3) : 0,          t.dtype()};
  };
  p.x = tokens(a.x), p.dt = tokens(a.dt), p.out = tokens(*a.out), p.b = tokens(a.B), p.c = tokens(a.C);
  if (a.z) p.z = tokens(*a.z);
  p.a = {a.A.data(), 0, 0, a.A.stride(0), 0, DType::kF32};
  if (a.D) p.d = {a.D->data(), 0, 0, a.D->stride(0), a.D->rank() == 2 ? a.D->stride(1) : 0, a.D->dtype()};
  if (a.dt_bias) p.dt_bias = {a.dt_bias->data(), 0, 0, a.dt_bias->stride(0), 0, a.dt_bias->dtype()};
  p.units_per_task = 1;
  return p;
}
void run_tokens(jit::CpuFn fn, const Ssd& a) {
  SsuParams p = token_params(a);
  std::vector<SsuRow> rows;
  std::vector<int64_t> dst;
  p.dst_stride = a.x.size(1);
  if (a.checkpoint_states) dst.assign(static_cast<size_t>(p.sequences * p.dst_stride), -1);
  for (int64_t i = 0; i < p.sequences; ++i) {
    const la::SsdSequence s = la::ssd_sequence(a, i);
    rows.push_back({a.cu_seqlens ? s.first : s.row, s.tokens, a.initial_states ? i : -1, a.final_states ? i : -1, -1});
    if (s.slot >= 0 && s.checkpoint > 0) dst[static_cast<size_t>(i * p.dst_stride + s.checkpoint - 1)] = s.slot;
  }
  p.rows = rows.data();
  if (!dst.empty()) p.dst = dst.data();
  ops::run_rows_with_scratch(fn, p, p.sequences * p.heads, 1, ssu_scratch(p.dim, p.dstate));
}
/// What no token writes: final states of sequences without tokens, checkpoints before the first token.
void copy_states(const Ssd& a) {
  const auto copy = [&](const TensorView& to, int64_t i) {
    for (int64_t h = 0; h < to.size(0); ++h)
      for (int64_t d = 0; d < to.size(1); ++d) {
        char* const line = to.data_as<char>() + (h * to.stride(0) + d * to.stride(1)) * to.item_size();
        const size_t bytes = static_cast<size_t>(to.size(2) * to.item_size());
        if (!a.initial_states) {
          std::fill(line, line + bytes, char{0});
          continue;
        }
        const TensorView& from = *a.initial_states;
        const char* const source =
            from.data_as<char>() + (i * from.stride(0) + h * from.stride(1) + d * from.stride(2)) * to.item_size();
        std::copy(source, source + bytes, line);
      }
  };
  for (int64_t i = 0; i < sequences_of(a); ++i) {
    const la::SsdSequence s = la::ssd_sequence(a, i);
    if (a.final_states && s.tokens == 0) copy(a.final_states->select(0, i), i);
    if (s.slot >= 0 && s.checkpoint == 0) copy(a.checkpoint_states->select(0, s.slot), i);
  }
}

op::Prepared prepare_cpu(const Ssd& a) {
  if (a.x.dtype() == DType::kBF16 && a.B.size(3) % 2 == 0 && a.x.size(3) <= kMaxDim)
    return ops::with_kernel<kSsd>(SsdConfig{a.state_dtype}, [&a](jit::CpuFn fn) { run_chunks(fn, a); });
  return ops::with_kernel<kSsu>(SsuConfig{a.state_dtype, a.x.dtype(), true}, [&a](jit::CpuFn fn) {
    run_tokens(fn, a);
    copy_states(a);
  });
}

/// Whether the kernel by chunks on tensor cores supports the call; `aligned`: the rows of all states.
bool in_chunks(const Ssd& a, bool aligned, Device device) {
  const int64_t n = a.B.size(3);
  for (const TensorView* t : {&a.x, &a.B, &a.C, &*a.out, a.z ? &*a.z : &a.x}) aligned = aligned && la::rows_aligned(*t);
  return jit::arch_number(device) >= 80 && a.x.dtype() == DType::kBF16 && (n == 64 || n == 128) &&
         a.x.size(3) % 8 == 0 && aligned;
}
/// In chunks, or token by token with rows of the state in registers. Indices are read by the kernel alone.
op::Prepared prepare_cuda(const Ssd& a, const op::Call& call) {
  SsuCudaParams p{token_params(a)};
  p.whole = true, p.steps = a.x.size(1), p.lengths = la::ssu_indices(a.cu_seqlens);
  p.wide = la::rows_aligned(a.B) && la::rows_aligned(a.C);
  if (a.checkpoint_states) {
    p.checkpoint_token = la::ssu_indices(a.checkpoint_token_indices),
    p.checkpoint_slot = la::ssu_indices(a.checkpoint_state_slots);
    p.checkpoint_slots = a.checkpoint_states->size(0);
  }
  bool aligned = true;
  for (const auto* t : {&a.initial_states, &a.final_states, &a.checkpoint_states})
    aligned = aligned && (!*t || la::rows_aligned(**t));
  if (!in_chunks(a, aligned, call.device)) return la::prepare_ssu_cuda(p, a.state_dtype, aligned, true, call.device);
  const SsdCudaConfig config{a.state_dtype, static_cast<unsigned char>(p.call.dstate), 128};
  const int64_t items = p.call.sequences * p.call.heads;
  if (std::string why = la::grid_unsupported(items, p.call.dim, kSsdCudaDims); !why.empty())
    return op::Unsupported{std::move(why)};
  cuda::Launch launch = la::delta_launch(items, p.call.dim, kSsdCudaDims, config.threads);
  launch.shared_bytes = static_cast<unsigned>(config.shared_bytes());
  return ops::prepare_cuda<kSsdChunkCuda>(config, p, call.device, launch);
}

op::Shape states_shape(const Ssd& a) { return {4, {sequences_of(a), a.x.size(2), a.x.size(3), a.B.size(3)}}; }
bool wants_states(const Ssd& a) { return a.return_final_states; }
/// The products of the chunks: C B^T of each group, then of each head C S, the weighted C B^T with X, and X^T B.
op::Cost cost(const Ssd& a) {
  const double tokens = static_cast<double>(a.x.size(0) * a.x.size(1)), n = static_cast<double>(a.B.size(3));
  const double p = static_cast<double>(a.x.size(3)), c = static_cast<double>(kSsdChunk);
  const auto bytes = [](const std::optional<TensorView>& t) { return t ? t->nbytes() : 0; };
  const double states = static_cast<double>(bytes(a.initial_states)) +
                        (a.return_final_states ? static_cast<double>(sequences_of(a) * size_of(a.state_dtype)) *
                                                     static_cast<double>(a.x.size(2)) * n * p
                                               : 0.0);
  return {.bytes =
              static_cast<double>(2 * a.x.nbytes() + bytes(a.z) + a.dt.nbytes() + a.B.nbytes() + a.C.nbytes()) + states,
          .flops = 2 * tokens *
                   (static_cast<double>(a.B.size(2)) * c * n + static_cast<double>(a.x.size(2)) * (2 * n * p + c * p))};
}

constexpr op::Field fields[] = {
    op::in<&Ssd::x>("x", "b s nh p", op::floats),
    op::in<&Ssd::dt>("dt", "b s nh", op::floats, op::any_layout),
    op::in<&Ssd::A>("A", "nh", DType::kF32, op::any_layout),
    op::in<&Ssd::B>("B", "b s ng n", op::same_as("x")),
    op::in<&Ssd::C>("C", "b s ng n", op::same_as("x")),
    op::in<&Ssd::D>("D", nullptr, op::floats, op::any_layout),
    op::in<&Ssd::z>("z", "b s nh p", op::same_as("x")),
    op::in<&Ssd::dt_bias>("dt_bias", "nh", op::floats, op::any_layout),
    op::attr<&Ssd::dt_softplus>("dt_softplus"),
    op::attr<&Ssd::dt_min>("dt_min"),
    op::attr<&Ssd::dt_max>("dt_max"),
    op::in<&Ssd::initial_states>("initial_states", nullptr, op::floats),
    op::in<&Ssd::cu_seqlens>("cu_seqlens", "m", op::indices),
    op::in<&Ssd::checkpoint_token_indices>("checkpoint_token_indices", nullptr, op::indices, op::any_layout),
    op::in<&Ssd::checkpoint_state_slots>("checkpoint_state_slots", nullptr, op::indices, op::any_layout),
    op::inout<&Ssd::checkpoint_states>("checkpoint_states", nullptr, op::floats),
    op::out<&Ssd::out>("out", "b s nh p", op::same_as("x")),
    op::attr<&Ssd::return_final_states>("return_final_states"),
    op::attr<&Ssd::state_dtype>("state_dtype"),
    op::result<&Ssd::final_states>("final_states", nullptr, op::floats, op::dtype_from("state_dtype"),
                                   op::shape<states_shape>, op::when<wants_states>),
};
constexpr op::Candidate candidates[] = {op::cuda<prepare_cuda>(), op::cpu<prepare_cpu>(),
                                        op::reference<ref::ssd_chunk_scan>()};
}  // namespace

namespace ops::linear_attention {
SsdSequence ssd_sequence(const SsdChunkScan& a, int64_t i) {
  SsdSequence s{i, 0, a.x.size(1), 0, -1};
  if (a.cu_seqlens)
    s.row = 0, s.first = op::index_at(*a.cu_seqlens, i), s.tokens = op::index_at(*a.cu_seqlens, i + 1) - s.first;
  if (!a.checkpoint_states) return s;
  const int64_t token = op::index_at(*a.checkpoint_token_indices, i), slot = op::index_at(*a.checkpoint_state_slots, i);
  if (token >= 0 && slot >= 0) s.checkpoint = token - s.first, s.slot = slot;
  return s;
}
constinit const op::Op ssd_chunk_scan_op =
    op::define<Ssd, validate, cost>("ssd_chunk_scan", "flashinfer.mamba",
                                    "Mamba-2 over whole sequences: S = e^(A dt) S + dt x B; out = (S C + D x) silu(z), "
                                    "in chunks. Not in FlashInfer, whose "
                                    "SSDCombined calls it.",
                                    fields, candidates, ssd_chunk_scan_cases);
}  // namespace ops::linear_attention

std::pair<Tensor, Tensor> ssd_chunk_scan(const Ssd& args) {
  const op::Results r = op::call(la::ssd_chunk_scan_op, args);
  return {r[0], args.return_final_states ? r[1] : Tensor()};
}

}  // namespace flashinfer
