// SPDX-License-Identifier: Apache-2.0
// Flushes pending captured calls at exit and on SIGTERM. A signal handler may do almost nothing, so it wakes a thread,
// which flushes and then raises the signal again with its former handler.
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <vector>

#include "flashinfer/core/check.h"
#include "flashinfer/record/locks.h"
#include "flashinfer/record/recorder.h"

namespace flashinfer::record {
namespace {

struct Waiting {
  ForkMutex& mutex = g_at_exit_mutex;
  std::vector<Recorder*> recorders;  // they live as long as the process
  bool registered = false, watched = false;
};
Waiting& waiting() {
  static Waiting& w = *new Waiting;
  return w;
}
std::vector<Recorder*> recorders() {
  Waiting& w = waiting();
  const std::lock_guard lock(w.mutex);
  return w.recorders;
}

struct sigaction g_before;  // of SIGTERM
int g_wake[2] = {-1, -1};
volatile sig_atomic_t g_signals = 0;

void pass_on() {
  ::sigaction(SIGTERM, &g_before, nullptr);
  ::kill(::getpid(), SIGTERM);
}

/// A second signal does not wait for the first one's flush.
void on_sigterm(int) {
  const int error = errno;
  g_signals = g_signals + 1;
  if (g_signals > 1)
    pass_on();
  else if (::write(g_wake[1], "x", 1) != 1)
    pass_on();
  errno = error;
}

void flush_quietly(const char* when) {
  for (Recorder* r : recorders()) {
    int64_t n = 0;
    try {
      n = r->flush_graphs(true, 0);
    } catch (const std::exception& e) {
      r->sink().write(str("[DUMP ERROR (outputs) in flush_graph_dumps (", when, ")]: ", e.what(), "\n"));
    }
    if (n > 0) r->sink().write(str("flush_graph_dumps (", when, "): wrote ", n, " pending entries\n"));
  }
}

void watch_sigterm() {
  struct sigaction now{};
  if (::sigaction(SIGTERM, nullptr, &now) != 0 || now.sa_handler == SIG_IGN || ::pipe2(g_wake, O_CLOEXEC) != 0) return;
  sigset_t all, mine;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &mine);  // blocked in this thread, so that signals go to the program's own threads
  std::thread([] {
    char c;
    while (::read(g_wake[0], &c, 1) < 0 && errno == EINTR) {
    }
    flush_quietly("SIGTERM");
    pass_on();
  }).detach();
  pthread_sigmask(SIG_SETMASK, &mine, nullptr);
  struct sigaction ours{};
  ours.sa_handler = on_sigterm;
  ours.sa_flags = SA_RESTART;
  sigemptyset(&ours.sa_mask);
  ::sigaction(SIGTERM, &ours, &g_before);
}

}  // namespace

void flush_at_the_end(Recorder& r) {
  Waiting& w = waiting();
  const std::lock_guard lock(w.mutex);
  if (std::ranges::find(w.recorders, &r) == w.recorders.end()) w.recorders.push_back(&r);
  if (!w.registered)
    std::atexit([] { flush_quietly("atexit"); });  // after the driver was loaded, so before its own handler
  if (!w.watched) watch_sigterm();
  w.registered = w.watched = true;
}

void forget_graphs() {
  Waiting& w = waiting();
  w.recorders.clear();
  w.watched = false;
  g_signals = 0;
  struct sigaction now{};
  if (::sigaction(SIGTERM, nullptr, &now) == 0 && now.sa_handler == on_sigterm)
    ::sigaction(SIGTERM, &g_before, nullptr);
}

int64_t flush_graph_dumps(bool synchronize, uint64_t graph) {
  int64_t n = 0;
  for (Recorder* r : recorders()) n += r->flush_graphs(synchronize, graph);
  return n;
}

int64_t clear_graph_dumps() {
  int64_t n = 0;
  for (Recorder* r : recorders()) n += r->clear_graphs();
  return n;
}

}  // namespace flashinfer::record
