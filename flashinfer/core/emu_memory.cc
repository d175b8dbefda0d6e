// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/core/emu_memory.h"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "flashinfer/core/check.h"
#include "flashinfer/core/int_math.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#define FI_POISON(p, n) ASAN_POISON_MEMORY_REGION(p, n)
#define FI_UNPOISON(p, n) ASAN_UNPOISON_MEMORY_REGION(p, n)
#else
#define FI_POISON(p, n) static_cast<void>(0)
#define FI_UNPOISON(p, n) static_cast<void>(0)
#endif

namespace flashinfer::emu_memory {
namespace {

constexpr size_t kRed = 256;
/// Larger blocks are mapped sparsely and use memory only where touched, for tests of addresses beyond 2^31 elements.
constexpr size_t kSparse = size_t{1} << 30;
/// Freed memory is given back late, so that a kernel that still uses it meets no newer tensor there.
constexpr size_t kKept = size_t{16} << 20, kLargestKept = kKept / 4;

struct Block {
  size_t bytes;
  std::unique_ptr<uint8_t[]> written;
};
struct State {
  std::mutex mutex;
  std::map<const void*, Block> blocks;
  std::deque<std::pair<void*, size_t>> freed;  // oldest first
  size_t kept = 0;                             // bytes of them

  /// The block that holds [p, p + bytes), and the offset of p in it.
  std::pair<const Block*, size_t> find(const void* p, size_t bytes) const {
    auto it = blocks.upper_bound(p);
    if (it == blocks.begin()) return {nullptr, 0};
    --it;
    const size_t at = static_cast<size_t>(static_cast<const char*>(p) - static_cast<const char*>(it->first));
    return at + bytes <= it->second.bytes ? std::pair(&it->second, at) : std::pair<const Block*, size_t>(nullptr, 0);
  }
};

bool has(const uint8_t* bits, size_t i) { return bits == nullptr || (bits[i / 8] >> i % 8 & 1); }
void set(uint8_t* bits, size_t first, size_t n) {
  for (size_t i = first; i < first + n;) {
    if (i % 8 == 0 && i + 8 <= first + n) {
      const size_t whole = (first + n - i) / 8;
      std::memset(bits + i / 8, 0xff, whole);
      i += 8 * whole;
    } else {
      bits[i / 8] = static_cast<uint8_t>(bits[i / 8] | 1u << i % 8);
      ++i;
    }
  }
}

size_t whole_of(size_t bytes) { return round_up(bytes, 256) + 2 * kRed; }
char* raw_of(void* p) { return static_cast<char*>(p) - kRed; }
void keep(State& s, void* p, size_t bytes) {
  FI_POISON(raw_of(p), whole_of(bytes));
  s.freed.emplace_back(p, bytes), s.kept += bytes;
  for (; s.kept > kKept; s.freed.pop_front()) {
    const auto [oldest, size] = s.freed.front();
    FI_UNPOISON(raw_of(oldest), whole_of(size));
    std::free(raw_of(oldest));
    s.kept -= size;
  }
}
State& state() {
  static State& s = *new State;  // never destroyed: tensors may outlive static destructors
  return s;
}

}  // namespace

void* allocate(size_t bytes) {
  const size_t whole = whole_of(bytes);
  FI_CHECK(bytes <= size_t{1} << 62, RuntimeError, "out of memory on emu:0: ", bytes, " bytes were requested");
  void* raw = nullptr;
  if (bytes >= kSparse)
    raw = ::mmap(nullptr, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  else if (posix_memalign(&raw, 256, whole) != 0)
    raw = MAP_FAILED;
  FI_CHECK(raw != MAP_FAILED, RuntimeError, "out of memory on emu:0: ", bytes, " bytes were requested");
  char* p = static_cast<char*>(raw) + kRed;
  if (bytes < kSparse) std::memset(raw, 0xff, whole);
  State& s = state();
  const std::lock_guard lock(s.mutex);
  s.blocks[p] = {bytes, bytes < kSparse ? std::make_unique<uint8_t[]>(ceil_div(bytes, 8)) : nullptr};
  return p;
}

void release(void* p) {
  if (p == nullptr) return;
  State& s = state();
  const std::lock_guard lock(s.mutex);
  const auto it = s.blocks.find(p);
  if (it == s.blocks.end()) return;
  const size_t bytes = it->second.bytes;
  s.blocks.erase(it);
  if (bytes >= kSparse)
    ::munmap(raw_of(p), whole_of(bytes));
  else if (bytes > kLargestKept)
    std::free(raw_of(p));
  else
    keep(s, p, bytes);
}

std::vector<Range> ranges() {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  std::vector<Range> list;
  list.reserve(s.blocks.size());
  for (const auto& [p, b] : s.blocks) list.push_back({p, b.bytes, b.written.get()});
  return list;
}

std::vector<Range> freed() {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  std::vector<Range> list;
  for (const auto& [p, bytes] : s.freed) list.push_back({p, bytes, nullptr});
  return list;
}

void wrote(void* p, size_t bytes) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  const auto [block, at] = s.find(p, bytes);
  if (block != nullptr && block->written) set(block->written.get(), at, bytes);
}

void copied(void* to, const void* from, size_t bytes) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  const auto [target, at] = s.find(to, bytes);
  const auto [source, from_at] = s.find(from, bytes);
  if (target == nullptr || !target->written) return;
  if (source == nullptr || !source->written) return set(target->written.get(), at, bytes);
  for (size_t i = 0; i < bytes; ++i)
    if (has(source->written.get(), from_at + i)) set(target->written.get(), at + i, 1);
}

}  // namespace flashinfer::emu_memory
