// SPDX-License-Identifier: Apache-2.0
// What the names of arguments mean: the same name means the same thing in all ops of a family (its terms.cc), and what
// several families name alike is said here.
#pragma once
#include <span>
#include <string_view>

#pragma GCC visibility push(default)

namespace flashinfer::op {

struct Field;
struct Op;

struct Term {
  const char* name;
  const char* meaning;
};
/// The terms of several families, sorted by name.
std::span<const Term> glossary();
/// What argument `f` of `op` means: the field's own `op::doc`, else its family's term, else the glossary's; null when
/// none says it.
const char* meaning(const Op& op, const Field& f);

}  // namespace flashinfer::op

#pragma GCC visibility pop
