// SPDX-License-Identifier: Apache-2.0
// Times the rows of a case table: `flashinfer bench`.
#pragma once
#include <string>
#include <vector>

#include "flashinfer/bench/machine.h"
#include "flashinfer/bench/peer.h"
#include "flashinfer/cases/run.h"
#include "flashinfer/jit/emulator.h"

#pragma GCC visibility push(default)

namespace flashinfer::bench {

/// Another row that is measured in turns with the one that is asked for.
struct Over {
  const op::Op* op = nullptr;  // none: nothing is measured
  std::string args;
  int threads = 0;  // 0: those of the context
};

struct Options {
  double seconds = 0.5;   // spent on each row, at least 5 calls; beside others at least 5 turns, 3 of long ones
  bool refcheck = false;  // also run the correctness checks of the case
  Device device = kCpu;   // or a GPU, timed by its events
  bool cold = false;      // overwrite the last-level cache (of a GPU its L2) before each call
  std::string candidate;  // only this one; empty: the one that a call selects
  // On the CPU alone:
  int threads = 0;     // 0: those of the context
  bool read = false;   // also sum the bytes of the inputs in turns with the calls
  int64_t rotate = 0;  // calls take turns on copies of the inputs, so many that this many bytes are read: no cache
                       // holds them; at least two copies, at most 200
  std::vector<Peer*> peers;  // other libraries
  Over over;
};

/// What a library takes for the work of a row, in turns with it.
struct PeerTime {
  std::string name;
  double median_s = 0;  // 0: it has nothing to compare the row with
  double ratio = 0;     // the median of its time over the row's of the same turn
};

struct Row {
  std::string op, name, candidate, args;
  Samples samples;
  op::Cost cost;
  double copy_bandwidth = 0;  // of as many bytes in turns with the calls (16 MB and more), else measured just before
                              // and after, the smaller one; on a GPU, of the driver's copy
  // FLOP/s: of bf16 dots when the largest input is bf16 or narrower than 16 bits, else of f32 FMA; the larger of before
  // and after the calls. 0 on a GPU, and when flops are not known.
  double peak = 0;
  bool dots = false;  // whether the peak is that of bf16 dots
  std::string check;  // "ok", the failure, or empty
  int threads = 0;
  // Options::read: bytes a second of only reading the inputs, and that time over the row's in the same turn, for as
  // many bytes as the row's cost (0: not measured).
  double read_bandwidth = 0, share_of_read = 0;
  std::vector<PeerTime> peers;  // of Options::peers, in their order
  PeerTime over;                // Options::over
  std::string goal;             // what it should reach, as "share_of_read>=0.85"; for tables
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

#pragma GCC visibility pop
