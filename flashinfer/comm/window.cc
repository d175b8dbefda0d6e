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
constexpr auto kLookEvery = std::chrono::milliseconds(5);

static_assert(std::endian::native == std::endian::little, "the low word of an epoch lies first");
uint32_t* low_word(std::atomic<uint64_t>& epoch) { return reinterpret_cast<uint32_t*>(&epoch); }
void sleep_on(std::atomic<uint64_t>& epoch, uint64_t seen) {
  syscall(SYS_futex, low_word(epoch), FUTEX_WAIT, static_cast<uint32_t>(seen), &kLook, nullptr, 0);
}
/// The publisher stores the epoch, then looks for sleepers; a sleeper counts itself, then looks at the epoch.
void sleep_until_published(RankPage& other, uint64_t wanted) {
  other.sleepers.fetch_add(1, std::memory_order_seq_cst);
  const uint64_t seen = other.flag.epoch.load(std::memory_order_seq_cst);
  if (seen < wanted) sleep_on(other.flag.epoch, seen);
  other.sleepers.fetch_sub(1, std::memory_order_relaxed);
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
void copy_text(char (&to)[512], const std::string& text) { std::snprintf(to, sizeof to, "%s", text.c_str()); }
std::string text_of(const char (&from)[512]) { return {from, strnlen(from, sizeof from)}; }
}  // namespace

uint64_t hash_of(const Signature& s) {
  uint64_t h = 0;
  for (const int64_t n : s.number) {
    h = (h ^ static_cast<uint64_t>(n)) * 0x9e3779b97f4a7c15u;
    h ^= h >> 29;
  }
  return h | 1;
}

Window::State::State(std::shared_ptr<Group> g, std::unique_ptr<Transport> t, int64_t n)
    : group(std::move(g)),
      bytes(n),
      layout(n, group->size()),
      transport(std::move(t)),
      base(transport->image()),
      shared(transport->is_shared()),
      spins(group->size() <= usable_cpus()),
      process(getpid()),
      forks(comm::forks()) {}
Window::State::~State() {
  if (process != getpid()) return;  // a forked child does not speak for its parent
  if (own().presence.load(std::memory_order_relaxed) == Presence::kThere) tell_presence(Presence::kLeft);
  for (int i = 0; i < 100 && !shared; ++i) {  // the others may still want what was put last
    transport->progress();
    bool sent = true;
    for (int r = 0; r < group->size(); ++r) sent = sent && (r == group->rank() || transport->sent(r));
    if (sent) break;
    transport->sleep();
  }
}

void Window::State::post(const void* part, size_t n) {
  if (shared) return;
  const auto offset = static_cast<size_t>(static_cast<const std::byte*>(part) - base);
  for (int r = 0; r < group->size(); ++r)
    if (r != group->rank()) transport->post(r, offset, n);
}
void Window::State::tell_presence(Presence presence) {
  RankPage& page = own();
  if (presence == Presence::kFailed) post(page.reason, sizeof page.reason);
  page.presence.store(presence, std::memory_order_release);
  post(&page.presence, sizeof page.presence);
  transport->progress();
  wake(page);
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
  tell_presence(Presence::kFailed);
  throw GroupError(str("group '", group->name(), "', rank ", group->rank(), ": ", reason));
}

std::string Window::State::why_gone(int rank) const {
  std::string reason = group->why_gone(rank);
  if (!reason.empty()) return reason;
  const std::string closed = transport->why_closed(rank);
  return closed.empty() ? reason : str("rank ", rank, " ", closed);
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
      reason = why_gone(r);
    // It may have published between the two looks, before it went.
    if (!reason.empty() && other.flag.epoch.load(std::memory_order_acquire) < wanted) fail(reason);
  }
}

void Window::State::wait_for(int rank, uint64_t wanted, uint64_t among) {
  RankPage& other = page(rank);
  const auto arrived = [&] {
    if (other.flag.epoch.load(std::memory_order_acquire) >= wanted) return true;
    if (shared) return false;
    transport->progress();
    return other.flag.epoch.load(std::memory_order_acquire) >= wanted;
  };
  if (arrived()) return;
  const auto begin = Clock::now();
  if (spins) do {
      for (int i = 0; i < 32; ++i) {
        if (arrived()) return;
        pause();
      }
    } while (Clock::now() - begin < kSpin);
  const double patience = timeout_seconds();
  auto next_look = begin;
  while (!arrived()) {
    if (!shared) {
      transport->sleep();
      if (arrived()) return;
      if (Clock::now() < next_look) continue;
      next_look = Clock::now() + kLookEvery;
    } else {
      sleep_until_published(other, wanted);
      if (arrived()) return;
    }
    check_others(wanted, among);
    if (std::chrono::duration<double>(Clock::now() - begin).count() > patience)
      fail(str("rank ", rank, " did not arrive within ", patience, " s (FLASHINFER_COMM_TIMEOUT_S)"));
  }
}

Window::Window(std::unique_ptr<State> state) : state_(std::move(state)) {}
Window::~Window() = default;
const Group& Window::group() const { return *state_->group; }
int64_t Window::bytes() const { return state_->bytes; }
bool Window::is_shared() const { return state_->shared; }
void Window::put(int to, int owner, int64_t offset, int64_t bytes) {
  State& s = *state_;
  if (s.shared || to == s.group->rank() || bytes <= 0) return;
  s.transport->put(to, static_cast<size_t>(of(owner) + offset - s.base), static_cast<size_t>(bytes));
}
void Window::put_to_all(int64_t offset, int64_t bytes) {
  State& s = *state_;
  if (s.shared) return;
  for (int r = 0; r < s.group->size(); ++r) put(r, s.group->rank(), offset, bytes);
}
std::byte* Window::of(int rank) const {
  return state_->base + state_->layout.stride * static_cast<size_t>(rank) + WindowLayout::kPage;
}

uint64_t Window::phase() {
  state_->settle();
  return state_->epoch;
}

void Window::State::flush(uint64_t among) {
  const double patience = timeout_seconds();
  const auto begin = Clock::now();
  for (int r = 0; r < group->size(); ++r) {
    if (r == group->rank() || !is_among(r, among)) continue;
    while (!transport->sent(r) && page(r).presence == Presence::kThere && group->why_gone(r).empty()) {
      if (std::chrono::duration<double>(Clock::now() - begin).count() > patience)
        fail(str("rank ", r, " has not taken this rank's bytes within ", patience, " s (FLASHINFER_COMM_TIMEOUT_S)"));
      transport->progress();
      if (!transport->sent(r)) transport->sleep();
    }
  }
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
  post(&flag, sizeof flag);
  transport->progress();
  wake(own());
}

uint64_t Window::publish(const Signature& call) {
  State& s = *state_;
  s.settle();
  Signature& own = s.own().signatures[kept(s.epoch + 1)];
  own = call;
  s.post(&own, sizeof own);
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
  if (!s.shared) s.flush(among);
}

void Window::abandon(const std::string& reason) {
  State& s = *state_;
  s.check_usable();
  if (s.unmatched && s.epoch >= kKeptPhases) s.wait_for_all(s.epoch - (kKeptPhases - 2));
  auto& text = s.own().abandoned[kept(s.epoch + 1)];
  copy_text(text, reason);
  s.post(text, sizeof text);
  s.publish(0);
  s.unmatched = true;
}

}  // namespace flashinfer::comm
