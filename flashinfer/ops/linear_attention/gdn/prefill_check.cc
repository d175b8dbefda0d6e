// SPDX-License-Identifier: Apache-2.0
// What the tables of the ops over packed sequences cannot say.
#include <algorithm>
#include <vector>

#include "flashinfer/ops/linear_attention/gate_checks.h"
#include "flashinfer/ops/linear_attention/gdn/prefill_call.h"
#include "flashinfer/ops/linear_attention/kernels/gdn/chunk_params.h"
#include "flashinfer/ops/linear_attention/parts.h"

namespace flashinfer::ops::linear_attention {
namespace {
void check_heads(const PrefillCall& c) {
  const int64_t q = c.q.size(1), k = c.k.size(1), v = c.v.size(1);
  const bool grouped_queries = k == v && k > 0 && q % k == 0, grouped_values = q == k && q > 0 && v % q == 0;
  FI_CHECK(grouped_queries || grouped_values, ValueError, "q, k and v have ", q, ", ", k, " and ", v,
           " heads, but k's must be v's and divide q's, or be q's and divide v's");
}
/// Rows that a pool of states must have.
int64_t states(const PrefillCall& c) { return c.sequences.size(0) - 1; }

void check_states(const char* name, const TensorView& t, const PrefillCall& c) {
  if (!t.defined()) return;
  const int64_t slots = c.slots.defined() && t.rank() == 4 ? t.size(0) : states(c);
  check_shape(name, t, {slots, c.heads(), c.v.size(2), c.q.size(2)});
  if (!c.slots.defined() || c.slots.device().type == DeviceType::kCUDA) return;
  op::check_index_range("state_indices", c.slots, 0, slots, str("slots of ", name));
}
/// Without cu_seqlens FlashInfer's functions raise errors of two kinds.
void check_sequences(const PrefillCall& c, ErrorKind without) {
  if (!c.sequences.defined()) throw_error(without, "cu_seqlens is None, but is required");
  FI_CHECK(c.sequences.size(0) >= 2, ValueError, "cu_seqlens has ", c.sequences.size(0),
           " elements, but must have at least 2");
  if (c.sequences.device().type == DeviceType::kCUDA) return;
  const int64_t end = op::check_indptr("cu_seqlens", c.sequences);
  FI_CHECK(end == c.q.size(0), ValueError, "cu_seqlens[", c.sequences.size(0) - 1, "] is ", end, ", but q has ",
           c.q.size(0), " tokens");
}
void check_common(const PrefillCall& c, ErrorKind without_sequences = ErrorKind::kValueError) {
  check_sequences(c, without_sequences);
  check_heads(c);
  const int64_t tokens = c.q.size(0), h = c.heads();
  if (c.gate.defined() && c.channels) check_shape("g", c.gate, {tokens, h, c.q.size(2)});
  if (c.gate.defined() && !c.channels) check_shape("g", c.gate, {tokens, h});
  if (c.beta.defined() && c.channels) check_shape("beta", c.beta, {tokens, h, c.q.size(2)});
  if (c.beta.defined() && !c.channels) check_shape("beta", c.beta, {tokens * c.updates, h});
  if (c.write.defined()) check_shape("w", c.write, {tokens, h, c.v.size(2)});
  check_states("initial_state", c.initial, c);
  check_states("output_state", c.final, c);
}
void check_gates(const PrefillCall& c) {
  if (c.gate.defined()) c.channels ? check_gate("g", c.gate) : check_factors("g", c.gate);
  if (c.beta.defined()) check_gate("beta", c.beta);
  if (c.write.defined()) check_gate("w", c.write);
}
void check_max_seqlen(const ChunkGatedDeltaRule& a, int64_t sequences) {
  if (!a.max_seqlen) return;
  const int64_t x = *a.max_seqlen, tokens = a.q.size(0);
  FI_CHECK(x >= 0, ValueError, "max_seqlen is ", x, ", but must be a nonnegative integer");
  FI_CHECK(x > 0 || tokens == 0, ValueError, "max_seqlen is 0, but must be positive when q is nonempty");
  FI_CHECK(x >= ceil_div(tokens, sequences), ValueError, "max_seqlen is ", x,
           ", but cannot be smaller than ceil(total_seq_len / num_seqs), ", ceil_div(tokens, sequences));
  FI_CHECK(x <= tokens, ValueError, "max_seqlen is ", x, ", but cannot exceed total_seq_len, ", tokens);
}
DType state_type(const ChunkGatedDeltaRule& a) {
  return a.output_state ? a.output_state->dtype() : a.initial_state ? a.initial_state->dtype() : DType::kF32;
}
void check_checkpoints(const ChunkGatedDeltaRule& a, const PrefillCall& c) {
  const int64_t every = a.checkpoint_every_n_tokens;
  FI_CHECK(every >= 0, ValueError, "checkpoint_every_n_tokens is ", every, ", but must be non-negative");
  FI_CHECK(every % kGdnChunk == 0, ValueError, "checkpoint_every_n_tokens is ", every,
           ", but must be a multiple of the chunk size, ", kGdnChunk);
  if (every == 0) {
    FI_CHECK(!a.state_checkpoints && !a.checkpoint_cu_starts, ValueError,
             "state_checkpoints and checkpoint_cu_starts must be None when checkpoint_every_n_tokens is 0");
    return;
  }
  FI_CHECK(a.state_checkpoints && a.checkpoint_cu_starts, ValueError,
           "state_checkpoints and checkpoint_cu_starts must both be provided when checkpoint_every_n_tokens is ",
           every);
  const TensorView &t = *a.state_checkpoints, &starts = *a.checkpoint_cu_starts;
  FI_CHECK(t.dtype() == state_type(a), ValueError, "state_checkpoints must have dtype ", name(state_type(a)),
           ", the state's, but has ", name(t.dtype()));
  check_shape("state_checkpoints", t, {t.rank() ? t.size(0) : 0, c.heads(), c.v.size(2), c.q.size(2)});
  FI_CHECK(starts.size(0) == states(c) + 1, ValueError, "checkpoint_cu_starts has ", starts.size(0),
           " elements, but must have ", states(c) + 1);
  if (starts.device().type == DeviceType::kCUDA) return;
  for (int64_t n = 0; n < states(c); ++n) {
    const int64_t first = op::index_at(starts, n),
                  count = (op::index_at(c.sequences, n + 1) - op::index_at(c.sequences, n)) / every;
    FI_CHECK(first >= 0 && first + count <= t.size(0), ValueError, "checkpoint_cu_starts[", n, "] is ", first,
             " and sequence ", n, " has ", count, " checkpoints, but state_checkpoints has ", t.size(0), " rows");
    const int64_t next = op::index_at(starts, n + 1);
    FI_CHECK(next - first >= count, ValueError, "checkpoint_cu_starts[", n + 1, "] is ", next, ", but sequence ", n,
             " has ", count, " checkpoints from row ", first, " on");
  }
}
}  // namespace

void check(const ChunkGatedDeltaRule& a) {
  const PrefillCall c = call_of(a);
  check_common(c, ErrorKind::kAssertionError);
  FI_CHECK(a.use_cp.as<bool>() || op::same_value(a.use_cp, op::Value("auto")), ValueError, "use_cp is ",
           op::python_repr(a.use_cp), ", but must be True, False or 'auto'");
  check_max_seqlen(a, states(c));
  check_checkpoints(a, c);
  check_gates(c);
  if (!a.state_indices) return;
  FI_CHECK(a.state_indices->size(0) == states(c), ValueError, "state_indices has ", a.state_indices->size(0),
           " elements, but there are ", states(c), " sequences");
  FI_CHECK(!a.output_final_state || a.output_state, ValueError,
           "state_indices with output_final_state needs an explicit output_state pool, but output_state is None");
  if (a.state_indices->device().type == DeviceType::kCUDA) return;
  std::vector<int64_t> ids;
  for (int64_t n = 0; n < states(c); ++n) ids.push_back(op::index_at(*a.state_indices, n));
  std::ranges::sort(ids);
  for (size_t i = 1; i < ids.size(); ++i)
    FI_CHECK(ids[i] != ids[i - 1], ValueError, "state_indices has ", ids[i], " twice, but its slots must differ");
}
void check(const ChunkGatedDeltaRule2& a) {
  const PrefillCall c = call_of(a);
  check_common(c);
  check_gates(c);
}
void check(const ChunkGatedDeltaProduct& a) {
  FI_CHECK(a.num_householder >= 1, ValueError, "num_householder is ", a.num_householder, ", but must be at least 1");
  const int64_t rows = a.q.size(0) * a.num_householder;
  FI_CHECK(a.k.size(0) == rows, ValueError, "k.shape[0] is ", a.k.size(0), ", but must be ", rows,
           ": q's tokens times num_householder, ", a.num_householder);
  const PrefillCall c = call_of(a);
  check_common(c);
  check_gates(c);
}

}  // namespace flashinfer::ops::linear_attention
