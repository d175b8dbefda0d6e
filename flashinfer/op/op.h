// SPDX-License-Identifier: Apache-2.0
// An op: its name, the table of its block's members, its candidates in order, its cases. A plain constant; no
// registration code.
#pragma once
#include <cstddef>
#include <cstdint>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "flashinfer/core/tensor.h"
#include "flashinfer/op/object.h"
#include "flashinfer/op/prepared.h"
#include "flashinfer/op/schema.h"

#pragma GCC visibility push(default)

namespace flashinfer::op {

/// What a candidate runs on.
enum class Backend : unsigned char {
  kCpu,        // kernels on the host's threads
  kCuda,       // kernels on a GPU or the emulator
  kCublasLt,   // cuBLASLt on a GPU
  kHost,       // host code that no array's device matters to (plans, constructors)
  kReference,  // double precision on the host
};
/// The name in logs, recordings, `backend=` and case rows: "cpu", "cuda", "cuda_cublaslt", "cpu", "reference".
constexpr const char* name(Backend b) {
  constexpr const char* kNames[] = {"cpu", "cuda", "cuda_cublaslt", "cpu", "reference"};
  return kNames[static_cast<int>(b)];
}
/// Where a back end's tensors must be: selection passes over a candidate for another place, so no candidate checks it.
enum class Place : unsigned char { kHost, kGpu, kAnywhere };
constexpr Place place(Backend b) {
  if (b == Backend::kCuda || b == Backend::kCublasLt) return Place::kGpu;
  return b == Backend::kHost ? Place::kAnywhere : Place::kHost;
}

struct Op;
/// What prepare() is given. The block passed the schema's checks, every output that is wanted has memory, and all
/// tensors are where the candidate's back end needs them: in host memory, or on the one GPU `device`.
struct Call {
  const Op& op;
  void* block;
  Device device;
};

/// One implementation. The first in an op's list whose prepare() gives a launch runs the call.
struct Candidate {
  Backend backend;
  const char* name;
  Prepared (*prepare)(const Call& call);
};
namespace detail {
template <auto F>
struct Prepare;
template <class B, Prepared (*F)(B&)>  // B may be const
struct Prepare<F> {
  static Prepared of(const Call& c) { return F(*static_cast<B*>(c.block)); }
};
template <class B, Prepared (*F)(B&, const Call&)>
struct Prepare<F> {
  static Prepared of(const Call& c) { return F(*static_cast<B*>(c.block), c); }
};
template <class B, void (*F)(B&)>  // supports every call that gets here
struct Prepare<F> {
  static Prepared of(const Call& c) {
    return [b = static_cast<B*>(c.block)] { F(*b); };
  }
};
/// Replaces the tensors of `block` that are not in host memory, but for scratch, with copies that are; returns the
/// copies.
std::vector<Tensor> copy_arrays_to_host(const Op& op, void* block);
template <auto F>
struct HostArrays;
template <class B, void (*F)(B&)>
struct HostArrays<F> {
  static Prepared of(const Call& c) {
    B* b = static_cast<B*>(c.block);
    if (c.device.type == DeviceType::kCPU) return [b] { F(*b); };
    return [b, op = &c.op] {
      std::remove_const_t<B> copy = *b;
      const std::vector<Tensor> keep = copy_arrays_to_host(*op, &copy);
      F(copy);
    };
  }
};
}  // namespace detail

/// candidate<prepare_cpu>(Backend::kCpu), with `Prepared prepare_cpu(const Block&)`, which may take the `const Call&`
/// too, or with `void launch(const Block&)` where nothing can be unsupported. A prepare() that uses several kernels
/// looks all of them up before it returns, so that one pass over it lists them for AOT and warm-up.
template <auto F>
constexpr Candidate candidate(Backend backend) {
  return {backend, name(backend), &detail::Prepare<F>::of};
}
template <auto F>
constexpr Candidate cpu() {
  return candidate<F>(Backend::kCpu);
}
template <auto F>
constexpr Candidate cuda() {
  return candidate<F>(Backend::kCuda);
}
/// Host code that follows no array's data, or says itself how.
template <auto F>
constexpr Candidate host() {
  return candidate<F>(Backend::kHost);
}
/// Host code that reads arrays (a plan): those that are not in host memory are copied there first, which waits for
/// their stream. Scratch is passed as it is.
template <auto F>
constexpr Candidate host_arrays() {
  return {Backend::kHost, name(Backend::kHost), &detail::HostArrays<F>::of};
}
/// The double-precision reference: last, supports everything that passes the checks on host memory.
template <auto F>
constexpr Candidate reference() {
  return candidate<F>(Backend::kReference);
}

/// A row of an op's case table. `args` is "name=value ..." (cases/parse.h); plans of methods are written
/// `plan.name=value`.
struct Case {
  const char* name;
  const char* args;
  const char* candidate = "cpu";  // must run it on a machine that has what it needs
  unsigned tags = 0;
  double rtol = -1, atol = -1;  // < 0: the op's, else the default of the result's dtype
};
enum CaseTag : unsigned { kBench = 1, kAot = 2, kTrace = 4 };

/// The family's cases.cc defines one function a table: `std::span<const op::Case> rmsnorm_cases();`
using CaseTable = std::span<const Case> (*)();

/// Bytes that must move and operations that must be done, for bench.
struct Cost {
  double bytes = 0, flops = 0;
};

struct Tolerance {
  double rtol = -1, atol = -1;
};

struct BlockType {
  size_t size, align;
  void (*construct)(void*);
  void (*copy)(void*, const void*);
  void (*destroy)(void*);
};
template <class B>
constexpr BlockType block_type() {
  return {sizeof(B), alignof(B), [](void* p) { new (p) B(); },
          [](void* p, const void* q) { new (p) B(*static_cast<const B*>(q)); },
          [](void* p) { static_cast<B*>(p)->~B(); }};
}

struct Op {
  const char* name;    // "rmsnorm", "BatchDecodeWithPagedKVCacheWrapper.run"
  const char* module;  // "flashinfer.norm"
  const char* doc;     // one sentence with the formula
  BlockType block;
  std::span<const Field> fields;
  std::span<const Candidate> candidates;
  CaseTable cases_of = nullptr;                   // may be null: none
  void (*validate)(const void* block) = nullptr;  // what the table cannot say
  /// Before the observer: fills internal members with what the call takes from the process (a default generator), so
  /// that a recording holds it.
  void (*fill_internal)(void* block) = nullptr;
  Cost (*cost)(const void* block) = nullptr;
  Tolerance tolerance{};
  const StateType* state = nullptr;  // methods: the type of the receiver's state
  int version = 1;                   // of the meaning; recorded, compared on replay
  const char* alias = nullptr;       // other names (also_named); log and dump have `name`
  bool is_collective = false;        // made by all ranks of a group (collective)

  std::span<const Case> cases() const { return cases_of ? cases_of() : std::span<const Case>(); }
};

/// constexpr op::Op rmsnorm_op = op::define<RmsNorm, check, cost>("rmsnorm", "flashinfer.norm", "...", fields,
/// candidates, cases); `check` (throws, e.g. ValueError) and `cost` may be left out.
namespace detail {
/// Whether a function template argument was given. By type identity: under -fsanitize=undefined g++ 12 does not take a
/// function's address for a constant that differs from null.
template <auto F>
inline constexpr bool given =
    !std::is_same_v<std::integral_constant<decltype(F), F>, std::integral_constant<decltype(F), nullptr>>;
}  // namespace detail
template <class B, void (*Validate)(const B&) = nullptr, Cost (*CostOf)(const B&) = nullptr,
          void (*FillInternal)(B&) = nullptr>
constexpr Op define(const char* name, const char* module, const char* doc, std::span<const Field> fields,
                    std::span<const Candidate> candidates, CaseTable cases, Tolerance tolerance = {},
                    const StateType* state = nullptr, int version = 1) {
  Op op{name, module, doc, block_type<B>(), fields, candidates, cases};
  if constexpr (detail::given<Validate>) op.validate = [](const void* b) { Validate(*static_cast<const B*>(b)); };
  if constexpr (detail::given<CostOf>) op.cost = [](const void* b) { return CostOf(*static_cast<const B*>(b)); };
  if constexpr (detail::given<FillInternal>) op.fill_internal = [](void* b) { FillInternal(*static_cast<B*>(b)); };
  op.tolerance = tolerance;
  op.state = state;
  op.version = version;
  return op;
}

/// Another name of a function: "older_name", which find_op() finds too, or, for languages with defaults,
/// "with_lse=(return_lse=True)", a function with another default. Of a class's `__init__`: properties of its objects,
/// "resolved_backend=backend(auto=fa2); is_graph=True", which are the argument `backend`, shown as fa2 when it is auto,
/// and a constant.
constexpr Op also_named(Op op, const char* alias) {
  op.alias = alias;
  return op;
}
/// An op that all ranks of a group call together (flashinfer/comm).
constexpr Op collective(Op op) {
  op.is_collective = true;
  return op;
}

const Field* find_field(const Op& op, std::string_view name);
/// The public members that are taken by position: `count` of the signature, then those that once were (was_positional).
struct Positional {
  std::vector<const Field*> fields;
  size_t count = 0;
  const Field* varargs = nullptr;  // takes whatever follows the first `count`
};
Positional positional(const Op& op);
/// "(input, weight, eps=1e-06, out=None, enable_pdl=None)".
std::string signature(const Op& op);
/// The default of a field as Python shows it; empty for a required one.
std::string default_text(const Op& op, const Field& f);
/// A default-constructed block that lives as long as the program.
const void* default_block(const Op& op);

}  // namespace flashinfer::op

#pragma GCC visibility pop
