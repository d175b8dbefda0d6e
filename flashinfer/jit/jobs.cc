// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>

#include "flashinfer/core/env.h"
#include "flashinfer/jit/engine.h"

namespace flashinfer::jit {

void for_each_job(int64_t n, int jobs, const std::function<void(int64_t)>& work) {
  if (jobs <= 0) jobs = static_cast<int>(env::integer("MAX_JOBS"));
  if (jobs <= 0) jobs = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  std::atomic<int64_t> next{0};
  std::mutex mutex;
  std::exception_ptr first;
  const auto loop = [&] {
    for (int64_t i = next++; i < n; i = next++) try {
        work(i);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!first) first = std::current_exception();
      }
  };
  std::vector<std::thread> threads;
  for (int64_t t = 1; t < std::min<int64_t>(jobs, n); ++t) threads.emplace_back(loop);
  loop();
  for (std::thread& t : threads) t.join();
  if (first) std::rethrow_exception(first);
}

}  // namespace flashinfer::jit
