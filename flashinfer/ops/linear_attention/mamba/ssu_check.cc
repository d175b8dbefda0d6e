// SPDX-License-Identifier: Apache-2.0
// What the table of selective_state_update cannot say.
#include <algorithm>

#include "flashinfer/op/index_checks.h"
#include "flashinfer/ops/linear_attention/gate_checks.h"
#include "flashinfer/ops/linear_attention/mamba/ssu_shape.h"

namespace flashinfer::ops::linear_attention {
namespace {
using Ssu = SelectiveStateUpdate;

bool readable(const TensorView& t) { return t.device() == kCpu; }

void check_rows(const char* name, const std::optional<TensorView>& t, int64_t rows, int max_rank = 1) {
  if (!t) return;
  FI_CHECK(t->rank() >= 1 && t->rank() <= max_rank && t->size(0) == rows, ValueError, name, " is ", to_string(*t),
           ", but must have an entry for each of ", rows, " sequences");
}
void check_options(const Ssu& a, const SsuForm& f) {
  if (a.x.rank() == 4 || f.packed) {
    FI_CHECK(a.cache_steps >= 1, ValueError, "cache_steps is ", a.cache_steps, ", but must be at least 1 with ",
             f.packed ? "cu_seqlens" : "several tokens (x has four dimensions)");
    FI_CHECK(f.packed || a.cache_steps >= f.steps, ValueError, "cache_steps is ", a.cache_steps, ", but x has ",
             f.steps, " tokens of each sequence");
  }
  FI_CHECK((a.state.dtype() == DType::kI16) == a.state_scale.has_value(), ValueError, "state_scale is ",
           a.state_scale ? "given" : "missing", ", but state is ", to_string(a.state),
           " (int16 states have scales, others none)");
  FI_CHECK(!a.intermediate_states_buffer || !ssu_dst_each_token(a), ValueError,
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
void check_pools(const Ssu& a, const SsuForm& f) {
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
void check_slots(const Ssu& a, const SsuForm& f) {
  const auto slot = [&](const char* name, int64_t value, auto... place) {
    FI_CHECK(value == a.pad_slot_id || (value >= 0 && value < f.slots), ValueError, name, "[", place..., "] is ", value,
             ", but must be in [0, ", f.slots, ") (slots of state) or pad_slot_id, ", a.pad_slot_id);
  };
  const auto all = [&](const char* name, const std::optional<TensorView>& t) {
    if (!t || !readable(*t)) return;
    if (t->rank() == 1) {
      for (int64_t i = 0; i < t->size(0); ++i) slot(name, op::index_at(*t, i), i);
    } else {
      for (int64_t i = 0; i < t->size(0); ++i)
        for (int64_t k = 0; k < t->size(1); ++k) slot(name, op::index_at(t->select(0, i), k), i, ", ", k);
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
        const int64_t row = ssu_sequence(a, f, i).cache;
        FI_CHECK(row < n, ValueError, "intermediate_states_buffer has ", n, " rows, but sequence ", i, " has slot ",
                 row, " (intermediate_state_indices is missing)");
      }
    }
  }
}
void check_lengths(const Ssu& a, const SsuForm& f) {
  if (!a.cu_seqlens || !readable(*a.cu_seqlens)) return;
  const int64_t total = op::check_indptr("cu_seqlens", *a.cu_seqlens);
  FI_CHECK(total == f.x.size(1), ValueError, "cu_seqlens ends at ", total, ", but x has ", f.x.size(1), " tokens");
  for (int64_t i = 0; i < f.sequences; ++i) {
    const int64_t n = op::index_at(*a.cu_seqlens, i + 1) - op::index_at(*a.cu_seqlens, i);
    FI_CHECK(n <= a.cache_steps, ValueError, "cu_seqlens gives sequence ", i, " ", n,
             " tokens, more than cache_steps, ", a.cache_steps);
  }
}
/// A with an element for each of the state's is as large as a state and is not read for the check.
void check_gates(const Ssu& a, const SsuForm& f) {
  if (f.a.size(2) == 1 || f.a.stride(2) == 0) check_gate("A", a.A);
  if (a.dt_bias) check_gate("dt_bias", *a.dt_bias);
  check_gate("dt", a.dt, [&](int64_t row) {
    if (!a.state_batch_indices) return true;
    int64_t i = row;
    if (f.packed)
      for (i = 0; i + 1 < f.sequences && op::index_at(*a.cu_seqlens, i + 1) <= row;) ++i;
    return ssu_sequence(a, f, i).read >= 0;
  });
}
}  // namespace

void check(const SelectiveStateUpdate& a) {
  FI_CHECK(!a.cu_seqlens || (a.cu_seqlens->rank() == 1 && a.cu_seqlens->size(0) >= 1), ValueError, "cu_seqlens is ",
           to_string(*a.cu_seqlens), ", but must be [sequences + 1]");
  const SsuForm f = ssu_form(a);
  check_rows("state_batch_indices", a.state_batch_indices, f.sequences, 2);
  check_rows("num_accepted_tokens", a.num_accepted_tokens, f.sequences);
  check_rows("intermediate_state_indices", a.intermediate_state_indices, f.sequences);
  if (a.dst_state_batch_indices) {
    const TensorView& t = *a.dst_state_batch_indices;
    const bool each = ssu_dst_each_token(a);
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
  check_gates(a, f);
}

}  // namespace flashinfer::ops::linear_attention
