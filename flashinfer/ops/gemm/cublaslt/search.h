// SPDX-License-Identifier: Apache-2.0
// Several algorithms for one product, timed against each other where it is about to run.
#pragma once
#include <functional>
#include <span>
#include <string>

#include "flashinfer/core/cuda/cublaslt.h"

namespace flashinfer::gemm {

/// Which of `n` ways is the fastest on `stream`: each is run once to warm up, then all in turn for three rounds between
/// the GPU's events (five runs a round, one of those that take over 2 ms), and the least of the rounds is compared. Way
/// 0 is kept unless another is 3 % faster, so that noise does not choose. A way that fails is left out; 0 when all do.
/// The stream must not be captured; what a way writes is written.
size_t fastest_way(int device, cuda::Handle stream, size_t n, const std::function<cublaslt::Status(size_t)>& run);

/// An algorithm as text: cuBLASLt documents it as data that may be stored and used again with the same version.
std::string name_of(const cublaslt::Algorithm& a);

/// Picks among ways of these names for the product that `key` describes: what was measured earlier, here or by
/// another process on such a GPU (jit/winners.h), else fastest_way(), which is kept. False while `stream` is captured
/// and nothing is known: nothing may wait then, `chosen` stays as it was and a later call may settle it.
bool settle(int device, cuda::Handle stream, const std::string& key, std::span<const std::string> names,
            const std::function<cublaslt::Status(size_t)>& run, size_t& chosen);

}  // namespace flashinfer::gemm
