// SPDX-License-Identifier: Apache-2.0
// Errors that all ranks of a group raise together.
#pragma once
#include <optional>
#include <string>

#include "flashinfer/comm/group.h"

namespace flashinfer::comm {

/// Collective: f(). When it throws an Error on any rank, all ranks throw that of the first such rank, with its number:
/// a rank that threw alone would leave the others waiting in their next exchange. `as`: the kind of the error, unless
/// it is that of f's.
template <class F>
void on_every_rank(Group& group, std::string_view what, F f, std::optional<ErrorKind> as = {}) {
  std::string problem;  // a byte with its kind, and the message
  try {
    f();
  } catch (const Error& e) {
    problem = static_cast<char>(as.value_or(e.kind())) + e.message();
  }
  const auto problems = group.exchange(what, problem);
  for (size_t r = 0; r < problems.size(); ++r)
    if (const std::string& p = problems[r]; !p.empty())
      throw_error(static_cast<ErrorKind>(p[0]), (problems.size() > 1 ? str("rank ", r, ": ") : "") + p.substr(1));
}

}  // namespace flashinfer::comm
