// SPDX-License-Identifier: Apache-2.0
// What the names of arguments mean, once for all ops: the same name means the same thing everywhere. A field's own
// `op::doc` goes before it.
#pragma once
#include <span>
#include <string_view>

namespace flashinfer::op {

struct Term {
  const char* name;
  const char* meaning;
};
std::span<const Term> glossary();
/// The sentence for `name`; null when there is none.
const char* meaning(std::string_view name);

}  // namespace flashinfer::op
