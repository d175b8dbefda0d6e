// SPDX-License-Identifier: Apache-2.0
// The state behind the fake driver, and what its entry points (fake_libcuda.cc, fake_streams.cc, fake_launch.cc) are
// made of.
#pragma once
#include <cstdlib>
#include <cstring>
#include <deque>
#include <iterator>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "fake_cuda.h"

namespace fake {

using namespace flashinfer::cuda;

struct Operation {
  std::string what;
  std::function<void()> run;
};
struct Stream {
  int number = 0;
  uint64_t capturing = 0;  // the number of the capture
  bool invalid = false;
  std::deque<Operation> queue;
};
struct Event {
  Stream* stream = nullptr;
  int recorded = 0, done = 0;
  double at_ms = 0;
};
struct Function {
  int shared_limit = 49152;
  unsigned max_threads = 1024;
  size_t param_bytes = 0;
};
struct Block {
  size_t bytes;
  uint64_t id;
};

struct Machine {
  Gpu gpu;
  std::map<Handle, std::unique_ptr<Stream>> streams;
  std::set<Event*> events;
  std::map<char*, Block> blocks;
  std::map<char*, size_t> pinned;
  std::map<uint64_t, std::vector<Operation>> graphs;  // by the number of their capture
  uint64_t captures = 0, allocations = 0;
  std::set<char*> of_capture;  // allocated in the order of a captured stream
  int mode = 0;                // of the thread: 2 is relaxed
  int sticky = 0, numbers = 0;
};
inline Machine& machine() {
  static Machine& m = *new Machine;
  return m;
}
/// Held by each entry point that reads or changes the machine, as ranks of a test that are threads share it: also while
/// it runs a stream's operations, so one must not wait for another thread.
class Locked {
  static std::recursive_mutex& mutex() {
    static auto& m = *new std::recursive_mutex;
    return m;
  }
  const std::scoped_lock<std::recursive_mutex> lock_{mutex()};
};
/// The calling thread's stack. Exit handlers still use that of the main thread, so it has no destructor.
struct Contexts {
  Handle handles[64];
  size_t count;
  bool empty() const { return count == 0; }
  Handle back() const { return handles[count - 1]; }
  void push_back(Handle h) {
    if (count == std::size(handles)) std::abort();
    handles[count++] = h;
  }
  void pop_back() { --count; }
  void clear() { count = 0; }
};
inline Contexts& contexts() {
  static thread_local constinit Contexts stack{};
  return stack;
}

inline Stream* stream_of(Handle h) {
  Machine& m = machine();
  auto it = m.streams.find(h);
  if (it == m.streams.end()) {
    if (h != nullptr) return m.gpu.faults.push_back("a stream that is destroyed"), nullptr;
    it = m.streams.emplace(h, std::make_unique<Stream>()).first;
  }
  return it->second.get();
}

inline int enter(const char* name) {
  Machine& m = machine();
  ++m.gpu.calls[name];
  const auto it = m.gpu.fail.find(name);
  if (it == m.gpu.fail.end() || it->second == 0) return m.sticky;
  return std::exchange(it->second, 0);
}
#define ENTER()        \
  const Locked locked; \
  if (const int status = enter(__func__)) return status
#define NEEDS_CONTEXT() \
  if (contexts().empty()) return 201

/// A call that may not be made while any stream is captured, unless the thread said that it knows better.
inline bool forbidden_by_capture() {
  Machine& m = machine();
  if (m.mode == 2) return false;
  bool any = false;
  for (auto& [h, s] : m.streams)
    if (s->capturing) any = s->invalid = true;
  return any;
}

inline void drain(Stream& s, const std::function<bool()>& enough = [] { return false; }) {
  while (!s.queue.empty() && !enough()) {
    Operation o = std::move(s.queue.front());
    s.queue.pop_front();
    machine().gpu.order.push_back("stream " + std::to_string(s.number) + ": " + o.what);
    o.run();
  }
}

inline int enqueue(Handle h, Operation o) {
  Stream* s = stream_of(h);
  if (s == nullptr) return kInvalidHandle;
  if (s->invalid) return kCaptureInvalidated;
  if (s->capturing)
    machine().graphs[s->capturing].push_back(std::move(o));
  else
    s->queue.push_back(std::move(o));
  return 0;
}

inline char* host(Address a) { return reinterpret_cast<char*>(a ^ kDeviceBit); }

inline size_t bytes_of(size_t n) { return n; }
inline size_t bytes_of(const Block& b) { return b.bytes; }
template <class Map>
auto find_block(const Map& blocks, const char* p, size_t bytes) {
  auto it = blocks.upper_bound(const_cast<char*>(p));
  if (it == blocks.begin()) return blocks.end();
  --it;
  return p + bytes <= it->first + bytes_of(it->second) ? it : blocks.end();
}
template <class Map>
bool inside(const Map& blocks, const char* p, size_t bytes) {
  return find_block(blocks, p, bytes) != blocks.end();
}
inline void check_device(Address a, size_t bytes, const char* what) {
  if (inside(machine().blocks, host(a), bytes)) return;
  machine().gpu.faults.push_back(std::string(what) + ": device memory that is not allocated");
  machine().sticky = kIllegalAddress;
}
inline void check_pinned(const void* p, size_t bytes) {
  if (!inside(machine().pinned, static_cast<const char*>(p), bytes))
    machine().gpu.faults.push_back("an asynchronous copy of pageable memory");
}

inline int allocate(Address* out, size_t bytes) {
  Machine& m = machine();
  if (m.gpu.allocated + bytes > m.gpu.memory) return kOutOfMemory;
  void* p = nullptr;
  if (posix_memalign(&p, 256, bytes ? bytes : 1) != 0) return kOutOfMemory;
  std::memset(p, 0xff, bytes);
  m.blocks[static_cast<char*>(p)] = {bytes, ++m.allocations};
  m.gpu.allocated += bytes;
  *out = reinterpret_cast<Address>(p) ^ kDeviceBit;
  return 0;
}
inline void free_now(Address a) {
  Machine& m = machine();
  const auto it = m.blocks.find(host(a));
  if (it == m.blocks.end()) {
    m.gpu.faults.push_back("freed memory that is not allocated");
    return;
  }
  m.gpu.allocated -= it->second.bytes;
  std::free(it->first);
  m.blocks.erase(it);
}

inline Machine& fresh() {
  Machine& m = machine();
  for (auto& [p, n] : m.blocks) std::free(p);
  for (auto& [p, n] : m.pinned) std::free(p);
  for (Event* e : m.events) delete e;
  contexts().clear();
  m.~Machine();
  return *new (&m) Machine;
}

}  // namespace fake
