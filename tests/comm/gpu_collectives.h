// SPDX-License-Identifier: Apache-2.0
// Collectives of GPU tensors on the emulator with a GPU a rank, beside the same on the CPU.
#pragma once
#include <string>
#include <vector>

#include "flashinfer/core/transfer.h"
#include "flashinfer/flashinfer.h"
#include "flashinfer/jit/emulator.h"
#include "tests/comm/nccl_machine.h"
#include "tests/comm/ranks.h"

namespace flashinfer {

inline constexpr Device kEmu{DeviceType::kEmu, 0};

inline Tensor on(const Tensor& t, Device d) { return to_device(t, d); }

struct GpuCollectives : NcclMachine {
  static AllReduceFusionWorkspaceInit workspace(const std::string& group, int rank, int ranks, const char* backend) {
    return {.group = group,
            .rank = rank,
            .world_size = ranks,
            .max_token_num = 8,
            .hidden_dim = 128,
            .dtype = DType::kF32,
            .backend = backend,
            .device = *backend ? "emu" : "cpu"};
  }
  /// What f(rank, workspace, device) returns on each rank; backend "": on the CPU.
  template <class F>
  static std::vector<std::string> bytes(int ranks, const char* backend, uint64_t seed, F f) {
    const std::string group = fresh_name();
    std::vector<std::string> all(static_cast<size_t>(ranks));
    const auto outcomes = run_threads(ranks, [&](int r) {
      const jit::Emulation emulation(seed);
      AllReduceFusionWorkspaceInit init = workspace(group, r, ranks, backend);
      if (!*backend) init.backend = "auto";
      AllReduceFusionWorkspace w(init);
      for (int i = 0; i < 3; ++i) all[static_cast<size_t>(r)] += f(r, w, *backend ? kEmu : kCpu);
      w.destroy();
    });
    for (size_t r = 0; r < outcomes.size(); ++r) EXPECT_EQ(outcomes[r], "") << backend << ", rank " << r;
    return all;
  }
  template <class F>
  static void expect_cpus_bytes(int ranks, const std::string& what, F f) {
    const auto want = bytes(ranks, "", 0, f);
    for (const uint64_t seed : {0, 1, 2})
      EXPECT_EQ(bytes(ranks, "peers", seed, f) == want, true) << what << ", peers, seed " << seed;
    EXPECT_EQ(bytes(ranks, "nccl", 1, f) == want, true) << what << ", nccl";
  }
};

}  // namespace flashinfer
