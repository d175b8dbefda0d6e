// SPDX-License-Identifier: Apache-2.0
// The default allocator. Decode steps request the same sizes again and again; a freed block waits in its size class, so
// that a result of some MB costs neither a system call nor page faults (0.25 us per 4 KB page) each time.
#include <sys/mman.h>

#include <array>
#include <cstdlib>
#include <mutex>
#include <utility>

#include "flashinfer/core/context.h"
#include "flashinfer/core/cuda/memory.h"
#include "flashinfer/core/emu_memory.h"
#include "flashinfer/core/fork_mutex.h"
#include "flashinfer/core/int_math.h"
#include "flashinfer/core/once.h"

namespace flashinfer {
namespace {

#if defined(__SANITIZE_ADDRESS__)
#define FI_ALLOCATOR_CACHES 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FI_ALLOCATOR_CACHES 0
#endif
#endif
#ifndef FI_ALLOCATOR_CACHES
#define FI_ALLOCATOR_CACHES 1
#endif
constexpr bool kCaches = FI_ALLOCATOR_CACHES;  // not under ASan: a block must be poisoned as soon as it is released

constexpr size_t kMinBlock = 64;
constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kMaxCachedBlock = size_t{64} << 20;
constexpr size_t kMaxCachedTotal = size_t{256} << 20;

/// Classes are four to a power of two (64, 80, 96, 112, 128, 160, ...): at most a fifth of a block is wasted.
struct SizeClass {
  int index;
  size_t bytes;
};
SizeClass class_of(size_t bytes) {
  if (bytes <= kMinBlock) return {0, kMinBlock};
  const int power = 63 - __builtin_clzll(bytes - 1);  // 2^power < bytes <= 2^(power + 1)
  const size_t step = size_t{1} << (power - 2);
  const size_t quarters = ceil_div(bytes - (size_t{1} << power), step);  // 1..4
  return {(power - 6) * 4 + static_cast<int>(quarters), (size_t{1} << power) + quarters * step};
}

constinit ForkMutex g_mutex(ForkLayer::kCore, 2);

class CachingAllocator {
 public:
  void* allocate(size_t bytes, size_t alignment) {
    FI_CHECK(bytes <= size_t{1} << 62, RuntimeError, "out of memory: ", bytes, " bytes were requested");
    const SizeClass c = class_of(bytes);
    if (kCaches && alignment <= kMinBlock && c.bytes <= kMaxCachedBlock)
      if (void* p = pop(c)) return p;
    const size_t size = kCaches ? c.bytes : bytes;
    void* p = fresh(size, alignment);
    if (p == nullptr) {
      trim();
      p = fresh(size, alignment);
    }
    FI_CHECK(p != nullptr, RuntimeError, "out of memory: ", bytes, " bytes were requested");
    return p;
  }

  void release(void* p, size_t bytes) {
    if (p == nullptr) return;
    const SizeClass c = class_of(bytes);
    if (kCaches && c.bytes <= kMaxCachedBlock) {
      const std::lock_guard lock(mutex_);
      if (cached_ + c.bytes <= kMaxCachedTotal) {
        auto* block = static_cast<Free*>(p);
        block->next = free_[static_cast<size_t>(c.index)];
        free_[static_cast<size_t>(c.index)] = block;
        cached_ += c.bytes;
        return;
      }
    }
    std::free(p);
  }

 private:
  struct Free {
    Free* next;
  };

  void* pop(SizeClass c) {
    const std::lock_guard lock(mutex_);
    Free*& head = free_[static_cast<size_t>(c.index)];
    if (head == nullptr) return nullptr;
    Free* block = head;
    head = block->next;
    cached_ -= c.bytes;
    return block;
  }

  static void* fresh(size_t bytes, size_t alignment) {
    size_t align = alignment < kMinBlock ? kMinBlock : alignment;
    if (bytes >= kHugePage && align < kHugePage) align = kHugePage;
    void* p = nullptr;
    if (posix_memalign(&p, align, bytes) != 0) return nullptr;
    // Huge pages reduce TLB misses: caches and weights are read at scattered addresses.
    if (bytes >= kHugePage) madvise(p, bytes / kHugePage * kHugePage, MADV_HUGEPAGE);
    return p;
  }

  /// Returns all cached blocks to the system.
  void trim() {
    const std::lock_guard lock(mutex_);
    for (Free*& head : free_)
      while (head != nullptr) std::free(std::exchange(head, head->next));
    cached_ = 0;
  }

  std::mutex& mutex_ = g_mutex.get();
  std::array<Free*, 256> free_{};
  size_t cached_ = 0;
};

CachingAllocator& allocator() {
  static constinit Once<CachingAllocator> instance;  // never destroyed: tensors may outlive static destructors
  return instance.get([] { return CachingAllocator(); });
}

}  // namespace

Allocator default_allocator() {
  return {&allocator(),
          [](void* self, size_t bytes, size_t alignment, Device device) {
            if (device.type == DeviceType::kCUDA) return cuda::allocate(bytes, device.index, Context::current().stream);
            if (device.type == DeviceType::kEmu) return emu_memory::allocate(bytes);
            return static_cast<CachingAllocator*>(self)->allocate(bytes, alignment);
          },
          [](void* self, void* p, size_t bytes, Device device) {
            if (device.type == DeviceType::kCUDA)
              cuda::release(p, device.index);
            else if (device.type == DeviceType::kEmu)
              emu_memory::release(p);
            else
              static_cast<CachingAllocator*>(self)->release(p, bytes);
          }};
}

}  // namespace flashinfer
