// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/comm/window.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstdio>
#include <cstring>
#include <thread>

#include "flashinfer/comm/window_state.h"
#include "flashinfer/core/check.h"

namespace flashinfer::comm {
namespace {
using Clock = std::chrono::steady_clock;

/// How long a rank spins before it sleeps: waking costs 30-75 us. Not at all when ranks share cores: the one that is
/// waited for may need this one.
constexpr auto kSpin = std::chrono::microseconds(50);
/// Sleepers look this often whether those they wait for still live.
constexpr timespec kLook{0, 20'000'000};

static_assert(std::endian::native == std::endian::little, "the low word of an epoch lies first");
uint32_t* low_word(std::atomic<uint64_t>& epoch) { return reinterpret_cast<uint32_t*>(&epoch); }
void sleep_on(std::atomic<uint64_t>& epoch, uint64_t seen) {
  syscall(SYS_futex, low_word(epoch), FUTEX_WAIT, static_cast<uint32_t>(seen), &kLook, nullptr, 0);
}
void wake(RankPage& page) {
  if (page.sleepers.load(std::memory_order_seq_cst))
    syscall(SYS_futex, low_word(page.epoch), FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}
bool is_among(int rank, uint64_t ranks) { return ranks >> rank & 1; }
void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}
}  // namespace

Window::State::State(std::shared_ptr<Group> g, int memory, int64_t n)
    : group(std::move(g)), bytes(n), layout(n, group->size()), process(getpid()) {
  void* at = mmap(nullptr, layout.total, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
  FI_CHECK(at != MAP_FAILED, RuntimeError, "cannot map ", layout.total,
           " bytes of shared memory: ", std::strerror(errno));
  base = static_cast<std::byte*>(at);
  const auto offset = static_cast<off_t>(layout.stride * static_cast<size_t>(group->rank()));
  if (const int e = posix_fallocate(memory, offset, static_cast<off_t>(layout.stride))) {
    munmap(base, layout.total);
    throw RuntimeError(str("cannot allocate ", layout.stride, " bytes of shared memory: ", std::strerror(e)));
  }
}
Window::State::~State() {
  if (process == getpid()) {  // a forked child does not speak for its parent
    RankPage& own = page(group->rank());
    Presence there = Presence::kThere;
    own.presence.compare_exchange_strong(there, Presence::kLeft);
    wake(own);
  }
  munmap(base, layout.total);
}

void Window::State::fail(const std::string& reason) {
  failed = reason;
  RankPage& own = page(group->rank());
  std::snprintf(own.reason, sizeof own.reason, "%s", reason.c_str());
  own.presence.store(Presence::kFailed, std::memory_order_release);
  wake(own);
  throw RuntimeError(str("group '", group->name(), "', rank ", group->rank(), ": ", reason));
}

void Window::State::check_others(uint64_t wanted, uint64_t among) {
  for (int r = 0; r < group->size(); ++r) {
    RankPage& other = page(r);
    if (r == group->rank() || !is_among(r, among) || other.epoch.load(std::memory_order_acquire) >= wanted) continue;
    const Presence presence = other.presence.load(std::memory_order_acquire);
    std::string reason;
    if (presence == Presence::kFailed)
      reason = str("rank ", r, " failed: ", std::string(other.reason, strnlen(other.reason, sizeof other.reason)));
    else if (presence == Presence::kLeft)
      reason = str("rank ", r, " has left the group");
    else
      reason = group->why_gone(r);
    // It may have published between the two looks, before it went.
    if (!reason.empty() && other.epoch.load(std::memory_order_acquire) < wanted) fail(reason);
  }
}

void Window::State::wait_for(int rank, uint64_t wanted, uint64_t among) {
  RankPage& other = page(rank);
  const auto arrived = [&] { return other.epoch.load(std::memory_order_acquire) >= wanted; };
  if (arrived()) return;
  const auto begin = Clock::now();
  if (static_cast<unsigned>(group->size()) <= std::thread::hardware_concurrency())
    while (Clock::now() - begin < kSpin) {
      for (int i = 0; i < 32; ++i) {
        if (arrived()) return;
        pause();
      }
    }
  const double patience = timeout_seconds();
  while (!arrived()) {
    // The publisher stores the epoch, then looks for sleepers; a sleeper counts itself, then looks at the epoch.
    other.sleepers.fetch_add(1, std::memory_order_seq_cst);
    const uint64_t seen = other.epoch.load(std::memory_order_seq_cst);
    if (seen < wanted) sleep_on(other.epoch, seen);
    other.sleepers.fetch_sub(1, std::memory_order_relaxed);
    if (arrived()) return;
    check_others(wanted, among);
    if (std::chrono::duration<double>(Clock::now() - begin).count() > patience)
      fail(str("rank ", rank, " did not arrive within ", patience, " s (FLASHINFER_COMM_TIMEOUT_S)"));
  }
}

Window::Window(std::unique_ptr<State> state) : state_(std::move(state)) {}
Window::~Window() = default;
const Group& Window::group() const { return *state_->group; }
int64_t Window::bytes() const { return state_->bytes; }
std::byte* Window::of(int rank) const {
  return state_->base + state_->layout.stride * static_cast<size_t>(rank) + WindowLayout::kPage;
}

uint64_t Window::publish(const Signature& call) {
  State& s = *state_;
  FI_CHECK(s.process == getpid(), RuntimeError, "the window of group '", s.group->name(), "' belongs to process ",
           s.process, ": a forked child connects a group of its own");
  FI_CHECK(s.failed.empty(), RuntimeError, "group '", s.group->name(), "', rank ", s.group->rank(),
           ": failed before: ", s.failed);
  RankPage& own = s.page(s.group->rank());
  s.last = call;
  ++s.epoch;
  own.signatures[s.epoch % 4] = call;
  own.epoch.store(s.epoch, std::memory_order_seq_cst);
  wake(own);
  return s.epoch;
}

void Window::wait(uint64_t epoch, Describe describe, uint64_t among) {
  State& s = *state_;
  for (int r = 0; r < s.group->size(); ++r) {
    if (r == s.group->rank() || !is_among(r, among)) continue;
    s.wait_for(r, epoch, among);
    const Signature& theirs = s.page(r).signatures[epoch % 4];
    if (theirs == s.last) [[likely]]
      continue;
    s.fail(str("rank ", r, " calls ", describe(theirs), ", but rank ", s.group->rank(), " calls ", describe(s.last)));
  }
}

}  // namespace flashinfer::comm
