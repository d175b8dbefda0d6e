// SPDX-License-Identifier: Apache-2.0
// All-reduce between processes of one thread each, beside a copy of as many bytes in each process, in turns: medians of
// the slowest rank. Usage: bench_all_reduce [ranks (2)] [KB of the only row] [dtype (bf16)]. "+ norm" is pattern 1:
// residual and RMSNorm too. Beside Open MPI and gloo: bench/python/all_reduce.py.
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

void run_rank(const std::string& name, int rank, int ranks, int64_t only, DType dtype) {
  const auto group = comm::Group::connect(name, rank, ranks);
  constexpr int64_t kMost = 64 << 20;
  const int64_t item = size_of(dtype), hidden = 8192 / item;
  AllReduceFusionWorkspace workspace({.group = name + "w",
                                      .rank = rank,
                                      .world_size = ranks,
                                      .max_token_num = kMost / item / hidden,
                                      .hidden_dim = hidden,
                                      .dtype = dtype});
  if (rank == 0)
    std::printf("%d ranks, %s, hidden %d\n%9s %12s %12s %9s %12s %9s\n", ranks, dtype == DType::kF32 ? "f32" : "bf16",
                static_cast<int>(hidden), "KB", "copy us", "sum us", "copy/sum", "+ norm us", "/ sum");
  for (int64_t bytes = 16 << 10; bytes <= kMost; bytes *= 4) {
    if (only && only != bytes) continue;
    const int64_t rows = bytes / item / hidden;
    const Tensor x = Tensor::zeros({rows, hidden}, dtype), y = Tensor::zeros({rows, hidden}, dtype),
                 residual = Tensor::zeros({rows, hidden}, dtype), gamma = Tensor::zeros({hidden}, dtype);
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
  const int64_t only = argc > 2 ? std::atoll(argv[2]) << 10 : 0;
  const DType dtype = argc > 3 && std::strcmp(argv[3], "f32") == 0 ? DType::kF32 : DType::kBF16;
  const std::string name = "bench-" + std::to_string(getpid());
  setenv("FLASHINFER_NUM_THREADS", "1", 1);
  for (int r = 1; r < ranks; ++r)
    if (fork() == 0) {
      run_rank(name, r, ranks, only, dtype);
      _exit(0);
    }
  run_rank(name, 0, ranks, only, dtype);
  while (wait(nullptr) > 0) {
  }
}
