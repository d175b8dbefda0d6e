// SPDX-License-Identifier: Apache-2.0
// Measured rows as traces of flashinfer-bench (`flashinfer bench --trace-out`).
#pragma once
#include "flashinfer/bench/bench.h"
#include "flashinfer/formats/json.h"

namespace flashinfer::cli {

/// {"definition", "workload", "solution", "evaluation"}: the row's call, strictly defined; the candidate against the
/// reference, whose time is that of one call; PASSED or INCORRECT_NUMERICAL by the op's tolerances. An empty object,
/// and `why` set, when the call has no valid definition.
formats::Json trace_line(const op::Op& op, const op::Case& c, const bench::Row& row, Device device, std::string* why);

}  // namespace flashinfer::cli
