// SPDX-License-Identifier: Apache-2.0
// What kernels with planted bugs share.
#pragma once
#include "flashinfer/kernels/cuda/atomic.h"
#include "params.h"

namespace flashinfer::cu {
using P = PlantedParams;

FI_GLOBAL_FN float* tile() { return reinterpret_cast<float*>(shared()); }
FI_GLOBAL_FN uint32_t* words() { return reinterpret_cast<uint32_t*>(shared()); }
FI_GLOBAL_FN float* input(const P& p) { return const_cast<float*>(p.in); }
FI_GLOBAL_FN uint32_t linear() { return block_x() * threads_x() + thread_x(); }
/// Two flags of the block behind its data, 0.
FI_GLOBAL_FN uint32_t* flags() {
  uint32_t* const at = words() + 64;
  if (thread_x() == 0) at[0] = at[1] = 0;
  sync_threads();
  return at;
}
FI_GLOBAL_FN void wait_for(uint32_t* flag, uint32_t value) {
  while (load_acquire(flag) != value) {
  }
}
/// The last block to come sums what the others left; `come` counts it.
template <class Come>
FI_GLOBAL_FN void last_sums(const P& p, Come come) {
  if (thread_x() != 0) return;
  p.out[block_x()] = 1.0f;
  come();
  if (load_acquire(p.counter) != blocks_x()) return;
  float sum = 0.0f;
  for (uint32_t b = 0; b < blocks_x(); ++b) sum += p.out[b];
  p.out[blocks_x()] = sum;
}
}  // namespace flashinfer::cu
