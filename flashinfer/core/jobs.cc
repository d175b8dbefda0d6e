// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/core/jobs.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "flashinfer/core/env.h"

namespace flashinfer {

void for_each_job(int64_t n, int jobs, const std::function<void(int64_t)>& job,
                  const std::function<void(const std::function<void()>&)>& around) {
  if (jobs <= 0) jobs = static_cast<int>(env::integer("MAX_JOBS"));
  if (jobs <= 0) jobs = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  std::atomic<int64_t> next{0};
  std::mutex mutex;
  std::exception_ptr first;
  const std::function<void()> loop = [&] {
    for (int64_t i = next++; i < n; i = next++) try {
        job(i);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!first) first = std::current_exception();
      }
  };
  const auto thread = [&] { around ? around(loop) : loop(); };
  std::vector<std::thread> threads;
  for (int64_t t = 1; t < std::min<int64_t>(jobs, n); ++t) threads.emplace_back(thread);
  thread();
  for (std::thread& t : threads) t.join();
  if (first) std::rethrow_exception(first);
}

}  // namespace flashinfer
