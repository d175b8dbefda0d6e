// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/linear_attention/gdn/decode.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "flashinfer/core/warn.h"
#include "flashinfer/op/call.h"
#include "flashinfer/ops/common/task_scratch.h"
#include "flashinfer/ops/linear_attention/cases.h"
#include "flashinfer/ops/linear_attention/gdn/decode_ref.h"
#include "flashinfer/ops/linear_attention/kernels/gdn/decode_params.h"
#include "flashinfer/ops/linear_attention/ops.h"

namespace flashinfer {
namespace {
using ops::linear_attention::call_of;
using ops::linear_attention::check_heads;
using ops::linear_attention::check_slots;
using ops::linear_attention::DecodeCall;
using Decode = GatedDeltaRuleDecode;
using Pretranspose = GatedDeltaRuleDecodePretranspose;
using Mtp = GatedDeltaRuleMtp;
inline constexpr jit::Kernel kGdnDecode{"flashinfer/ops/linear_attention/kernels/gdn/decode.h",
                                        "flashinfer::cpu::gdn_decode", "flashinfer::GdnDecodeParams"};
constexpr DTypeSet kStates = DTypeSet(DType::kF32) | DType::kBF16;

// ---- launches ----
GdnRows rows_of(const TensorView& t) { return {t.data(), t.stride(0), t.stride(1), t.stride(2)}; }
GdnStates states_of(const TensorView& t, int slot_axis = 0) {
  return {t.data(), t.stride(slot_axis), t.stride(-3), t.stride(-2)};
}
GdnIndices indices_of(const TensorView& t) {
  if (!t.defined()) return {};
  return {t.data(), t.stride(0), t.dtype() == DType::kI64};
}
void set_replay(GdnDecodeParams& p, const DecodeCall& c) {
  if (!c.raw_v.defined()) return;
  p.raw_v = c.raw_v.data_as<bf16_t>(), p.raw_k = c.raw_k.data_as<bf16_t>();
  p.log_decay = c.log_decay.data_as<float>(), p.beta = c.beta.data_as<float>();
  p.raw_v_slot = c.raw_v.stride(0), p.raw_v_head = c.raw_v.stride(1), p.raw_v_token = c.raw_v.stride(2);
  p.raw_k_slot = c.raw_k.stride(0), p.raw_k_head = c.raw_k.stride(1), p.raw_k_token = c.raw_k.stride(2);
  p.log_slot = c.log_decay.stride(0), p.log_head = c.log_decay.stride(1);
  p.beta_slot = c.beta.stride(0), p.beta_head = c.beta.stride(1);
}
GdnDecodeParams params_of(const DecodeCall& c) {
  GdnDecodeParams p{};
  p.batch = c.batch(), p.tokens = c.tokens(), p.heads = c.heads(), p.value_heads = c.value_heads();
  p.width = c.width(), p.rows = c.rows(), p.scale = static_cast<float>(c.scale), p.l2norm = c.l2norm;
  p.q = rows_of(c.q), p.k = rows_of(c.k), p.v = rows_of(c.v), p.a = rows_of(c.a), p.b = rows_of(c.b);
  p.input = c.q.dtype(), p.dt_type = c.dt_bias.dtype(), p.out_type = c.output.dtype();
  p.a_log = c.A_log.data_as<float>(), p.a_log_stride = c.A_log.stride(0);
  p.dt_bias = c.dt_bias.data(), p.dt_stride = c.dt_bias.stride(0);
  p.in = states_of(c.state);
  if (c.update) p.out = p.in;
  p.read = indices_of(c.read), p.write = indices_of(c.write);
  if (c.after.defined()) {
    p.after = states_of(c.after);
    if (c.after_slots.defined())
      p.after_slots = c.after_slots.data_as<int32_t>(), p.after_batch = c.after_slots.stride(0),
      p.after_step = c.after_slots.stride(1);
    else
      p.after_token = c.after.stride(1);
  }
  p.result = c.output.data(), p.result_batch = c.output.stride(0), p.result_token = c.output.stride(1),
  p.result_head = c.output.stride(2);
  set_replay(p, c);
  p.pairs = p.batch * p.value_heads;
  p.per_task = ops::rows_per_task(p.pairs, 2 * p.rows * p.width * c.state.item_size());
  return p;
}

/// The states that the rows read, in the rows' order.
Tensor gather(const TensorView& state, const TensorView& read) {
  const int64_t rows = state.size(2), row_bytes = state.size(3) * state.item_size();
  const Tensor copy = Tensor::empty({read.size(0), state.size(1), rows, state.size(3)}, state.dtype());
  auto* to = static_cast<char*>(copy.data());
  for (int64_t i = 0; i < read.size(0); ++i)
    for (int64_t r = 0; r < state.size(1) * rows; ++r, to += row_bytes)
      if (const int64_t slot = op::index_at(read, i); slot >= 0)
        std::memcpy(
            to,
            static_cast<const char*>(state.data()) +
                (slot * state.stride(0) + r / rows * state.stride(1) + r % rows * state.stride(2)) * state.item_size(),
            static_cast<size_t>(row_bytes));
  return copy;
}

op::Prepared prepare(const DecodeCall& c) {
  const GdnDecodeParams p = params_of(c);
  const auto width = static_cast<short>(p.width == 64 || p.width == 128 ? p.width : 0);
  const GdnDecodeConfig config{c.state.dtype(), c.v_innermost, c.v_innermost ? short{0} : width};
  const int64_t words = gdn_decode_scratch(p.tokens, p.width, p.rows);
  if (!rows_share_slots(c))
    return ops::with_kernel<kGdnDecode>(config, [p, words](jit::CpuFn fn) {
      ops::run_rows_with_scratch(fn, p, p.tokens ? p.pairs : 0, p.per_task, words);
    });
  // Rows in order, a task a head; each reads its slot as it was.
  return ops::with_kernel<kGdnDecode>(config, [p0 = p, words, state = c.state, read = c.read](jit::CpuFn fn) {
    GdnDecodeParams p = p0;
    const Tensor before = gather(state, read);
    p.in = states_of(before.view()), p.rows_in_order = true;
    ops::run_rows_with_scratch(fn, p, p.value_heads, 1, words);
  });
}
template <class B>
op::Prepared prepare_cpu(const B& a) {
  return prepare(call_of(a));
}
template <class B>
void reference(const B& a) {
  const DecodeCall c = call_of(a);
  const ref::GdnDecodeReference run(c);
}

// ---- checks ----
void check_states(const char* name, const TensorView& t, const TensorView& state, int64_t batch, int64_t tokens) {
  bool fits = t.rank() == 5 && t.size(0) >= batch && t.size(1) >= tokens && t.dtype() == state.dtype();
  for (int i = 1; fits && i < 4; ++i) fits = t.size(i + 1) == state.size(i);
  FI_CHECK(fits, ValueError, name, " is ", to_string(t), ", but must be ", flashinfer::name(state.dtype()),
           "[>= ", batch, ", >= ", tokens, ", ", state.size(1), ", ", state.size(2), ", ", state.size(3), "]");
}
void validate_decode(const Decode& a) { check_heads(a.q, a.v); }

void validate_pretranspose(const Pretranspose& a) {
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
  if (!a.initial_state) return;
  check_slots("initial_state_indices", *a.initial_state_indices, "initial_state", state.size(0));
  if (a.output_state_indices)
    check_slots("output_state_indices", *a.output_state_indices, "initial_state", state.size(0));
}

bool updates(const Mtp& a) { return a.disable_state_update && !*a.disable_state_update; }

void check_replay(const Mtp& a) {
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
void validate_mtp(const Mtp& a) {
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
    for (int64_t i = 0; i < a.ssm_state_indices->size(0); ++i)
      check_slots("ssm_state_indices", a.ssm_state_indices->select(0, i), "initial_state", slots);
  }
  static std::atomic<bool> warned{false};
  if (!a.disable_state_update && !warned.exchange(true))
    warn(
        "gated_delta_rule_mtp: disable_state_update is None and means True for now; FlashInfer 0.8 changes that to "
        "False: pass it");
}

// ---- cost ----
template <class B>
op::Cost cost(const B& a) {
  const DecodeCall c = call_of(a);
  const auto pairs = static_cast<double>(c.batch() * c.value_heads()),
             cells = static_cast<double>(c.rows() * c.width());
  const auto tokens = static_cast<double>(c.tokens());
  const double inputs =
      static_cast<double>(c.q.numel() + c.k.numel() + c.v.numel()) * static_cast<double>(c.q.item_size());
  const double states = pairs * cells * static_cast<double>(c.state.item_size());
  const double stored = (c.update ? 1 : 0) + (c.after.defined() ? tokens : 0);
  return {.bytes = states * (1 + stored) + inputs + static_cast<double>(c.output.numel() * c.output.item_size()),
          .flops = 6 * pairs * cells * tokens};
}

// ---- tables ----
template <class B>
DType output_type(const B& a) {
  return a.output ? a.output->dtype() : a.q.dtype();
}
template <class B>
bool always(const B&) {
  return true;
}
bool returns_state(const Pretranspose& a) { return !a.initial_state; }

#define FI_TOKENS(B)                                                                          \
  op::in<&B::q>("q", "b t h k", op::floats), op::in<&B::k>("k", "b t h k", op::same_as("q")), \
      op::in<&B::v>("v", "b t hv v", op::same_as("q"))
#define FI_GATES(B)                                                                                  \
  op::in<&B::A_log>("A_log", "hv", DType::kF32), op::in<&B::a>("a", "b t hv", op::same_as("q")),     \
      op::in<&B::dt_bias>("dt_bias", "hv", kStates), op::in<&B::b>("b", "b t hv", op::same_as("q")), \
      op::attr<&B::scale>("scale"), op::out<&B::output>("output", "b t hv v", op::floats, op::dtype<output_type<B>>)
#define FI_BACKEND(B) op::attr<&B::backend>("backend", op::choices("auto|flashinfer|cake_gdn|rubin"))
constexpr op::Field decode_fields[] = {
    FI_TOKENS(Decode),  op::inout<&Decode::state>("state", "b hv k v", DType::kF32, op::when<always<Decode>>),
    FI_GATES(Decode),   op::attr<&Decode::use_qk_l2norm>("use_qk_l2norm"),
    FI_BACKEND(Decode),
};
constexpr op::Field pretranspose_fields[] = {
    FI_TOKENS(Pretranspose),
    op::inout<&Pretranspose::state>("state", "b hv v k", kStates, op::required, op::when<returns_state>),
    FI_GATES(Pretranspose),
    op::attr<&Pretranspose::use_qk_l2norm>("use_qk_l2norm"),
    op::inout<&Pretranspose::initial_state>("initial_state", "p hv v k", kStates, op::when<always<Pretranspose>>),
    op::in<&Pretranspose::initial_state_indices>("initial_state_indices", "b", op::indices, op::any_layout),
    op::in<&Pretranspose::output_state_indices>("output_state_indices", "b", op::indices, op::any_layout),
    op::inout<&Pretranspose::intermediate_states_buffer>("intermediate_states_buffer", nullptr),
    op::attr<&Pretranspose::disable_state_update>("disable_state_update"),
    FI_BACKEND(Pretranspose),
};
constexpr op::Field mtp_fields[] = {
    FI_TOKENS(Mtp),
    op::inout<&Mtp::initial_state>("initial_state", "p hv v k", kStates, op::when<always<Mtp>>),
    op::in<&Mtp::initial_state_indices>("initial_state_indices", "b", op::indices, op::any_layout),
    FI_GATES(Mtp),
    op::inout<&Mtp::intermediate_states_buffer>("intermediate_states_buffer", nullptr),
    op::in<&Mtp::ssm_state_indices>("ssm_state_indices", "b t", DType::kI32, op::any_layout),
    op::attr<&Mtp::disable_state_update>("disable_state_update"),
    op::attr<&Mtp::use_qk_l2norm>("use_qk_l2norm"),
    op::in<&Mtp::output_state_indices>("output_state_indices", "b", op::indices, op::any_layout),
    op::attr<&Mtp::cache_replayssm>("cache_replayssm"),
    op::inout<&Mtp::replayssm_rawv>("replayssm_rawv", "p hv t v", DType::kBF16),
    op::inout<&Mtp::replayssm_rawk>("replayssm_rawk", "p h t k", DType::kBF16),
    op::inout<&Mtp::replayssm_g>("replayssm_g", "p hv t", DType::kF32),
    op::inout<&Mtp::replayssm_beta>("replayssm_beta", "p hv t", DType::kF32),
};
#undef FI_TOKENS
#undef FI_GATES
#undef FI_BACKEND
template <class B>
constexpr op::Candidate candidates[] = {op::cpu<prepare_cpu<B>>(), op::reference<reference<B>>()};
constexpr const char* kModule = "flashinfer.gdn_decode";
}  // namespace

namespace ops::linear_attention {

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
  for (int64_t i = 0; i < indices.size(0); ++i) {
    const int64_t x = op::index_at(indices, i);
    FI_CHECK(x < slots, ValueError, name, "[", i, "] is ", x, ", but ", pool, " has ", slots, " slots");
  }
}
void check_heads(const TensorView& q, const TensorView& v) {
  FI_CHECK(q.size(2) > 0 && v.size(2) % q.size(2) == 0, ValueError, "v.shape[2] is ", v.size(2),
           ", but must be a multiple of q.shape[2], ", q.size(2));
}

extern const op::Op gdn_decode_op, gdn_decode_pretranspose_op, gdn_mtp_op;
constinit const op::Op gdn_decode_op = op::define<Decode, validate_decode, cost<Decode>>(
    "gated_delta_rule_decode", kModule,
    "One step of the gated delta rule on states [B, HV, K, V], updated in place; returns (output, state).",
    decode_fields, candidates<Decode>, gdn_decode_cases);
constinit const op::Op gdn_decode_pretranspose_op = op::define<Pretranspose, validate_pretranspose, cost<Pretranspose>>(
    "gated_delta_rule_decode_pretranspose", kModule,
    "Steps of the gated delta rule on states [B, HV, V, K] or slots of a pool of them, updated in place; returns "
    "(output, state).",
    pretranspose_fields, candidates<Pretranspose>, gdn_decode_pretranspose_cases);
constinit const op::Op gdn_mtp_op = op::define<Mtp, validate_mtp, cost<Mtp>>(
    "gated_delta_rule_mtp", kModule,
    "Several steps of the gated delta rule on slots of a pool, whose tokens may still be rejected; returns (output, "
    "pool).",
    mtp_fields, candidates<Mtp>, gdn_mtp_cases);

}  // namespace ops::linear_attention

std::pair<Tensor, Tensor> gated_delta_rule_decode(const Decode& a) {
  return op::call(ops::linear_attention::gdn_decode_op, a);
}
std::pair<Tensor, Tensor> gated_delta_rule_decode_pretranspose(const Pretranspose& a) {
  return op::call(ops::linear_attention::gdn_decode_pretranspose_op, a);
}
std::pair<Tensor, Tensor> gated_delta_rule_mtp(const Mtp& a) { return op::call(ops::linear_attention::gdn_mtp_op, a); }

}  // namespace flashinfer
