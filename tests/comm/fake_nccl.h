// SPDX-License-Identifier: Apache-2.0
// What a test sees of the NCCL that it gives the library: ranks are threads of one process, their memory is the host's.
#pragma once
#include <dlfcn.h>

#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "flashinfer/comm/nccl.h"

namespace fake {
namespace comm = flashinfer::comm;

struct Nccl {
  // The other ranks are processes with a library of their own: their calls are taken as made, and nothing moves.
  bool alone = false;
  std::function<int(comm::nccl::Handle stream, const std::string& call)> enqueue;  // when alone
  std::mutex mutex;
  int version = 22707;
  int aborted = 0, finalised = 0;
  comm::nccl::Result fail_rank_0 = comm::nccl::kSuccess;  // what its next call becomes, after it was taken
  std::vector<std::vector<std::string>> calls;            // by rank, in their order
};

/// That of the library at `path`; null: it cannot be loaded.
inline Nccl* fake_nccl_of(const char* path) {
  void* lib = ::dlopen(path, RTLD_NOW | RTLD_LOCAL);
  return lib ? reinterpret_cast<Nccl* (*)()>(::dlsym(lib, "fake_nccl"))() : nullptr;
}

}  // namespace fake
