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

#include "flashinfer/op/object.h"
#include "flashinfer/op/schema.h"

namespace flashinfer::op {

/// Why a candidate does not serve a call, as a sentence for users; empty: it serves.
using Refusal = std::string;

/// One implementation. `refuse` looks, `launch` does; the first candidate that does not refuse serves.
struct Candidate {
  const char* name = nullptr;  // "cpu", "cuda", "reference"
  Refusal (*refuse)(const void* block) = nullptr;
  void (*launch)(void* block) = nullptr;
};
namespace detail {
template <auto F>
struct Fn;
template <class B, Refusal (*F)(const B&)>
struct Fn<F> {
  static Refusal refuse(const void* b) { return F(*static_cast<const B*>(b)); }
};
template <class B, void (*F)(B&)>
struct Fn<F> {  // B may be const
  static void launch(void* b) { F(*static_cast<B*>(b)); }
};
}  // namespace detail
/// candidate<refuse_cpu, launch_cpu>("cpu"), with Refusal refuse_cpu(const Block&) and void launch_cpu(const Block&).
/// When launch runs, the block passed the schema's checks and every output that is wanted has memory.
template <auto Refuse, auto Launch>
constexpr Candidate candidate(const char* name) {
  return {name, &detail::Fn<Refuse>::refuse, &detail::Fn<Launch>::launch};
}
/// The double-precision reference: last, serves everything that passes the checks on host memory.
template <auto Launch>
constexpr Candidate reference() {
  return {"reference", [](const void*) -> Refusal { return {}; }, &detail::Fn<Launch>::launch};
}

/// A row of an op's case table. `args` is "name=value ..." (cases/parse.h); plans of methods are written
/// `plan.name=value`.
struct Case {
  const char* name;
  const char* args;
  const char* candidate = "cpu";  // must serve it on a machine that has what it needs
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
  /// Before anybody observes: fills hidden members with what the call takes from the process (a default generator), so
  /// that a recording holds it.
  void (*prepare)(void* block) = nullptr;
  Cost (*cost)(const void* block) = nullptr;
  Tolerance tolerance{};
  const StateType* state = nullptr;  // methods: the type of the receiver's state
  int version = 1;                   // of the meaning; recorded, compared on replay
  const char* alias = nullptr;       // of a function, where the interface has two for one; log and dump have `name`

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
          void (*Prepare)(B&) = nullptr>
constexpr Op define(const char* name, const char* module, const char* doc, std::span<const Field> fields,
                    std::span<const Candidate> candidates, CaseTable cases, Tolerance tolerance = {},
                    const StateType* state = nullptr, int version = 1) {
  Op op{name, module, doc, block_type<B>(), fields, candidates, cases};
  if constexpr (detail::given<Validate>) op.validate = [](const void* b) { Validate(*static_cast<const B*>(b)); };
  if constexpr (detail::given<CostOf>) op.cost = [](const void* b) { return CostOf(*static_cast<const B*>(b)); };
  if constexpr (detail::given<Prepare>) op.prepare = [](void* b) { Prepare(*static_cast<B*>(b)); };
  op.tolerance = tolerance;
  op.state = state;
  op.version = version;
  return op;
}

constexpr Op also_named(Op op, const char* alias) {
  op.alias = alias;
  return op;
}

const Field* find_field(const Op& op, std::string_view name);
/// The public members that are taken by position: `count` of the signature, then those that once were (was_positional).
struct Positional {
  std::vector<const Field*> fields;
  size_t count = 0;
  const Field* rest = nullptr;  // takes whatever follows the first `count`
};
Positional positional(const Op& op);
/// "(input, weight, eps=1e-06, out=None, enable_pdl=None)".
std::string signature(const Op& op);
/// The default of a field as Python shows it; empty for a required one.
std::string default_text(const Op& op, const Field& f);
/// A default-constructed block that lives as long as the program.
const void* default_block(const Op& op);

}  // namespace flashinfer::op
