// SPDX-License-Identifier: Apache-2.0
// Runs the rows of an op's case table: correctness of the named candidate against the double-precision reference,
// guards, given outputs, padded inputs, bitwise repeat, other thread counts. Tests, `flashinfer cases` and bench share
// it.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "flashinfer/cases/compare.h"
#include "flashinfer/cases/parse.h"

#pragma GCC visibility push(default)

namespace flashinfer::cases {

/// Outputs of a call by argument name, alive as long as this.
struct Outputs {
  std::vector<std::pair<std::string, Tensor>> tensors;
};
/// Runs the block as a C++ caller would; collects everything it wrote.
Outputs run_block(Built& b);

struct CaseResult {
  bool passed = true;
  std::string failure;  // what went wrong, one line
  /// On a GPU or the emulator: why the candidate `cuda` does not support this row; nothing was run.
  std::string unsupported;
  std::string repro;  // flashinfer cases rmsnorm --args 'input=...'
};
CaseResult run_case(const op::Op& op, const op::Case& c);

/// The same on a GPU or the emulator, with the candidate `cuda`: tensors are copied there, results back. On the
/// emulator every run uses `seeds` schedules, which must give the same bits.
struct DeviceRun {
  Device device = kCpu;
  int seeds = 3;
};
CaseResult run_case(const op::Op& op, const op::Case& c, const DeviceRun& run);
/// Whether any implementation of the op runs on the device.
bool supports(const op::Op& op, Device device);

}  // namespace flashinfer::cases

#pragma GCC visibility pop
