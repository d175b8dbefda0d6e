// SPDX-License-Identifier: Apache-2.0
// All ops, by family. CMake writes the list of families from the names of the folders flashinfer/ops/<family>; each
// defines constinit spans in its namespace flashinfer::ops::<family>. No static constructors.
#pragma once
#include <span>
#include <string_view>
#include <vector>

#include "flashinfer/op/glossary.h"
#include "flashinfer/op/op.h"

#pragma GCC visibility push(default)

namespace flashinfer::op {

/// The contents of a tensor in a case's text, `q4_0(64,32)`: the name and its arguments (0 when left out).
struct FillRule {
  std::string_view name;
  double a = 0, b = 0;
};
/// A fill of a family's own (cases/parse.h lists those that every case may use). Element i depends on (seed, i) alone;
/// ValueError: the tensor is not one that the rule describes.
struct Fill {
  const char* name;
  void (*fill)(const TensorView& t, const FillRule& rule, uint64_t seed);
};

/// Looks up kernels that no case row of the family needs (jit::cuda_kernel), so that lists to precompile have them.
using LookUp = void (*)(Device device);

/// What a folder flashinfer/ops/<family> defines.
struct Family {
  const char* name;                      // of the folder
  std::span<const Op* const> ops;        // `all`, in op.cc
  std::span<const Term> terms = {};      // `terms`, in terms.cc if it is there: what its arguments' names mean
  std::span<const Fill> fills = {};      // `fills`, in fills.cc if it is there
  std::span<const LookUp> lookups = {};  // `lookups`, in lookups.cc if it is there
};
/// In the order of the folders' names.
std::span<const Family> families();
/// Null for an op that a program added.
const Family* family_of(const Op& op);
/// Every op: the library's, then those added at run time.
std::vector<const Op*> all_ops();
/// By public name ("rmsnorm", "BatchDecodeWithPagedKVCacheWrapper.run"), or null.
const Op* find_op(std::string_view name);

/// False for a required field, and for an optional one before a required one (None must be written).
bool has_default(const Op& op, const Field& f);

/// Adds an op of the program's own (it gets check, log, record, replay, cases, bench and CLI listing like the
/// library's) for as long as this lives. ValueError when the name is taken.
class Registration {
 public:
  explicit Registration(const Op& op);
  ~Registration();
  Registration(const Registration&) = delete;
  Registration& operator=(const Registration&) = delete;

 private:
  const Op* op_;
};

}  // namespace flashinfer::op

#pragma GCC visibility pop
