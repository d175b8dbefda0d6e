// SPDX-License-Identifier: Apache-2.0
// The fused decode steps as one: sequences and slots, and views without the leading 1. Internal to the family.
#pragma once
#include <algorithm>
#include <vector>

#include "flashinfer/op/index_checks.h"
#include "flashinfer/ops/linear_attention/kda/fused.h"
#include "flashinfer/ops/linear_attention/kda/kda.h"
#include "flashinfer/ops/linear_attention/kernels/kda/fused_params.h"

namespace flashinfer::ops::linear_attention {

struct KdaFusedCall {
  TensorView gate, beta, output_gate, output;  // [R, H, D], [R, H], [R, H, D], [R, H, D]
  std::vector<KdaFusedRow> rows;               // sequences
  Tensor qkv, starts, read, after;             // [R, 3 H D] bf16; [N + 1], [N], [R] int64
  KdaRecurrence recurrence;

  template <class B>
  explicit KdaFusedCall(const B& a) {
    const int64_t tokens = a.x.size(0), heads = a.state.size(1), width = a.state.size(2), c = heads * width;
    gate = a.raw_gate.select(0, 0), beta = a.raw_beta.select(0, 0), output = a.output->select(0, 0);
    output_gate = a.output_gate.rank() == 4 ? a.output_gate.select(0, 0) : a.output_gate;
    after = Tensor::empty({tokens}, DType::kI64);
    std::fill_n(after.template data_as<int64_t>(), tokens, -1);
    std::vector<int64_t> from;  // the slot that each sequence starts from
    if constexpr (requires { a.query_start_loc; }) {
      if (a.t1_state_indices)
        add_rows(*a.t1_state_indices, from);
      else
        add_sequences(a, from);
    } else {
      add_rows(a.state_indices, from);
    }
    const auto count = static_cast<int64_t>(rows.size());
    starts = Tensor::empty({count + 1}, DType::kI64), read = Tensor::empty({count}, DType::kI64);
    std::copy(from.begin(), from.end(), read.template data_as<int64_t>());
    starts.template data_as<int64_t>()[0] = 0;
    for (int64_t i = 0; i < count; ++i)
      starts.template data_as<int64_t>()[i + 1] =
          rows[static_cast<size_t>(i)].first + rows[static_cast<size_t>(i)].tokens;
    qkv = Tensor::empty({tokens, 3 * c}, DType::kBF16);
    const auto part = [&](int64_t i) {
      const int64_t shape[] = {tokens, heads, width}, strides[] = {3 * c, width, 1};
      return TensorView(qkv.template data_as<bf16_t>() + i * c, DType::kBF16, shape, strides);
    };
    KdaRecurrence& r = recurrence;
    r.q = part(0), r.k = part(1), r.v = part(2), r.g = gate, r.beta = beta, r.cu_seqlens = starts;
    r.A_log = TensorView(const_cast<void*>(a.A_log.data()), DType::kF32, {heads});
    r.dt_bias = TensorView(const_cast<void*>(a.dt_bias.data()), DType::kF32, {heads, width});
    r.use_gate = r.beta_is_logit = r.disable_state_update = true, r.lower_bound = a.lower_bound;
    r.state = a.state, r.read_indices = read, r.after_indices = after, r.output = output;
  }
  /// Whether a row takes part.
  std::vector<char> active() const {
    std::vector<char> y(static_cast<size_t>(after.size(0)), 0);
    for (const KdaFusedRow& r : rows)
      for (int64_t t = r.first; t < r.first + r.tokens && r.slot >= 0; ++t) y[static_cast<size_t>(t)] = 1;
    return y;
  }

 private:
  static int64_t live(int64_t slot) { return slot > 0 ? slot : -1; }
  void add_rows(const TensorView& indices, std::vector<int64_t>& from) {
    for (int64_t i = 0; i < indices.size(0); ++i) {
      const int64_t slot = live(op::index_at(indices, i));
      rows.push_back({i, 1, slot, 0}), from.push_back(slot), after.data_as<int64_t>()[i] = slot;
    }
  }
  template <class B>
  void add_sequences(const B& a, std::vector<int64_t>& from) {
    for (int64_t n = 0; n + 1 < a.query_start_loc.size(0); ++n) {
      const TensorView slots = a.state_indices.select(0, n);
      const int64_t first = op::index_at(a.query_start_loc, n), end = op::index_at(a.query_start_loc, n + 1);
      const int64_t at = std::clamp<int64_t>(op::index_at(a.num_accepted_tokens, n) - 1, 0, slots.size(0) - 1);
      const bool skip = live(op::index_at(slots, 0)) < 0 || live(op::index_at(slots, at)) < 0;
      rows.push_back({first, end - first, skip ? -1 : op::index_at(slots, 0), at});
      from.push_back(skip ? -1 : op::index_at(slots, at));
      for (int64_t t = first; t < end && !skip; ++t) after.data_as<int64_t>()[t] = live(op::index_at(slots, t - first));
    }
  }
};

}  // namespace flashinfer::ops::linear_attention
