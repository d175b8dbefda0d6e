// SPDX-License-Identifier: Apache-2.0
// From a template and the facts of a call to a definition (docs/trace.md).
#pragma once
#include <string>
#include <vector>

#include "flashinfer/trace/template.h"

#pragma GCC visibility push(default)

namespace flashinfer::trace {

struct Options {
  std::string name;             // of the definition; empty: from its constant axes
  bool strict = false;          // what flashinfer-bench's data model accepts
  const void* block = nullptr;  // strict: the arguments, from which outputs' extents are inferred
};

/// The definition of a call.
Json define(const Template& t, const Facts& facts, const Options& options = {});
/// Of an op's call; an empty object when the op has no definition for such a call.
Json define(const op::Op& op, const Facts& facts, const Options& options = {});

/// The value of every axis that the facts tell, in the template's order.
std::vector<std::pair<std::string, int64_t>> axis_values(const Template& t, const Facts& facts);
/// What an input is in these facts: the argument, or an element of it; null when it is absent.
std::optional<Fact> passed(const Item& item, const Facts& facts);

/// A template whose open shapes ("any shape") are those of the arguments passed.
Template resolved(Template t, const Facts& facts);
/// Strict mode: arguments that a plan holds and the call does not pass are those of the plan.
Facts with_state(const Template& t, Facts facts);
/// Strict mode: tensors that the call has and the template does not list are inputs too, where `run` calls the
/// function: without them it would compute something else, or raise the function's error.
Template with_unlisted(Template t, const Facts& facts);
/// Whether the call's caches have heads in front of the tokens of a page.
bool is_hnd(const Facts& facts);

// ---- strict.cc ----
/// Makes a definition satisfy the data model: names of outputs, element types, absent inputs, axes.
void make_strict(Json& definition, const Template& t, const Facts& facts, const void* block);

// ---- texts.cc ----
/// Python texts of a definition.
std::string reference_text(const Template& t);
std::string check_text(const Template& t);
std::string init_text(const Template& t, const Json& definition);
/// `def run(<inputs>)`, which calls the reference.
/// Empty: there is no reference.
std::string run_text(const Template& t, const Json& definition, const Facts& facts,
                     const std::vector<std::pair<std::string, std::string>>& inputs);

}  // namespace flashinfer::trace

#pragma GCC visibility pop
