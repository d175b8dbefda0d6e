// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/core/cuda/memory.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "flashinfer/core/check.h"
#include "flashinfer/core/cuda/waits.h"
#include "flashinfer/core/int_math.h"

namespace flashinfer::cuda {
namespace {

Address address(const void* p) { return reinterpret_cast<Address>(p); }

struct Block {
  std::map<Handle, std::unique_ptr<Event>> uses = {};  // after the last one on each other stream
  std::vector<std::shared_ptr<Event>> past = {};       // after all work of streams that were destroyed
  bool orphan = false;                                 // `stream` is one of those
  int index;
  Handle stream;
  uint64_t capture;  // of `stream` at the allocation, for memory of a graph; else 0
  bool pooled;
  const Driver* from;  // the driver that allocated it
};
struct Blocks {
  std::mutex mutex;
  std::unordered_map<void*, Block> list;
};
Blocks& blocks() {
  static Blocks& b = *new Blocks;  // never destroyed: tensors may outlive static destructors
  return b;
}

/// Two buffers of 4 MB a GPU: while one piece is transferred the host copies the other.
constexpr size_t kPiece = size_t{4} << 20;
struct Staging {
  std::mutex mutex;  // held by one copy at a time
  std::unique_ptr<Pinned> buffer[2];
  std::unique_ptr<Event> ready[2];
};
Staging& staging(int index) {
  static std::mutex mutex;
  static auto& table = *new std::map<std::pair<const Driver*, int>, std::unique_ptr<Staging>>;
  const std::lock_guard lock(mutex);
  auto& s = table[{&driver(), index}];
  if (!s) s = std::make_unique<Staging>();
  return *s;
}
void prepare(Staging& s, int index) {
  for (int i = 0; i < 2; ++i) {
    if (!s.buffer[i]) s.buffer[i] = std::make_unique<Pinned>(kPiece, index);
    if (!s.ready[i]) s.ready[i] = std::make_unique<Event>(index);
  }
}

void reject_capture(int index, Handle stream, const char* what) {
  FI_CHECK(!capturing(index, stream), RuntimeError, "cuda: ", what,
           " while the stream is being captured into a graph: its content does not exist "
           "yet; do it before the capture or after a replay");
}

/// As capture_id(), for the current context; 0 when the driver does not tell.
uint64_t capture_of(const Api& a, Handle stream) {
  int state = 0;
  unsigned long long id = 0;
  return a.cuStreamGetCaptureInfo_v2(stream, &state, &id, nullptr, nullptr, nullptr) == kOk && state != 0 ? id : 0;
}

/// The stream on which memory of destroyed streams is freed.
Handle orphans(int index) {
  static constinit std::mutex mutex;
  static auto& table = *new std::map<std::pair<const Driver*, int>, std::unique_ptr<Stream>>;  // never destroyed
  const std::lock_guard lock(mutex);
  auto& s = table[{&driver(), index}];
  if (!s) {
    const BesideCapture beside;
    s = std::make_unique<Stream>(index);
  }
  return s->get();
}
struct Listeners {
  std::mutex mutex;
  std::vector<void (*)(int, Handle)> list;
};
Listeners& listeners() {
  static Listeners& l = *new Listeners;
  return l;
}

/// Pinned memory of asynchronous copies, a slot for each: 16 MB a GPU at most. Slots are reused in order.
constexpr size_t kSlot = size_t{256} << 10, kSlots = 64;
struct Slot {
  std::unique_ptr<Pinned> buffer;
  std::unique_ptr<Event> copied;
};
struct Ring {
  std::mutex mutex;  // held by one copy at a time
  std::vector<Slot> slots;
  size_t next = 0;  // the one whose copy was enqueued first
};
Ring& ring(int index) {
  static constinit std::mutex mutex;
  static auto& table = *new std::map<std::pair<const Driver*, int>, std::unique_ptr<Ring>>;
  const std::lock_guard lock(mutex);
  auto& r = table[{&driver(), index}];
  if (!r) r = std::make_unique<Ring>();
  return *r;
}
/// A slot whose copy is done; the caller's event comes behind those of all others.
Slot& free_slot(Ring& r, int index) {
  const size_t n = r.slots.size();
  if (n == 0 || (n < kSlots && !r.slots[r.next].copied->done())) {
    Slot fresh{std::make_unique<Pinned>(kSlot, index), std::make_unique<Event>(index)};
    r.slots.insert(r.slots.begin() + static_cast<std::ptrdiff_t>(r.next), std::move(fresh));
  } else if (n == kSlots) {
    r.slots[r.next].copied->wait();
  }
  Slot& s = r.slots[r.next];
  r.next = (r.next + 1) % r.slots.size();
  return s;
}

}  // namespace

void stream_ends(int index, Handle stream) noexcept try {
  {
    const Current current(index);
    const BesideCapture beside;
    const bool captured = capture_of(api(), stream) != 0;
    std::shared_ptr<Event> last;
    Blocks& b = blocks();
    const std::lock_guard lock(b.mutex);
    for (auto& [p, block] : b.list) {
      const bool of_stream = block.stream == stream && !block.orphan;
      if (block.index != index || block.from != &driver() || (!of_stream && !block.uses.contains(stream))) continue;
      block.orphan = block.orphan || of_stream;
      if (captured) continue;
      if (!last) last = std::make_shared<Event>(index), last->record(stream);
      block.past.push_back(last), block.uses.erase(stream);
    }
  }
  std::vector<void (*)(int, Handle)> list;
  {
    const std::lock_guard lock(listeners().mutex);
    list = listeners().list;
  }
  for (const auto f : list) f(index, stream);
} catch (const std::exception&) {  // the context is gone, and the memory with it
}
void on_stream_end(void (*f)(int index, Handle stream)) {
  const std::lock_guard lock(listeners().mutex);
  listeners().list.push_back(f);
}

void* allocate(size_t bytes, int index, Handle stream) {
  const Current current(index);
  const Api& a = api();
  const bool pooled = device_info(index).memory_pools;
  Address p = 0;
  const Status s = pooled ? a.cuMemAllocAsync(&p, bytes, stream) : a.cuMemAlloc_v2(&p, bytes);
  if (s == kOutOfMemory) {
    size_t free = 0, total = 0;
    a.cuMemGetInfo_v2(&free, &total);
    throw RuntimeError(
        str("out of memory on cuda:", index, ": ", bytes, " bytes were requested, ", free, " of ", total, " are free"));
  }
  check(s, "cuMemAllocAsync");
  void* const result = reinterpret_cast<void*>(p);
  Blocks& b = blocks();
  const std::lock_guard lock(b.mutex);
  b.list[result] = {{}, {}, false, index, stream, pooled ? capture_of(a, stream) : 0, pooled, &driver()};
  return result;
}

void release(void* p, int index) noexcept try {
  if (p == nullptr) return;
  Block block{};
  {
    Blocks& b = blocks();
    const std::lock_guard lock(b.mutex);
    const auto it = b.list.find(p);
    if (it == b.list.end()) return;
    block = std::move(it->second);
    b.list.erase(it);
  }
  if (block.from != &driver()) return;  // allocated by a dropped driver
  const Current current(index);
  const Api& a = api();
  // A stream that is being captured frees only what the capture allocated; other calls may end the capture.
  if (block.pooled && block.orphan) block.stream = orphans(index);
  const uint64_t capture = block.pooled ? capture_of(a, block.stream) : 0;
  bool ordered = (block.uses.empty() && block.past.empty()) || capture == 0;
  if (block.pooled && capture == 0) try {
      for (const auto& [stream, after] : block.uses) after->wait_on(block.stream);
      for (const auto& after : block.past) after->wait_on(block.stream);
    } catch (const Error&) {
      ordered = false;
    }
  if (block.pooled && ordered && (capture == 0 || capture == block.capture) &&
      a.cuMemFreeAsync(address(p), block.stream) == kOk)
    return;
  // cuMemFree waits for the device, and without BesideCapture would end the capture.
  const BesideCapture beside;
  a.cuMemFree_v2(address(p));
} catch (const std::exception&) {  // the context is gone, and the memory with it
}

void used_on(const void* p, int index, Handle stream) {
  Blocks& b = blocks();
  const std::lock_guard lock(b.mutex);
  const auto it = b.list.find(const_cast<void*>(p));
  if (it == b.list.end() || !it->second.pooled || it->second.stream == stream || capturing(index, stream)) return;
  auto& after = it->second.uses[stream];
  if (!after) after = std::make_unique<Event>(index);
  after->record(stream);
}

uint64_t allocation_id(const void* p, int index) {
  constexpr int kBufferId = 7;  // CU_POINTER_ATTRIBUTE_BUFFER_ID
  const Current current(index);
  unsigned long long id = 0;
  return api().cuPointerGetAttribute(&id, kBufferId, address(p)) == kOk ? id : 0;
}

namespace {
void download_pieces(void* to, const void* from, size_t bytes, int index, Handle stream) {
  const Api& a = api();
  reject_capture(index, stream, "device memory cannot be read");
  Staging& s = staging(index);
  const std::lock_guard lock(s.mutex);
  prepare(s, index);
  const size_t pieces = ceil_div(bytes, kPiece);
  for (size_t i = 0; i <= pieces; ++i) {
    if (i < pieces) {
      const size_t n = std::min(kPiece, bytes - i * kPiece);
      check(a.cuMemcpyDtoHAsync_v2(s.buffer[i % 2]->data(), address(from) + i * kPiece, n, stream),
            "cuMemcpyDtoHAsync");
      s.ready[i % 2]->record(stream);
    }
    if (i == 0) continue;
    s.ready[(i - 1) % 2]->wait();
    const size_t at = (i - 1) * kPiece;
    std::memcpy(static_cast<char*>(to) + at, s.buffer[(i - 1) % 2]->data(), std::min(kPiece, bytes - at));
  }
}
}  // namespace
void download(void* to, const void* from, size_t bytes, int index, Handle stream) {
  if (bytes == 0) return;
  const Current current(index);
  download_pieces(to, from, bytes, index, stream);
  waited(index);
}

void upload(void* to, const void* from, size_t bytes, int index, Handle stream) {
  if (bytes == 0) return;
  const Current current(index);
  const Api& a = api();
  reject_capture(index, stream, "host memory cannot be copied to the device");
  Staging& s = staging(index);
  const std::lock_guard lock(s.mutex);
  prepare(s, index);
  for (size_t i = 0, at = 0; at < bytes; ++i, at += kPiece) {
    const size_t n = std::min(kPiece, bytes - at);
    if (i >= 2) s.ready[i % 2]->wait();
    std::memcpy(s.buffer[i % 2]->data(), static_cast<const char*>(from) + at, n);
    check(a.cuMemcpyHtoDAsync_v2(address(to) + at, s.buffer[i % 2]->data(), n, stream), "cuMemcpyHtoDAsync");
    s.ready[i % 2]->record(stream);
  }
  for (const auto& e : s.ready) e->wait();  // the next copy, perhaps on another stream, reuses the buffers
}

void enqueue_upload(void* to, const void* from, size_t bytes, int index, Handle stream) {
  if (bytes == 0) return;
  const Current current(index);
  const Api& a = api();
  reject_capture(index, stream, "host memory cannot be copied to the device");
  Ring& r = ring(index);
  const std::lock_guard lock(r.mutex);
  for (size_t at = 0; at < bytes; at += kSlot) {
    const size_t n = std::min(kSlot, bytes - at);
    Slot& s = free_slot(r, index);
    std::memcpy(s.buffer->data(), static_cast<const char*>(from) + at, n);
    check(a.cuMemcpyHtoDAsync_v2(address(to) + at, s.buffer->data(), n, stream), "cuMemcpyHtoDAsync");
    s.copied->record(stream);
  }
}

void enqueue_download(void* pinned, const void* from, size_t bytes, int index, Handle stream) {
  const Current current(index);
  if (bytes != 0) check(api().cuMemcpyDtoHAsync_v2(pinned, address(from), bytes, stream), "cuMemcpyDtoHAsync");
}

void copy(void* to, const void* from, size_t bytes, int index, Handle stream) {
  const Current current(index);
  if (bytes != 0) check(api().cuMemcpyAsync(address(to), address(from), bytes, stream), "cuMemcpyAsync");
}

void fill(void* to, unsigned char value, size_t bytes, int index, Handle stream) {
  const Current current(index);
  if (bytes != 0) check(api().cuMemsetD8Async(address(to), value, bytes, stream), "cuMemsetD8Async");
}

Pinned::Pinned(size_t bytes, int index) {
  const Current current(index);
  const BesideCapture beside;
  check(api().cuMemHostAlloc(&data_, bytes, 0), "cuMemHostAlloc");
}
Pinned::~Pinned() { driver().api.cuMemFreeHost(data_); }

}  // namespace flashinfer::cuda
