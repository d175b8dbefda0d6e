// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/sampling/op.h"

#include "flashinfer/kernels/cpu/select_scratch.h"
#include "flashinfer/op/call.h"
#include "flashinfer/ops/common/rows.h"
#include "flashinfer/ops/sampling/cases.h"
#include "flashinfer/ops/sampling/params.h"
#include "flashinfer/ops/sampling/ref.h"

namespace flashinfer {
namespace {

inline constexpr jit::Kernel kSample{"flashinfer/ops/sampling/cpu.h", "flashinfer::cpu::sample",
                                     "flashinfer::SamplingParams"};

using Plain = SamplingFromProbs;
using Filtered = TopKTopPSamplingFromProbs;
template <class B>
inline constexpr bool kFiltered = std::is_same_v<B, Filtered>;
template <class B>
constexpr const char* op_name() {
  return kFiltered<B> ? "top_k_top_p_sampling_from_probs" : "sampling_from_probs";
}
template <class B>
SamplingConfig config_of(const B& a) {
  return {.dtype = a.probs.dtype()};
}
template <class B>
int64_t rows_of(const B& a) {
  return a.indices ? a.indices->size(0) : a.probs.size(0);
}

/// The numbers a call uses up of its generator: one a row, or 32 for the rounds of a rejection loop.
template <class B>
uint64_t numbers_of(const B& a) {
  return static_cast<uint64_t>(rows_of(a)) * (kFiltered<B> ? 32 : 1);
}
op::Generator& default_generator() {
  static op::Generator g;
  return g;
}

void check_threshold(const char* op, const char* name, const op::ScalarOrTensor& v, int64_t rows) {
  const TensorView* t = v.tensor();
  if (!t) return;
  FI_CHECK(t->rank() == 1, ValueError, op, ": Expected a 1D tensor or a number for ", name, ", got rank ", t->rank());
  FI_CHECK(t->size(0) == rows, ValueError, op, ": Sampling parameter ", name, " batch size mismatch: it has ",
           t->size(0), " elements, but probs has ", rows, " rows");
}
template <class B>
void check_seed(const char* name, const op::ScalarOrTensor& v, int64_t rows) {
  const TensorView* t = v.tensor();
  if (!t) {
    FI_CHECK(std::holds_alternative<int64_t>(v.value), ValueError, op_name<B>(), ": ", name,
             " must be an integer or a tensor of them");
    return;
  }
  FI_CHECK(t->rank() == 1, ValueError, op_name<B>(), ": Expected a 1D tensor or a number for ", name, ", got rank ",
           t->rank());
  FI_CHECK(t->size(0) == 1 || t->size(0) == rows, ValueError, op_name<B>(), ": ", name, " tensor length must be 1 or ",
           rows, " (one for each output), got ", t->size(0));
}
void check_finite(const char* op, const TensorView& probs) {
  ref::for_each_row(probs, [&](const ref::Index& row) {
    for (int64_t i = 0; i < probs.size(1); ++i)
      FI_CHECK(!std::isnan(ref::get(probs, row, i)), ValueError, op, ": probs contains NaN, the first at [", row[0],
               ", ", i, "]");
  });
}

template <class B>
void validate(const B& a) {
  const char* op = op_name<B>();
  const int64_t rows = a.probs.size(0);
  FI_CHECK(a.probs.size(1) > 0 && a.probs.size(1) <= INT32_MAX, ValueError, op, ": probs.shape[1] is ", a.probs.size(1),
           ", but must be in [1, 2^31)");
  if (a.indices && a.indices->device() == kCpu)
    op::check_index_range(op, "indices", *a.indices, 0, rows, "rows of probs");
  FI_CHECK(a.seed.has_value() == a.offset.has_value(), ValueError, op, ": ", a.seed ? "seed" : "offset",
           " is given without ", a.seed ? "offset" : "seed");
  if (a.seed) {
    check_seed<B>("seed", *a.seed, rows_of(a));
    check_seed<B>("offset", *a.offset, rows_of(a));
    FI_CHECK(!a.seed->tensor() == !a.offset->tensor(), ValueError, op,
             ": seed and offset must both be integers or both be tensors");
  }
  if constexpr (kFiltered<B>) {
    check_threshold(op, "top_k", a.top_k, rows);
    check_threshold(op, "top_p", a.top_p, rows);
    const TensorView* k = a.top_k.tensor();
    FI_CHECK(k ? op::indices.has(k->dtype()) : std::holds_alternative<int64_t>(a.top_k.value), ValueError, op,
             ": top_k is ", k ? std::string(name(k->dtype())) : std::to_string(a.top_k.number()),
             ", but must be an integer or int32 or int64");
    const TensorView* p = a.top_p.tensor();
    for (int64_t i = 0; i < (p ? p->size(0) : 1); ++i)
      FI_CHECK(!std::isnan(p ? ref::get(*p, i) : a.top_p.number()), ValueError, op, ": top_p",
               p ? str("[", i, "]") : "", " is nan");
  }
  if (a.check_nan && a.probs.device() == kCpu) check_finite(op, a.probs);
}

/// Numbers of a batch as an array: one, or one for each row.
template <class T>
struct Numbers {
  Tensor memory;
  const T* data = nullptr;
  int64_t stride = 0;
};
template <class T>
Numbers<T> numbers(const op::ScalarOrTensor& v) {
  const TensorView* t = v.tensor();
  const int64_t n = t ? t->size(0) : 1;
  Numbers<T> out{Tensor::empty({std::max<int64_t>(n, 1)}, dtype_of<T>::value), nullptr, n > 1};
  T* p = out.memory.template data_as<T>();
  for (int64_t i = 0; i < n; ++i) {
    if constexpr (std::is_floating_point_v<T>)
      p[i] = static_cast<T>(t ? ref::get(*t, i) : v.number());
    else
      p[i] = static_cast<T>(t ? op::index_at(*t, i) : std::get<int64_t>(v.value));
  }
  out.data = p;
  return out;
}

template <class B>
void prepare(B& a) {
  if (!a.seed && !a.generator && !a.implied_generator) a.implied_generator = default_generator();
}

/// Seeds and offsets of a call; a generator is advanced here, once a call.
struct Randomness {
  Numbers<uint64_t> seed, offset;
  bool own;
};
template <class B>
Randomness randomness(const B& a) {
  if (a.seed) {
    const TensorView* t = a.seed->tensor();
    return {numbers<uint64_t>(*a.seed), numbers<uint64_t>(*a.offset), t && t->size(0) > 1};
  }
  op::Generator g = a.generator ? *a.generator : *a.implied_generator;
  const op::ScalarOrTensor seed(static_cast<int64_t>(g.seed())), offset(static_cast<int64_t>(g.advance(numbers_of(a))));
  return {numbers<uint64_t>(seed), numbers<uint64_t>(offset), false};
}

template <class B>
op::Refusal refuse_cpu(const B& a);

template <class B>
void launch_cpu(const B& a) {
  const Randomness random = randomness(a);
  SamplingParams p{};
  p.probs = a.probs.data();
  p.rows = rows_of(a);
  p.v = a.probs.size(1);
  p.probs_stride = a.probs.stride(0);
  if (a.indices) p.indices = a.indices->data();
  p.indices_wide = a.indices && a.indices->dtype() == DType::kI64;
  p.samples = a.samples->data();
  p.samples_wide = a.samples->dtype() == DType::kI64;
  if (a.return_valid) p.valid = a.valid->template data_as<bool>();
  p.seed = random.seed.data;
  p.seed_stride = random.seed.stride;
  p.offset = random.offset.data;
  p.offset_stride = random.offset.stride;
  p.own_seed = random.own;
  p.rows_per_task = ops::rows_per_task(p.rows, p.v * a.probs.item_size());
  Numbers<int64_t> top_k;
  Numbers<float> top_p;
  Tensor scratch;
  if constexpr (kFiltered<B>) {
    top_k = numbers<int64_t>(a.top_k);
    top_p = numbers<float>(a.top_p);
    p.top_k = top_k.data;
    p.top_k_stride = top_k.stride;
    p.top_p = top_p.data;
    p.top_p_stride = top_p.stride;
    p.joint = a.filter_apply_order == "joint";
    if (!p.joint) {  // keys of the selection, then what is kept and where; few tasks, as each has its own
      const int64_t tasks = 4 * Context::current().executor.threads;
      p.rows_per_task = std::max(p.rows_per_task, (p.rows + tasks - 1) / tasks);
      p.scratch_words = cpu::select_scratch(p.v) + p.v;
      scratch = Tensor::empty({(p.rows + p.rows_per_task - 1) / p.rows_per_task * p.scratch_words}, DType::kU64);
      p.scratch = scratch.data_as<uint64_t>();
    }
  }
  ops::run_rows(jit::cpu_kernel<kSample>(config_of(a)).fn, p, p.rows, p.rows_per_task);
}

template <class B>
void launch_reference(const B& a) {
  const Randomness random = randomness(a);
  const int64_t v = a.probs.size(1);
  for (int64_t r = 0; r < rows_of(a); ++r) {
    const int64_t mapped = a.indices ? op::index_at(*a.indices, r) : r;
    ref::Sampler s{std::vector<double>(static_cast<size_t>(v)), random.seed.data[r * random.seed.stride],
                   random.own ? 0 : static_cast<uint64_t>(r), random.offset.data[r * random.offset.stride]};
    for (int64_t i = 0; i < v; ++i) s.p[static_cast<size_t>(i)] = ref::at(a.probs, {mapped, i});
    int64_t t = -1;
    if (s.usable()) {
      if constexpr (kFiltered<B>) {
        const Numbers<int64_t> k = numbers<int64_t>(a.top_k);
        const Numbers<float> p = numbers<float>(a.top_p);
        t = s.top_k_top_p(k.data[mapped * k.stride], static_cast<double>(p.data[mapped * p.stride]),
                          a.filter_apply_order == "joint");
      } else {
        t = s.draw(0, s.next());
      }
    }
    ref::put(*a.samples, {r}, static_cast<double>(t < 0 ? 0 : t));
    if (a.return_valid) ref::put(*a.valid, {r}, t >= 0);
  }
}

template <class B>
op::Cost cost(const B& a) {
  const double n = static_cast<double>(rows_of(a) * a.probs.size(1));
  return {.bytes = n * static_cast<double>(a.probs.item_size()), .flops = 2 * n};
}

template <class B>
op::Shape sample_shape(const B& a) {
  return {.rank = 1, .size = {rows_of(a)}};
}
template <class B>
DType sample_dtype(const B& a) {
  return a.indices ? a.indices->dtype() : DType::kI32;
}
constexpr DTypeSet kSeeds = DTypeSet(DType::kI64) | DType::kU64;

#define FI_SAMPLING_FIELDS(B)                                                                    \
  op::attr<&B::deterministic>("deterministic"), op::attr<&B::generator>("generator"),            \
      op::attr<&B::check_nan>("check_nan"), op::in<&B::seed>("seed", nullptr, kSeeds),           \
      op::in<&B::offset>("offset", nullptr, kSeeds), op::attr<&B::return_valid>("return_valid"), \
      op::result<&B::samples>("samples", nullptr, op::indices, op::shape<sample_shape<B>>,       \
                              op::dtype<sample_dtype<B>>),                                       \
      op::result<&B::valid>("valid", nullptr, DType::kBool, op::shape<sample_shape<B>>, op::when<&B::return_valid>), \
      op::attr<&B::implied_generator>("implied_generator", op::hidden)
constexpr op::Field plain_fields[] = {op::in<&Plain::probs>("probs", "n v", op::floats),
                                      op::in<&Plain::indices>("indices", "b", op::indices), FI_SAMPLING_FIELDS(Plain)};
constexpr op::Field filtered_fields[] = {
    op::in<&Filtered::probs>("probs", "n v", op::floats),
    op::in<&Filtered::top_k>("top_k", nullptr, op::required),
    op::in<&Filtered::top_p>("top_p", nullptr, op::floats | DType::kF64, op::required),
    op::in<&Filtered::indices>("indices", "b", op::indices),
    op::attr<&Filtered::filter_apply_order>("filter_apply_order", op::choices("top_k_first|joint")),
    FI_SAMPLING_FIELDS(Filtered)};
constexpr op::Candidate plain_candidates[] = {op::candidate<refuse_cpu<Plain>, launch_cpu<Plain>>("cpu"),
                                              op::reference<launch_reference<Plain>>()};
constexpr op::Candidate filtered_candidates[] = {op::candidate<refuse_cpu<Filtered>, launch_cpu<Filtered>>("cpu"),
                                                 op::reference<launch_reference<Filtered>>()};

constinit const op::Op plain_op = op::define<Plain, validate<Plain>, cost<Plain>, prepare<Plain>>(
    "sampling_from_probs", "flashinfer.sampling",
    "One token of each row, drawn by inversion of the running sum of its probabilities.", plain_fields,
    plain_candidates, ops::sampling::sampling_cases);
constinit const op::Op filtered_op = op::define<Filtered, validate<Filtered>, cost<Filtered>, prepare<Filtered>>(
    "top_k_top_p_sampling_from_probs", "flashinfer.sampling",
    "One token of each row, drawn among its top k and its top p of mass.", filtered_fields, filtered_candidates,
    ops::sampling::top_k_top_p_cases);

template <class B>
op::Refusal refuse_cpu(const B& a) {
  if (op::Refusal r = op::refuse_unless_cpu(kFiltered<B> ? filtered_op : plain_op, &a); !r.empty()) return r;
  return jit::cpu_kernel<kSample>(config_of(a)).refusal;
}
Samples samples_of(const op::Results& r) { return {r[0], r.size() > 1 ? r[1] : Tensor()}; }
}  // namespace

Samples sampling_from_probs(const SamplingFromProbs& a) { return samples_of(op::call(plain_op, a)); }
Samples top_k_top_p_sampling_from_probs(const TopKTopPSamplingFromProbs& a) {
  return samples_of(op::call(filtered_op, a));
}

namespace ops::sampling {
extern const op::Op softmax_op;  // softmax.cc
namespace {
constexpr const op::Op* kOps[] = {&softmax_op, &plain_op, &filtered_op};
}
extern const std::span<const op::Op* const> all;
constinit const std::span<const op::Op* const> all = kOps;
}  // namespace ops::sampling

}  // namespace flashinfer
