// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/linear_attention/gdn/prefill.h"

#include "flashinfer/op/call.h"
#include "flashinfer/ops/common/cuda.h"
#include "flashinfer/ops/common/task_scratch.h"
#include "flashinfer/ops/linear_attention/cases.h"
#include "flashinfer/ops/linear_attention/cuda_launch.h"
#include "flashinfer/ops/linear_attention/gdn/prefill_ref.h"
#include "flashinfer/ops/linear_attention/kernels/gdn/chunk_cuda_config.h"
#include "flashinfer/ops/linear_attention/kernels/gdn/chunk_params.h"
#include "flashinfer/ops/linear_attention/ops.h"

namespace flashinfer {
namespace {
using ops::linear_attention::call_of;
using ops::linear_attention::PrefillCall;
using Rule = ChunkGatedDeltaRule;
using Rule2 = ChunkGatedDeltaRule2;
using Product = ChunkGatedDeltaProduct;
inline constexpr jit::Kernel kGdnChunkKernel{"flashinfer/ops/linear_attention/kernels/gdn/chunk.h",
                                             "flashinfer::cpu::gdn_chunk", "flashinfer::GdnChunkParams"};
inline constexpr jit::Kernel kGdnChannels{"flashinfer/ops/linear_attention/kernels/gdn/channels.h",
                                          "flashinfer::cpu::gdn_channels", "flashinfer::GdnChunkParams"};
inline constexpr jit::Kernel kGdnRowsCuda{"flashinfer/ops/linear_attention/kernels/cuda/gdn_rows.cuh",
                                          "flashinfer::cu::gdn_rows", "flashinfer::GdnChunkParams"};
inline constexpr jit::Kernel kGdnChunkCuda{"flashinfer/ops/linear_attention/kernels/cuda/gdn_chunk.cuh",
                                           "flashinfer::cu::gdn_chunk", "flashinfer::GdnChunkParams"};
inline constexpr jit::Kernel kGdnChannelsCuda{"flashinfer/ops/linear_attention/kernels/cuda/gdn_channels.cuh",
                                              "flashinfer::cu::gdn_channels", "flashinfer::GdnChunkParams"};
constexpr DTypeSet kStates = op::floats | op::fp8;

// ---- launches ----
GdnPacked packed(const TensorView& t) {
  if (!t.defined()) return {};
  return {t.data(), t.dtype(), t.stride(0), t.stride(1), t.size(1)};
}
GdnStateTensor states_of(const TensorView& t) {
  if (!t.defined()) return {};
  return {t.data(), t.dtype(), t.stride(0), t.stride(1), t.stride(2)};
}
GdnOffsets offsets_of(const TensorView& t) {
  if (!t.defined()) return {};
  return {t.data(), t.stride(0), t.dtype() == DType::kI64};
}
GdnChunkParams params_of(const PrefillCall& c) {
  GdnChunkParams p{};
  p.heads = c.heads(), p.width = c.q.size(2), p.rows = c.v.size(2), p.updates = c.updates;
  p.q = packed(c.q), p.k = packed(c.k), p.v = packed(c.v), p.gate = packed(c.gate), p.beta = packed(c.beta);
  p.write = packed(c.write);
  p.out = c.output.data(), p.out_type = c.output.dtype(), p.out_token = c.output.stride(0),
  p.out_head = c.output.stride(1);
  p.l2norm = c.l2norm, p.keep_empty = c.final_is_callers, p.scale = static_cast<float>(c.scale);
  p.sequences = offsets_of(c.sequences), p.slots = offsets_of(c.slots);
  p.in = states_of(c.initial), p.final = states_of(c.final), p.checkpoints = states_of(c.checkpoints);
  p.checkpoint_starts = offsets_of(c.checkpoint_starts), p.every = c.every;
  p.count = static_cast<int32_t>(c.sequences.size(0) - 1);
  return p;
}
op::Prepared prepare(const PrefillCall& c) {
  const GdnChunkParams p = params_of(c);
  const auto width = static_cast<short>(c.channels && (p.width == 64 || p.width == 128) ? p.width : 0);
  const int64_t tasks = (c.sequences.size(0) - 1) * p.heads, words = gdn_chunk_scratch(c.channels, p.width, p.rows);
  const auto launch = [p, tasks, words](jit::CpuFn fn) { ops::run_rows_with_scratch(fn, p, tasks, 1, words); };
  if (c.channels) return ops::with_kernel<kGdnChannels>(GdnChunkConfig{width}, launch);
  return ops::with_kernel<kGdnChunkKernel>(GdnChunkConfig{0}, launch);
}

template <class B>
op::Prepared prepare_cpu(const B& a) {
  return prepare(call_of(a));
}
bool states_aligned(const PrefillCall& c) {
  bool aligned = true;
  for (const TensorView* t : {&c.initial, &c.final, &c.checkpoints})
    aligned = aligned && (!t->defined() || ops::linear_attention::rows_aligned(*t));
  return aligned;
}
/// Whether a chunk kernel on tensor cores supports the call. Nothing of it depends on lengths, so that a sequence's
/// results do not depend on the others.
bool in_chunks(const PrefillCall& c, Device device) {
  const int64_t k = c.q.size(2), values = c.channels ? 8 : kGdnCudaValues;
  bool aligned = states_aligned(c);
  for (const TensorView* t : {&c.q, &c.k, &c.v, &c.output})
    aligned = aligned && ops::linear_attention::rows_aligned(*t);
  for (const TensorView* t : {&c.gate, &c.beta, &c.write})  // without channels a number a token, at any place
    aligned = aligned && (!c.channels || !t->defined() || ops::linear_attention::rows_aligned(*t));
  return jit::arch_number(device) >= 80 && c.updates == 1 && c.q.dtype() == DType::kBF16 &&
         c.output.dtype() == DType::kBF16 && (k == 64 || k == 128) && c.v.size(2) % values == 0 && aligned;
}
template <const jit::Kernel& kKernel, class Config>
op::Prepared launch_chunks(const Config& config, const GdnChunkParams& p, int64_t items, int values, Device device) {
  namespace la = ops::linear_attention;
  if (std::string why = la::grid_unsupported(items, p.rows, values); !why.empty())
    return op::Unsupported{std::move(why)};
  cuda::Launch launch = la::delta_launch(items, p.rows, values, config.threads);
  launch.shared_bytes = static_cast<unsigned>(config.shared_bytes());
  return ops::prepare_cuda<kKernel>(config, p, device, launch);
}
/// In chunks, or token by token with rows of the state in registers. Indices are read by the kernel alone.
op::Prepared prepare_gpu(const PrefillCall& c, Device device) {
  namespace la = ops::linear_attention;
  GdnChunkParams p = params_of(c);
  if (std::string why = la::delta_unsupported(p.width); !why.empty()) return op::Unsupported{std::move(why)};
  const auto slots = [](const TensorView& t) { return t.defined() ? t.size(0) : 0; };
  const auto aligned = [](const TensorView& t) { return !t.defined() || la::rows_aligned(t); };
  p.in_slots = slots(c.initial), p.final_slots = slots(c.final), p.checkpoint_rows = slots(c.checkpoints);
  p.wide = aligned(c.q) && aligned(c.k) && (!c.channels || (aligned(c.gate) && aligned(c.beta)));
  const int64_t items = p.count * p.heads;
  const auto width = static_cast<short>(p.width);
  if (in_chunks(c, device) && c.channels)
    return launch_chunks<kGdnChannelsCuda>(GdnChannelsCudaConfig{width, 128}, p, items, kChannelCudaValues, device);
  if (in_chunks(c, device))
    return launch_chunks<kGdnChunkCuda>(GdnChunkCudaConfig{width, 128}, p, items, kGdnCudaValues, device);
  const DeltaCudaConfig config = la::delta_config(DType::kF32, p.width, states_aligned(c), c.channels, c.channels);
  if (std::string why = la::grid_unsupported(items, p.rows, config.block_rows()); !why.empty())
    return op::Unsupported{std::move(why)};
  return ops::prepare_cuda<kGdnRowsCuda>(config, p, device,
                                         la::delta_launch(items, p.rows, config.block_rows(), config.threads));
}
template <class B>
op::Prepared prepare_cuda(const B& a, const op::Call& call) {
  return prepare_gpu(call_of(a), call.device);
}
template <class B>
void reference(const B& a) {
  const PrefillCall c = call_of(a);
  const ref::GdnPrefillReference run(c, c.final_is_callers);
}

// ---- tables ----
/// Operations: the products of the chunk algorithm, in the chunks that the kernel takes.
template <class B>
op::Cost cost(const B& a) {
  const PrefillCall c = call_of(a);
  const auto k = static_cast<double>(c.q.size(2)), v = static_cast<double>(c.v.size(2));
  const auto updates = static_cast<double>(c.q.size(0) * c.updates), heads = static_cast<double>(c.heads());
  const auto chunk = static_cast<double>(c.channels ? kChannelChunk : kGdnChunk);
  const auto bytes = [](const TensorView& t) {
    return t.defined() ? static_cast<double>(t.numel() * t.item_size()) : 0.0;
  };
  double moved = 0;
  for (const TensorView* t : {&c.q, &c.k, &c.v, &c.gate, &c.beta, &c.write, &c.output, &c.initial, &c.final})
    moved += bytes(*t);
  return {.bytes = moved, .flops = updates * heads * (6 * k * v + 4 * chunk * (k + v))};
}
template <class B>
op::Shape output_shape(const B& a) {
  return {3, {a.q.size(0), std::max(a.q.size(1), a.v.size(1)), a.v.size(2)}};
}
template <class B>
DType output_type(const B& a) {
  return a.output ? a.output->dtype() : a.q.dtype();
}
template <class B>
op::Shape final_shape(const B& a) {
  op::Shape s{
      4, {a.cu_seqlens ? a.cu_seqlens->size(0) - 1 : 0, std::max(a.q.size(1), a.v.size(1)), a.v.size(2), a.q.size(2)}};
  if constexpr (requires { a.state_indices; })
    if (a.state_indices && a.output_state && a.output_state->rank() == 4) s.size[0] = a.output_state->size(0);
  return s;
}
template <class B>
DType final_type(const B& a) {
  if (a.output_state) return a.output_state->dtype();
  return a.initial_state && !requires { a.state_indices; } ? a.initial_state->dtype() : DType::kF32;
}
template <class B>
bool wants_final(const B& a) {
  return a.output_final_state;
}
template <class B>
void note_callers_state(B& a) {
  a.output_state_is_callers = a.output_state.has_value();
}

constexpr DTypeSet kWideStates = DTypeSet(DType::kF32) | DType::kBF16;
#define FI_STATES_IN(B, states)                                                              \
  op::attr<&B::scale>("scale"), op::in<&B::initial_state>("initial_state", nullptr, states), \
      op::attr<&B::output_final_state>("output_final_state"),                                \
      op::in<&B::cu_seqlens>("cu_seqlens", "n", op::indices, op::any_layout),                \
      op::attr<&B::use_qk_l2norm_in_kernel>("use_qk_l2norm_in_kernel"),                      \
      op::out<&B::output>("output", nullptr, op::floats, op::dtype<output_type<B>>, op::shape<output_shape<B>>)
#define FI_FINAL(B, states, ...)                                                                                  \
  op::out<&B::output_state>("output_state", nullptr, states, op::dtype<final_type<B>>, op::shape<final_shape<B>>, \
                            op::when<wants_final<B>> __VA_OPT__(, ) __VA_ARGS__)
constexpr op::Field rule_fields[] = {
    op::in<&Rule::q>("q", "t hq k", op::floats),
    op::in<&Rule::k>("k", "t hk k", op::same_as("q")),
    op::in<&Rule::v>("v", "t hv v", op::same_as("q")),
    op::in<&Rule::g>("g", nullptr, DType::kF32,
                     op::doc("factor of the state before each token's update; 1 when absent")),
    op::in<&Rule::beta>("beta", nullptr, DType::kF32, op::doc("gate of each token's update; 1 when absent")),
    FI_STATES_IN(Rule, kStates),
    FI_FINAL(Rule, kStates, op::may_alias("initial_state")),
    op::inout<&Rule::state_checkpoints>("state_checkpoints", nullptr, kStates),
    op::in<&Rule::checkpoint_cu_starts>("checkpoint_cu_starts", "starts", op::indices, op::any_layout),
    op::attr<&Rule::checkpoint_every_n_tokens>("checkpoint_every_n_tokens"),
    op::attr<&Rule::use_cp>("use_cp"),
    op::in<&Rule::state_indices>("state_indices", "sequences", op::indices, op::any_layout),
    op::attr<&Rule::_cp_chunk_len>("_cp_chunk_len"),
    op::attr<&Rule::backend>("backend", op::choices("auto|flashinfer|cake_gdn|cudnn")),
    op::attr<&Rule::max_seqlen>("max_seqlen"),
};
constexpr op::Field rule2_fields[] = {
    op::in<&Rule2::q>("q", "t hq k", op::floats),
    op::in<&Rule2::k>("k", "t hk k", op::same_as("q")),
    op::in<&Rule2::v>("v", "t hv v", op::same_as("q")),
    op::in<&Rule2::g>("g", nullptr, op::floats, op::doc("ln of each key channel's decay; 0 when absent")),
    op::in<&Rule2::beta>("beta", nullptr, op::same_as("q"), op::doc("gate of each key channel; 1 when absent")),
    op::in<&Rule2::w>("w", nullptr, op::same_as("q"), op::doc("gate of each value channel; 1 when absent")),
    FI_STATES_IN(Rule2, kWideStates),
    FI_FINAL(Rule2, kWideStates),
    op::attr<&Rule2::backend>("backend", op::choices("auto|cudnn"), op::keyword_only),
};
constexpr op::Field product_fields[] = {
    op::in<&Product::q>("q", "t hq k", op::floats),
    op::in<&Product::k>("k", "rows hk k", op::same_as("q")),
    op::in<&Product::v>("v", "rows hv v", op::same_as("q")),
    op::in<&Product::g>("g", nullptr, DType::kF32,
                        op::doc("factor of the state before each token's updates; 1 when absent")),
    op::in<&Product::beta>("beta", nullptr, DType::kF32, op::doc("gate of each update; 1 when absent")),
    op::attr<&Product::num_householder>("num_householder"),
    FI_STATES_IN(Product, kWideStates),
    FI_FINAL(Product, kWideStates),
    op::attr<&Product::backend>("backend", op::choices("auto|cudnn"), op::keyword_only),
};
#undef FI_STATES_IN
#undef FI_FINAL
template <class B>
constexpr op::Candidate candidates[] = {op::cuda<prepare_cuda<B>>(), op::cpu<prepare_cpu<B>>(),
                                        op::reference<reference<B>>()};
}  // namespace

namespace ops::linear_attention {
extern const op::Op gdn_chunk_op, gdn2_chunk_op, gdn_product_op;
constinit const op::Op gdn_chunk_op = op::define<Rule, ops::linear_attention::check, cost<Rule>,
                                                 note_callers_state<Rule>>(
    "chunk_gated_delta_rule", "flashinfer.gdn_prefill",
    "The gated delta rule over packed sequences, by chunks: S <- g S, S <- S + beta (v - S k) k^T, o = S (scale q).",
    rule_fields, candidates<Rule>, gdn_chunk_cases, {2e-4, 1e-4});
constinit const op::Op gdn2_chunk_op = op::define<Rule2, ops::linear_attention::check, cost<Rule2>,
                                                  note_callers_state<Rule2>>(
    "chunk_gated_delta_rule2", "flashinfer.gdn2_prefill",
    "The delta rule with gates of channels: S <- S diag(e^g), S <- S + (w o v - S (beta o k)) k^T, o = S (scale q).",
    rule2_fields, candidates<Rule2>, gdn2_chunk_cases, {2e-4, 1e-4});
constinit const op::Op gdn_product_op =
    op::define<Product, ops::linear_attention::check, cost<Product>, note_callers_state<Product>>(
        "chunk_gated_delta_product", "flashinfer.gdp_prefill",
        "The gated delta rule with several updates a token, after one decay.", product_fields, candidates<Product>,
        gdn_product_cases, {2e-4, 1e-4});
}  // namespace ops::linear_attention

std::pair<Tensor, Tensor> chunk_gated_delta_rule(const Rule& a) {
  return op::call(ops::linear_attention::gdn_chunk_op, a);
}
std::pair<Tensor, Tensor> chunk_gated_delta_rule2(const Rule2& a) {
  return op::call(ops::linear_attention::gdn2_chunk_op, a);
}
std::pair<Tensor, Tensor> chunk_gated_delta_product(const Product& a) {
  return op::call(ops::linear_attention::gdn_product_op, a);
}

}  // namespace flashinfer
