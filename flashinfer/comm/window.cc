// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/comm/window.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstdio>
#include <cstring>

#include "flashinfer/comm/window_state.h"
#include "flashinfer/core/check.h"
#include "flashinfer/core/thread_pool.h"

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
  if (page.sleepers.load(std::memory_order_seq_cst)) [[unlikely]]
    syscall(SYS_futex, low_word(page.flag.epoch), FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}
bool is_among(int rank, uint64_t ranks) { return ranks >> rank & 1; }
void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}
/// How often this process or an ancestor has forked, as seen from here: getpid() is a system call (0.1-0.5 us).
std::atomic<uint32_t> g_forks{0};
uint32_t forks() {
  [[maybe_unused]] static const int handler =
      pthread_atfork(nullptr, nullptr, [] { g_forks.fetch_add(1, std::memory_order_relaxed); });
  return g_forks.load(std::memory_order_relaxed);
}
/// Never 0, which stands for an abandoned phase.
uint64_t hash_of(const Signature& s) {
  uint64_t h = 0;
  for (const int64_t n : s.number) {
    h = (h ^ static_cast<uint64_t>(n)) * 0x9e3779b97f4a7c15u;
    h ^= h >> 29;
  }
  return h | 1;
}
void copy_text(char (&to)[512], const std::string& text) { std::snprintf(to, sizeof to, "%s", text.c_str()); }
std::string text_of(const char (&from)[512]) { return {from, strnlen(from, sizeof from)}; }
}  // namespace

Window::State::State(std::shared_ptr<Group> g, int memory, int64_t n)
    : group(std::move(g)),
      bytes(n),
      layout(n, group->size()),
      spins(group->size() <= usable_cpus()),
      process(getpid()),
      forks(comm::forks()) {
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
    Presence there = Presence::kThere;
    own().presence.compare_exchange_strong(there, Presence::kLeft);
    wake(own());
  }
  munmap(base, layout.total);
}

void Window::State::check_usable() const {
  FI_CHECK(forks == g_forks.load(std::memory_order_relaxed), RuntimeError, "the window of group '", group->name(),
           "' belongs to process ", process, ": a forked child connects a group of its own");
  if (!failed.empty())
    throw GroupError(str("group '", group->name(), "', rank ", group->rank(), ": failed before: ", failed));
}

void Window::State::fail(const std::string& reason) {
  failed = reason;
  copy_text(own().reason, reason);
  own().presence.store(Presence::kFailed, std::memory_order_release);
  wake(own());
  throw GroupError(str("group '", group->name(), "', rank ", group->rank(), ": ", reason));
}

void Window::State::check_others(uint64_t wanted, uint64_t among) {
  for (int r = 0; r < group->size(); ++r) {
    RankPage& other = page(r);
    if (r == group->rank() || !is_among(r, among) || other.flag.epoch.load(std::memory_order_acquire) >= wanted)
      continue;
    const Presence presence = other.presence.load(std::memory_order_acquire);
    std::string reason;
    if (presence == Presence::kFailed)
      reason = str("rank ", r, " failed: ", text_of(other.reason));
    else if (presence == Presence::kLeft)
      reason = str("rank ", r, " has left the group");
    else
      reason = group->why_gone(r);
    // It may have published between the two looks, before it went.
    if (!reason.empty() && other.flag.epoch.load(std::memory_order_acquire) < wanted) fail(reason);
  }
}

void Window::State::wait_for(int rank, uint64_t wanted, uint64_t among) {
  RankPage& other = page(rank);
  const auto arrived = [&] { return other.flag.epoch.load(std::memory_order_acquire) >= wanted; };
  if (arrived()) return;
  const auto begin = Clock::now();
  if (spins) do {
      for (int i = 0; i < 32; ++i) {
        if (arrived()) return;
        pause();
      }
    } while (Clock::now() - begin < kSpin);
  const double patience = timeout_seconds();
  while (!arrived()) {
    // The publisher stores the epoch, then looks for sleepers; a sleeper counts itself, then looks at the epoch.
    other.sleepers.fetch_add(1, std::memory_order_seq_cst);
    const uint64_t seen = other.flag.epoch.load(std::memory_order_seq_cst);
    if (seen < wanted) sleep_on(other.flag.epoch, seen);
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

uint64_t Window::phase() {
  state_->settle();
  return state_->epoch;
}

void Window::State::wait_for_all(uint64_t wanted) {
  for (int r = 0; r < group->size(); ++r)
    if (r != group->rank() && is_among(r, among)) wait_for(r, wanted, among);
}

void Window::State::settle() {
  check_usable();
  if (!unmatched) [[likely]]
    return;
  wait_for_all(epoch);
  unmatched = false;
}

void Window::State::publish(uint64_t hash) {
  Flag& flag = own().flag;
  ++epoch;
  flag.call[kept(epoch)].store(hash, std::memory_order_relaxed);
  flag.epoch.store(epoch, std::memory_order_seq_cst);
  wake(own());
}

uint64_t Window::publish(const Signature& call) {
  State& s = *state_;
  s.settle();
  s.own().signatures[kept(s.epoch + 1)] = call;
  s.publish(hash_of(call));
  return s.epoch;
}

void Window::wait(uint64_t epoch, Describe describe, uint64_t among) {
  State& s = *state_;
  RankPage& own = s.own();
  s.among = among;
  const uint64_t call = own.flag.call[kept(epoch)].load(std::memory_order_relaxed);
  for (int r = 0; r < s.group->size(); ++r) {
    if (r == s.group->rank() || !is_among(r, among)) continue;
    s.wait_for(r, epoch, among);
    const RankPage& other = s.page(r);
    const uint64_t theirs = other.flag.call[kept(epoch)].load(std::memory_order_relaxed);
    if (theirs == call) [[likely]]
      continue;
    if (!theirs) {
      s.unmatched = true;
      throw GroupError(str("group '", s.group->name(), "', rank ", s.group->rank(), ": rank ", r, " raised ",
                           text_of(other.abandoned[kept(epoch)])));
    }
    s.fail(str("rank ", r, " calls ", describe(other.signatures[kept(epoch)]), ", but rank ", s.group->rank(),
               " calls ", describe(own.signatures[kept(epoch)])));
  }
}

void Window::abandon(const std::string& reason) {
  State& s = *state_;
  s.check_usable();
  if (s.unmatched && s.epoch >= kKeptPhases) s.wait_for_all(s.epoch - (kKeptPhases - 2));
  copy_text(s.own().abandoned[kept(s.epoch + 1)], reason);
  s.publish(0);
  s.unmatched = true;
}

}  // namespace flashinfer::comm
