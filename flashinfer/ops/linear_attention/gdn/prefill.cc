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
#include "flashinfer/ops/linear_attention/parts.h"

namespace flashinfer {
namespace {
using ops::linear_attention::call_of;
using ops::linear_attention::check_shape;
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
/// Whether the chunk kernel on tensor cores supports the call. Nothing of it depends on lengths, so that a sequence's
/// results do not depend on the others.
bool in_chunks(const PrefillCall& c, Device device) {
  namespace la = ops::linear_attention;
  const int64_t k = c.q.size(2);
  return jit::arch_number(device) >= 80 && !c.channels && c.updates == 1 && c.q.dtype() == DType::kBF16 &&
         c.output.dtype() == DType::kBF16 && (k == 64 || k == 128) && c.v.size(2) % kGdnCudaValues == 0 &&
         la::rows_aligned(c.q) && la::rows_aligned(c.k) && la::rows_aligned(c.v) && la::rows_aligned(c.output) &&
         states_aligned(c);
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
  if (in_chunks(c, device)) {
    const GdnChunkCudaConfig config{static_cast<short>(p.width), 128};
    if (std::string why = la::grid_unsupported(items, p.rows, kGdnCudaValues); !why.empty())
      return op::Unsupported{std::move(why)};
    cuda::Launch launch = la::delta_launch(items, p.rows, kGdnCudaValues, config.threads);
    launch.shared_bytes = static_cast<unsigned>(config.shared_bytes());
    return ops::prepare_cuda<kGdnChunkCuda>(config, p, device, launch);
  }
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

// ---- checks ----
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
void check_sequences(const PrefillCall& c) {
  if (!c.sequences.defined()) throw_error(ErrorKind::kAssertionError, "cu_seqlens is None, but is required");
  FI_CHECK(c.sequences.size(0) >= 2, ValueError, "cu_seqlens has ", c.sequences.size(0),
           " elements, but must have at least 2");
  if (c.sequences.device().type == DeviceType::kCUDA) return;
  const int64_t end = op::check_indptr("cu_seqlens", c.sequences);
  FI_CHECK(end == c.q.size(0), ValueError, "cu_seqlens[", c.sequences.size(0) - 1, "] is ", end, ", but q has ",
           c.q.size(0), " tokens");
}
void check_common(const PrefillCall& c) {
  check_sequences(c);
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
void check_max_seqlen(const Rule& a, int64_t sequences) {
  if (!a.max_seqlen) return;
  const int64_t x = *a.max_seqlen, tokens = a.q.size(0);
  FI_CHECK(x >= 0, ValueError, "max_seqlen is ", x, ", but must be a nonnegative integer");
  FI_CHECK(x > 0 || tokens == 0, ValueError, "max_seqlen is 0, but must be positive when q is nonempty");
  FI_CHECK(x >= ceil_div(tokens, sequences), ValueError, "max_seqlen is ", x,
           ", but cannot be smaller than ceil(total_seq_len / num_seqs), ", ceil_div(tokens, sequences));
  FI_CHECK(x <= tokens, ValueError, "max_seqlen is ", x, ", but cannot exceed total_seq_len, ", tokens);
}
DType state_type(const Rule& a) {
  return a.output_state ? a.output_state->dtype() : a.initial_state ? a.initial_state->dtype() : DType::kF32;
}
void check_checkpoints(const Rule& a, const PrefillCall& c) {
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
  }
}
void validate_rule(const Rule& a) {
  const PrefillCall c = call_of(a);
  check_common(c);
  check_max_seqlen(a, states(c));
  check_checkpoints(a, c);
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
void validate_rule2(const Rule2& a) { check_common(call_of(a)); }
void validate_product(const Product& a) {
  FI_CHECK(a.num_householder >= 1, ValueError, "num_householder is ", a.num_householder, ", but must be at least 1");
  const int64_t rows = a.q.size(0) * a.num_householder;
  FI_CHECK(a.k.size(0) == rows, ValueError, "k.shape[0] is ", a.k.size(0), ", but must be ", rows,
           ": q's tokens times num_householder, ", a.num_householder);
  check_common(call_of(a));
}

// ---- tables ----
/// The products of the chunk algorithm, of gates of channels the recurrence's.
template <class B>
op::Cost cost(const B& a) {
  const PrefillCall c = call_of(a);
  const auto k = static_cast<double>(c.q.size(2)), v = static_cast<double>(c.v.size(2));
  const auto updates = static_cast<double>(c.q.size(0) * c.updates), heads = static_cast<double>(c.heads());
  const auto chunk = static_cast<double>(kGdnChunk);
  const auto bytes = [](const TensorView& t) {
    return t.defined() ? static_cast<double>(t.numel() * t.item_size()) : 0.0;
  };
  const double moved = bytes(c.q) + bytes(c.k) + bytes(c.v) + bytes(c.output) + bytes(c.initial) + bytes(c.final);
  return {.bytes = moved, .flops = updates * heads * (c.channels ? 6 * k * v : 6 * k * v + 4 * chunk * (k + v))};
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

#define FI_STATES_IN(B)                                                                       \
  op::attr<&B::scale>("scale"), op::in<&B::initial_state>("initial_state", nullptr, kStates), \
      op::attr<&B::output_final_state>("output_final_state"),                                 \
      op::in<&B::cu_seqlens>("cu_seqlens", "n", op::indices, op::any_layout),                 \
      op::attr<&B::use_qk_l2norm_in_kernel>("use_qk_l2norm_in_kernel"),                       \
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
    FI_STATES_IN(Rule),
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
constexpr DTypeSet kWideStates = DTypeSet(DType::kF32) | DType::kBF16;
constexpr op::Field rule2_fields[] = {
    op::in<&Rule2::q>("q", "t hq k", op::floats),
    op::in<&Rule2::k>("k", "t hk k", op::same_as("q")),
    op::in<&Rule2::v>("v", "t hv v", op::same_as("q")),
    op::in<&Rule2::g>("g", nullptr, op::floats, op::doc("ln of each key channel's decay; 0 when absent")),
    op::in<&Rule2::beta>("beta", nullptr, op::same_as("q"), op::doc("gate of each key channel; 1 when absent")),
    op::in<&Rule2::w>("w", nullptr, op::same_as("q"), op::doc("gate of each value channel; 1 when absent")),
    FI_STATES_IN(Rule2),
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
    FI_STATES_IN(Product),
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
constinit const op::Op gdn_chunk_op = op::define<Rule, validate_rule, cost<Rule>, note_callers_state<Rule>>(
    "chunk_gated_delta_rule", "flashinfer.gdn_prefill",
    "The gated delta rule over packed sequences, by chunks: S <- g S, S <- S + beta (v - S k) k^T, o = S (scale q).",
    rule_fields, candidates<Rule>, gdn_chunk_cases, {2e-4, 1e-4});
constinit const op::Op gdn2_chunk_op = op::define<Rule2, validate_rule2, cost<Rule2>, note_callers_state<Rule2>>(
    "chunk_gated_delta_rule2", "flashinfer.gdn2_prefill",
    "The delta rule with gates of channels: S <- S diag(e^g), S <- S + (w o v - S (beta o k)) k^T, o = S (scale q).",
    rule2_fields, candidates<Rule2>, gdn2_chunk_cases, {2e-4, 1e-4});
constinit const op::Op gdn_product_op =
    op::define<Product, validate_product, cost<Product>, note_callers_state<Product>>(
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
