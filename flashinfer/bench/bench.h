// SPDX-License-Identifier: Apache-2.0
// Times the rows of a case table: `flashinfer bench`.
#pragma once
#include <string>

#include "flashinfer/bench/machine.h"
#include "flashinfer/cases/run.h"

namespace flashinfer::bench {

struct Options {
  double seconds = 0.5;   // spent on each row, at least 5 calls
  bool refcheck = false;  // also run the case's correctness checks
};

struct Row {
  std::string op, name, candidate, args;
  Samples samples;
  op::Cost cost;
  double copy_bandwidth = 0;  // measured just before and after, the smaller
  double peak = 0;            // FLOP/s: of bf16 dots when an input is 16 bit or narrower, else of f32 FMA; 0 when flops are not counted
  std::string check;          // "ok", the failure, or empty
};

/// Without a cost model the bytes are those of all tensors, inputs once and inouts twice.
Row run(const op::Op& op, const op::Case& c, const Options& options);

}  // namespace flashinfer::bench
