// SPDX-License-Identifier: Apache-2.0
// Memory that other GPUs and other processes access.
#pragma once
#include <cstddef>
#include <string>

#include "flashinfer/core/cuda/driver.h"

namespace flashinfer::cuda {

/// Zeros on cuda:`index`, 256-byte aligned, not of the pool (whose memory has no handle). Waits for the device; not
/// during a capture. RuntimeError when out of memory.
void* allocate_exported(size_t bytes, int index);
/// Waits for the device. Never throws.
void free_exported(void* p, int index) noexcept;

/// What another process opens.
IpcHandle export_memory(const void* p, int index);
/// The memory of another process's handle, as cuda:`index` addresses it. RuntimeError: the driver's reason, e.g. that
/// the two GPUs have no link that both can use.
void* import_memory(const IpcHandle& handle, int index);
void close_imported(void* p, int index) noexcept;

/// Lets cuda:`index` access the memory of cuda:`peer` in this process; again changes nothing. RuntimeError: they have
/// no link for that.
void enable_peer(int index, int peer);

}  // namespace flashinfer::cuda
