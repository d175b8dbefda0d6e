// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/rope/op.h"

#include <algorithm>
#include <mutex>
#include <tuple>
#include <vector>

#include "flashinfer/core/fork_mutex.h"
#include "flashinfer/core/transfer.h"
#include "flashinfer/op/call.h"
#include "flashinfer/ops/common/cuda.h"
#include "flashinfer/ops/common/rows.h"
#include "flashinfer/ops/rope/cases.h"
#include "flashinfer/ops/rope/cuda_launch.h"
#include "flashinfer/ops/rope/kernels/params.h"
#include "flashinfer/ops/rope/ops.h"
#include "flashinfer/ops/rope/ref.h"

namespace flashinfer {
namespace {

inline constexpr jit::Kernel kRope{"flashinfer/ops/rope/kernels/cpu/rope.h", "flashinfer::cpu::rope",
                                   "flashinfer::RopeParams"};
inline constexpr jit::Kernel kRopeCuda{"flashinfer/ops/rope/kernels/cuda/rope.cuh", "flashinfer::cu::rope",
                                       "flashinfer::RopeParams"};

/// What makes the frequencies; low == high: no Llama 3.1 correction.
struct Spectrum {
  int64_t rd = 0;
  double theta = 0, scale = 0, low = 0, high = 0, context = 0;
  friend bool operator==(const Spectrum&, const Spectrum&) = default;
  double at(int64_t i) const {
    return low == high ? ref::rope_frequency(i, rd, theta, scale)
                       : ref::llama31_frequency(i, rd, theta, scale, low, high, context);
  }
};
/// The frequencies of the last spectrum that this thread used: an engine has one, and a pow costs as much as rotating a
/// head.
const double* frequencies(const Spectrum& s) {
  thread_local Spectrum last;
  thread_local std::vector<double> values;
  if (!(s == last)) {
    values.resize(static_cast<size_t>(s.rd / 2));
    for (int64_t i = 0; i < s.rd / 2; ++i) values[static_cast<size_t>(i)] = s.at(i);
    last = s;
  }
  return values.data();
}

/// The same on a GPU or the emulator: copied once a device and spectrum and kept, so that later calls, captured ones
/// too, find them.
const double* frequencies_on(Device device, const Spectrum& s) {
  static constinit ForkMutex mutex(ForkLayer::kOps);
  static auto& known = *new std::vector<std::tuple<Device, Spectrum, Tensor>>;
  const std::lock_guard lock(mutex);
  for (const auto& [d, spectrum, values] : known)
    if (d == device && spectrum == s) return values.data_as<double>();
  const std::span<const double> values(frequencies(s), static_cast<size_t>(s.rd / 2));
  known.emplace_back(device, s, to_device(TensorView(values), device));
  return std::get<2>(known.back()).data_as<double>();
}

/// The five blocks seen as one: q, k, where they go, positions, spectrum or table.
struct View {
  const char* op;
  TensorView in[2], out[2];  // [n, heads, d]
  const TensorView *pos = nullptr, *indptr = nullptr, *offsets = nullptr, *table = nullptr;
  Spectrum spectrum{};  // rd is set for tables too
  bool interleave = false;
  int64_t d() const { return in[0].size(2); }
};

template <class B>
constexpr const char* base_name();
template <>
constexpr const char* base_name<ApplyRope>() {
  return "apply_rope";
}
template <>
constexpr const char* base_name<ApplyRopePosIds>() {
  return "apply_rope_pos_ids";
}
template <>
constexpr const char* base_name<ApplyLlama31Rope>() {
  return "apply_llama31_rope";
}
template <>
constexpr const char* base_name<ApplyLlama31RopePosIds>() {
  return "apply_llama31_rope_pos_ids";
}
template <>
constexpr const char* base_name<ApplyRopeCosSinCache>() {
  return "apply_rope_with_cos_sin_cache";
}

template <class B>
View view_of(const B& a) {
  View v{.in = {a.q, a.k}, .out = {a.q_rope.value_or(a.q), a.k_rope.value_or(a.k)}};
  if constexpr (requires { a.pos_ids; }) {
    v.pos = &a.pos_ids;
  } else {
    v.indptr = &a.indptr;
    v.offsets = &a.offsets;
  }
  v.interleave = a.interleave;
  v.spectrum = {.rd = a.rotary_dim.value_or(a.q.size(2)), .theta = a.rope_theta, .scale = a.rope_scale};
  if constexpr (requires { a.low_freq_factor; }) {
    v.spectrum.low = a.low_freq_factor;
    v.spectrum.high = a.high_freq_factor;
    v.spectrum.context = static_cast<double>(a.old_context_len);
  }
  return v;
}
/// [n, heads * d] as [n, heads, d].
TensorView split_heads(const TensorView& t, int64_t d) {
  const int64_t shape[] = {t.size(0), t.size(1) / d, d}, stride[] = {t.stride(0), d, 1};
  return TensorView(t.data(), t.dtype(), shape, stride, t.device());
}
View view_of(const ApplyRopeCosSinCache& a) {
  const int64_t d = a.head_size;
  View v{.in = {split_heads(a.query, d), split_heads(a.key, d)},
         .out = {split_heads(a.q_rope.value_or(a.query), d), split_heads(a.k_rope.value_or(a.key), d)}};
  v.pos = &a.positions;
  v.table = &a.cos_sin_cache;
  v.spectrum.rd = a.cos_sin_cache.size(1);
  v.interleave = !a.is_neox;
  return v;
}

void check_rotary(const View& v) {
  const int64_t rd = v.spectrum.rd, d = v.d();
  FI_CHECK(rd >= 2 && rd <= d && rd % 2 == 0, ValueError, "rotary_dim is ", rd, ", but must be even and in [2, ", d,
           "] (head_dim, from q.shape[2])");
  FI_CHECK(v.spectrum.theta > 0, ValueError, "rope_theta is ", v.spectrum.theta, ", but must be positive");
  FI_CHECK(v.spectrum.scale > 0, ValueError, "rope_scale is ", v.spectrum.scale, ", but must be positive");
}
template <class B>
void validate(const B& a) {
  const View v = view_of(a);
  check_rotary(v);
  if constexpr (requires { a.low_freq_factor; })
    FI_CHECK(a.high_freq_factor > a.low_freq_factor, ValueError, "high_freq_factor is ", a.high_freq_factor,
             ", but must be larger than low_freq_factor, ", a.low_freq_factor);
  if constexpr (requires { a.indptr; }) {
    if (a.indptr.device() != kCpu) return;
    const int64_t last = op::check_indptr("indptr", a.indptr);
    FI_CHECK(last == a.q.size(0), ValueError, "indptr[", a.indptr.size(0) - 1, "] is ", last, ", but q has ",
             a.q.size(0), " tokens");
  }
}
template <>
void validate(const ApplyRopeCosSinCache& a) {
  const int64_t d = a.head_size, rd = a.cos_sin_cache.size(1);
  FI_CHECK(d > 0, ValueError, "head_size is ", d, ", but must be positive");
  FI_CHECK(d >= rd, RuntimeError, "head_size is ", d, ", but must be at least rotary_dim, ", rd,
           " (from cos_sin_cache.shape[1])");
  FI_CHECK(rd >= 2 && rd % 2 == 0, ValueError, "cos_sin_cache.shape[1] is ", rd, ", but must be even and at least 2");
  FI_CHECK(a.query.size(1) % d == 0, ValueError, "query.shape[1] is ", a.query.size(1),
           ", but must be a multiple of head_size, ", d);
  FI_CHECK(a.key.size(1) % d == 0, ValueError, "key.shape[1] is ", a.key.size(1),
           ", but must be a multiple of head_size, ", d);
  if (a.positions.device() == kCpu)
    op::check_index_range("positions", a.positions, 0, a.cos_sin_cache.size(0), "rows of cos_sin_cache");
}
/// The _inplace forms take no memory for results.
template <class B>
void validate_inplace(const B& a) {
  FI_CHECK(!a.q_rope && !a.k_rope, ValueError, base_name<B>(), "_inplace: ", a.q_rope ? "q_rope" : "k_rope",
           " is given, but the result replaces q and k");
  validate(a);
}

RopeConfig config_of(const View& v) {
  return {.dtype = v.in[0].dtype(), .interleave = static_cast<unsigned char>(v.interleave)};
}
IndexArray array_of(const TensorView* t) {
  return t ? IndexArray{t->data(), t->dtype() == DType::kI64} : IndexArray{nullptr, 0};
}

/// Without the frequencies.
RopeParams params_of(const View& v) {
  RopeParams p{};
  for (int i = 0; i < 2; ++i)
    p.tensor[i] = {v.in[i].data(),
                   v.out[i].data(),
                   v.in[i].size(1),
                   {v.in[i].stride(0), v.in[i].stride(1)},
                   {v.out[i].stride(0), v.out[i].stride(1)}};
  p.tokens = v.in[0].size(0);
  p.d = v.d();
  p.rotary = v.spectrum.rd;
  p.positions = array_of(v.pos);
  p.indptr = array_of(v.indptr);
  p.offsets = array_of(v.offsets);
  p.batch = v.offsets ? v.offsets->size(0) : 0;
  if (v.table) {
    p.table = v.table->data_as<float>();
    p.table_stride = v.table->stride(0);
  }
  return p;
}

template <class B>
op::Prepared prepare_cpu(const B& a) {
  const View v = view_of(a);
  RopeParams p = params_of(v);
  if (!v.table) p.frequency = frequencies(v.spectrum);
  p.tokens_per_task =
      ops::rows_per_task(p.tokens, 2 * (p.tensor[0].heads + p.tensor[1].heads) * p.d * v.in[0].item_size());
  return ops::prepare_rows<kRope>(config_of(v), p, p.tokens, p.tokens_per_task);
}

template <class B>
op::Prepared prepare_cuda(const B& a, const op::Call& call) {
  const View v = view_of(a);
  RopeParams p = params_of(v);
  if (!v.table) p.frequency = frequencies_on(call.device, v.spectrum);
  const auto c = cuda::rope_config(config_of(v), p);
  return ops::prepare_cuda<kRopeCuda>(c, p, call.device, cuda::rope_launch(c, p, true));
}

template <class B>
void launch_reference(const B& a) {
  const View v = view_of(a);
  std::vector<int64_t> position(static_cast<size_t>(v.in[0].size(0)));
  for (int64_t t = 0; v.pos && t < v.pos->size(0); ++t) position[static_cast<size_t>(t)] = op::index_at(*v.pos, t);
  for (int64_t r = 0; v.offsets && r < v.offsets->size(0); ++r)
    for (int64_t t = op::index_at(*v.indptr, r), first = t; t < op::index_at(*v.indptr, r + 1); ++t)
      position[static_cast<size_t>(t)] = op::index_at(*v.offsets, r) + t - first;
  for (int i = 0; i < 2; ++i)
    ref::rope(v.in[i], v.out[i], v.spectrum.rd, v.interleave, [&](int64_t t, int64_t j) {
      const int64_t pos = position[static_cast<size_t>(t)];
      if (v.table) return std::pair{ref::at(*v.table, {pos, j}), ref::at(*v.table, {pos, j + v.spectrum.rd / 2})};
      const double phi = static_cast<double>(pos) * v.spectrum.at(j);
      return std::pair{std::cos(phi), std::sin(phi)};
    });
}

template <class B>
op::Cost cost(const B& a) {
  const View v = view_of(a);
  const double n = static_cast<double>(v.in[0].numel() + v.in[1].numel());
  return {.bytes = 2 * n * static_cast<double>(v.in[0].item_size()), .flops = 3 * n};
}

template <class B>
constexpr op::Candidate kCandidates[] = {op::cuda<prepare_cuda<B>>(), op::cpu<prepare_cpu<B>>(),
                                         op::reference<launch_reference<B>>()};

// Tables. The results of the plain forms are ours to name; the public functions return them as a pair.
#define FI_ROPE_QK(B, role) op::role<&B::q>("q", "n hq d", op::floats), op::role<&B::k>("k", "n hk d", op::same_as("q"))
#define FI_ROPE_REQUESTS(B) \
  op::in<&B::indptr>("indptr", "b+1", op::indices), op::in<&B::offsets>("offsets", "b", op::indices)
#define FI_ROPE_POS_IDS(B) op::in<&B::pos_ids>("pos_ids", "n", op::indices)
#define FI_ROPE_PLAIN(B)                                                          \
  op::attr<&B::rotary_dim>("rotary_dim"), op::attr<&B::interleave>("interleave"), \
      op::attr<&B::rope_scale>("rope_scale", op::literal("1")), op::attr<&B::rope_theta>("rope_theta")
#define FI_ROPE_LLAMA31(B)                                                                              \
  op::attr<&B::rotary_dim>("rotary_dim"), op::attr<&B::interleave>("interleave"),                       \
      op::attr<&B::rope_scale>("rope_scale", op::literal("8")), op::attr<&B::rope_theta>("rope_theta"), \
      op::attr<&B::low_freq_factor>("low_freq_factor", op::literal("1")),                               \
      op::attr<&B::high_freq_factor>("high_freq_factor", op::literal("4")),                             \
      op::attr<&B::old_context_len>("old_context_len")
#define FI_ROPE_RESULTS(B)                                                          \
  op::result<&B::q_rope>("q_rope", "n hq d", op::same_as("q"), op::may_alias("q")), \
      op::result<&B::k_rope>("k_rope", "n hk d", op::same_as("k"), op::may_alias("k"))
#define FI_ROPE_TABLES(name, B, where, attributes)                                                        \
  constexpr op::Field name##_fields[] = {FI_ROPE_QK(B, in), where(B), attributes(B), FI_ROPE_RESULTS(B)}; \
  constexpr op::Field name##_inplace_fields[] = {FI_ROPE_QK(B, inout), where(B), attributes(B)}
FI_ROPE_TABLES(rope, ApplyRope, FI_ROPE_REQUESTS, FI_ROPE_PLAIN);
FI_ROPE_TABLES(pos_ids, ApplyRopePosIds, FI_ROPE_POS_IDS, FI_ROPE_PLAIN);
FI_ROPE_TABLES(llama31, ApplyLlama31Rope, FI_ROPE_REQUESTS, FI_ROPE_LLAMA31);
FI_ROPE_TABLES(llama31_pos_ids, ApplyLlama31RopePosIds, FI_ROPE_POS_IDS, FI_ROPE_LLAMA31);

using Cached = ApplyRopeCosSinCache;
#define FI_ROPE_CACHED(role)                                                                                       \
  op::in<&Cached::positions>("positions", "n", op::indices), op::role<&Cached::query>("query", "n q", op::floats), \
      op::role<&Cached::key>("key", "n k", op::same_as("query")),                                                  \
      op::attr<&Cached::head_size>("head_size", op::required),                                                     \
      op::in<&Cached::cos_sin_cache>("cos_sin_cache", "max_pos rd", DType::kF32),                                  \
      op::attr<&Cached::is_neox>("is_neox")
constexpr op::Field cache_fields[] = {
    FI_ROPE_CACHED(in), op::result<&Cached::q_rope>("q_rope", "n q", op::same_as("query"), op::may_alias("query")),
    op::result<&Cached::k_rope>("k_rope", "n k", op::same_as("key"), op::may_alias("key"))};
constexpr op::Field cache_inplace_fields[] = {FI_ROPE_CACHED(inout)};

constexpr const char* kModule = "flashinfer.rope";
constexpr const char* kDoc = "Rotates pairs of q and k by position * theta^(-2i/rotary_dim) / rope_scale.";
constexpr const char* kDocLlama31 =
    "Rotates pairs of q and k by their position times Llama 3.1's interpolated frequencies.";
constexpr const char* kDocCache =
    "Rotates pairs of query and key by the cos and sin that a table holds for their position.";
#define FI_ROPE_OP(name, B, public_name, doc)                                                                      \
  constinit const op::Op name##_op = op::define<B, validate<B>, cost<B>>(public_name, kModule, doc, name##_fields, \
                                                                         kCandidates<B>, ops::rope::name##_cases); \
  constinit const op::Op name##_inplace_op = op::define<B, validate_inplace<B>, cost<B>>(                          \
      public_name "_inplace", kModule, doc, name##_inplace_fields, kCandidates<B>, ops::rope::name##_cases)
FI_ROPE_OP(rope, ApplyRope, "apply_rope", kDoc);
FI_ROPE_OP(pos_ids, ApplyRopePosIds, "apply_rope_pos_ids", kDoc);
FI_ROPE_OP(llama31, ApplyLlama31Rope, "apply_llama31_rope", kDocLlama31);
FI_ROPE_OP(llama31_pos_ids, ApplyLlama31RopePosIds, "apply_llama31_rope_pos_ids", kDocLlama31);
FI_ROPE_OP(cache, ApplyRopeCosSinCache, "apply_rope_with_cos_sin_cache", kDocCache);

constexpr const op::Op* kOps[] = {&rope_op,
                                  &rope_inplace_op,
                                  &pos_ids_op,
                                  &pos_ids_inplace_op,
                                  &llama31_op,
                                  &llama31_inplace_op,
                                  &llama31_pos_ids_op,
                                  &llama31_pos_ids_inplace_op,
                                  &cache_op,
                                  &cache_inplace_op,
                                  &ops::rope::quantize_op,
                                  &ops::rope::mla_quantize_op,
                                  &ops::rope::quantize_append_op};
}  // namespace

using Pair = std::pair<Tensor, Tensor>;
Pair apply_rope(const ApplyRope& a) { return op::call(rope_op, a); }
void apply_rope_inplace(const ApplyRope& a) { op::call(rope_inplace_op, a); }
Pair apply_rope_pos_ids(const ApplyRopePosIds& a) { return op::call(pos_ids_op, a); }
void apply_rope_pos_ids_inplace(const ApplyRopePosIds& a) { op::call(pos_ids_inplace_op, a); }
Pair apply_llama31_rope(const ApplyLlama31Rope& a) { return op::call(llama31_op, a); }
void apply_llama31_rope_inplace(const ApplyLlama31Rope& a) { op::call(llama31_inplace_op, a); }
Pair apply_llama31_rope_pos_ids(const ApplyLlama31RopePosIds& a) { return op::call(llama31_pos_ids_op, a); }
void apply_llama31_rope_pos_ids_inplace(const ApplyLlama31RopePosIds& a) { op::call(llama31_pos_ids_inplace_op, a); }
Pair apply_rope_with_cos_sin_cache(const ApplyRopeCosSinCache& a) { return op::call(cache_op, a); }
void apply_rope_with_cos_sin_cache_inplace(const ApplyRopeCosSinCache& a) { op::call(cache_inplace_op, a); }

namespace ops::rope {
extern const std::span<const op::Op* const> all;
constinit const std::span<const op::Op* const> all = kOps;
}  // namespace ops::rope

}  // namespace flashinfer
