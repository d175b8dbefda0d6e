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

/// `n` blocks as a grid's size: what is too many for 32 bits stays too many for any GPU, instead of wrapping around to
/// a grid that leaves work out.
constexpr unsigned grid_size(long long n) { return n < 0 || n > 0xffffffffll ? 0xffffffffu : static_cast<unsigned>(n); }

}  // namespace flashinfer::cuda
