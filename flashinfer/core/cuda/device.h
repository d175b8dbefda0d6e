// SPDX-License-Identifier: Apache-2.0
// GPUs, their primary contexts, streams and events. Streams are the driver's CUstream handles (void*); null is the
// legacy default stream. All functions throw NotImplementedError without a usable driver, ValueError for a missing GPU,
// RuntimeError for the driver's errors.
#pragma once
#include <cstdint>
#include <functional>
#include <string>

#include "flashinfer/core/cuda/driver.h"

#pragma GCC visibility push(default)

namespace flashinfer::cuda {

struct DeviceInfo {
  std::string name;
  int major = 0, minor = 0;  // compute capability
  int sms = 0;               // streaming multiprocessors
  int shared_per_block = 0;  // bytes, with opt-in
  int shared_per_sm = 0;     // bytes
  int registers_per_sm = 0;
  int l2_bytes = 0;
  uint64_t memory = 0;        // bytes
  bool memory_pools = false;  // cuMemAllocAsync
  bool clusters = false;
};
/// Attributes of cuda:`index`; queried once.
const DeviceInfo& device_info(int index);
/// Empty when cuda:`index` can be used, else the reason.
std::string why_no_device(int index);

/// Makes the primary context of cuda:`index` current in this thread until the end of the scope, then restores the
/// previous one.
class Current {
 public:
  explicit Current(int index);
  ~Current();
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;

 private:
  bool pushed_ = false;
  int previous_ = -1;  // GPU of the scope around this one
};

/// A new stream (non-blocking with respect to the default stream).
class Stream {
 public:
  explicit Stream(int index);
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  Handle get() const { return handle_; }
  int device() const { return index_; }

 private:
  Handle handle_ = nullptr;
  int index_;
};

class Event {
 public:
  explicit Event(int index, bool timing = false);
  ~Event();
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  void record(Handle stream);
  bool done() const;
  void wait() const;                               // this thread waits
  void wait_on(Handle stream) const;               // the stream waits
  double seconds_since(const Event& start) const;  // both made with timing, both done

 private:
  Handle handle_ = nullptr;
  int index_;
};

/// While it lives, this thread may load modules, allocate, and query or wait for events although another stream is
/// being captured: these calls do not become part of the graph (in mode "global" each would end the capture). A context
/// must be current.
class BesideCapture {
 public:
  BesideCapture();
  ~BesideCapture();
  BesideCapture(const BesideCapture&) = delete;
  BesideCapture& operator=(const BesideCapture&) = delete;

 private:
  int mode_ = 2;  // CU_STREAM_CAPTURE_MODE_RELAXED; afterwards the thread's previous mode
};

/// What `enqueue` puts on `stream`, which may not be the legacy default stream, captured into a graph: none of it is
/// done until launch(), and then all of it, again at each launch. Memory that it reads and writes must outlive the
/// graph. The constructor throws what `enqueue` throws, and RuntimeError when something in it ended the capture, such
/// as a wait or the first launch of a kernel that is not loaded yet.
class Graph {
 public:
  Graph(int index, Handle stream, const std::function<void()>& enqueue);
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  void launch(Handle stream) const;

 private:
  Handle handle_ = nullptr;  // CUgraphExec
  int index_;
};

/// Waits for all work of `stream` on cuda:`index`; faults of kernels on it surface here.
void synchronize(int index, Handle stream);
/// Waits for all work of all streams on cuda:`index`.
void synchronize_device(int index);
/// True while `stream` is being captured into a graph.
bool capturing(int index, Handle stream);
/// The driver's id of the capture of `stream` (unique in the process); 0: it is not being captured.
uint64_t capture_id(int index, Handle stream);

}  // namespace flashinfer::cuda

#pragma GCC visibility pop
