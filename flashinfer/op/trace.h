// SPDX-License-Identifier: Apache-2.0
// What a trace definition of an op says and the op's table does not: a family's trace.cc has one entry for each op, or
// several for an op whose calls have several forms. docs/trace.md describes definitions; trace/template.cc reads this.
//
//   {.op = "rmsnorm", .op_type = "rmsnorm", .axes = "batch_size(...) hidden_size(d)=h",
//    .inputs = "hidden_states<input weight", .outputs = "output@input"}
#pragma once
#include <span>

#pragma GCC visibility push(default)

namespace flashinfer::op {

struct TraceEntry {
  const char* op;       // "rmsnorm", "BatchMLAPagedAttentionWrapper.run"
  const char* op_type;  // the group of definitions; null: the op has no definition (a constructor, a plan)

  /// "batch_size(...) hidden_size(d)=h num_experts= block(4)=:4": names in the order of the file. `(d b+1)`: the
  /// extents of the op's table that it names (`...`: the leading ones); `=h`: constant, that is a property of the
  /// model, with its abbreviation in the definition's name, where an empty one leaves the axis out of it; `:4`: its
  /// value. Extents that no axis names become variable axes of their own text.
  const char* axes = "";

  /// "hidden_states<input weight k_cache<paged_kv_cache.0[num_pages page_size] sm_scale:float32?": keys in the order of
  /// the file. `<input`: the argument, where it has another name; `.0`: element of a tuple; `[...]`: axes, where they
  /// are not those of the op's table; `:float32`: element type when the argument is absent; `?`: may be absent, `!`:
  /// may not; `~`: a plain value, of an argument that may be a tensor; `^`: in strict mode alone. Empty: all arguments.
  const char* inputs = "";
  /// As inputs, with `>input` (the argument that receives it), `@input` (element type of that argument) and `@@dtype`
  /// (named by that argument). Empty: outputs of the table, then what is changed in place.
  const char* outputs = "";

  const char* prefix = nullptr;  // of the definition's name; null: op_type
  const char* tags = "";         // "status:verified stage:decode"
  const char* constraints = "";  // "a == b; c % d == 0": Python expressions of axes and inputs
  const char* when = "";  // "kv_layout=HND alpha=given b=rank3 b=uint8 n=positive b!=1": such calls; the first counts
  const char* api = nullptr;        // of the tag, where it is not the op's module and name
  const char* reference = nullptr;  // Python: `def reference(<input keys>)`; null: calls the op
  const char* helpers = nullptr;    // Python in front of `reference`: functions that several share
  const char* init = nullptr;       // Python: `def init(*, <axes>, device, seed)`; null: random tensors

  /// The same of another op, such as `forward` beside `run`; of one whose definitions have another name, its prefix.
  constexpr TraceEntry of(const char* other_op, const char* other_prefix = nullptr) const {
    TraceEntry e = *this;
    e.op = other_op;
    if (other_prefix) e.prefix = other_prefix;
    return e;
  }
};
/// Each flashinfer/ops/<family>/trace.cc defines `traces`, which CMake lists in a table.
std::span<const std::span<const TraceEntry>> trace_tables();

}  // namespace flashinfer::op

#pragma GCC visibility pop
