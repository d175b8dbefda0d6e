// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/cli/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "flashinfer/cli/cli.h"
#include "flashinfer/core/check.h"
#include "flashinfer/core/env.h"
#include "flashinfer/core/printable.h"
#include "flashinfer/core/status_line.h"
#include "flashinfer/record/record.h"

namespace flashinfer::cli {
namespace {

constexpr std::chrono::milliseconds kPatience{2000}, kEvery{250};

bool wanted() {
  const std::string terminal = env::text("TERM");
  if (terminal.empty() || terminal == "dumb" || !errors_to_terminal()) return false;
  const record::Settings log = record::settings();
  return log.level == 0 || (log.destination != "stdout" && log.destination != "stderr");
}

std::string clock_text(double seconds) {
  const auto s = static_cast<long long>(seconds);
  char text[48];
  if (s < 3600)
    std::snprintf(text, sizeof text, "%lld:%02lld", s / 60, s % 60);
  else
    std::snprintf(text, sizeof text, "%lld:%02lld:%02lld", s / 3600, s / 60 % 60, s % 60);
  return text;
}

/// What fits beside the cursor: a line that wraps could not be taken away.
size_t columns() {
  winsize size{};
  return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col - 1u : 79u;
}

bool is_ascii(const std::string& s) {
  return std::ranges::all_of(s, [](char c) { return c >= ' ' && c <= '~'; });
}

}  // namespace

Progress::Progress(std::string what) : what_(std::move(what)) {
  if (wanted()) thread_ = std::thread([this] { loop(); });
}

Progress::~Progress() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  changed_.notify_all();
  thread_.join();
  set_status_line("");
}

void Progress::show(size_t done, size_t total, const std::string& now) {
  if (!thread_.joinable()) return;
  const std::lock_guard lock(mutex_);
  done_ = done;
  total_ = total;
  now_ = printable(now);
}

void Progress::loop() {
  std::unique_lock lock(mutex_);
  auto next = start_ + kPatience;
  while (!changed_.wait_until(lock, next, [this] { return ended_; })) {
    set_status_line(text());
    next = std::chrono::steady_clock::now() + kEvery;
  }
}

std::string Progress::text() const {
  constexpr size_t kBar = 20;
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  std::string s = what_;
  if (total_ > 0) {
    const size_t full = std::min(kBar, done_ * kBar / total_);
    s += str(" [", std::string(full, '#'), std::string(kBar - full, '.'), "] ", done_, " of ", total_, ", ",
             clock_text(seconds));
    if (done_ > 0 && done_ < total_)
      s += ", " + clock_text(seconds * static_cast<double>(total_ - done_) / static_cast<double>(done_)) + " left";
  } else {
    s += str(" ", done_ > 0 ? str(done_, ", ") : "", clock_text(seconds));
  }
  if (!now_.empty() && is_ascii(now_)) s += ": " + now_;
  return s.substr(0, columns());
}

}  // namespace flashinfer::cli
