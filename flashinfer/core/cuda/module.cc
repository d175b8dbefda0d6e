// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/core/cuda/module.h"

#include "flashinfer/core/check.h"

namespace flashinfer::cuda {
namespace {
enum FunctionAttribute : int {
  kMaxThreads = 0,
  kSharedBytes = 1,
  kLocalBytes = 3,
  kRegisters = 4,
  kMaxDynamicShared = 8,
  kNonPortableCluster = 14
};
constexpr unsigned kGridLimit[3] = {2147483647u, 65535u, 65535u}, kBlockLimit[3] = {1024, 1024, 64};
}  // namespace

void check_launch(const Launch& l, bool clusters, int shared_limit, const char* what) {
  uint64_t threads = 1, cluster = 1;
  for (int i = 0; i < 3; ++i) {
    const char axis = "xyz"[i];
    FI_CHECK(l.grid[i] >= 1 && l.grid[i] <= kGridLimit[i], ValueError, what, ": grid.", axis, " is ", l.grid[i],
             ", but must be in [1, ", kGridLimit[i], "]: call with fewer rows at a time");
    FI_CHECK(l.block[i] >= 1 && l.block[i] <= kBlockLimit[i], ValueError, what, ": block.", axis, " is ", l.block[i],
             ", but must be in [1, ", kBlockLimit[i], "]");
    FI_CHECK(l.cluster[i] >= 1 && l.grid[i] % l.cluster[i] == 0, ValueError, what, ": cluster.", axis, " is ",
             l.cluster[i], ", but must divide grid.", axis, ", which is ", l.grid[i]);
    threads *= l.block[i], cluster *= l.cluster[i];
  }
  FI_CHECK(threads <= 1024, ValueError, what, ": a block has ", threads, " threads, but at most 1024 are possible");
  FI_CHECK(cluster <= 16, ValueError, what, ": a cluster has ", cluster, " blocks, but at most 16 are possible");
  FI_CHECK(cluster == 1 || clusters, ValueError, what, ": a cluster has ", cluster,
           " blocks, but this GPU has no clusters (sm_90 and newer have)");
  FI_CHECK(l.shared_bytes <= static_cast<unsigned>(shared_limit), ValueError, what, ": a block needs ", l.shared_bytes,
           " bytes of shared memory, but this GPU gives at most ", shared_limit);
}

Function load(const std::string& cubin, const char* name, int index) {
  const Current current(index);
  const BesideCapture beside;
  const Api& a = api();
  Handle module = nullptr;
  check(a.cuModuleLoadData(&module, cubin.data()), "cuModuleLoadData");
  Function f;
  f.device = index;
  check(a.cuModuleGetFunction(&f.handle, module, name), "cuModuleGetFunction");
  const auto query = [&](int attribute, int& value) {
    check(a.cuFuncGetAttribute(&value, attribute, f.handle), "cuFuncGetAttribute");
  };
  query(kRegisters, f.registers), query(kLocalBytes, f.local_bytes), query(kSharedBytes, f.shared_bytes),
      query(kMaxThreads, f.max_threads);
  const int most = device_info(index).shared_per_block - f.shared_bytes;
  if (most > 0) check(a.cuFuncSetAttribute(f.handle, kMaxDynamicShared, most), "cuFuncSetAttribute");
  if (device_info(index).clusters) check(a.cuFuncSetAttribute(f.handle, kNonPortableCluster, 1), "cuFuncSetAttribute");
  return f;
}

void launch(const Function& f, const void* params, const Launch& l, Handle stream, const char* what) {
  const DeviceInfo& info = device_info(f.device);
  check_launch(l, info.clusters, info.shared_per_block - f.shared_bytes, what);
  LaunchAttribute attributes[3];
  LaunchConfig c{
      {l.grid[0], l.grid[1], l.grid[2]}, {l.block[0], l.block[1], l.block[2]}, l.shared_bytes, stream, attributes, 0};
  const auto add = [&](int name) -> LaunchAttribute& {
    LaunchAttribute& a = attributes[c.count++];
    a = {name, 0, {}};
    return a;
  };
  if (l.cluster[0] * l.cluster[1] * l.cluster[2] > 1) {
    LaunchAttribute& a = add(LaunchAttribute::kClusterDimension);
    for (int i = 0; i < 3; ++i) a.dim[i] = l.cluster[i];
  }
  if (l.cooperative) add(LaunchAttribute::kCooperative).on = 1;
  // Before sm_90 the attribute is unknown, and a kernel always starts after the previous one. Before CUDA 12.3 a graph
  // has no edges for it.
  constexpr int kEdgesInGraphs = 12030;
  const bool in_graph = l.pdl && driver().version < kEdgesInGraphs && capturing(f.device, stream);
  if (l.pdl && info.major >= 9 && !in_graph) add(LaunchAttribute::kProgrammaticStreamSerialization).on = 1;
  void* arguments[] = {const_cast<void*>(params)};
  const Current current(f.device);
  const Status s = api().cuLaunchKernelEx(&c, f.handle, arguments, nullptr);
  if (s != kOk) [[unlikely]]
    check(s, str("cuLaunchKernelEx of ", what).c_str());
}

int occupancy(const Function& f, int threads, size_t shared_bytes) {
  const Current current(f.device);
  int blocks = 0;
  check(api().cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, f.handle, threads, shared_bytes),
        "cuOccupancyMaxActiveBlocksPerMultiprocessor");
  return blocks;
}

}  // namespace flashinfer::cuda
