// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/kernels/emu/watchdog.h"

#include "flashinfer/kernels/emu/machine.h"

#if defined(__linux__) && (defined(__x86_64__) || defined(__aarch64__))
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <csignal>
#include <ctime>

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

namespace flashinfer::emu {
namespace {
constexpr int kTicks = 4;  // of the time without progress
int signal_number() { return SIGRTMAX - 3; }

const void* interrupted_at(void* context) {
  const auto* const c = static_cast<const ucontext_t*>(context);
#if defined(__x86_64__)
  return reinterpret_cast<const void*>(c->uc_mcontext.gregs[REG_RIP]);
#else
  return reinterpret_cast<const void*>(c->uc_mcontext.pc);
#endif
}
void on_tick(int, siginfo_t*, void* context) {
  // A machine exists while the timer does; the signal is for its thread alone.
  if (machine != nullptr) machine->tick(interrupted_at(context), kTicks);
}
}  // namespace

// glibc's timer_create and its kin are symbols of version 2.34, which libraries for older systems must not name: the
// system calls are the same.
struct Watchdog::State {
  struct sigaction before{};
  int timer = 0;
};

Watchdog::Watchdog(double seconds) {
  struct sigaction action{};
  action.sa_sigaction = on_tick;
  // Not blocked in its handler, which may not return: the fiber that it interrupts is left for ever.
  action.sa_flags = SA_SIGINFO | SA_NODEFER | SA_RESTART;
  auto* const state = new State;
  sigevent event{};
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = signal_number();
  event.sigev_notify_thread_id = static_cast<int>(::syscall(SYS_gettid));
  if (::sigaction(signal_number(), &action, &state->before) != 0) {
    delete state;
    return;
  }
  if (::syscall(SYS_timer_create, CLOCK_THREAD_CPUTIME_ID, &event, &state->timer) != 0) {
    ::sigaction(signal_number(), &state->before, nullptr);
    delete state;
    return;
  }
  const double every = seconds / kTicks;
  const auto whole = static_cast<time_t>(every);
  const timespec t{whole, static_cast<long>((every - static_cast<double>(whole)) * 1e9)};
  const itimerspec times{t, t};
  ::syscall(SYS_timer_settime, state->timer, 0, &times, nullptr);
  state_ = state;
}
Watchdog::~Watchdog() {
  if (state_ == nullptr) return;
  ::syscall(SYS_timer_delete, state_->timer);
  // One that is pending is delivered before the system call returns, so to the handler that still stands.
  ::sigaction(signal_number(), &state_->before, nullptr);
  delete state_;
}

}  // namespace flashinfer::emu
#else
namespace flashinfer::emu {
struct Watchdog::State {};
Watchdog::Watchdog(double) {}
Watchdog::~Watchdog() = default;
}  // namespace flashinfer::emu
#endif
