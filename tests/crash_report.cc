// SPDX-License-Identifier: Apache-2.0
// In every test program without a sanitizer: one that dies of a bad access says where, on stderr, since the machine
// that it ran on, and its core file, may be gone.
#include <execinfo.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <initializer_list>

namespace {

void on_crash(int signal, siginfo_t* info, void*) {
  char line[96];
  const int n = std::snprintf(line, sizeof line, "died of signal %d at address %p:\n", signal, info->si_addr);
  if (n > 0 && ::write(2, line, static_cast<size_t>(n)) < 0) return;
  void* frames[64];
  ::backtrace_symbols_fd(frames, ::backtrace(frames, 64), 2);
  ::raise(signal);  // when the handler returns: the default action stands again (SA_RESETHAND)
}

[[maybe_unused]] const bool installed = [] {
  static char stack[1 << 16];  // a fiber's may be full
  stack_t own{};
  own.ss_sp = stack, own.ss_size = sizeof stack;
  ::sigaltstack(&own, nullptr);
  struct sigaction action{};
  action.sa_sigaction = on_crash;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESETHAND;
  for (const int signal : {SIGSEGV, SIGBUS, SIGILL, SIGFPE}) ::sigaction(signal, &action, nullptr);
  void* frame = nullptr;
  ::backtrace(&frame, 1);  // loads the unwinder, which allocates
  return true;
}();

}  // namespace
