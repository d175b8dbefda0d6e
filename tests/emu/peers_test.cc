// SPDX-License-Identifier: Apache-2.0
// Several emulated GPUs that share memory: planted bugs are found under every schedule, with their line, and nothing is
// said of the same kernels without them.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "flashinfer/core/check.h"
#include "flashinfer/kernels/emu/emu.h"
#include "kernels/peer_params.h"
#include "planted.h"
#include "test_paths.h"

namespace flashinfer::emu {
namespace {

constexpr size_t kBlocks = 2, kThreads = 64;
cuda::Launch cooperative() { return launch(kBlocks, kThreads, 0, 1, true); }

/// The memory of the GPUs, and the same launches on each.
struct Peers {
  explicit Peers(uint32_t n) : ranks(n) {
    for (uint32_t r = 0; r < n; ++r) {
      data.emplace_back(2 * kPeerSlot), flags.emplace_back(kBlocks * n), calls.emplace_back(kBlocks);
      out.emplace_back(kBlocks * kThreads);
    }
  }
  Report run(const std::string& name, int launches, uint64_t seed, bool count = false) {
    void* module = ::dlopen(FI_TEST_LIBRARY("libemu_peers"), RTLD_NOW | RTLD_LOCAL);  // the loader keeps it
    if (module == nullptr) throw std::runtime_error(::dlerror());
    reinterpret_cast<void (*)(void*)>(::dlsym(module, "flashinfer_emu_bind"))(hooks());
    auto* kernel = reinterpret_cast<void (*)(const void*)>(::dlsym(module, name.c_str()));
    if (kernel == nullptr) throw std::runtime_error("no kernel " + name);
    std::vector<PeerParams> params(ranks);
    std::vector<std::vector<Work>> gpus(ranks);
    std::vector<Range> memory;
    for (uint32_t r = 0; r < ranks; ++r) {
      const int gpu = static_cast<int>(r);
      for (uint32_t g = 0; g < ranks; ++g) params[r].data[g] = data[g].data(), params[r].flags[g] = flags[g].data();
      params[r].calls = calls[r].data(), params[r].out = out[r].data(), params[r].rank = r, params[r].ranks = ranks;
      for (int i = 0; i < launches; ++i) gpus[r].push_back({kernel, &params[r], sizeof(PeerParams), shape});
      memory.push_back({data[r].data(), data[r].size() * 4, nullptr, gpu});
      memory.push_back({flags[r].data(), flags[r].size() * 4, nullptr, gpu});
      memory.push_back({calls[r].data(), calls[r].size() * 4, nullptr, gpu});
      memory.push_back({out[r].data(), out[r].size() * 4, nullptr, gpu});
    }
    std::sort(memory.begin(), memory.end(), [](const Range& a, const Range& b) { return a.begin < b.begin; });
    Options options;
    options.seed = seed, options.memory = memory, options.count = count;
    return run_together(gpus, options);
  }
  uint32_t ranks;
  cuda::Launch shape = cooperative();
  std::vector<std::vector<float>> data, out;
  std::vector<std::vector<uint32_t>> flags, calls;
};

struct Planted {
  const char* name;
  int launches;
  const char* says;
};
const Planted kPlanted[] = {
    {"no_fence", 1, "data race at global memory"},       {"fence_of_gpu", 1, "data race at global memory"},
    {"release_of_gpu", 1, "data race at global memory"}, {"acquire_of_gpu", 1, "data race at global memory"},
    {"relaxed_wait", 1, "data race at global memory"},   {"plain_flag", 1, "data race at global memory"},
    {"early_signal", 1, "data race at global memory"},   {"late_data", 1, "data race at global memory"},
    {"waiter_alone", 1, "data race at global memory"},   {"flag_reset", 1, "one of the stores may be lost"},
    {"one_slot", 1, "data race at global memory"},       {"no_last_barrier", 2, "data race at global memory"},
    {"old_epoch", 2, "data race at global memory"},      {"slots_in_turn", 3, "data race at global memory"},
    {"no_signal", 1, "reads the same again and again"},
};

TEST(Peers, EachBugIsFoundUnderEverySchedule) {
  for (const Planted& b : kPlanted)
    for (const uint32_t ranks : {2u, 4u})
      for (const uint64_t seed : kSeeds) {
        const Report r = Peers(ranks).run(std::string("bug_") + b.name, b.launches, seed);
        EXPECT_NE(r.error.find(b.says), std::string::npos) << b.name << ", " << ranks << " GPUs, seed " << seed << ": "
                                                           << (r.error.empty() ? "nothing found" : r.error);
        EXPECT_NE(r.error.find("peers.cc:"), std::string::npos) << b.name << " names no line: " << r.error;
        EXPECT_NE(r.error.find(" of GPU "), std::string::npos) << b.name << " names no GPU: " << r.error;
      }
}

TEST(Peers, NothingIsSaidOfTheSameKernelsWithoutTheBug) {
  for (const Planted& b : kPlanted)
    for (const uint32_t ranks : {2u, 4u})
      for (const uint64_t seed : kSeeds) {
        Peers p(ranks);
        EXPECT_EQ(p.run(std::string("right_") + b.name, b.launches, seed).error, "")
            << b.name << ", " << ranks << " GPUs, seed " << seed;
        for (uint32_t r = 0; r < ranks; ++r)
          for (const float x : p.out[r]) ASSERT_EQ(x, static_cast<float>(ranks * (ranks + 1) / 2)) << b.name;
      }
}

/// The launches of a GPU may have different sizes; what one wrote the next one reads.
TEST(Peers, AFurtherLaunchFollowsTheOneBefore) {
  for (const uint64_t seed : kSeeds) {
    Peers p(2);
    EXPECT_EQ(p.run("right_old_epoch", 5, seed).error, "");
    EXPECT_EQ(p.calls[0], std::vector<uint32_t>(kBlocks, 5));
  }
}

TEST(Peers, BytesOfOtherGpusAreCounted) {
  for (const uint32_t ranks : {2u, 4u}) {
    const Counts c = Peers(ranks).run("right_release_of_gpu", 1, 0, true).counts;
    const uint64_t links = ranks * (ranks - 1);
    EXPECT_EQ(c.remote_load_bytes, links * kBlocks * kThreads * 4);
    EXPECT_EQ(c.remote_store_bytes, links * kBlocks * 4);
  }
}

/// Blocks of an ordinary launch need not run at the same time, so none may wait for another GPU.
TEST(Peers, LaunchesMustBeCooperative) {
  Peers p(2);
  p.shape.cooperative = false;
  EXPECT_THROW(p.run("right_no_fence", 1, 0), ValueError);
  p.shape = cooperative();
  p.shape.pdl = true;
  EXPECT_THROW(p.run("right_no_fence", 1, 0), NotImplementedError);
}

}  // namespace
}  // namespace flashinfer::emu
