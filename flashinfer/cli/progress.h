// SPDX-License-Identifier: Apache-2.0
// How far a long command is, as one line at the bottom of the terminal:
//   replay [########............] 45 of 120, 0:12, 0:20 left: rmsnorm
// It appears after two seconds, goes away with the object, and takes turns with other output (core/status_line.h).
#pragma once
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace flashinfer::cli {

class Progress {
 public:
  /// Shows nothing when stderr is no terminal or a dumb one (TERM), or while calls are logged to one.
  explicit Progress(std::string what);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// `done` of `total` parts (0: not known); `now` is what is being done. From any thread.
  void show(size_t done, size_t total, const std::string& now = "");

 private:
  void loop();
  std::string text() const;

  const std::string what_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::mutex mutex_;
  std::condition_variable changed_;
  size_t done_ = 0, total_ = 0;
  std::string now_;
  bool ended_ = false;
  std::thread thread_;  // draws, so that the time goes on while a part takes long
};

}  // namespace flashinfer::cli
