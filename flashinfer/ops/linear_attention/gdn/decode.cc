// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/linear_attention/gdn/decode.h"

#include <cstring>

#include "flashinfer/op/call.h"
#include "flashinfer/ops/common/cuda.h"
#include "flashinfer/ops/common/task_scratch.h"
#include "flashinfer/ops/linear_attention/cases.h"
#include "flashinfer/ops/linear_attention/cuda_launch.h"
#include "flashinfer/ops/linear_attention/gdn/decode_cuda.h"
#include "flashinfer/ops/linear_attention/gdn/decode_ref.h"
#include "flashinfer/ops/linear_attention/ops.h"
#include "flashinfer/ops/linear_attention/parts.h"

namespace flashinfer {
namespace {
namespace la = ops::linear_attention;
using ops::linear_attention::call_of;
using ops::linear_attention::DecodeCall;
using Decode = GatedDeltaRuleDecode;
using Pretranspose = GatedDeltaRuleDecodePretranspose;
using Mtp = GatedDeltaRuleMtp;
inline constexpr jit::Kernel kGdnDecode{"flashinfer/ops/linear_attention/kernels/gdn/decode.h",
                                        "flashinfer::cpu::gdn_decode", "flashinfer::GdnDecodeParams"};
inline constexpr jit::Kernel kGdnColumnsCuda{"flashinfer/ops/linear_attention/kernels/cuda/gdn_columns.cuh",
                                             "flashinfer::cu::gdn_columns", "flashinfer::GdnDecodeParams"};
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
  p.dots = c.state.dtype() == DType::kBF16 && p.input == DType::kBF16 && la::fast_bf16_dots();
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
  if (!la::rows_share_slots(c))
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
/// Indices are read by the kernel alone. Rows that share a slot have no order on a GPU (decode.h).
template <class B>
op::Prepared prepare_cuda(const B& a, const op::Call& call) {
  const DecodeCall c = call_of(a);
  if (std::string why = la::delta_unsupported(c.width()); !why.empty()) return op::Unsupported{std::move(why)};
  if (call.device.type == DeviceType::kEmu && la::rows_share_slots(c))
    return op::Unsupported{"rows of the batch share a slot that one of them writes: on a GPU they have no order"};
  const GdnDecodeParams p = la::decode_cuda_params(c);
  const bool aligned = la::rows_aligned(c.state) && (!c.after.defined() || la::rows_aligned(c.after)) &&
                       (!c.v_innermost || p.rows % 4 == 0);
  const DeltaCudaConfig config = la::delta_config(c.state.dtype(), p.width, aligned);
  const int64_t tile = c.v_innermost ? config.threads / 2 : config.block_rows(), pairs = p.tokens ? p.pairs : 0;
  if (std::string why = la::grid_unsupported(pairs, p.rows, tile); !why.empty()) return op::Unsupported{std::move(why)};
  const cuda::Launch launch = la::delta_launch(pairs, p.rows, tile, config.threads);
  if (c.v_innermost) return ops::prepare_cuda<kGdnColumnsCuda>(config, p, call.device, launch);
  return ops::prepare_cuda<la::kGdnDecodeCuda>(config, p, call.device, launch);
}
template <class B>
void reference(const B& a) {
  const DecodeCall c = call_of(a);
  const ref::GdnDecodeReference run(c);
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
constexpr op::Candidate candidates[] = {op::cuda<prepare_cuda<B>>(), op::cpu<prepare_cpu<B>>(),
                                        op::reference<reference<B>>()};
constexpr const char* kModule = "flashinfer.gdn_decode";
}  // namespace

namespace ops::linear_attention {

GdnDecodeParams decode_cuda_params(const DecodeCall& c) {
  GdnDecodeParams p = params_of(c);
  p.slots = c.state.size(0), p.after_slot_count = c.after.defined() ? c.after.size(0) : 0;
  p.wide = rows_aligned(c.q) && rows_aligned(c.k);
  return p;
}

extern const op::Op gdn_decode_op, gdn_decode_pretranspose_op, gdn_mtp_op;
constinit const op::Op gdn_decode_op = op::define<Decode, la::check, cost<Decode>>(
    "gated_delta_rule_decode", kModule,
    "One step of the gated delta rule on states [B, HV, K, V], updated in place; returns (output, state).",
    decode_fields, candidates<Decode>, gdn_decode_cases);
constinit const op::Op gdn_decode_pretranspose_op = op::define<Pretranspose, la::check, cost<Pretranspose>>(
    "gated_delta_rule_decode_pretranspose", kModule,
    "Steps of the gated delta rule on states [B, HV, V, K] or slots of a pool of them, updated in place; returns "
    "(output, state).",
    pretranspose_fields, candidates<Pretranspose>, gdn_decode_pretranspose_cases);
constinit const op::Op gdn_mtp_op = op::define<Mtp, la::check, cost<Mtp>>(
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
