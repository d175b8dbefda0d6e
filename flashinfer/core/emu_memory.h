// SPDX-License-Identifier: Apache-2.0
// Memory of the emulated GPU, `emu:0`: host memory between red zones, tracked block by block.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace flashinfer::emu_memory {

/// 256-byte aligned, as on a GPU; at least 256 bytes before and after belong to no other block. Filled with 0xff bytes
/// (NaN); from 1 GiB on with zeros, and only touched pages use memory.
void* allocate(size_t bytes);
/// No new block gets the memory of the last 16 MB that were released (of blocks of up to 4 MB).
void release(void* p);

struct Range {
  const void* begin;
  size_t bytes;
  uint8_t* written;  // a bit for each byte, set when it was written by a kernel or copied here; null: all were (sparse)
};
/// The host wrote `bytes` at `p`; ignored when that is not emulated memory.
void wrote(void* p, size_t bytes);
/// The host copied `bytes` from `from` to `to`: what nothing has written stays so.
void copied(void* to, const void* from, size_t bytes);
/// All live blocks, by address.
std::vector<Range> ranges();
/// Blocks that were released and are not in use again; `written` is null.
std::vector<Range> freed();

}  // namespace flashinfer::emu_memory
