// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/linear_attention/kda/kda.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <vector>

#include "flashinfer/op/call.h"
#include "flashinfer/ops/common/cuda.h"
#include "flashinfer/ops/common/task_scratch.h"
#include "flashinfer/ops/linear_attention/cases.h"
#include "flashinfer/ops/linear_attention/cuda_launch.h"
#include "flashinfer/ops/linear_attention/gate_checks.h"
#include "flashinfer/ops/linear_attention/kda/ref.h"
#include "flashinfer/ops/linear_attention/kernels/kda/chunk_cuda_config.h"
#include "flashinfer/ops/linear_attention/kernels/kda/params.h"
#include "flashinfer/ops/linear_attention/ops.h"

namespace flashinfer {
namespace {
using Kda = KdaRecurrence;
inline constexpr jit::Kernel kKda{"flashinfer/ops/linear_attention/kernels/kda/kda.h", "flashinfer::cpu::kda",
                                  "flashinfer::KdaParams"};
inline constexpr jit::Kernel kKdaCuda{"flashinfer/ops/linear_attention/kernels/cuda/kda.cuh", "flashinfer::cu::kda",
                                      "flashinfer::KdaCudaParams"};
inline constexpr jit::Kernel kKdaChunkCuda{"flashinfer/ops/linear_attention/kernels/cuda/kda_chunk.cuh",
                                           "flashinfer::cu::kda_chunk", "flashinfer::KdaCudaParams"};

int64_t sequences_of(const Kda& a) { return a.cu_seqlens.size(0) - 1; }
const std::optional<TensorView>& source_of(const Kda& a) { return a.source ? a.source : a.state; }
const std::optional<TensorView>& after_of(const Kda& a) { return a.after_states ? a.after_states : a.state; }
int64_t index(const std::optional<TensorView>& t, int64_t i, int64_t otherwise) {
  return t ? op::index_at(*t, i) : otherwise;
}

// ---- checks ----
void check_indices(const char* name, const std::optional<TensorView>& t, int64_t n, const char* pool,
                   const std::optional<TensorView>& states) {
  if (!t) return;
  FI_CHECK(t->size(0) == n, ValueError, name, " is ", to_string(*t), ", but must have ", n, " entries");
  FI_CHECK(states, ValueError, name, " is given without ", pool);
  if (t->device() != kCpu || op::inferring()) return;
  for (int64_t i = 0; i < n; ++i)
    FI_CHECK(op::index_at(*t, i) < states->size(0), ValueError, name, "[", i, "] is ", op::index_at(*t, i), ", but ",
             pool, " has ", states->size(0), " slots");
}
void check_caches(const Kda& a) {
  FI_CHECK(a.correction_cache.has_value() == a.kg_cache.has_value(), ValueError,
           a.kg_cache ? "kg_cache is given without correction_cache" : "correction_cache is given without kg_cache");
  if (!a.kg_cache) return;
  FI_CHECK(a.disable_state_update && a.state, ValueError,
           "correction_cache and kg_cache are given, which need state and disable_state_update");
  if (op::inferring() || a.cu_seqlens.device() != kCpu) return;
  for (int64_t i = 0; i < sequences_of(a); ++i) {
    const int64_t slot = index(a.read_indices, i, i),
                  tokens = op::index_at(a.cu_seqlens, i + 1) - op::index_at(a.cu_seqlens, i);
    FI_CHECK(slot < a.kg_cache->size(0), ValueError, "sequence ", i, " has slot ", slot, ", but kg_cache has ",
             a.kg_cache->size(0), " slots");
    FI_CHECK(tokens <= a.kg_cache->size(2), ValueError, "sequence ", i, " has ", tokens, " tokens, but kg_cache has ",
             a.kg_cache->size(2), " rows a slot");
  }
}
void check_gates(const Kda& a) {
  using ops::linear_attention::check_gate;
  const auto takes_part = [&](int64_t token) {
    int64_t i = 0;
    while (i < sequences_of(a) && op::index_at(a.cu_seqlens, i + 1) <= token) ++i;
    return i < sequences_of(a) && (!a.state || index(a.read_indices, i, i) >= 0);
  };
  if (a.use_gate) check_gate("A_log", *a.A_log), check_gate("dt_bias", *a.dt_bias);
  check_gate("g", a.g, takes_part), check_gate("beta", a.beta, takes_part);
}
void validate(const Kda& a) {
  const int64_t heads = a.q.size(1), value_heads = a.v.size(1);
  FI_CHECK(heads > 0 && value_heads % heads == 0, ValueError, "v has ", value_heads,
           " heads, which is not a multiple of the ", heads, " heads of q");
  FI_CHECK(a.cu_seqlens.size(0) >= 1, ValueError, "cu_seqlens is empty, but must be [sequences + 1]");
  FI_CHECK(!a.use_gate || (a.A_log && a.dt_bias), ValueError, a.A_log ? "dt_bias" : "A_log",
           " is missing, but use_gate is True");
  FI_CHECK(!a.lower_bound || a.use_gate, ValueError, "lower_bound is given, but use_gate is False");
  FI_CHECK(!a.lower_bound || (*a.lower_bound < 0 && std::isfinite(*a.lower_bound)), ValueError, "lower_bound is ",
           a.lower_bound.value_or(0), ", but must be below 0 and finite");
  FI_CHECK(a.state || !a.source, ValueError, "source is given without state");
  const int64_t n = sequences_of(a);
  check_indices("read_indices", a.read_indices, n, a.source ? "source" : "state", source_of(a));
  check_indices("write_indices", a.write_indices ? a.write_indices : a.read_indices, n, "state", a.state);
  check_indices("after_indices", a.after_indices, a.q.size(0), a.after_states ? "after_states" : "state", after_of(a));
  for (const auto& [name, indices, states] : {std::tuple{a.source ? "source" : "state", &a.read_indices, &source_of(a)},
                                              std::tuple{"state", &a.write_indices, &a.state}})
    FI_CHECK(!*states || *indices || a.read_indices || (*states)->size(0) >= n, ValueError, name, " has ",
             (*states)->size(0), " slots, fewer than the ", n, " sequences of cu_seqlens");
  if (op::inferring() || a.cu_seqlens.device() != kCpu) return;
  const int64_t total = op::check_indptr("cu_seqlens", a.cu_seqlens);
  FI_CHECK(total <= a.q.size(0), ValueError, "cu_seqlens ends at ", total, ", but q has ", a.q.size(0), " tokens");
  check_caches(a);
  check_gates(a);
}

// ---- launch ----
KdaRows rows_of(const TensorView& t) { return {t.data(), t.stride(0), t.stride(1)}; }
KdaStates states_of(const std::optional<TensorView>& t) {
  if (!t) return {};
  return {t->data(), t->stride(0), t->stride(1), t->stride(2)};
}
struct Work {
  std::vector<KdaSequence> sequences;
  std::vector<int64_t> after;
  bool in_order = false;
};
Work work_of(const Kda& a) {
  Work w;
  std::map<int64_t, int64_t> writer;  // the sequence that writes a slot of state
  const auto writes = [&](int64_t slot, int64_t i) {
    const auto [it, is_new] = writer.emplace(slot, i);
    w.in_order |= !is_new && it->second != i;
  };
  if (a.after_indices)
    for (int64_t t = 0; t < a.q.size(0); ++t)
      w.after.push_back(std::max<int64_t>(op::index_at(*a.after_indices, t), -1));
  for (int64_t i = 0; i < sequences_of(a); ++i) {
    KdaSequence s{op::index_at(a.cu_seqlens, i), 0, -1, -1, false};
    s.tokens = op::index_at(a.cu_seqlens, i + 1) - s.first;
    if (a.state) {
      s.read = index(a.read_indices, i, i), s.skip = s.read < 0;
      s.write = a.disable_state_update || s.skip ? -1 : index(a.write_indices, i, s.read);
    }
    if (s.write >= 0 && s.tokens) writes(s.write, i);
    for (int64_t t = s.first; a.after_indices && !a.after_states && !s.skip && t < s.first + s.tokens; ++t)
      if (w.after[static_cast<size_t>(t)] >= 0) writes(w.after[static_cast<size_t>(t)], i);
    w.sequences.push_back(s);
  }
  for (size_t i = 0; i < w.sequences.size() && !a.source; ++i) {
    const auto it = writer.find(w.sequences[i].read);
    w.in_order |= it != writer.end() && it->second != static_cast<int64_t>(i);
  }
  return w;
}
KdaParams params_of(const Kda& a) {
  KdaParams p{};
  p.heads = a.q.size(1), p.value_heads = a.v.size(1), p.width = a.q.size(2), p.rows = a.v.size(2);
  p.q = rows_of(a.q), p.k = rows_of(a.k), p.v = rows_of(a.v), p.g = rows_of(a.g), p.beta = rows_of(a.beta);
  p.out = rows_of(*a.output), p.input = a.q.dtype(), p.out_type = a.output->dtype();
  p.l2norm = a.use_qk_l2norm, p.beta_is_logit = a.beta_is_logit;
  p.gate = !a.use_gate ? KdaGate::kNone : a.lower_bound ? KdaGate::kBounded : KdaGate::kSoftplus;
  if (a.A_log) p.a_log = a.A_log->data_as<float>(), p.a_log_stride = a.A_log->stride(0);
  if (a.dt_bias) p.dt_bias = a.dt_bias->data_as<float>();
  p.scale = static_cast<float>(a.scale.value_or(1 / std::sqrt(static_cast<double>(p.width))));
  p.lower_bound = static_cast<float>(a.lower_bound.value_or(0));
  p.corrections = states_of(a.correction_cache), p.kg = states_of(a.kg_cache);
  p.in = states_of(source_of(a)), p.state = states_of(a.state), p.after = states_of(after_of(a));
  return p;
}
/// Tokens behind the last sequence.
void clear_rest(const Kda& a) {
  const TensorView& o = *a.output;
  for (int64_t t = op::index_at(a.cu_seqlens, sequences_of(a)); t < o.size(0); ++t)
    for (int64_t h = 0; h < o.size(1); ++h)
      std::memset(o.data_as<char>() + (t * o.stride(0) + h * o.stride(1)) * o.item_size(), 0,
                  static_cast<size_t>(o.size(2) * o.item_size()));
}
op::Prepared prepare_cpu(const Kda& a) {
  const int64_t width = a.q.size(2);
  KdaConfig config{a.state ? a.state->dtype() : DType::kF32, false,
                   static_cast<short>(width == 64 || width == 128 ? width : 0),
                   static_cast<short>(a.kg_cache.has_value())};
  const int64_t n = sequences_of(a);  // a batch of equal lengths, or sequences that are short for another reason
  config.one_block = a.state.has_value();
  for (int64_t i = 0; i < n && config.one_block; ++i)
    config.one_block = op::index_at(a.cu_seqlens, i + 1) - op::index_at(a.cu_seqlens, i) < kChannelChunk;
  return ops::with_kernel<kKda>(config, [&a, one_block = config.one_block](jit::CpuFn fn) {
    const Work work = work_of(a);
    KdaParams p = params_of(a);
    p.sequences = work.sequences.data(), p.count = static_cast<int64_t>(work.sequences.size());
    p.in_order = work.in_order;
    if (!work.after.empty()) p.after_slots = work.after.data();
    const int64_t units = p.in_order ? p.value_heads : p.count * p.value_heads;
    p.per_task =
        p.in_order ? 1 : ops::rows_per_task(units, 2 * p.rows * p.width * (a.state ? a.state->item_size() : 4));
    ops::run_rows_with_scratch(fn, p, p.count ? units : 0, p.per_task, kda_scratch(one_block, p.width, p.rows));
    clear_rest(a);
  });
}
GdnIndices indices_of(const std::optional<TensorView>& t) {
  if (!t) return {};
  return {t->data(), t->stride(0), t->dtype() == DType::kI64};
}
bool states_aligned(const Kda& a) {
  bool aligned = true;
  for (const auto* t : {&a.state, &a.source, &a.after_states})
    aligned = aligned && (!*t || ops::linear_attention::rows_aligned(**t));
  return aligned;
}
/// Whether sequences of 16 tokens and more have a kernel by chunks. A step of decode, by the number of its tokens, has
/// none of these.
bool in_chunks(const Kda& a, Device device) {
  const int64_t k = a.q.size(2);
  bool aligned = states_aligned(a);
  for (const TensorView* t : {&a.q, &a.k, &a.v, &a.g, &*a.output})
    aligned = aligned && ops::linear_attention::rows_aligned(*t);
  return jit::arch_number(device) >= 80 && !a.kg_cache && a.q.dtype() == DType::kBF16 && (k == 64 || k == 128) &&
         a.v.size(2) % 8 == 0 && aligned && a.q.size(0) >= sequences_of(a) + kChannelCudaTokens - 1;
}
KdaCudaParams cuda_params_of(const Kda& a) {
  KdaCudaParams p{params_of(a)};
  p.call.count = sequences_of(a), p.tokens = a.q.size(0), p.updates = a.state && !a.disable_state_update;
  p.wide = ops::linear_attention::rows_aligned(a.q) && ops::linear_attention::rows_aligned(a.k) &&
           ops::linear_attention::rows_aligned(a.g) && (!a.dt_bias || ops::linear_attention::rows_aligned(*a.dt_bias));
  p.sequences = indices_of(a.cu_seqlens), p.read = indices_of(a.read_indices);
  p.write = indices_of(a.write_indices), p.after = indices_of(a.after_indices);
  const auto slots = [](const std::optional<TensorView>& t) { return t ? t->size(0) : 0; };
  p.in_slots = slots(source_of(a)), p.state_slots = slots(a.state), p.after_slots = slots(after_of(a));
  if (!a.kg_cache) return p;
  p.cache_slots = std::min(a.kg_cache->size(0), a.correction_cache->size(0));
  p.cache_tokens = std::min(a.kg_cache->size(2), a.correction_cache->size(2));
  p.wide_cache = ops::linear_attention::rows_aligned(*a.kg_cache) && p.call.width * a.kg_cache->item_size() % 16 == 0;
  return p;
}
/// Indices are read by the kernels alone. Sequences that share a slot have no order on a GPU.
op::Prepared prepare_cuda(const Kda& a, const op::Call& call) {
  namespace la = ops::linear_attention;
  if (std::string why = la::delta_unsupported(a.q.size(2)); !why.empty()) return op::Unsupported{std::move(why)};
  if (call.device.type == DeviceType::kEmu && work_of(a).in_order)
    return op::Unsupported{"sequences share a slot that one of them writes: on a GPU they have no order"};
  KdaCudaParams p = cuda_params_of(a);
  p.chunks = in_chunks(a, call.device);
  const DType state = a.state ? a.state->dtype() : DType::kF32;
  const DeltaCudaConfig config = la::delta_config(state, p.call.width, states_aligned(a), true);
  const int64_t items = p.tokens ? (p.call.count + 1) * p.call.value_heads : 0;
  if (std::string why = la::grid_unsupported(items, p.call.rows, config.block_rows()); !why.empty())
    return op::Unsupported{std::move(why)};
  const cuda::Launch tokens = la::delta_launch(items, p.call.rows, config.block_rows(), config.threads);
  if (!p.chunks) return ops::prepare_cuda<kKdaCuda>(config, p, call.device, tokens);
  const KdaChunkCudaConfig chunk{state, static_cast<unsigned char>(p.call.width), 128};
  cuda::Launch chunks =
      la::delta_launch(p.call.count * p.call.value_heads, p.call.rows, kChannelCudaValues, chunk.threads);
  chunks.shared_bytes = static_cast<unsigned>(chunk.shared_bytes());
  const jit::CudaLoaded& then = jit::cuda_kernel<kKdaChunkCuda>(chunk, call.device);
  if (!then.why_not.empty()) return op::Unsupported{then.why_not};
  return ops::with_cuda_kernel<kKdaCuda>(config, call.device, [p, tokens, chunks, &then](const auto& kernel) {
    ops::launch_unless_empty(kernel, p, tokens);
    ops::launch_unless_empty(then, p, chunks);
  });
}
/// Operations: the products of the chunk algorithm, in the chunks that the kernel takes, where sequences have chunks,
/// else the recurrence's.
op::Cost cost(const Kda& a) {
  const auto heads = static_cast<double>(a.v.size(1)), cells = static_cast<double>(a.v.size(2) * a.q.size(2));
  const auto chunk = static_cast<double>(kChannelChunk), widths = static_cast<double>(a.v.size(2) + a.q.size(2));
  const auto sequences = static_cast<double>(sequences_of(a));
  const double states = a.state ? sequences * static_cast<double>(a.state->item_size()) * heads * cells : 0;
  const auto tokens = static_cast<double>(a.q.size(0));
  const double caches =
      a.kg_cache ? tokens * heads * static_cast<double>(4 * a.v.size(2) + 2 * a.q.size(2) * a.q.item_size()) : 0;
  return {.bytes = (a.disable_state_update ? 1 : 2) * states + caches +
                   static_cast<double>(2 * a.q.nbytes() + 2 * a.v.nbytes() + a.g.nbytes()),
          .flops = tokens * heads * (tokens >= chunk * sequences ? 6 * cells + 4 * chunk * widths : 7 * cells)};
}

constexpr op::Field fields[] = {
    op::in<&Kda::q>("q", "n h k", op::floats),
    op::in<&Kda::k>("k", "n h k", op::same_as("q")),
    op::in<&Kda::v>("v", "n hv v", op::same_as("q")),
    op::in<&Kda::g>("g", "n hv k", op::same_as("q")),
    op::in<&Kda::beta>("beta", "n hv", op::same_as("q"), op::any_layout),
    op::in<&Kda::cu_seqlens>("cu_seqlens", "m", op::indices),
    op::in<&Kda::A_log>("A_log", "h", DType::kF32, op::any_layout),
    op::in<&Kda::dt_bias>("dt_bias", "h k", DType::kF32, op::contiguous),
    op::attr<&Kda::scale>("scale"),
    op::attr<&Kda::use_qk_l2norm>("use_qk_l2norm"),
    op::attr<&Kda::use_gate>("use_gate"),
    op::attr<&Kda::lower_bound>("lower_bound"),
    op::attr<&Kda::beta_is_logit>("beta_is_logit"),
    op::inout<&Kda::state>("state", "p hv v k", op::floats),
    op::in<&Kda::source>("source", "r hv v k", op::same_as("state")),
    op::in<&Kda::read_indices>("read_indices", "s", op::indices, op::any_layout),
    op::in<&Kda::write_indices>("write_indices", "s", op::indices, op::any_layout),
    op::in<&Kda::after_indices>("after_indices", "n", op::indices, op::any_layout),
    op::inout<&Kda::after_states>("after_states", "c hv v k", op::same_as("state")),
    op::attr<&Kda::disable_state_update>("disable_state_update"),
    op::inout<&Kda::correction_cache>("correction_cache", "cs hv ct v", DType::kF32),
    op::inout<&Kda::kg_cache>("kg_cache", "cs hv ct 2*k", op::same_as("q")),
    op::out<&Kda::output>("output", "n hv v", op::same_as("q")),
};
constexpr op::Candidate candidates[] = {op::cuda<prepare_cuda>(), op::cpu<prepare_cpu>(),
                                        op::reference<ref::kda_recurrence>()};
}  // namespace

namespace ops::linear_attention {
constinit const op::Op kda_recurrence_op =
    op::define<Kda, validate, cost>("kda_recurrence", "flashinfer.kda",
                                    "The delta rule with a decay of each key channel: S = S e^g; S += beta (v - S k) "
                                    "k^T; output = S q. Not in FlashInfer, "
                                    "whose recurrent_kda calls it.",
                                    fields, candidates, kda_recurrence_cases, {1e-4, 2e-5});
}  // namespace ops::linear_attention

Tensor kda_recurrence(const Kda& args) { return op::call(ops::linear_attention::kda_recurrence_op, args); }

}  // namespace flashinfer
