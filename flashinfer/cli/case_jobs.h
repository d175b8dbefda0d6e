// SPDX-License-Identifier: Apache-2.0
// Parts of a long command in processes of their own: for the emulator, which runs one launch at a time in a process.
#pragma once
#include <cstddef>
#include <functional>
#include <string>

namespace flashinfer::cli {

/// Runs `part(i)` for i in [0, n) in `jobs` child processes and gives the text that each returns to `done` in the
/// calling process, as they end. `died`: part i ended its process by this signal (0: it exited); the others go on.
/// RuntimeError when the system gives no process.
void in_processes(size_t n, int jobs, const std::function<std::string(size_t i)>& part,
                  const std::function<void(size_t i, const std::string& text)>& done,
                  const std::function<void(size_t i, int signal)>& died);

}  // namespace flashinfer::cli
