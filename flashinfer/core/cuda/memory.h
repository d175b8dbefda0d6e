// SPDX-License-Identifier: Apache-2.0
// Device memory from the driver's stream-ordered pool, and copies through pinned staging.
#pragma once
#include <cstddef>

#include "flashinfer/core/cuda/device.h"

#pragma GCC visibility push(default)

namespace flashinfer::cuda {

/// Memory of cuda:`index`, usable on `stream` at once and on other streams after they waited for it; 256-byte aligned.
/// RuntimeError when out of memory, with the requested and the free bytes.
void* allocate(size_t bytes, int index, Handle stream);
/// Frees it in the order of the stream it was allocated on. Never throws; after a sticky error the memory is gone with
/// its context.
void release(void* p, int index) noexcept;
/// `p`, as allocate() gave it, is used by what was enqueued on `stream` up to now: its memory is free only after that
/// too. Nothing for the stream it was allocated on, and during a capture (a graph's memory must outlive the graph).
void used_on(const void* p, int index, Handle stream);

/// `stream` is about to be destroyed: what was allocated on it is freed in the order of another one from now on, after
/// all work that `stream` has. ~Stream calls it; a program that gives a stream of its own to calls and destroys it
/// while the library still has memory of it (tensors that calls returned, workspaces) calls it before. Never throws.
void stream_ends(int index, Handle stream) noexcept;
/// Calls f(index, stream) at each later stream_ends(), for memory that is kept by stream; once a function.
void on_stream_end(void (*f)(int index, Handle stream));

/// The driver's id of the allocation that `p` points into, never reused in a process; 0: no (longer an) allocation, or
/// the driver does not tell (memory of a graph).
uint64_t allocation_id(const void* p, int index);

/// Copies `bytes` in the order of `stream`. The first two return when the host memory may be reused (download: holds
/// the data); they copy through pinned memory in pieces, so any host memory is allowed. RuntimeError while the stream
/// is being captured.
void download(void* to, const void* from, size_t bytes, int index, Handle stream);
void upload(void* to, const void* from, size_t bytes, int index, Handle stream);
/// As upload, without its wait for the stream: the content is there for what is enqueued on `stream` from now on, and
/// on other streams after they waited for that. The host waits only when 16 MB of such copies are still to be made.
void enqueue_upload(void* to, const void* from, size_t bytes, int index, Handle stream);
/// To page-locked memory (Pinned), in the order of `stream`; returns at once, and may be captured.
void enqueue_download(void* pinned, const void* from, size_t bytes, int index, Handle stream);
void copy(void* to, const void* from, size_t bytes, int index, Handle stream);     // device to device, asynchronous
void fill(void* to, unsigned char value, size_t bytes, int index, Handle stream);  // asynchronous

/// Page-locked host memory.
class Pinned {
 public:
  Pinned(size_t bytes, int index);
  ~Pinned();
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;
  char* data() const { return static_cast<char*>(data_); }

 private:
  void* data_ = nullptr;
};

}  // namespace flashinfer::cuda

#pragma GCC visibility pop
