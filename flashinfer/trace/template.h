// SPDX-License-Identifier: Apache-2.0
// A trace template: what is known of a function's definitions before it is called. Made from an op's table and its
// TraceEntry, or from the JSON of another language's template.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "flashinfer/op/op.h"
#include "flashinfer/op/trace.h"
#include "flashinfer/trace/facts.h"

#pragma GCC visibility push(default)

namespace flashinfer::trace {

struct Axis {
  std::string name;
  bool constant = false;         // a property of the model; else of the request
  std::string abbreviation;      // in the name; empty: the axis is not in it
  std::optional<int64_t> value;  // a constant for all calls
  std::string description;
};

/// An input or output.
struct Item {
  std::string key;                // in the file
  std::string param;              // the argument: of an output, the one that receives it (may be empty)
  int element = -1;               // of a tuple
  std::vector<std::string> dims;  // axes; names that are no axes are legal in compat mode
  bool scalar = false;            // no shape
  bool any_shape = false;         // the axes are those of the tensor passed: <key>_0, <key>_1, ...
  bool from_end = false;          // dims are the last ones: leading extents are folded into the first axis
  bool paged = false;             // pages of a cache whose layout the call names
  bool optional = false;
  bool strict_only = false;
  std::string dtype;              // when no argument tells it
  std::string dtype_from;         // outputs: an argument
  std::string dtype_from_scalar;  // outputs: an argument that names it
  std::string description;
};

struct Template {
  const op::Op* op = nullptr;  // null: of a program's own function
  std::string op_type, prefix, description;
  std::vector<std::string> tags, constraints;
  std::vector<Axis> axes;
  std::vector<Item> inputs, outputs;
  std::string reference, check, init;  // Python; empty: none
  std::string api;                     // "flashinfer.norm.rmsnorm"

  const Axis* axis(std::string_view name) const;
};

/// The entries of an op, in order; none: it is in no family's table.
std::vector<const op::TraceEntry*> entries_of(const op::Op& op);
/// The template of an entry. InternalError naming the entry: a syntax error, a name that the op does not have.
Template make_template(const op::Op& op, const op::TraceEntry& entry);
/// The first entry that is for these arguments; a value that is not passed has its default. Null: none.
const op::TraceEntry* choose(const op::Op& op, const Facts& facts);
/// {"api", "op_type", "name_prefix", "description", "tags", "constraints", "axes": {name: {"type", "abbrev", "value",
/// "description"}}, "inputs": {key: {"dims": [...] or null, "param", "tuple_idx", "dtype", "dtype_from",
/// "dtype_from_scalar", "optional", "description"}}, "outputs", "reference", "check", "init"}.
Template template_from_json(const Json& j);
/// The same form, for tools and tests.
Json to_json(const Template& t);

}  // namespace flashinfer::trace

#pragma GCC visibility pop
