// SPDX-License-Identifier: Apache-2.0
// Times the rows of a case table: `flashinfer bench`.
#pragma once
#include <string>
#include <vector>

#include "flashinfer/bench/machine.h"
#include "flashinfer/cases/run.h"
#include "flashinfer/jit/emulator.h"

namespace flashinfer::bench {

struct Options {
  double seconds = 0.5;   // spent on each row, at least 5 calls
  bool refcheck = false;  // also run the correctness checks of the case
  Device device = kCpu;   // or a GPU, timed by its events
  bool cold = false;      // overwrite the last-level cache (of a GPU its L2) before each call
  std::string candidate;  // only this one; empty: the one that a call selects
};

struct Row {
  std::string op, name, candidate, args;
  Samples samples;
  op::Cost cost;
  double copy_bandwidth = 0;  // of as many bytes in turns with the calls (16 MB and more), else measured just before
                              // and after, the smaller one; on a GPU, of the driver's copy
  double peak = 0;    // FLOP/s: of bf16 dots when an input is 16 bit or narrower, else of f32 FMA; 0 on a GPU and when
                      // flops are not known
  std::string check;  // "ok", the failure, or empty
};

/// ValueError when no candidate, or not the one of the options, supports the row on the device. Without a cost model
/// the bytes are those of all tensors, inputs once and inouts twice.
Row run(const op::Op& op, const op::Case& c, const Options& options);

/// One call on the emulator, counted: the memory traffic of its kernels beside the least that the call needs.
struct CountedRow {
  std::string op, name, args;
  double least_bytes = 0;  // of the cost model, else of all tensors
  std::vector<jit::EmulatedLaunch> launches;
};
CountedRow count(const op::Op& op, const op::Case& c);

}  // namespace flashinfer::bench
