// SPDX-License-Identifier: Apache-2.0
// The exchanges of a spread context between GPUs, on the emulator and with a fake NCCL: the bytes of the CPU's ranks,
// whose tests compare with definitions.
#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "tests/comm/all_reduce_call.h"
#include "tests/comm/gpu_collectives.h"

namespace flashinfer {
namespace {

/// Bytes of a rank's results of f(workspace, rank, device), three times.
template <class F>
std::vector<std::string> results(int ranks, int64_t bytes, const char* backend, uint64_t seed, F f) {
  const std::string name = fresh_name();
  std::vector<std::string> all(static_cast<size_t>(ranks));
  const auto outcomes = run_threads(ranks, [&](int r) {
    const jit::Emulation emulation(seed);
    const auto group = comm::Group::connect(name, r, ranks);
    const Tensor memory = *backend ? share_on_gpu(group, kEmu, bytes, backend) : comm::share(group, bytes);
    for (int i = 0; i < 3; ++i) all[static_cast<size_t>(r)] += f(memory, r, *backend ? kEmu : kCpu);
  });
  for (size_t r = 0; r < outcomes.size(); ++r) EXPECT_EQ(outcomes[r], "") << backend << ", rank " << r;
  return all;
}
template <class F>
void expect_cpus_results(int ranks, int64_t bytes, F f) {
  const auto want = results(ranks, bytes, "", 0, f);
  for (const uint64_t seed : {0, 1, 2, 3})
    EXPECT_EQ(results(ranks, bytes, "peers", seed, f) == want, true) << ranks << " ranks, seed " << seed;
  EXPECT_EQ(results(ranks, bytes, "nccl", 1, f) == want, true) << ranks << " ranks, nccl";
}
struct Context {
  int ranks;
  int64_t rows, d;
  DType dtype;
};

TEST_F(GpuCollectives, ExchangesOfASpreadContext) {
  for (const Context& c :
       {Context{3, 700, 40, DType::kBF16}, Context{3, 0, 8, DType::kBF16}, Context{1, 2, 16, DType::kF16}})
    expect_cpus_results(c.ranks, 1 << 16, [&](const Tensor& memory, int r, Device d) {
      const unsigned seed = 11 + static_cast<unsigned>(r);
      const Tensor o = on(random_tensor({c.rows * c.ranks, c.d}, c.dtype, seed), d),
                   stats = on(random_tensor({c.rows * c.ranks, 4}, DType::kF32, seed + 9), d);
      const auto [out, out_stats] = decode_cp_a2a_alltoall(
          {.partial_o = o.view().view({c.rows, c.ranks, c.d}),
           .softmax_stats = stats.view().view({c.rows, c.ranks, 4}),
           .workspace = TensorView(memory.data(), DType::kI64, std::array<int64_t, 2>{c.ranks, 8192},
                                   std::array<int64_t, 2>{memory.view().stride(0) / 8, 1}, d),
           .cp_rank = r,
           .cp_size = c.ranks});
      return bytes_of(out) + bytes_of(out_stats);
    });
}
/// Weights of 0, NaN and infinite LSE, rows of NaN that are not read.
TEST_F(GpuCollectives, SumsOfASpreadContext) {
  for (const Context& c :
       {Context{3, 9, 72, DType::kF16}, Context{3, 700, 40, DType::kBF16}, Context{1, 3, 16, DType::kF16}})
    for (const char* mode : {"base2", "basee"})
      expect_cpus_results(c.ranks, 1 << 16, [&](const Tensor& memory, int r, Device d) {
        const unsigned seed = 11 + static_cast<unsigned>(r);
        const Tensor o = random_tensor({c.rows * c.ranks, c.d}, c.dtype, seed),
                     lse = random_tensor({c.rows, c.ranks}, DType::kF32, seed + 9);
        for (int64_t i = 0; i < lse.numel(); ++i) {
          float& x = lse.data_as<float>()[i];
          const bool lost = (i + r) % 4 == 0 || (r > 0 && i % 5 == 0) || i < c.ranks;
          if (lost) x = i % 3 == 0 ? -INFINITY : i % 3 == 1 ? NAN : INFINITY;
          for (int64_t j = 0; lost && j < c.d; ++j) ref::put(o.view(), {i, j}, NAN);
        }
        const Tensor on_o = on(o, d), on_lse = on(lse, d);
        const Tensor sums = decode_cp_a2a_lse_reduce({.partial_o = on_o.view().view({c.rows, c.ranks, c.d}),
                                                      .partial_lse = on_lse,
                                                      .workspace = memory,
                                                      .cp_rank = r,
                                                      .cp_size = c.ranks,
                                                      .lse_mode = mode});
        return bytes_of(sums);
      });
}

/// A rank that raised alone would leave the others waiting.
TEST_F(GpuCollectives, MemoryThatOneRankCannotHaveIsAnErrorOnAll) {
  const auto with = [](Device device, int64_t bytes_of_1, const char* backend) {
    const std::string name = fresh_name();
    return run_threads(2, [&](int r) {
      share_on_gpu(comm::Group::connect(name, r, 2), r ? device : kEmu, r ? bytes_of_1 : 512, r ? backend : "auto");
    });
  };
  for (const Outcome& o : with(kEmu, 0, "auto")) EXPECT_HAS(o, "rank 1: share_on_gpu: bytes is 0");
  for (const Outcome& o : with(kCpu, 512, "auto")) EXPECT_HAS(o, "rank 1: share_on_gpu: device is cpu");
  for (const Outcome& o : with(kEmu, 512, "shm")) EXPECT_HAS(o, "rank 1: share_on_gpu: backend is 'shm'");
  for (const Outcome& o : with(kEmu, 513, "auto"))
    EXPECT_HAS(o, "rank 1 has bytes=513, backend='auto', but rank 0 has");
}

}  // namespace
}  // namespace flashinfer
