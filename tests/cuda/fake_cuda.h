// SPDX-License-Identifier: Apache-2.0
// A libcuda for tests: the driver's entry points over host memory, stricter than a GPU. Nothing that is enqueued
// happens before a wait for it; device addresses crash the host that follows them; memory that is not allocated
// any more, copies from pageable memory, and calls that a capture forbids are found.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "flashinfer/core/cuda/driver.h"

namespace fake {

using flashinfer::cuda::Address;
using flashinfer::cuda::Handle;

/// Device addresses are host addresses with this bit turned: no CPU follows them.
constexpr uint64_t kDeviceBit = uint64_t{1} << 62;
inline void* host(const void* device) {
  return reinterpret_cast<void*>(reinterpret_cast<uint64_t>(device) ^ kDeviceBit);
}

struct Launched {
  flashinfer::cuda::LaunchConfig config;
  std::vector<flashinfer::cuda::LaunchAttribute> attributes;
  const char* params;  // as the driver copied them
  size_t bytes;        // of them, as the cubin says
};

struct Gpu {
  // ---- what the machine is; set before the library looks ----
  int version = 13000, devices = 1, init_status = 0;
  int major = 9, minor = 0;
  bool pools = true, peers = true;
  size_t memory = size_t{1} << 30;
  uint64_t pool_threshold = 0;  // bytes that the pool keeps

  // ---- what happened ----
  std::map<std::string, int> calls;  // by name of the entry point
  std::vector<Launched> launches;    // as enqueued
  std::vector<std::string> order;    // "stream 1: launch", "stream 1: copy 64 to host", as it came to pass
  std::vector<std::string> faults;   // what a GPU would not have forgiven
  size_t allocated = 0;              // bytes of device memory in use

  // ---- what shall happen ----
  std::map<std::string, int> fail;              // the next call of the entry point returns this
  std::function<void(const Launched&)> kernel;  // what every kernel does, when its turn comes
  int kernel_status = 0;                        // what a wait finds after a kernel ran: 700 is a fault
  double clock_ms = 0;  // operations of other libraries may turn it; events lie 1.5 ms more apart

  void (*reset)();  // clears all of the above and every handle
  void (*begin_capture)(Handle stream);
  int (*end_capture)(Handle stream);  // how many operations were captured; -1: the capture was invalidated
  void (*replay)();                   // what was captured last, now
  uint64_t (*last_graph)();           // the number of the capture that ended last
  void (*launch_graph)(uint64_t graph, Handle stream);  // enqueues what was captured, as cuGraphLaunch does
  int (*enqueue)(Handle stream, const char* what,
                 std::function<void()> run);           // an operation of another library; a status
  int (*pending)(Handle stream);                       // operations not synchronized yet
  size_t (*block)(uint64_t address, uint64_t* begin);  // the bytes of the allocation that holds it, and its begin; 0
};

}  // namespace fake

/// Exported by the library.
extern "C" fake::Gpu* fake_gpu();
