// SPDX-License-Identifier: Apache-2.0
// What a test sees of the NCCL that it gives the library: ranks are threads of one process, their memory is the host's.
#pragma once
#include <mutex>
#include <string>
#include <vector>

#include "flashinfer/comm/nccl.h"

namespace flashinfer::fake {

struct Nccl {
  std::mutex mutex;
  int version = 22707;
  int aborted = 0, finalised = 0;
  comm::nccl::Result fail_rank_0 = comm::nccl::kSuccess;  // what its next call becomes, after it was taken
  std::vector<std::vector<std::string>> calls;            // by rank, in their order
};

}  // namespace flashinfer::fake
