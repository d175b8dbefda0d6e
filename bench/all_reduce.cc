// SPDX-License-Identifier: Apache-2.0
// All-reduce between processes of one thread each, beside a copy of as many bytes in each process, in turns: medians of
// the slowest rank. Usage: bench_all_reduce [ranks] (2). The rows "+ norm" are pattern 1: residual and RMSNorm too.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "bench/clock.h"
#include "flashinfer/flashinfer.h"

namespace {

using namespace flashinfer;
using namespace flashinfer::bench;

/// Seconds of a call by the slowest rank: each rank's median of `rounds`, `inner` calls at a time.
template <class F>
double slowest_rank(comm::Group& group, int rounds, int inner, const F& call) {
  std::vector<double> times;
  for (int i = 0; i < rounds + 1; ++i) {
    group.barrier();
    const double all = seconds([&] {
      for (int k = 0; k < inner; ++k) call();
    });
    if (i) times.push_back(all / inner);
  }
  double slowest = 0;
  for (const std::string& s : group.exchange("median", str(median(times)))) slowest = std::max(slowest, std::stod(s));
  return slowest;
}

void run_rank(const std::string& name, int rank, int ranks) {
  const auto group = comm::Group::connect(name, rank, ranks);
  constexpr int64_t kHidden = 4096, kMost = 64 << 20;
  AllReduceFusionWorkspace workspace({.group = name + "w",
                                      .rank = rank,
                                      .world_size = ranks,
                                      .max_token_num = kMost / 2 / kHidden,
                                      .hidden_dim = kHidden,
                                      .dtype = DType::kBF16});
  if (rank == 0)
    std::printf("%d ranks, bf16, hidden 4096\n%9s %12s %12s %9s %12s %9s\n", ranks, "KB", "copy us", "sum us",
                "copy/sum", "+ norm us", "/ sum");
  for (int64_t bytes = 16 << 10; bytes <= kMost; bytes *= 4) {
    const int64_t rows = bytes / 2 / kHidden;
    const Tensor x = Tensor::zeros({rows, kHidden}, DType::kBF16), y = Tensor::zeros({rows, kHidden}, DType::kBF16),
                 residual = Tensor::zeros({rows, kHidden}, DType::kBF16),
                 gamma = Tensor::zeros({kHidden}, DType::kBF16);
    const int inner = static_cast<int>(std::clamp<int64_t>((8 << 20) / bytes, 1, 200));
    const double copy = slowest_rank(*group, 15, inner, [&] {
      std::memcpy(y.data(), x.data(), static_cast<size_t>(bytes));
      asm volatile("" ::: "memory");
    });
    const double sum = slowest_rank(
        *group, 15, inner, [&] { allreduce_fusion({.input = x, .workspace = workspace, .pattern = 0, .output = y}); });
    const double norm = slowest_rank(*group, 15, inner, [&] {
      allreduce_fusion({.input = x,
                        .workspace = workspace,
                        .pattern = 1,
                        .residual_out = residual,
                        .norm_out = y,
                        .residual_in = residual,
                        .rms_gamma = gamma});
    });
    if (rank == 0)
      std::printf("%9lld %12.1f %12.1f %9.2f %12.1f %9.2f\n", static_cast<long long>(bytes >> 10), copy * 1e6,
                  sum * 1e6, copy / sum, norm * 1e6, norm / sum);
    std::fflush(stdout);
  }
}
}  // namespace

int main(int argc, char** argv) {
  const int ranks = argc > 1 ? std::atoi(argv[1]) : 2;
  const std::string name = "bench-" + std::to_string(getpid());
  setenv("FLASHINFER_NUM_THREADS", "1", 1);
  for (int r = 1; r < ranks; ++r)
    if (fork() == 0) {
      run_rank(name, r, ranks);
      _exit(0);
    }
  run_rank(name, 0, ranks);
  while (wait(nullptr) > 0) {
  }
}
