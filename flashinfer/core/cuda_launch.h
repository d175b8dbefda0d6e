// SPDX-License-Identifier: Apache-2.0
// Launch parameters of a CUDA kernel, for the driver and the emulator. Freestanding.
#pragma once

namespace flashinfer::cuda {

struct Launch {
  unsigned grid[3] = {1, 1, 1};     // blocks; at most 2^31-1, 65535, 65535
  unsigned block[3] = {1, 1, 1};    // threads; at most 1024 in all
  unsigned cluster[3] = {1, 1, 1};  // blocks a cluster, dividing the grid; more than one needs sm_90
  unsigned shared_bytes = 0;        // dynamic shared memory of a block
  bool cooperative = false;         // all blocks run at once (grid-wide barriers)
  bool pdl = false;  // programmatic dependent launch: may start before the previous kernel has ended (griddepcontrol)
};

}  // namespace flashinfer::cuda
