// SPDX-License-Identifier: Apache-2.0
// Progress on stderr, for whatever takes longer than a second: rewritten in place on a terminal, otherwise a line now
// and then.
#pragma once
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <string>

namespace llm {

class Progress {
 public:
  explicit Progress(std::string what, bool quiet = false) : what_(std::move(what)), quiet_(quiet) {}
  void update(const std::string& how_far) {
    const double now = seconds();
    if (quiet_ || now < 1 || now < next_) return;
    const bool terminal = ::isatty(2) != 0;
    std::fprintf(stderr, terminal ? "\r\033[K%s: %s" : "%s: %s\n", what_.c_str(), how_far.c_str());
    std::fflush(stderr);
    next_ = now + (terminal ? 0.2 : 5);
    open_ = terminal;
  }
  void update(double fraction) { update(std::to_string(static_cast<int>(100 * fraction)) + " %"); }
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count(); }
  ~Progress() {
    if (open_) std::fputs("\r\033[K", stderr);
  }

 private:
  std::string what_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  double next_ = 0;
  bool quiet_ = false, open_ = false;
};

}  // namespace llm
