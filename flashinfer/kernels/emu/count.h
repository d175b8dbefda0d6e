// SPDX-License-Identifier: Apache-2.0
// Counts the cost of a warp's memory requests: each lane logs its accesses; when the warp synchronises (barrier,
// collective, exit) the logs are closed, and the n-th execution of an instruction by all lanes is one request.
#pragma once
#include <cstdint>
#include <map>
#include <vector>

#include "flashinfer/kernels/emu/api.h"
#include "flashinfer/kernels/emu/emu.h"
#include "flashinfer/kernels/emu/report.h"

namespace flashinfer::emu {

struct Logged {
  uint32_t pc, bytes;  // pc: offset in the artifact
  uintptr_t at;
  uint32_t nth;  // execution number of that instruction by this lane since the log was opened, set when it is closed
  uint8_t lane;
  bool shared, write;
};
struct WarpLog {
  std::vector<Logged> list;
};

class Counter {
 public:
  void log(WarpLog& log, uint32_t lane, uint32_t pc, uintptr_t at, uint32_t bytes, bool shared, bool write);
  void close(WarpLog& log);
  void remote(uint32_t bytes, bool write) { (write ? counts_.remote_store_bytes : counts_.remote_load_bytes) += bytes; }
  void instruction(Count what, uint32_t n) { lanes_[static_cast<uint32_t>(what)] += n; }
  Counts result(Lines& lines) const;

 private:
  struct Line {
    uint64_t requests = 0, units = 0, least = 0;
    bool shared = false, write = false;
  };
  void request(const Logged* first, const Logged* last);
  Counts counts_;
  uint64_t lanes_[static_cast<uint32_t>(Count::kNumCounts)] = {};
  std::map<std::pair<uint32_t, bool>, Line> lines_;
};

}  // namespace flashinfer::emu
