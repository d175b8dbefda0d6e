// SPDX-License-Identifier: Apache-2.0
// What ops on shared memory (comm/share.h) have in common: the window behind their `workspace`, and how their calls
// are compared between ranks and named in errors.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "flashinfer/comm/window.h"
#include "flashinfer/core/tensor.h"
#include "flashinfer/ops/comm/gpu_share_state.h"

namespace flashinfer::ops::comm {

/// Number 0 of a signature; that of an allreduce_fusion is its pattern.
enum class CallKind : int64_t {
  kMoeDispatch = 1000,  // far from the patterns of allreduce_fusion
  kMoeReuse,            // waits until the last dispatch's rows are no longer read
  kMoeCombine,
  kDcpAlltoall,
  kDcpReduce,
  kAllGather,
  kReduceScatter,
  kMixedComm,
  kUlyssesScatter,
  kUlyssesGather,
  kQuantizedAllReduce,
};
/// `numbers` are those that the text of the kind names (peers.cc), and 0.
flashinfer::comm::Signature signature(CallKind kind, std::initializer_list<int64_t> numbers);
/// "moe_a2a_combine(runtime_max_tokens_per_rank=64, ...)"
std::string describe_call(const flashinfer::comm::Signature& s);

/// A rank's view of the memory that the ranks of a group share. On GPUs only kernels access it.
struct Peers {
  std::shared_ptr<flashinfer::comm::Window> window;  // null on GPUs: `gpu`
  std::shared_ptr<GpuShare> gpu;
  int rank, size;

  std::byte* own() const { return gpu ? gpu->own : window->own(); }
  int64_t bytes() const { return gpu ? gpu->bytes : window->bytes(); }
  // On the CPU:
  std::byte* of(int64_t r) const { return window->of(static_cast<int>(r)); }
  /// Says that what this rank wrote may be read, and waits for the ranks of `among`.
  void meet(const flashinfer::comm::Signature& call, uint64_t among = ~uint64_t{0}) const {
    window->wait(window->publish(call), describe_call, among);
  }
};
/// ValueError: `workspace` is not a tensor [size, bytes] of comm::share or share_on_gpu, or this process is another
/// rank of it; the message names `rank_name` and `size_name`.
Peers peers_of(const TensorView& workspace, int64_t rank, int64_t size, const char* rank_name, const char* size_name);
/// The name of the workspace's group, for recordings; empty: there is none.
std::string group_of(const TensorView& workspace);
/// What tells the calls with `workspace` apart, the same on all ranks, for recordings: the phase of its window. -1:
/// nothing is recorded, or there is no window.
int64_t number_of_call(const TensorView& workspace);

/// `from` to `to` with the threads of the context.
void copy_bytes(const void* from, std::byte* to, int64_t bytes);

}  // namespace flashinfer::ops::comm
