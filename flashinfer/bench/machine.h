// SPDX-License-Identifier: Apache-2.0
// Limits of the machine, measured. Bandwidth of shared machines changes within seconds, so limits are measured beside
// each benchmark, on the same threads.
#pragma once
#include <cstdint>
#include <vector>

#include "flashinfer/core/tensor.h"

#pragma GCC visibility push(default)

namespace flashinfer::bench {

/// Seconds of repeated runs, sorted.
struct Samples {
  std::vector<double> seconds;
  double quantile(double q) const;
  double median() const { return quantile(0.5); }
};

/// A memcpy of `bytes` on the context's threads, to be timed in turns with something else that moves memory. The
/// destination has been written before.
class Copier {
 public:
  explicit Copier(int64_t bytes);
  double seconds();
  double moved() const { return 2.0 * static_cast<double>(from_.nbytes()); }  // reads plus writes

 private:
  Tensor from_, to_;
};
/// Bytes/s of memcpy, reads plus writes, over buffers of `bytes` each (default four times a 32 MB last-level cache),
/// best of `repeats`. The destination has been written before.
double copy_bandwidth(int64_t bytes = 128 << 20, int repeats = 3);
/// Bytes/s of streaming reads.
double read_bandwidth(int64_t bytes = 128 << 20, int repeats = 3);
/// FLOP/s of f32 FMA, and of bf16 pair dots into f32, on the context's threads.
double fma_peak();
double dot_peak();
/// Last-level cache in bytes (sysfs), 32 MB when unknown.
int64_t last_level_cache();

}  // namespace flashinfer::bench

#pragma GCC visibility pop
