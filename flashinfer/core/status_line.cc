// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/core/status_line.h"

#include <atomic>
#include <cstdio>
#include <mutex>
#include <string>
#include <utility>

#include "flashinfer/core/fork_mutex.h"

namespace flashinfer {
namespace {

// The last of all that are taken: warnings are printed under any of the others.
constinit ForkMutex g_mutex(ForkLayer::kCore, 1000);
std::atomic<bool> g_used{false};  // a program without a line writes without a lock
int g_hidden = 0;
bool g_drawn = false;

std::string& line() {
  static std::string& text = *new std::string;
  return text;
}

void put(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stderr); }

void erase() {
  if (std::exchange(g_drawn, false)) put("\r\x1b[K");
}

void draw() {
  if (line().empty() || g_hidden > 0) return;
  put("\r\x1b[K" + line());
  g_drawn = true;
}

}  // namespace

void set_status_line(std::string_view text) {
  g_used.store(true, std::memory_order_relaxed);
  const std::lock_guard lock(g_mutex);
  line() = text;
  if (text.empty())
    erase();
  else
    draw();
}

void write_stderr(std::string_view text) {
  if (!g_used.load(std::memory_order_relaxed)) return put(text);
  const std::lock_guard lock(g_mutex);
  erase();
  put(text);
  draw();
}

StatusLineHidden::StatusLineHidden() {
  if (!g_used.load(std::memory_order_relaxed)) return;
  const std::lock_guard lock(g_mutex);
  erase();
  ++g_hidden;
  hidden_ = true;
}

StatusLineHidden::~StatusLineHidden() {
  if (!hidden_) return;
  const std::lock_guard lock(g_mutex);
  if (--g_hidden == 0) draw();
}

}  // namespace flashinfer
