// SPDX-License-Identifier: Apache-2.0
// What the tables of the decode ops cannot say, and what their arguments are to the recurrence.
#include <algorithm>
#include <atomic>

#include "flashinfer/core/warn.h"
#include "flashinfer/op/index_checks.h"
#include "flashinfer/ops/linear_attention/gate_checks.h"
#include "flashinfer/ops/linear_attention/gdn/decode_call.h"

namespace flashinfer::ops::linear_attention {
namespace {
void check_states(const char* name, const TensorView& t, const TensorView& state, int64_t batch, int64_t tokens) {
  bool fits = t.rank() == 5 && t.size(0) >= batch && t.size(1) >= tokens && t.dtype() == state.dtype();
  for (int i = 1; fits && i < 4; ++i) fits = t.size(i + 1) == state.size(i);
  FI_CHECK(fits, ValueError, name, " is ", to_string(t), ", but must be ", flashinfer::name(state.dtype()),
           "[>= ", batch, ", >= ", tokens, ", ", state.size(1), ", ", state.size(2), ", ", state.size(3), "]");
}
bool updates(const GatedDeltaRuleMtp& a) { return a.disable_state_update && !*a.disable_state_update; }

void check_replay(const GatedDeltaRuleMtp& a) {
  const TensorView* const buffers[] = {
      a.replayssm_rawv ? &*a.replayssm_rawv : nullptr, a.replayssm_rawk ? &*a.replayssm_rawk : nullptr,
      a.replayssm_g ? &*a.replayssm_g : nullptr, a.replayssm_beta ? &*a.replayssm_beta : nullptr};
  constexpr const char* kNames[] = {"replayssm_rawv", "replayssm_rawk", "replayssm_g", "replayssm_beta"};
  for (int i = 0; i < 4; ++i)
    if ((buffers[i] != nullptr) != a.cache_replayssm)
      throw_error(ErrorKind::kAssertionError,
                  str(kNames[i], a.cache_replayssm ? " is None, but cache_replayssm is True"
                                                   : " is given, but cache_replayssm is False"));
  if (!a.cache_replayssm) return;
  FI_CHECK(!updates(a), ValueError, "cache_replayssm is True, but disable_state_update is False");
  FI_CHECK(a.q.size(1) >= 3, ValueError, "cache_replayssm is True, but q.shape[1] is ", a.q.size(1),
           ": it takes at least 3 tokens");
}
/// `read`, if any: the slots of the rows, of which negative ones are padding.
template <class B>
void check_gates(const B& a, const std::optional<TensorView>& read) {
  check_gate("A_log", a.A_log), check_gate("dt_bias", a.dt_bias);
  const auto takes_part = [&](int64_t i) { return !read || op::index_at(*read, i) >= 0; };
  check_gate("a", a.a, takes_part), check_gate("b", a.b, takes_part);
}
}  // namespace

void check(const GatedDeltaRuleDecode& a) {
  check_heads(a.q, a.v);
  check_gates(a, std::nullopt);
}

void check(const GatedDeltaRuleDecodePretranspose& a) {
  check_heads(a.q, a.v);
  const int64_t tokens = a.q.size(1);
  if (a.initial_state.has_value() != a.initial_state_indices.has_value())
    throw_error(ErrorKind::kAssertionError, a.initial_state
                                                ? "initial_state_indices is None, but initial_state is given"
                                                : "initial_state is None, but initial_state_indices is given");
  FI_CHECK(a.initial_state || a.state, ValueError, "state is None, and so is initial_state");
  FI_CHECK(a.initial_state || !a.output_state_indices, ValueError,
           "output_state_indices is given, but initial_state, whose slots they are, is None");
  FI_CHECK(tokens != 1 || !a.intermediate_states_buffer, ValueError,
           "intermediate_states_buffer is given, but q.shape[1] is 1: it is for several tokens");
  FI_CHECK(tokens != 1 || !a.disable_state_update, ValueError,
           "disable_state_update is True, but q.shape[1] is 1: it is for several tokens");
  if (!a.initial_state && tokens > 1 && a.state->dtype() == DType::kF32)
    throw_error(ErrorKind::kAssertionError,
                str("q.shape[1] is ", tokens, ", but with a float32 state that is no pool it must be 1"));
  const TensorView& state = a.initial_state ? *a.initial_state : *a.state;
  if (a.intermediate_states_buffer)
    check_states("intermediate_states_buffer", *a.intermediate_states_buffer, state, a.q.size(0), tokens);
  if (a.initial_state) check_slots("initial_state_indices", *a.initial_state_indices, "initial_state", state.size(0));
  if (a.output_state_indices)
    check_slots("output_state_indices", *a.output_state_indices, "initial_state", state.size(0));
  check_gates(a, a.initial_state_indices);
}

void check(const GatedDeltaRuleMtp& a) {
  check_heads(a.q, a.v);
  const int64_t slots = a.initial_state.size(0);
  check_slots("initial_state_indices", a.initial_state_indices, "initial_state", slots);
  if (a.output_state_indices) check_slots("output_state_indices", *a.output_state_indices, "initial_state", slots);
  if (a.intermediate_states_buffer)
    check_states("intermediate_states_buffer", *a.intermediate_states_buffer, a.initial_state, a.q.size(0),
                 a.q.size(1));
  check_replay(a);
  if (a.ssm_state_indices) {
    FI_CHECK(a.q.size(1) >= 2, ValueError, "ssm_state_indices is given, but q.shape[1] is ", a.q.size(1),
             ": it takes at least 2 tokens");
    FI_CHECK(updates(a), ValueError, "ssm_state_indices is given, but disable_state_update is ",
             a.disable_state_update ? "True" : "None, which means True");
    FI_CHECK(!a.intermediate_states_buffer, ValueError,
             "ssm_state_indices and intermediate_states_buffer are both given, but only one may be");
    check_slots("ssm_state_indices", *a.ssm_state_indices, "initial_state", slots);
  }
  check_gates(a, a.initial_state_indices);
  static std::atomic<bool> warned{false};
  if (!a.disable_state_update && !warned.exchange(true))
    warn(
        "gated_delta_rule_mtp: disable_state_update is None and means True for now; FlashInfer 0.8 changes that to "
        "False: pass it");
}

DecodeCall call_of(const GatedDeltaRuleDecode& a) {
  DecodeCall c{a.q, a.k, a.v, a.A_log, a.a, a.dt_bias, a.b, a.output.value_or(TensorView())};
  c.scale = scale_or_default(a.scale, a.q.size(3)), c.l2norm = a.use_qk_l2norm, c.v_innermost = true;
  c.state = a.state;
  return c;
}
DecodeCall call_of(const GatedDeltaRuleDecodePretranspose& a) {
  DecodeCall c{a.q, a.k, a.v, a.A_log, a.a, a.dt_bias, a.b, a.output.value_or(TensorView())};
  c.scale = scale_or_default(a.scale, a.q.size(3)), c.l2norm = a.use_qk_l2norm, c.update = !a.disable_state_update;
  c.state = a.initial_state ? *a.initial_state : *a.state;
  if (a.initial_state) c.read = *a.initial_state_indices, c.write = a.output_state_indices.value_or(c.read);
  c.after = a.intermediate_states_buffer.value_or(TensorView());
  return c;
}
DecodeCall call_of(const GatedDeltaRuleMtp& a) {
  DecodeCall c{a.q, a.k, a.v, a.A_log, a.a, a.dt_bias, a.b, a.output.value_or(TensorView())};
  c.scale = scale_or_default(a.scale, a.q.size(3)), c.l2norm = a.use_qk_l2norm;
  c.state = a.initial_state, c.read = a.initial_state_indices, c.write = a.output_state_indices.value_or(c.read);
  c.update = updates(a) && !a.ssm_state_indices;
  c.after = a.intermediate_states_buffer.value_or(TensorView());
  if (a.ssm_state_indices) c.after = a.initial_state, c.after_slots = *a.ssm_state_indices;
  if (a.cache_replayssm)
    c.raw_v = *a.replayssm_rawv, c.raw_k = *a.replayssm_rawk, c.log_decay = *a.replayssm_g, c.beta = *a.replayssm_beta;
  return c;
}

bool rows_share_slots(const DecodeCall& c) {
  if (!c.read.defined()) return false;
  struct Use {
    int64_t slot, row;
    bool written;
  };
  std::vector<Use> uses;
  for (int64_t i = 0; i < c.batch(); ++i) {
    const int64_t from = op::index_at(c.read, i), to = op::index_at(c.write, i);
    if (from < 0) continue;
    uses.push_back({from, i, c.update && from == to});
    if (c.update && to >= 0 && from != to) uses.push_back({to, i, true});
    for (int64_t t = 0; c.after_slots.defined() && t < c.tokens(); ++t)
      if (const auto slot = op::index_at(c.after_slots.select(0, i), t); slot >= 0) uses.push_back({slot, i, true});
    if (c.raw_v.defined()) uses.push_back({-1 - from, i, true});  // the replay cache of the slot
  }
  std::ranges::sort(uses, {}, &Use::slot);
  for (size_t i = 0; i < uses.size();) {
    size_t end = i;
    bool written = false, several = false;
    for (; end < uses.size() && uses[end].slot == uses[i].slot; ++end)
      written |= uses[end].written, several |= uses[end].row != uses[i].row;
    if (written && several) return true;
    i = end;
  }
  return false;
}
void check_slots(const char* name, const TensorView& indices, const char* pool, int64_t slots) {
  if (indices.device().type == DeviceType::kCUDA) return;
  const auto slot = [&](int64_t x, auto... place) {
    FI_CHECK(x < slots, ValueError, name, "[", place..., "] is ", x, ", but ", pool, " has ", slots, " slots");
  };
  for (int64_t i = 0; i < indices.size(0); ++i) {
    if (indices.rank() == 1) slot(op::index_at(indices, i), i);
    for (int64_t k = 0; indices.rank() == 2 && k < indices.size(1); ++k)
      slot(op::index_at(indices.select(0, i), k), i, ", ", k);
  }
}
void check_heads(const TensorView& q, const TensorView& v) {
  FI_CHECK(q.size(2) > 0 && v.size(2) % q.size(2) == 0, ValueError, "v.shape[2] is ", v.size(2),
           ", but must be a multiple of q.shape[2], ", q.size(2));
}

}  // namespace flashinfer::ops::linear_attention
