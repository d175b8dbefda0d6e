// SPDX-License-Identifier: Apache-2.0
// Finds code of a kernel that runs without end and without any access, which no hook sees: a loop over registers, or a
// plain load that the compiler has moved out of its loop.
#pragma once
#include <cstdint>

namespace flashinfer::emu {

/// While it lives, the calling thread is interrupted again and again (by its processor time, so that a loaded machine
/// changes nothing). When nothing has moved between several interruptions and the last one met code of a kernel,
/// Machine::idle() is called there, on the fiber's stack. One at a time (Machine's lock).
class Watchdog {
 public:
  /// seconds: processor time without progress that is too long.
  explicit Watchdog(double seconds);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

 private:
  struct State;
  State* state_ = nullptr;  // null: the system has no such timer
};

}  // namespace flashinfer::emu
