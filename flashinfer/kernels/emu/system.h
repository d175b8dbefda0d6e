// SPDX-License-Identifier: Apache-2.0
// What kernels that share memory with other GPUs add to api.h: the scope of the system. Freestanding.
#pragma once
#include "flashinfer/kernels/emu/api.h"

namespace flashinfer::emu {

/// Of AtomicOrder: an atomic that all GPUs see as one. Without it, and without kOfBlock, its scope is its own GPU.
inline constexpr uint32_t kOfSystem = 32;
/// Of Access: the same.
inline constexpr uint32_t kSystemScope = 256;
/// Api::fence(): of the system, where 0 is the GPU and 1 the block.
inline constexpr uint32_t kSystemFence = 2;

}  // namespace flashinfer::emu
