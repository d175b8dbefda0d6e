// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/gemm/cublaslt/search.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "flashinfer/core/check.h"
#include "flashinfer/core/cuda/device.h"
#include "flashinfer/core/env.h"
#include "flashinfer/core/hex.h"
#include "flashinfer/jit/winners.h"

namespace flashinfer::gemm {
namespace {

constexpr double kGain = 0.97;  // of the first way's time
constexpr double kLong = 2e-3;  // s; a run this long needs no repetition
constexpr int kRounds = 3, kRuns = 5;
constexpr double kNever = std::numeric_limits<double>::infinity();

jit::Environment environment_of(int device) {
  const cuda::DeviceInfo& gpu = cuda::device_info(device);
  return {{"gpu", gpu.name},
          {"compute_capability", str(gpu.major, ".", gpu.minor)},
          {"multiprocessors", str(gpu.sms)},
          {"cublaslt", str(cublaslt::library().version)},
          {"driver", cuda::version_text(cuda::driver().version)}};
}

}  // namespace

std::string name_of(const cublaslt::Algorithm& a) {
  std::string text;
  for (const uint64_t x : a.data) text += hex_word(x);
  return text;
}

size_t fastest_way(int device, cuda::Handle stream, size_t n, const std::function<cublaslt::Status(size_t)>& run) {
  const cuda::BesideCapture beside;  // of other streams
  cuda::Event begin(device, true), end(device, true);
  std::vector<double> least(n, kNever);
  std::vector<int> runs(n, 0);
  const auto time = [&](size_t way, int count) {  // seconds a run; kNever when it fails
    begin.record(stream);
    for (int i = 0; i < count; ++i)
      if (run(way) != 0) return kNever;
    end.record(stream);
    end.wait();
    return end.seconds_since(begin) / count;
  };
  for (size_t way = 0; way < n; ++way) {
    if (time(way, 1) == kNever) continue;
    const double once = time(way, 1);
    if (once != kNever) runs[way] = once > kLong ? 1 : kRuns;
  }
  for (int round = 0; round < kRounds; ++round)
    for (size_t way = 0; way < n; ++way)
      if (runs[way] > 0) least[way] = std::min(least[way], time(way, runs[way]));
  const auto best = static_cast<size_t>(std::ranges::min_element(least) - least.begin());
  if (env::flag("FLASHINFER_JIT_VERBOSE"))
    std::fprintf(stderr, "flashinfer: cublaslt: algorithm %zu of %zu takes %.1f us, the first %.1f us\n", best, n,
                 least[best] * 1e6, least[0] * 1e6);
  return least[best] < kGain * least[0] ? best : 0;
}

bool settle(int device, cuda::Handle stream, const std::string& key, std::span<const std::string> names,
            const std::function<cublaslt::Status(size_t)>& run, size_t& chosen) {
  const jit::Environment environment = environment_of(device);
  if (const auto kept = jit::find_winner(environment, "cublaslt", key))
    for (size_t i = 0; i < names.size(); ++i)
      if (names[i] == *kept) return chosen = i, true;  // what the heuristic does not name any more is measured anew
  if (cuda::capturing(device, stream)) return false;
  chosen = fastest_way(device, stream, names.size(), run);
  jit::keep_winner(environment, "cublaslt", key, names[chosen]);
  return true;
}

}  // namespace flashinfer::gemm
